"""Sends work to Spark tasks as rows: each task receives only its own bytes, and the function for all tasks stays small.

The bytes are compressed. If the work of all tasks together is only a few kilobytes, it is sent within the function,
which avoids a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py.spark.compression import compress, decompress
from paimon_py.spark.places import places

WORK_SQL = "task int, work binary"
WITHIN_BYTES = 64 << 10
"""The maximum number of compressed bytes of work that are sent within the function, to every task."""

Made = TypeVar("Made")
Handle = Callable[[Iterable[bytes]], Iterator[Made]]
"""Runs on an executor: takes the work of one task, returns its results."""
TaskFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[Made]]


def send_work(
    spark: SparkSession, items: Iterable[bytes], handle: Handle[Made]
) -> tuple[DataFrame, TaskFunction[Made]]:
    """A DataFrame with one Spark task for each item, and the function to run on it; see `jobs.map_batches`.

    Memory: the compressed items; `items` are taken one by one.
    """
    packed = [compress(item) for item in items]
    count = len(packed)
    if sum(map(len, packed)) <= WITHIN_BYTES:
        return spark.range(0, count, 1, count), _InlineWork(packed, handle)
    rows = [(place, bytearray(item)) for place, item in zip(places(count), packed, strict=True)]
    del packed
    return spark.createDataFrame(rows, WORK_SQL).repartition(count, "task"), _RowWork(handle)


def read_rows(handle: Handle[Made]) -> TaskFunction[Made]:
    """The function to run on rows of `work_row`, whose work is compressed."""
    return _RowWork(handle)


def work_row(place: int, data: bytes) -> pa.RecordBatch:
    """Work made on an executor, for the task with a number of `places`."""
    return pa.RecordBatch.from_arrays([pa.array([place], pa.int32()), pa.array([data], pa.binary())], ["task", "work"])


class _InlineWork(Generic[Made]):
    """Runs on an executor: takes numbers of items, which are part of the function, returns the results."""

    def __init__(self, items: list[bytes], handle: Handle[Made]) -> None:
        self.items = items
        self.handle = handle

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Made]:
        numbers = (number.as_py() for batch in batches for number in batch.column(0))
        yield from self.handle(decompress(self.items[number]) for number in numbers)


class _RowWork(Generic[Made]):
    """Runs on an executor: takes rows with items, returns the results."""

    def __init__(self, handle: Handle[Made]) -> None:
        self.handle = handle

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Made]:
        yield from self.handle(decompress(item.as_py()) for batch in batches for item in batch.column(1))
