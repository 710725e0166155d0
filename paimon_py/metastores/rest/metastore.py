"""The databases and tables of a REST server.

Source: Java `RESTCatalog`, `RESTApi`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon_py.env import Env
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
)
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.metastore import BeforeCreation, Database, TableName
from paimon_py.metastores.options import WAREHOUSE, flag
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.http import require_package
from paimon_py.metastores.rest.messages import DatabaseAnswer, DatabasePage, TableAnswer
from paimon_py.metastores.rest.new_tables import server_schema, was_created
from paimon_py.metastores.rest.places import DATA_TOKENS, open_place, table_names
from paimon_py.metastores.rest.registration import RestRegistration, RestTable
from paimon_py.metastores.rest.server import COMMENT, RestServer
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.metastores.rest.views_and_functions import RestViewStore
from paimon_py.spec.layout import table_path
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.locked_store import LockedStore
from paimon_py.storage.memory_store import MemoryStore

KINDS = ("table", "materialized-table")
"""The types of tables that are Paimon tables."""

_LOCATION = "location"


class RestMetastore(RestServer):
    """The databases and tables of a warehouse on a REST server."""

    __slots__ = ("client",)

    def __init__(self, client: RestClient) -> None:
        self.client = client

    @classmethod
    def open(cls, warehouse: str, options: Mapping[str, str], env: Env) -> RestMetastore:
        """Open the metastore; requests the configuration from the server.

        Raises: UnsupportedError, UsageError, OptionError, StorageError
        """
        require_package()
        made = cls(RestClient({**options, WAREHOUSE: warehouse}, env))
        flag(made.options, DATA_TOKENS, default=False)
        return made

    @property
    def warehouse(self) -> str:
        """See `Metastore.warehouse`: the name of the warehouse on the server."""
        return self.options.get(WAREHOUSE, "")

    @property
    def options(self) -> Mapping[str, str]:
        """See `Metastore.options`; includes options from the server."""
        return self.client.options()

    @property
    def view_store(self) -> RestViewStore:
        """See `SupportsViews.view_store`."""
        return RestViewStore(self.client)

    def databases(self) -> list[str]:
        """See `Metastore.databases`. Cost: a request per page."""
        pages = self.client.pages(self.client.path("databases"), DatabasePage)
        return sorted(name for page in pages for name in page.items())

    def database(self, name: str) -> Database | None:
        """See `Metastore.database`. Cost: one request."""
        try:
            found = self.client.get(self.client.path("databases", name), DatabaseAnswer)
        except RestRefusedError as refused:
            if refused.status == 404:
                return None
            raise
        options = {key: text for key, text in (found.options or {}).items() if text is not None}
        return Database(name, found.location, options.pop(COMMENT, None), options)

    def create_database(self, database: Database) -> bool:
        """See `Metastore.create_database`. Cost: one request."""
        options = dict(database.options)
        if database.comment is not None:
            options[COMMENT] = database.comment
        if database.location is not None:
            options[_LOCATION] = database.location

        def is_done() -> bool:
            return self.database(database.name) is not None

        try:
            self.client.change(self.client.path("databases"), {"name": database.name, "options": options}, is_done)
        except RestRefusedError as refused:
            if refused.status == 409:
                return False
            raise
        return True

    def drop_database(self, name: str) -> None:
        """See `Metastore.drop_database`. Cost: one request."""
        try:
            self.client.delete(self.client.path("databases", name))
        except RestRefusedError as refused:
            if refused.status != 404:
                raise

    def tables(self, database: str) -> list[str]:
        """See `Metastore.tables`. Cost: a request per page, of tables and of materialized tables.

        Some servers list a table again for each branch, and some return format tables and others despite the filter.
        """
        return table_names(self.client, database, tuple({"tableType": kind} for kind in KINDS))

    def find(self, name: TableName) -> TableRoot | None:
        """See `Metastore.find`. Cost: one request."""
        found = self.answer(name)
        return None if found is None else self.root(name, found)

    def answer(self, name: TableName) -> TableAnswer | None:
        """The server's description of a table, None if it does not exist. Cost: one request."""
        try:
            return self.client.get(self.client.path("databases", name.database, "tables", name.table), TableAnswer)
        except RestRefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def root(self, name: TableName, found: TableAnswer) -> TableRoot:
        """The location of a table.

        Raises: UnsupportedError for other kinds of tables: format tables, object tables and others.
        """
        kind = found.option("type") or "table"
        if kind not in KINDS:
            raise UnsupportedError(f"{str(name)!r} is a {kind}, which paimon_py does not read", feature=kind)
        store, path = open_place(self.client, name, found)
        registration = RestRegistration(RestTable(self.client, name, found.id), found.isExternal)
        guarded = store if found.isExternal else LockedStore(store)
        return TableRoot(guarded, path, self.client.env, self.options, registration=registration)

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """See `Metastore.create_table`. Cost: two requests.

        If the answer is lost, an existing table with the same columns, keys and options counts as created.
        """
        flag(self.options, DATA_TOKENS, default=False)
        nowhere = self._unknown_location(name, is_external="path" in schema.options)
        before(nowhere)
        wanted = server_schema(schema, self.options)

        def is_done() -> bool:
            found = self.answer(name)
            return found is not None and found.schemaId == 0 and was_created(found, wanted, schema)

        body = {"identifier": _identifier(name), "schema": wanted}
        try:
            self.client.change(self.client.path("databases", name.database, "tables"), body, is_done)
        except StorageUnknownError:
            if self.answer(name) is None:
                raise
            return None  # another table has this name
        except RestRefusedError as refused:
            if refused.status == 409:
                return None
            if refused.status == 404:
                raise DatabaseNotFoundError(f"database {name.database!r} does not exist") from refused
            raise
        try:
            found = self.find(name)
        except StorageError as error:
            raise StorageUnknownError(
                f"table {str(name)!r} was created, but cannot be read; Catalog.table opens it: {error}",
                operation="create_table",
                transient=error.transient,
            ) from error
        if found is None:
            raise TableNotFoundError(f"table {str(name)!r} was created, and dropped in the meantime", table=str(name))
        found.warned_of |= nowhere.warned_of
        return found

    def _unknown_location(self, name: TableName, *, is_external: bool) -> TableRoot:
        """The location of a table that does not exist yet; the server determines it later."""
        entry = RestRegistration(RestTable(self.client, name, None), is_external)
        return TableRoot(MemoryStore(), table_path("", name.database, name.table), self.client.env, registration=entry)

    def drop_table(self, name: TableName) -> bool:
        """See `Metastore.drop_table`. Cost: one request; the server deletes the data unless the table is external."""
        try:
            self.client.delete(self.client.path("databases", name.database, "tables", name.table))
        except RestRefusedError as refused:
            if refused.status == 404:
                return False
            raise
        return True

    def rename_table(self, name: TableName, to: TableName) -> None:
        """See `Metastore.rename_table`. Cost: two requests."""
        known = self.answer(name)
        if known is None:
            raise TableNotFoundError(f"table {str(name)!r} does not exist", table=str(name))

        def is_done() -> bool:
            found = self.answer(to)
            return found is not None and found.id is not None and found.id == known.id

        body = {"source": _identifier(name), "destination": _identifier(to)}
        try:
            self.client.change(self.client.path("tables", "rename"), body, is_done)
        except RestRefusedError as refused:
            if refused.status == 404:
                raise TableNotFoundError(f"table {str(name)!r} does not exist", table=str(name)) from refused
            if refused.status == 409:
                raise AlreadyExistsError(f"table {str(to)!r} already exists", table=str(to)) from refused
            raise

    def repair(self, database: str | None, table: str | None) -> None:
        """See `Metastore.repair`."""
        what = "the catalog" if database is None else repr(".".join(part for part in (database, table) if part))
        raise UnsupportedError(f"a REST server does not support repair of {what}", feature="repair")

    def __reduce__(self) -> tuple[object, ...]:
        return RestMetastore, (self.client,)

    def __repr__(self) -> str:
        return f"RestMetastore({self.client.address!r}, {self.client.options().get(WAREHOUSE)!r})"


def _identifier(name: TableName) -> dict[str, Any]:
    return {"database": name.database, "object": name.table}
