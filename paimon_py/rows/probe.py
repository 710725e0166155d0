"""Finding rows with equal keys: rows of a source that stays, and batches of a table that pass by.

Two keys are equal if all their columns are, and a NULL equals nothing. Floats are equal as in filters: −0.0 is not 0.0,
and NaN is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, nulls_or_none, numpy_values, validity_mask

_TABLE_MAX = 1 << 24


class Probe:
    """The distinct keys of a source, numbered from 0 on.

    Cost: one sort of the keys; 16 bytes a row and 24 for every distinct key.

    Attributes:
        groups: the key of every source row; −1 if it holds a NULL.
        firsts: the first source row of every key.
        counts: how many source rows have a key.
    """

    def __init__(self, keys: Sequence[pa.Array]) -> None:
        """`keys`: the key columns of all rows."""
        self._columns: list[_Codes] = []
        self._denses: list[Ints] = []
        codes: Ints | None = None
        for column in keys:
            known = _Codes(column)
            self._columns.append(known)
            codes = _combined(codes, known.of(column), known.count)
            self._denses.append(np.unique(codes[codes >= 0]))
            codes = _found(self._denses[-1], codes)
        assert codes is not None
        self.groups: Ints = codes
        self.counts: Ints = np.bincount(codes[codes >= 0], minlength=len(self._denses[-1]))
        self.firsts: Ints = np.empty(len(self.counts), np.int64)
        rows = np.flatnonzero(codes >= 0)[::-1]
        self.firsts[codes[rows]] = rows

    def find(self, keys: Sequence[pa.Array]) -> Ints:
        """The number of every row's key among those of the source; −1 if it has none like it."""
        codes: Ints | None = None
        for column, known, dense in zip(keys, self._columns, self._denses, strict=True):
            codes = _found(dense, _combined(codes, known.of(column), known.count))
        assert codes is not None
        return codes


class _Codes:
    """The values of one column as numbers from 0 on; −1 is NULL or a value that the column has not."""

    def __init__(self, column: pa.Array) -> None:
        self._integers: Ints | None = None
        self._table: Ints | None = None
        self._values = column
        words = _words(column)
        if words is None:
            self._values = column.drop_null().unique()
            self.count = len(self._values)
            return
        self._integers = known = np.unique(words[validity_mask(column)])
        self.count = len(known)
        if self.count and int(known[-1]) - int(known[0]) < min(_TABLE_MAX, 16 * self.count + 1024):
            self._table = np.full(int(known[-1]) - int(known[0]) + 1, -1, np.int64)
            self._table[known - known[0]] = np.arange(self.count)

    def of(self, column: pa.Array) -> Ints:
        """The number of every row's value."""
        if self._integers is None:
            found = pc.index_in(column, value_set=self._values, skip_nulls=True)
            return numpy_values(pc.fill_null(found, -1)).astype(np.int64)
        words = _words(column)
        assert words is not None
        codes = self._by_table(words) if self._table is not None else _found(self._integers, words)
        nulls = nulls_or_none(column)
        if nulls is not None:
            codes[~nulls] = -1
        return codes

    def _by_table(self, words: Ints) -> Ints:
        assert self._table is not None and self._integers is not None
        low, high = self._integers[0], self._integers[-1]
        inside = (words >= low) & (words <= high)
        codes: Ints = self._table[np.where(inside, words, low) - low]
        codes[~inside] = -1
        return codes


def _combined(codes: Ints | None, column: Ints, count: int) -> Ints:
    if codes is None:
        return column
    combined: Ints = np.where((codes < 0) | (column < 0), -1, codes * max(count, 1) + column)
    return combined


def _found(known: Ints, values: Ints) -> Ints:
    """Where each value is among sorted distinct ones; −1 if it is not."""
    if not len(known):
        return np.full(len(values), -1, np.int64)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[places] == values, places, -1)


def _words(column: pa.Array) -> Ints | None:
    """The values of a column of numbers, dates or times as 64-bit integers; None for other types."""
    kind = column.type
    if not (pa.types.is_temporal(kind) or pa.types.is_signed_integer(kind)):
        return None
    return numpy_values(column).astype(np.int64)
