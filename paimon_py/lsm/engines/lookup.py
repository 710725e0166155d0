"""A merge engine for tables whose compactions look up keys: of the levels above 0, only the lowest counts for a key.

A compaction of such a table merges the new rows of level 0 with the row that a lookup finds, and leaves older rows
on higher levels; that row already includes them.

Source: Java `LookupMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import numpy_values, ranges
from paimon_py.lsm.groups import Engine, Groups, Merged
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.schema import LEVEL


class Lookup(msgspec.Struct, frozen=True):
    """Merges the rows of level 0 and the row of the lowest level above it with `engine`.

    A key with several rows is passed to the engine even if only one of them is left, as in Java.
    """

    engine: Engine

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """The columns that the engine reads, and the level of every row (`_LEVEL`, int32)."""
        return self.engine.inputs(wanted) | {LEVEL}

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """The engine's result for the rows that count; without levels (a write buffer) all rows count.

        Cost: 10 ns for every row of a key with several rows.
        """
        if LEVEL not in columns or not len(groups.multiple):
            return self.engine(groups, columns)
        firsts, ends = groups.firsts[groups.multiple], groups.ends[groups.multiple]
        sizes = ends - firsts
        positions = ranges(firsts, sizes)
        levels = numpy_values(combine_chunks(columns[LEVEL]))[groups.order[positions]].astype(np.int64)
        high = levels > 0
        if not high.any():
            return self.engine(groups, columns)
        above = np.iinfo(np.int64).max
        lowest = np.minimum.reduceat(np.where(high, levels, above), np.cumsum(sizes) - sizes)
        dropped = positions[high & (levels > np.repeat(lowest, sizes))]
        if not len(dropped):
            return self.engine(groups, columns)
        keep = np.ones(len(groups.order), np.bool_)
        keep[dropped] = False
        number = (np.cumsum(groups.starts) - 1)[keep]
        starts = np.ones(len(number), np.bool_)
        starts[1:] = number[1:] != number[:-1]
        return self.engine(Groups(groups.order[keep], starts, merging=groups.multiple), columns)
