"""The input of every aggregate function: the versions of one column in groups, and an action for each.

Source: format.md §12.4, §12.5; Java `FieldAggregator`, `AggregateMergeFunction`, `PartialUpdateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, from_numpy
from paimon_py.lazy import lazy_property

Actions: TypeAlias = npt.NDArray[np.int8]
_Item = TypeVar("_Item", bound=np.generic)

SKIP = 0
"""The row is ignored."""
ADD = 1
"""The value is added to the accumulator: Java's `agg`."""
ADD_REVERSED = 2
"""The value is added as one older than the accumulator: Java's `aggReversed`."""
RETRACT = 3
"""The value is removed from the accumulator: Java's `retract`."""
SET = 4
"""The accumulator is replaced by the value, unchanged."""
CLEAR = 5
"""The accumulator is set to null."""


class Steps(NamedTuple):
    """The rows of a fold that affect the result, in order: no skipped row, and none before the last SET or CLEAR.

    `rows`: positions in the values; None for all of them. `actions`: of these rows; None if all are ADD; a SET can
    only be the first of its group, a CLEAR is omitted. `starts`, `ends`: the range of each group in these rows, one
    after the other without gaps; a group can be empty.
    """

    rows: Ints | None
    actions: Actions | None
    starts: Ints
    ends: Ints

    @property
    def total(self) -> int:
        """The number of rows."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def only(self, wanted: Mask) -> Steps:
        """The steps for which `wanted`, one flag per step, is true."""
        if wanted.all():
            return self
        before = np.zeros(len(wanted) + 1, np.int64)
        np.cumsum(wanted, out=before[1:])
        kept = np.flatnonzero(wanted)
        rows = kept if self.rows is None else self.rows[kept]
        actions = None if self.actions is None else self.actions[kept]
        return Steps(rows, actions, before[self.starts], before[self.ends])

    def of(self, per_row: npt.NDArray[_Item]) -> npt.NDArray[_Item]:
        """The items of the steps, from an array with one item per row of the fold."""
        return per_row if self.rows is None else per_row[self.rows]

    def groups(self) -> Ints:
        """The number of the group of every step."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)


class Waves(NamedTuple):
    """Groups by descending length, so that the groups that have a k-th row are the first ones.

    `order`: numbers of the groups. `rows`: the first rows of all groups, the second rows of those that have one, and so
    on, up to the length of the longest group or `WAVES`. `tails`: rows of longer groups beyond that: place in `order`,
    start, end.
    """

    order: Ints
    rows: tuple[Ints, ...]
    tails: tuple[tuple[int, int, int], ...]


WAVES = 64


def waves_of(starts: Ints, ends: Ints, most: int | None = WAVES) -> Waves:
    """The waves of non-empty groups."""
    lengths = ends - starts
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[order], lengths[order]
    longest = int(lengths[0]) if len(lengths) else 0
    count = longest if most is None else min(longest, most)
    members = np.searchsorted(-lengths, -np.arange(count), side="left")
    rows = tuple(starts[:member] + wave for wave, member in enumerate(members.tolist()))
    long = int(np.searchsorted(-lengths, -count, side="left"))
    firsts, last = (starts[:long] + count).tolist(), (starts[:long] + lengths[:long]).tolist()
    return Waves(order, rows, tuple(zip(range(long), firsts, last, strict=True)))


class Fold:
    """The steps that turn the values of a column, ordered by group and then oldest first, into one value per group.

    `starts`, `ends`: the range of each group's rows; groups follow each other without gaps and none is empty.
    `actions`: one code per row. Every group's accumulator starts as null. SET and CLEAR change only the accumulator:
    a function that remembers that it has seen a value (first_value, first_non_null_value) continues to remember it.
    One fold serves all columns with the same actions, so that derived values are computed once.
    """

    def __init__(self, starts: Ints, ends: Ints, actions: Actions) -> None:
        self.starts = starts
        self.ends = ends
        self.actions = actions

    def __len__(self) -> int:
        return len(self.starts)

    @lazy_property
    def groups(self) -> Ints:
        """The number of the group of every row."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    @lazy_property
    def only_adds(self) -> bool:
        """Whether every row is an ADD."""
        return bool((self.actions == ADD).all())

    @lazy_property
    def has_retracts(self) -> bool:
        """Whether any row is a RETRACT."""
        return not self.only_adds and bool((self.actions == RETRACT).any())

    @lazy_property
    def without_retracts(self) -> Fold:
        """The fold with every RETRACT skipped."""
        if not self.has_retracts:
            return self
        return Fold(self.starts, self.ends, np.where(self.actions == RETRACT, SKIP, self.actions).astype(np.int8))

    @lazy_property
    def steps(self) -> Steps:
        """The rows that affect the result."""
        if self.only_adds:
            return Steps(None, None, self.starts, self.ends)
        fresh = (self.actions == SET) | (self.actions == CLEAR)
        first = np.maximum.reduceat(np.where(fresh, np.arange(len(fresh)), -1), self.starts)
        rows = np.arange(len(fresh))
        wanted = (self.actions != SKIP) & (self.actions != CLEAR) & (rows >= first[self.groups])
        steps = Steps(None, self.actions, self.starts, self.ends).only(wanted)
        if steps.actions is not None and bool((steps.actions == ADD).all()):
            return steps._replace(actions=None)
        return steps


    @lazy_property
    def filled_groups(self) -> Ints:
        """The groups that have steps."""
        return np.flatnonzero(self.steps.ends > self.steps.starts)

    @lazy_property
    def retracts(self) -> Mask | None:
        """A mask of the steps that are RETRACT; None if none is."""
        if self.steps.actions is None or not self.has_retracts:
            return None
        found: Mask = self.steps.actions == RETRACT
        return found

    @lazy_property
    def waves(self) -> Waves:
        """The waves of the steps of `filled_groups`."""
        return waves_of(self.steps.starts[self.filled_groups], self.steps.ends[self.filled_groups])


Aggregator: TypeAlias = Callable[[pa.Array, Fold], pa.Array]
"""Converts the values of a column, in the order of the fold's rows, to one value of the same type per group."""
Rows: TypeAlias = Callable[[pa.Array, Fold, Ints | None], Ints]
LooksAt: TypeAlias = Literal["nothing", "nulls", "values"]


class Pick:
    """An aggregator whose result is always null or one of the values, unchanged.

    `rows` finds the position of that value in the fold's rows, -1 for null, so the values need to be gathered only
    once. Its third argument maps the fold's rows to the values; None if they are the same rows. `looks_at`: the part of
    the values that `rows` needs: "nothing" (pass any array), "nulls" (any array with the same nulls), "values".
    `newest`: if every row is an ADD and no value that it reads is null, the newest row is picked.
    """

    def __init__(self, rows: Rows, *, looks_at: LooksAt = "values", newest: bool = True) -> None:
        self.rows = rows
        self.looks_at: LooksAt = looks_at
        self.newest = newest

    def __call__(self, values: pa.Array, fold: Fold) -> pa.Array:
        """The picked values."""
        return take_or_null(values, self.rows(values, fold, None))

    def guard(self, allowed: Callable[[Fold], Fold]) -> Pick:
        """The same function for folds that first pass through `allowed`."""
        rows = self.rows
        return Pick(
            lambda values, fold, index: rows(values, allowed(fold), index), looks_at=self.looks_at, newest=self.newest
        )


def take_or_null(values: pa.Array, rows: Ints) -> pa.Array:
    """The values at `rows`; null where a row is negative."""
    return values.take(from_numpy(rows, pa.int64(), rows >= 0))
