"""Selects the files of an append table to rewrite in clustering order. Pure except for schema lookups.

Incremental clustering uses the levels of an LSM tree: each new file is a run of level 0, files that were sorted
together form one run of a higher level, and the sizes of the runs decide which are sorted next.

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
    """A clustering, and the rules that select its files.

    Attributes:
        clustering: the new order of the rows.
        levels: how runs are picked; None: every file is selected, and new files are on level 0.
        columns: the clustering columns by schema id, since older files may be clustered by other columns.
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
        """The requested clustering, by default that of the table's options; None: no clustering.

        Raises:
            OptionError, UsageError, UnsupportedError: the options are invalid.
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
        """The files of a bucket to sort together, and the level of the new files."""
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
