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
        version: the version, which is already written.
        snapshot: the Paimon snapshot of the version.
        path: the file of the version.
    """

    version: IcebergVersion
    snapshot: Snapshot
    path: str

    @property
    def directory(self) -> str:
        """The directory of the table's metadata."""
        return self.path.rpartition("/")[0]


class IcebergCatalog(Protocol):
    """An Iceberg catalog with an entry for one table."""

    def publish(self, shown: CatalogedVersion, history: TableHistory) -> tuple[str, ...]:
        """Make a version visible to readers of the catalog, unless they see this or a later version of the table.

        The call can be repeated, also after a failure. An entry that does not show an earlier version is replaced only
        by the version of the latest snapshot.

        Returns: messages for users of the catalog.

        Raises:
            AlreadyExistsError: the catalog has another table, or a view, of this name.
            UsageError, UnsupportedError: the catalog does not accept the table or the credentials.
            StorageError: the catalog cannot be reached, or fails; readers see the previous version or this one.
        """
        ...

    def shown_id(self) -> int | None:
        """The id of the snapshot that readers of the catalog see; None if the catalog does not have the table.

        Raises: StorageError, UsageError
        """
        ...
