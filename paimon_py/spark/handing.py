"""Work as rows: the bytes of each task travel to that task alone, and the function that all tasks get stays small.

What a few kilobytes hold for all tasks together travels within the function, which spares a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from paimon_py.spark.places import places

HANDED_SQL = "task int, work binary"
WITHIN_BYTES = 64 << 10
"""Most bytes of work that travel within the function, to every task."""

Made = TypeVar("Made")
Handle = Callable[[Iterable[bytes]], Iterator[Made]]
"""Runs on an executor: the work of one task in, what is made of it out."""
Handed = Callable[[Iterable[pa.RecordBatch]], Iterator[Made]]


def hand_out(spark: SparkSession, items: Sequence[bytes], handle: Handle[Made]) -> tuple[DataFrame, Handed[Made]]:
    """A frame with a task of Spark's for each item, and what to run on it; see `jobs.mapped`."""
    count = len(items)
    if sum(map(len, items)) <= WITHIN_BYTES:
        return spark.range(0, count, 1, count), _Within(list(items), handle)
    rows = [(place, bytearray(item)) for place, item in zip(places(count), items, strict=True)]
    return spark.createDataFrame(rows, HANDED_SQL).repartition(count, "task"), _Beside(handle)


class _Within(Generic[Made]):
    """Runs on an executor: numbers of items in, what is made of these items out."""

    def __init__(self, items: list[bytes], handle: Handle[Made]) -> None:
        self.items = items
        self.handle = handle

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Made]:
        yield from self.handle(self.items[number.as_py()] for batch in batches for number in batch.column(0))


class _Beside(Generic[Made]):
    """Runs on an executor: rows with items in, what is made of them out."""

    def __init__(self, handle: Handle[Made]) -> None:
        self.handle = handle

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Made]:
        yield from self.handle(item.as_py() for batch in batches for item in batch.column(1))
