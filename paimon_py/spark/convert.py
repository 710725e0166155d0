"""Converts scans and Arrow streams to DataFrames, and back: `convert_to_spark` and `convert_from_spark`."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py import Predicate, Scan, Step, Table
from paimon_py.distributed import DistributedPlan, condition_of, row_bytes, with_meaning
from paimon_py.errors import UsageError
from paimon_py.spark.jobs import ErrorEncoder, map_batches, new_job, translate_errors
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.planning import LargePlan, plan_on_executors
from paimon_py.spark.session import session
from paimon_py.spark.split_groups import shares
from paimon_py.spark.task_rows import send_work
from paimon_py.spark.types import arrow_schema, spark_schemas
from paimon_py.types import MetadataTable, Split, SystemTable

_ROWS_PER_BATCH = 65_536
_BLOB_BYTES = 16 << 20


def frame_of(
    source: object, spark: SparkSession | None, *, where: Predicate | str | None = None, truncate_nanos: bool
) -> DataFrame:
    """See `convert_to_spark`."""
    if isinstance(source, (Table, SystemTable, MetadataTable)):
        whole = source.scan()
        meant = None if where is None else Meaning.of(session(spark)).condition_on(where, whole.schema)
        source = whole if meant is None else source.scan(where=meant)
    elif where is not None:
        raise UsageError("where= is for a table: pass the condition to the scan or stream instead")
    elif isinstance(source, Scan):
        source = with_meaning(source, Meaning.of(session(spark)).condition)
    elif isinstance(source, Step):
        _require_plain(source, Meaning.of(session(spark)))
    if isinstance(source, Step) or (isinstance(source, Scan) and not source.is_ordered):
        return _scan_to_spark(source, session(spark), truncate_nanos)
    if hasattr(source, "__arrow_c_stream__"):
        return _stream_to_spark(pa.RecordBatchReader.from_stream(source), session(spark), truncate_nanos)
    raise UsageError(
        "convert_to_spark takes a scan, a table, a step of a stream or an Arrow stream (pyarrow, polars, DuckDB), "
        f"not {type(source).__name__}"
    )


def _require_plain(step: Step, meaning: Meaning) -> None:
    """Refuse a step whose rows were selected by a condition that has another meaning in Spark.

    Raises: UsageError
    """
    where, fields = condition_of(step)
    if where is not None and meaning.condition(where, fields) != where:
        raise UsageError(
            f"the stream's condition {where} chooses other rows in this session of Spark: write times with their zone "
            "(TIMESTAMP '2024-07-01 00:00:00Z') and names as they are, or filter the DataFrame"
        )


def reader_of(df: DataFrame) -> pa.RecordBatchReader:
    """See `convert_from_spark`."""
    kind = getattr(df, "schema", None)
    if not hasattr(df, "mapInArrow") or kind is None:
        raise UsageError(f"convert_from_spark takes a DataFrame of Spark, not {type(df).__name__}")
    schema = arrow_schema(kind)
    numbered = df.toDF(*map(str, range(len(schema))))  # mapInArrow cannot find columns with dots in their names
    job = new_job()
    blobs = map_batches(numbered, ErrorEncoder(_Serialise(schema), job), "data binary", job).toLocalIterator()
    return pa.RecordBatchReader.from_batches(schema, _batches(blobs, job))


def _batches(blobs: Iterable[object], job: str) -> Iterator[pa.RecordBatch]:
    with translate_errors(job):
        for row in blobs:
            with pa.ipc.open_stream(pa.py_buffer(bytes(row[0]))) as reader:  # type: ignore[index]
                yield from reader


def _scan_to_spark(scan: Scan | Step, spark: SparkSession, truncate_nanos: bool) -> DataFrame:
    target, spark_schema = spark_schemas(scan.schema, spark)
    read, limit = _ReadSplits(scan, target, truncate_nanos), None if isinstance(scan, Step) else scan.limit
    planned = _plan(scan, spark)
    if isinstance(planned, LargePlan):
        frame, work = planned.send(spark, read)
    else:
        first = list(itertools.islice(planned, 2))
        if not first:
            return spark.createDataFrame([], spark_schema)
        items = map(msgspec.msgpack.encode, shares(spark, itertools.chain(first, planned)))
        frame, work = send_work(spark, items, read)
        limit = None if len(first) == 1 else limit
    df = map_batches(frame, work, spark_schema)
    return df if limit is None else df.limit(limit)


def _plan(scan: Scan | Step, spark: SparkSession) -> Iterator[Split] | LargePlan:
    """The splits, or the plan that makes them on the executors."""
    if isinstance(scan, Step):
        return iter(scan.splits())
    plan = DistributedPlan.of(scan)
    if plan is None:
        return scan.iter_splits()
    planned = plan_on_executors(spark, plan)
    return planned if isinstance(planned, LargePlan) else iter(planned)


def _stream_to_spark(reader: pa.RecordBatchReader, spark: SparkSession, truncate_nanos: bool) -> DataFrame:
    target, spark_schema = spark_schemas(reader.schema, spark)
    blobs = [(blob,) for blob in _blobs(reader, target, truncate_nanos)]
    if not blobs:
        return spark.createDataFrame([], spark_schema)
    return map_batches(spark.createDataFrame(blobs, "data binary"), _deserialise, spark_schema)


def _blobs(reader: pa.RecordBatchReader, target: pa.Schema, truncate_nanos: bool) -> Iterator[bytearray]:
    rest: list[pa.RecordBatch] = []
    for batch in reader:
        rest += fit(batch, target, truncate_nanos)
        if sum(row_bytes(part) for part in rest) >= _BLOB_BYTES:
            yield _blob(rest, target)
            rest = []
    if rest:
        yield _blob(rest, target)


def _blob(batches: list[pa.RecordBatch], schema: pa.Schema) -> bytearray:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytearray(sink.getvalue())


def _deserialise(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column(0):
            with pa.ipc.open_stream(blob.as_buffer()) as reader:
                yield from reader


def fit(batch: pa.RecordBatch, target: pa.Schema, truncate_nanos: bool) -> list[pa.RecordBatch]:
    """The rows of `batch` in exactly the types of `target`, in batches of a size that suits Spark.

    Raises:
        UsageError: a timestamp has digits below the microsecond and may not be cut.
    """
    table = pa.Table.from_batches([batch])
    columns = [_fit_column(table.column(i), field, truncate_nanos) for i, field in enumerate(target)]
    fitted = pa.Table.from_arrays(columns, schema=target)
    return list(fitted.to_batches(max_chunksize=_ROWS_PER_BATCH))


def _fit_column(column: pa.ChunkedArray, field: pa.Field, truncate_nanos: bool) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    if pa.types.is_time(column.type) and pa.types.is_integer(field.type):
        return column.cast(pa.time32("ms")).cast(pa.int32())
    try:
        return column.cast(field.type, safe=not truncate_nanos)
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"column {field.name!r} ({column.type}) has values that Spark's {field.type} cannot hold: {error}; "
            "pass truncate_nanos=True to cut timestamps to microseconds"
        ) from error


class _ReadSplits:
    """Runs on an executor: reads splits, returns their rows."""

    def __init__(self, scan: Scan | Step, target: pa.Schema, truncate_nanos: bool) -> None:
        self.scan = scan
        self.target = target
        self.truncate_nanos = truncate_nanos

    def __call__(self, items: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
        for item in items:
            for split in msgspec.msgpack.decode(item, type=list[bytes]):
                for part in self.scan.read(split):
                    yield from fit(part, self.target, self.truncate_nanos)


class _Serialise:
    """Runs on an executor: serializes each batch as an Arrow IPC stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            blob = _blob(fit(batch, self.schema, False), self.schema)
            yield pa.RecordBatch.from_arrays([pa.array([bytes(blob)], pa.binary())], ["data"])
