"""The PySpark adapter: DataFrames ↔ Arrow streams. It knows Spark and the public names of paimon_py, nothing between.

No JVM jar is needed: splits are read by Python workers through Arrow. Spark 3.5 and 4.x. The first call imports
PySpark, so that the names are there without PySpark.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_py.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
else:
    DataFrame = SparkSession = object  # for `typing.get_type_hints`, which must not import PySpark

__all__ = ["convert_from_spark", "convert_to_spark"]


def convert_to_spark(source: object, spark: SparkSession | None = None, *, truncate_nanos: bool = False) -> DataFrame:
    """A Spark DataFrame over a scan, a table, or anything with an Arrow C stream.

    A scan (or table: its latest snapshot) is planned here, once; its splits are read on the executors, one task per
    split, with the scan's projection, filter and snapshot. The DataFrame keeps seeing that snapshot. Executors need
    paimon_py installed and find credentials in their own environment: secrets do not travel. Other sources, and scans
    with `order_by`, are shipped from this process.

    Args:
        source: what to convert.
        spark: the session; None takes the active one or makes one.
        truncate_nanos: cut timestamps to the microseconds that Spark can hold. Without it a value with finer digits
            fails the read.

    Raises:
        UsageError: `source` is none of these, or PySpark is not installed.
        UnsupportedError: a column has a type that Spark does not have.
    """
    frame: DataFrame = _convert().frame_of(source, spark, truncate_nanos=truncate_nanos)
    return frame


def convert_from_spark(df: DataFrame) -> pa.RecordBatchReader:
    """The rows of a DataFrame as an Arrow stream, in the order of its partitions.

    TIMESTAMP columns arrive as instants in UTC, TIMESTAMP_NTZ without zone. The query runs while the stream is read,
    one partition at a time in memory.

    Raises:
        UsageError: PySpark is not installed.
        UnsupportedError: a column has a type that Arrow does not have.
    """
    reader: pa.RecordBatchReader = _convert().reader_of(df)
    return reader


def _convert() -> ModuleType:
    try:
        from paimon_py.spark import convert
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "pyspark":
            raise
        raise UsageError('Spark needs PySpark, which is not installed: pip install "paimon-py[spark]"') from error
    return convert
