"""The changelog of one compaction: the changes that its merges produce, without rows reported before.

A merge tells its changes as it goes, so that no row is read twice. Full compactions compare with the rows of the top
level: what lies there was told by the full compaction that put it there.

Source: format.md §14; Java `ChangelogMergeTreeRewriter`, `FullChangelogMergeTreeCompactRewriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, numpy_values
from paimon_py.lsm.changelog import ChangeRules, change_rows, insertions
from paimon_py.lsm.groups import Engine, Groups, Merged
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.schema import LEVEL


class ChangelogEmitter(msgspec.Struct, frozen=True, kw_only=True):
    """Where the changes of a compaction go.

    Attributes:
        rules: how changes become rows.
        top: the output level of a compaction.
        write: takes change rows, in key order.
    """

    rules: ChangeRules
    top: int
    write: Callable[[pa.RecordBatch], None]

    def on_merge(self, columns: Mapping[str, pa.ChunkedArray], before: Ints, merged: Merged, told: Mask) -> None:
        """Tell what a window changed; see `change_rows`."""
        for batch in change_rows(columns, before, merged, told, self.rules).to_batches():
            self.write(batch)

    def alone(self, batch: pa.RecordBatch, level: int) -> None:
        """Tell what rows of a level change that meet no others of their key."""
        if level != self.top:
            self.write(insertions(batch, self.rules))


class ChangelogEngine(msgspec.Struct, frozen=True):
    """The engine of a full compaction that tells its changes."""

    engine: Engine
    telling: ChangelogEmitter

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """What the table's engine reads, and the level of every row."""
        return self.engine.inputs(wanted) | {LEVEL}

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """What the table's engine makes of a window; a row of the top level alone changes nothing.

        Cost: besides the engine, 5 ns a row, and the change rows.
        """
        merged = self.engine(groups, columns)
        levels = numpy_values(combine_chunks(columns[LEVEL]))[groups.order]
        places = np.flatnonzero(levels == self.telling.top)
        keys = np.cumsum(groups.starts)[places] - 1
        before = np.full(len(groups), -1, np.int64)
        before[keys] = groups.order[places]
        told = (before < 0) | (groups.ends - groups.firsts > 1)
        self.telling.on_merge(columns, before, merged, told)
        return merged
