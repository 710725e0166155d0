"""Plans a scan by the tasks of an executor: some read manifests and prune entries, others make splits of a share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
import zstandard

from paimon_py.executors.executor import Executor, require_executor, run_in_batches
from paimon_py.executors.job import Job, TaskKind
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.part_files import NumberedEntries, PartFile, PartFiles
from paimon_py.scan.plan_shares import (
    PlanShares,
    count_for_limit,
    divide_plan,
    plan_share,
    read_groups,
    share_entries,
)
from paimon_py.scan.plan_snapshot import SnapshotPlanner, first_splits
from paimon_py.scan.split import Split
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.options import Options
from paimon_py.spec.serializable import Serializable

if TYPE_CHECKING:
    from paimon_py.scan.scan import Scan

EXECUTOR_MANIFESTS = "scan.plan.executor-manifests"
_TASKS_AT_ONCE = 16
"""The number of tasks per job: the caller holds their results, of about 65,536 entries each, in memory."""
_BLOCK = 512
_SPLITS = msgspec.msgpack.Decoder(list[bytes])


class ManifestsTask(Serializable, frozen=True, kw_only=True):
    """Manifests to read."""

    kind: ClassVar[str] = "manifests"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that reads manifests"
    again: ClassVar[str] = "plan the scan"

    files: tuple[ManifestFile, ...]


class ManifestEntries(Serializable, frozen=True, kw_only=True):
    """The entries of some manifests that a plan needs, by share."""

    kind: ClassVar[str] = "manifestentries"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that reads manifests"
    again: ClassVar[str] = "run the task"

    parts: tuple[NumberedEntries, ...]


class ShareTask(Serializable, frozen=True, kw_only=True):
    """All entries of a share, as manifests in the order of the snapshot."""

    kind: ClassVar[str] = "share"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that plans a share"
    again: ClassVar[str] = "plan the scan"

    manifests: tuple[bytes, ...]


class ShareSplits(Serializable, frozen=True, kw_only=True):
    """The splits of a share. `blocks`: see `pack_splits`."""

    kind: ClassVar[str] = "sharesplits"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that plans a share"
    again: ClassVar[str] = "run the task"

    blocks: tuple[bytes, ...]


class DividedPlan(NamedTuple):
    """A plan that several processes can make. `tasks`: the manifests to read, in order."""

    scan: Scan
    shares: PlanShares
    tasks: tuple[ManifestsTask, ...]


def divided_plan(scan: Scan) -> DividedPlan | None:
    """The division of a scan's plan; None if it is made as a whole.

    That is the plan of fewer manifests than the option `scan.plan.executor-manifests` says, or of a limit for which
    fewer of them are enough, of changes, of several branches, and of rows that wait for their bucket.

    Cost: the manifest lists of the snapshot, and at most two manifests.
    Raises: SnapshotExpiredError, CorruptionError
    """
    planner = planner_of(scan) if scan._takes_shares and "_whole_plan" not in scan.__dict__ else None
    if planner is None or scan.limit == 0:
        return None
    groups = read_groups(planner)
    count = sum(map(len, groups))
    least = Options(scan._table_schema.options).get_int(EXECUTOR_MANIFESTS)
    if not count or count < least or (least and count_for_limit(planner, groups, scan._enough) < least):
        return None
    tasks = tuple(ManifestsTask(files=tuple(group)) for group in groups)
    return DividedPlan(scan, divide_plan(planner, groups), tasks)


def iter_planned(scan: Scan, executor: Executor) -> Iterator[Split]:
    """The splits of a scan, planned by the tasks of an executor if the plan is divided.

    Cost: entries and splits of 16 tasks in memory, those of all tasks on local disk.
    Raises: the error of the first task that failed; UsageError for an object that is not an executor.
    """
    require_executor(executor)
    plan = divided_plan(scan)
    return scan._plan_lazily() if plan is None else first_splits(_by_tasks(plan, executor), scan._enough)


def planner_of(scan: Scan) -> SnapshotPlanner | None:
    """The planner of a scan of one snapshot; None for others, and for an empty table."""
    return scan._planner(scan._table_request)


def pack_splits(splits: Iterable[Split]) -> Iterator[bytes]:
    """Splits in little memory: compressed, 512 in each block; `unpack_splits` returns their bytes.

    Memory: about 150 bytes for each split of one file, whose object has 1,400.
    """
    source = map(bytes, splits)
    while block := list(islice(source, _BLOCK)):
        yield zstandard.ZstdCompressor(level=1).compress(msgspec.msgpack.encode(block))


def unpack_splits(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The splits of `pack_splits` as bytes."""
    for block in blocks:
        yield from _SPLITS.decode(zstandard.ZstdDecompressor().decompress(block))


def _by_tasks(plan: DividedPlan, executor: Executor) -> Iterator[Split]:
    table = OpenTable(plan.scan._root, plan.scan._table_schema)
    parts = PartFiles(table.root.env.spill)
    try:
        files = parts.distribute(_read_by_tasks(plan, Job(READ, table, plan[:2]), executor))
        job = Job(PLAN, table, plan.scan)
        for share in run_in_batches(executor, job, map(_share_task, files), _TASKS_AT_ONCE):
            yield from map(Split.from_bytes, unpack_splits(share.blocks))
    finally:
        parts.delete()


def _read_by_tasks(
    plan: DividedPlan, job: Job[ManifestsTask, ManifestEntries], executor: Executor
) -> Iterator[NumberedEntries]:
    for found in run_in_batches(executor, job, plan.tasks, _TASKS_AT_ONCE):
        yield from found.parts


def _share_task(file: PartFile) -> ShareTask:
    return ShareTask(manifests=tuple(file.manifests()))


def _read(job: Job[ManifestsTask, ManifestEntries], task: ManifestsTask) -> ManifestEntries:
    scan, shares = job.shared
    return ManifestEntries(parts=tuple(entries_of(scan, shares, task)))


def _plan(job: Job[ShareTask, ShareSplits], task: ShareTask) -> ShareSplits:
    return ShareSplits(blocks=tuple(pack_splits(splits_of(job.shared, task.manifests))))


def entries_of(scan: Scan, shares: PlanShares, task: ManifestsTask) -> Iterator[NumberedEntries]:
    """The entries that the task of a divided plan reads. Raises: as `share_entries`"""
    planner = planner_of(scan)
    assert planner is not None
    return share_entries(planner, task.files, shares)


def splits_of(scan: Scan, manifests: Iterable[bytes]) -> tuple[Split, ...]:
    """The splits of a share of a divided plan. Raises: as `plan_share`"""
    planner = planner_of(scan)
    assert planner is not None
    return plan_share(planner, manifests)


READ: TaskKind[Any, Any] = TaskKind(task=ManifestsTask, result=ManifestEntries, run=_read)
PLAN: TaskKind[Any, Any] = TaskKind(task=ShareTask, result=ShareSplits, run=_plan)
