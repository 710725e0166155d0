"""Estimates the number of distinct values in a column, in a fixed amount of memory.

The smallest 16,384 hashes of all values are kept. If there are fewer, their number is exact; otherwise it is estimated
from the density of the hashes, with a standard error of 0.8 %.

Source: Bar-Yossef et al., "Counting Distinct Elements in a Data Stream" (2002); theta sketches of Apache DataSketches.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Words, numpy_values, slices_of
from paimon_py.codec.file_index.xxhash import xxhash64

_KEPT = 1 << 14
_HASHES = 2.0**64


class DistinctCount:
    """Counts the distinct values of arrays of one type, ignoring NULL."""

    def __init__(self) -> None:
        self._hashes: Words = np.zeros(0, np.uint64)
        self._limit: np.uint64 | None = None

    def state(self) -> tuple[bytes, int | None]:
        """The complete state: the hashes, 8 bytes each, and the limit below which all are kept."""
        return self._hashes.astype("<u8").tobytes(), None if self._limit is None else int(self._limit)

    @classmethod
    def of(cls, hashes: bytes, limit: int | None) -> DistinctCount:
        """The inverse of `state`."""
        made = cls()
        made._hashes = np.frombuffer(hashes, "<u8").astype(np.uint64)
        made._limit = None if limit is None else np.uint64(limit)
        return made

    def add(self, array: pa.Array) -> None:
        """Add the values of an array. Cost: a sort of the small hashes."""
        hashes = _hashes(array.drop_null() if array.null_count else array)
        self._take(hashes)

    def join(self, other: DistinctCount) -> None:
        """Add the values that another counter has seen."""
        if other._limit is not None and (self._limit is None or other._limit < self._limit):
            self._limit = other._limit
            self._hashes = self._hashes[self._hashes < other._limit]
        self._take(other._hashes)

    def _take(self, hashes: Words) -> None:
        if self._limit is not None:
            hashes = hashes[hashes < self._limit]
        if not len(hashes):
            return
        self._hashes = np.unique(np.concatenate([self._hashes, hashes]))
        if len(self._hashes) > _KEPT:
            self._limit = self._hashes[_KEPT]
            self._hashes = self._hashes[:_KEPT]

    def result(self) -> int:
        """The number of distinct values; exact up to 16,384, except for 64-bit hash collisions."""
        if self._limit is None:
            return len(self._hashes)
        return round(len(self._hashes) / (float(self._limit) / _HASHES))


def _hashes(array: pa.Array) -> Words:
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return xxhash64(slices_of(array))
    values = numpy_values(array)
    if pa.types.is_floating(kind):
        floats = values.astype(np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        return _mix(floats.view(np.uint64))
    if pa.types.is_decimal(kind):
        return _mix(values[:, 0] + _mix(values[:, 1]))
    return _mix(values.astype(np.int64).view(np.uint64))


def _mix(words: Words) -> Words:
    """SplitMix64 of every word."""
    mixed = words + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Words = mixed ^ (mixed >> np.uint64(31))
    return found
