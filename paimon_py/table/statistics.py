"""Statistics methods of `Table`: ANALYZE and the stored statistics."""

from __future__ import annotations

from collections.abc import Callable

from paimon_py.arguments import NameList, check_flag, check_progress
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.spec.statistics import Statistics
from paimon_py.spec.supported import check_readable, check_writable
from paimon_py.table.verbs import TableVerbs, at_table_door, reads


@at_table_door
class TableStatistics(TableVerbs):
    """Methods of `Table` that compute statistics of its rows and columns for query planners."""

    def analyze(
        self,
        columns: NameList | None = None,
        *,
        all_columns: bool = False,
        progress: Callable[[int, int, str], object] | None = None,
        executor: Executor | None = None,
    ) -> Statistics | None:
        """Count rows and bytes of the latest snapshot, compute statistics of column values, and store the result.

        The statistics are stored as Java and Spark do, with a snapshot that changes nothing else. They remain with the
        table until the schema changes or the table is analyzed again.

        Args:
            columns: the names of the columns to analyze; none by default.
            all_columns: analyze all columns that can be analyzed; excludes nested columns, VARIANT and BLOB.
            progress: called with the number of rows read, the number of rows in the files, and "rows".
            executor: reads the rows, see `paimon_py.executors`; None: this process.

        Returns: what was stored; None for an empty table, for which nothing is stored.

        Cost: without columns, metadata only if no rows need merging; otherwise the columns are read, batch by batch.
        Raises:
            UsageError: a name is not a column.
            UnsupportedError: `columns` contains a column that cannot be analyzed.
            CommitUnknownError: the store did not say whether the statistics were published; nothing was deleted.
        """
        from paimon_py.maintain.analyze import analyze, columns_to_analyze

        check_readable(self._rules)
        check_writable(self._rules)
        self._root.store.require_new(self._root.path)
        check_progress(progress)
        require_executor(executor)
        check_flag("all_columns", all_columns)
        wanted = columns_to_analyze(self._rules, columns, all_columns=all_columns)
        return analyze(self._open_table.under(self._rules), wanted, progress, executor=executor)

    @reads
    def statistics(self, snapshot_id: int | None = None) -> Statistics | None:
        """The statistics of the latest snapshot, or of the one with this id; None if there are none.

        They may belong to an older snapshot; they include its id.

        Raises:
            SnapshotNotFoundError, SnapshotExpiredError: the snapshot does not exist.
            CorruptionError: the file is damaged or missing.
        """
        from paimon_py.metadata.statistics import read_statistics

        snapshot = self._root.latest() if snapshot_id is None else self._root.snapshots.get(snapshot_id)
        return None if snapshot is None else read_statistics(self._root, snapshot)
