"""Row methods of `Table`: delete, update, upsert, merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from paimon_py.arguments import NameList, check_progress
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.expr.predicate import Predicate
from paimon_py.progress import Progress
from paimon_py.rows.result import RowsResult
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.table.verbs import TableVerbs, at_table_door, commits


@at_table_door
class TableRows(TableVerbs):
    """Methods of `Table` that change rows; each call is one commit."""

    @commits
    def delete(
        self, where: Predicate | str, *, user: str | None = None, identifier: int | None = None,
        progress: Progress | None = None, executor: Executor | None = None,
    ) -> RowsResult:  # fmt: skip
        """Delete the rows for which `where` is true, in one commit; `"true"` deletes all rows.

        Args:
            user, identifier: make the call repeatable, as in `write_arrow`.
            progress: called with the number of rows read and written, the total, and "rows".
            executor: reads the rows, one task for each bucket or split, see `paimon_py.executors`; None: this process.

        Raises:
            UsageError: a condition that does not fit, a merge engine without deletes, or an identifier below the user's
                last one.
            CommitConflictError: other commits kept changing the same rows; nothing was changed.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
        """
        from paimon_py.rows import verbs

        label = CommitLabel(user, identifier)
        if executor is not None:
            return self._by_tasks(executor, label, progress, "delete", self._with_now(where))
        return self._once(label, lambda: verbs.delete(self._open_table, self._with_now(where), label, progress))

    def _with_now(self, where: Any) -> Any:
        """A condition in which now() has become a time."""
        from paimon_py.expr.current_time import conditions_at

        return conditions_at(where, self._open_table.root.env.clock)

    def _values_now(self, values: Any) -> Any:
        """Values in which now() has become a time, also with conditions."""
        from paimon_py.expr.current_time import values_at

        return values_at(values, self._open_table.root.env.clock)

    @commits
    def update(
        self, where: Predicate | str, values: Mapping[str, object], *, user: str | None = None,
        identifier: int | None = None, progress: Progress | None = None, executor: Executor | None = None,
    ) -> RowsResult:  # fmt: skip
        """Set columns of the rows for which `where` is true, in one commit.

        Args:
            values: by column, a literal, another column (`col("a")`), a calculation (`col("a") + 1`,
                `sql("upper(a)")`), or a function from a batch of old rows to an Arrow array. A string that looks like
                an expression is rejected unless written as `lit("upper(a)")`. Columns of the primary key and of
                partitions cannot be set.
            user, identifier, progress, executor: as in `delete`; functions in `values` are pickled.

        Raises: as `delete`, and SchemaError for a value that its column cannot hold.
        """
        from paimon_py.rows import verbs

        label, values = CommitLabel(user, identifier), self._values_now(values)
        if executor is not None:
            return self._by_tasks(executor, label, progress, "update", self._with_now(where), values)
        return self._once(label, lambda: verbs.update(self._open_table, self._with_now(where), values, label, progress))

    def update_rows(
        self, data: object, *, snapshot_id: int | None = None, user: str | None = None, identifier: int | None = None,
        progress: Progress | None = None,
    ) -> RowsResult:  # fmt: skip
        """Set columns of the rows with the given row ids, in one commit, for tables with `data-evolution.enabled`.

        No other column is read or written: each range of rows that contains one of the ids gets an additional file with
        these columns.

        Args:
            data: as `write_arrow` takes, with `_ROW_ID`, each id once, and the columns to set; a NULL sets NULL.
            snapshot_id: the snapshot from which the values were computed: the call fails if another commit has since
                set these columns of these rows, or of rows in one file with them. None: other commits are ignored.
            user, identifier, progress: as in `delete`.

        Cost: 8 bytes of memory per row of the data; their values take up to a fourth of `write-buffer-size`, at most
            64 MB, and the rest is sorted on local disk. The old values of the columns are read for all rows of the
            ranges.
        Raises: as `update`, and UsageError for ids that no row has, and for tables without this option; with
            `snapshot_id` CommitConflictError as described, SnapshotExpiredError and SnapshotNotFoundError.
        """
        from paimon_py.rows import verbs

        label = CommitLabel(user, identifier)
        return self._once(
            label, lambda: verbs.update_rows(self._open_table, data, snapshot_id, label, progress)
        )

    def backfill(
        self, values: Mapping[str, object], *, where: Predicate | str | None = None, user: str | None = None,
        identifier: int | None = None, progress: Progress | None = None,
    ) -> RowsResult:  # fmt: skip
        """Fill columns that are NULL from other columns, for tables with `data-evolution.enabled`.

        Rows in which one of the columns has a value are not changed, so repeating an interrupted call continues it.
        Ranges of rows are filled one after the other, with a commit for about every gigabyte of files; only the columns
        themselves are written.

        Args:
            values: as in `update`.
            where: fill only these rows.
            user, identifier: as in `delete`. The last commit has the identifier; with one, commits before it have a
                generated user, so that an interrupted call can be repeated. If the last range changes nothing, no
                commit has the identifier, and a repeated call looks for NULL again.
            progress: as in `delete`.

        Returns: the sum; `snapshot_ids` are all commits, `before` is the state before the first.
        Raises: as `update`; earlier commits of the call remain.
        """
        from paimon_py.rows.backfill import backfill

        label, values, where = CommitLabel(user, identifier), self._values_now(values), self._with_now(where)
        return self._once(label, lambda: backfill(self._open_table, values, where, label, progress))

    @commits
    def upsert(
        self, data: object, *, on: NameList | Mapping[str, str] | None = None, user: str | None = None,
        identifier: int | None = None, progress: Progress | None = None,
    ) -> RowsResult:  # fmt: skip
        """Replace the rows that have the keys of `data`, and add the others, in one commit.

        Columns that `data` lacks keep their values in existing rows; new rows get the default or NULL. This applies to
        whole columns: a ROW counts as one, and in a list of mappings a name that one mapping omits is NULL.

        Args:
            on: the columns that form the key; by default the primary key, which accepts several rows of one key in
                their order, and `_row_kind`.
            user, identifier: as in `delete`.
            progress: as in `delete`; without `on` as in `write_arrow`.

        Cost: under the primary key that of `write_arrow` if the data have every column, or if the merge engine is
            `partial-update` and keeps the others by itself. Otherwise each key is looked up, for the columns that the
            data lack: the data stay in memory up to `write-buffer-size`, then on local disk, in addition to the rows of
            65,536 keys and `lookup.cache-max-memory-size`. With another `on`: as `merge`.
        Raises: as `merge`, and SchemaError with the column name if a new row lacks a NOT NULL column without a default.
        """
        from paimon_py.table import writing

        return writing.upsert(self._open_table, data, on, CommitLabel(user, identifier), progress)

    @commits
    def merge(  # noqa: PLR0913
        self,
        source: object,
        on: NameList | Mapping[str, str],
        *,
        when_matched_update: object = None,
        when_matched_delete: Predicate | str | bool | Sequence[Predicate | str] | None = None,
        when_not_matched_insert: object = None,
        when_not_matched_by_source_update: object = None,
        when_not_matched_by_source_delete: Predicate | str | bool | Sequence[Predicate | str] | None = None,
        user: str | None = None,
        identifier: int | None = None,
        progress: Progress | None = None,
    ) -> RowsResult:
        """Change the rows that have the same key as a row of the source, and add the others, in one commit.

        Conditions and values refer to `source.c` and `target.c`. An update or insert is True (every column of the
        source), values such as `{"c": col("source.c"), "n": sql("source.n * 2")}`, or `(condition, one of these)`; a
        delete is True or a condition. In a list of these, the first that applies to a row is used, and deletes come
        before updates. A string that looks like an expression is rejected; `lit("source.c")` is the string itself.

        Args:
            source: data as `write_arrow` takes; read once.
            on: columns that both have, or a mapping from the table's names to the source's. NULL matches nothing.
            user, identifier, progress: as in `delete`.

        Raises: as `update`, and UsageError if two rows of the source change the same row.
        """
        from paimon_py.rows import verbs
        from paimon_py.rows.clauses import MergeClauses

        asked = MergeClauses(
            matched_update=self._values_now(when_matched_update),
            matched_delete=self._with_now(when_matched_delete),
            insert=self._values_now(when_not_matched_insert),
            by_source_update=self._values_now(when_not_matched_by_source_update),
            by_source_delete=self._with_now(when_not_matched_by_source_delete),
        )  # fmt: skip
        label = CommitLabel(user, identifier)
        return self._once(
            label,
            lambda: verbs.merge(self._open_table, source, on, asked, label=label, progress=progress),
        )

    def _by_tasks(
        self, executor: Executor, label: CommitLabel, progress: Progress | None, name: Literal["delete", "update"],
        where: Predicate | str, values: Mapping[str, object] | None = None,
    ) -> RowsResult:  # fmt: skip
        """Delete or update rows with the tasks of an executor."""
        from paimon_py.rows.row_tasks import RowsVerb, run_by_tasks

        require_executor(executor)
        check_progress(progress)
        verb = RowsVerb(name, where, {} if values is None else values)
        return self._once(label, lambda: run_by_tasks(self._open_table, verb, label, executor, progress))

    def _once(self, label: CommitLabel, verb: Callable[[], RowsResult]) -> RowsResult:
        """Run a verb unless its identifier is already committed, then run the maintenance that the table asks for."""
        from paimon_py.maintain.auto_maintenance import run_auto_maintenance
        from paimon_py.maintain.observers import notify_again
        from paimon_py.rows import verbs

        done = verbs.once(self._open_table, label, verb)
        if done.already_committed:
            return notify_again(self._open_table, done)
        return run_auto_maintenance(self._open_table, done, of_batch=True)
