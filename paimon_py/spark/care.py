"""Care for tables whose work is done on the executors: planned and published on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Generic, TypeVar, Union

import msgspec
from pyspark.sql import SparkSession

from paimon_py import Changes, CommitResult, CompactionTask, ExpiredSnapshots, Predicate, Table
from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.uncommitted import delete_compaction
from paimon_py.compaction.compact import Overtaken
from paimon_py.doors import NameList, as_python, check_flag, check_progress
from paimon_py.errors import SnapshotExpiredError, UsageError
from paimon_py.maintain.analyze import Measured, columns_to_analyze, measured
from paimon_py.maintain.compact_table import compact_table
from paimon_py.maintain.expire_snapshots import expire_snapshots
from paimon_py.maintain.expired import RemovedOrphans
from paimon_py.maintain.file_directories import Directory
from paimon_py.maintain.hands import Listed, Target, look_at, remains
from paimon_py.maintain.remove_orphans import limit_of, remove_orphans
from paimon_py.maintain.rescale import Rewritten, rewrite_splits, rewriter
from paimon_py.maintain.retention import retention_of
from paimon_py.metadata.bucket_files import TableFiles
from paimon_py.scan.split import Split
from paimon_py.spark.jobs import Failed, run_tasks
from paimon_py.spark.meaning import Meaning
from paimon_py.spark.session import session
from paimon_py.spec.statistics import Statistics
from paimon_py.spec.types import Field
from paimon_py.table_door import guard
from paimon_py.table_writing import discard

Carried = Union[BucketChanges, Overtaken]
Item = TypeVar("Item")

_LISTED_BY_TASK = 100
_LISTED_AT_ONCE = 10_000
"""Directories in one job of Spark: the driver holds what is in so many."""
_DELETED_BY_TASK = 1000


def require_table(table: object, verb: str, like: Callable[..., object] | None = None) -> Table:
    """The table that a verb is asked for.

    Args:
        like: the verb of `Table` that does the same in one process: what is made sure of before it, is so here, too.

    Raises: UsageError for anything else; as `guard`.
    """
    if not isinstance(table, Table):
        raise UsageError(f"{verb} takes a Table, not {type(table).__name__}")
    if like is not None:
        guard(table, like)
    return table


def compact(
    table: Table, spark: SparkSession | None, *, full: bool, partitions: Sequence[Mapping[str, object]] | None,
    where: Predicate | str | None, order_by: NameList | None, strategy: str | None,
    progress: Callable[[int, int, str], object] | None,
) -> CommitResult:  # fmt: skip
    """See `compact_spark`."""
    require_table(table, "compact_spark", Table.compact)
    rules = table._rules
    where = None if where is None else Meaning.of(session(spark)).condition(where, table.schema.fields)

    def carry(tasks: Sequence[CompactionTask]) -> list[Carried]:
        try:
            return [_carried(one) for one in run_tasks(session(spark), list(map(bytes, tasks)), _Compact(table))]
        except Failed as failed:
            files = TableFiles(table._root, rules)
            for one in map(_carried, failed.done):
                if isinstance(one, BucketChanges):
                    delete_compaction(files, one)
            raise failed.error from None

    return compact_table(
        table._root, rules, full=full, partitions=partitions, where=where, order_by=order_by,
        strategy=strategy, progress=progress, carry=carry,
    )  # fmt: skip


class _Compact:
    """Runs on an executor: a compaction task in, what came of the task out."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __call__(self, task: bytes) -> bytes:
        given = CompactionTask.from_bytes(task)
        try:
            done = self.table.run_compaction(given)
        except SnapshotExpiredError as error:
            return msgspec.msgpack.encode((None, Overtaken(given.partition, given.bucket, str(error))))
        return msgspec.msgpack.encode((bytes(done), None))


def _carried(data: bytes) -> Carried:
    """What came of one compaction task."""
    changes, overtaken = msgspec.msgpack.decode(data, type=tuple[bytes | None, Overtaken | None])
    if overtaken is not None:
        return overtaken
    assert changes is not None
    (done,) = Changes.from_bytes(changes).buckets
    return done


def expire(
    table: Table, spark: SparkSession | None, *, retain_min: int | None, retain_max: int | None,
    older_than: datetime | timedelta | str | int | None, max_deletes: int | None, dry_run: bool,
) -> ExpiredSnapshots:  # fmt: skip
    """See `expire_snapshots_spark`."""
    require_table(table, "expire_snapshots_spark", Table.expire_snapshots)
    check_flag("dry_run", dry_run)
    retention = retention_of(
        table._newest.options, table._root.env.clock.millis(), "snapshot", count_min=retain_min, count_max=retain_max,
        older_than=older_than, limit=max_deletes,
    )  # fmt: skip
    return expire_snapshots(table._root, table._newest, retention, dry_run=dry_run, hands=_Hands(session(spark)))


