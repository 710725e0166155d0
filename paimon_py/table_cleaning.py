"""The verbs that clean a table of files and entries that are of no use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from paimon_py.doors import names_place
from paimon_py.errors import UsageError
from paimon_py.maintain.expired import RemovedOrphans
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema


@names_place(lambda table: table._root.path)
class TableCleaning:
    """What `Table` offers to get rid of what nobody needs."""

    _root: TableRoot
    _schema: TableSchema

    def remove_orphans(
        self,
        *,
        older_than: datetime | timedelta | int | None = None,
        dry_run: bool = True,
        progress: Callable[[int, int, str], object] | None = None,
    ) -> RemovedOrphans:
        """Find the files of the table that nothing names, and delete them. A dry run unless told otherwise.

        Writers that failed leave such files, and expiry that died. Everything that a snapshot, tag, branch or kept
        changelog names stays, and all files that are younger than the limit: a writer may be about to commit them.
        Expiry, rollbacks and writers may go on beside, also Java's.

        Args:
            older_than: an age above 0, or a time before now; a day if nothing is said. No writer may hold files
                uncommitted for longer.
            dry_run: delete nothing, say what would go.
            progress: called with how many directories are done, how many there are, and "directories".

        Returns: how many files and bytes went, the first paths, and what stays.

        Cost: all metadata once, a list for each directory, a delete for each file.
        Raises:
            UsageError: the limit is not in the past.
            CorruptionError, StorageError: something that may name files cannot be read, or a directory not be listed.
        """
        from paimon_py.maintain.remove_orphans import limit_of, remove_orphans

        if progress is not None and not callable(progress):
            raise UsageError(f"progress is a function that is told how far the search has come, not {progress!r}")
        limit = limit_of(self._root.env.clock, older_than)
        return remove_orphans(self._root, limit, dry_run=dry_run, progress=progress)
