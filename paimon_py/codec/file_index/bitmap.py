"""Bitmap indexes: the rows of every distinct value.

Version 1 lists all values; version 2 stores them in order in blocks, so that a reader needs one block per value.

Source: format.md §11.3; Java `BitmapFileIndex`, `BitmapFileIndexMeta`, `BitmapFileIndexMetaV2`.
"""

from __future__ import annotations

import bisect
import itertools
import operator
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Union

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_bytes, bitmap_of, read_bitmap, whole_bitmap
from paimon_py.codec.columns import Bytes, Ints
from paimon_py.codec.file_index.base import Answer, Question, all_rows
from paimon_py.codec.file_index.distinct_keys import Collector, DistinctKeys, big_endian, stored_keys
from paimon_py.codec.file_index.keys import Key, KeyKind
from paimon_py.lazy import lazy_property
from paimon_py.spec.file_indexes import size_option

_BLOCK_BYTES = 16 << 10
_COUNT_BYTES = 4
_MANY_KEYS = 2_000
_Place = tuple[int, Union[int, None]]


class BitmapWriter:
    """Memory: as `Collector`, plus a bitmap for every distinct value at the end.

    A value that is larger than a block of version 2 gets its own block (Java fails to write it).
    """

    def __init__(self, kind: KeyKind, options: Mapping[str, str]) -> None:
        self._kind = kind
        self._version = int(options.get("version", "2"))
        self._block_bytes = size_option(options, "index-block-size", _BLOCK_BYTES)
        self._column = Collector(kind)

    def add(self, column: pa.Array) -> None:
        self._column.add(column)

    def finish(self) -> bytes | None:
        groups = self._column.groups()
        nulls = groups.nulls
        bodies = [bitmap_bytes(bitmap_of(nulls))] if len(nulls) > 1 else []
        offsets, lengths = _place(groups, bodies)
        head = struct.pack(">biib", self._version, len(groups.codes), groups.key_count, len(nulls) > 0)
        if len(nulls):
            head += struct.pack(">i", -1 - int(nulls[0]) if len(nulls) == 1 else 0)
        if self._version == 1:
            entries, _ = stored_keys(groups, self._kind, big_endian(offsets))
            return b"".join((head, entries.tobytes(), *bodies))
        if len(nulls):
            head += struct.pack(">i", len(bodies[0]) if len(nulls) > 1 else len(bitmap_bytes(bitmap_of(nulls))))
        blocks = self._blocks(*stored_keys(groups, self._kind, big_endian(offsets, lengths)))
        return b"".join((head, *blocks, *bodies))

    def _blocks(self, entries: Bytes, sizes: Ints) -> list[bytes]:
        """The directory of the blocks, then the blocks."""
        starts = [0]
        ends = np.cumsum(sizes)
        while starts[-1] < len(sizes):
            before = int(ends[starts[-1] - 1]) if starts[-1] else 0
            room = before + self._block_bytes - _COUNT_BYTES
            starts.append(max(int(np.searchsorted(ends, room, side="right")), starts[-1] + 1))
        index, blocks = [], []
        offset = 0
        for first, last in itertools.pairwise(starts):
            begin, end = int(ends[first - 1]) if first else 0, int(ends[last - 1])
            key = entries[begin : begin + int(sizes[first]) - 8].tobytes()
            index.append(key + struct.pack(">i", offset))
            blocks.append(struct.pack(">i", last - first) + entries[begin:end].tobytes())
            offset += len(blocks[-1])
        return [struct.pack(">i", len(blocks)), *index, struct.pack(">i", offset), *blocks]


def _place(groups: DistinctKeys, bodies: list[bytes]) -> tuple[Ints, Ints]:
    """The offset and length of every key's bitmap, which is appended to `bodies`; single rows are stored inline."""
    order, starts = groups.rows()
    counts = np.diff(starts)
    offsets = -1 - order[np.minimum(starts[:-1], max(len(order) - 1, 0))] if len(order) else starts[:-1]
    lengths = np.full(len(counts), -1, np.int64)
    at = sum(map(len, bodies))
    for number in np.flatnonzero(counts > 1).tolist():
        body = bitmap_bytes(bitmap_of(order[starts[number] : starts[number + 1]]))
        bodies.append(body)
        offsets[number], lengths[number] = at, len(body)
        at += len(body)
    return offsets, lengths


class _Entries(NamedTuple):
    """Keys in ascending order, with the offsets of their bitmaps, and the lengths if the version stores them."""

    keys: Sequence[Key]
    offsets: Sequence[int]
    lengths: Sequence[int | None]

    def find(self, key: Key) -> _Place | None:
        at = bisect.bisect_left(self.keys, key)
        return (self.offsets[at], self.lengths[at]) if at < len(self.keys) and self.keys[at] == key else None

    def check(self) -> _Entries:
        """Returns the entries; raises ValueError if their keys do not ascend."""
        if any(map(operator.ge, self.keys, self.keys[1:])):
            raise ValueError("its keys are not in order")
        return self


