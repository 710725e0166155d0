"""The interface between a catalog and the store of names: databases, tables, and their locations.

Implementations are the file system (`directories.py`), a Hive Metastore, a SQL database and a REST server. Names are
validated before they are passed to a metastore. If the catalog takes part in changes of a table, the metastore sets a
`CatalogEntry` on the `TableRoot` that it returns.

Source: Java `AbstractCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema


class TableName(msgspec.Struct, frozen=True, order=True):
    """A database name and a table name."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


class Database(msgspec.Struct, frozen=True):
    """A database. `location` is its directory, None if the metastore chooses it."""

    name: str
    location: str | None = None
    comment: str | None = None
    options: Mapping[str, str] = {}


BeforeCreation = Callable[[TableRoot], None]
"""Called with the location of a table that does not exist yet, before anything is written; raises if it is not
allowed."""


class Metastore(Protocol):
    """Stores the names of databases and tables, and their locations.

    All methods raise `StorageError` if the metastore or the store cannot be reached, and `StorageUnknownError` if the
    outcome of a change is unknown. A metastore can be pickled, without secrets, and used from several threads.
    """

    @property
    def warehouse(self) -> str:
        """Directory or URL below which new databases are created."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """The options that the catalog was opened with, including secrets."""
        ...

    def databases(self) -> list[str]:
        """Names of all databases, sorted."""
        ...

    def database(self, name: str) -> Database | None:
        """One database, None if it does not exist."""
        ...

    def create_database(self, database: Database) -> bool:
        """Create a database. Returns False if it exists.

        Raises: UnsupportedError for a location, comment or options that this kind of metastore cannot store.
        """
        ...

    def drop_database(self, name: str) -> None:
        """Delete an existing database without tables."""
        ...

    def tables(self, database: str) -> list[str]:
        """Names of all Paimon tables of an existing database, sorted."""
        ...

    def find(self, name: TableName) -> TableRoot | None:
        """The location of a table, None if the metastore knows that it does not exist.

        The file system does not know without a read: the location is always returned, and reading the schema decides.
        """
        ...

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """Create a table in an existing database. Returns None if a table of this name exists.

        Exactly one of several concurrent creators succeeds.

        Raises: AlreadyExistsError if remains of another table are at its location.
        """
        ...

    def new_location(self, name: TableName) -> TableRoot | None:
        """The location of a new table in an existing database; files can be copied there before the table exists.

        None if a table of this name exists; the file system does not know without a read, as in `find`.

        Raises: UnsupportedError if only the metastore itself can create tables.
        """
        ...

    def adopt_table(self, name: TableName, root: TableRoot, publish: Callable[[], bool]) -> bool:
        """Add a table whose files are at its `new_location`. False if `publish` returned False.

        `publish` creates the schemas, and can be repeated.

        Raises: StorageError, after which the call can be repeated.
        """
        ...

    def drop_table(self, name: TableName) -> bool:
        """Delete a table with its data; also removes the remains of an interrupted drop. Returns False if there is
        none."""
        ...

    def rename_table(self, name: TableName, to: TableName) -> None:
        """Rename a table; the target database exists.

        Raises:
            TableNotFoundError: the table does not exist.
            AlreadyExistsError: a table with the new name exists.
            UnsupportedError: the store cannot move a directory atomically (object stores).
        """
        ...

    def repair(self, database: str | None, table: str | None) -> None:
        """Update the metastore from the file system: for all tables, those of a database, or one.

        Raises: UnsupportedError if the file system is the only record.
        """
        ...
