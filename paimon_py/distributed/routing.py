"""Assigns rows to processes: all rows of a partition and bucket go to one process, as with Java's writers.

Source: Java `ChannelComputer`, `RowAssignerChannelComputer`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row.hash import hash_row
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.codec.columns import Int32s, Ints, numpy_values
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.write.align import Alignment
from paimon_py.write.cross_partition import key_shares
from paimon_py.write.dynamic import writer_numbers
from paimon_py.write.route import Assign, Router, partition_codes

_OPTIONS = ("bucket", "dynamic-bucket")


def writers_of(schema: TableSchema, wanted: int) -> int:
    """The number of processes to which rows are sent: `wanted`, but at most the number of buckets that there may be; 0
    if rows need not be sent.

    Cross-partition upserts use one process, since the writer must know the partition of every key.
    """
    mode = bucket_mode(schema)
    if mode in (BucketMode.NONE, BucketMode.POSTPONED):
        return 0
    if mode is BucketMode.CROSS_PARTITION:
        return 1
    if mode is BucketMode.FIXED and not schema.partition_keys:
        return min(wanted, int(Options(schema.options).get_int("bucket")))
    if mode is BucketMode.DYNAMIC:  # each fills buckets of its own
        most = int(Options(schema.options).get_int("dynamic-bucket.max-buckets"))
        return min(wanted, most) if most > 0 else wanted
    return wanted


class BucketRouting:
    """Assigns each partition and bucket to the number of the process that writes it; each key, if keys move between
    partitions. Can be pickled.
    """

    def __init__(self, schema: TableSchema, processes: int) -> None:
        keys = {*schema.partition_keys, *schema.primary_keys, *schema.bucket_keys}
        options = {name: text for name, text in schema.options.items() if name.startswith(_OPTIONS)}
        fields = tuple(_loose(field) for field in schema.fields if field.name in keys)
        self._schema = msgspec.structs.replace(schema, fields=fields, options=options)
        self.processes = processes

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that determine the partition and bucket of a row."""
        return self._schema.names

    def of_bucket(self, partition: bytes, bucket: int) -> int:
        """The process of a bucket."""
        return (abs(int(np.fmod(hash_row(partition), self.processes))) + bucket) % self.processes

    def of_rows(self, rows: pa.RecordBatch, *, fills_nulls: bool = True) -> Ints:
        """The process of each row.

        Args:
            rows: columns among `names`; the others have their defaults.
            fills_nulls: a NULL becomes the default of its column, as in new rows.
        """
        if bucket_mode(self._schema) is BucketMode.DYNAMIC:
            return numpy_values(writer_numbers(self._schema, rows, self.processes, fills_nulls=fills_nulls))
        rows = Alignment(self._schema, rows.schema, fills_nulls=fills_nulls).apply(rows).batch
        if bucket_mode(self._schema) is BucketMode.CROSS_PARTITION:
            return of_keys(self._schema, [rows.column(name) for name in self._schema.primary_keys], self.processes)
        codes, partitions = partition_codes(rows, self._schema.partition_fields)
        starts = np.array([self.of_bucket(one, 0) for one in partitions], np.int64)
        own = starts[0] if codes is None else starts[codes]
        return np.asarray((own + self._buckets(rows)) % self.processes)

    def assign_rows(self, rows: pa.RecordBatch, assign: Assign, *, fills_nulls: bool = True) -> tuple[Ints, Ints]:
        """The process and the bucket of each row, where `assign` chooses the buckets of keys.

        Args: as for `of_rows`
        """
        own = rows.select([name for name in rows.schema.names if name in self.names])
        keys = Alignment(self._schema, own.schema, fills_nulls=fills_nulls).apply(own).batch
        codes, partitions = partition_codes(keys, self._schema.partition_fields)
        buckets = Router(self._schema, assign=assign).bucket_numbers(keys)
        starts = np.array([self.of_bucket(one, 0) for one in partitions], np.int64)
        own_starts = starts[0] if codes is None else starts[codes]
        return (own_starts + buckets) % self.processes, buckets

    def _buckets(self, rows: pa.RecordBatch) -> Int32s:
        options = Options(self._schema.options)
        fields = [self._schema.field(name) for name in self._schema.bucket_keys]
        return bucket_numbers(
            [rows.column(field.name) for field in fields], [field.type for field in fields],
            options.get_int("bucket"), options.get_enum("bucket-function.type"),
        )  # fmt: skip


def of_keys(schema: TableSchema, keys: Sequence[pa.Array], processes: int) -> Ints:
    """The process of each primary key, in tables whose keys move between partitions."""
    return key_shares(keys, [schema.field(name).type for name in schema.primary_keys], processes)


class RowRouting:
    """Runs in any process: returns for each row the number of the process that writes it. Can be pickled.

    Args:
        target: the columns of the rows with their names and types in the table; of columns that the table does not
            have, only the types are used.
    """

    def __init__(self, schema: TableSchema, target: pa.Schema, processes: int) -> None:
        self._buckets = BucketRouting(schema, processes)
        self._columns = [at for at, name in enumerate(target.names) if name in self._buckets.names]
        self._names = [target.names[at] for at in self._columns]

    def __call__(self, rows: pa.RecordBatch) -> Ints:
        if self._buckets.processes == 1:
            return np.zeros(rows.num_rows, np.int64)
        own = [rows.column(at) for at in self._columns]
        return self._buckets.of_rows(pa.RecordBatch.from_arrays(own, names=self._names)).astype(np.int64)


def _loose(field: Field) -> Field:
    """The column as nullable: the writer of the row checks for NULL."""
    return msgspec.structs.replace(field, type=msgspec.structs.replace(field.type, nullable=True))
