"""What Spark is given: a data source and its reader, by their code, so that a process without paimon_py says so.

Classes that are made inside a function travel by their code; what they call is wrapped by `travelling`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from paimon_py.spark.entry import travelling
from paimon_py.spark.source import read

Read = Callable[[bytes], Iterator[pa.RecordBatch]]


def source_class(name: str) -> type[Any]:
    """The data source under a name."""
    columns, reader_of = travelling(read.columns), travelling(planned)

    class PaimonSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> st.StructType:
            return columns(dict(self.options))

        def reader(self, schema: st.StructType) -> DataSourceReader:
            return reader_of(dict(self.options), schema)

    return PaimonSource


def planned(options: Mapping[str, str], schema: st.StructType) -> DataSourceReader:
    """Runs beside the driver: the reader of a batch read."""
    splits, of_split = read.plan(options, schema)
    return _reader(splits, travelling(of_split))


def _reader(splits: Sequence[bytes], of_split: Read) -> DataSourceReader:
    class PaimonReader(DataSourceReader):  # type: ignore[misc]
        def partitions(self) -> Sequence[InputPartition]:
            return [InputPartition(split) for split in splits]

        def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
            split = None if partition is None else partition.value
            return iter(()) if split is None else of_split(split)  # None is what Spark makes of no partitions

    return PaimonReader()
