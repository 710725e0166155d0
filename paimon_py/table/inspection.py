"""The verbs that inspect a table's state without changing it."""

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
    """What `Table` offers to see how a table does."""

    @reads
    def levels(self) -> pa.Table:
        """The levels of every bucket of the latest snapshot that have files, in the order of buckets and levels.

        Returns: `partition` (such as `month=3`; empty without partition keys), `bucket`, `level`, `file_count`,
            `record_count` (rows of files, those included that later rows replace), `delete_count` (rows that delete, as
            far as files say), `file_size_in_bytes`.

        Cost: all manifests of the snapshot that were not read before; no data file.
        Raises: CorruptionError, StorageError
        """
        from paimon_py.metadata.level_files import levels_of

        return levels_of(self._open_table, self._root.latest())

    @reads
    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What the commits of the table did, the newest first: operation, user, rows and files that came and went.

        Args:
            limit: the most entries; None for all snapshots that are left.

        Cost: a get for each snapshot that was not read before, and for the list and manifests of its changes.
        Raises:
            UsageError: the limit is not a number from 1.
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
        """Look for what is wrong with the latest snapshot of the table, or gets worse; nothing is changed.

        Looks for missing and damaged files, small files, files that pile up on level 0, sorted runs that readers merge,
        skewed buckets and keys, manifests that grew, snapshots, tags and consumers that hold much, orphans, hash
        indexes that do not go with their buckets, clocks that disagree, options that contradict each other, gaps and
        seams in the history, rollbacks and branches that were left in the middle, consumers of another history, and
        idle users.

        Args:
            deep: also read one column of every data file, or its key, and so its footer.
            progress: called with how much is done, how much there is, and what: "files", "snapshots", "tags", and
                then as by `remove_orphans`.

        Returns: findings, the worst first, each with the call that mends it; none of a healthy table.

        Cost: a dry run of `remove_orphans`, which reads all metadata once, and one list more for each directory;
            memory for some columns of all files.
        Raises:
            SnapshotExpiredError: the latest snapshot expired meanwhile; look again.
            UnsupportedError: `deep` looks at files that paimon_py cannot read.
            StorageError: the store failed.
        """
        from paimon_py.doctor.checks import examine
        from paimon_py.doctor.gather import gather

        check_flag("deep", deep)
        check_progress(progress)
        return examine(gather(self._open_table.under(self._root.schemas.latest()), deep=deep, progress=progress))
