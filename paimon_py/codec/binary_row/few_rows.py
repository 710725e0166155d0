"""Encodes a few rows as BinaryRows, value by value: without the fixed costs of whole columns.

The bounds of a file are two rows, and a writer encodes three such pairs for each file. `encode` makes about ten numpy
calls per column, which is negligible for a million rows but dominates the time for a small file.

Source: format.md §6; Java `BinaryRowWriter`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_py.codec.binary_row.slots import (
    COMPACT_DECIMAL,
    COMPACT_TIMESTAMP,
    INLINE_LIMIT,
    element_width,
)
from paimon_py.spec.types import Atomic, DataType, Root

FEW_ROWS = 4
"""The maximum number of rows that are encoded value by value."""

_PLAIN = frozenset(
    {Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.DATE, Root.TIME, Root.FLOAT, Root.DOUBLE}
)
_TIMESTAMPS = frozenset({Root.TIMESTAMP, Root.TIMESTAMP_LTZ})
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MILLI = 1_000_000
_WIDE_DECIMAL_BYTES = 16
_LONG = struct.Struct("<q")
_HALVES = struct.Struct("<II")


class _Cell:
    """The slot of one value, and its variable part: `room` bytes, which NULL reserves as well."""

    __slots__ = ("low", "part", "room", "slot")

    def __init__(self, slot: bytes, low: int = 0, part: bytes = b"", room: int = 0) -> None:
        """`slot`: the slot of a value without variable part; otherwise the slot is `low` and the offset of `part`."""
        self.slot = slot
        self.low = low
        self.part = part
        self.room = room


_NOTHING = _Cell(bytes(8))


def are_few(arrays: Sequence[pa.Array], types: Sequence[DataType], count: int) -> bool:
    """Whether `few_rows` encodes these columns."""
    if count > FEW_ROWS or not all(isinstance(kind, Atomic) and kind.root in _CELLS for kind in types):
        return False
    return not any(pa.types.is_dictionary(array.type) for array in arrays)


def few_rows(arrays: Sequence[pa.Array], types: Sequence[DataType], count: int, header_bytes: int) -> list[bytes]:
    """The rows that `encode` returns for these columns, without their arity prefix. `are_few` must be true.

    Cost: 2 µs a column and row.
    """
    rows = [bytearray(header_bytes + 8 * len(arrays)) for _ in range(count)]
    for index, (array, kind) in enumerate(zip(arrays, types, strict=True)):
        assert isinstance(kind, Atomic)
        at = header_bytes + 8 * index
        byte, bit = divmod(index + 8, 8)
        reserved = _bytes_of_null(kind)
        for row, cell in zip(rows, _CELLS[kind.root](array, kind), strict=True):
            if cell is None:
                row[byte] |= 1 << bit
                cell = _Cell(b"", room=reserved) if reserved else _NOTHING
            if not cell.room:
                row[at : at + 8] = cell.slot
                continue
            _HALVES.pack_into(row, at, cell.low, len(row))
            row += cell.part
            row += bytes(cell.room - len(cell.part))
    return [bytes(row) for row in rows]


def _bytes_of_null(kind: Atomic) -> int:
    """The size of the variable part that even NULL reserves."""
    if kind.root is Root.DECIMAL:
        return _WIDE_DECIMAL_BYTES if (kind.precision or 0) > COMPACT_DECIMAL else 0
    return 8 if kind.root in _TIMESTAMPS and (kind.precision or 0) > COMPACT_TIMESTAMP else 0


def _valid(array: pa.Array) -> Sequence[bool]:
    count = len(array)
    if not array.null_count:
        return (True,) * count
    bits = array.buffers()[0]
    if bits is None:
        return (False,) * count
    return [_bit(bits, array.offset + at) for at in range(count)]


def _bit(buffer: pa.Buffer, at: int) -> bool:
    return bool(memoryview(buffer)[at >> 3] >> (at & 7) & 1)


def _values(array: pa.Array, width: int) -> Iterator[bytes | None]:
    """The bytes of each value, None for NULL."""
    buffer = array.buffers()[1]
    for at, valid in enumerate(_valid(array), array.offset):
        yield bytes(memoryview(buffer)[width * at : width * at + width]) if valid else None


def _plain(array: pa.Array, kind: Atomic) -> Iterator[_Cell | None]:
    width = element_width(kind)
    assert array.type.bit_width == 8 * width, f"{array.type} given for {kind}"
    for value in _values(array, width):
        yield None if value is None else _Cell(value.ljust(8, b"\0"))


def _booleans(array: pa.Array, _kind: Atomic) -> Iterator[_Cell | None]:
    buffer = array.buffers()[1]
    for at, valid in enumerate(_valid(array), array.offset):
        yield _Cell(bytes((_bit(buffer, at),)).ljust(8, b"\0")) if valid else None


def _texts(array: pa.Array, _kind: Atomic) -> Iterator[_Cell | None]:
    for value in _strings(array):
        if value is None:
            yield None
        elif len(value) <= INLINE_LIMIT:
            yield _Cell(value.ljust(INLINE_LIMIT, b"\0") + bytes((0x80 | len(value),)))
        else:
            yield _Cell(b"", low=len(value), part=value, room=(len(value) + 7) & ~7)


def _strings(array: pa.Array) -> Iterator[bytes | None]:
    if pa.types.is_fixed_size_binary(array.type):
        yield from _values(array, array.type.byte_width)
        return
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    pair, width = ("<qq", 8) if wide else ("<ii", 4)
    _, offsets, data = array.buffers()
    for at, valid in enumerate(_valid(array), array.offset):
        if not valid:
            yield None
            continue
        first, last = struct.unpack_from(pair, offsets, width * at)
        yield bytes(memoryview(data)[first:last]) if last > first else b""


def _timestamps(array: pa.Array, kind: Atomic) -> Iterator[_Cell | None]:
    unit = _NANOS[array.type.unit]
    is_wide = (kind.precision or 0) > COMPACT_TIMESTAMP
    for value in _values(array, 8):
        if value is None:
            yield None
            continue
        millis, nanos = divmod(_LONG.unpack(value)[0] * unit, _MILLI)
        yield _Cell(b"", low=nanos, part=_long(millis), room=8) if is_wide else _Cell(_long(millis))


def _long(value: int) -> bytes:
    """An integer as eight bytes; if it is too large, its low bytes, as when numpy multiplies."""
    return (value & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little")


def _decimals(array: pa.Array, kind: Atomic) -> Iterator[_Cell | None]:
    assert array.type.scale == kind.scale, f"{array.type} given for {kind}"
    is_wide = (kind.precision or 0) > COMPACT_DECIMAL
    for value in _values(array, _WIDE_DECIMAL_BYTES):
        if value is None:
            yield None
        elif is_wide:
            number = int.from_bytes(value, "little", signed=True)
            part = number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
            yield _Cell(b"", low=len(part), part=part, room=_WIDE_DECIMAL_BYTES)
        else:
            yield _Cell(value[:8])


_CELLS = {
    **dict.fromkeys(_PLAIN, _plain),
    **dict.fromkeys((Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY), _texts),
    **dict.fromkeys(_TIMESTAMPS, _timestamps),
    Root.BOOLEAN: _booleans,
    Root.DECIMAL: _decimals,
}
