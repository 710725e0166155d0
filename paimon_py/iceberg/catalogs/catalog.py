"""What a publication asks of a catalog of Iceberg.

Source: docs/format.md §25.10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from paimon_py.iceberg.metadata import IcebergSnapshot, IcebergVersion

IsThere = Callable[[IcebergSnapshot], bool]
"""Whether the table has the Paimon snapshot that an Iceberg snapshot was made for."""


class CatalogedVersion(msgspec.Struct, frozen=True):
    """A version that a catalog is to show.

    Attributes:
        version: the version; it is written.
        path: its file.
        previous: the file of the version before, if there is one.
    """

    version: IcebergVersion
    path: str
    previous: str | None = None

    @property
    def directory(self) -> str:
        """Where the metadata of the table lie."""
        return self.path.rpartition("/")[0]


class IcebergCatalog(Protocol):
    """A catalog of Iceberg with an entry for one table."""

    def publish(self, shown: CatalogedVersion, is_there: IsThere) -> tuple[str, ...]:
        """Let readers of the catalog see a version; nothing happens if they see it, or a later one of the table.

        Can be repeated, also after a failure.

        Returns: what users of the catalog should know.

        Raises:
            AlreadyExistsError: the catalog has another table, or a view, of this name.
            UsageError, UnsupportedError: the catalog does not take the table or the credentials.
            StorageError: the catalog cannot be reached, or fails; readers see what they saw before, or the version.
        """
        ...

    def shown_id(self) -> int | None:
        """The id of the snapshot that readers of the catalog see; None: the catalog has no such table.

        Raises: StorageError, UsageError
        """
        ...
