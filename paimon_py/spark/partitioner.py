"""Sends rows to the task that writes them: all rows of a partition and bucket go to one task.

The number of the task is computed column by column with the table's own hash, and Spark gets a number that its hash
maps to that task; see `places`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py.distributed import RowRouting
from paimon_py.spark.entry import Work
from paimon_py.spark.jobs import ErrorEncoder, map_batches
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, Copies, Parcels, work_parcel

if TYPE_CHECKING:
    from paimon_py.types import TableSchema

_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"


def send_to_tasks(
    df: DataFrame, schema: TableSchema, target: pa.Schema, tasks: int, job: str, *,
    work: Sequence[tuple[int, bytes]] = (),
) -> DataFrame:  # fmt: skip
    """The rows of `df` in parcels, each with the task to which it was sent.

    Args:
        target: the columns of `df` with their names and types in the table; of columns that the table does not have,
            only the types are used.
        job: the job that the rows belong to.
        work: other work to send, each item with the number of its task; see `shuffle.open_parcels`.
    """
    number = RowRouting(schema, target, tasks)
    parcels = Parcels(target, number, np.array(places(tasks), np.int32), rows_at_once(df.sparkSession))
    return send(df, parcels, tasks, job, work)


def copy_to_tasks(
    df: DataFrame, target: pa.Schema, tasks: int, job: str, *, work: Sequence[tuple[int, bytes]]
) -> DataFrame:
    """All rows of `df` in parcels for every task. Args: as for `send_to_tasks`"""
    copies = Copies(target, np.array(places(tasks), np.int32), rows_at_once(df.sparkSession))
    return send(df, copies, tasks, job, work)


def rows_at_once(spark: SparkSession) -> int:
    """The number of rows in the batches that Spark passes to Python."""
    return int(spark.conf.get(_AT_ONCE, None) or 10_000)


def send(df: DataFrame, pack: Work, tasks: int, job: str, work: Sequence[tuple[int, bytes]] = ()) -> DataFrame:
    """The parcels that `pack` makes of `df`, and other work, each in its task. Args: as for `send_to_tasks`"""
    rows = map_batches(df, ErrorEncoder(pack, job), PARCEL_SQL, job)
    if work:
        homes = places(tasks)
        beside = [(homes[task], work_parcel(number, data)) for number, (task, data) in enumerate(work)]
        rows = rows.union(df.sparkSession.createDataFrame(beside, PARCEL_SQL))
    return rows.repartition(tasks, "task")
