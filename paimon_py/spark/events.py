"""Change events of a DataFrame: executors decode them, and rows go by a shuffle to the executors that write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from paimon_py.cdc import DecodePart, WriteEventsPart
from paimon_py.errors import UsageError
from paimon_py.spark.jobs import ErrorEncoder, Failed, Results, gather, map_batches, new_job, translate_errors
from paimon_py.spark.partitioner import rows_at_once
from paimon_py.spark.places import places
from paimon_py.spark.session import shuffle_tasks
from paimon_py.spark.shuffle import PARCEL_SQL, contents, parcel

_COLUMNS = ("value", "key", "topic", "partition", "offset", "timestamp")
_PROCESSES_MAX = 64


class SparkEvents:
    """The change events of a DataFrame, which stay on the executors of Spark; for `Sink.write`.

    Executors decode the events, and keep the rows as bytes, in memory or on disk, until those of each bucket have been
    sent to the executor that writes them. The driver gets the columns of events, and the dead letters.

    Args:
        df: events as Spark reads them from Kafka, with columns `value`, `offset`, and optionally `key`, `topic`,
            `partition` and `timestamp`. Topic, partition and offset are their order, and differ between events.

    Cost: rows of DataFrames that do not follow this order in each partition, as those of Kafka do, are sorted first.

    Raises: UsageError for other DataFrames.
    """

    def __init__(self, df: DataFrame) -> None:
        if not hasattr(df, "mapInArrow"):
            raise UsageError(f"SparkEvents takes a DataFrame of Spark, not {type(df).__name__}")
        lacking = [name for name in ("value", "offset") if name not in df.columns]
        if lacking:
            raise UsageError(f"a DataFrame of events has the columns value and offset; {lacking} of them are missing")
        self._df = df.select(*[name for name in _COLUMNS if name in df.columns])
        self._kept: DataFrame | None = None
        self._job = new_job()

    @property
    def processes(self) -> int:
        """The number of tasks that write."""
        return min(shuffle_tasks(self._df.sparkSession), _PROCESSES_MAX)

    def decode(self, part: DecodePart) -> list[bytes]:
        """See `EventShares`."""
        self.close()
        work = _Decode(part, places(self.processes), rows_at_once(self._df.sparkSession))
        self._kept = map_batches(self._df, ErrorEncoder(work, self._job), PARCEL_SQL, self._job).persist()
        return self._collect("task = -1")

    def bring(self) -> list[bytes]:
        """See `EventShares`."""
        return self._collect("task = -2")

    def write(self, part: WriteEventsPart) -> list[bytes]:
        """See `EventShares`."""
        assert self._kept is not None
        sent = self._kept.filter("task >= 0").repartition(self.processes, "task")
        try:
            return gather(sent, _Write(part), self._job)
        except Failed as failed:
            part.discard(failed.done)
            raise failed.error from None

    def in_order(self) -> SparkEvents:
        """See `EventShares`."""
        names = [name for name in ("topic", "partition", "offset") if name in self._df.columns]
        return SparkEvents(self._df.orderBy(*[sf.col(name).asc_nulls_last() for name in names]))

    def close(self) -> None:
        """See `EventShares`."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None

    def _collect(self, which: str) -> list[bytes]:
        assert self._kept is not None
        with translate_errors(self._job):
            found = self._kept.filter(which).filter("rows is not null").collect()
        return [bytes(row.rows) for row in found]


class _Decode:
    """Runs on an executor: decodes events, returns reports and parcels."""

    def __init__(self, part: DecodePart, homes: tuple[int, ...], at_once: int) -> None:
        self.part, self.homes, self.at_once = part, homes, at_once

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, data in self.part(batches):
            yield parcel(self.homes[number] if number >= 0 else number, data, self.at_once)


class _Write:
    """Runs on an executor: writes the parcels of one task, returns the results."""

    def __init__(self, part: WriteEventsPart) -> None:
        self.part = part

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Results:
        return self.part(data.to_pybytes() for _, data in contents(batches))
