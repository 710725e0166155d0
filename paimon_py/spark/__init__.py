"""The PySpark adapter: DataFrames ↔ Arrow streams. It knows Spark and the public names of paimon_py, nothing between.

No JVM jar is needed: splits are read by Python workers through Arrow. Spark 3.5 and 4.x. The first call imports
PySpark, so that the names are there without PySpark.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from paimon_py import Catalog, CommitResult, ExpiredSnapshots, Predicate, RowsResult, Table
from paimon_py.arguments import NameList
from paimon_py.errors import UsageError
from paimon_py.maintain.cleanup.expired import RemovedOrphans
from paimon_py.spec.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from paimon_py.spark.executor import SparkExecutor
    from paimon_py.spark.temp_views import SparkCatalog
else:
    # for `typing.get_type_hints`, which must not import PySpark
    DataFrame = SparkSession = SparkCatalog = SparkExecutor = object

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
    """A Spark DataFrame over a scan, a table, a step of a stream, or anything with an Arrow C stream.

    A scan (or table: its latest snapshot; `table.changes(…)` is a scan, too) is planned here, once; its splits are read
    on the executors, one task per split, with the scan's projection, filter and snapshot. The DataFrame keeps seeing
    that snapshot. Executors need paimon_py installed (see `ship`) and find credentials in their own environment:
    secrets do not travel. Other sources, and scans with `order_by`, are shipped from this process.

    Args:
        source: what to convert.
        spark: the session; None takes the active one or makes one.
        truncate_nanos: cut timestamps to the microseconds that Spark can hold. Without it a value with finer digits
            fails the read.
        where: of a table, only the rows for which this condition is true. The session says what the condition means,
            as it does for the condition of a scan: see `delete_spark`.

    Raises:
        UsageError: `source` is none of these, or PySpark is not installed.
        UnsupportedError: a column has a type that Spark does not have.
    """
    frame: DataFrame = _module("convert").frame_of(source, spark, where=where, truncate_nanos=truncate_nanos)
    return frame


def convert_from_spark(df: DataFrame) -> pa.RecordBatchReader:
    """The rows of a DataFrame as an Arrow stream, in the order of its partitions.

    TIMESTAMP columns arrive as instants in UTC, TIMESTAMP_NTZ without zone. The query runs while the stream is read,
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

    All rows of a bucket come to one task. Columns match by name; in a table with a primary key a column `_row_kind` may
    hold kinds. Rows of one key in one DataFrame have no order in Spark: give the table a `sequence.field` where they
    matter. Nothing is visible before the commit; a job that fails leaves nothing but files that no snapshot names,
    which `remove_orphans` deletes.

    Args:
        table: where to write.
        df: what to write; its query runs once.
        mode: "append"; "overwrite" replaces the whole table, "dynamic" the partitions that occur in `df`, and
            `{"month": 3}` that partition.
        identifier: makes the call repeatable: an identifier that was committed already does nothing, and says so in
            the result. In `foreachBatch` it is the number of the batch.
        user: whose identifiers these are; they must grow. None is the streaming query that runs now, whose id its
            checkpoint keeps. Outside of one, and on Spark Connect, an identifier needs a user: name one for each
            pipeline that writes to the table.
        tasks: how many tasks write. None takes `spark.sql.shuffle.partitions` where rows are sent to their buckets,
            but no more than there are buckets, and elsewhere the tasks of `df`.

    Returns: what was committed.

    Raises:
        UsageError: the columns or values do not fit, or another mode; an identifier without a user, or below the last
            one of the user. Nothing was written.
        CommitConflictError: another commit changed what this one depends on; its files are deleted.
        CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
        UnsupportedError: the table uses a feature that paimon_py cannot write; a column of a type that it lacks.
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
    """Do `Table.delete` on executors: one task for each bucket or split that may hold such rows, and one commit.

    The condition means what it means in Spark's WHERE: times without zone are read in `spark.sql.session.timeZone`,
    names in any case unless `spark.sql.caseSensitive` is true, −0.0 is 0.0, and a FLOAT beside a literal is a DOUBLE.

    Args:
        where: which rows, as in `Table.delete`.
        user, identifier: make the call repeatable, as in `write_spark`. In `foreachBatch` the identifier is the number
            of the batch, and without a user it is the query's own number for each of the verbs: of several calls of one
            verb on one table in a batch each needs a user.
        spark: the session; None takes the active one or makes one.

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
    """Do `Table.update` on executors: one task for each bucket or split that may hold such rows, and one commit.

    Args:
        where, user, identifier: as in `delete_spark`.
        values: as in `Table.update`; functions travel to the executors. Times without zone are read in the session's
            zone.
        spark: the session; None takes the active one or makes one.

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
    """Do `Table.merge` on executors, with one commit.

    In a table with fixed buckets whose primary key is `on`, each bucket is merged by the task that gets the rows of
    `source` which belong to the bucket. All other merges are done by one task, which spills to disk.

    Args:
        source: a DataFrame. Its query runs again if others change the table meanwhile: cache what is not the same
            every time.
        on, when_…: as in `Table.merge`; conditions and times without zone as in `delete_spark`.
        user, identifier: as in `delete_spark`.
        tasks: how many tasks merge; None takes `spark.sql.shuffle.partitions`, at most the number of buckets.

    Returns, Raises: as `Table.merge`.
    """
    from paimon_py.rows.clauses import MergeClauses

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
    """Do `Table.compact` on executors: one task for each bucket that has something to merge, and one commit.

    Rows that wait in postponed buckets are published by this process before.

    Args:
        full, partitions, where, order_by, strategy: as in `Table.compact`; the condition as in `delete_spark`.
        progress: called for each task when all are done, as in `Table.compact`. Spark hands results to the driver
            together; meanwhile the page of the job in Spark shows the tasks that are done.
        spark: the session; None takes the active one or makes one.

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
    """Do `Table.expire_snapshots`, with files deleted by executors, a thousand in each task.

    Args:
        retain_min, retain_max, older_than, max_deletes, dry_run: as in `Table.expire_snapshots`.
        spark: the session; None takes the active one or makes one.

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
    """Do `Table.remove_orphans`; executors list directories and delete files. A dry run unless told otherwise.

    The driver reads what states name, and holds what is in ten thousand directories at a time.

    Args:
        older_than, dry_run, progress: as in `Table.remove_orphans`.
        spark: the session; None takes the active one or makes one.

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
    """Do `Table.rescale` on executors, with one commit.

    From m to n buckets each partition is the work of gcd(m, n) tasks, which share no bucket: twice as many buckets, or
    half as many, are cheap.

    Args:
        buckets, partitions: as in `Table.rescale`.
        spark: the session; None takes the active one or makes one.

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
    """Do `Table.analyze` on executors: each looks at the rows of a split, the driver puts together what they found.

    Args:
        columns, all_columns: as in `Table.analyze`.
        spark: the session; None takes the active one or makes one.

    Returns, Raises: as `Table.analyze`.
    """
    done: Statistics | None = _module("care").analyze(table, spark, columns, all_columns=all_columns)
    return done


