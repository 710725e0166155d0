"""Where flat Avro records begin, found by steps over their fields.

A table for each kind of field says how many bytes a field takes that begins at any byte of some blocks. Records are
passed by looking these numbers up: row i of every block in one numpy step, or one record after the other where few
blocks lie side by side. Tables do not tell bytes that are not values: who asks has to check what is found.

Worked example: the records (7, "ab") and (NULL, "c") of a nullable number and a text are 02 0e 04 61 62 00 02 63. The
table of the number holds 2 at place 0 and 1 at place 5, that of the text 3 at place 2 and 2 at place 6: they begin at 0
and 5.

Source: Avro 1.11 specification, "Binary Encoding".
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paimon_py.codec.avro.container import read_long
from paimon_py.codec.columns import Bytes, Ints, word_view
from paimon_py.codec.varints import unzigzag, varints

FAR = 255
"""A text whose length takes more than one byte: it has to be read."""

_MANY_BLOCKS = 16
"""A numpy step for row i of fewer blocks costs more than these rows one by one."""

_PIECE_BYTES = 1 << 17
_VARINT_BYTES_MAX = 10
_WIDTHS = {"double": 8, "float": 4, "boolean": 1}


class FlatField(NamedTuple):
    """A field of flat records: its kind, and which branch of its union is NULL; None: it is never NULL."""

    kind: str
    null: int | None

    @property
    def width(self) -> int | None:
        """The bytes that every value takes, None where they differ."""
        return _WIDTHS.get(self.kind)

    @property
    def has_length(self) -> bool:
        """Whether bytes follow a length."""
        return self.kind in ("string", "bytes")


class FieldPass(NamedTuple):
    """What passes a field: bytes that are always there, then those that `table` names at the place reached."""

    lead: int
    table: Bytes
    field: FlatField


class RecordPass(NamedTuple):
    """What passes a record: its fields of different sizes, and the bytes after the last of these."""

    fields: tuple[FieldPass, ...]
    tail: int


class Tables:
    """How many bytes fields take that begin at any byte of `data`, which has spare bytes at its end."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._view = word_view(data)
        self._made: dict[FlatField, Bytes] = {}

    def of(self, field: FlatField) -> Bytes:
        """The table of a field; `FAR` where a text is longer than one byte can say.

        Cost: as many bytes as the data, once for all fields of a kind; about 3 ns for each of them.
        """
        if field not in self._made:
            self._made[field] = self._fill(field)
        return self._made[field]

    def _fill(self, field: FlatField) -> Bytes:
        if field.null is not None:
            return self._with_branches(field)
        if field.width is not None:
            return np.full(len(self._data), field.width, np.uint8)
        return self._texts() if field.has_length else self._longs()

    def _longs(self) -> Bytes:
        """Sizes of varints; more than ten bytes count as eleven."""
        data = self._data
        sizes = np.empty(len(data), np.uint8)
        for start in range(0, len(data), _PIECE_BYTES):
            end = min(start + _PIECE_BYTES, len(data))
            goes_on = np.zeros(end - start + _VARINT_BYTES_MAX, np.uint8)
            known = data[start : end + _VARINT_BYTES_MAX]
            np.right_shift(known, 7, out=goes_on[: len(known)])
            count = end - start
            run = goes_on[:count].copy()
            size = sizes[start:end]
            np.add(run, 1, out=size)
            for place in range(1, _VARINT_BYTES_MAX):
                run &= goes_on[place : place + count]
                size += run
        return sizes

    def _texts(self) -> Bytes:
        """A length below 64 is one even byte below 128."""
        sizes: Bytes = self._data >> np.uint8(1)
        sizes += np.uint8(1)
        sizes |= np.uint8(FAR) * ((self._data & np.uint8(0x81)) != 0).view(np.uint8)
        return sizes

    def _with_branches(self, field: FlatField) -> Bytes:
        """One byte for the branch, and the value behind it unless it is NULL."""
        inner = self.of(FlatField(field.kind, None))
        sizes: Bytes = (self._data == 2 * (1 - (field.null or 0))).view(np.uint8)
        sizes[:-1] *= inner[1:]
        sizes += 1
        if field.has_length:
            sizes -= (sizes == 0).view(np.uint8)  # `FAR` and a branch do not fit into a byte
        return sizes

    def far_size(self, field: FlatField, at: int) -> int:
        """What a field takes whose table says `FAR`.

        Raises: IndexError, OverflowError if it does not end in the data.
        """
        head = int(field.null is not None)
        length, end = read_long(self._data[at + head : at + head + _VARINT_BYTES_MAX].tobytes(), 0)
        if not 0 <= length <= len(self._data):
            raise OverflowError(f"a text of {length} bytes")
        return head + end + length

    def far_sizes(self, field: FlatField, at: Ints) -> Ints:
        """The same of several places; 0 where a field does not end in the data."""
        head = int(field.null is not None)
        values, sizes, is_long = varints(self._view[np.minimum(at + head, len(self._view) - 1)])
        lengths = unzigzag(values)
        broken = is_long | (lengths < 0) | (lengths > len(self._data))
        found: Ints = np.where(broken, 0, lengths + sizes + head)
        return found

    def steps(self, fields: Sequence[FlatField]) -> RecordPass:
        """What passes a record of these fields."""
        found, lead = [], 0
        for field in fields:
            if field.null is None and field.width is not None:
                lead += field.width
                continue
            found.append(FieldPass(lead, self.of(field), field))
            lead = 0
        return RecordPass(tuple(found), lead)


