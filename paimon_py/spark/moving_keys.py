"""Writes into tables whose keys move between partitions: each task has the keys and the rows of one share.

The tasks that read the keys of the table and those that read the rows send both with one shuffle, all in one query, so
that Spark runs the query of the rows once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.distributed import DistributedWrite, KeySharePart, KeysPart, RowRouting, Sent
from paimon_py.spark.jobs import ErrorEncoder, Failed, Results, gather, map_batches
from paimon_py.spark.partitioner import rows_at_once
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, Parcels, contents, other_work, parcel, work_parcel

_KIND_BYTES = 4


def write_shares(
    writing: DistributedWrite, rows: DataFrame, routing: RowRouting, target: pa.Schema, count: int, job: str
) -> list[bytes]:
    """Write rows with `count` tasks; returns the changes to commit.

    Args:
        rows: with numbers as names.
        job: the job that the rows belong to.
    """
    steps = writing.key_steps(target, count)
    at_once = rows_at_once(rows.sparkSession)
    pack = Parcels(target, routing, np.array(places(count), np.int32), at_once)
    sent = map_batches(rows, ErrorEncoder(pack, job), PARCEL_SQL, job)
    if steps.work:
        readers = len(steps.work)
        work = [(home, work_parcel(0, data)) for home, data in zip(places(readers), steps.work, strict=True)]
        given = rows.sparkSession.createDataFrame(work, PARCEL_SQL).repartition(readers, "task")
        read = ErrorEncoder(_ReadAndSend(steps.keys, at_once), job)
        sent = sent.union(map_batches(given, read, PARCEL_SQL, job))
    try:
        return gather(sent.repartition(count, "task"), _WriteShare(steps.rows, target), job)
    except Failed as failed:
        writing.discard(failed.done)
        raise failed.error from None


class _ReadAndSend:
    """Runs on an executor: takes parcels with splits, returns parcels with their keys."""

    def __init__(self, part: KeysPart, at_once: int) -> None:
        self.part = part
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        homes = places(self.part.processes)
        for _, held in contents(batches):
            found = other_work(held)
            assert found is not None
            for one in self.part(found[1]):
                yield parcel(homes[one.process], bytes(work_parcel(0, one.kind + one.data)), self.at_once)


class _WriteShare:
    """Runs on an executor: takes parcels with keys and rows, returns what was written."""

    def __init__(self, part: KeySharePart, target: pa.Schema) -> None:
        self.part = part
        self.target = target

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part(self._open(batches))

    def _open(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch] | Sent]:
        numbers = {place: number for number, place in enumerate(places(self.part.processes))}
        for place, held in contents(batches):
            other = other_work(held)
            if other is None:
                yield numbers[place], pa.ipc.read_record_batch(held, self.target)
            else:
                yield Sent(numbers[place], other[1][:_KIND_BYTES], other[1][_KIND_BYTES:])
