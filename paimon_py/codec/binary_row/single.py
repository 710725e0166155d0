"""One serialized BinaryRow → Arrow arrays of one value each, without the fixed cost of whole columns.

A partition or the bounds of a file are one row. `decode` makes about thirty numpy calls per column, which is negligible
for a million rows but dominates the time for a small file.

Source: format.md §6; Java `BinaryRow`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row.decode import decode
from paimon_py.codec.binary_row.encode import ARITY_BYTES, header_bytes
from paimon_py.spec.types import Atomic, DataType, Root

_AS_STORED = frozenset({Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.DATE, Root.FLOAT, Root.DOUBLE})
"""Types whose slot begins with the bytes of the Arrow value."""
_INLINE = 0x80


def decode_one(row: bytes, types: Sequence[DataType], wanted: Sequence[int] | None = None) -> list[pa.Array]:
    """The columns of one serialized row. See `decode`.

    Shapes: out — one array of one value per type, or per index in `wanted`.
    Raises: as `decode`
    """
    arity, slots = len(types), ARITY_BYTES + header_bytes(len(types))
    if len(row) < slots + 8 * arity or int.from_bytes(row[:ARITY_BYTES], "big") != arity:
        return decode([row], types, wanted)
    found: list[pa.Array] = []
    for index in range(arity) if wanted is None else wanted:
        value = _value(row, types[index], index, slots + 8 * index)
        found += decode([row], types, [index]) if value is None else [value]
    return found


def is_null_at(row: bytes, index: int) -> bool:
    """Whether a field of a serialized row is NULL."""
    bit = index + 8
    return bool(row[ARITY_BYTES + (bit >> 3)] >> (bit & 7) & 1)


def _value(row: bytes, kind: DataType, index: int, slot: int) -> pa.Array | None:
    """One value; None for types and damaged bytes that are left to `decode`."""
    if not isinstance(kind, Atomic):
        return None
    if is_null_at(row, index):
        return pa.nulls(1, to_arrow_type(kind))
    if kind.root in _AS_STORED:
        return pa.Array.from_buffers(to_arrow_type(kind), 1, [None, pa.py_buffer(row[slot : slot + 8])], null_count=0)
    if kind.root is Root.VARCHAR:
        return _text(row, kind, slot)
    return None


def _text(row: bytes, kind: Atomic, slot: int) -> pa.Array | None:
    mark = row[slot + 7]
    if mark & _INLINE:
        start, length = slot, mark & ~_INLINE
        if length > 7:
            return None
    else:
        length, start = struct.unpack_from("<II", row, slot)
        start += ARITY_BYTES
    text = row[start : start + length]
    if len(text) != length or not _is_text(text):
        return None
    offsets = pa.py_buffer(struct.pack("<ii", 0, length))
    return pa.Array.from_buffers(to_arrow_type(kind), 1, [None, offsets, pa.py_buffer(text)], null_count=0)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
