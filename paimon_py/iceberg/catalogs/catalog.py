"""The interface between a publication and an Iceberg catalog.

Source: docs/format.md §25.10.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from paimon_py.iceberg.history import TableHistory
from paimon_py.iceberg.metadata import IcebergVersion
from paimon_py.spec.snapshot import Snapshot


class CatalogedVersion(msgspec.Struct, frozen=True):
    """A version to publish to a catalog.

    Attributes:
        version: the version; it is written.
        snapshot: its Paimon snapshot.
        path: its file.
    """

    version: IcebergVersion
    snapshot: Snapshot
    path: str

    @property
    def directory(self) -> str:
        """The directory of the table's metadata."""
        return self.path.rpartition("/")[0]


class IcebergCatalog(Protocol):
    """A catalog of Iceberg with an entry for one table."""

    def publish(self, shown: CatalogedVersion, history: TableHistory) -> tuple[str, ...]:
        """Make a version visible to readers of the catalog; do nothing if they see it, or a later one of the table.

        Can be repeated, also after a failure. Only the version of the latest snapshot replaces one that does not come
        before it.

        Returns: notes for users of the catalog.

        Raises:
            AlreadyExistsError: the catalog has another table, or a view, of this name.
            UsageError, UnsupportedError: the catalog does not accept the table or the credentials.
            StorageError: the catalog cannot be reached, or fails; readers see what they saw before, or the version.
        """
        ...

    def shown_id(self) -> int | None:
        """The id of the snapshot that readers of the catalog see; None: the catalog has no such table.

        Raises: StorageError, UsageError
        """
        ...
