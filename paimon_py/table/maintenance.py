"""The verbs that maintain a table's files: compaction, rescaling of buckets, indexes, manifests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from paimon_py.arguments import NameList, check_flag, check_progress
from paimon_py.codec.partition_choice import choice_of
from paimon_py.commit.changes import Changes
from paimon_py.commit.result import CommitResult
from paimon_py.compaction.task import CompactionTask
from paimon_py.errors import SnapshotExpiredError, UsageError
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.expr.predicate import Predicate
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.clustering import sort_clustering
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SchemaChange, SetOption
from paimon_py.spec.supported import check_compactable, check_writable
from paimon_py.storage.store import FileMissingError
from paimon_py.table.verbs import TableVerbs, at_table_door


@at_table_door
class TableCare(TableVerbs, ABC):
    """What `Table` offers to keep its files in shape; rows stay what they are."""

    @abstractmethod
    def alter(self, *changes: SchemaChange) -> TableSchema:
        """Apply all changes as one new schema and move to it."""

    def compact(
        self,
        *,
        full: bool = False,
        partitions: Sequence[Mapping[str, object]] | None = None,
        where: Predicate | str | None = None,
        order_by: NameList | None = None,
        strategy: str | None = None,
        progress: Callable[[int, int, str], object] | None = None,
        executor: Executor | None = None,
    ) -> CommitResult:
        """Merge files into fewer and larger ones, and commit that; rows stay what they are.

        Without `full` only buckets are touched that have piled up enough by the table's options, as Java's writers
        would (those of a `write-only` table do not); with it every bucket ends up on its top level. A bucket whose
        files another commit replaces meanwhile is planned anew once, then left alone, and the result says so.

        With `order_by` all rows of an append table are written anew, sorted within their partition. A table with
        `clustering.incremental` is always compacted so, by its `clustering.columns`, where enough has piled up.

        Args:
            full: compact everything.
            partitions: only these, as `[{"month": 3}]`; a part of the keys names all below it.
            where: only partitions for which this holds; it may ask for partition keys alone.
            order_by: columns to sort the rows of an append table by; if only a strategy is given, the table's
                `clustering.columns`.
            strategy: 'order' (the default) sorts by one column after the other; 'zorder' and 'hilbert' follow a curve
                that serves all columns alike; 'auto' is 'order' for one column, 'zorder' below five, else 'hilbert'.
            progress: called with how many rows were read, how many there are, and "rows", as it happens; where other
                processes read, when a task is done.
            executor: who runs the tasks, one for each bucket, see `paimon_py.executors`; None: this process.

        Returns: what was committed; no snapshot if there was nothing to do.

        Raises:
            UsageError: a name is not a partition key; the table or its columns cannot be sorted.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
            UnsupportedError: the table uses a feature that paimon_py cannot compact.
        """
        from paimon_py.maintain.compact_table import compact_table

        return compact_table(
            self._open_table.under(self._rules), full=full, partitions=partitions, where=where, order_by=order_by,
            strategy=strategy, progress=progress, executor=executor,
        )  # fmt: skip

    def rescale(
        self, buckets: int, *, partitions: Sequence[Mapping[str, object]] | None = None,
        progress: Callable[[int, int, str], object] | None = None, executor: Executor | None = None,
    ) -> CommitResult:
        """Write partitions anew with another number of buckets, as one overwrite; rows stay what they are.

        In a table with fixed buckets the option 'bucket' is set first: rows can then only be written to partitions that
        have this number. A table with postponed buckets keeps its option, and rows that wait for their bucket wait on.
        Partitions that have the number already are left alone, so a call that failed can be repeated.

        Args:
            buckets: how many buckets each partition gets.
            partitions: only these, as `[{"month": 3}]`; a part of the keys names all below it.
            progress: called with how many rows were written, how many there are, and "rows".
            executor: who runs the tasks, see `paimon_py.executors`; None: this process. From m to n buckets each
                partition is the work of gcd(m, n) tasks: twice as many buckets, or half as many, are cheap.

        Returns: what was committed; no snapshot if there was nothing to do.

        Raises:
            UsageError: the table has dynamic buckets or none, or a name is not a partition key.
            CommitConflictError: others wrote to the partitions every time; their rows stay where they were.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
        """
        from paimon_py.maintain.auto_maintenance import run_auto_maintenance
        from paimon_py.maintain.rescale import check_rescalable, require_compacted, rescale

        check_progress(progress)
        require_executor(executor)
        check_writable(self._rules)
        check_rescalable(self._rules, buckets)
        chosen = choice_of(self._rules, "rescale", partitions)
        require_compacted(self._open_table.under(self._rules), buckets, chosen)
        if bucket_mode(self._rules) is BucketMode.FIXED and self._rules.options.get("bucket") != str(buckets):
            self.alter(SetOption("bucket", str(buckets)))
        done = rescale(self._open_table.under(self._rules), buckets, chosen, executor, progress)
        return run_auto_maintenance(self._open_table.under(self._rules), done)

    def compaction_tasks(
        self,
        *,
        full: bool = False,
        partitions: Sequence[Mapping[str, object]] | None = None,
        where: Predicate | str | None = None,
        order_by: NameList | None = None,
        strategy: str | None = None,
    ) -> list[CompactionTask]:
        """What `compact` would do, as tasks that do not depend on each other and can be sent to other processes.

        Carry each out with `run_compaction` and commit all results with one `commit`.
        """
        from paimon_py.compaction.plan import plan_compaction
        from paimon_py.maintain.cleanup.expire_partitions import leave_out_expired

        check_flag("full", full)
        check_compactable(self._rules)
        clustering = sort_clustering(self._rules, order_by, strategy)
        chosen = choice_of(self._rules, "compact", partitions, where)
        chosen = leave_out_expired(self._open_table.under(self._rules), chosen)
        return plan_compaction(self._open_table.under(self._rules), full=full, chosen=chosen, clustering=clustering)

    def run_compaction(self, task: CompactionTask | bytes) -> Changes:
        """Carry out one of `compaction_tasks()`, in any process; nothing is visible before the changes are committed.

        Raises:
            UsageError: the table has another schema than the task was planned under.
            SnapshotExpiredError: others replaced its files so long ago that they are gone; plan anew.
            CorruptionError: the task says something else of its bucket than the table; or a file is damaged.
            StorageError: a file cannot be read or written; what was written is deleted.
        """
        from paimon_py.compaction.compact import changes_of
        from paimon_py.compaction.run import run_task
        from paimon_py.compaction.task_check import check_task

        check_compactable(self._rules)
        self._root.store.require_new(self._root.path)
        task = CompactionTask.from_bytes(task) if isinstance(task, bytes) else task
        if not isinstance(task, CompactionTask):
            raise UsageError(f"run_compaction takes one of compaction_tasks() or its bytes, not {task!r}")
        check_task(self._open_table.under(self._rules), task)
        try:
            return changes_of(self._root, [task], [run_task(self._open_table.under(self._rules), task)])
        except FileMissingError as error:
            reason = self._root.replacement_reason(task.bucket, error)
            raise SnapshotExpiredError(
                f"{reason}; ask compaction_tasks() again", path=error.path, snapshot_id=task.base.id
            ) from error

    def rewrite_file_index(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        where: Predicate | str | None = None,
    ) -> CommitResult:
        """Give old files the file indexes that the options `file-index.<type>.columns` ask for, and commit that.

        Rows stay where they are; an index that a file has stays as it is, and goes if nothing asks for it any more. A
        bucket of which others replace files meanwhile is left alone, and the result says so.

        Args:
            partitions: only these, as `[{"month": 3}]`; a part of the keys names all below it.
            where: only partitions for which this holds; it may ask for partition keys alone.

        Returns: what was committed; no snapshot if nothing was missing.

        Raises:
            UsageError: a name is not a partition key.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
            UnsupportedError: the table uses a feature that paimon_py cannot write.
        """
        from paimon_py.compaction.index_rewrite import rewrite_indexes
        from paimon_py.maintain.auto_maintenance import run_auto_maintenance

        check_writable(self._rules)
        chosen = choice_of(self._rules, "rewrite_file_index", partitions, where)
        table = self._open_table.under(self._rules)
        return run_auto_maintenance(table, rewrite_indexes(table, chosen))

    def compact_manifests(self) -> CommitResult:
        """Merge the table's manifests, so that plans read fewer files; rows and data files stay what they are.

        Returns: no snapshot if there was nothing to merge.

        Raises:
            CommitRetriesExhaustedError, CommitUnknownError: see `errors.py`.
        """
        from paimon_py.commit.compact_manifests import compact_manifests
        from paimon_py.maintain.observers import notify

        check_compactable(self._rules)
        return notify(self._newest_table, compact_manifests(self._open_table.under(self._rules)))
