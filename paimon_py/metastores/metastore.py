"""What a catalog asks of the place that keeps names: databases, tables, and where they lie.

The file system is one (`directories.py`), a Hive Metastore, a database and a REST server are others. Names have been
checked when a metastore is asked. What a catalog has a say in when a table changes is the table's `CatalogEntry`, which
the metastore puts on the `TableRoot` it gives.

Source: Java `AbstractCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema


class TableName(msgspec.Struct, frozen=True, order=True):
    """Database and table."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


class Database(msgspec.Struct, frozen=True):
    """A database. `location` is its directory, None where the metastore chooses it."""

    name: str
    location: str | None = None
    comment: str | None = None
    options: Mapping[str, str] = {}


BeforeCreation = Callable[[TableRoot], None]
"""Called with the place of a table that is not there yet, before anything is written; raises what forbids the table."""


class Metastore(Protocol):
    """Keeps the names of databases and tables, and where they lie.

    Every verb raises `StorageError` where the metastore or the store cannot be reached, `StorageUnknownError` where
    nobody can tell whether a change was made. A metastore can be pickled, without secrets, and used from several
    threads.
    """

    @property
    def warehouse(self) -> str:
        """Directory or URL below which new databases lie."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """What the catalog was opened with, secrets included."""
        ...

    def databases(self) -> list[str]:
        """Names of all databases, sorted."""
        ...

    def database(self, name: str) -> Database | None:
        """One database, None if there is none."""
        ...

    def create_database(self, database: Database) -> bool:
        """Make a database. Whether this call made it: False if there is one.

        Raises: UnsupportedError for a location, comment or options that this kind of metastore cannot keep.
        """
        ...

    def drop_database(self, name: str) -> None:
        """Remove a database that is there and has no tables."""
        ...

    def tables(self, database: str) -> list[str]:
        """Names of all Paimon tables of a database that is there, sorted."""
        ...

    def find(self, name: TableName) -> TableRoot | None:
        """Where a table lies, None if the metastore knows that there is none.

        The file system cannot know without looking: there the place is given, and reading the schema tells.
        """
        ...

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """Make a table in a database that is there. None if there is a table of this name.

        Of several creators exactly one succeeds.

        Raises: AlreadyExistsError if what is left of another table lies in its place.
        """
        ...

    def drop_table(self, name: TableName) -> bool:
        """Remove a table with its data. False if there is none. What an interrupted drop left is removed by another."""
        ...

    def rename_table(self, name: TableName, to: TableName) -> None:
        """Give a table another name, in a database that is there.

        Raises:
            TableNotFoundError: there is no such table.
            AlreadyExistsError: there is a table of the new name.
            UnsupportedError: the store cannot move a directory in one step (object stores).
        """
        ...

    def repair(self, database: str | None, table: str | None) -> None:
        """Make the metastore say what the file system says, of all tables, those of a database, or one.

        Raises: UnsupportedError where nothing but the file system says anything.
        """
        ...
