"""Tasks for an executor that list the directories of a table and delete many files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec

from paimon_py.env import is_distant
from paimon_py.errors import StorageError
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job, TaskKind
from paimon_py.maintain.cleanup.file_directories import Content, Directory, external_store
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import ProgressCounter
from paimon_py.spec.serializable import Serializable
from paimon_py.storage.store import DeleteFile, FileStatus

_LISTED_HERE = 16
_LISTED_BY_TASK = 100
_LISTED_AT_ONCE = 10_000
"""The number of directories per job: the caller holds their contents in memory."""
_DELETED_BY_TASK = 1000
_COUNTED = 64
"""Number of deleted files between two progress reports."""


class DirectoryPlace(msgspec.Struct, frozen=True):
    """A directory as a serializable value. `external`: its external root, None in the table's store."""

    path: str
    content: Content
    levels: int
    external: str | None

    def directory(self, root: TableRoot) -> Directory:
        """The directory with its store."""
        store = root.store if self.external is None else external_store(root, self.external)
        return Directory(store, self.path, self.content, self.levels, self.external)


class ListTask(Serializable, frozen=True, kw_only=True):
    """Directories to list. `limit`: also report directories that were empty before it; None: do not."""

    kind: ClassVar[str] = "listing"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that lists directories"
    again: ClassVar[str] = "ask for tasks"

    directories: tuple[DirectoryPlace, ...]
    limit: int | None


class Listed(msgspec.Struct, frozen=True):
    """The files of a directory that may be orphans by their names. `is_left`: it has been empty for long."""

    files: tuple[FileStatus, ...]
    is_left: bool = False


class Listing(Serializable, frozen=True, kw_only=True):
    """The contents of some directories."""

    kind: ClassVar[str] = "listed"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that lists directories"
    again: ClassVar[str] = "run the task"

    found: tuple[Listed, ...]


class DeleteTask(Serializable, frozen=True, kw_only=True):
    """Files to be deleted.

    Attributes:
        paths: in the table's own store, or below `external`.
        external: an external root.
        named: paths as metadata contains them, in any store; files of other owners are kept.
    """

    kind: ClassVar[str] = "deletion"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that deletes files"
    again: ClassVar[str] = "ask for tasks"

    paths: tuple[str, ...]
    external: str | None = None
    named: bool = False


class Deletion(Serializable, frozen=True, kw_only=True):
    """The result of deleting files. `left`: the number of files that could not be deleted."""

    kind: ClassVar[str] = "deleted"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that deletes files"
    again: ClassVar[str] = "run the task"

    left: int


def list_directories(
    table: OpenTable, directories: Sequence[Directory], limit: int | None,
    executor: Executor | None = None,
) -> Iterator[Listed]:  # fmt: skip
    """The contents of directories, in order. `limit`: see `ListTask`.

    Cost: a list per directory; memory for ten thousand directories, or for a few if this process lists them.
    Raises: StorageError
    """
    here = _LISTED_HERE if is_distant(table.root.path) else 1
    by_task, at_once = (here, here) if executor is None else (_LISTED_BY_TASK, _LISTED_AT_ONCE)
    places = [DirectoryPlace(one.path, one.content, one.levels, one.external) for one in directories]
    job = Job(LIST, table)
    for start in range(0, len(places), at_once):
        part = places[start : start + at_once]
        cuts = range(0, len(part), by_task)
        tasks = [ListTask(directories=tuple(part[at : at + by_task]), limit=limit) for at in cuts]
        for listing in run_tasks(executor, job, tasks):
            yield from listing.found


def delete_files(
    job: Job[DeleteTask, Deletion], paths: Sequence[str], executor: Executor | None = None, *,
    external: str | None = None, named: bool = False,
) -> int:  # fmt: skip
    """Delete files. Returns how many the store could not delete; these stay as orphans.

    Args:
        external, named: see `DeleteTask`.
    """
    parts = (tuple(paths[at : at + _DELETED_BY_TASK]) for at in range(0, len(paths), _DELETED_BY_TASK))
    tasks = [DeleteTask(paths=part, external=external, named=named) for part in parts]
    return sum(done.left for done in run_tasks(executor, job, tasks))


def is_older(status: FileStatus, limit: int) -> bool:
    """Whether a file was certainly last written before a time."""
    return status.modified_millis is not None and status.modified_millis < limit


def _list(job: Job[ListTask, Listing], task: ListTask) -> Listing:
    directories = [place.directory(job.table.root) for place in task.directories]
    found = job.table.root.env.pool.map(lambda directory: _look_at(directory, task.limit), directories)
    return Listing(found=tuple(found))


def _look_at(directory: Directory, limit: int | None) -> Listed:
    found = directory.store.list(directory.path)
    files = tuple(one for one in found if not one.is_directory and directory.may_hold(one.name))
    if found or not directory.levels or limit is None:
        return Listed(files)
    status = directory.store.stat(directory.path)
    return Listed(files, status is not None and is_older(status, limit))


def _delete(job: Job[DeleteTask, Deletion], task: DeleteTask) -> Deletion:
    root, tally = job.table.root, job.tally or ProgressCounter(None, 0, "files")
    own = root.store if task.external is None else external_store(root, task.external)
    store: DeleteFile = root.files if task.named else own
    step = max(1, len(task.paths)) if job.tally is None else _COUNTED
    left = 0
    for start in range(0, len(task.paths), step):
        part = task.paths[start : start + step]
        left += sum(root.env.pool.map(lambda path: _remains(store, path), part))
        tally.add(len(part))
    return Deletion(left=left)


def _remains(store: DeleteFile, path: str) -> bool:
    """Delete a file. Returns whether the store refused."""
    try:
        store.delete(path)
    except StorageError:
        return True
    return False


LIST = TaskKind(task=ListTask, result=Listing, run=_list)
DELETE = TaskKind(task=DeleteTask, result=Deletion, run=_delete, steps=lambda task: len(task.paths))
