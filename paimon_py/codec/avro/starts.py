"""Computes where flat Avro records begin, by steps over their fields.

For each kind of field a table gives the size of such a field if it began at a given byte of the blocks. Records are
skipped by looking up these sizes: row i of every block in one numpy step, or one record after the other if there are
few blocks. Tables do not detect invalid bytes: the caller has to check the result.

Worked example: the records (7, "ab") and (NULL, "c") of a nullable number and a string are 02 0e 04 61 62 00 02 63. The
table of the number holds 2 at position 0 and 1 at position 5, that of the string 3 at position 2 and 2 at position 6:
the records begin at 0 and 5.

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
"""The size is too large for one byte: the field has to be read."""

_MANY_BLOCKS = 16
"""Below this number of blocks, one numpy step for row i of every block costs more than separate rows."""

_PIECE_BYTES = 1 << 17
_VARINT_BYTES_MAX = 10
_WIDTHS = {"double": 8, "float": 4, "boolean": 1}


class FlatField(NamedTuple):
    """A field of flat records: its kind, and the index of NULL in its union; None: never NULL."""

    kind: str
    null: int | None

    @property
    def width(self) -> int | None:
        """The size of every value in bytes; None if sizes differ."""
        return _WIDTHS.get(self.kind)

    @property
    def has_length(self) -> bool:
        """Whether a length precedes the bytes."""
        return self.kind in ("string", "bytes")


class FieldPass(NamedTuple):
    """Skips a field: a fixed number of bytes, then as many as `table` holds at the position reached."""

    lead: int
    table: Bytes
    field: FlatField


class RecordPass(NamedTuple):
    """Skips a record: its fields of variable size, and the fixed bytes after the last of them."""

    fields: tuple[FieldPass, ...]
    tail: int


class Tables:
    """The size of a field that begins at any byte of `data`, which has spare bytes at its end."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._view = word_view(data)
        self._made: dict[FlatField, Bytes] = {}

    def of(self, field: FlatField) -> Bytes:
        """The table of a field; `FAR` if the size of a string does not fit in one byte.

        Cost: as many bytes as the data, once for all fields of a kind; about 3 ns per byte.
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
        """Sizes of strings; a length below 64 is one even byte below 128."""
        sizes: Bytes = self._data >> np.uint8(1)
        sizes += np.uint8(1)
        sizes |= np.uint8(FAR) * ((self._data & np.uint8(0x81)) != 0).view(np.uint8)
        return sizes

    def _with_branches(self, field: FlatField) -> Bytes:
        """One byte for the branch, plus the value unless it is NULL."""
        inner = self.of(FlatField(field.kind, None))
        sizes: Bytes = (self._data == 2 * (1 - (field.null or 0))).view(np.uint8)
        sizes[:-1] *= inner[1:]
        sizes += 1
        if field.has_length:
            sizes -= (sizes == 0).view(np.uint8)  # `FAR` and a branch do not fit into a byte
        return sizes

    def far_size(self, field: FlatField, at: int) -> int:
        """The size of a field whose table entry is `FAR`.

        Raises: IndexError, OverflowError if the field extends beyond the data.
        """
        head = int(field.null is not None)
        length, end = read_long(self._data[at + head : at + head + _VARINT_BYTES_MAX].tobytes(), 0)
        if not 0 <= length <= len(self._data):
            raise OverflowError(f"a text of {length} bytes")
        return head + end + length

    def far_sizes(self, field: FlatField, at: Ints) -> Ints:
        """The same for several positions; 0 if a field extends beyond the data."""
        head = int(field.null is not None)
        values, sizes, is_long = varints(self._view[np.minimum(at + head, len(self._view) - 1)])
        lengths = unzigzag(values)
        broken = is_long | (lengths < 0) | (lengths > len(self._data))
        found: Ints = np.where(broken, 0, lengths + sizes + head)
        return found

    def steps(self, fields: Sequence[FlatField]) -> RecordPass:
        """The steps that skip a record of these fields."""
        found, lead = [], 0
        for field in fields:
            if field.null is None and field.width is not None:
                lead += field.width
                continue
            found.append(FieldPass(lead, self.of(field), field))
            lead = 0
        return RecordPass(tuple(found), lead)


def row_starts(tables: Tables, fields: Sequence[FlatField], begins: Ints, counts: Ints) -> Ints | None:
    """The starts of the records of blocks, in order; None or arbitrary positions if the bytes are not records.

    Shapes: in — a position and a number of records per block; out — a position per record.
    Cost: 0.1 µs per field and record, less with many blocks.
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
    """A uint8 array, and the bytearray that it shares memory with, which is faster to search."""
    room = bytearray(count)
    return np.frombuffer(room, np.uint8), room


def _add_far(tables: Tables, field: FlatField, at: Ints, sizes: Bytes) -> None:
    far = np.flatnonzero(sizes == FAR)
    passed = sizes.astype(np.int64)
    passed[far] = tables.far_sizes(field, at[far])
    at += passed
