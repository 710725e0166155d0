"""Range bitmaps: a sorted dictionary of the distinct values, and each row's index in it as bit slices.

Source: format.md §11.5; Java `RangeBitmap`, `BitSliceIndexBitmap`, `ChunkedDictionary`, `FixedLengthChunk`,
`VariableLengthChunk`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_bytes, bitmap_of, whole_bitmap
from paimon_py.codec.columns import Bytes, Ints
from paimon_py.codec.file_index.base import Answer, Question, all_rows
from paimon_py.codec.file_index.distinct_keys import Collector, DistinctKeys, stored_keys
from paimon_py.codec.file_index.keys import Key, KeyKind
from paimon_py.codec.file_index.slices import BitSlices, bit_slices
from paimon_py.lazy import lazy_property
from paimon_py.spec.file_indexes import size_option
from paimon_py.spec.types import Root

_VERSION = 1
_CHUNK_BYTES = 16 << 10
_ALONE = (Root.BOOLEAN, Root.TINYINT, Root.SMALLINT)
"""Types for which every key forms its own chunk, unless an option configures otherwise."""

_SLICES_OF_NOTHING = 64


class RangeBitmapWriter:
    """Memory: as `Collector`."""

    def __init__(self, kind: KeyKind, options: Mapping[str, str]) -> None:
        self._kind = kind
        self._chunk_bytes = size_option(options, "chunk-size", 0 if kind.type.root in _ALONE else _CHUNK_BYTES)
        self._column = Collector(kind)

    def add(self, column: pa.Array) -> None:
        self._column.add(column)

    def finish(self) -> bytes | None:
        groups = self._column.groups()
        count = groups.key_count
        keys, sizes = stored_keys(groups, self._kind, np.empty((count, 0), np.uint8))
        dictionary = _dictionary(keys, sizes, self._kind, self._chunk_bytes)
        ends = keys[: sizes[0]].tobytes() + keys[len(keys) - sizes[-1] :].tobytes() if count else b""
        header = struct.pack(">bii", _VERSION, len(groups.codes), count) + ends + struct.pack(">i", len(dictionary))
        return struct.pack(">i", len(header)) + header + dictionary + _codes(groups)


def _dictionary(keys: Bytes, sizes: Ints, kind: KeyKind, chunk_bytes: int) -> bytes:
    """The chunks: each stores its first key in its header; a shared area stores the other keys of all chunks."""
    ends = np.cumsum(sizes)
    starts = ends - sizes
    headers, areas = [], []
    places: list[int] = []
    at = area_at = first = 0
    while first < len(sizes):
        last = _chunk_end(ends, first, chunk_bytes, kind)
        begin = int(starts[first])
        head = keys[begin : int(ends[first])].tobytes()
        rest = keys[int(ends[first]) : int(ends[last - 1])].tobytes()
        tail = struct.pack(">iii", first, area_at, last - first - 1)
        if kind.is_text:
            offsets = (starts[first + 1 : last] - int(ends[first])).astype(">i4").tobytes()
            tail += struct.pack(">ii", len(offsets), len(rest))
            rest = offsets + rest
        else:
            tail += struct.pack(">ii", len(rest), kind.width)
        places.append(at)
        headers.append(struct.pack(">b", _VERSION) + head + tail)
        areas.append(rest)
        at += len(headers[-1])
        area_at += len(rest)
        first = last
    offsets = np.array(places, ">i4").tobytes()
    header = struct.pack(">biii", _VERSION, len(places), len(offsets), at)
    return b"".join((struct.pack(">i", len(header)), header, offsets, *headers, *areas))


def _chunk_end(ends: Ints, first: int, chunk_bytes: int, kind: KeyKind) -> int:
    """One past the last key of the chunk that begins with key `first`."""
    last = int(np.searchsorted(ends, int(ends[first]) + chunk_bytes, side="right"))
    if kind.is_text:
        last = min(last, first + 1 + chunk_bytes // 4)
    return max(last, first + 1)


def _codes(groups: DistinctKeys) -> bytes:
    rows = np.flatnonzero(groups.codes >= 0)
    count = max((groups.key_count - 1).bit_length(), 1) if groups.key_count else _SLICES_OF_NOTHING
    existing = bitmap_bytes(bitmap_of(rows))
    slices = [bitmap_bytes(part) for part in bit_slices(rows, groups.codes[rows], count)]
    lengths = np.array([len(part) for part in slices], np.int64)
    index = np.stack((np.cumsum(lengths) - lengths, lengths), axis=1).astype(">i4").tobytes()
    header = struct.pack(">bbii", _VERSION, count, len(existing), len(index)) + index
    return b"".join((struct.pack(">i", len(header)), header, existing, *slices))


class RangeBitmapReader:
    """See `IndexReader`. The dictionary is searched in its encoded form; slices are decoded on demand."""

    def __init__(self, kind: KeyKind, data: bytes) -> None:
        self._kind = kind
        self._data = data
        size, version, self.row_count, self._count = struct.unpack_from(">ibii", data)
        if version != _VERSION:
            raise ValueError(f"version {version} is not known")
        self._dictionary_at = 4 + size
        if size < 13 or self._count < 0 or self.row_count < 0:
            raise ValueError(f"a header of {size} bytes, {self._count} keys and {self.row_count} rows is impossible")
        self._codes_at = self._dictionary_at + self._int(size)

    def ask(self, question: Question) -> Answer:
        if question.test == "null":
            return all_rows(self.row_count) - self._slices.existing
        if question.test == "not null":
            return BitMap(self._slices.existing)
        if question.test in ("==", "!="):
            found = BitMap()
            for key in question.keys:
                code, exact = self._find(key)
                if exact:
                    rows = self._slices.compare(code)[1]
                    if not rows:
                        raise ValueError(f"no row has the key {key!r}")
                    found |= rows
            return found if question.test == "==" else self._slices.existing - found
        code, exact = self._find(question.keys[0])
        less, same, greater = self._slices.compare(code)
        if not exact:
            greater |= same
            same = BitMap()
        found = less if question.test[0] == "<" else greater
        return found | same if question.test.endswith("=") else found

    def _find(self, key: Key) -> tuple[int, bool]:
        """The code of a key, or of the next greater one; and whether the key exists."""
        chunks, offsets_length = struct.unpack_from(">ii", self._data, self._dictionary_at + 5)
        low, high = 0, chunks
        while low < high:
            middle = (low + high) // 2
            if self._chunk(middle)[0] <= key:  # type: ignore[operator]
                low = middle + 1
            else:
                high = middle
        if not low:
            return 0, False
        first, at = self._chunk(low - 1)
        code, offset, size, first_length, second = struct.unpack_from(">iiiii", self._data, at)
        if first == key:
            return code, True
        area = self._dictionary_at + 4 + self._int(self._dictionary_at)
        area += offsets_length + self._int(self._dictionary_at + 13) + offset
        bottom, top = 0, size
        while bottom < top:
            middle = (bottom + top) // 2
            if self._kind.is_text:
                found = self._key(area + first_length + self._int(area + 4 * middle))[0]
            else:
                found = self._key(area + second * middle)[0]
            if found == key:
                return code + 1 + middle, True
            if found < key:  # type: ignore[operator]
                bottom = middle + 1
            else:
                top = middle
        return code + 1 + bottom, False

    def _chunk(self, number: int) -> tuple[Key, int]:
        """The first key of a chunk, and the position of the rest of its header."""
        body = self._dictionary_at + 4 + self._int(self._dictionary_at)
        offsets_length = self._int(self._dictionary_at + 9)
        at = body + offsets_length + self._int(body + 4 * number)
        return self._key(at + 1)

    def _key(self, at: int) -> tuple[Key, int]:
        """A stored key, and its end."""
        if not self._kind.is_text:
            end = at + self._kind.width
            return int(self._kind.load(self._data[at:end])[0]), end
        end = at + 4 + self._int(at)
        return self._data[at + 4 : end], end

    @lazy_property
    def _slices(self) -> BitSlices:
        at = self._codes_at
        size, version, count, existing_length, index_length = struct.unpack_from(">ibbii", self._data, at)
        if version != _VERSION or not 0 < count <= 64 or index_length != 8 * count:
            raise ValueError(f"{count} slices of version {version} are impossible")
        body = at + 4 + size
        existing = whole_bitmap(self._data[body : body + existing_length])
        index = struct.unpack_from(f">{2 * count}i", self._data, at + 14)
        body += existing_length
        places = zip(index[::2], index[1::2], strict=True)
        found = BitSlices(existing, [whole_bitmap(self._data[body + o : body + o + n]) for o, n in places])
        _, last, beyond = found.compare(self._count - 1)
        if (beyond or not last) if self._count else existing:
            raise ValueError(f"its rows do not have {self._count} keys")
        return found

    def _int(self, at: int) -> int:
        value: int = struct.unpack_from(">i", self._data, at)[0]
        if value < 0:
            raise ValueError(f"{value} at {at} is impossible")
        return value