def clean(
    table: Table, spark: SparkSession | None, *, older_than: datetime | timedelta | str | int | None, dry_run: bool,
    progress: Callable[[int, int, str], object] | None,
) -> RemovedOrphans:  # fmt: skip
    """See `remove_orphans_spark`."""
    require_table(table, "remove_orphans_spark", Table.remove_orphans)
    check_flag("dry_run", dry_run)
    check_progress(progress)
    limit = limit_of(table._root.env.clock, older_than)
    return remove_orphans(table._root, limit, dry_run=dry_run, progress=progress, hands=_Hands(session(spark)))


def rescale(
    table: Table, spark: SparkSession | None, buckets: int, partitions: Sequence[Mapping[str, object]] | None
) -> CommitResult:
    """See `rescale_spark`."""
    require_table(table, "rescale_spark", Table.rescale)
    buckets = as_python(buckets)

    def rewrite(groups: Sequence[Sequence[Split]]) -> Rewritten:
        tasks = [[bytes(split) for split in group] for group in groups]
        try:
            done = run_tasks(session(spark), tasks, _Rescale(table, buckets))
        except Failed as failed:
            for one in failed.done:
                discard(table._root, table.schema, Changes.from_bytes(one))
            raise failed.error from None
        changes = Changes.concat(map(Changes.from_bytes, done))
        return Rewritten(changes, lambda: discard(table._root, table.schema, changes))

    return table._rescaled(buckets, partitions, rewrite)


class _Rescale:
    """Runs on an executor: splits in, what was written to the new buckets of their rows out."""

    def __init__(self, table: Table, buckets: int) -> None:
        self.table = table
        self.buckets = buckets

    def __call__(self, group: list[bytes]) -> bytes:
        splits = [Split.from_bytes(one) for one in group]
        root, schema = self.table._root, self.table.schema
        with rewriter(root, schema, self.buckets) as writer:
            rewrite_splits(root, schema, splits, writer)
            return bytes(writer.changes(is_new=True))


def analyze(
    table: Table, spark: SparkSession | None, columns: Sequence[str] | None, *, all_columns: bool
) -> Statistics | None:
    """See `analyze_spark`."""
    require_table(table, "analyze_spark", Table.analyze)
    fields = columns_to_analyze(table.schema, columns, all_columns=all_columns)

    def measure(splits: Sequence[Split]) -> list[Measured]:
        try:
            done = run_tasks(session(spark), list(map(bytes, splits)), _Measure(table, fields))
        except Failed as failed:
            raise failed.error from None
        return [Measured.from_bytes(fields, one) for one in done]

    return table._analyzed(columns, all_columns, measure=measure)


class _Measure:
    """Runs on an executor: a split in, what its rows are like out."""

    def __init__(self, table: Table, fields: Sequence[Field]) -> None:
        self.table = table
        self.fields = fields

    def __call__(self, split: bytes) -> bytes:
        return bytes(measured(self.table._root, self.table.schema, self.fields, [Split.from_bytes(split)]))


class _Hands:
    """Executors that list directories and delete files."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def listed(self, directories: Sequence[Directory], limit: int | None) -> Iterator[Listed]:
        """See `Hands.listed`."""
        for start in range(0, len(directories), _LISTED_AT_ONCE):
            part = directories[start : start + _LISTED_AT_ONCE]
            for found in self._by_parts(part, _LISTED_BY_TASK, _List(limit)):
                yield from msgspec.msgpack.decode(found, type=list[Listed])

    def delete(self, targets: Sequence[Target]) -> int:
        """See `Hands.delete`."""
        return sum(map(int, self._by_parts(targets, _DELETED_BY_TASK, _delete)))

    def _by_parts(
        self, items: Sequence[Item], size: int, work: Callable[[Sequence[Item]], bytes]
    ) -> list[bytes]:
        """What `work` gives for each of some items, so many in a task, in their order."""
        tasks = [(start, items[start : start + size]) for start in range(0, len(items), size)]
        try:
            done = run_tasks(self._spark, tasks, _Placed(work))
        except Failed as failed:
            raise failed.error from None
        results = (msgspec.msgpack.decode(one, type=tuple[int, bytes]) for one in done)
        return [result for _, result in sorted(results)]


class _Placed(Generic[Item]):
    """Runs on an executor: items and their place in, what work gives for them and the place out."""

    def __init__(self, work: Callable[[Sequence[Item]], bytes]) -> None:
        self.work = work

    def __call__(self, task: tuple[int, Sequence[Item]]) -> bytes:
        start, items = task
        return msgspec.msgpack.encode((start, self.work(items)))


class _List:
    """Runs on an executor: directories in, what is in each out."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit

    def __call__(self, directories: Sequence[Directory]) -> bytes:
        return msgspec.msgpack.encode([look_at(directory, self.limit) for directory in directories])


def _delete(targets: Sequence[Target]) -> bytes:
    return b"%d" % sum(remains(target) for target in targets)
