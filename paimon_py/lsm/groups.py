"""One window of a merge as groups of equal keys, and the result of a merge engine for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask
from paimon_py.lazy import lazy_property


class Groups:
    """The rows of a window in merge order, cut into groups of equal keys.

    `order`: row numbers of the window, by key and then oldest version first. `starts`: True where a key begins in it.
    `merging`: the groups that engines process; by default those of more than one row. Everything else is derived on
        first
    use.
    """

    def __init__(self, order: Ints, starts: Mask, *, merging: Ints | None = None) -> None:
        self.order = order
        self.starts = starts
        self._merging = merging

    def __len__(self) -> int:
        return len(self.firsts)

    @lazy_property
    def firsts(self) -> Ints:
        """Position in `order` of the oldest row of every key."""
        return np.flatnonzero(self.starts)

    @lazy_property
    def ends(self) -> Ints:
        """Position in `order` just after the newest row of every key."""
        return np.append(self.firsts[1:], len(self.order))

    @lazy_property
    def oldest_rows(self) -> Ints:
        """Row number of the oldest version of every key."""
        return self.order[self.starts]

    @lazy_property
    def newest_rows(self) -> Ints:
        """Row number of the newest version of every key."""
        last = np.ones(len(self.order), np.bool_)
        last[:-1] = self.starts[1:]
        return self.order[last]

    @lazy_property
    def multiple(self) -> Ints:
        """Numbers of the groups that have more than one row (or had, before a lookup); the others need no engine."""
        if self._merging is not None:
            return self._merging
        return np.flatnonzero(self.ends - self.firsts > 1)


class Merged(msgspec.Struct, frozen=True):
    """The result of an engine for a window: one row per key, in key order.

    `rows`: the window row that represents each key; its values, sequence number and kind are the result, except where
    `columns` contains a computed column (one value per key) under the column's name.
    """

    rows: Ints
    columns: Mapping[str, pa.Array] = {}


class Engine(Protocol):
    """A merge engine: settings, and a function over a window of rows that are ordered and grouped by key."""

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """The table columns to read so that `wanted` can be returned; keys and sequence fields are always read."""

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """Compute one row per key.

        Shapes: `columns` contains the rows as numbered by the groups: `inputs(wanted)`, the order's columns,
            `_VALUE_KIND` if a row may be −U or −D (absent: all are adds). A group of a single row is returned unchanged
            by every engine (format.md §12.2). Only the given columns are computed.
        """
