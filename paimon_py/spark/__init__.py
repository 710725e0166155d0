"""The PySpark adapter: DataFrames ↔ Arrow streams. Uses Spark and the public names of paimon_py only.

No JVM jar is needed: Python workers read splits through Arrow. Supports Spark 3.5 and 4.x. PySpark is imported at the
first call, so the names are available without PySpark.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from paimon_py import Catalog, CommitResult, ExpiredSnapshots, Predicate, RowsResult, Table
from paimon_py.errors import UsageError
from paimon_py.types import NameList, RemovedOrphans, Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from paimon_py.spark.events import SparkEvents
    from paimon_py.spark.executor import SparkExecutor
    from paimon_py.spark.temp_views import SparkCatalog
else:
    # for `typing.get_type_hints`, which must not import PySpark
    DataFrame = SparkSession = SparkCatalog = SparkExecutor = SparkEvents = object

__all__ = [
    "analyze_spark", "compact_spark", "convert_from_spark", "convert_to_spark", "delete_spark",
    "expire_snapshots_spark", "lookup_spark", "merge_spark", "register", "remove_orphans_spark", "rescale_spark",
    "ship", "update_spark", "write_spark",
]  # fmt: skip


def convert_to_spark(
    source: object,
    spark: SparkSession | None = None,
    *,
    truncate_nanos: bool = False,
    where: Predicate | str | None = None,
) -> DataFrame:
    """A Spark DataFrame over a scan, a table, a step of a stream, or any source with an Arrow C stream.

    A scan (or table: its latest snapshot; `table.changes(…)` is a scan, too) is planned once, in this process; its
    splits are read on the executors, one task per split, with the scan's projection, filter and snapshot. The DataFrame
    keeps reading that snapshot. Executors need paimon_py installed (see `ship`) and get credentials from their own
    environment: secrets are not sent. Other sources, and scans with `order_by`, are sent from this process.

    Args:
        source: what to convert.
        spark: the session; None uses the active one or creates one.
        truncate_nanos: cut timestamps to the microseconds that Spark supports. Without it a value with finer digits
            fails the read.
        where: for a table, only the rows for which this condition is true. The session determines the meaning of the
            condition, as it does for the condition of a scan: see `delete_spark`.

    Raises:
        UsageError: `source` is none of these, or PySpark is not installed.
        UnsupportedError: a column has a type that Spark does not have.
    """
    frame: DataFrame = _module("convert").frame_of(source, spark, where=where, truncate_nanos=truncate_nanos)
    return frame


def convert_from_spark(df: DataFrame) -> pa.RecordBatchReader:
    """The rows of a DataFrame as an Arrow stream, in the order of its partitions.

    TIMESTAMP columns become instants in UTC, TIMESTAMP_NTZ has no zone. The query runs while the stream is read, with
    one partition at a time in memory.

    Raises:
        UsageError: PySpark is not installed.
        UnsupportedError: a column has a type that Arrow does not have.
    """
    reader: pa.RecordBatchReader = _module("convert").reader_of(df)
    return reader


def write_spark(
    table: Table,
    df: DataFrame,
    mode: Mapping[str, object] | str = "append",
    identifier: int | None = None,
    *,
    user: str | None = None,
    tasks: int | None = None,
) -> CommitResult:
    """Write a DataFrame: executors write the files, the driver commits all of them once.

    All rows of a bucket are sent to one task. Columns match by name; in a table with a primary key, a column
    `_row_kind` may contain kinds. Rows of one key in one DataFrame have no order in Spark: if their order matters, set
    a `sequence.field` for the table. Nothing is visible before the commit; a failed job leaves only files that no
    snapshot references, which `remove_orphans` deletes.

    Args:
        table: the table to write to.
        df: the rows to write; its query runs once.
        mode: "append"; "overwrite" replaces the whole table, "dynamic" the partitions that occur in `df`, and
            `{"month": 3}` that partition.
        identifier: makes the call repeatable: an identifier that is already committed does nothing, and the result says
            so. In `foreachBatch` it is the number of the batch.
        user: the owner of the identifiers, which must increase. None is the current streaming query, whose id its
            checkpoint keeps. Outside a streaming query, and on Spark Connect, an identifier needs a user: choose one
            for each pipeline that writes to the table.
        tasks: the number of write tasks. None uses `spark.sql.shuffle.partitions` if rows are sent to their buckets,
            but at most the number of buckets; otherwise the tasks of `df`.

    Returns: what was committed.

    Raises:
        UsageError: the columns or values do not fit, or the mode is unknown; an identifier without a user, or below the
            user's last one. Nothing was written.
        CommitConflictError: another commit changed what this one depends on; its files are deleted.
        CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
        UnsupportedError: the table uses a feature that paimon_py cannot write; a column has a type that it lacks.
    """
    done: CommitResult = _module("write").write(table, df, mode, identifier, user, tasks)
    return done


def delete_spark(
    table: Table,
    where: Predicate | str,
    *,
    user: str | None = None,
    identifier: int | None = None,
    spark: SparkSession | None = None,
) -> RowsResult:
    """Run `Table.delete` on executors: one task for each bucket or split that may contain such rows, and one commit.

    The condition means what it means in Spark's WHERE: times without zone are in `spark.sql.session.timeZone`, names
    are case-insensitive unless `spark.sql.caseSensitive` is true, −0.0 is 0.0, and a FLOAT compared with a literal is a
    DOUBLE.

    Args:
        where: the rows to delete, as in `Table.delete`.
        user, identifier: make the call repeatable, as in `write_spark`. In `foreachBatch` the identifier is the number
            of the batch, and without a user it is the query's own number for each of these functions: several calls of
            one function on one table in a batch each need a user.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.delete`.
    """
    done: RowsResult = _module("rows").delete(table, where, (user, identifier), spark)
    return done


def update_spark(
    table: Table,
    where: Predicate | str,
    values: Mapping[str, object],
    *,
    user: str | None = None,
    identifier: int | None = None,
    spark: SparkSession | None = None,
) -> RowsResult:
    """Run `Table.update` on executors: one task for each bucket or split that may contain such rows, and one commit.

    Args:
        where, user, identifier: as in `delete_spark`.
        values: as in `Table.update`; functions are sent to the executors. Times without zone are in the session's zone.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.update`.
    """
    done: RowsResult = _module("rows").update(table, where, values, (user, identifier), spark)
    return done


def merge_spark(  # noqa: PLR0913
    table: Table,
    source: DataFrame,
    on: NameList | Mapping[str, str],
    *,
    when_matched_update: object = None,
    when_matched_delete: Predicate | str | bool | Sequence[Predicate | str] | None = None,
    when_not_matched_insert: object = None,
    when_not_matched_by_source_update: object = None,
    when_not_matched_by_source_delete: Predicate | str | bool | Sequence[Predicate | str] | None = None,
    user: str | None = None,
    identifier: int | None = None,
    tasks: int | None = None,
) -> RowsResult:
    """Run `Table.merge` on executors, with one commit.

    In a table with fixed buckets whose primary key is `on`, each bucket is merged by the task that gets the rows of
    `source` that belong to the bucket. In other merges each task gets all rows of `source` and the files that it
    changes, and spills to disk. Merges that insert rows into a table with buckets run in one task, except on the
    primary key; so do merges in tables whose keys move between partitions.

    Args:
        source: a DataFrame. Its query runs again if other commits change the table during the call: cache it if its
            result is not the same every time.
        on, when_…: as in `Table.merge`; conditions and times without zone as in `delete_spark`.
        user, identifier: as in `delete_spark`.
        tasks: the number of merge tasks. None uses `spark.sql.shuffle.partitions`, but at most the number of buckets;
            if each task gets all rows of `source`, one task for each 256 MB of files.

    Returns, Raises: as `Table.merge`.
    """
    from paimon_py.distributed import MergeClauses

    asked = MergeClauses(
        matched_update=when_matched_update, matched_delete=when_matched_delete, insert=when_not_matched_insert,
        by_source_update=when_not_matched_by_source_update, by_source_delete=when_not_matched_by_source_delete,
    )  # fmt: skip
    done: RowsResult = _module("rows").merge(table, source, on, asked, (user, identifier), tasks)
    return done


def compact_spark(
    table: Table,
    *,
    full: bool = False,
    partitions: Sequence[Mapping[str, object]] | None = None,
    where: Predicate | str | None = None,
    order_by: NameList | None = None,
    strategy: str | None = None,
    progress: Callable[[int, int, str], object] | None = None,
    spark: SparkSession | None = None,
) -> CommitResult:
    """Run `Table.compact` on executors: one task for each bucket with files to merge, and one commit.

    This process first publishes rows that wait in postponed buckets.

    Args:
        full, partitions, where, order_by, strategy: as in `Table.compact`; the condition as in `delete_spark`.
        progress: called for each task when all are done, as in `Table.compact`. Spark sends all results to the driver
            together; until then the job's page in Spark shows the finished tasks.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.compact`.
    """
    done: CommitResult = _module("care").compact(
        table, spark, full=full, partitions=partitions, where=where, order_by=order_by, strategy=strategy,
        progress=progress,
    )  # fmt: skip
    return done


def expire_snapshots_spark(
    table: Table,
    *,
    retain_min: int | None = None,
    retain_max: int | None = None,
    older_than: datetime | timedelta | str | int | None = None,
    max_deletes: int | None = None,
    dry_run: bool = False,
    spark: SparkSession | None = None,
) -> ExpiredSnapshots:
    """Run `Table.expire_snapshots`, with files deleted by executors, a thousand in each task.

    Args:
        retain_min, retain_max, older_than, max_deletes, dry_run: as in `Table.expire_snapshots`.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.expire_snapshots`.
    """
    done: ExpiredSnapshots = _module("care").expire(
        table, spark, retain_min=retain_min, retain_max=retain_max, older_than=older_than, max_deletes=max_deletes,
        dry_run=dry_run,
    )  # fmt: skip
    return done


def remove_orphans_spark(
    table: Table,
    *,
    older_than: datetime | timedelta | str | int | None = None,
    dry_run: bool = True,
    progress: Callable[[int, int, str], object] | None = None,
    spark: SparkSession | None = None,
) -> RemovedOrphans:
    """Run `Table.remove_orphans`; executors list directories and delete files. A dry run by default.

    The driver reads the references of all states, and keeps the listings of ten thousand directories in memory at a
    time.

    Args:
        older_than, dry_run, progress: as in `Table.remove_orphans`.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.remove_orphans`.
    """
    done: RemovedOrphans = _module("care").clean(
        table, spark, older_than=older_than, dry_run=dry_run, progress=progress
    )
    return done


def rescale_spark(
    table: Table,
    buckets: int,
    *,
    partitions: Sequence[Mapping[str, object]] | None = None,
    spark: SparkSession | None = None,
) -> CommitResult:
    """Run `Table.rescale` on executors, with one commit.

    Going from m to n buckets takes gcd(m, n) tasks for each partition, which share no bucket: doubling or halving the
    number of buckets is cheap.

    Args:
        buckets, partitions: as in `Table.rescale`.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.rescale`.
    """
    done: CommitResult = _module("care").rescale(table, spark, buckets, partitions)
    return done


def analyze_spark(
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    all_columns: bool = False,
    spark: SparkSession | None = None,
) -> Statistics | None:
    """Run `Table.analyze` on executors: each reads the rows of a split, and the driver combines the results.

    Args:
        columns, all_columns: as in `Table.analyze`.
        spark: the session; None uses the active one or creates one.

    Returns, Raises: as `Table.analyze`.
    """
    done: Statistics | None = _module("care").analyze(table, spark, columns, all_columns=all_columns)
    return done


def lookup_spark(
    df: DataFrame, table: Table, *, on: Mapping[str, str] | None = None, columns: Sequence[str] | None = None
) -> DataFrame:
    """Join the rows of a DataFrame with the rows of a table that have their primary keys, NULL if there is none.

    Executors look up the keys as `Table.lookup` does, without a shuffle and without reading the whole table: suitable
    for few keys of a large table. For most of a table, join `convert_to_spark(table)`. All tasks read the snapshot that
    is the latest now.

    Args:
        df: contains the key; its columns come first.
        table: a table with a primary key.
        on: the column of `df` for each column of the key, if they have other names.
        columns: the columns of the table; None for all that do not belong to the key.

    Raises:
        UsageError: the key is incomplete, or both sides have a column of the same name.
        UnsupportedError: the table uses a feature that paimon_py cannot read, or a type that Spark lacks.
    """
    found: DataFrame = _module("lookup").lookup(df, table, on, columns)
    return found


@overload
def register(spark: SparkSession) -> None:
    """Register the data source."""


@overload
def register(spark: SparkSession, catalog: Catalog, databases: Sequence[str] | None = None) -> SparkCatalog:
    """Create views of the tables of a catalog."""


def register(
    spark: SparkSession, catalog: Catalog | None = None, databases: Sequence[str] | None = None
) -> SparkCatalog | None:
    """Make the tables of a catalog queryable by Spark's SQL, as temporary views called `db.t`, in backticks.

    Each view shows the snapshot that is the latest now. The returned object creates views of other states and of system
    tables (`view`), moves views to the latest snapshot (`refresh`), and has Java's procedures as methods (`sys`).

    Without a catalog: registers the data source `paimon` in a session of Spark 4 that did not find paimon_py by itself,
    and also as `paimon_py`, the name to use if Java's jar has registered `paimon`.

    Args:
        spark: the session that gets the views, or the data source.
        catalog: the catalog of the tables.
        databases: only the tables of these databases.

    Raises:
        UsageError: PySpark is not installed, or is too old to have data sources.
    """
    if catalog is None:
        _module("source.registering").register_sources(spark)
        return None
    made: SparkCatalog = _module("temp_views").SparkCatalog(spark, catalog, databases)
    return made


def ship(spark: SparkSession) -> None:
    """Send the installed paimon_py, including the data source of Spark 4, to executors that lack it.

    Executors still need the same Python version, and the packages that paimon_py needs, above all pyarrow.

    Raises:
        UsageError: PySpark is not installed.
    """
    _module("package_zip").ship(spark)


def executor_class() -> type[SparkExecutor]:
    """See `paimon_py.executors.SparkExecutor`.

    Raises:
        UsageError: PySpark is not installed.
    """
    found: type[SparkExecutor] = _module("executor").SparkExecutor
    return found


def events_class() -> type[SparkEvents]:
    """See `paimon_py.cdc.SparkEvents`.

    Raises:
        UsageError: PySpark is not installed.
    """
    found: type[SparkEvents] = _module("events").SparkEvents
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"paimon_py.spark.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "pyspark":
            raise
        raise UsageError('Spark needs PySpark, which is not installed: pip install "paimon-py[spark]"') from error
