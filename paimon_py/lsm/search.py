"""Finds many keys at once in sorted rows, by binary search over columns.

Source: format.md §8.2 (the key order); the same order as `lsm.order`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import AnyArray, Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.lsm.sort_encoding import float_words

Compare = Callable[[Ints, Ints], tuple[Mask, Mask]]
"""Compares rows and keys pairwise; returns a mask of the smaller rows and a mask of the equal ones."""


class Found(NamedTuple):
    """`places[i]`: the number of rows smaller than key i. `equal[i]`: whether the row at this position is the key."""

    places: Ints
    equal: Mask


def search(rows: Sequence[pa.Array], keys: Sequence[pa.Array]) -> Found:
    """Find keys in rows that ascend in the format's order and contain each key once.

    Shapes: columns of the same types on both sides; keys in any order. NULL is smaller than all values.
    Cost: 0.1 µs a key for one column of numbers, about 1 µs a key and column for others; rows are not copied, except
        for floats.
    """
    count, wanted = len(rows[0]), len(keys[0])
    rows, keys = _without_nulls(rows, keys)
    every = np.arange(wanted)
    if not count or not wanted:
        return Found(np.zeros(wanted, np.int64), np.zeros(wanted, np.bool_))
    lead, asked = _numbers(rows[0]), _numbers(keys[0])
    low, high = np.zeros(wanted, np.int64), np.full(wanted, count, np.int64)
    if lead is not None and asked is not None:
        low = np.searchsorted(lead, asked).astype(np.int64)
        if len(rows) == 1:
            return Found(low, (low < count) & (lead[np.minimum(low, count - 1)] == asked))
        high = np.searchsorted(lead, asked, side="right").astype(np.int64)
    compare = _join([_comparison(column, key) for column, key in zip(rows, keys, strict=True)])
    open_keys = every[low < high]
    while len(open_keys):
        middle = (low[open_keys] + high[open_keys]) >> 1
        smaller, _ = compare(middle, open_keys)
        low[open_keys[smaller]] = middle[smaller] + 1
        high[open_keys[~smaller]] = middle[~smaller]
        open_keys = open_keys[low[open_keys] < high[open_keys]]
    equal = low < count
    equal[equal] = compare(low[equal], every[equal])[1]
    return Found(low, equal)


def equal_rows(rows: Sequence[pa.Array], keys: Sequence[pa.Array]) -> Mask:
    """A mask of the rows that equal the key at the same position, as `search` compares them.

    Shapes: columns of the same types and lengths on both sides. NULL equals NULL.
    """
    rows, keys = _without_nulls(rows, keys)
    equal = np.ones(len(keys[0]), np.bool_)
    for column, key in zip(rows, keys, strict=True):
        left, right = _numbers(column), _numbers(key)
        equal &= left == right if left is not None and right is not None else numpy_values(pc.equal(column, key))
    return equal


def repeats_rows(rows: Sequence[pa.Array]) -> bool:
    """Whether any row equals the previous one."""
    return bool(equal_rows([column[1:] for column in rows], [column[:-1] for column in rows]).any())


def _without_nulls(
    rows: Sequence[pa.Array], keys: Sequence[pa.Array]
) -> tuple[Sequence[pa.Array], Sequence[pa.Array]]:
    """The columns of both sides without nulls: a column with NULL is preceded by one that marks its values."""
    if not any(column.null_count for column in (*rows, *keys)):
        return rows, keys
    sides: tuple[list[pa.Array], list[pa.Array]] = ([], [])
    for pair in zip(rows, keys, strict=True):
        nulls = any(column.null_count for column in pair)
        known = next((one[0] for column in pair if len(one := column.drop_null())), None) if nulls else None
        for side, column in zip(sides, pair, strict=True):
            if nulls:
                side.append(from_numpy(validity_mask(column).astype(np.int8), pa.int8()))
            if not nulls or known is not None:
                side.append(column.fill_null(known) if nulls else column)
    return sides


def _join(columns: Sequence[Compare]) -> Compare:
    """The comparison of whole keys."""
    if len(columns) == 1:
        return columns[0]

    def compare(rows: Ints, keys: Ints) -> tuple[Mask, Mask]:
        smaller, equal = columns[0](rows, keys)
        for column in columns[1:]:
            less, same = column(rows, keys)
            smaller = smaller | (equal & less)
            equal = equal & same
        return smaller, equal

    return compare


def _comparison(column: pa.Array, asked: pa.Array) -> Compare:
    values, others = _numbers(column), _numbers(asked)
    if values is not None and others is not None:
        left, right = values, others

        def by_number(rows: Ints, keys: Ints) -> tuple[Mask, Mask]:
            return left[rows] < right[keys], left[rows] == right[keys]

        return by_number

    def by_value(rows: Ints, keys: Ints) -> tuple[Mask, Mask]:
        first, second = column.take(from_numpy(rows, pa.int64())), asked.take(from_numpy(keys, pa.int64()))
        return numpy_values(pc.less(first, second)), numpy_values(pc.equal(first, second))

    return by_value


def _numbers(column: pa.Array) -> AnyArray | None:
    """Numbers in the order of the values; None for strings, bytes and decimals."""
    kind = column.type
    if pa.types.is_floating(kind):
        return float_words(column)
    if pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        return numpy_values(column)
    return None
