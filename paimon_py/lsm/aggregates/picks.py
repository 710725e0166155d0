"""Functions that pick one of the versions: the last or the first, with or without nulls.

The accumulator after a row is the value of the last row that *wrote* it, so each function is a mask of the rows that
write, and one running maximum per group.

Source: format.md §12.5; Java `FieldLastValueAgg`, `FieldLastNonNullValueAgg`, `FieldFirstValueAgg`,
`FieldFirstNonNullValueAgg`, `FieldPrimaryKeyAgg`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, validity_mask
from paimon_py.lsm.aggregates.base import ADD, ADD_REVERSED, CLEAR, RETRACT, SET, Fold


def last_value(_values: pa.Array, fold: Fold, _index: Ints | None = None) -> Ints:
    """The last value, nulls included; a RETRACT makes it null, an older value changes nothing."""
    if fold.only_adds:
        return fold.ends - 1
    gone = (fold.actions == RETRACT) | (fold.actions == CLEAR)
    return _unless(gone, _last((fold.actions == ADD) | (fold.actions == SET) | gone, fold))


def primary_key(_values: pa.Array, fold: Fold, _index: Ints | None = None) -> Ints:
    """The last value, including that of a RETRACT; an older value changes nothing."""
    if fold.only_adds:
        return fold.ends - 1
    gone = fold.actions == CLEAR
    wrote = (fold.actions == ADD) | (fold.actions == SET) | (fold.actions == RETRACT) | gone
    return _unless(gone, _last(wrote, fold))


def last_non_null_value(values: pa.Array, fold: Fold, index: Ints | None = None) -> Ints:
    """The last non-null value.

    A RETRACT of a value sets it to null, a RETRACT of a null changes nothing; an older value counts if there is none.
    """
    if fold.only_adds and not values.null_count:
        return fold.ends - 1
    valid = _present(values, index)
    if fold.only_adds:
        return _last(valid, fold)
    actions = fold.actions
    firm = (valid & ((actions == ADD) | (actions == RETRACT))) | (actions == SET) | (actions == CLEAR)
    written = _last(firm, fold)
    found = _unless(~valid | (actions == RETRACT) | (actions == CLEAR), written)
    older = valid & (actions == ADD_REVERSED)
    if not older.any():
        return found
    filling = _first(older & (np.arange(len(older)) > written[fold.groups]), fold)
    return np.where(found >= 0, found, filling)


def first_value(_values: pa.Array, fold: Fold, _index: Ints | None = None) -> Ints:
    """The first value, nulls included.

    Older values replace it, except that the very first row, if it is an older one, changes nothing: Java then takes the
    accumulator for the newer value.
    """
    if fold.only_adds:
        return fold.starts
    actions = fold.actions
    joins = (actions == ADD) | (actions == ADD_REVERSED)
    first = _first(joins, fold)
    place = np.arange(len(actions))
    since = first[fold.groups]
    wrote = ((actions == ADD) & (place == since)) | ((actions == ADD_REVERSED) & (place > since))
    gone = actions == CLEAR
    return _unless(gone, _last(wrote | (actions == SET) | gone, fold))


def first_non_null_value(values: pa.Array, fold: Fold, index: Ints | None = None) -> Ints:
    """The first non-null value.

    As in Java, an older value replaces it, null or not, once a value was seen; the second value added as an older one
    only counts as seen.
    """
    valid = _present(values, index)
    if fold.only_adds:
        return _first(valid, fold)
    actions = fold.actions
    place = np.arange(len(actions))
    gone = actions == CLEAR
    fresh = gone | (actions == SET)
    older = actions == ADD_REVERSED
    gives = valid & (older | (actions == SET))
    settles = ((actions == ADD) & valid) | (older & _holds_before(gives, fresh, fold))
    since = _first(settles, fold)[fold.groups]
    unseen = (since < 0) | (place < since)
    wrote = ((actions == ADD) & (place == since)) | (older & (unseen | (place > since)))
    return _unless(gone | ~valid, _last(wrote | fresh, fold))


def _present(values: pa.Array, index: Ints | None) -> Mask:
    present = validity_mask(values)
    return present if index is None else present[index]


def _holds_before(gives: Mask, fresh: Mask, fold: Fold) -> Mask:
    """A mask of the rows before which, since its group's latest fresh start, a row provided a value."""
    place = np.arange(len(gives))
    begin = np.maximum.accumulate(np.where(fresh, place, np.repeat(fold.starts, fold.ends - fold.starts)))
    given = np.zeros(len(gives) + 1, np.int64)
    np.cumsum(gives, out=given[1:])
    before: Mask = given[place] > given[begin]
    return before & ~fresh


def _last(marked: Mask, fold: Fold) -> Ints:
    """The last marked row of every group; -1 if there is none."""
    found: Ints = np.maximum.reduceat(np.where(marked, np.arange(len(marked)), -1), fold.starts)
    return found


def _first(marked: Mask, fold: Fold) -> Ints:
    """The first marked row of every group; -1 if there is none."""
    found: Ints = np.minimum.reduceat(np.where(marked, np.arange(len(marked)), len(marked)), fold.starts)
    found[found == len(marked)] = -1
    return found


def _unless(gone: Mask, rows: Ints) -> Ints:
    """The rows, with -1 in place of those that `gone` marks."""
    return np.where((rows >= 0) & ~gone[rows], rows, -1)
