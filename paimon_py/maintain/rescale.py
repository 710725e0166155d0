"""Rewrites partitions with another number of buckets.

Source: format.md §3.3, §7.3; Java `RescaleAction`, `OverwriteChangesProvider`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import msgspec

from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import commit
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.newer_files import require_known
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.rounds import on_latest
from paimon_py.commit.state import State
from paimon_py.commit.uncommitted import discard, discarding_on_failure
from paimon_py.compaction.picker import PickerSettings
from paimon_py.errors import UsageError
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, TaskKind
from paimon_py.files.layout import write_again
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.parallel import Budget
from paimon_py.progress import Progress, ProgressCounter, ProgressShare, count_batches
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.read import read_split
from paimon_py.scan.request import Request
from paimon_py.scan.split import Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.visibility import skips_level_zero
from paimon_py.write.session import Writer
from paimon_py.write.settings import WriterSettings

ROUNDS = 10
"""The maximum number of attempts if other writers keep changing the partitions."""


def check_rescalable(schema: TableSchema, buckets: int) -> None:
    """Refuse tables without a fixed number of buckets, and invalid numbers.

    Raises: UsageError
    """
    if isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1:
        raise UsageError(f"rescale takes a number of buckets, at least 1, not {buckets!r}")
    mode = bucket_mode(schema)
    if mode not in (BucketMode.FIXED, BucketMode.POSTPONED):
        kind = "no buckets" if mode is BucketMode.NONE else "dynamic buckets"
        raise UsageError(f"a table with {kind} ('bucket' = '-1') cannot be rescaled")


class RewriteTask(Serializable, frozen=True, kw_only=True):
    """Splits whose rows go to different buckets from those of other tasks. `buckets`: the new number of buckets."""

    kind: ClassVar[str] = "rewriting"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that rewrites splits"
    again: ClassVar[str] = "ask for tasks"

    splits: tuple[Split, ...]
    buckets: int


def _rewrite(job: Job[RewriteTask, Changes], task: RewriteTask) -> Changes:
    counted = job.tally or ProgressCounter(None, 0, "rows")

    def rewrite(schema: TableSchema) -> Changes:
        table = OpenTable(job.table.root, schema)
        tally = counted if schema is job.table.schema else ProgressCounter(None, 0, "rows")
        with rewriter(table, task.buckets) as writer:
            writer._count_by(tally)
            rewrite_splits(table, task.splits, writer, tally)
            return writer.changes(is_new=True)

    return write_again(job.table.schema, rewrite)


def discard_changes(job: Job[Any, Changes], changes: Changes) -> None:
    """Delete the files of a task's changes that will never be committed."""
    discard(job.table, changes)


REWRITE = TaskKind(
    task=RewriteTask,
    result=Changes,
    run=_rewrite,
    discard=discard_changes,
    steps=lambda task: 2 * sum(split.row_count for split in task.splits),
    budget=Budget(1, lambda _: 1, lambda _: 0, lanes=1),
)


