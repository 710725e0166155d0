"""Who lists and deletes the many files of a table: this process, or others that it sends there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from paimon_py.errors import StorageError
from paimon_py.maintain.cleanup.file_directories import Directory
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.store import DeleteFile, FileStatus

Target = tuple[DeleteFile, str]
"""A file, and the store that has it."""

_LISTED_AT_ONCE = 16


class Listed(msgspec.Struct, frozen=True):
    """The files of a directory that may be orphans by their names. `is_left`: nothing has been there for long."""

    files: tuple[FileStatus, ...]
    is_left: bool = False


class Hands(Protocol):
    """Lists directories and deletes files."""

    def list_directories(self, directories: Sequence[Directory], limit: int | None) -> Iterator[Listed]:
        """What is in each directory, in their order. `limit`: when one that is left was written last before;
        None: nobody asks.

        Raises: StorageError
        """
        ...

    def delete(self, targets: Sequence[Target]) -> int:
        """Delete files. Gives how many the store left, which stay as orphans."""
        ...


class OwnHands:
    """Lists and deletes in this process, at once where calls take their time."""

    def __init__(self, root: TableRoot) -> None:
        self._root = root

    def list_directories(self, directories: Sequence[Directory], limit: int | None) -> Iterator[Listed]:
        """See `Hands.list_directories`."""
        at_once = _LISTED_AT_ONCE if "://" in self._root.path else 1
        for start in range(0, len(directories), at_once):
            part = directories[start : start + at_once]
            yield from self._root.env.pool.map(lambda directory: look_at(directory, limit), part)

    def delete(self, targets: Sequence[Target]) -> int:
        """See `Hands.delete`."""
        return sum(self._root.env.pool.map(remains, targets))


def look_at(directory: Directory, limit: int | None) -> Listed:
    """What is in one directory. Raises: StorageError"""
    found = directory.store.list(directory.path)
    files = tuple(one for one in found if not one.is_directory and directory.may_hold(one.name))
    if found or not directory.levels or limit is None:
        return Listed(files)
    status = directory.store.stat(directory.path)
    return Listed(files, status is not None and is_older(status, limit))


def remains(target: Target) -> bool:
    """Delete a file. Gives whether the store refused."""
    store, path = target
    try:
        store.delete(path)
    except StorageError:
        return True
    return False


def is_older(status: FileStatus, limit: int) -> bool:
    """Whether a file was certainly last written before a time."""
    return status.modified_millis is not None and status.modified_millis < limit
