"""The history of a table: whether versions and Iceberg snapshots represent snapshots of the table.

Source: docs/format.md §25.9.
"""

from __future__ import annotations

from functools import partial

from paimon_py.errors import CorruptionError
from paimon_py.iceberg.directory import IcebergDirectory
from paimon_py.iceberg.found_versions import FoundVersions
from paimon_py.iceberg.metadata import IcebergSnapshot, IcebergVersion, stands_for
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base, Snapshot


class TableHistory:
    """The history of a table; each call reads it again, because others commit to the table and roll it back."""

    def __init__(self, root: TableRoot, directory: IcebergDirectory) -> None:
        self._root = root
        self._directory = directory

    def has(self, one: IcebergSnapshot) -> bool:
        """Whether the table has the Paimon snapshot that an Iceberg snapshot was made for. Cost: one get."""
        snapshot = self._root.snapshots.find(int(one["snapshot-id"]))
        return snapshot is not None and stands_for(one, snapshot)

    def has_snapshot(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot still exists: neither expired nor rolled back. Cost: one get."""
        there = self._root.snapshots.find(snapshot.id)
        return there is not None and Base.of(snapshot).is_of(there)

    def is_latest(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot still exists and is the latest one. Cost: two parallel gets."""
        find = self._root.snapshots.find
        following, there = self._directory.at_once([partial(find, snapshot.id + 1), partial(find, snapshot.id)])
        return following is None and there is not None and Base.of(snapshot).is_of(there)

    def shows(self, version: IcebergVersion | None) -> bool:
        """Whether a version belongs to the current history of the table. Cost: one get."""
        if version is None or not version.lies_at(self._root.path):
            return False
        snapshot = self._root.snapshots.find(version.number)
        return snapshot is not None and version.is_of(snapshot)

    def find(self, found: FoundVersions, snapshot: Snapshot) -> IcebergVersion | None:
        """The version that was made for a snapshot of the table at its current path; None if it was not found."""
        version = found.get(snapshot.id)
        if version is None or not version.is_of(snapshot) or not version.lies_at(self._root.path):
            return None
        return version

    def shows_number(self, number: int) -> bool:
        """Whether a version with this number exists and belongs to the current history. Cost: two gets."""
        try:
            return self.shows(self._directory.version(number))
        except CorruptionError:
            return False

    def newest(self, found: FoundVersions, above: int = 0) -> IcebergVersion | None:
        """The newest version above a number that belongs to the current history. Cost: two gets for each candidate."""
        numbers = (number for number in reversed(found.numbers) if number > above)
        return next((version for number in numbers if (version := found.get(number)) and self.shows(version)), None)

    def newest_now(self) -> tuple[IcebergVersion, Snapshot] | None:
        """The newest version of the history as it is in its file now, with its snapshot. Cost: one list, three gets."""
        version = self.newest(FoundVersions(self._directory))
        snapshot = None if version is None else self._root.snapshots.find(version.number)
        return None if version is None or snapshot is None else (version, snapshot)
