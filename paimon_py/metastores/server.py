"""What a catalog asks of a metastore that is a server: tables by id, partitions as they are counted there, options of
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


class KeptPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition as a server knows it; what commits told it, -1 where nobody did.

    Attributes:
        spec: the texts of the values, as in names of directories.
        done: whether somebody marked it.
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
    """A metastore that answers these as well. Errors are those of `Metastore`."""

    def find_by_id(self, table_id: str) -> tuple[TableName, TableRoot] | None:
        """A table by the id that its server gave it, None if there is none."""
        ...

    def replace_table(self, name: TableName, schema: TableSchema) -> TableRoot | None:
        """Give a table a new schema, and no rows. None if there is no table.

        Raises: UnsupportedError where the server does no such thing.
        """
        ...

    def register_table(self, name: TableName, path: str) -> bool:
        """Give a name to a table that lies at a URL. False if there is a table of this name.

        Raises: DatabaseNotFoundError
        """
        ...

    def partitions(self, name: TableName) -> list[KeptPartition] | None:
        """The partitions of a table, None where the server counts none.

        Raises: TableNotFoundError
        """
        ...

    def mark_partitions_done(self, name: TableName, specs: Sequence[Mapping[str, str]]) -> None:
        """Mark partitions.

        Raises: TableNotFoundError; UnsupportedError where the server counts none.
        """
        ...

    def alter_database(self, name: str, updates: Mapping[str, str], removals: Sequence[str]) -> bool:
        """Set and remove options of a database. False if there is none."""
        ...