def rescale(
    table: OpenTable, buckets: int, chosen: PartitionChoice | None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> CommitResult:  # fmt: skip
    """Rewrite the partitions that have other numbers of buckets, as one overwrite.

    Postponed rows are not moved.

    Args:
        executor: runs the writing tasks; None: this process.
        progress: called with the rows as they are written; for other processes after each task.

    Cost: reads and writes all rows of these partitions; memory of a scan and a writer.
    Raises:
        CommitConflictError: other writers always wrote to the partitions; nothing was changed.
        UsageError: there are rows that have not been compacted yet, and are therefore not readable, or not in the
            changelog.
    """

    def work(snapshot: Snapshot | None, number: int) -> CommitResult:
        if snapshot is None:
            return CommitResult()
        return _Round(table, buckets, snapshot, chosen).run(executor, progress, number)

    return on_latest(table.root, work, rounds=ROUNDS)


def require_compacted(table: OpenTable, buckets: int, chosen: PartitionChoice | None) -> None:
    """Refuse a table with rows to rescale that a compaction has yet to make visible or to add to the changelog.

    Raises: UsageError
    """
    snapshot = table.root.latest()
    if snapshot is not None:
        _Round(table, buckets, snapshot, chosen).require_compacted()


def rewriter(table: OpenTable, buckets: int) -> Writer:
    """A writer of rows that move to other buckets.

    If readers skip level 0, its rows would be invisible until a compaction, permanently if that failed. If compactions
    write a changelog, they would emit rows again. In both cases the rows are written as one run per bucket, which the
    overwrite adds to the top level.
    """
    in_one_run = _goes_on_top(table.schema)
    of = WriterSettings.in_one_run if in_one_run else WriterSettings.of
    settings = of(table.schema, buckets=buckets, memory=table.root.env.memory)
    return Writer(table, settings.without_changelog, ignore_existing=True)


def rewrite_splits(
    table: OpenTable, splits: Iterable[Split], writer: Writer, tally: ProgressCounter | None = None
) -> None:
    """Write the rows of splits again.

    Raises: the errors of reading and writing
    """
    request = Request(schema=table.schema, columns=table.schema.names).with_references()
    tally = tally or ProgressCounter(None, 0, "rows")
    for split in splits:
        part = ProgressShare(tally, split.row_count)
        for batch in count_batches(read_split(table.root, request, split), part):
            writer.write_rows(batch, None)
        part.end()


def _goes_on_top(schema: TableSchema) -> bool:
    producer = Options(schema.options).get_enum("changelog-producer")
    return skips_level_zero(schema) or producer in ("lookup", "full-compaction")


class _Round:
    """One attempt, on one snapshot."""

    def __init__(self, table: OpenTable, buckets: int, snapshot: Snapshot, chosen: PartitionChoice | None) -> None:
        self._table = table
        self._root = table.root
        self._schema = table.schema
        self._buckets = buckets
        self._snapshot = snapshot
        self._producer = table.options.get_enum("changelog-producer")
        self._on_top = _goes_on_top(table.schema)
        live = self._live(snapshot, chosen)
        self._partitions = sorted({entry.partition for entry in live if entry.total_buckets != buckets})
        self._known = [entry for entry in live if entry.partition in set(self._partitions)]

    def run(self, executor: Executor | None, progress: Progress | None, attempt: int) -> CommitResult:
        if not self._partitions:
            return CommitResult()
        self.require_compacted()
        require_known(self._table, (entry.file for entry in self._known))
        request = Request(schema=self._schema, columns=self._schema.names)
        groups: dict[object, list[Split]] = {}
        for split in self._splits(request):
            apart = math.gcd(split.total_buckets, self._buckets)
            key = None if executor is None else (split.partition, split.bucket % apart)  # None: one local task
            groups.setdefault(key, []).append(split)
        tasks = [RewriteTask(splits=tuple(splits), buckets=self._buckets) for splits in groups.values()]
        rows = sum(split.row_count for task in tasks for split in task.splits)
        tally = ProgressCounter(progress, rows, "rows", steps=2, attempt=attempt)
        job = Job(REWRITE, self._table, tally=tally)
        changes = Changes.concat(run_tasks(executor, job, tasks))
        with discarding_on_failure(lambda: discard_changes(job, changes)):
            return self._commit(changes)

    def require_compacted(self) -> None:
        """Raises: UsageError"""
        if self._on_top and self._waits_for_compaction():
            raise UsageError("there are rows that have not been compacted yet; call compact(full=True), then rescale")

    def _waits_for_compaction(self) -> bool:
        """Whether a compaction has yet to make rows visible, or to add them to the changelog."""
        if self._producer != "full-compaction":
            return any(entry.file.level == 0 for entry in self._known)
        least = PickerSettings.of(Options(self._schema.options)).level_count - 1
        tops: dict[tuple[bytes, int], int] = {}
        for entry in self._known:
            place = (entry.partition, entry.bucket)
            tops[place] = max(tops.get(place, least), entry.file.level)
        return any(entry.file.level < tops[entry.partition, entry.bucket] for entry in self._known)

    def _commit(self, changes: Changes) -> CommitResult:
        changes = msgspec.structs.replace(changes, base=Base.of(self._snapshot), further_bases=())
        request = CommitRequest(
            overwrite=self._exactly,
            check=self._check,
            spares_waiting=True,
            upgrades=self._on_top,
            is_new=True,
            same_rows=True,
        )
        return commit(self._table, changes, request)

    @property
    def _exactly(self) -> PartitionChoice:
        return PartitionChoice.of_rows(self._partitions)

    def _splits(self, request: Request) -> Iterable[Split]:
        wanted = set(self._partitions)
        splits: Sequence[Split] = plan_snapshot(self._root, request, self._snapshot).splits
        return (split for split in splits if split.partition in wanted)

    def _check(self, state: State) -> Conflict | None:
        """Check that the partitions are unchanged."""
        latest = state.latest
        if latest is None or latest == self._snapshot:
            return None
        now = self._live(latest, self._exactly)
        same = {_identity(entry) for entry in now} == {_identity(entry) for entry in self._known}
        same = same and self._index(latest) == self._index(self._snapshot)
        return None if same else Conflict("others wrote to partitions that were being rescaled")

    def _index(self, snapshot: Snapshot) -> set[str]:
        """Names of the index files of the partitions."""
        wanted = set(self._partitions)
        return {entry.name for entry in index_entries(self._root, snapshot) if entry.partition in wanted}

    def _live(self, snapshot: Snapshot, chosen: PartitionChoice | None) -> list[ManifestEntry]:
        live = self._root.manifests.live_entries(snapshot, EntryFilter(partitions=chosen)).entries()
        return [entry for entry in live if entry.bucket != POSTPONE_BUCKET]


def _identity(entry: ManifestEntry) -> tuple[object, ...]:
    return entry.partition, entry.bucket, entry.file.level, entry.file.name
