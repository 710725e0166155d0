"""The changelog of one compaction: the changes that its merges produce, without rows reported before.

A merge emits its changes as it runs, so that no row is read twice. Full compactions compare with the rows of the top
level: these were reported by the full compaction that wrote them.

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
    """Writes the changes of a compaction.

    Attributes:
        rules: how changes become rows.
        top: the output level of a compaction.
        write: writes change rows, in key order.
    """

    rules: ChangeRules
    top: int
    write: Callable[[pa.RecordBatch], None]

    def on_merge(self, columns: Mapping[str, pa.ChunkedArray], before: Ints, merged: Merged, reported: Mask) -> None:
        """Emit the changes of a merge window; see `change_rows`."""
        for batch in change_rows(columns, before, merged, reported, self.rules).to_batches():
            self.write(batch)

    def emit_unmerged(self, batch: pa.RecordBatch, level: int) -> None:
        """Emit rows of a level that have no other version of their key, as insertions."""
        if level != self.top:
            self.write(insertions(batch, self.rules))


class ChangelogEngine(msgspec.Struct, frozen=True):
    """The merge engine of a full compaction that emits its changes."""

    engine: Engine
    emitter: ChangelogEmitter

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """The columns that the table's engine reads, and the level of each row."""
        return self.engine.inputs(wanted) | {LEVEL}

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """Merge a window with the table's engine and emit the changes; a single row of the top level is not a change.

        Cost: besides the engine, 5 ns a row, and the change rows.
        """
        merged = self.engine(groups, columns)
        levels = numpy_values(combine_chunks(columns[LEVEL]))[groups.order]
        places = np.flatnonzero(levels == self.emitter.top)
        keys = np.cumsum(groups.starts)[places] - 1
        before = np.full(len(groups), -1, np.int64)
        before[keys] = groups.order[places]
        reported = (before < 0) | (groups.ends - groups.firsts > 1)
        self.emitter.on_merge(columns, before, merged, reported)
        return merged
