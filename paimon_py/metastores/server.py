"""The interface between a catalog and a metastore server: tables by id, partition statistics, options of
databases.

Source: Java `Catalog`, `Partition`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.store import Store


class CatalogPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition with the server's statistics from reported commits; -1 for unknown counts.

    Attributes:
        spec: the values as strings, as in directory names.
        done: whether it was marked as done.
    """

    spec: Mapping[str, str]
    record_count: int = -1
    file_size_in_bytes: int = -1
    file_count: int = -1
    last_file_creation_millis: int = -1
    total_buckets: int = -1
    done: bool = False


@runtime_checkable
class ServerMetastore(Protocol):
    """The methods that only a metastore server has. Errors are those of `Metastore`."""

    def place(self, name: TableName) -> tuple[Store, str] | None:
        """The store and the directory of a table of any type, None if it does not exist.

        Raises: UnsupportedError if the server restricts the visible rows and columns.
        """
        ...

    def all_tables(self, database: str) -> list[str]:
        """Names of the tables of all types in an existing database, sorted."""
        ...

    def find_by_id(self, table_id: str) -> tuple[TableName, TableRoot] | None:
        """A table by the id that the server assigned, None if it does not exist."""
        ...

    def replace_table(self, name: TableName, schema: TableSchema) -> TableRoot | None:
        """Replace the schema of a table, and delete its rows. None if the table does not exist.

        Raises: UnsupportedError if the server does not support it.
        """
        ...

    def register_table(self, name: TableName, path: str) -> bool:
        """Register an existing table at a URL under a name. False if a table of this name exists.

        Raises: DatabaseNotFoundError
        """
        ...

    def partitions(self, name: TableName) -> list[CatalogPartition] | None:
        """The partitions of a table, None if the server does not count them.

        Raises: TableNotFoundError
        """
        ...

    def mark_partitions_done(self, name: TableName, specs: Sequence[Mapping[str, str]]) -> None:
        """Mark partitions as done.

        Raises: TableNotFoundError; UnsupportedError if the server does not count them.
        """
        ...

    def alter_database(self, name: str, updates: Mapping[str, str], removals: Sequence[str]) -> bool:
        """Set and remove options of a database. False if it does not exist."""
        ...
