"""Bit-sliced indexes of numbers: one for values of at least zero, one for the absolute values of the others.

Source: format.md §11.4; Java `BitSliceIndexBitmapFileIndex`, `BitSliceIndexRoaringBitmap`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_bytes, bitmap_of, read_bitmap
from paimon_py.codec.columns import Ints, Mask, validity_mask
from paimon_py.codec.file_index.base import Answer, Question, all_rows
from paimon_py.codec.file_index.keys import KeyKind
from paimon_py.codec.file_index.slices import BitSlices, bit_slices
from paimon_py.lazy import lazy_property

_VERSION = 1
_LEAST = np.iinfo(np.int64).min


class BsiWriter:
    """Memory: 9 bytes per row.

    The smallest 64-bit number has no absolute value, and wider decimals do not fit: a file that contains such a value
    gets no index (Java fails to write it).
    """

    def __init__(self, kind: KeyKind, options: Mapping[str, str]) -> None:  # noqa: ARG002
        self._kind = kind
        self._numbers: list[Ints] = []
        self._valid: list[Mask] = []
        self._fits = True

    def add(self, column: pa.Array) -> None:
        numbers, valid = self._kind.numbers(column), validity_mask(column)
        self._fits = self._fits and bool(((self._kind.fits(column) & (numbers != _LEAST)) | ~valid).all())
        self._numbers.append(numbers.copy())
        self._valid.append(valid)

    def finish(self) -> bytes | None:
        if not self._fits:
            return None
        numbers = np.concatenate([*self._numbers, np.empty(0, np.int64)])
        valid = np.concatenate([*self._valid, np.empty(0, np.bool_)])
        positive, negative = np.flatnonzero(valid & (numbers >= 0)), np.flatnonzero(valid & (numbers < 0))
        parts = (_part(positive, numbers[positive]), _part(negative, -numbers[negative]))
        return struct.pack(">bi", _VERSION, len(numbers)) + b"".join(parts)


class BsiReader:
    """See `IndexReader`."""

    def __init__(self, kind: KeyKind, data: bytes) -> None:
        version, self.row_count = struct.unpack_from(">bi", data)
        if version != _VERSION:
            raise ValueError(f"version {version} is not known")
        self._kind = kind
        self._data = data

    def ask(self, question: Question) -> Answer:
        if question.test == "not null":
            return self._existing
        if question.test == "null":
            return all_rows(self.row_count) - self._existing
        if question.test in ("==", "!="):
            found = BitMap()
            for key in question.keys:
                found |= self._compare(int(key))[1]
            return found if question.test == "==" else self._existing - found
        less, same, greater = self._compare(int(question.keys[0]))
        found = less if question.test[0] == "<" else greater
        return found | same if question.test.endswith("=") else found

    def _compare(self, number: int) -> tuple[BitMap, BitMap, BitMap]:
        (shift, positive), (offset, negative) = self._parts
        if number < 0:
            below, same, above = negative.compare(-number - offset)
            return above, same, below | positive.existing
        below, same, above = positive.compare(number - shift)
        return below | negative.existing, same, above

    @lazy_property
    def _existing(self) -> BitMap:
        (_, positive), (_, negative) = self._parts
        return positive.existing | negative.existing

    @lazy_property
    def _parts(self) -> tuple[tuple[int, BitSlices], tuple[int, BitSlices]]:
        """The offset that is subtracted from the numbers, and the sliced remainders, for both signs."""
        first, at = _read_part(self._data, 5)
        second, at = _read_part(self._data, at)
        if at != len(self._data):
            raise ValueError(f"{len(self._data) - at} bytes follow its slices")
        if first[1].existing.intersect(second[1].existing):
            raise ValueError("a row has two numbers")
        return first, second


def _part(rows: Ints, numbers: Ints) -> bytes:
    if not len(rows):
        return b"\0"
    largest = int(numbers.max())
    slices = bit_slices(rows, numbers, largest.bit_length())
    head = b"\1" + struct.pack(">bqq", _VERSION, 0, largest)
    existing, count = bitmap_bytes(bitmap_of(rows)), struct.pack(">i", len(slices))
    return b"".join((head, existing, count, *(bitmap_bytes(part) for part in slices)))


def _read_part(data: bytes, at: int) -> tuple[tuple[int, BitSlices], int]:
    if data[at] == 0:
        return (0, BitSlices(BitMap(), [])), at + 1
    version, least, largest = struct.unpack_from(">bqq", data, at + 1)
    if version != _VERSION:
        raise ValueError(f"version {version} of slices is not known")
    existing, size = read_bitmap(data[at + 18 :])
    at += 18 + size
    count = struct.unpack_from(">i", data, at)[0]
    if count != max(largest - least, 0).bit_length() or not existing:
        raise ValueError(f"{count} slices of numbers from {least} to {largest} are impossible")
    at += 4
    slices = []
    for _ in range(count):
        part, size = read_bitmap(data[at:])
        slices.append(part)
        at += size
    numbers = BitSlices(existing, slices)
    if not numbers.compare(largest - least)[1]:
        raise ValueError(f"no row has the largest number, {largest}")
    return (least, numbers), at
