"""Cleanup methods of `Table`: delete files and entries that are no longer used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta

from paimon_py.arguments import check_flag, check_progress
from paimon_py.commit.result import CommitResult
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.maintain.cleanup.expired import RemovedEntries, RemovedOrphans
from paimon_py.spec.supported import check_writable
from paimon_py.table.verbs import TableVerbs, at_table_door


@at_table_door
class TableCleaning(TableVerbs, ABC):
    """Methods of `Table` that remove unused data."""

    @abstractmethod
    def truncate(self) -> CommitResult:
        """Delete all rows in one commit."""

    def remove_orphans(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        dry_run: bool = True,
        progress: Callable[[int, int, str], object] | None = None,
        executor: Executor | None = None,
    ) -> RemovedOrphans:
        """Find files of the table that nothing references, and delete them. A dry run by default.

        Failed writers and interrupted expiry leave such files. Files referenced by a snapshot, tag, branch or retained
        changelog are kept, as are all files younger than the limit, because a writer may be about to commit them. Users
        that have not committed for longer than `commit.user-retention` and that nothing references are forgotten.
        Expiry, rollbacks and writers, including Java's, may run at the same time.

        Args:
            older_than: an age above 0, or a time in the past; one day by default. No writer may hold uncommitted files
                for longer.
            dry_run: delete nothing; report what would be deleted.
            progress: called with the amount done, the total, and the unit: "states" that reference files (snapshots,
                tags, changelogs), then "directories", and in between deleted "files", whose total is unknown.
            executor: lists directories and deletes files, see `paimon_py.executors`; None: this process.

        Returns: the number of files and bytes deleted, the first paths, and what is kept.

        Cost: all metadata once, a list for each directory, a delete for each file.
        Raises:
            UsageError: the limit is not in the past.
            CorruptionError, StorageError: metadata that may reference files cannot be read, or a directory cannot be
                listed.
        """
        from paimon_py.maintain.cleanup.remove_orphans import limit_of, remove_orphans

        check_progress(progress)
        check_flag("dry_run", dry_run)
        require_executor(executor)
        limit = limit_of(self._root.env.clock, older_than)
        return remove_orphans(self._root, limit, dry_run=dry_run, progress=progress, executor=executor)

    def remove_unexisting_files(
        self, *, dry_run: bool = True, progress: Callable[[int, int, str], object] | None = None
    ) -> RemovedEntries:
        """Remove missing data files from the table, so that the rest can be read. A dry run by default.

        Another program deleted them, or an old writer committed them again after their deletion. Their rows
        are lost, and older versions of keys become visible. Older snapshots and tags are unchanged.

        Args:
            dry_run: change nothing; report what is missing.
            progress: called with the number of data files checked, the total, and "files".

        Returns: the missing files.

        Cost: a stat for each data file of the latest snapshot.
        Raises:
            CommitConflictError: other commits kept changing the same buckets; nothing was changed.
            CommitUnknownError: the store did not say whether the commit happened; the call may be repeated.
            StorageError, CorruptionError: the store failed, or a manifest cannot be read; nothing was changed.
        """
        from paimon_py.maintain.cleanup.remove_unexisting import remove_unexisting_files

        check_writable(self._newest)
        check_progress(progress)
        check_flag("dry_run", dry_run)
        return remove_unexisting_files(self._newest_table, dry_run=dry_run, progress=progress)

    def purge_files(self) -> RemovedOrphans:
        """Delete everything in the table: rows, snapshots, branches, tags, consumers, changelogs and files.

        Its schemas and one empty snapshot remain. Nothing may write to the table at the same time: uncommitted files of
        writers are deleted too.

        Returns: the files that were unreferenced after everything else was deleted.

        Raises:
            UsageError: the table is a branch.
            CommitConflictError: the table was rolled back in the meantime. Repeat the call.
            CommitError: the table could not be emptied; branches, tags and consumers are already deleted. Repeat the
                call.
            StorageError, CorruptionError: the store failed during the call, or metadata is damaged; repeat the call.
        """
        from paimon_py.maintain.cleanup.purge_files import purge_files

        check_writable(self._newest)
        return purge_files(self._newest_table, self.truncate)
