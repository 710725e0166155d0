"""Decodes flat Avro records column by column.

First the start of every record is computed (`starts.py`). Then the positions of the values are computed, field by
field, for all records together: each record must end where the next one of its block begins, and the last one must
end with its block. The values of each column are decoded last. Bytes that do not match the schema give None; the caller
then reads record by record, which reports the exact fault.

Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.avro.shape import Shape
from paimon_py.codec.avro.starts import FlatField, Tables, row_starts
from paimon_py.codec.columns import Bytes, Ints, Mask, Slices, Words, from_numpy, from_slices, word_view
from paimon_py.codec.varints import unzigzag, varints

_SPARE_BYTES = 32
_WORD_BYTES = 8
_ONE = np.uint64(1)


class ColumnPlaces(NamedTuple):
    """The positions of a column's values, one slot per row. `lengths`: of strings and bytes; `there`: mask of non-NULL
    rows, for nullable columns."""

    starts: Ints
    lengths: Ints | None
    there: Mask | None


def flat_fields(shape: Shape) -> tuple[FlatField, ...] | None:
    """The fields of records without nested fields or lists; None for other records."""
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
    field = FlatField(shape.kind, null)
    return field if shape.kind == "long" or field.has_length or field.width is not None else None


def fits(field: FlatField, layout: pa.DataType) -> bool:
    """Whether this decoder can build a column of an Arrow type from the values of a field."""
    if field.kind == "long":
        times = pa.types.is_timestamp(layout) or pa.types.is_date32(layout) or pa.types.is_time32(layout)
        return bool(times or pa.types.is_signed_integer(layout))
    checks = {
        "double": pa.types.is_float64, "float": pa.types.is_float32, "boolean": pa.types.is_boolean,
        "string": pa.types.is_string, "bytes": pa.types.is_binary,
    }  # fmt: skip
    return bool(checks[field.kind](layout))


_WINDOW_BYTES_MAX = 16 << 20
"""Larger windows (single blocks) are decoded record by record, because the tables take a multiple of their size."""


class Window:
    """The blocks of a file that are decoded together."""

    def __init__(self, counts: Sequence[int], payloads: Sequence[bytes]) -> None:
        self.rows = sum(counts)
        self._counts = np.array(counts, np.int64)
        self._lengths = np.array([len(payload) for payload in payloads], np.int64)
        self._data: Bytes = np.frombuffer(b"".join((*payloads, bytes(_SPARE_BYTES))), np.uint8)
        self._view: Words = word_view(self._data)
        self._tables = Tables(self._data)

    def find(self, fields: Sequence[FlatField], wanted: Sequence[bool]) -> list[ColumnPlaces] | None:
        """The positions of the values of all fields; None if the bytes are not records of these fields.

        Shapes: out — one per field; empty for fields that are not wanted.
        Cost: one byte per byte of the window and kind of field, plus the positions.
        """
        ends = np.cumsum(self._lengths)
        starts = row_starts(self._tables, fields, ends - self._lengths, self._counts)
        if starts is None or not ((starts >= 0) & (starts < len(self._data) - _SPARE_BYTES)).all():
            return None
        limits = np.repeat(ends, self._counts)
        follows = np.append(starts[1:], 0)
        follows[np.cumsum(self._counts) - 1] = ends
        found = [ColumnPlaces(np.empty(0, np.int64), None, None)] * len(fields)
        at = starts
        for number, field in enumerate(fields):
            places, passed = self._pass_field(field, at, limits)
            if passed is None:
                return None
            if wanted[number]:
                found[number] = places
            at = passed
        return found if (at == follows).all() else None

    def _pass_field(self, field: FlatField, at: Ints, limits: Ints) -> tuple[ColumnPlaces, Ints | None]:
        """The positions of a field's values, and the positions after them; None if a value is broken or crosses its
        block's end."""
        there: Mask | None = None
        sound = True
        if field.null is not None:
            branch = self._data[at]
            there = branch == 2 * (1 - field.null)
            sound = bool((there | (branch == 2 * field.null)).all())
            at = at + 1
        begins, lengths, size = self._value(field, at)
        passed: Ints = at + (size if there is None else np.where(there, size, 0))
        sound = sound and bool(((passed >= 0) & (passed <= limits)).all())
        return ColumnPlaces(begins, lengths, there), passed if sound else None

    def _value(self, field: FlatField, at: Ints) -> tuple[Ints, Ints | None, Ints | int]:
        """The positions of values, the lengths of strings, and the size of each in bytes, as if no value were NULL."""
        if field.width is not None:
            return at, None, field.width
        if not field.has_length:
            return at, None, self._varint_size(at)
        length, head = self._varint(at)
        bounded: Ints = head + np.where((length < 0) | (length > len(self._data)), -(1 << 62), length)
        return at + head, length, bounded

    def _varint_size(self, at: Ints) -> Ints:
        size = self._tables.of(FlatField("long", None))[at].astype(np.int64)
        is_far = size > _WORD_BYTES
        if is_far.any():
            size[is_far] = self._far_size(at[is_far])
        return size

    def _far_size(self, at: Ints) -> Ints:
        """The lengths of varints longer than eight bytes; a value far beyond the block for more than ten bytes."""
        ninth, tenth = self._data[at + 8], self._data[at + 9]
        size: Ints = np.where(ninth < 128, 9, np.where(tenth < 2, 10, 1 << 62))
        return size

    def _varint(self, at: Ints) -> tuple[Ints, Ints]:
        """The varints at some positions, and their sizes in bytes."""
        values, size, is_long = varints(self._view[at])
        if is_long.any():
            far = at[is_long]
            ninth, tenth = (self._data[far + place].astype(np.uint64) for place in (8, 9))
            high = (ninth & np.uint64(0x7F)) << np.uint64(56)
            values[is_long] |= high | np.where(ninth >= 128, (tenth & _ONE) << np.uint64(63), np.uint64(0))
            size[is_long] = self._far_size(far)
        return unzigzag(values), size

    def column(self, field: FlatField, found: ColumnPlaces, layout: pa.DataType) -> pa.Array | None:
        """The values of a field as a column; None if a value is not valid for the type.

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
    """A plan to build columns from flat records: all fields, and position and Arrow type of the wanted ones."""

    fields: tuple[FlatField, ...]
    wanted: Mapping[str, tuple[int, pa.DataType]]


def flat_plan(shape: Shape, layouts: Mapping[str, pa.DataType]) -> FlatPlan | None:
    """The plan for records of a shape and the wanted columns; None if a field is not flat."""
    fields = flat_fields(shape)
    if fields is None:
        return None
    places = {name: shape.names.index(name) for name in layouts}
    if not all(fits(fields[places[name]], layout) for name, layout in layouts.items()):
        return None
    return FlatPlan(fields, {name: (places[name], layout) for name, layout in layouts.items()})


def flat_layout(shape: Shape, layouts: Sequence[pa.DataType]) -> tuple[FlatField, ...] | None:
    """The fields of records that are written from columns of these types; None if a type is not flat."""
    fields = flat_fields(shape)
    if fields is None or not all(fits(field, layout) for field, layout in zip(fields, layouts, strict=True)):
        return None
    return fields


def decode_window(blocks: Sequence[tuple[int, bytes]], plan: FlatPlan) -> dict[str, pa.Array] | None:
    """The wanted columns of the records of some blocks, in order; None if the bytes do not match, or a block is too
    large."""
    if sum(len(payload) for _, payload in blocks) > _WINDOW_BYTES_MAX:
        return None
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
