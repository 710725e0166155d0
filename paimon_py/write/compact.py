"""Compacting a table in one call: plan, carry the tasks out, commit; what others were faster with is planned again.

Source: Java `CompactAction`, `CompactProcedure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from paimon_py.errors import CommitConflictError, CommitUnknownError, PaimonError
from paimon_py.lsm.compaction import CompactionTask
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema
from paimon_py.write.changes import BucketChanges, Changes
from paimon_py.write.commit_plan import compaction_files
from paimon_py.write.compaction_plan import plan_compaction
from paimon_py.write.compaction_run import run_task
from paimon_py.write.index_plan import made_index
from paimon_py.write.leftovers import delete_files, delete_index_files
from paimon_py.write.overwrite import Matcher
from paimon_py.write.result import CommitResult


class CompactionProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a compaction has come: tasks, and the bytes and rows of their files."""

    tasks_done: int
    tasks: int
    bytes_done: int
    bytes: int
    rows_done: int
    rows: int


Report = Callable[[CompactionProgress], object]
Commit = Callable[[Changes], CommitResult]


class Compactor:
    """One call of `Table.compact`."""

    def __init__(
        self, root: TableRoot, schema: TableSchema, commit: Commit, *, full: bool, matches: Matcher | None
    ) -> None:
        self._root = root
        self._schema = schema
        self._commit = commit
        self._full = full
        self._matches = matches

    def run(self, report: Report | None) -> CommitResult:
        """Compact; a bucket whose files others replaced meanwhile is planned again once, then left as it is.

        Raises:
            CommitUnknownError: nothing was deleted. Any other error: no file is left behind, nothing was published.
        """
        first = self._round(self.tasks(), report)
        if not first.dropped_buckets:
            return first
        again = [task for task in self.tasks() if (task.partition, task.bucket) in first.dropped_buckets]
        second = self._round(again, report)
        return _together(first, second)

    def tasks(self) -> list[CompactionTask]:
        """What there is to do."""
        return plan_compaction(self._root, self._schema, full=self._full, matches=self._matches)

    def _round(self, tasks: Sequence[CompactionTask], report: Report | None) -> CommitResult:
        if not tasks:
            return CommitResult()
        changes = self._carried_out(tasks, report)
        if changes.is_empty:
            return CommitResult()
        try:
            return self._commit(changes)
        except CommitUnknownError:
            raise
        except CommitConflictError as error:
            self._delete(changes.buckets)
            buckets = tuple((task.partition, task.bucket) for task in tasks)
            return CommitResult(dropped_compaction=str(error), dropped_buckets=buckets)
        except PaimonError:  # anything else, a Ctrl-C say, may come after publication: then the files stay
            self._delete(changes.buckets)
            raise

    def _carried_out(self, tasks: Sequence[CompactionTask], report: Report | None) -> Changes:
        made: list[BucketChanges] = []

        def run(task: CompactionTask) -> BucketChanges:
            changes = run_task(self._root, self._schema, task)
            made.append(changes)
            return changes

        try:
            results = self._root.env.pool.map(run, tasks)
            buckets = tuple(_reported(results, tasks, report))
        except BaseException:
            self._delete(made)
            raise
        return changes_of(tasks, buckets)

    def _delete(self, buckets: Sequence[BucketChanges]) -> None:
        for bucket in buckets:
            delete_files(self._root, self._schema, bucket.partition, bucket.bucket, compaction_files(bucket))
            delete_index_files(self._root, self._schema, made_index(bucket))


def changes_of(tasks: Sequence[CompactionTask], buckets: Sequence[BucketChanges]) -> Changes:
    """What came of some tasks, ready to be committed."""
    return Changes(
        schema_id=max(task.schema_id for task in tasks),
        base_snapshot_id=min(task.snapshot_id for task in tasks),
        buckets=tuple(buckets),
    )


def _reported(
    results: Iterator[BucketChanges], tasks: Sequence[CompactionTask], report: Report | None
) -> Iterator[BucketChanges]:
    """The results as they come, each one reported."""
    state = CompactionProgress(
        tasks_done=0,
        tasks=len(tasks),
        bytes_done=0,
        bytes=sum(task.size_bytes for task in tasks),
        rows_done=0,
        rows=sum(task.row_count for task in tasks),
    )
    for task, result in zip(tasks, results, strict=True):
        state = msgspec.structs.replace(
            state,
            tasks_done=state.tasks_done + 1,
            bytes_done=state.bytes_done + task.size_bytes,
            rows_done=state.rows_done + task.row_count,
        )
        if report is not None:
            report(state)
        yield result


def _together(first: CommitResult, second: CommitResult) -> CommitResult:
    """The result of two rounds, the second of which took up what the first one dropped."""
    ids = first.snapshot_ids + second.snapshot_ids
    return CommitResult(
        snapshot_id=ids[-1] if ids else None,
        snapshot_ids=ids,
        row_count=first.row_count + second.row_count,
        file_count=first.file_count + second.file_count,
        attempts=first.attempts + second.attempts,
        dropped_compaction=second.dropped_compaction,
        dropped_buckets=second.dropped_buckets,
    )
