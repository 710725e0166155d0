"""Groups splits into Spark tasks: as many per task as Spark itself would use for small files.

Source: Spark `FilePartition.maxSplitBytes`, `FilePartition.getFilePartitions`; Java `ScanHelper.getInputPartitions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from paimon_py.distributed import parse_size
from paimon_py.env import usable_cores
from paimon_py.spark.session import shuffle_tasks

if TYPE_CHECKING:
    from paimon_py.types import Split

_TASK_BYTES = "spark.sql.files.maxPartitionBytes"
_OPEN_BYTES = "spark.sql.files.openCostInBytes"
_OPENING, _LIMIT = 4 << 20, 128 << 20
"""Spark's default values."""
_TASKS_MIN = ("spark.sql.files.minPartitionNum", "spark.sql.leafNodeDefaultParallelism")


def shares(spark: SparkSession, splits: Sequence[Split]) -> list[list[Split]]:
    """The splits of each task, in their order."""
    opening, limit = _bytes(spark, _OPEN_BYTES, _OPENING), _bytes(spark, _TASK_BYTES, _LIMIT)
    return _share(splits, opening, limit, _tasks_min(spark))


def shares_of_source(splits: Sequence[Split]) -> list[list[Split]]:
    """The same in a process next to the driver, without Spark's settings: by its defaults, for the cores here."""
    return _share(splits, _OPENING, _LIMIT, usable_cores())


def _share(splits: Sequence[Split], opening: int, limit: int, tasks_min: int) -> list[list[Split]]:
    sizes = [split.size_bytes + len(split.files) * opening for split in splits]
    return share_splits(splits, sizes, min(limit, max(opening, sum(sizes) // tasks_min)))


def share_splits(splits: Sequence[Split], sizes: Sequence[int], limit: int) -> list[list[Split]]:
    """Groups of neighbouring splits up to a size. Pure."""
    found: list[list[Split]] = []
    room = 0
    for split, size in zip(splits, sizes, strict=True):
        if not found or size > room:
            found.append([])
            room = limit
        found[-1].append(split)
        room -= size
    return found


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
    except (PySparkException, AttributeError):  # Spark Connect does not tell
        return shuffle_tasks(spark)
