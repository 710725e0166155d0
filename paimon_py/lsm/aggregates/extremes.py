"""The smallest and the largest version: min, max, bool_and, bool_or.

A column is looked at eight bytes at a time, most significant first: of the versions that are still equal, those
with the extreme word of their group stay, until one is left or the bytes end.

Source: format.md §12.5; Java `FieldMinAgg`, `FieldMaxAgg`, `FieldBoolAndAgg`, `FieldBoolOrAgg`,
`InternalRowUtils.compare` (−0.0 below 0.0, NaN above all, texts by their bytes).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import validity_mask
from paimon_py.lsm.aggregates.base import Fold, Steps
from paimon_py.lsm.words import Fixed, Ints, Text, Words, parts_of, words_at


def minimum(values: pa.Array, fold: Fold) -> Ints:
    """The row of the smallest value that is not null."""
    return _extreme(values, fold, np.minimum)


def maximum(values: pa.Array, fold: Fold) -> Ints:
    """The row of the largest value that is not null."""
    return _extreme(values, fold, np.maximum)


def _extreme(values: pa.Array, fold: Fold, better: np.ufunc) -> Ints:
    steps = fold.steps
    if values.null_count:
        steps = steps.only(steps.of(validity_mask(values)))
    out = np.full(len(fold), -1, np.int64)
    filled = np.flatnonzero(steps.ends > steps.starts)
    if not len(filled):
        return out
    rows = np.arange(steps.total) if steps.rows is None else steps.rows
    left = Steps(rows, None, steps.starts[filled], steps.ends[filled])
    for part in parts_of(values):
        left = _best(left, part.values, better) if isinstance(part, Fixed) else _best_text(left, part, better)
    assert left.rows is not None
    out[filled] = left.rows[left.starts]
    return out


def _best(left: Steps, words: Words, better: np.ufunc) -> Steps:
    """Those whose word is the best one of their group."""
    if left.total == len(left.starts):
        return left
    own = left.of(words)
    best = better.reduceat(own, left.starts)
    return left.only(own == np.repeat(best, left.ends - left.starts))


def _best_text(left: Steps, text: Text, better: np.ufunc) -> Steps:
    skip = text.cut
    while left.total > len(left.starts):
        starts, lengths = left.of(text.starts), left.of(text.lengths)
        if skip >= int(lengths.max()):
            return _best(left, text.lengths.astype(np.uint64), better)
        own = words_at(text, starts, lengths, skip)
        best = better.reduceat(own, left.starts)
        left = left.only(own == np.repeat(best, left.ends - left.starts))
        skip += 8
    return left
