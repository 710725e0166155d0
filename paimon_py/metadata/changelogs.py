"""The changelogs of one table that outlive their snapshots: the JSON of a snapshot under another name.

Source: format.md §4.2, §16.2; Java `ChangelogManager`, `Changelog`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from paimon_py.codec.snapshot_json import snapshot_from_json, snapshot_to_json
from paimon_py.errors import CorruptionError
from paimon_py.metadata.hints import raise_hint
from paimon_py.spec.layout import (
    CHANGELOG_PREFIX,
    EARLIEST,
    LATEST,
    changelog_directory,
    changelog_path,
    join,
    parse_number,
)
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import DeleteFile, FileMissingError, Get, List, Put


class ChangelogStore(Get, Put, List, DeleteFile, Protocol):
    """The store operations that this module uses."""


class Changelogs:
    """The retained changelogs of one table directory (or branch directory)."""

    __slots__ = ("_path", "_store")

    def __init__(self, store: ChangelogStore, path: str) -> None:
        self._store = store
        self._path = path

    def ids(self) -> list[int]:
        """Ids of the snapshots whose changelogs are retained, ascending. Cost: one list."""
        statuses = self._store.list(changelog_directory(self._path))
        numbers = (parse_number(CHANGELOG_PREFIX, status.name) for status in statuses if not status.is_directory)
        return sorted(number for number in numbers if number is not None)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """The former snapshot; None if its changelog is not, or no longer, retained. Cost: one get.

        Raises: CorruptionError if the file is broken.
        """
        path = changelog_path(self._path, snapshot_id)
        try:
            found = snapshot_from_json(self._store.get(path), path)
        except FileMissingError:
            return None
        if found.id != snapshot_id:
            raise CorruptionError(f"{path} contains snapshot {found.id}", path=path)
        return found

    def keep(self, snapshots: Iterable[Snapshot]) -> None:
        """Retain the changelogs of snapshots that are about to be deleted, oldest first.

        Cost: one put for each, and the hint.
        """
        newest = 0
        for snapshot in snapshots:
            self._store.put(changelog_path(self._path, snapshot.id), snapshot_to_json(snapshot), within=self._path)
            newest = snapshot.id
        if newest:
            raise_hint(self._store, join(changelog_directory(self._path), LATEST), newest)

    def cut(self, ids: Sequence[int], check: Callable[[], None]) -> None:
        """Delete the newest changelogs, given in ascending order.

        `check` is called before each change. Cost: the hint, and a delete for each.
        """
        if not ids:
            return
        hint = join(changelog_directory(self._path), LATEST)
        check()
        self._store.put(hint, str(ids[0] - 1).encode(), within=changelog_directory(self._path))
        for number in reversed(ids):
            check()
            self._store.delete(changelog_path(self._path, number))

    def raise_earliest(self, number: int) -> None:
        """Raise the hint to the earliest changelog that stays. Cost: the hint."""
        raise_hint(self._store, join(changelog_directory(self._path), EARLIEST), number)

    def forget(self, ids: Iterable[int]) -> None:
        """Delete the files of some changelogs, oldest first. Cost: a delete for each."""
        for number in ids:
            self._store.delete(changelog_path(self._path, number))
