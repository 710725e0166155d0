"""Groups splits into Spark tasks: as many per task as Spark itself would use for small files.

Source: Spark `FilePartition.maxSplitBytes`, `FilePartition.getFilePartitions`; Java `ScanHelper.getInputPartitions`.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_py.distributed import parse_size
from paimon_py.env import usable_cores
from paimon_py.spark.compression import compress, decompress
from paimon_py.spark.session import shuffle_tasks

if TYPE_CHECKING:
    from paimon_py.types import Split

_TASK_BYTES = "spark.sql.files.maxPartitionBytes"
_OPEN_BYTES = "spark.sql.files.openCostInBytes"
_OPENING, _LIMIT = 4 << 20, 128 << 20
"""Spark's default values."""
_BLOCK = 512
_BLOCKS = msgspec.msgpack.Decoder(list[bytes])
_TASKS_MIN = ("spark.sql.files.minPartitionNum", "spark.sql.leafNodeDefaultParallelism")

One = TypeVar("One")


class TaskRules(NamedTuple):
    """Spark's rules for grouping files into tasks: the cost of opening a file, the size of a task, and their number.
    """

    opening: int
    size_max: int
    tasks_min: int

    @classmethod
    def of(cls, spark: SparkSession) -> TaskRules:
        """The rules of a session."""
        return cls(_bytes(spark, _OPEN_BYTES, _OPENING), _bytes(spark, _TASK_BYTES, _LIMIT), _tasks_min(spark))

    def limit(self, total: int) -> int:
        """The size of a task, given the size of all splits."""
        return min(self.size_max, max(self.opening, total // self.tasks_min))


def weight_of(split: Split, opening: int) -> int:
    """The size of a split as Spark counts it."""
    return split.size_bytes + len(split.files) * opening


def shares(spark: SparkSession, splits: Iterable[Split]) -> Iterator[list[bytes]]:
    """The splits of each task as bytes, in their order. Cost, memory: as `_share`"""
    return _share(splits, TaskRules.of(spark))


def shares_of_source(splits: Iterable[Split]) -> Iterator[list[bytes]]:
    """The same in a process next to the driver, without Spark's settings: by its defaults, for the cores here."""
    return _share(splits, TaskRules(_OPENING, _LIMIT, usable_cores()))


def _share(splits: Iterable[Split], rules: TaskRules) -> Iterator[list[bytes]]:
    """The shares, which depend on the sizes of all splits: only their compressed bytes are kept until these are known.

    Memory: about 150 bytes for each split of one file, whose object has 1,400.
    """
    sizes = array("q")
    blocks: list[bytes] = []
    loose: list[bytes] = []
    for split in splits:
        sizes.append(weight_of(split, rules.opening))
        loose.append(bytes(split))
        if len(loose) == _BLOCK:
            blocks.append(compress(msgspec.msgpack.encode(loose)))
            loose = []
    kept = itertools.chain((one for block in blocks for one in _BLOCKS.decode(decompress(block))), loose)
    return share_splits(kept, sizes, rules.limit(sum(sizes)))


def share_splits(splits: Iterable[One], sizes: Iterable[int], limit: int) -> Iterator[list[One]]:
    """Groups of neighbouring splits up to a size. Pure."""
    group: list[One] = []
    room = 0
    for split, size in zip(splits, sizes, strict=True):
        if group and size > room:
            yield group
            group = []
        if not group:
            room = limit
        group.append(split)
        room -= size
    if group:
        yield group


def _bytes(spark: SparkSession, name: str, otherwise: int) -> int:
    size = parse_size(spark.conf.get(name, None) or "")
    return otherwise if size is None else size


def _tasks_min(spark: SparkSession) -> int:
    for name in _TASKS_MIN:
        said = spark.conf.get(name, None)
        if said:
            return max(1, int(said))
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except (PySparkException, AttributeError):  # unknown to Spark Connect
        return shuffle_tasks(spark)
