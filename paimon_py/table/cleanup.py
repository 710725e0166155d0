"""The verbs that delete useless files and entries of a table."""

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
    """What `Table` offers to get rid of what nobody needs."""

    @abstractmethod
    def truncate(self) -> CommitResult:
        """Remove all rows as one commit."""

    def remove_orphans(
        self,
        *,
        older_than: datetime | timedelta | str | int | None = None,
        dry_run: bool = True,
        progress: Callable[[int, int, str], object] | None = None,
        executor: Executor | None = None,
    ) -> RemovedOrphans:
        """Find the files of the table that nothing names, and delete them. A dry run unless told otherwise.

        Writers that failed leave such files, and expiry that died. Everything that a snapshot, tag, branch or kept
        changelog names stays, and all files that are younger than the limit: a writer may be about to commit them.
        Users are forgotten that have not committed for longer than `commit.user-retention` and that nothing names.
        Expiry, rollbacks and writers may go on beside, also Java's.

        Args:
            older_than: an age above 0, or a time before now; a day if nothing is said. No writer may hold files
                uncommitted for longer.
            dry_run: delete nothing, say what would go.
            progress: called with how much is done, how much there is, and what: "states" that name files (snapshots,
                tags, changelogs), then "directories", and in between "files" that are deleted, of an unknown number.
            executor: who lists directories and deletes files, see `paimon_py.executors`; None: this process.

        Returns: how many files and bytes went, the first paths, and what stays.

        Cost: all metadata once, a list for each directory, a delete for each file.
        Raises:
            UsageError: the limit is not in the past.
            CorruptionError, StorageError: something that may name files cannot be read, or a directory not be listed.
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
        """Take missing data files out of the table, so that the rest can be read. A dry run unless told otherwise.

        Somebody deleted these files, or an old writer committed them again after they had gone. Their rows are lost,
        and older versions of keys come to light. Older snapshots and tags stay as they are.

        Args:
            dry_run: change nothing, say what is missing.
            progress: called with how many data files were looked for, how many there are, and "files".

        Returns: which files are missing.

        Cost: a stat for each data file of the latest snapshot.
        Raises:
            CommitConflictError: others changed the same buckets again and again; nothing was changed.
            CommitUnknownError: the store did not say whether the commit happened; the call may be repeated.
            StorageError, CorruptionError: the store failed, or a manifest cannot be read; nothing was changed.
        """
        from paimon_py.maintain.cleanup.remove_unexisting import remove_unexisting_files

        check_writable(self._newest)
        check_progress(progress)
        check_flag("dry_run", dry_run)
        return remove_unexisting_files(self._newest_table, dry_run=dry_run, progress=progress)

    def purge_files(self) -> RemovedOrphans:
        """Delete everything that the table holds: rows, snapshots, branches, tags, consumers, changelogs and files.

        Its schemas stay, and one empty snapshot. Nothing may write to the table meanwhile: also files go that writers
        have not committed yet.

        Returns: the files that nothing named when all else was gone.

        Raises:
            UsageError: this is a branch.
            CommitError: the table could not be emptied; branches, tags and consumers are gone. Repeat the call.
            StorageError, CorruptionError: the store failed on the way, or damaged metadata; repeat the call.
        """
        from paimon_py.maintain.cleanup.purge_files import purge_files

        check_writable(self._newest)
        return purge_files(self._newest_table, self.truncate)
