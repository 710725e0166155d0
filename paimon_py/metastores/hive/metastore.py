"""The databases and tables of a Hive Metastore, with records as Java's catalog writes them.

A table consists of its schema in a directory, and a record that names the directory. Creating a table first publishes
the schema, at which exactly one creator succeeds, then adds the record; dropping it removes the record first.

Source: Java `HiveCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paimon_py.env import Env
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    SchemaError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UsageError,
)
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.directories import DirectoryMetastore, delete_table, refuse_remains
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.connection import Client, RefusedError
from paimon_py.metastores.hive.places import Places, metastore_location
from paimon_py.metastores.hive.records import (
    PATH,
    T_NAME,
    database_of,
    is_external,
    is_paimon,
    location_of,
    new_database,
    new_table,
    synchronised_keys,
    wants_external,
)
from paimon_py.metastores.hive.registration import keys_of
from paimon_py.metastores.hive.renaming import rename
from paimon_py.metastores.hive.repair import repair, tables_below_database
from paimon_py.metastores.hive.settings import HiveSettings
from paimon_py.metastores.hive.tables import HiveTables
from paimon_py.metastores.hive.thrift import Struct
from paimon_py.metastores.hive.verbs import HiveVerbs
from paimon_py.metastores.hive.views import HiveViewStore
from paimon_py.metastores.metastore import BeforeCreation, Database, TableName
from paimon_py.metastores.warehouse import open_warehouse
from paimon_py.spec.layout import schema_directory, schema_path
from paimon_py.spec.schema import TableSchema


class HiveMetastore:
    """The databases and tables of a Hive Metastore. Can be pickled, without secrets."""

    __slots__ = ("_tables",)

    def __init__(self, client: Client, places: Places, settings: HiveSettings, env: Env) -> None:
        self._tables = HiveTables(HiveVerbs(client), places, settings, env)

    @classmethod
    def open(cls, warehouse: str, options: Mapping[str, str], env: Env, create: bool) -> HiveMetastore:
        """Open the warehouse and check that the metastore responds.

        Raises: UsageError, OptionError, UnsupportedError, StorageError, NotFoundError as `Catalog.open`.
        """
        settings = HiveSettings.of(options, warehouse)
        store, place = open_warehouse(warehouse, options, env, create=create)
        made = cls(Client(settings.servers, env), Places(store, place, warehouse, options), settings, env)
        made.databases()
        return made

    @property
    def warehouse(self) -> str:
        """See `Metastore.warehouse`."""
        return self._tables.places.warehouse

    @property
    def options(self) -> Mapping[str, str]:
        """See `Metastore.options`."""
        return self._tables.places.options

    # -- databases --------------------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """See `Metastore.databases`. Cost: one call."""
        return sorted(self._tables.verbs.databases())

    def database(self, name: str) -> Database | None:
        """See `Metastore.database`. Cost: one call."""
        record = self._tables.verbs.database(name)
        return None if record is None else database_of(record)

    def create_database(self, database: Database) -> bool:
        """See `Metastore.create_database`. Cost: one call, and the directory."""
        _check_case("database", database.name)
        given = database.location or database.options.get("location")
        location = metastore_location(given) if given else self._tables.default_location(database.name)
        store, path = self._tables.places.open(location)
        if self._tables.verbs.database(database.name) is not None:
            return False
        store.make_directory(path)
        record = new_database(database, location, self._tables.settings)
        return self._tables.verbs.create_database(database.name, record)

    def drop_database(self, name: str) -> None:
        """See `Metastore.drop_database`. The directory is deleted too if it is empty."""
        database = self.database(name)
        try:
            self._tables.verbs.drop_database(name)
        except RefusedError as error:
            raise UsageError(
                f"the metastore did not drop database {name!r}: {error.message}. Tables that are not Paimon's and"
                " functions must be dropped with Hive"
            ) from error
        if database is not None and database.location:
            store, path = self._tables.places.open(database.location)
            store.remove_directory(path)

    # -- tables -----------------------------------------------------------------------------------------------------

    def tables(self, database: str) -> list[str]:
        """See `Metastore.tables`. Cost: one call, and one for each 300 tables of any kind."""
        return sorted(_name_of(record) for record in self._tables.verbs.tables(database) if is_paimon(record))

    def find(self, name: TableName) -> TableRoot | None:
        """See `Metastore.find`. Cost: one call."""
        record = self._tables.verbs.table(name)
        if record is None:
            return None
        if not is_paimon(record):
            raise TableNotFoundError(
                f"{str(name)!r} is a table or view of Hive, not of Paimon", table=str(name)
            )
        return self._tables.root(name, location_of(record) or self._tables.location(name), keys_of(record))

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """See `Metastore.create_table`. Cost: four calls, plus the schema."""
        _check_case("table", name.table)
        there = self._tables.verbs.table(name)
        if there is not None:
            if is_paimon(there):
                return None
            raise AlreadyExistsError(f"{str(name)!r} is a table or view of Hive, not of Paimon", table=str(name))
        external = wants_external(schema.options, self._tables.settings)
        location = metastore_location(schema.options[PATH]) if PATH in schema.options else self._tables.location(name)
        root = self._tables.root(name, location, synchronised_keys(schema))
        record = new_table(name, schema, location, self._tables.owner(), self._tables.settings, external=external)
        if external and root.schemas.ids():
            known = root.schemas.latest()
            _require_same_external_table(known, schema, root.path)
            record = new_table(name, known, location, self._tables.owner(), self._tables.settings, external=True)
            return root if self._tables.verbs.create_table(name, record) else None
        if root.schemas.ids():
            raise AlreadyExistsError(
                f"the table at {root.path} is not registered in the metastore; repair({str(name)!r}) registers it",
                path=root.path,
                table=str(name),
            )
        refuse_remains(root, name)
        before(root)
        with self._tables.hold_lock(name):
            if not root.schemas.add(schema):
                return None
        return root if self._register(name, record, OpenTable(root, schema)) else None

    def _register(self, name: TableName, record: Struct, table: OpenTable) -> bool:
        """Register a table whose schema was just published; delete the schema if the metastore certainly did not
        register it."""
        try:
            made = self._tables.verbs.create_table(name, record)
        except StorageUnknownError as error:
            raise StorageUnknownError(
                f"{error}. The table is at {table.root.path}; Catalog.repair({str(name)!r}) registers it if the"
                " metastore"
                " does not know it",
                path=table.root.path,
                operation=error.operation,
            ) from error
        except StorageError:
            self._withdraw(table)
            raise
        if made:
            return True
        there = self._tables.verbs.table(name)
        if there is not None and location_of(there) == location_of(record):
            return True  # a concurrent repair registered it
        self._withdraw(table)
        return False

    def _withdraw(self, table: OpenTable) -> None:
        """Delete the schema of a table that was not registered, unless another writer already uses it."""
        if table.root.snapshots.latest_id() is None and table.root.schemas.ids() == [table.schema.id]:
            table.root.store.delete(schema_path(table.root.path, table.schema.id))
            for directory in (schema_directory(table.root.path), table.root.path):
                table.root.store.remove_directory(directory)

    def new_location(self, name: TableName) -> TableRoot | None:
        """See `Metastore.new_location`. Cost: two calls."""
        _check_case("table", name.table)
        there = self._tables.verbs.table(name)
        if there is not None and not is_paimon(there):
            raise AlreadyExistsError(f"{str(name)!r} is a table or view of Hive, not of Paimon", table=str(name))
        return None if there is not None else self._tables.root(name, self._tables.location(name))

    def adopt_table(self, name: TableName, root: TableRoot, publish: Callable[[], bool]) -> bool:  # noqa: ARG002
        """See `Metastore.adopt_table`."""
        with self._tables.hold_lock(name):
            if not publish():
                return False
        repair(self._tables, name)
        return True

    def drop_table(self, name: TableName) -> bool:
        """See `Metastore.drop_table`. The record is deleted first; data of an external table are kept."""
        record = self._tables.verbs.table(name)
        if record is None:
            return _clear_remains(self._tables, name)
        if not is_paimon(record):
            raise UsageError(f"{str(name)!r} is a table or view of Hive, not of Paimon; drop it with Hive")
        root = self._tables.root(name, location_of(record) or self._tables.location(name))
        if not self._tables.verbs.drop_table(name):
            return False
        if not is_external(record) and root.schemas.ids():  # only delete a directory that is a table
            delete_table(root, self.warehouse)
        return True

    def rename_table(self, name: TableName, to: TableName) -> None:
        """See `Metastore.rename_table`."""
        _check_case("table", to.table)
        rename(self._tables, name, to)

    def repair(self, database: str | None, table: str | None) -> None:
        """See `Metastore.repair`. Records without a directory are kept."""
        lying = DirectoryMetastore(
            self._tables.places.store, self.warehouse, env=self._tables.env, options=self.options
        )
        for one in lying.databases() if database is None else [database]:
            if self._tables.verbs.database(one) is None:
                if lying.database(one) is None:
                    raise DatabaseNotFoundError(f"database {one!r} does not exist, and has no directory")
                self.create_database(Database(one))
            for name in tables_below_database(self._tables, one) if table is None else [table]:
                repair(self._tables, TableName(one, name))

    @property
    def view_store(self) -> HiveViewStore:
        """See `SupportsViews.view_store`."""
        return HiveViewStore(self._tables)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._tables.verbs.client, self._tables.places, self._tables.settings)


def _reopen(client: Client, places: Places, settings: HiveSettings) -> HiveMetastore:
    return HiveMetastore(client, places, settings, Env())



def _clear_remains(tables: HiveTables, name: TableName) -> bool:
    """Delete the remains of an interrupted drop: a directory without schemas in place of the table."""
    if tables.verbs.database(name.database) is None:
        return False
    root = tables.root(name, tables.location(name), ())
    if root.store.stat(root.path) is None or root.schemas.ids():
        return False
    root.store.delete_tree(root.path)
    return True


def _name_of(record: Struct) -> str:
    return thrift.text(record, T_NAME) or ""


def _check_case(what: str, name: str) -> None:
    if name != name.lower():
        raise UsageError(f"{what} name {name!r}: a Hive Metastore keeps names in lower case; write {name.lower()!r}")


def _require_same_external_table(known: TableSchema, wanted: TableSchema, path: str) -> None:
    """Whether an existing table at the location may become a new external one, by Java's rules."""
    same = (
        [(field.name, field.type) for field in known.fields] == [(field.name, field.type) for field in wanted.fields]
        and known.partition_keys == wanted.partition_keys
        and known.primary_keys == wanted.primary_keys
    )
    ignored = (PATH, "owner", "external", "EXTERNAL")
    other = [name for name, text in wanted.options.items() if name not in ignored and known.options.get(name) != text]
    if not same or other:
        raise SchemaError(
            f"the table at {path} has columns, keys or options ({', '.join(other) or 'none'}) are not those of the"
            " requested external table; repair() registers it as it is"
        )
