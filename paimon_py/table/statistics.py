"""The verbs that count what is in a table: ANALYZE and its statistics."""

from __future__ import annotations

from collections.abc import Callable

from paimon_py.arguments import NameList, check_flag, check_progress
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.spec.statistics import Statistics
from paimon_py.spec.supported import check_readable, check_writable
from paimon_py.table.verbs import TableVerbs, at_table_door, reads


@at_table_door
class TableStatistics(TableVerbs):
    """What `Table` offers to count its rows and the values of its columns, for those who plan queries."""

    def analyze(
        self,
        columns: NameList | None = None,
        *,
        all_columns: bool = False,
        progress: Callable[[int, int, str], object] | None = None,
        executor: Executor | None = None,
    ) -> Statistics | None:
        """Count rows and bytes of the latest snapshot, and look at the values of columns; store what was found.

        The statistics are stored as Java and Spark do, with a snapshot that changes nothing else, and stay with the
        table until the schema changes or it is analyzed again.

        Args:
            columns: the names of those to look at; none if nothing is said.
            all_columns: look at all that can be analyzed: not at nested ones, VARIANT and BLOB.
            progress: called with how many rows were read, how many the files hold, and "rows".
            executor: who looks at rows, see `paimon_py.executors`; None: this process.

        Returns: what was stored; None of an empty table, of which nothing is stored.

        Cost: without columns metadata alone where nothing is to be merged; else the columns are read, batch by batch.
        Raises:
            UsageError: a name is not a column.
            UnsupportedError: a column that cannot be analyzed was named.
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
        """The statistics that the latest snapshot has, or the one with this id; None if there are none.

        They may be of an older snapshot, which they name.

        Raises:
            SnapshotNotFoundError, SnapshotExpiredError: there is no such snapshot.
            CorruptionError: the file is damaged or missing.
        """
        from paimon_py.metadata.statistics import read_statistics

        snapshot = self._root.latest() if snapshot_id is None else self._root.snapshots.get(snapshot_id)
        return None if snapshot is None else read_statistics(self._root, snapshot)
