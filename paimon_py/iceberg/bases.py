"""Finds the version that a new version continues, and the snapshots between them that have no version yet.

Several publishers can work on one table at the same time, so a snapshot may be published while the version of the
previous snapshot is still being made, or after its publisher has died. The later publisher then makes the missing
versions, too: versions are created exclusively, and the second publisher continues from the existing one.

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
"""The maximum number of missing versions that one publication makes."""


class VersionBase(msgspec.Struct, frozen=True):
    """The base of a new version.

    Attributes:
        version: the version to continue; None if the first of `missing` is the first snapshot of the table.
        snapshot: the snapshot of this version; None without a version.
        missing: the snapshots after it that have no version, oldest first.
        is_restored: the version is not in its file; it was made from the version of a later snapshot.
    """

    version: IcebergVersion | None
    snapshot: Snapshot | None
    missing: tuple[Snapshot, ...] = ()
    is_restored: bool = False


class BaseFinder:
    """Finds bases in the directory of one table.

    Args:
        restore: makes the version of a snapshot from the version of a later snapshot, if possible.
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
        """The base for the version of a snapshot; None if there is none.

        Cost: a get for the previous snapshot and for its version; the same for each snapshot without a version.
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
        """A snapshot and its version, read in parallel unless they were read before."""
        if number in found.snapshots:
            return found.snapshots[number], found.get(number)
        snapshots = list[Union[Snapshot, None]]()
        self._root.env.at_once(self._root.path, [
            lambda: snapshots.append(self._root.snapshots.find(number)), lambda: found.read(number),
        ])  # fmt: skip
        return snapshots[0], found.get(number)

    def continues(self, version: IcebergVersion, before: Snapshot) -> bool:
        """Whether a version was made for a snapshot, in the format version that is written now."""
        same = version.format_version == self._options.format_version and version.lies_at(self._root.path)
        return same and version.is_of(before) and (version.format_version < 3 or version.next_row_id is not None)

    def _first(self, found: FoundVersions, missing: list[Snapshot]) -> VersionBase | None:
        """The base if the first snapshots of a table are being published at the same time.

        A hint without versions shows that the versions were deleted; their history is not made again.
        """
        is_new = bool(found.numbers) or HINT not in found.names
        if not missing or not is_new or not all(map(self._was_followed, missing)):
            return None
        return VersionBase(None, None, tuple(reversed(missing)))

    def _was_followed(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot was committed by a writer that publishes Iceberg metadata."""
        return writes_iceberg(self._root.schemas.get(snapshot.schema_id))
