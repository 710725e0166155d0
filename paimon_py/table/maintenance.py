"""Maintenance methods of `Table`: compaction, rescaling, file indexes, manifests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from paimon_py.arguments import NameList, check_flag, check_progress
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
    """Methods of `Table` that maintain its files; they do not change rows."""

    @abstractmethod
    def alter(self, *changes: SchemaChange) -> TableSchema:
        """Apply all changes as one new schema and switch to it."""

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
        """Merge files into fewer and larger ones, and commit the result; rows do not change.

        Without `full`, only buckets with enough files by the table's options are compacted, as Java's writers would do
        (those of a `write-only` table do not); with it, every bucket ends up on its top level. A bucket whose files
        another commit replaces during the call is replanned once, then skipped, and the result says so.

        With `order_by`, all rows of an append table are rewritten, sorted within their partition. A table with
        `clustering.incremental` is always compacted this way, by its `clustering.columns`, where enough files have
        accumulated.

        Args:
            full: compact everything.
            partitions: only these, as `[{"month": 3}]`; a subset of the keys selects all partitions below it.
            where: only partitions that match this condition; it may use only partition keys.
            order_by: columns to sort the rows of an append table by; if only a strategy is given, the table's
                `clustering.columns`.
            strategy: 'order' (the default) sorts by one column after the other; 'zorder' and 'hilbert' follow a curve
                that serves all columns alike; 'auto' is 'order' for one column, 'zorder' below five, else 'hilbert'.
            progress: called with the number of rows read, the total, and "rows", as they are read; if other processes
                read them, when a task is done.
            executor: runs the tasks, one for each bucket, see `paimon_py.executors`; None: this process.

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
        """Rewrite partitions with another number of buckets, as one overwrite; rows do not change.

        In a table with fixed buckets the option 'bucket' is set first: from then on rows can be written only to
        partitions with this number of buckets. A table with postponed buckets keeps its option, and rows waiting for
        their bucket keep waiting. Partitions that already have this number are skipped, so a failed call can be
        repeated.

        Args:
            buckets: the number of buckets of each partition.
            partitions: only these, as `[{"month": 3}]`; a subset of the keys selects all partitions below it.
            progress: called with the number of rows written, the total, and "rows".
            executor: runs the tasks, see `paimon_py.executors`; None: this process. Going from m to n buckets takes
                gcd(m, n) tasks for each partition: doubling or halving the number of buckets is cheap.

        Returns: what was committed; no snapshot if there was nothing to do.

        Raises:
            UsageError: the table has dynamic buckets or none, or a name is not a partition key.
            CommitConflictError: other commits wrote to the partitions at every attempt; the rows are unchanged.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
        """
        from paimon_py.codec.partition_choice import choice_of
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
        """Plan what `compact` would do, as independent tasks that can be sent to other processes.

        Run each with `run_compaction` and commit all results with one `commit`.
        """
        from paimon_py.codec.partition_choice import choice_of
        from paimon_py.compaction.plan import plan_compaction
        from paimon_py.maintain.cleanup.expire_partitions import leave_out_expired

        check_flag("full", full)
        check_compactable(self._rules)
        clustering = sort_clustering(self._rules, order_by, strategy)
        chosen = choice_of(self._rules, "compact", partitions, where, self._open_table.root.env.clock)
        chosen = leave_out_expired(self._open_table.under(self._rules), chosen)
        return plan_compaction(self._open_table.under(self._rules), full=full, chosen=chosen, clustering=clustering)

    def run_compaction(self, task: CompactionTask | bytes) -> Changes:
        """Run one of `compaction_tasks()`, in any process; nothing is visible before the changes are committed.

        Raises:
            UsageError: the table no longer has the schema that the task was planned with.
            SnapshotExpiredError: the task's files were replaced and have since been deleted; plan again.
            CorruptionError: the task does not match the table's state of its bucket; or a file is damaged.
            StorageError: a file cannot be read or written; files already written are deleted.
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
                f"{reason}; call compaction_tasks() again", path=error.path, snapshot_id=task.base.id
            ) from error

    def rewrite_file_index(
        self,
        *,
        partitions: Sequence[Mapping[str, object]] | None = None,
        where: Predicate | str | None = None,
    ) -> CommitResult:
        """Add the file indexes that the options `file-index.<type>.columns` ask for to old files, and commit the
        result.

        Rows are not moved; existing indexes are kept, and removed if the options no longer ask for them. A bucket whose
        files other commits replace during the call is skipped, and the result says so.

        Args:
            partitions: only these, as `[{"month": 3}]`; a subset of the keys selects all partitions below it.
            where: only partitions that match this condition; it may use only partition keys.

        Returns: what was committed; no snapshot if no index was missing.

        Raises:
            UsageError: a name is not a partition key.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
            UnsupportedError: the table uses a feature that paimon_py cannot write.
        """
        from paimon_py.codec.partition_choice import choice_of
        from paimon_py.compaction.index_rewrite import rewrite_indexes
        from paimon_py.maintain.auto_maintenance import run_auto_maintenance

        check_writable(self._rules)
        chosen = choice_of(self._rules, "rewrite_file_index", partitions, where, self._open_table.root.env.clock)
        table = self._open_table.under(self._rules)
        return run_auto_maintenance(table, rewrite_indexes(table, chosen))

    def compact_manifests(self) -> CommitResult:
        """Merge the table's manifests, so that plans read fewer files; rows and data files do not change.

        Returns: no snapshot if there was nothing to merge.

        Raises:
            CommitRetriesExhaustedError, CommitUnknownError: see `errors.py`.
        """
        from paimon_py.commit.compact_manifests import compact_manifests
        from paimon_py.maintain.observers import notify

        check_compactable(self._rules)
        return notify(self._newest_table, compact_manifests(self._open_table.under(self._rules)))
