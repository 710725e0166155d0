"""The data source, readers and writers for Spark, pickled by their code so that a missing paimon_py is reported.

Classes that are defined inside a function are pickled by their code; their calls are wrapped by `wrap_for_executor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql import types as st
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)  # fmt: skip

from paimon_py.spark.entry import wrap_for_executor
from paimon_py.spark.source import read, stream, write
from paimon_py.spark.source.options import BATCH_WRITES, SINKS

Options = Mapping[str, str]

_ARROW_SINK = getattr(datasource, "DataSourceStreamArrowWriter", None)
_SINK: tuple[Any, ...] = (_ARROW_SINK,) if _ARROW_SINK else (DataSourceStreamWriter, DataSourceArrowWriter)
"""The base class of a sink. Spark 4.0 has no sinks of Arrow batches, and passes batches to all classes like this."""

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

    _STREAM: tuple[Any, ...] = (DataSourceStreamReader, SupportsTriggerAvailableNow)
except ImportError:
    _STREAM = (DataSourceStreamReader,)
"""The base classes of a stream; from 4.2 on Spark supports limits of batches and Trigger.AvailableNow."""

_MANY = 1 << 62
"""The number of rows in a batch: a placeholder for the limits in our options."""


def source_class(name: str) -> type[Any]:
    """The class of the data source with a name."""
    columns, reader_of = wrap_for_executor(read.columns), wrap_for_executor(plan_reader)
    writer_of, sink_of, stream_of = wrap_for_executor(writer), wrap_for_executor(sink), wrap_for_executor(follower)

    class PaimonSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> st.StructType:
            return columns(dict(self.options))

        def reader(self, schema: st.StructType) -> DataSourceReader:
            return reader_of(dict(self.options), schema)

        def streamReader(self, schema: st.StructType) -> DataSourceStreamReader:
            return stream_of(dict(self.options), schema)

        def writer(self, schema: st.StructType, overwrite: bool) -> DataSourceArrowWriter:
            return writer_of(dict(self.options), schema, overwrite)

        def streamWriter(self, schema: st.StructType, overwrite: bool) -> DataSourceStreamWriter:
            return sink_of(dict(self.options), schema, overwrite)

    return PaimonSource


def plan_reader(options: Options, schema: st.StructType) -> DataSourceReader:
    """Runs next to the driver: the reader of a batch read."""
    tasks, of_task = read.plan(options, schema)
    read_splits = wrap_for_executor(of_task)

    class PaimonReader(DataSourceReader):  # type: ignore[misc]
        def partitions(self) -> Sequence[InputPartition]:
            return [InputPartition(task) for task in tasks]

        def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
            task = None if partition is None else partition.value
            return iter(()) if task is None else read_splits(task)  # Spark passes None if there are no partitions

    return PaimonReader()


def follower(options: Options, schema: st.StructType) -> DataSourceStreamReader:
    """Runs next to the driver: the reader of a stream. The table is opened when Spark asks for offsets."""
    limited = len(_STREAM) > 1
    opened = wrap_for_executor(stream.Query)

    class PaimonStreamReader(*_STREAM):  # type: ignore[misc]
        kept: Any = None

        @property
        def query(self) -> Any:
            self.kept = self.kept or opened(options, schema, limited)
            return self.kept

        def initialOffset(self) -> Any:
            return self.query.initial()

        def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> Any:
            return self.query.latest(start, limited and isinstance(limit, ReadAllAvailable))

        def getDefaultReadLimit(self) -> Any:
            return ReadMaxRows(_MANY) if self.query.has_limits else ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:
            self.query.stop_at_what_is_there()

        def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
            return [InputPartition(part) for part in self.query.parts(start, end)]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            read, splits = partition.value
            return iter(read(splits))

        def commit(self, end: dict[str, Any]) -> None:
            self.query.on_done(end)

    return PaimonStreamReader()


def writer(options: Options, schema: st.StructType, overwrite: bool) -> DataSourceArrowWriter:
    """Runs next to the driver: the writer of a batch write."""
    message, contents = _messages()
    task = wrap_for_executor(write.prepare_write(options, schema, overwrite, BATCH_WRITES))
    publish, abandon = wrap_for_executor(write.publish), wrap_for_executor(write.abandon)

    class PaimonWriter(DataSourceArrowWriter):  # type: ignore[misc]
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return message(task(iterator))

        def commit(self, messages: Sequence[Any]) -> None:
            publish(options, overwrite, contents(messages))

        def abort(self, messages: Sequence[Any]) -> None:
            abandon(options, contents(messages))

    return PaimonWriter()


def sink(options: Options, schema: st.StructType, overwrite: bool) -> DataSourceStreamWriter:
    """Runs next to the driver: the writer of a stream. Complete mode overwrites with each batch."""
    message, contents = _messages()
    task = wrap_for_executor(write.prepare_write(options, schema, overwrite, SINKS))
    publish, abandon = wrap_for_executor(write.publish), wrap_for_executor(write.abandon)

    class PaimonSink(*_SINK):  # type: ignore[misc]
        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            return message(task(iterator))

        def commit(self, messages: Sequence[Any], batchId: int) -> None:
            publish(options, overwrite, contents(messages), batchId)

        def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: ARG002
            abandon(options, contents(messages))

    return PaimonSink()


def _messages() -> tuple[Callable[[bytes], WriterCommitMessage], Callable[[Sequence[Any]], list[Any]]]:
    """Functions that wrap the result of a task in a message, and unwrap messages; None is that of a failed task."""

    class Written(WriterCommitMessage):  # type: ignore[misc]
        content = b""

    def message(content: bytes) -> WriterCommitMessage:
        made = Written()
        made.content = content
        return made

    def contents(messages: Sequence[Any]) -> list[Any]:
        return [None if one is None else one.content for one in messages]

    return message, contents
