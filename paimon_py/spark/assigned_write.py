"""Writes and merges into dynamic buckets with two shuffles: by key to assign buckets, then by bucket to write.

Both are one query, so that Spark runs the query of the rows once. If an executor is lost after its buckets were read,
Spark assigns its rows again, perhaps to other buckets: then everything is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.distributed import (
    AssignedMergePart,
    AssignedPart,
    AssignPart,
    DistributedMerge,
    DistributedWrite,
    assigned_changes,
    assigned_rows,
)
from paimon_py.errors import ResourceError
from paimon_py.spark.jobs import Failed, Results, gather
from paimon_py.spark.partitioner import rows_at_once, send
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import contents, open_parcels, other_work, parcel

if TYPE_CHECKING:
    from paimon_py import Changes

_KIND_BYTES = 4
_ROUNDS = 3

Made = TypeVar("Made", "Changes", bytes)


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
    sent = send(parcels, _AssignAndSend(first, rows_at_once(parcels.sparkSession)), count, job)
    return in_rounds(lambda: gather(sent, _WriteAssigned(second), job), assigned_changes, writing.discard)


def merge_assigned(
    merging: DistributedMerge, part: AssignedMergePart, parcels: DataFrame, work: Sequence[tuple[int, bytes]], job: str
) -> list[bytes]:
    """Merge rows with as many tasks in each step; returns the results of `MergePart`.

    Args:
        parcels, job: as for `write_assigned`.
        work: the splits, each with the number of the task of its bucket.

    Raises: as `write_assigned`
    """
    first = part.first
    sent = send(parcels, _AssignAndSend(first, rows_at_once(parcels.sparkSession)), first.processes, job, work)
    return in_rounds(lambda: gather(sent, _MergeAssigned(part), job), assigned_rows, merging.discard)


def in_rounds(
    run: Callable[[], list[bytes]], join: Callable[[list[bytes]], tuple[list[Made], bool]],
    discard: Callable[[list[Made]], None],
) -> list[Made]:  # fmt: skip
    """Run both steps until their results fit together."""
    for _ in range(_ROUNDS):
        try:
            done = run()
        except Failed as failed:
            discard(join(failed.done)[0])
            raise failed.error from None
        results, fit = join(done)
        if fit:
            return results
        discard(results)
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
        return self.part(_messages(batches, []))


class _MergeAssigned:
    """Runs on an executor: takes parcels of the first step and splits, returns what was written."""

    def __init__(self, part: AssignedMergePart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        work: list[tuple[int, bytes]] = []
        return self.part(_messages(batches, work), work)


def _messages(batches: Iterable[pa.RecordBatch], work: list[tuple[int, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """The messages of the first step; `work` receives the other work."""
    for _, data in contents(batches):
        other = other_work(data)
        if other is None:
            yield data[:_KIND_BYTES].to_pybytes(), data[_KIND_BYTES:].to_pybytes()
        else:
            work.append(other)
