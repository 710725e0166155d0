"""The smallest and the largest version: min, max, bool_and, bool_or.

Numbers are compared directly. Strings and long decimals are compared by eight bytes at a time, most significant first:
of the versions that are still equal, those with the extreme word of their group are kept, until one is left or
the bytes end.

Source: format.md §12.5; Java `FieldMinAgg`, `FieldMaxAgg`, `FieldBoolAndAgg`, `FieldBoolOrAgg`,
`InternalRowUtils.compare` (−0.0 below 0.0, NaN above all, texts by their bytes).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import AnyArray, Ints, Words, numpy_values, validity_mask
from paimon_py.lsm.aggregates.base import Fold, Steps, take_or_null
from paimon_py.lsm.aggregates.numbers import present, spread_results
from paimon_py.lsm.sort_encoding import Fixed, Text, parts_of, words_at
from paimon_py.spec.aggregate_rules import Aggregate


def minimum(_made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The smallest non-null value of numbers, times and booleans."""
    return _of_numbers(values, fold, largest=False)


def maximum(_made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The largest non-null value of numbers, times and booleans."""
    return _of_numbers(values, fold, largest=True)


def smallest_row(values: pa.Array, fold: Fold, index: Ints | None = None) -> Ints:
    """The row of the smallest non-null value."""
    return _extreme(values, fold, index, np.minimum)


def largest_row(values: pa.Array, fold: Fold, index: Ints | None = None) -> Ints:
    """The row of the largest non-null value."""
    return _extreme(values, fold, index, np.maximum)


def _of_numbers(values: pa.Array, fold: Fold, *, largest: bool) -> pa.Array:
    """Cost: 10 ns a row."""
    own = numpy_values(values)
    floating = own.dtype.kind == "f"
    if floating and bool((np.signbit(own) & (own == 0)).any()):
        return take_or_null(values, _extreme(values, fold, None, np.maximum if largest else np.minimum))
    part = present(own, values, fold, _worst(own, largest=largest))
    better = np.maximum if largest else np.fmin if floating else np.minimum
    best = better.reduceat(part.values, part.starts) if len(part.starts) else part.values[:0]
    return spread_results(best, part, len(fold), values.type)


def _worst(values: AnyArray, *, largest: bool) -> object:
    """A value that never wins against another value."""
    if values.dtype.kind == "f":
        return -np.inf if largest else np.nan
    if values.dtype.kind == "b":
        return not largest
    limits = np.iinfo(values.dtype)
    return limits.min if largest else limits.max


def _extreme(values: pa.Array, fold: Fold, index: Ints | None, better: np.ufunc) -> Ints:
    steps = fold.steps
    if values.null_count:
        valid = validity_mask(values)
        steps = steps.only(steps.of(valid if index is None else valid[index]))
    out = np.full(len(fold), -1, np.int64)
    filled = np.flatnonzero(steps.ends > steps.starts)
    if not len(filled):
        return out
    rows = np.arange(steps.total) if steps.rows is None else steps.rows
    left = Steps(rows, None, steps.starts[filled], steps.ends[filled])
    parts = parts_of(values)
    for part in parts[1:] if values.null_count else parts:
        left = _best(left, part, index, better)
    assert left.rows is not None
    out[filled] = left.rows[left.starts]
    return out


def _best(left: Steps, part: Fixed | Text, index: Ints | None, better: np.ufunc) -> Steps:
    """The steps with the best part of their group."""
    if isinstance(part, Fixed):
        return _keep_best(left, part.values[_places(left, index)], better)
    skip = part.cut
    while left.total > len(left.starts):
        places = _places(left, index)
        lengths = part.lengths[places]
        if skip >= int(lengths.max()):
            return _keep_best(left, lengths.astype(np.uint64), better)
        left = _keep_best(left, words_at(part, part.starts[places], lengths, skip), better)
        skip += 8
    return left


def _places(left: Steps, index: Ints | None) -> Ints:
    """The places of the steps' values."""
    assert left.rows is not None
    return left.rows if index is None else index[left.rows]


def _keep_best(left: Steps, words: Words, better: np.ufunc) -> Steps:
    best = better.reduceat(words, left.starts)
    return left.only(words == np.repeat(best, left.ends - left.starts))
