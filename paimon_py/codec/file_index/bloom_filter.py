"""Bloom filters: whether a file may contain a value.

Source: format.md §11.2; Java `BloomFilterFileIndex`, `BloomFilter64`, `FastHash`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.columns import Bytes, Ints, binary_array, slices_of, validity_mask
from paimon_py.codec.file_index.base import Answer, Question
from paimon_py.codec.file_index.keys import Key, KeyKind
from paimon_py.codec.file_index.xxhash import xxhash64

_ITEMS = 1_000_000
_FPP = 0.1
_CHUNK_ROWS = 65_536


class BloomFilterWriter:
    """Memory: the filter with one byte per bit, 4.8 MB for a million items."""

    def __init__(self, kind: KeyKind, options: Mapping[str, str]) -> None:
        self._kind = kind
        items, fpp = int(options.get("items", _ITEMS)), float(options.get("fpp", _FPP))
        raw = int(-items * math.log(fpp) / (math.log(2) * math.log(2)))
        self._bits = raw + (8 - raw % 8)
        self._hashes = max(1, math.floor(self._bits / items * math.log(2) + 0.5))
        self._flags = np.zeros(self._bits, np.bool_)

    def add(self, column: pa.Array) -> None:
        if self._kind.is_text:
            column = column.drop_null() if column.null_count else column
            hashes = xxhash64(slices_of(column)).view(np.int64)
        else:
            hashes = _wang(self._kind.bits(self._kind.numbers(column)[validity_mask(column)]))
        for start in range(0, len(hashes), _CHUNK_ROWS):
            self._flags[_places(hashes[start : start + _CHUNK_ROWS], self._hashes, self._bits)] = True

    def finish(self) -> bytes | None:
        return struct.pack(">i", self._hashes) + np.packbits(self._flags, bitorder="little").tobytes()


class BloomFilterReader:
    """See `IndexReader`."""

    row_count = None

    def __init__(self, kind: KeyKind, data: bytes) -> None:
        self._kind = kind
        self._hashes = struct.unpack_from(">i", data)[0]
        self._filter: Bytes = np.frombuffer(data, np.uint8, offset=4)
        if self._hashes < 1 or self._hashes > len(data) * 8 or not len(self._filter):
            raise ValueError(f"{self._hashes} hash functions over {len(self._filter)} bytes")

    def ask(self, question: Question) -> Answer:
        if question.test != "==" or self._may_hold(question.keys):
            return None
        return BitMap()

    def _may_hold(self, keys: tuple[Key, ...]) -> bool:
        if self._kind.is_text:
            texts = binary_array([key for key in keys if isinstance(key, bytes)])
            hashes = xxhash64(slices_of(texts)).view(np.int64)
        else:
            hashes = _wang(self._kind.bits(np.array(keys, np.int64)))
        places = _places(hashes, self._hashes, len(self._filter) * 8)
        found = self._filter[places >> 3] >> (places & 7).astype(np.uint8) & 1
        return bool((found == 1).all(axis=0).any())


def _places(hashes: Ints, count: int, bits: int) -> Ints:
    """The bit positions of every hash, one row per hash function, in Java's 32-bit arithmetic."""
    low, high = hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
    steps = np.arange(1, count + 1, dtype=np.int32)[:, None]
    mixed = low + steps * high
    places: Ints = np.where(mixed < 0, ~mixed, mixed).astype(np.int64) % bits
    return places


def _wang(keys: Ints) -> Ints:
    """Thomas Wang's 64-bit hash with arithmetic shifts."""
    mixed = ~keys + (keys << 21)
    mixed = mixed ^ (mixed >> 24)
    mixed = mixed + (mixed << 3) + (mixed << 8)
    mixed = mixed ^ (mixed >> 14)
    mixed = mixed + (mixed << 2) + (mixed << 4)
    mixed = mixed ^ (mixed >> 28)
    hashed: Ints = mixed + (mixed << 31)
    return hashed
