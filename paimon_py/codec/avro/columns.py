"""Flat Avro records decoded in columns: row i of every block of a window in one numpy step.

Where a record begins follows from the one before it, so the rows of one block cannot be found side by side; those of
many blocks can. Positions come first, column by column and row by row; the values of a column are decoded afterwards,
all at once. Bytes that are not what the schema says give None: then the records are read one after the other, which
finds out what is wrong with them.

Worked example: a window of two blocks with the rows (7, "ab"), (NULL, "c") and (8, "d"). Step 0 reads the first row of
both blocks: branch bytes 2 and 2, numbers at 1 and 1, texts behind them. Step 1 goes on with the first block alone.

Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.avro.shape import Shape
from paimon_py.codec.columns import Bytes, Ints, Mask, Slices, Words, from_numpy, from_slices, word_view
from paimon_py.codec.varints import unzigzag, varint_sizes, varints

LEAST_BLOCKS = 12
"""A step costs more than a record alone with fewer blocks side by side."""

_SPARE_BYTES = 32
_ONE = np.uint64(1)
_WIDTHS = {"double": 8, "float": 4, "boolean": 1}


class FlatField(NamedTuple):
    """A field of flat records: its kind, and which branch of its union is NULL; None: it is never NULL."""

    kind: str
    null: int | None


class ColumnPlaces(NamedTuple):
    """Where the values of a column lie, one slot a row; `lengths` of texts and bytes, `there` where it may be NULL."""

    starts: Ints
    lengths: Ints | None
    there: Mask | None


def flat_fields(shape: Shape) -> tuple[FlatField, ...] | None:
    """The fields of records without inner fields and lists; None for other records."""
    if shape.kind != "record":
        return None
    found = [_flat(part) for part in shape.parts]
    return None if None in found else tuple(field for field in found if field is not None)


def _flat(shape: Shape) -> FlatField | None:
    null = None
    if shape.kind == "union":
        kinds = [part.kind for part in shape.parts]
        if len(kinds) != 2 or kinds.count("null") != 1:
            return None
        null = kinds.index("null")
        shape = shape.parts[1 - null]
    is_flat = shape.kind in ("long", "string", "bytes") or shape.kind in _WIDTHS
    return FlatField(shape.kind, null) if is_flat else None


def fits(field: FlatField, layout: pa.DataType) -> bool:
    """Whether columns of an Arrow type are made of the values of a field here."""
    if field.kind == "long":
        times = pa.types.is_timestamp(layout) or pa.types.is_date32(layout) or pa.types.is_time32(layout)
        return bool(times or pa.types.is_signed_integer(layout))
    checks = {
        "double": pa.types.is_float64, "float": pa.types.is_float32, "boolean": pa.types.is_boolean,
        "string": pa.types.is_string, "bytes": pa.types.is_binary,
    }  # fmt: skip
    return bool(checks[field.kind](layout))


class Window:
    """The blocks of a file that are decoded together."""

    def __init__(self, counts: Sequence[int], payloads: Sequence[bytes]) -> None:
        self.rows = sum(counts)
        self._counts = np.array(counts, np.int64)
        self._lengths = np.array([len(payload) for payload in payloads], np.int64)
        self._data: Bytes = np.frombuffer(b"".join((*payloads, bytes(_SPARE_BYTES))), np.uint8)
        self._view: Words = word_view(self._data)

    def find(self, fields: Sequence[FlatField], wanted: Sequence[bool]) -> list[ColumnPlaces] | None:
        """Where the values of all fields lie; None if the bytes are not records of these fields.

        Shapes: out — one for each field; those that are not wanted are empty.
        Cost: about ten numpy calls a field for each row of the longest block.
        """
        ends = np.cumsum(self._lengths)
        order = np.argsort(-self._counts, kind="stable")
        counts, limits = self._counts[order], ends[order]
        rows = (np.cumsum(self._counts) - self._counts)[order]
        position = (ends - self._lengths)[order]
        steps = int(counts[0]) if len(counts) else 0
        active = np.searchsorted(-counts, -np.arange(steps), side="left")
        found = [self._room(field) if keep else None for field, keep in zip(fields, wanted, strict=True)]
        for step in range(steps):
            lanes = int(active[step])
            at = self._row(fields, found, position[:lanes], limits[:lanes], rows[:lanes] + step)
            if at is None:
                return None
            position[:lanes] = at
        nothing = ColumnPlaces(np.empty(0, np.int64), None, None)
        return [nothing if each is None else each for each in found] if (position == limits).all() else None

    def _room(self, field: FlatField) -> ColumnPlaces:
        has_length = field.kind in ("string", "bytes")
        return ColumnPlaces(
            np.zeros(self.rows, np.int64),
            np.zeros(self.rows, np.int64) if has_length else None,
            None if field.null is None else np.empty(self.rows, np.bool_),
        )

    def _row(
        self, fields: Sequence[FlatField], found: Sequence[ColumnPlaces | None], at: Ints, limits: Ints, rows: Ints
    ) -> Ints | None:
        """Pass one row of each block; the positions after it, None if one leaves its block."""
        data = self._data
        for field, out in zip(fields, found, strict=True):
            there: Mask | None = None
            if field.null is not None:
                branch = data[at]
                there = branch == 2 * (1 - field.null)
                if not (there | (branch == 2 * field.null)).all():
                    return None
                at = at + 1
                if out is not None and out.there is not None:
                    out.there[rows] = there
            size = self._size(field, out, at, rows)
            at = at + (size if there is None else np.where(there, size, 0))
            if not ((at >= 0) & (at <= limits)).all():
                return None
        return at

    def _size(self, field: FlatField, out: ColumnPlaces | None, at: Ints, rows: Ints) -> Ints | int:
        """How many bytes a field takes in each row, as if there were a value."""
        if out is not None:
            out.starts[rows] = at
        if field.kind == "long":
            return self._varint_size(at)
        if field.kind in _WIDTHS:
            return _WIDTHS[field.kind]
        length, head = self._varint(at)
        if out is not None and out.lengths is not None:
            out.starts[rows] = at + head
            out.lengths[rows] = length
        bounded: Ints = head + np.where((length < 0) | (length > len(self._data)), -(1 << 62), length)
        return bounded

    def _varint_size(self, at: Ints) -> Ints:
        size, is_long = varint_sizes(self._view[at])
        if is_long.any():
            size[is_long] = self._far_size(at[is_long])
        return size

    def _far_size(self, at: Ints) -> Ints:
        """How long numbers of more than eight bytes are; far beyond the block for one of more than ten."""
        ninth, tenth = self._data[at + 8], self._data[at + 9]
        size: Ints = np.where(ninth < 128, 9, np.where(tenth < 2, 10, 1 << 62))
        return size

    def _varint(self, at: Ints) -> tuple[Ints, Ints]:
        """The numbers at some positions, and how many bytes they take."""
        values, size, is_long = varints(self._view[at])
        if is_long.any():
            far = at[is_long]
            ninth, tenth = (self._data[far + place].astype(np.uint64) for place in (8, 9))
            high = (ninth & np.uint64(0x7F)) << np.uint64(56)
            values[is_long] |= high | np.where(ninth >= 128, (tenth & _ONE) << np.uint64(63), np.uint64(0))
            size[is_long] = self._far_size(far)
        return unzigzag(values), size

    def column(self, field: FlatField, found: ColumnPlaces, layout: pa.DataType) -> pa.Array | None:
        """The values of a field as a column; None if one is not a value of the type.

        `layout`: a type that `fits`.
        """
        if found.lengths is not None:
            lengths = found.lengths if found.there is None else np.where(found.there, found.lengths, 0)
            array = from_slices(Slices(self._data, found.starts, lengths), layout, found.there)
            return array if field.kind == "bytes" or _is_text(array) else None
        values = self._values(field, found)
        if values is None:
            return None
        if found.there is not None:
            values = np.where(found.there, values, values.dtype.type(0))
        if field.kind == "long" and not _holds(layout, values):
            return None
        return from_numpy(values, layout, found.there)

    def _values(self, field: FlatField, found: ColumnPlaces) -> npt.NDArray[np.generic] | None:
        at = found.starts
        if field.kind == "long":
            return self._varint(at)[0]
        if field.kind == "double":
            doubles: npt.NDArray[np.float64] = self._view[at].view(np.float64)
            return doubles
        if field.kind == "float":
            floats: npt.NDArray[np.float32] = (self._view[at] & np.uint64(0xFFFF_FFFF)).astype("u4").view(np.float32)
            return floats
        flags = self._data[at]
        there = np.ones(len(flags), np.bool_) if found.there is None else found.there
        values: Mask = flags != 0
        return None if (flags[there] > 1).any() else values


class FlatPlan(NamedTuple):
    """How columns are made of flat records: all fields, and by name the place and Arrow type of those wanted."""

    fields: tuple[FlatField, ...]
    wanted: Mapping[str, tuple[int, pa.DataType]]


def flat_plan(shape: Shape, layouts: Mapping[str, pa.DataType]) -> FlatPlan | None:
    """The plan for records of a shape and wanted columns; None if they are not all flat."""
    fields = flat_fields(shape)
    if fields is None:
        return None
    places = {name: shape.names.index(name) for name in layouts}
    if not all(fits(fields[places[name]], layout) for name, layout in layouts.items()):
        return None
    return FlatPlan(fields, {name: (places[name], layout) for name, layout in layouts.items()})


def flat_layout(shape: Shape, layouts: Sequence[pa.DataType]) -> tuple[FlatField, ...] | None:
    """The fields of records that columns of these types become; None if they are not all flat."""
    fields = flat_fields(shape)
    if fields is None or not all(fits(field, layout) for field, layout in zip(fields, layouts, strict=True)):
        return None
    return fields


def decode_window(blocks: Sequence[tuple[int, bytes]], plan: FlatPlan) -> dict[str, pa.Array] | None:
    """The wanted columns of the records of some blocks, in order; None if the bytes are not such records."""
    window = Window([count for count, _ in blocks], [payload for _, payload in blocks])
    places = {place for place, _ in plan.wanted.values()}
    found = window.find(plan.fields, [place in places for place in range(len(plan.fields))])
    if found is None:
        return None
    arrays = {}
    for name, (place, layout) in plan.wanted.items():
        array = window.column(plan.fields[place], found[place], layout)
        if array is None:
            return None
        arrays[name] = array
    return arrays


def _is_text(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _holds(layout: pa.DataType, values: npt.NDArray[np.generic]) -> bool:
    bits = layout.bit_width
    if bits == 64 or not len(values):
        return True
    least, most = int(values.min()), int(values.max())
    return bool(-(1 << bits - 1) <= least and most < 1 << bits - 1)