class BitmapReader:
    """See `IndexReader`. Blocks and bitmaps are decoded on demand."""

    def __init__(self, kind: KeyKind, data: bytes) -> None:
        self._kind = kind
        self._data = data
        self._version, self.row_count, self._keys, has_null = struct.unpack_from(">biib", data)
        if self._version not in (1, 2):
            raise ValueError(f"version {self._version} is not known")
        self._at = 10
        self._null_offset: int | None = None
        if has_null:
            self._null_offset = struct.unpack_from(">i", data, 10)[0]
            self._at += 4 if self._version == 1 else 8
        self._read: dict[int, _Entries] = {}

    def ask(self, question: Question) -> Answer:
        if question.test == "null":
            return self._nulls
        if question.test == "not null":
            return all_rows(self.row_count) - self._nulls
        if question.test not in ("==", "!="):
            return self._beyond(question.keys[0], below=question.test[0] == "<", same=question.test.endswith("="))
        found = BitMap()
        for key in question.keys:
            place = self._find(key)
            if place is not None:
                found |= self._bitmap(*place)
        return found if question.test == "==" else all_rows(self.row_count) - self._nulls - found

    @lazy_property
    def _nulls(self) -> BitMap:
        return BitMap() if self._null_offset is None else self._bitmap(self._null_offset)

    def _bitmap(self, offset: int, length: int | None = None) -> BitMap:
        if offset < 0:
            if length not in (None, -1):
                raise ValueError(f"a bitmap of {length} bytes at {offset} is impossible")
            return BitMap([-1 - offset])
        data = self._data[self._body + offset :]
        return read_bitmap(data)[0] if length is None else whole_bitmap(data[: max(length, 0)])

    def _find(self, key: Key) -> _Place | None:
        if self._version == 1:
            return self._all[0].find(key)
        at = bisect.bisect_right(self._blocks[0].keys, key) - 1
        return None if at < 0 else self._block(at).find(key)

    def _beyond(self, key: Key, *, below: bool, same: bool) -> Answer:
        """The rows of all keys above or below a key; None if there are so many that reading is cheaper."""
        found: list[_Place] = []
        for entries in self._side(key, below):
            at = bisect.bisect_right(entries.keys, key) if below is same else bisect.bisect_left(entries.keys, key)
            part = slice(at) if below else slice(at, None)
            found += zip(entries.offsets[part], entries.lengths[part], strict=True)
            if len(found) > _MANY_KEYS:
                return None
        return BitMap.union(BitMap(), *(self._bitmap(*place) for place in found))

    def _side(self, key: Key, below: bool) -> Iterator[_Entries]:
        """The keys above or below a key, and possibly some more."""
        if self._version == 1:
            yield self._all[0]
            return
        starts = self._blocks[0].keys
        at = bisect.bisect_right(starts, key) - 1
        yield from map(self._block, range(at + 1) if below else range(max(at, 0), len(starts)))

    def _block(self, number: int) -> _Entries:
        if number not in self._read:
            start = self._block_start + self._blocks[0].offsets[number]
            count = struct.unpack_from(">i", self._data, start)[0]
            entries = self._entries(start + 4, count, 8)[0].check()
            if not entries.keys or entries.keys[0] != self._blocks[0].keys[number]:
                raise ValueError("a block does not begin with its first key")
            self._read[number] = entries
        return self._read[number]

    @property
    def _body(self) -> int:
        """The offset of the bitmaps."""
        if self._version == 1:
            return self._all[1]
        return self._block_start + int(struct.unpack_from(">i", self._data, self._blocks[1])[0])

    @lazy_property
    def _all(self) -> tuple[_Entries, int]:
        """All keys of version 1, and the offset of the bitmaps."""
        entries, end = self._entries(self._at, self._keys, 4)
        order = sorted(range(len(entries.keys)), key=entries.keys.__getitem__)
        keys, offsets = [entries.keys[at] for at in order], [entries.offsets[at] for at in order]
        return _Entries(keys, offsets, entries.lengths).check(), end

    @lazy_property
    def _blocks(self) -> tuple[_Entries, int]:
        """The first key and the offset of every block, and the end of that list."""
        count = struct.unpack_from(">i", self._data, self._at)[0]
        entries, end = self._entries(self._at + 4, count, 4)
        return entries.check(), end

    @property
    def _block_start(self) -> int:
        return self._blocks[1] + 4

    def _entries(self, at: int, count: int, tail: int) -> tuple[_Entries, int]:
        """Stored keys, each followed by `tail` bytes that begin with a four-byte offset; and their end."""
        if not 0 <= count <= len(self._data):
            raise ValueError(f"{count} keys are impossible")
        if self._kind.is_text:
            return self._texts(at, count, tail)
        width = self._kind.width + tail
        raw = np.frombuffer(self._data, np.uint8, count * width, at).reshape(count, width)
        keys = self._kind.load(np.ascontiguousarray(raw[:, : self._kind.width]).reshape(-1))
        places = self._kind.width
        tails = np.frombuffer(np.ascontiguousarray(raw[:, places:]).reshape(-1), ">i4").reshape(count, tail // 4)
        lengths = tails[:, 1].tolist() if tail > 4 else [None] * count
        return _Entries(keys.tolist(), tails[:, 0].tolist(), lengths), at + count * width

    def _texts(self, at: int, count: int, tail: int) -> tuple[_Entries, int]:
        keys: list[Key] = []
        offsets: list[int] = []
        lengths: list[int | None] = []
        for _ in range(count):
            length = struct.unpack_from(">i", self._data, at)[0]
            if length < 0:
                raise ValueError(f"a key of {length} bytes is impossible")
            end = at + 4 + length
            keys.append(self._data[at + 4 : end])
            offsets.append(struct.unpack_from(">i", self._data, end)[0])
            lengths.append(struct.unpack_from(">i", self._data, end + 4)[0] if tail > 4 else None)
            at = end + tail
        return _Entries(keys, offsets, lengths), at
