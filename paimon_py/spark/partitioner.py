"""Which of Spark's tasks writes a row: all rows of a partition and bucket come to one task.

The number of the task is computed in columns by the table's own hash, and Spark is given the number that its hash sends
there; see `places`.

Source: Java `ChannelComputer`, `RowAssignerChannelComputer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from paimon_py.codec.binary_row.hash import hash_row
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.codec.columns import numpy_values
from paimon_py.spark.jobs import TellingErrors, map_batches
from paimon_py.spark.places import places
from paimon_py.spark.shuffle import PARCEL_SQL, Parcels, work_parcel
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.write.align import Alignment
from paimon_py.write.dynamic import writer_numbers
from paimon_py.write.route import partition_codes

if TYPE_CHECKING:
    from paimon_py.types import Field, TableSchema

Numbers = npt.NDArray[Any]

_OPTIONS = ("bucket", "dynamic-bucket")
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
    number = _Number(schema, target, tasks)
    at_once = int(df.sparkSession.conf.get(_AT_ONCE, None) or 10_000)
    parcels = Parcels(target, number, np.array(places(tasks), np.int32), at_once)
    rows = map_batches(df, TellingErrors(parcels, job), PARCEL_SQL, job)
    if work:
        homes = places(tasks)
        beside = [(homes[task], work_parcel(number, data)) for number, (task, data) in enumerate(work)]
        rows = rows.union(df.sparkSession.createDataFrame(beside, PARCEL_SQL))
    return rows.repartition(tasks, "task")


def tasks_of(schema: TableSchema, wanted: int) -> int:
    """How many tasks write: `wanted`, but no more than there can be buckets.

    Rows whose keys move between partitions are written by one task, since a writer has to know where all keys are.
    """
    mode = bucket_mode(schema)
    if mode is BucketMode.CROSS_PARTITION:
        return 1
    if mode is BucketMode.FIXED and not schema.partition_keys:
        return min(wanted, int(Options(schema.options).get_int("bucket")))
    return wanted


class TaskNumbers:
    """The task of each partition and bucket, and of each row. `schema`: of the columns that say the bucket alone."""

    def __init__(self, schema: TableSchema, tasks: int) -> None:
        keys = {*schema.partition_keys, *schema.primary_keys, *schema.bucket_keys}
        options = {name: text for name, text in schema.options.items() if name.startswith(_OPTIONS)}
        fields = tuple(_loose(field) for field in schema.fields if field.name in keys)
        self.schema = msgspec.structs.replace(schema, fields=fields, options=options)
        self.tasks = tasks

    def of_bucket(self, partition: bytes, bucket: int) -> int:
        """The task of a bucket."""
        return (abs(int(np.fmod(hash_row(partition), self.tasks))) + bucket) % self.tasks

    def of_rows(self, batch: pa.RecordBatch) -> Numbers:
        """The task of each row of these columns."""
        if bucket_mode(self.schema) is BucketMode.DYNAMIC:
            return numpy_values(writer_numbers(self.schema, batch, self.tasks))
        rows = Alignment(self.schema, batch.schema).apply(batch).batch
        codes, partitions = partition_codes(rows, self.schema.partition_fields)
        starts = np.array([self.of_bucket(one, 0) for one in partitions], np.int64)
        own = starts[0] if codes is None else starts[codes]
        return (own + self._buckets(rows)) % self.tasks

    def _buckets(self, rows: pa.RecordBatch) -> Numbers:
        options = Options(self.schema.options)
        fields = [self.schema.field(name) for name in self.schema.bucket_keys]
        return bucket_numbers(
            [rows.column(field.name) for field in fields], [field.type for field in fields],
            options.get_int("bucket"), options.get_enum("bucket-function.type"),
        )  # fmt: skip


def _loose(field: Field) -> Field:
    """A column that may be NULL: whoever takes the row says whether that is right."""
    return msgspec.structs.replace(field, type=msgspec.structs.replace(field.type, nullable=True), default=None)


class _Number:
    """Runs on an executor: rows in, the number of the task of each out."""

    def __init__(self, schema: TableSchema, target: pa.Schema, tasks: int) -> None:
        self.slots = TaskNumbers(schema, tasks)
        self.columns = [at for at, name in enumerate(target.names) if name in self.slots.schema.names]
        self.names = [target.names[at] for at in self.columns]

    def __call__(self, rows: pa.RecordBatch) -> Numbers:
        if self.slots.tasks == 1:
            return np.zeros(rows.num_rows, np.int64)
        own = [rows.column(at) for at in self.columns]
        return self.slots.of_rows(pa.RecordBatch.from_arrays(own, names=self.names)).astype(np.int64)
