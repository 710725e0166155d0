"""Java's procedures, as in `CALL sys.compact(table => 'db.t')`, as methods with the same names and arguments.

Values are Python values: partitions are `[{"month": 3}]`, times are datetimes, ages timedeltas. Heavy work runs on the
executors.

Source: Java `paimon-spark` `SparkProcedures`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Union

from pyspark.sql import SparkSession

from paimon_py.errors import UsageError
from paimon_py.spark import care
from paimon_py.spark.meaning import Meaning

if TYPE_CHECKING:
    from paimon_py import Catalog, CommitResult, Consumer, ExpiredSnapshots, Predicate, RolledBack, Table, Tag
    from paimon_py.types import RemovedOrphans

Moment = Union[datetime, timedelta, str, int]
Partitions = Sequence[Mapping[str, object]]


class _OfHistory(ABC):
    """The procedures for tags, branches and rollbacks."""

    @abstractmethod
    def _of(self, table: str) -> Table: ...

    def create_tag(
        self, table: str, tag: str, *, snapshot: int | None = None, time_retained: timedelta | None = None
    ) -> Tag:
        """Create a tag for a snapshot, by default the latest."""
        return self._of(table).create_tag(tag, snapshot, retain=time_retained)

    def replace_tag(
        self, table: str, tag: str, *, snapshot: int | None = None, time_retained: timedelta | None = None
    ) -> Tag:
        """Move a tag to another snapshot, by default the latest."""
        return self._of(table).replace_tag(tag, snapshot, retain=time_retained)

    def rename_tag(self, table: str, tag: str, target_tag: str) -> Tag:
        """Rename a tag."""
        return self._of(table).rename_tag(tag, target_tag)

    def delete_tag(self, table: str, tag: str) -> None:
        """Delete tags, given as 'a' or 'a,b'."""
        found = self._of(table)
        for name in tag.split(","):
            found.delete_tag(name)

    def expire_tags(self, table: str, *, older_than: Moment | None = None) -> list[str]:
        """Delete expired tags. Returns: their names."""
        return self._of(table).expire_tags(older_than=older_than)

    def rollback(self, table: str, version: str | int | datetime) -> RolledBack:
        """Roll back to a snapshot, given by its id, a tag or a time."""
        return self._of(table).rollback_to(version)

    def create_branch(self, table: str, branch: str, tag: str | None = None) -> Table:
        """Create a branch from a tag, or, as in Java, an empty branch."""
        return self._of(table).create_branch(branch, tag)

    def delete_branch(self, table: str, branch: str) -> None:
        """Delete branches, given as 'a' or 'a,b'."""
        found = self._of(table)
        for name in branch.split(","):
            found.delete_branch(name)

    def fast_forward(self, table: str, branch: str, *, discard: bool = False) -> int | None:
        """Set a table to the state of a branch; `discard` drops commits that are not part of the branch.

        Returns: the latest snapshot.
        """
        self._of(table).fast_forward(branch, discard=discard)
        latest = self._of(table).snapshot()
        return None if latest is None else latest.id


class Procedures(_OfHistory):
    """The procedures of the tables of one catalog; `table` is always `db.t`.

    Results and errors are those of `Table`.
    """

    def __init__(self, catalog: Catalog, spark: SparkSession) -> None:
        self._catalog = catalog
        self._spark = spark

    def compact(
        self, table: str, *, partitions: Partitions | None = None, compact_strategy: str = "full",
        order_strategy: str | None = None, order_by: Sequence[str] | str | None = None,
        where: Predicate | str | None = None,
    ) -> CommitResult:  # fmt: skip
        """Merge or sort files on the executors; `compact_strategy`: 'full', or 'minor' for only the due compactions."""
        if compact_strategy not in ("full", "minor"):
            raise UsageError(f"compact_strategy is 'full' or 'minor', not {compact_strategy!r}")
        columns = order_by.split(",") if isinstance(order_by, str) else order_by
        return care.compact(
            self._of(table), self._spark, full=compact_strategy == "full", partitions=partitions, where=where,
            order_by=columns, strategy=order_strategy, progress=None,
        )  # fmt: skip

    def expire_snapshots(
        self, table: str, *, retain_max: int | None = None, retain_min: int | None = None,
        older_than: Moment | None = None, max_deletes: int | None = None,
    ) -> ExpiredSnapshots:  # fmt: skip
        """Expire old snapshots; executors delete the files."""
        return care.expire(
            self._of(table), self._spark, retain_min=retain_min, retain_max=retain_max, older_than=older_than,
            max_deletes=max_deletes, dry_run=False,
        )  # fmt: skip

    def remove_orphan_files(
        self, table: str, *, older_than: Moment | None = None, dry_run: bool = False
    ) -> RemovedOrphans:
        """Delete orphan files; executors list directories and delete files."""
        return care.clean(self._of(table), self._spark, older_than=older_than, dry_run=dry_run, progress=None)

    def rescale(
        self, table: str, *, bucket_num: int | None = None, partitions: Partitions | None = None
    ) -> CommitResult:
        """Rewrite partitions with another number of buckets, by default that of the option 'bucket'."""
        found = self._of(table)
        buckets = int(found.options.get("bucket", "-1")) if bucket_num is None else bucket_num
        return care.rescale(found, self._spark, buckets, partitions)

    def rewrite_file_index(self, table: str, *, where: Predicate | str | None = None) -> CommitResult:
        """Add the file indexes of the table's options to old files."""
        found = self._of(table)
        meant = None if where is None else Meaning.of(self._spark).condition(where, found.schema.fields)
        return found.rewrite_file_index(where=meant)

    def compact_manifest(self, table: str) -> CommitResult:
        """Merge the manifests of a table."""
        return self._of(table).compact_manifests()

    def remove_unexisting_files(self, table: str, *, dry_run: bool = False) -> list[str]:
        """Remove missing data files from a table. Returns: their paths."""
        return list(self._of(table).remove_unexisting_files(dry_run=dry_run).paths)

    # -- partitions ---------------------------------------------------------------------------------------------------

    def expire_partitions(
        self, table: str, *, expiration_time: timedelta | None = None, timestamp_formatter: str | None = None,
        timestamp_pattern: str | None = None, expire_strategy: str | None = None, max_expires: int | None = None,
    ) -> list[dict[str, object]]:  # fmt: skip
        """Drop expired partitions. Returns: the partitions."""
        done = self._of(table).expire_partitions(
            older_than=expiration_time, strategy=expire_strategy, timestamp_pattern=timestamp_pattern,
            timestamp_formatter=timestamp_formatter, max_partitions=max_expires,
        )  # fmt: skip
        return [dict(partition) for partition in done.partitions]

    def mark_partition_done(self, table: str, partitions: Partitions) -> list[str]:
        """Mark partitions as complete. Returns: the paths of the marker files."""
        return self._of(table).mark_partitions_done(partitions)

    # -- tags and branches --------------------------------------------------------------------------------------------

    def reset_consumer(self, table: str, consumer_id: str, next_snapshot_id: int | None = None) -> Consumer | None:
        """Set the next snapshot of a consumer; None deletes the consumer."""
        found = self._of(table)
        if next_snapshot_id is None:
            found.delete_consumer(consumer_id)
            return None
        return found.reset_consumer(consumer_id, next_snapshot_id)

    def _of(self, table: str) -> Table:
        return care.require_table(self._catalog.table(table), "a procedure")
