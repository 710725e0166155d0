"""Writes into dynamic buckets with two shuffles: by key to assign buckets, then by bucket to write.

Both are one query, so that Spark runs the query of the rows once. If an executor is lost after its buckets were read,
Spark assigns its rows again, perhaps to other buckets: then everything is written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.distributed import AssignedPart, AssignPart, DistributedWrite, assigned_changes
from paimon_py.errors import ResourceError
from paimon_py.spark.jobs import ErrorEncoder, Failed, Results, gather, map_batches
from paimon_py.spark.partitioner import rows_at_once
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, contents, open_parcels, parcel

if TYPE_CHECKING:
    from paimon_py import Changes

_KIND_BYTES = 4
_ROUNDS = 3


def write_assigned(
    writing: DistributedWrite, parcels: DataFrame, target: pa.Schema, count: int, job: str
) -> list[Changes]:
    """Write rows with `count` tasks in each step; returns the changes to commit.

    Args:
        parcels: what `send_to_tasks` returned.
        job: the job that the rows belong to.

    Raises: ResourceError if executors were lost in every round; nothing is left then.
    """
    first, second = writing.steps(target, count)
    step = ErrorEncoder(_AssignAndSend(first, rows_at_once(parcels.sparkSession)), job)
    sent = map_batches(parcels, step, PARCEL_SQL, job).repartition(count, "task")
    for _ in range(_ROUNDS):
        try:
            done = gather(sent, _WriteAssigned(second), job)
        except Failed as failed:
            writing.discard(assigned_changes(failed.done)[0])
            raise failed.error from None
        changes, fit = assigned_changes(done)
        if fit:
            return changes
        writing.discard(changes)
    raise ResourceError(
        f"nothing was written: in {_ROUNDS} rounds executors were lost while others already wrote the rows that they "
        "had assigned to buckets; find out why executors die, and write the rows again"
    )


class _AssignAndSend:
    """Runs on an executor: takes parcels of rows, returns parcels for the tasks that write their buckets."""

    def __init__(self, part: AssignPart, at_once: int) -> None:
        self.part = part
        self.at_once = at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        homes = places(self.part.processes)
        numbers = {place: number for number, place in enumerate(homes)}
        rows = ((numbers[place], rows) for place, rows in open_parcels(batches, self.part.target))
        for one in self.part(rows):
            yield parcel(homes[one.process], one.kind + one.data, self.at_once)


class _WriteAssigned:
    """Runs on an executor: takes parcels of the first step, returns what was written."""

    def __init__(self, part: AssignedPart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part(
            (data[:_KIND_BYTES].to_pybytes(), data[_KIND_BYTES:].to_pybytes()) for _, data in contents(batches)
        )
