"""Finds the version that a new version goes on from, and the snapshots between them that have none yet.

Publishers of one table work at the same time, so a snapshot may be published while the version of the snapshot before
is still being made, or its publisher has died. The later publisher then makes the missing versions too: versions are
created exclusively, and whoever comes second goes on from what is there.

Source: docs/format.md §25.9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

import msgspec

from paimon_py.iceberg.directory import HINT
from paimon_py.iceberg.found_versions import FoundVersions
from paimon_py.iceberg.metadata import IcebergVersion
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.iceberg import IcebergOptions, writes_iceberg
from paimon_py.spec.snapshot import Snapshot

_CATCH_UP_MAX = 100
"""The most versions that are made because they are missing, one after the other."""


class VersionBase(msgspec.Struct, frozen=True):
    """Where a new version goes on.

    Attributes:
        version: the version to go on from; None: the first of `missing` is the first snapshot of the table.
        snapshot: its snapshot; None without a version.
        missing: the snapshots after it that have no version, oldest first.
        is_restored: the version is not in its file; it was made of what a version of a later snapshot contains.
    """

    version: IcebergVersion | None
    snapshot: Snapshot | None
    missing: tuple[Snapshot, ...] = ()
    is_restored: bool = False


class BaseFinder:
    """Finds bases in the directory of one table.

    Args:
        restore: the version of a snapshot from a version that was made for a later snapshot, if there is one.
    """

    def __init__(
        self, table: OpenTable, options: IcebergOptions,
        restore: Callable[[FoundVersions, Snapshot], IcebergVersion | None],
    ) -> None:  # fmt: skip
        self._root = table.root
        self._catches_up = bool(table.schema.primary_keys) or options.catalog is not None
        self._options = options
        self._restore = restore

    def find(self, found: FoundVersions, snapshot: Snapshot) -> VersionBase | None:
        """The base for the version of a snapshot; None: there is nothing to go on from.

        Cost: a get for the snapshot before and for its version; as much for each snapshot without a version.
        """
        child, missing = snapshot, list[Snapshot]()
        while child.id > 1 and len(missing) <= _CATCH_UP_MAX:
            before, version = self._look(found, child.id - 1)
            if before is None or child.follows(before) is False:
                return None
            if version is None and before.id in found.numbers:
                return None
            if version is not None and version.is_of(before):
                if not self.continues(version, before):
                    return None
                return VersionBase(version, before, tuple(reversed(missing)))
            restored = self._restore(found, before) if found.numbers and found.numbers[-1] > before.id else None
            if restored is not None:
                return VersionBase(restored, before, tuple(reversed(missing)), is_restored=True)
            if not self._catches_up and not self._was_followed(before):
                return None
            missing.append(before)
            child = before
        return self._first(found, missing) if child.id == 1 else None

    def _look(self, found: FoundVersions, number: int) -> tuple[Snapshot | None, IcebergVersion | None]:
        """A snapshot and its version, read at once unless they were read before."""
        if number in found.snapshots:
            return found.snapshots[number], found.get(number)
        snapshots = list[Union[Snapshot, None]]()
        self._root.env.at_once(self._root.path, [
            lambda: snapshots.append(self._root.snapshots.find(number)), lambda: found.read(number),
        ])  # fmt: skip
        return snapshots[0], found.get(number)

    def continues(self, version: IcebergVersion, before: Snapshot) -> bool:
        """Whether a version is of a snapshot, and of the format that is written now."""
        same = version.format_version == self._options.format_version and version.lies_at(self._root.path)
        return same and version.is_of(before) and (version.format_version < 3 or version.next_row_id is not None)

    def _first(self, found: FoundVersions, missing: list[Snapshot]) -> VersionBase | None:
        """The base of a table whose first snapshots are being published at the same time.

        Where a hint is the trace of versions that are gone, their history is not made again.
        """
        is_new = bool(found.numbers) or HINT not in found.names
        if not missing or not is_new or not all(map(self._was_followed, missing)):
            return None
        return VersionBase(None, None, tuple(reversed(missing)))

    def _was_followed(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot was committed by a writer that publishes Iceberg metadata."""
        return writes_iceberg(self._root.schemas.get(snapshot.schema_id))
