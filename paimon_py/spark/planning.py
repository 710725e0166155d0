"""Plans large scans on executors: manifests → entries, by share → splits → the tasks that read them.

The first job plans, and returns the sizes of all shares, and the splits if they are few. If they are many, the driver
never receives them: the query of the DataFrame makes the same plan again, and sends the splits to the tasks that read
them, whose number and sizes follow from the first job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Union

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py.distributed import DistributedPlan, ManifestsPart, SharesPart
from paimon_py.spark.compression import compress
from paimon_py.spark.jobs import ErrorEncoder, Failed, gather, map_batches, new_job
from paimon_py.spark.places import places
from paimon_py.spark.split_groups import TaskRules, share_splits, weight_of
from paimon_py.spark.task_rows import WORK_SQL, Handle, TaskFunction, read_rows, send_work, work_row
from paimon_py.types import Split

if TYPE_CHECKING:
    from paimon_py.spark.entry import Work

_RETURNED = 1_000
"""The number of splits of a share that the driver receives, about 150 kB."""
_TASKS_MAX = 10_000
"""The maximum number of tasks that read splits which the driver does not receive."""

Made = TypeVar("Made")


class _Share(msgspec.Struct, frozen=True, array_like=True):
    """The size of a share as Spark counts it, and its splits; None if they are many."""

    number: int
    size_bytes: int
    splits: Union[list[bytes], None]


class LargePlan(NamedTuple):
    """A plan whose splits stay on the executors. `sizes`: of all shares."""

    plan: DistributedPlan
    sizes: tuple[int, ...]
    rules: TaskRules

    def send(self, spark: SparkSession, handle: Handle[Made]) -> tuple[DataFrame, TaskFunction[Made]]:
        """A DataFrame that plans, and sends the splits to tasks, and the function to run on it; see `send_work`."""
        total = sum(self.sizes)
        limit = max(self.rules.limit(total), -(-total // _TASKS_MAX))
        tasks = max(1, -(-total // limit))
        firsts = [start // limit for start in accumulate(self.sizes, initial=0)]
        group = _GroupSplits(self.plan.shares(), self.plan.share_count, self.rules.opening, limit, firsts, tasks)
        rows = map_batches(_entries(spark, self.plan, None), group, WORK_SQL)
        return rows.repartition(tasks, "task"), read_rows(handle)


def plan_on_executors(spark: SparkSession, plan: DistributedPlan) -> list[Split] | LargePlan:
    """The splits of a scan, planned on the executors, or the plan that makes them there if they are many.

    Cost: a job with a shuffle of the entries that the scan needs. Memory: that of the splits, if they are returned.
    Raises: as `Scan.splits`
    """
    rules, job = TaskRules.of(spark), new_job()
    measure = _MeasureShares(plan.shares(), plan.share_count, rules.opening, _RETURNED)
    try:
        found = gather(_entries(spark, plan, job), measure, job)
    except Failed as failed:
        raise failed.error from None
    shares = {share.number: share for share in (msgspec.msgpack.decode(one, type=_Share) for one in found)}
    if any(share.splits is None for share in shares.values()):
        sizes = (shares[number].size_bytes if number in shares else 0 for number in range(plan.share_count))
        return LargePlan(plan, tuple(sizes), rules)
    return [Split.from_bytes(one) for number in sorted(shares) for one in shares[number].splits or ()]


def _entries(spark: SparkSession, plan: DistributedPlan, job: str | None) -> DataFrame:
    """The entries that the scan needs, each in the task of its share."""
    frame, work = send_work(spark, plan.work, _SendEntries(plan.manifests(), plan.share_count))
    read: Work = work if job is None else ErrorEncoder(work, job)
    return map_batches(frame, read, WORK_SQL, job).repartition(plan.share_count, "task")


class _SendEntries:
    """Runs on an executor: reads manifests, returns entries as rows for the tasks of their shares."""

    def __init__(self, part: ManifestsPart, count: int) -> None:
        self.part = part
        self.count = count

    def __call__(self, items: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        homes = places(self.count)
        for one in self.part(items):
            yield work_row(homes[one.process], one.data)


class _MeasureShares:
    """Runs on an executor: plans shares, returns their sizes, and their splits if they are at most `returned`."""

    def __init__(self, part: SharesPart, count: int, opening: int, returned: int) -> None:
        self.part = part
        self.count = count
        self.opening = opening
        self.returned = returned

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        for number, splits in self.part(_entries_sent(batches, self.count)):
            size = sum(weight_of(split, self.opening) for split in splits)
            returned = list(map(bytes, splits)) if len(splits) <= self.returned else None
            yield msgspec.msgpack.encode(_Share(number, size, returned))


class _GroupSplits:
    """Runs on an executor: plans shares, returns groups of splits as rows for the tasks that read them.

    Args:
        opening, limit: what opening a file counts, and the size of a group, in bytes.
        firsts: the number of the first group of each share, counted over all shares.
        tasks: the number of tasks that read.
    """

    def __init__(
        self, part: SharesPart, count: int, opening: int, limit: int, firsts: list[int], tasks: int
    ) -> None:
        self.part = part
        self.count = count
        self.opening = opening
        self.limit = limit
        self.firsts = firsts
        self.tasks = tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        homes = places(self.tasks)
        for number, splits in self.part(_entries_sent(batches, self.count)):
            sizes = [weight_of(split, self.opening) for split in splits]
            groups = share_splits(map(bytes, splits), sizes, self.limit)
            for place, group in enumerate(groups, self.firsts[number]):
                yield work_row(homes[place % self.tasks], compress(msgspec.msgpack.encode(group)))


def _entries_sent(batches: Iterable[pa.RecordBatch], count: int) -> Iterator[tuple[int, bytes]]:
    """The entries sent to shares, each with the number of its share."""
    numbers = {place: number for number, place in enumerate(places(count))}
    for batch in batches:
        for place, data in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            yield numbers[place], data.as_py()
