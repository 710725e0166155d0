"""Deletes the versions that a published version replaces, and the files that no remaining version references.

A version references files of the version that it continues, and new files. So files that neither a version nor the
versions kept with it reference are not referenced by later versions, either, even if those are published meanwhile.

Source: docs/format.md §25.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paimon_py.errors import CorruptionError
from paimon_py.iceberg.directory import RETIRE_MARK, IcebergDirectory, named_files
from paimon_py.iceberg.expiry import fallen_versions, old_versions
from paimon_py.iceberg.found_versions import FoundVersions
from paimon_py.iceberg.history import TableHistory
from paimon_py.iceberg.metadata import IcebergSnapshot, IcebergVersion
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.schema import TableSchema


class VersionCleanup:
    """Deletes in the directory of one table."""

    def __init__(
        self, directory: IcebergDirectory, schema: TableSchema, options: IcebergOptions, history: TableHistory
    ) -> None:
        self._directory = directory
        self._schema = schema
        self._options = options
        self._history = history

    def delete_above(self, found: FoundVersions, number: int) -> bool:
        """Delete the versions above a number, the newest first. Returns: whether there were any.

        Readers continue from the hint to the versions above. A version that was replaced since it was found remains.

        Raises: StorageError
        """
        above = [one for one in reversed(found.numbers) if one > number]
        for one in above:
            if self._is_unchanged(found, one):
                self._directory.delete_version(one)
        return bool(above)

    def delete_old(
        self, found: FoundVersions, version: IcebergVersion, replaced: IcebergVersion | None = None
    ) -> bool:
        """Delete the versions that are not kept with a version, and the files that no other version references.

        Returns: whether there was anything to delete.

        Args:
            found: the contents of the directory before the version was written.
            replaced: an existing version of this number that belongs to no snapshot of the table.

        Cost: a get for each deleted version that was not read before; if files are deleted, one for each of their
            lists, and for each list that may share manifests with them.
        Raises: CorruptionError, StorageError
        """
        number, options = version.number, self._options
        names = [f"v{one}.metadata.json" for one in old_versions(found.numbers, number, options)]
        beside = [one for one in found.numbers if number - options.previous_max <= one < number]
        fallen = fallen_versions(found.numbers, number, options)
        gone = [one for old in fallen for one in self._snapshots(found, old)]
        above = [one for old in found.numbers if old > number for one in self._snapshots(found, old)]
        kept = [one for one in above if self._history.has(one)]  # others may be restoring them after a rollback
        gone += [one for one in above if one not in kept]
        gone += [] if replaced is None else replaced.snapshots
        listed = {one["manifest-list"] for one in version.snapshots}
        gone = [one for one in gone if one["manifest-list"] not in listed]
        if gone:
            names += self._lone_names([version.snapshots, kept, *(self._snapshots(found, one) for one in beside)], gone)
        if RETIRE_MARK in found.names:
            names.append(RETIRE_MARK)
        self._directory.delete(names)
        return bool(names)

    def _lone_names(self, staying: Sequence[Sequence[IcebergSnapshot]], gone: Sequence[IcebergSnapshot]) -> list[str]:
        """The names of the files that only deleted snapshots reference, and no remaining version."""
        listed = {one["manifest-list"] for snapshots in staying for one in snapshots}
        gone = [one for one in gone if one["manifest-list"] not in listed]
        if not gone:
            return []
        first = min(one["snapshot-id"] for snapshots in staying for one in snapshots)
        if max(one["snapshot-id"] for one in gone) < first:
            # files that older snapshots share with the remaining ones are shared with the first of these
            listed = {snapshots[0]["manifest-list"] for snapshots in staying if snapshots}
        vectors = self._options.shows_vectors
        lists = sorted({one["manifest-list"] for one in gone})
        find = partial(named_files, self._directory, schema=self._schema, vectors=vectors)
        kept, old = self._directory.at_once([partial(find, sorted(listed)), partial(find, lists, ignores_broken=True)])
        return sorted(old - kept)

    def _snapshots(self, found: FoundVersions, number: int) -> Sequence[IcebergSnapshot]:
        version = found.get(number)
        return () if version is None else version.snapshots

    def _is_unchanged(self, found: FoundVersions, number: int) -> bool:
        """Whether a version is still the same as in the listing; an unreadable version counts as unchanged."""
        before = found.get(number)
        try:
            there = self._directory.version(number)
        except CorruptionError:
            return True
        return before is None or there is None or _list_of(before) == _list_of(there)


def _list_of(version: IcebergVersion) -> str | None:
    current = version.current
    return None if current is None else str(current["manifest-list"])
