"""Merges whose source rows may match rows of any file: every task gets all rows of the source, and its own files.

A second shuffle decides which source rows are new, if the merge inserts rows. In tables with fixed buckets, a third one
sends all rows to the tasks of their buckets. All steps are one query, so that Spark runs the query of the source once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.distributed import BucketsPart, ChangePart, DistributedMerge, InsertPart, MergePart, NewRowsPart
from paimon_py.spark.jobs import ErrorEncoder, Failed, Results, gather, map_batches
from paimon_py.spark.partitioner import copy_to_tasks, rows_at_once, send
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, contents, open_parcels, parcel

if TYPE_CHECKING:
    from paimon_py.types import Split

_KIND_BYTES = 4


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
                return self._in_two_steps(part, shares)
            work = [(task, bytes(split)) for task, share in enumerate(shares) for split in share]
            rows = copy_to_tasks(self._source, part.target, len(shares), self._job, work=work)
            return gather(rows, MergeRows(part), self._job)
        except Failed as failed:
            self._merging.discard(failed.done)
            raise failed.error from None

    def _in_two_steps(self, part: MergePart, shares: Sequence[Sequence[Split]]) -> list[bytes]:
        count, job = len(shares), self._job
        change, insert = ChangePart(part, count), InsertPart(part, count)
        work = [(task, change.work(task, share)) for task, share in enumerate(shares)]
        rows = copy_to_tasks(self._source, part.target, count, job, work=work)
        step = ErrorEncoder(_ChangeAndSend(change, rows_at_once(rows.sparkSession)), job)
        sent = map_batches(rows, step, PARCEL_SQL, job).repartition(count, "task")
        if not self._merging.writes_apart:
            return gather(sent, _InsertRows(insert), job)
        find = _FindAndSend(NewRowsPart(part, count), rows_at_once(rows.sparkSession))
        return gather(send(sent, find, count, job), _WriteBuckets(BucketsPart(part, count)), job)


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


class _InsertRows:
    """Runs on an executor: takes parcels of the first step, returns their results and what was written."""

    def __init__(self, part: InsertPart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part(_messages(batches, self.part.shares.processes))


class _FindAndSend:
    """Runs on an executor: takes parcels of the first step, returns parcels for the third one."""

    def __init__(self, part: NewRowsPart, at_once: int) -> None:
        self.part = part
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = self.part.shares.processes
        homes = places(count)
        for one in self.part(_messages(batches, count)):
            yield parcel(homes[one.process], one.kind + one.data, self.at_once)


class _WriteBuckets:
    """Runs on an executor: takes parcels of the second step, returns the results of all steps."""

    def __init__(self, part: BucketsPart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part((kind, data) for _, kind, data in _messages(batches, self.part.processes))


def _messages(batches: Iterable[pa.RecordBatch], processes: int) -> Iterator[tuple[int, bytes, bytes]]:
    """What a step sent to this one: the number of the process, the kind, and the bytes."""
    numbers = {place: number for number, place in enumerate(places(processes))}
    for place, data in contents(batches):
        yield numbers[place], data[:_KIND_BYTES].to_pybytes(), data[_KIND_BYTES:].to_pybytes()