def row_starts(tables: Tables, fields: Sequence[FlatField], begins: Ints, counts: Ints) -> Ints | None:
    """Where the records of blocks begin, block after block; anything or None where bytes are not records.

    Shapes: in — a place and a number of records for each block; out — a place for each record.
    Cost: 0.1 µs a field and record, with many blocks less.
    """
    steps = tables.steps(fields)
    if len(counts) >= _MANY_BLOCKS:
        return _side_by_side(tables, steps, begins, counts)
    found = array("q")
    passed = [(step.lead, step.table.tobytes(), step.field) for step in steps.fields]
    try:
        for at, count in zip(begins.tolist(), counts.tolist(), strict=True):
            for _ in range(count):
                found.append(at)
                for lead, table, field in passed:
                    at += lead
                    size = table[at]
                    at += size if size != FAR else tables.far_size(field, at)
                at += steps.tail
    except (IndexError, OverflowError):
        return None
    return np.array(found, np.int64)


def _side_by_side(tables: Tables, steps: RecordPass, begins: Ints, counts: Ints) -> Ints:
    order = np.argsort(-counts, kind="stable")
    most = int(counts[order[0]])
    lanes_of = np.searchsorted(-counts[order], -np.arange(most), side="left").tolist()
    rows = (np.cumsum(counts) - counts)[order]
    found = np.zeros(int(counts.sum()), np.int64)
    passed = [(step.lead, step.table, step.field if step.field.has_length else None) for step in steps.fields]
    at = begins[order]
    sizes, room = _bytes(len(at))
    for number in range(most):
        lanes = lanes_of[number]
        if lanes < len(at):
            at = at[:lanes]
            sizes, room = _bytes(lanes)
        found[rows[:lanes] + number] = at
        for lead, table, text in passed:
            if lead:
                at += lead
            table.take(at, out=sizes, mode="clip")
            if text is not None and FAR in room:
                _add_far(tables, text, at, sizes)
            else:
                at += sizes
        at += steps.tail
    return found


def _bytes(count: int) -> tuple[Bytes, bytearray]:
    """Numbers of one byte, and the memory they lie in, which is searched faster."""
    room = bytearray(count)
    return np.frombuffer(room, np.uint8), room


def _add_far(tables: Tables, field: FlatField, at: Ints, sizes: Bytes) -> None:
    far = np.flatnonzero(sizes == FAR)
    passed = sizes.astype(np.int64)
    passed[far] = tables.far_sizes(field, at[far])
    at += passed
