"""Partition methods of `Table`: list, expire and mark partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from paimon_py.arguments import check_flag, check_progress
from paimon_py.errors import UsageError
from paimon_py.maintain.cleanup.expired import ExpiredPartitions
from paimon_py.spec.partition import Partition
from paimon_py.spec.supported import check_writable
from paimon_py.table.verbs import TableVerbs, at_table_door, reads


@at_table_door
class TablePartitions(TableVerbs):
    """Methods of `Table` for its partitions."""

    @reads
    def partitions(self) -> list[Partition]:
        """The partitions of the latest snapshot that contain files, ordered by their values.

        A table without partition keys is one partition without values.

        Cost: all manifests of the snapshot that were not read before; no data file.
        Raises: CorruptionError, StorageError
        """
        from paimon_py.metadata.partition_files import list_partitions

        return list_partitions(self._newest_table, self._root.latest())

    def expire_partitions(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        strategy: str | None = None,
        timestamp_pattern: str | None = None,
        timestamp_formatter: str | None = None,
        max_partitions: int | None = None,
        batch_size: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> ExpiredPartitions:
        """Drop the partitions that have expired. Arguments default to the table's options.

        Rows that other writers add to such a partition during the call are dropped with it; with "update-time", the
        partition is then kept. Files are deleted when the snapshots that reference them expire.

        Args:
            older_than: drop partitions older than this age or time (`partition.expiration-time`). Partition times are
                interpreted in the local time of this machine.
            strategy: "values-time" reads the time from the values, "update-time" uses the creation time of the newest
                file (`partition.expiration-strategy`).
            timestamp_pattern: a string in which `$key` stands for a value; by default the first key
                (`partition.timestamp-pattern`).
            timestamp_formatter: the format of that string, as a Java pattern such as `yyyyMMdd`; by default a date such
                as 2024-05-14, optionally with a time (`partition.timestamp-formatter`).
            max_partitions: the maximum number of partitions to drop in this call (`partition.expiration-max-num`).
            batch_size: the maximum number to drop in one commit (`partition.expiration-batch-size`).
            dry_run: drop nothing; report what would be dropped.
            progress: called after each commit with the number dropped, the total, and "partitions".

        Returns: the partitions that were dropped, and those that can never expire.

        Raises:
            UsageError: the table has no partitions, no expiration time is set, or a pattern is invalid.
            CommitConflictError: other commits kept changing the same partitions.
            CommitUnknownError: the store did not say whether a commit happened; nothing was deleted.
        """
        from paimon_py.maintain.cleanup.expire_partitions import PartitionExpiry, expire_partitions, require_expiry

        check_writable(self._newest)
        check_progress(progress)
        check_flag("dry_run", dry_run)
        said = {
            "partition.expiration-strategy": _text("strategy", strategy),
            "partition.timestamp-pattern": _text("timestamp_pattern", timestamp_pattern),
            "partition.timestamp-formatter": _text("timestamp_formatter", timestamp_formatter),
            "partition.expiration-max-num": _count("max_partitions", max_partitions),
            "partition.expiration-batch-size": _count("batch_size", batch_size),
        }
        options = {**self._newest.options, **{name: value for name, value in said.items() if value is not None}}
        expiry = PartitionExpiry.of(self._newest, options, self._root.env.clock, older_than=older_than)
        return expire_partitions(
            self._newest_table, require_expiry(expiry, self._newest), dry_run=dry_run, progress=progress
        )

    def mark_partitions_done(self, partitions: Sequence[Mapping[str, object]]) -> list[str]:
        """Mark partitions as complete by writing a file `_SUCCESS` to the directory of each, as Java does.

        A partition that was already marked keeps its first marking time and gets a new last marking time.

        Args:
            partitions: such as `[{"month": 3}]`; the leading keys alone mark the directory above the partitions.

        Returns: the paths of the files.

        Raises:
            UsageError: the table has no partitions, a name is not a partition key, a value does not fit.
            UnsupportedError: `partition.mark-done-action` specifies an action other than success-file.
            StorageError: some files may have been written; the call may be repeated.
        """
        from paimon_py.maintain.mark_done import check_actions, mark_done

        check_writable(self._newest)
        check_actions(self._newest.options)
        return mark_done(self._newest_table, partitions)


def _count(name: str, number: int | None) -> str | None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise UsageError(f"{name} must be a whole number of at least 1, not {number!r}")
    return None if number is None else str(number)


def _text(name: str, text: object) -> str | None:
    if text is not None and not isinstance(text, str):
        raise UsageError(f"{name} must be a string, not {text!r}")
    return text
