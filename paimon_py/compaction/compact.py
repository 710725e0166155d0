"""Compacts a table in one call: plan, run the tasks, commit; work that lost to a faster commit is planned again.

Source: Java `CompactAction`, `CompactProcedure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

import msgspec

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Bucket, BucketChanges, Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult, join_results
from paimon_py.commit.uncommitted import delete_compaction, discarding_on_failure
from paimon_py.compaction.plan import plan_compaction
from paimon_py.compaction.run import run_task
from paimon_py.compaction.task import CompactionTask
from paimon_py.compaction.task_check import check_task
from paimon_py.compaction.together import compaction_budget
from paimon_py.errors import CommitConflictError, SnapshotExpiredError
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, TaskKind
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import FileMissingError


class ObsoleteCompaction(msgspec.Struct, frozen=True):
    """A compaction that concurrent changes made obsolete, and the reason."""

    partition: bytes
    bucket: int
    reason: str


class CompactionResult(Serializable, frozen=True, kw_only=True):
    """The result of a compaction task: the changes of its bucket, or why it is obsolete."""

    kind: ClassVar[str] = "compacted"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a compaction task"
    again: ClassVar[str] = "run the task"

    changes: BucketChanges | None = None
    overtaken: ObsoleteCompaction | None = None


def _compact_bucket(job: Job[CompactionTask, CompactionResult], task: CompactionTask) -> CompactionResult:
    """Run a compaction task; a task from another process is validated first.

    Raises: as `check_task` and `run_task`
    """
    try:
        if job.is_remote:
            check_task(job.table, task)
        return CompactionResult(changes=run_task(job.table, task, tally=job.tally))
    except FileMissingError as error:
        reason = job.table.root.replacement_reason(task.bucket, error)
    except SnapshotExpiredError as error:
        if not job.is_remote:
            raise
        reason = str(error)
    return CompactionResult(overtaken=ObsoleteCompaction(task.partition, task.bucket, reason))


def _discard_compaction(job: Job[CompactionTask, CompactionResult], result: CompactionResult) -> None:
    if result.changes is not None:
        delete_compaction(job.table, result.changes)


COMPACT = TaskKind(
    task=CompactionTask,
    result=CompactionResult,
    run=_compact_bucket,
    discard=_discard_compaction,
    steps=lambda task: 2 * task.row_count,
    budget=compaction_budget(lambda task: task.task.size_bytes),
)


Choose = Callable[[Sequence[CompactionTask]], Sequence[CompactionTask]]
"""Selects tasks of a plan; the others are left for a later call."""


class Compactor:
    """One call of `Table.compact`."""

    def __init__(
        self,
        table: OpenTable,
        *,
        full: bool,
        chosen: PartitionChoice | None,
        clustering: Clustering | None = None,
        executor: Executor | None = None,
        choose: Choose | None = None,
    ) -> None:
        """`executor`: runs the tasks; None: this process. `choose`: selects tasks of a plan; None: all of them."""
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._full = full
        self._chosen = chosen
        self._clustering = clustering
        self._executor = executor
        self._choose = choose

    def run(self, progress: Progress | None) -> CommitResult:
        """Compact; a bucket whose files others replaced in the meantime is planned again once, then left unchanged.

        Raises:
            CommitUnknownError: nothing was deleted. Any other error: no file is left behind, nothing was published.
        """
        tasks = self.tasks()
        first = self._round(tasks if self._choose is None else self._choose(tasks), progress)
        if not first.dropped_buckets:
            return first
        again = [task for task in self.tasks() if (task.partition, task.bucket) in first.dropped_buckets]
        return join_results(first, self._round(again, progress, attempt=2))

    def tasks(self) -> list[CompactionTask]:
        """The tasks to run. If the snapshot expires during planning, a later one is used, if there is one."""
        seen: Snapshot | None = None
        while True:
            latest = self._root.snapshots.latest()
            try:
                return plan_compaction(
                    self._table, full=self._full, chosen=self._chosen, clustering=self._clustering
                )
            except SnapshotExpiredError:
                if latest == seen:
                    raise
                seen = latest

    def _round(self, tasks: Sequence[CompactionTask], progress: Progress | None, *, attempt: int = 1) -> CommitResult:
        if not tasks:
            return CommitResult()
        tally = ProgressCounter(progress, sum(task.row_count for task in tasks), "rows", steps=2, attempt=attempt)
        results = run_tasks(self._executor, Job(COMPACT, self._table, tally=tally), tasks)
        done = [result.changes for result in results if result.changes is not None]
        with discarding_on_failure(lambda: self._delete(done)):
            tally.end()
        overtaken = _Dropped.of(result.overtaken for result in results if result.overtaken is not None)
        changes = changes_of(self._root, tasks, done)
        if changes.is_empty:
            return overtaken.added_to(CommitResult())
        try:
            with discarding_on_failure(lambda: self._delete(done)):
                result = commit(self._table, changes, CommitRequest(is_new=True))
        except CommitConflictError as error:
            lost = _Dropped.of(ObsoleteCompaction(bucket.partition, bucket.bucket, str(error)) for bucket in done)
            result = lost.added_to(CommitResult())
        return overtaken.added_to(result)

    def _delete(self, buckets: Sequence[BucketChanges]) -> None:
        files = OpenTable(self._root, self._schema)
        for bucket in buckets:
            delete_compaction(files, bucket)


def changes_of(root: TableRoot, tasks: Sequence[CompactionTask], buckets: Sequence[BucketChanges]) -> Changes:
    """The results of some tasks of one plan, ready to be committed."""
    return Changes(
        branch=root.branch,
        schema_id=tasks[0].schema_id,
        base=tasks[0].base,
        buckets=tuple(buckets),
    )


class _Dropped(msgspec.Struct, frozen=True):
    """The buckets that could not be compacted, for a result."""

    reason: str | None = None
    buckets: tuple[Bucket, ...] = ()

    @classmethod
    def of(cls, lost: Iterable[ObsoleteCompaction]) -> _Dropped:
        lost = tuple(lost)
        return cls(lost[0].reason if lost else None, tuple((each.partition, each.bucket) for each in lost))

    def added_to(self, result: CommitResult) -> CommitResult:
        """The result with these buckets among the dropped ones."""
        return msgspec.structs.replace(
            result,
            dropped_compaction=result.dropped_compaction or self.reason,
            dropped_buckets=result.dropped_buckets + self.buckets,
        )
