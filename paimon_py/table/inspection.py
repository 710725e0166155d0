"""Inspection methods of `Table`: report on its health without changing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_py.arguments import check_flag, check_progress
from paimon_py.doctor.finding import Finding
from paimon_py.errors import UsageError
from paimon_py.table.verbs import TableVerbs, at_table_door, reads

if TYPE_CHECKING:
    from paimon_py.metadata.commit_history import HistoryEntry


@at_table_door
class TableHealth(TableVerbs):
    """Methods of `Table` that inspect its health."""

    @reads
    def levels(self) -> pa.Table:
        """The levels that contain files, for every bucket of the latest snapshot, ordered by bucket and level.

        Returns: `partition` (such as `month=3`; empty without partition keys), `bucket`, `level`, `file_count`,
            `record_count` (rows in files, including rows that later rows replace or deletion vectors delete; once if
            several files contain their columns), `delete_count` (delete rows, as far as files record them),
            `file_size_in_bytes`.

        Cost: all manifests of the snapshot that were not read before; no data file.
        Raises: CorruptionError, StorageError
        """
        from paimon_py.metadata.level_files import levels_of

        return levels_of(self._open_table, self._root.latest())

    @reads
    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits of the table, newest first: operation, user, rows and files added and removed.

        Args:
            limit: the maximum number of entries; None for all remaining snapshots.

        Cost: a get for each snapshot that was not read before, and for the list and manifests of its changes.
        Raises:
            UsageError: the limit is not a whole number from 1.
            StorageError, CorruptionError: metadata cannot be read.
        """
        from paimon_py.metadata.commit_history import commit_history

        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise UsageError(f"limit is a whole number of entries from 1, or None for all, not {limit!r}")
        return commit_history(self._root, limit)

    @reads
    def doctor(
        self, *, deep: bool = False, progress: Callable[[int, int, str], object] | None = None
    ) -> list[Finding]:
        """Find existing and developing problems of the latest snapshot; changes nothing.

        Checks for missing and damaged files, small files, files that pile up on level 0, sorted runs that readers
        merge, skewed buckets and keys, large manifests, snapshots, tags and consumers that retain a lot of data,
        orphans, hash indexes that do not match their buckets, clock skew, contradictory options, gaps and
        inconsistencies in the history, unfinished rollbacks and branches, consumers of another history, and idle users.

        Args:
            deep: also read one column of every data file, or its key, and therefore its footer.
            progress: called with the amount done, the total, and the unit: "files", "snapshots", "tags", and then as by
                `remove_orphans`.

        Returns: findings, the worst first, each with the call that fixes it; an empty list for a healthy table.

        Cost: a dry run of `remove_orphans`, which reads all metadata once, and one additional list for each directory;
            memory for some columns of all files.
        Raises:
            SnapshotExpiredError: the latest snapshot expired during the call; repeat it.
            UnsupportedError: `deep` reads files that paimon_py cannot read.
            StorageError: the store failed.
        """
        from paimon_py.doctor.checks import examine
        from paimon_py.doctor.gather import gather

        check_flag("deep", deep)
        check_progress(progress)
        return examine(gather(self._open_table.under(self._root.schemas.latest()), deep=deep, progress=progress))
