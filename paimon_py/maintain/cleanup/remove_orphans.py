"""Orphan removal: finds and deletes unreferenced files of a table.

First the names in all states are read, then directories are listed one by one. Before files in a directory are deleted,
new states are read, so that the candidates are always older than the known names.

Source: format.md §16.6; docs/reliability.md §3 (e); Java `OrphanFilesClean`, `LocalOrphanFilesClean`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import msgspec
import numpy as np

from paimon_py.arguments import as_python
from paimon_py.env import Clock
from paimon_py.errors import StorageError, UsageError
from paimon_py.executors.executor import Executor
from paimon_py.executors.job import Job
from paimon_py.logs import EXPIRY, fields
from paimon_py.maintain.cleanup.expired import RemovedOrphans
from paimon_py.maintain.cleanup.file_directories import (
    Directory,
    bucket_directories,
    external_roots,
    metadata_directories,
)
from paimon_py.maintain.cleanup.references import BranchRoot, ReferencedNames, branch_roots
from paimon_py.maintain.file_tasks import DELETE, DeleteTask, Deletion, delete_files, is_older, list_directories
from paimon_py.maintain.idle_users import forget_user, idle_users
from paimon_py.maintain.observers import report
from paimon_py.metadata.consumers import Consumers
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.store_clock import store_lag
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.scan.moments import limit_before
from paimon_py.spec.events import OrphanEvent
from paimon_py.spec.iceberg import writes_iceberg
from paimon_py.storage.store import FileStatus

Candidate = tuple[Directory, FileStatus]

DAY = timedelta(days=1)
_HOUR_MILLIS = 3_600_000
_NEVER = 0
"""A limit that no file can be older than."""
_SHOWN = 1000
_DELETED_AT_ONCE = 20_000


def limit_of(clock: Clock, older_than: datetime | timedelta | str | int | None) -> int:
    """The time limit for files, in epoch milliseconds; by default one day ago.

    Raises: UsageError if it is not in the past.
    """
    now = clock.millis()
    older_than = DAY if older_than is None else as_python(older_than)
    limit = limit_before("older_than", older_than, now)
    if limit >= now:
        raise UsageError(
            f"older_than = {str(older_than)!r} is not in the past: files that writers are about to commit would be"
            " deleted. Give an age above 0 or a time before now; the default is one day"
        )
    return limit


def remove_orphans(
    root: TableRoot, limit_millis: int, *, dry_run: bool, progress: Progress | None = None,
    executor: Executor | None = None,
) -> RemovedOrphans:
    """Delete unreferenced files of a table that are older than a limit, and idle users.

    Args:
        executor: lists directories and deletes files; None: this process.

    Cost: every state, manifest list, manifest and index manifest once, a list per directory, a delete per file; a
      list per branch and three calls per idle user; three calls to read the store's clock.
      Memory: 8 bytes per name, and the largest directory.
    Raises:
        CorruptionError, StorageError: a file that may reference others cannot be read, or a directory cannot be listed;
            files deleted before were orphans.
        TableNotFoundError: the table does not exist (any more).
    """
    schema = root.schemas.latest()
    lag = 0 if dry_run else store_lag(root)
    limit_millis = _NEVER if lag is None else limit_millis - lag
    settled = root.env.clock.millis() - (lag or 0) - _HOUR_MILLIS
    tally = None if progress is None else ProgressCounter(progress, 0, "files")
    deleting = Job(DELETE, OpenTable(root, schema), tally=tally)
    search = _Search(deleting, limit_millis, min(limit_millis, settled), executor, progress, dry_run=dry_run)
    search.run()
    if lag is not None:
        search.forget_users(root.env.clock.millis() - lag)
    found = search.result()
    if not dry_run:
        gone = found.files - found.left_files
        EXPIRY.info(
            "%s: %d orphans were deleted, %d bytes", root.path, gone, found.size_bytes,
            extra=fields(root, files=gone, size_bytes=found.size_bytes),
        )  # fmt: skip
        event = lambda: OrphanEvent(**root.event_place(), deleted_files=gone, size_bytes=found.size_bytes)  # noqa: E731
        said = report(root, event) if gone else ()
        return msgspec.structs.replace(found, warnings=said) if said else found
    return found


class _Search:
    """One search. Candidates are collected up to a number, then checked again and deleted."""

    def __init__(
        self, deleting: Job[DeleteTask, Deletion], limit: int, settled: int, executor: Executor | None,
        progress: Progress | None, *, dry_run: bool,
    ) -> None:  # fmt: skip
        """`limit`: the time limit for files to delete; `settled`: for states that need not be read again."""
        self._root = root = deleting.table.root
        self._deleting = deleting
        self._limit = limit
        self._executor = executor
        self._progress = progress
        self._dry_run = dry_run
        self._reachable = ReferencedNames(root, settled)
        self._candidates: list[Candidate] = []
        self._empty: set[Directory] = set()
        self._found = RemovedOrphans(older_than_millis=limit, dry_run=dry_run)

    def run(self) -> None:
        self._reachable.read(self._progress)
        branches = branch_roots(self._root)
        external, shared = external_roots(self._root, branches)
        keys = self._root.schemas.latest().partition_keys
        directories = [
            *metadata_directories(self._root, branches),
            *_each_once(bucket_directories(self._root, branches, keys, external)),
        ]
        self._count(directories=len(directories), shared_roots=tuple(shared))
        tally = ProgressCounter(self._progress, len(directories), "directories")
        for place, (directory, old, young) in enumerate(self._looked_at(directories)):
            tally.add(min(place, 1))  # the previous one
            self._count(young_files=self._found.young_files + young)
            self._candidates += [(directory, status) for status in old]
            while len(self._candidates) >= _DELETED_AT_ONCE:
                self._clean()
        self._clean()
        self._clean_marks(branches)
        self._clean_iceberg()
        self._remove_directories()
        tally.end()

    def forget_users(self, now_millis: int) -> None:
        """Delete users that have been idle for long and that no state references, not even a new one."""
        branches = branch_roots(self._root)
        if not list(idle_users(self._root, branches, now_millis, self._reachable.users)):
            return
        self._reachable.read()
        idle = idle_users(self._root, branches, now_millis, self._reachable.users)
        gone = [user.name for user in idle if self._dry_run or forget_user(self._root, user)]
        self._count(users=tuple(sorted(gone)))

    def result(self) -> RemovedOrphans:
        """The result of the search."""
        return self._found

    def _looked_at(self, directories: Sequence[Directory]) -> Iterator[tuple[Directory, list[FileStatus], int]]:
        """The possible orphans in each directory, and the number of files that are too young."""
        limit = None if self._dry_run else self._limit
        listed = list_directories(self._deleting.table, directories, limit, self._executor)
        for directory, found in zip(directories, listed, strict=True):
            if found.is_left:
                self._empty.add(directory)
            lacking = np.flatnonzero(self._reachable.lack([status.name for status in found.files])).tolist()
            old = [found.files[at] for at in lacking if is_older(found.files[at], self._limit)]
            yield directory, old, len(lacking) - len(old)

    def _clean(self) -> None:
        """Delete the first candidates, unless new states reference them."""
        part, self._candidates = self._candidates[:_DELETED_AT_ONCE], self._candidates[_DELETED_AT_ONCE:]
        if not part:
            return
        self._reachable.read()
        lacking = self._reachable.lack([status.name for _, status in part]).tolist()
        going = [one for one, lacks in zip(part, lacking, strict=True) if lacks]
        left = 0
        if not self._dry_run:
            for external in dict.fromkeys(directory.external for directory, _ in going):
                paths = [status.path for directory, status in going if directory.external == external]
                left += self._delete(paths, external)
            self._empty.update(directory for directory, _ in going if directory.levels)
        self._count(
            files=self._found.files + len(going),
            size_bytes=self._found.size_bytes + sum(status.size_bytes for _, status in going),
            paths=(*self._found.paths, *(status.path for _, status in going))[:_SHOWN],
            left_files=self._found.left_files + left,
        )

    def _clean_marks(self, branches: Sequence[BranchRoot]) -> None:
        """Delete the marks of deleted consumers, except one that was created again in the meantime."""
        marks = [mark for home in branches for mark in Consumers(self._root.store, home.path).orphan_marks()]
        for mark in marks:
            status = self._root.store.stat(mark.path) if is_older(mark, self._limit) else None
            if status is None or not is_older(status, self._limit):
                continue
            left = 0 if self._dry_run else self._delete(list(self._root.each_of_same([mark.path])))
            self._count(
                files=self._found.files + 1,
                size_bytes=self._found.size_bytes + mark.size_bytes,
                paths=(*self._found.paths, mark.path)[:_SHOWN],
                left_files=self._found.left_files + left,
            )

    def _clean_iceberg(self) -> None:
        """Delete files of Iceberg metadata that no version references, not even a new one."""
        schema = self._root.schemas.latest()
        if not writes_iceberg(schema):
            return
        from paimon_py.iceberg.state import iceberg_orphans

        table = OpenTable(self._root, schema)
        first = {status.path for status in iceberg_orphans(table) if is_older(status, self._limit)}
        going = [status for status in iceberg_orphans(table) if status.path in first] if first else []
        if going:
            self._root.schemas.latest()
        left = 0 if self._dry_run else self._delete([status.path for status in going])
        self._count(
            files=self._found.files + len(going),
            size_bytes=self._found.size_bytes + sum(status.size_bytes for status in going),
            paths=(*self._found.paths, *(status.path for status in going))[:_SHOWN],
            left_files=self._found.left_files + left,
        )

    def _delete(self, paths: Sequence[str], external: str | None = None) -> int:
        """Delete files of the table's own store, or below an external root. Returns how many are left."""
        return delete_files(self._deleting, paths, self._executor, external=external)

    def _remove_directories(self) -> None:
        """Remove buckets that have been empty for long or have become empty, and then the partitions above them."""
        found = self._empty
        while found:
            in_order = sorted(found, key=lambda one: one.path)
            removed = list(self._root.env.pool.map(_is_removed, in_order))
            self._count(removed_directories=self._found.removed_directories + sum(removed))
            gone = [directory for directory, is_gone in zip(in_order, removed, strict=True) if is_gone]
            above = (one._replace(path=one.path.rpartition("/")[0], levels=one.levels - 1) for one in gone)
            found = {directory for directory in above if directory.levels}

    def _count(self, **changes: object) -> None:
        self._found = msgspec.structs.replace(self._found, **changes)


def _each_once(directories: Iterable[Directory]) -> Iterable[Directory]:
    """Directories without duplicates that are below two external roots."""
    found: dict[tuple[object, ...], Directory] = {}
    for one in directories:
        found.setdefault(tuple(one[:4]), one)
    return found.values()


def _is_removed(directory: Directory) -> bool:
    """Remove a directory if it is empty; returns whether it was removed."""
    try:
        return directory.store.remove_directory(directory.path)
    except StorageError:
        return False