def lookup_spark(
    df: DataFrame, table: Table, *, on: Mapping[str, str] | None = None, columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows of a DataFrame beside the rows of a table that have their primary keys, NULL where there is none.

    Executors look the keys up as `Table.lookup` does, without a shuffle and without reading the whole table: the way
    for few keys of a large table. For most of a table join `convert_to_spark(table)`. All tasks see the snapshot that
    is the latest now.

    Args:
        df: has the key; its columns come first.
        table: with a primary key.
        on: the column of `df` for each column of the key, where they have other names.
        columns: of the table; None for all that are not of the key.

    Raises:
        UsageError: the key is not there as a whole, or both have a column of one name.
        UnsupportedError: the table uses a feature that paimon_py cannot read, or a type that Spark lacks.
    """
    found: DataFrame = _module("lookup").lookup(df, table, on, columns)
    return found


@overload
def register(spark: SparkSession) -> None:
    """Make the data source known."""


@overload
def register(spark: SparkSession, catalog: Catalog, databases: Sequence[str] | None = None) -> SparkCatalog:
    """Make views of the tables of a catalog."""


def register(
    spark: SparkSession, catalog: Catalog | None = None, databases: Sequence[str] | None = None
) -> SparkCatalog | None:
    """Make the tables of a catalog queryable by Spark's SQL, as temporary views called `db.t`, in backticks.

    Each view shows the snapshot that is the latest now. What comes back makes views of other states and of system
    tables (`view`), moves views to what is the latest then (`refresh`), and has Java's procedures as methods (`sys`).

    Without a catalog: makes the data source `paimon` known to a session of Spark 4 that did not find paimon_py by
    itself, and `paimon_py`, which is the name where Java's jar has the other one.

    Args:
        spark: the session that gets the views, or the data source.
        catalog: whose tables.
        databases: only those in these databases.

    Raises:
        UsageError: PySpark is not installed, or is too old to have data sources.
    """
    if catalog is None:
        _module("source.registering").register_sources(spark)
        return None
    made: SparkCatalog = _module("temp_views").SparkCatalog(spark, catalog, databases)
    return made


def ship(spark: SparkSession) -> None:
    """Bring paimon_py to executors that lack it, as it is installed here, and with it the data source of Spark 4.

    Executors still need Python of the same version, and the packages that paimon_py needs, pyarrow first of all.

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


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"paimon_py.spark.{name}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "pyspark":
            raise
        raise UsageError('Spark needs PySpark, which is not installed: pip install "paimon-py[spark]"') from error
