"""Care for tables whose work is done on the executors: planned and published on the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Union

from pyspark.sql import SparkSession

from paimon_py import CommitResult, CompactionProgress, CompactionTask, Predicate, Table
from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.uncommitted import delete_compaction
from paimon_py.compaction.compact import Overtaken
from paimon_py.errors import SnapshotExpiredError, UsageError
from paimon_py.maintain.compact_table import compact_table
from paimon_py.metadata.bucket_files import TableFiles
from paimon_py.spark.jobs import Failed, run_tasks
from paimon_py.spark.session import session

Carried = Union[BucketChanges, Overtaken]


def require_table(table: object, verb: str) -> Table:
    """The table that a verb is asked for.

    Raises: UsageError for anything else.
    """
    if not isinstance(table, Table):
        raise UsageError(f"{verb} takes a Table, not {type(table).__name__}")
    return table


def compact(
    table: Table, spark: SparkSession | None, *, full: bool, partitions: Sequence[Mapping[str, object]] | None,
    where: Predicate | str | None, order_by: Sequence[str] | None, strategy: str | None,
    progress: Callable[[CompactionProgress], object] | None,
) -> CommitResult:  # fmt: skip
    """See `compact_spark`."""
    require_table(table, "compact_spark")

    def carry(tasks: Sequence[CompactionTask]) -> list[Carried]:
        try:
            return [pickle.loads(one) for one in run_tasks(session(spark), list(map(bytes, tasks)), _Compact(table))]
        except Failed as failed:
            files = TableFiles(table._root, table.schema)
            for one in map(pickle.loads, failed.done):
                if isinstance(one, BucketChanges):
                    delete_compaction(files, one)
            raise failed.error from None

    return compact_table(
        table._root, table.schema, full=full, partitions=partitions, where=where, order_by=order_by,
        strategy=strategy, progress=progress, carry=carry,
    )  # fmt: skip


class _Compact:
    """Runs on an executor: a compaction task in, what came of the task out."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __call__(self, task: bytes) -> bytes:
        given = CompactionTask.from_bytes(task)
        try:
            (done,) = self.table.run_compaction(given).buckets
        except SnapshotExpiredError as error:
            return pickle.dumps(Overtaken(given.partition, given.bucket, str(error)))
        return pickle.dumps(done)
