"""Deletion vectors: which rows of one data file are dead, in memory and as blocks of an index file.

A block is a size, a magic number, Roaring bitmaps and a checksum. Two kinds exist: one bitmap of 32-bit positions, and
a list of such bitmaps, one per upper half of a 64-bit position; the magic number distinguishes them.

Source: format.md §10.2; Java `BitmapDeletionVector`, `Bitmap64DeletionVector`, `OptimizedRoaringBitmap64`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

import numpy as np
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_bytes, bitmap_of, positions_of, read_bitmap
from paimon_py.codec.columns import Ints, distinct_integers
from paimon_py.errors import CorruptionError

VERSION = 1
"""First byte of an index file of deletion vectors."""

_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_FRAME = 8
"""The size of the length and checksum fields, which the length does not include."""


class DeletionVector:
    """The dead rows of one data file, as positions from 0 in file order. Immutable.

    `len(vector)` is their number. Memory: at most two bytes per position, less for runs.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[int, BitMap]) -> None:
        self._parts = {high: part for high, part in sorted(parts.items()) if part}

    @classmethod
    def of(cls, positions: Ints) -> DeletionVector:
        """The vector of the given positions, in any order, all non-negative.

        Cost: 15 ns per position.
        """
        highs = positions >> 32
        return cls({int(high): bitmap_of(positions[highs == high]) for high in distinct_integers(highs)})

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeletionVector) and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"DeletionVector({len(self)} rows)"

    @property
    def last(self) -> int:
        """The largest position, −1 if there is none."""
        if not self._parts:
            return -1
        high, part = next(reversed(self._parts.items()))
        return (high << 32) + int(part.max())

    @property
    def positions(self) -> Ints:
        """All positions, ascending."""
        found = [positions_of(part) + (high << 32) for high, part in self._parts.items()]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def within(self, start: int, stop: int) -> Ints:
        """The positions from `start` up to but not including `stop`, ascending.

        Cost: 4 µs, plus 1 ns per position found.
        """
        found = []
        for high, part in self._parts.items():
            base = high << 32
            first, end = max(start - base, 0), min(stop - base, 1 << 32)
            if first < end and (count := part.range_cardinality(first, end)):
                inside = part if count == len(part) else part & BitMap(range(first, end))
                found.append(positions_of(inside) + base)
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def union(self, other: DeletionVector) -> DeletionVector:
        """The rows that are dead in either vector."""
        parts = dict(self._parts)
        for high, part in other._parts.items():
            parts[high] = parts[high] | part if high in parts else part
        return DeletionVector(parts)

    def bitmap(self, high: int) -> BitMap:
        """The positions whose upper half is `high`, as their lower halves."""
        return self._parts.get(high, BitMap())

    @property
    def highs(self) -> range:
        """The upper halves, from 0 to the largest."""
        return range(max(self._parts, default=-1) + 1)


def encode(vector: DeletionVector, *, bits: int) -> tuple[bytes, int]:
    """The block of a vector in Java's bytes, and its length as an index manifest states it.

    Args:
        bits: 32, or 64 for the option `deletion-vectors.bitmap64`.
    """
    if bits == 32:
        assert len(vector.highs) <= 1, "a position needs more than 32 bits"
        body = _MAGIC_32 + bitmap_bytes(vector.bitmap(0))
    else:
        body = _MAGIC_64 + struct.pack("<q", len(vector.highs))
        body += b"".join(struct.pack("<i", high) + bitmap_bytes(vector.bitmap(high)) for high in vector.highs)
    block = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    return block, len(body) if bits == 32 else len(block)


def decode(data: bytes, length: int, path: str, offset: int) -> DeletionVector:
    """The vector whose block begins `data`; bytes after the block are ignored.

    Args:
        length: the length that the index manifest states.
        path, offset: location of the block, for errors.
    Raises: CorruptionError if the block is damaged; its checksum is verified.
    """

    def damage(reason: str) -> CorruptionError:
        return CorruptionError(
            f"the deletion vector at offset {offset} of {path} is damaged: {reason}", path=path, offset=offset
        )

    if len(data) < _FRAME + 4:
        raise damage(f"only {len(data)} bytes are left of it")
    size = struct.unpack_from(">i", data)[0]
    magic = data[4:8]
    if magic not in (_MAGIC_32, _MAGIC_64):
        raise damage(f"its magic number is {magic.hex()}")
    stated = length if magic == _MAGIC_32 else length - _FRAME
    if size != stated or size < 4:
        raise damage(f"it says that it has {size} bytes, the index manifest says {stated}")
    if len(data) < size + _FRAME:
        raise damage(f"{size + _FRAME} bytes are needed, {len(data)} are there")
    body = data[4 : 4 + size]
    expected = struct.unpack_from(">I", data, 4 + size)[0]
    if zlib.crc32(body) != expected:
        raise damage(f"its checksum is {zlib.crc32(body):08x}, not {expected:08x} as stored")
    try:
        return DeletionVector({0: _read_one(body[4:])} if magic == _MAGIC_32 else _read_many(body[4:]))
    except (ValueError, IndexError, struct.error) as error:
        raise damage(str(error)) from error


def _read_one(data: bytes) -> BitMap:
    part, size = read_bitmap(data)
    if size != len(data):
        raise ValueError(f"{len(data) - size} bytes follow its bitmap")
    return part


def _read_many(data: bytes) -> dict[int, BitMap]:
    count = struct.unpack_from("<q", data)[0]
    if not 0 <= count <= len(data) // 12:
        raise ValueError(f"it cannot hold {count} bitmaps")
    parts: dict[int, BitMap] = {}
    at = 8
    for _ in range(count):
        high = struct.unpack_from("<i", data, at)[0]
        if high <= max(parts, default=-1):
            raise ValueError(f"bitmap {high} is out of order")
        parts[high], size = read_bitmap(data[at + 4 :])
        at += 4 + size
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow its bitmaps")
    return parts
