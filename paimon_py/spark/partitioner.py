"""Rows sent to the task that writes them: all rows of a partition and bucket come to one task.

The number of the task is computed in columns by the table's own hash, and Spark is given the number that its hash sends
there; see `places`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.distributed import RowRouting
from paimon_py.spark.jobs import TellingErrors, map_batches
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, Parcels, work_parcel

if TYPE_CHECKING:
    from paimon_py.types import TableSchema

_AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"


def send_to_tasks(
    df: DataFrame, schema: TableSchema, target: pa.Schema, tasks: int, job: str, *,
    work: Sequence[tuple[int, bytes]] = (),
) -> DataFrame:  # fmt: skip
    """The rows of `df` in parcels, each with the task that it was sent to.

    Args:
        target: the columns of `df` by the names and types that the table knows them by; of those that the table has
            not, the types matter alone.
        job: the job that the rows are placed for.
        work: what else travels, each to the task of a number; see `parcels.opened`.
    """
    number = RowRouting(schema, target, tasks)
    at_once = int(df.sparkSession.conf.get(_AT_ONCE, None) or 10_000)
    parcels = Parcels(target, number, np.array(places(tasks), np.int32), at_once)
    rows = map_batches(df, TellingErrors(parcels, job), PARCEL_SQL, job)
    if work:
        homes = places(tasks)
        beside = [(homes[task], work_parcel(number, data)) for number, (task, data) in enumerate(work)]
        rows = rows.union(df.sparkSession.createDataFrame(beside, PARCEL_SQL))
    return rows.repartition(tasks, "task")
