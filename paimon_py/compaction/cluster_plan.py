"""Which files of an append table to rewrite in clustering order. Pure but for looking up schemas.

Incremental clustering uses the levels of an LSM tree: new files are level 0, each a run of its own; what was sorted
together is one run of a higher level, and the sizes of runs decide what is sorted next.

Source: Java `IncrementalClusterManager`, `IncrementalClusterStrategy`, `BucketedAppendClusterManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from paimon_py.compaction.levels import level_runs
from paimon_py.compaction.picker import Compact, PickerSettings, PickerState, pick, pick_full
from paimon_py.spec.clustering import Clustering, is_incremental, table_clustering
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


class ClusterPlan(msgspec.Struct, frozen=True):
    """A clustering, and what to take.

    Attributes:
        clustering: the order that rows get.
        levels: how runs are picked; None: every file is taken, and the new ones are of level 0.
        columns: the clustering columns by schema id, for files that may be clustered by others.
    """

    clustering: Clustering
    levels: PickerSettings | None = None
    columns: Mapping[int, tuple[str, ...]] = {}

    @classmethod
    def of(
        cls,
        schema: TableSchema,
        asked: Clustering | None,
        files: Iterable[DataFile],
        schema_of: Callable[[int], TableSchema],
    ) -> ClusterPlan | None:
        """What a caller asks for, or else what the table's options say; None: nothing.

        Raises:
            OptionError, UsageError, UnsupportedError: the options have no sense.
        """
        if asked is not None:
            return cls(asked)
        if not is_incremental(schema):
            return None
        options = Options(schema.options)
        whole = PickerSettings.of(options)
        levels = PickerSettings(
            level_count=whole.level_count,
            compaction_trigger=whole.compaction_trigger,
            max_size_amplification=whole.max_size_amplification,
            size_ratio=whole.size_ratio,
        )
        ids = {file.schema_id for file in files if file.level > 0}
        columns = {number: tuple(Options(schema_of(number).options).get_list("clustering.columns")) for number in ids}
        return cls(table_clustering(schema), levels, columns)

    def choice(self, files: tuple[DataFile, ...], *, full: bool) -> Compact | None:
        """The files of a bucket to sort together, and the level of the new ones."""
        if not files:
            return None
        if self.levels is None:
            return Compact(files, 0)
        runs = level_runs(files)
        if full:
            top = self.levels.top_level(runs)
            first = runs[0].files[0]
            done = len(runs) == 1 and runs[0].level == top
            if done and self.columns.get(first.schema_id) == self.clustering.columns:
                return None
            found = pick_full(runs, self.levels, force=True)
        else:
            found, _ = pick(runs, self.levels, PickerState(), 0, 0)
        return found if isinstance(found, Compact) and found.files else None
