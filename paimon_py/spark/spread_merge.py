"""Merges whose source rows may match rows of any file: every task gets all rows of the source, and its own files.

A second shuffle decides which source rows are new, if the merge inserts rows. If one task must write all rows of a key,
a third one sends the rows to the tasks of their buckets, or to those that assign buckets, and then a fourth one. All
steps are one query, so that Spark runs the query of the source once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.distributed import (
    AssignedBucketsPart,
    AssignRowsPart,
    BucketsPart,
    ChangePart,
    DistributedMerge,
    InsertPart,
    MergePart,
    NewRowsPart,
    assigned_rows,
)
from paimon_py.spark.assigned_write import in_rounds
from paimon_py.spark.jobs import ErrorEncoder, Failed, Results, gather, map_batches
from paimon_py.spark.partitioner import copy_to_tasks, rows_at_once, send
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, contents, open_parcels, parcel

if TYPE_CHECKING:
    from paimon_py.distributed import Sent
    from paimon_py.types import Split

_KIND_BYTES = 4
Message = tuple[int, bytes, bytes]
"""The number of the task to which it was sent, the kind, and the bytes."""


class SpreadMerge:
    """Runs the parts of a merge on executors; a `Gather` of `DistributedMerge.run`.

    Args:
        source: the rows, with numbers as names.
        job: the job that the rows belong to.
        tasks: the number of tasks; None: by the size of the files, at most `most`.
    """

    def __init__(
        self, merging: DistributedMerge, source: DataFrame, job: str, *, tasks: int | None, most: int
    ) -> None:
        self._merging = merging
        self._source = source
        self._job = job
        self._tasks = tasks
        self._most = most

    def __call__(self, part: MergePart, splits: Sequence[Split]) -> list[bytes]:
        shares = self._merging.divide(splits, self._tasks, self._most)
        try:
            if self._merging.inserts and len(shares) > 1:
                return self._in_steps(part, shares)
            work = [(task, bytes(split)) for task, share in enumerate(shares) for split in share]
            rows = copy_to_tasks(self._source, part.target, len(shares), self._job, work=work)
            return gather(rows, MergeRows(part), self._job)
        except Failed as failed:
            self._merging.discard(failed.done)
            raise failed.error from None

    def _in_steps(self, part: MergePart, shares: Sequence[Sequence[Split]]) -> list[bytes]:
        count, job, merging = len(shares), self._job, self._merging
        change = ChangePart(part, count)
        work = [(task, change.work(task, share)) for task, share in enumerate(shares)]
        rows = copy_to_tasks(self._source, part.target, count, job, work=work)
        at_once = rows_at_once(rows.sparkSession)
        step = ErrorEncoder(_ChangeAndSend(change, at_once), job)
        sent = map_batches(rows, step, PARCEL_SQL, job).repartition(count, "task")
        if not merging.writes_apart:
            return gather(sent, _LastStep(InsertPart(part, count), count), job)
        sent = send(sent, _MiddleStep(NewRowsPart(part, count), count, at_once), count, job)
        if not merging.assigns_apart:
            return gather(sent, _LastStep(BucketsPart(part, count), count), job)
        sent = send(sent, _MiddleStep(AssignRowsPart(part, count), count, at_once), count, job)
        last = _LastStep(AssignedBucketsPart(part, count), count)
        return in_rounds(lambda: gather(sent, last, job), assigned_rows, merging.discard)


class MergeRows:
    """Runs on an executor: takes parcels with splits and source rows, returns what was written."""

    def __init__(self, part: MergePart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        work: list[tuple[int, bytes]] = []
        return self.part((rows for _, rows in open_parcels(batches, self.part.target, work)), work)


class _ChangeAndSend:
    """Runs on an executor: takes parcels with splits and all source rows, returns parcels for the second step."""

    def __init__(self, part: ChangePart, at_once: int) -> None:
        self.part = part
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        work: list[tuple[int, bytes]] = []
        rows = (rows for _, rows in open_parcels(batches, self.part.part.target, work))
        homes = places(self.part.shares.processes)
        for one in self.part(rows, work):
            yield parcel(homes[one.process], one.kind + one.data, self.at_once)


class _MiddleStep:
    """Runs on an executor: takes parcels of the step before, returns parcels for the next one."""

    def __init__(self, part: Callable[[Iterator[Message]], Iterator[Sent]], count: int, at_once: int) -> None:
        self.part = part
        self.count = count
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        homes = places(self.count)
        for one in self.part(_messages(batches, self.count)):
            yield parcel(homes[one.process], one.kind + one.data, self.at_once)


class _LastStep:
    """Runs on an executor: takes parcels of the step before, returns the results of all steps."""

    def __init__(self, part: Callable[[Iterator[Message]], Results], count: int) -> None:
        self.part = part
        self.count = count

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part(_messages(batches, self.count))


def _messages(batches: Iterable[pa.RecordBatch], processes: int) -> Iterator[Message]:
    """The messages to this step: the number of the process, the kind, and the bytes."""
    numbers = {place: number for number, place in enumerate(places(processes))}
    for place, data in contents(batches):
        yield numbers[place], data[:_KIND_BYTES].to_pybytes(), data[_KIND_BYTES:].to_pybytes()
