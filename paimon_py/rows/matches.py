"""Joins rows on equal keys: rows of a source in memory with batches of a table.

Two keys are equal if all their columns are equal; NULL equals nothing. Floats compare as in filters: −0.0 differs from
0.0, and NaN equals NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import (
    Int32s,
    Ints,
    Mask,
    distinct_integers,
    nulls_or_none,
    numpy_values,
    one_nan,
    validity_mask,
)

_SPREAD = np.uint64(0x9E37_79B9_7F4A_7C15)
"""A multiplier that spreads numbers over 64 bits."""


class Probe:
    """The distinct keys of a source, numbered from 0.

    Cost: one sort of the keys; 16 bytes per row and 24 per distinct key.

    Attributes:
        groups: the key number of every source row; −1 if the key contains NULL.
        firsts: the first source row of every key.
        counts: the number of source rows per key.
    """

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        """`keys`: the key columns of all rows."""
        self._columns: list[_Codes] = []
        self._denses: list[_Sorted] = []
        codes: Ints | None = None
        for column in keys:
            known = _Codes(column)
            self._columns.append(known)
            codes = _combine(codes, known.of(column), known.count)
            dense = distinct_integers(codes[codes >= 0])
            self._denses.append(_Sorted(dense))
            codes = self._denses[-1].find(codes)
        assert codes is not None
        self.groups: Ints = codes
        self.counts: Ints = np.bincount(codes[codes >= 0], minlength=len(self._denses[-1].values))
        self.firsts: Ints = np.empty(len(self.counts), np.int64)
        rows = np.flatnonzero(codes >= 0)[::-1]
        self.firsts[codes[rows]] = rows

    def find(self, keys: Sequence[pa.Array]) -> Ints:
        """The number of every row's key; −1 if the source does not have it."""
        codes: Ints | None = None
        for column, known, dense in zip(keys, self._columns, self._denses, strict=True):
            codes = dense.find(_combine(codes, known.of(column), known.count))
        assert codes is not None
        return codes


class _Codes:
    """The values of one column as numbers from 0; −1 is NULL or a value that the column does not have."""

    def __init__(self, column: pa.Array) -> None:
        words = _words(column)
        self._integers = None if words is None else _Sorted(distinct_integers(words[validity_mask(column)]))
        self._values = one_nan(column).drop_null().unique()
        self.count = len(self._values)

    def of(self, column: pa.Array) -> Ints:
        """The number of every row's value."""
        if self._integers is None:
            found = pc.index_in(one_nan(column), value_set=self._values, skip_nulls=True)
            return numpy_values(pc.fill_null(found, -1)).astype(np.int64)
        words = _words(column)
        assert words is not None
        codes = self._integers.find(words)
        valid = nulls_or_none(column)
        return codes if valid is None else np.where(valid, codes, -1)


class _Sorted:
    """Distinct sorted integers, to look up the positions of others.

    Cost: 2 ns per lookup if the integers are dense or few, else 100 ns.
    """

    def __init__(self, values: Ints) -> None:
        self.values = values
        self._table: Int32s | None = None
        self._marks: Mask | None = None
        if not len(values):
            return
        low, high = int(values[0]), int(values[-1])
        self._is_all = (low, high) == (0, len(values) - 1)
        if high - low < 16 * len(values) + 1024:
            self._table = np.full(high - low + 1, -1, np.int32)
            self._table[values - low] = np.arange(len(values))
        else:
            self._shift = np.uint64(64 - max(16, min(24, (16 * len(values)).bit_length())))
            self._marks = np.zeros(1 << (64 - int(self._shift)), np.bool_)
            self._marks[self._hashes(values)] = True

    def find(self, wanted: Ints) -> Ints:
        """The position of each number; −1 if it does not exist."""
        found = np.full(len(wanted), -1, np.int64)
        if not len(self.values):
            return found
        if self._table is not None:
            low, high = self.values[0], self.values[-1]
            rows = np.flatnonzero((wanted >= low) & (wanted <= high))
            if self._is_all:
                found[rows] = wanted[rows]
            else:
                found[rows] = self._table[wanted[rows] - low]
            return found
        assert self._marks is not None
        rows = np.flatnonzero(self._marks[self._hashes(wanted)])
        likely = wanted[rows]
        places = np.minimum(np.searchsorted(self.values, likely), len(self.values) - 1)
        found[rows] = np.where(self.values[places] == likely, places, -1)
        return found

    def _hashes(self, words: Ints) -> npt.NDArray[np.uint64]:
        hashes: npt.NDArray[np.uint64] = (words.view(np.uint64) * _SPREAD) >> self._shift
        return hashes


def _combine(codes: Ints | None, column: Ints, count: int) -> Ints:
    if codes is None:
        return column
    combined: Ints = np.where((codes < 0) | (column < 0), -1, codes * max(count, 1) + column)
    return combined


def _words(column: pa.Array) -> Ints | None:
    """The values of a column of numbers, dates or times as 64-bit integers; None for other types."""
    kind = column.type
    if not (pa.types.is_temporal(kind) or pa.types.is_signed_integer(kind)):
        return None
    return numpy_values(column).astype(np.int64)
