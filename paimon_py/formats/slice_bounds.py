"""Minimum, maximum and null count of many slices of a column at once.

A small file costs little more than what is done once for it: the bounds of hundreds of files are found together.

Source: format.md §9; the result for each slice is that of `RunningBounds`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.arrays import Mask
from paimon_py.codec.columns import (
    AnyArray,
    Ints,
    Words,
    from_numpy,
    nulls_or_none,
    numpy_values,
    slices_of,
    word_view,
)

_SIGN = np.uint64(1 << 63)
_STEPS = 64
"""Texts that agree in so many words are compared one by one: long ones would take too many steps."""

WordsOf = Callable[[Ints, int], tuple[Words, bool]]
"""The n-th word of the values in some rows, which compare like their words, and whether it is the last one of all."""


class SliceBounds(msgspec.Struct, frozen=True):
    """The bounds of one column in each of many slices: one slot each.

    `lows`, `highs`: null where there are no values or the bound is unknown; None: unknown everywhere. `null_counts`
    None means unknown.
    """

    lows: pa.Array | None = None
    highs: pa.Array | None = None
    null_counts: Ints | None = None


def slice_bounds(array: pa.Array, cuts: Ints, *, ordered: bool) -> SliceBounds:
    """The bounds of the slices between consecutive `cuts`; no slice is empty.

    `ordered`: compute minimum and maximum, not only the number of nulls.
    Cost: 5-20 ns a row, for strings 20-100.
    """
    sizes, starts = np.diff(cuts), cuts[:-1]
    valid = nulls_or_none(array)
    if valid is None:
        counts = np.zeros(len(sizes), np.int64)
        return _ends(array, None, starts, None, counts) if ordered else SliceBounds(null_counts=counts)
    present = np.add.reduceat(valid, starts, dtype=np.int64)
    has_values = present > 0
    if not ordered or not has_values.any():
        return SliceBounds(null_counts=sizes - present)
    starts = (np.cumsum(present) - present)[has_values]
    return _ends(array, np.flatnonzero(valid), starts, has_values, sizes - present)


def _ends(array: pa.Array, rows: Ints | None, starts: Ints, has_values: Mask | None, nulls: Ints) -> SliceBounds:
    """The bounds of slices that begin at `starts` among `rows`; `has_values`: which of all slices they are."""
    words = _words_of(array)
    if words is None:
        lows, highs = _plain_ends(array, rows, starts)
    else:
        rows = np.arange(len(array), dtype=np.int64) if rows is None else rows
        lows, highs = (
            array.take(from_numpy(_extremes(array, words, rows, starts, reduce), pa.int64()))
            for reduce in (np.minimum, np.maximum)
        )
    if has_values is not None and len(lows) < len(has_values):
        places = from_numpy(np.cumsum(has_values) - 1, pa.int64(), has_values)
        lows, highs = lows.take(places), highs.take(places)
    return SliceBounds(lows, highs, nulls)


def _plain_ends(array: pa.Array, rows: Ints | None, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Bounds of numbers, times and booleans; floats without NaN, zeros widened to both signs."""
    values = numpy_values(array)
    values = values if rows is None else values[rows]
    lows: AnyArray = np.minimum.reduceat(values, starts)
    highs: AnyArray = np.maximum.reduceat(values, starts)
    if not pa.types.is_floating(array.type):
        return from_numpy(lows, array.type), from_numpy(highs, array.type)
    lows[lows == 0], highs[highs == 0] = -0.0, 0.0
    known = ~np.isnan(lows)
    return from_numpy(lows, array.type, known), from_numpy(highs, array.type, known)


def _words_of(array: pa.Array) -> WordsOf | None:
    """Values of more than one word; None for types whose numbers compare as they are."""
    if pa.types.is_decimal(array.type):
        return _decimal_words(array)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return _text_words(array)
    return None


def _decimal_words(array: pa.Array) -> WordsOf:
    pairs = numpy_values(array)

    def word(rows: Ints, step: int) -> tuple[Words, bool]:
        found: Words = pairs[rows, 1 - step]
        return (found, True) if step else (found ^ _SIGN, False)

    return word


def _text_words(array: pa.Array) -> WordsOf:
    """Eight bytes each, padded with zeros, and the length at last: of texts that agree until then the longer one only
    has zeros more."""
    texts = slices_of(array)
    view = word_view(texts.data)

    def word(rows: Ints, step: int) -> tuple[Words, bool]:
        lengths = texts.lengths[rows]
        left = lengths - 8 * step
        if not (left > 0).any():
            return lengths.astype(np.uint64), True
        words: Words = view[texts.starts[rows] + np.minimum(8 * step, lengths)].byteswap()
        drop = ((8 - np.clip(left, 0, 8)) * 8).astype(np.uint64)
        short = drop > 0
        if short.any():
            words = np.where(drop < 64, words >> (drop & np.uint64(63)) << (drop & np.uint64(63)), np.uint64(0))
        return words, False

    return word


def _extremes(array: pa.Array, words_of: WordsOf, rows: Ints, starts: Ints, reduce: np.ufunc) -> Ints:
    """The first row of each slice that has its least or greatest value."""
    step, is_last = 0, False
    while len(rows) > len(starts) and not is_last:
        words, is_last = words_of(rows, step)
        sizes = np.diff(np.append(starts, len(rows)))
        kept: Mask = words == np.repeat(reduce.reduceat(words, starts), sizes)
        counts = np.add.reduceat(kept, starts, dtype=np.int64)
        rows, starts = rows[kept], np.cumsum(counts) - counts
        step += 1
        if step == _STEPS and not is_last:
            return _one_by_one(array, rows, starts, reduce)
    first: Ints = rows[starts]
    return first


def _one_by_one(array: pa.Array, rows: Ints, starts: Ints, reduce: np.ufunc) -> Ints:
    """See `_extremes`: value by value."""
    choose = min if reduce is np.minimum else max
    binary = array.cast(pa.binary()) if pa.types.is_string(array.type) else array
    return np.array([
        choose(rows_of.tolist(), key=lambda row: binary[row].as_py()) for rows_of in np.split(rows, starts[1:])
    ], np.int64)  # fmt: skip
