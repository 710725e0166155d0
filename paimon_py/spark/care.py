"""Table maintenance on Spark's executors: the verbs of `Table`, with Spark as their executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from paimon_py import CommitResult, ExpiredSnapshots, Predicate, Table
from paimon_py.errors import UsageError
from paimon_py.spark.executor import SparkExecutor
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.session import session

if TYPE_CHECKING:
    from paimon_py.types import NameList, RemovedOrphans, Statistics


def require_table(table: object, verb: str) -> Table:
    """Check that the argument of a verb is a table. Raises: UsageError for anything else."""
    if not isinstance(table, Table):
        raise UsageError(f"{verb} takes a Table, not {type(table).__name__}")
    return table


def compact(
    table: Table, spark: SparkSession | None, *, full: bool, partitions: Sequence[Mapping[str, object]] | None,
    where: Predicate | str | None, order_by: NameList | None, strategy: str | None,
    progress: Callable[[int, int, str], object] | None,
) -> CommitResult:  # fmt: skip
    """See `compact_spark`."""
    require_table(table, "compact_spark")
    where = None if where is None else Meaning.of(session(spark)).condition(where, table.schema.fields)
    return table.compact(
        full=full, partitions=partitions, where=where, order_by=order_by, strategy=strategy, progress=progress,
        executor=SparkExecutor(spark),
    )  # fmt: skip


def expire(
    table: Table, spark: SparkSession | None, *, retain_min: int | None, retain_max: int | None,
    older_than: datetime | timedelta | str | int | None, max_deletes: int | None, dry_run: bool,
) -> ExpiredSnapshots:  # fmt: skip
    """See `expire_snapshots_spark`."""
    return require_table(table, "expire_snapshots_spark").expire_snapshots(
        retain_min=retain_min, retain_max=retain_max, older_than=older_than, max_deletes=max_deletes, dry_run=dry_run,
        executor=SparkExecutor(spark),
    )  # fmt: skip


def clean(
    table: Table, spark: SparkSession | None, *, older_than: datetime | timedelta | str | int | None, dry_run: bool,
    progress: Callable[[int, int, str], object] | None,
) -> RemovedOrphans:  # fmt: skip
    """See `remove_orphans_spark`."""
    return require_table(table, "remove_orphans_spark").remove_orphans(
        older_than=older_than, dry_run=dry_run, progress=progress, executor=SparkExecutor(spark)
    )


def rescale(
    table: Table, spark: SparkSession | None, buckets: int, partitions: Sequence[Mapping[str, object]] | None
) -> CommitResult:
    """See `rescale_spark`."""
    done = require_table(table, "rescale_spark").rescale(buckets, partitions=partitions, executor=SparkExecutor(spark))
    return done


def analyze(
    table: Table, spark: SparkSession | None, columns: Sequence[str] | None, *, all_columns: bool
) -> Statistics | None:
    """See `analyze_spark`."""
    return require_table(table, "analyze_spark").analyze(
        columns, all_columns=all_columns, executor=SparkExecutor(spark)
    )
