"""The databases and tables of a Hive Metastore, with records as Java's catalog writes them.

A table is its schema below a directory, and a record that gives the directory a name. When a table is made the schema
comes first, which exactly one creator can publish, then the record; when a table is dropped the record goes first.

Source: Java `HiveCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from paimon_py.catalogs.directories import DirectoryMetastore, delete_table, refuse_remains
from paimon_py.catalogs.hive import thrift
from paimon_py.catalogs.hive.connection import Client, RefusedError
from paimon_py.catalogs.hive.places import Places, written
from paimon_py.catalogs.hive.records import (
    PATH,
    T_NAME,
    Owner,
    database_of,
    is_external,
    is_paimon,
    location_of,
    moved,
    new_database,
    new_table,
    renamed_table,
    synchronised_keys,
    wants_external,
)
from paimon_py.catalogs.hive.registration import HiveRegistration, keys_of
from paimon_py.catalogs.hive.settings import HiveSettings
from paimon_py.catalogs.hive.thrift import Struct
from paimon_py.catalogs.hive.verbs import HiveVerbs
from paimon_py.catalogs.metastore import BeforeCreation, Database, TableName
from paimon_py.catalogs.warehouse import open_warehouse
from paimon_py.env import Env
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    SchemaError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.metadata.partition_files import partition_files
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.schemas import Schemas
from paimon_py.spec.layout import DATABASE_SUFFIX, MAIN_BRANCH, schema_path
from paimon_py.spec.schema import TableSchema

_RENAMING: Mapping[str, str] = {"DO_NOT_UPDATE_STATS": "true"}


class HiveMetastore:
    """The databases and tables that a Hive Metastore knows. Can be pickled, without secrets."""

    __slots__ = ("_env", "_places", "_settings", "_verbs")

    def __init__(self, client: Client, places: Places, settings: HiveSettings, env: Env) -> None:
        self._verbs = HiveVerbs(client)
        self._places = places
        self._settings = settings
        self._env = env

    @classmethod
    def open(cls, warehouse: str, options: Mapping[str, str], env: Env, create: bool) -> HiveMetastore:
        """Open the warehouse and see that the metastore answers.

        Raises: UsageError, OptionError, UnsupportedError, StorageError, NotFoundError as `Catalog.open`.
        """
        settings = HiveSettings.of(options, warehouse)
        store, place = open_warehouse(warehouse, options, create)
        made = cls(Client(settings.servers, env), Places(store, place, warehouse, options), settings, env)
        made.databases()
        return made

    @property
    def warehouse(self) -> str:
        """See `Metastore.warehouse`."""
        return self._places.warehouse

    @property
    def options(self) -> Mapping[str, str]:
        """See `Metastore.options`."""
        return self._places.options

    # -- databases --------------------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """See `Metastore.databases`. Cost: one call."""
        return sorted(self._verbs.databases())

    def database(self, name: str) -> Database | None:
        """See `Metastore.database`. Cost: one call."""
        record = self._verbs.database(name)
        return None if record is None else database_of(record)

    def create_database(self, database: Database) -> bool:
        """See `Metastore.create_database`. Cost: one call, and the directory."""
        _check_case("database", database.name)
        given = database.location or database.options.get("location")
        location = written(given) if given else self._default_location(database.name)
        store, path = self._places.open(location)
        if self._verbs.database(database.name) is not None:
            return False
        store.make_directory(path)
        return self._verbs.create_database(database.name, new_database(database, location, self._settings))

    def drop_database(self, name: str) -> None:
        """See `Metastore.drop_database`. The directory goes too if nothing is left in it."""
        database = self.database(name)
        try:
            self._verbs.drop_database(name)
        except RefusedError as error:
            raise UsageError(
                f"the metastore keeps database {name!r}: {error.message}. Tables that are not Paimon's, views and"
                " functions are dropped with Hive"
            ) from error
        if database is not None and database.location:
            store, path = self._places.open(database.location)
            store.remove_directory(path)

    # -- tables -----------------------------------------------------------------------------------------------------

    def tables(self, database: str) -> list[str]:
        """See `Metastore.tables`. Cost: one call, and one for each 300 tables of any kind."""
        return sorted(_name_of(record) for record in self._verbs.tables(database) if is_paimon(record))

    def find(self, name: TableName) -> TableRoot | None:
        """See `Metastore.find`. Cost: one call."""
        record = self._verbs.table(name)
        if record is None:
            return None
        if not is_paimon(record):
            raise TableNotFoundError(
                f"{str(name)!r} is a table or view of Hive, and not one of Paimon", table=str(name)
            )
        return self._root(name, location_of(record) or self._location(name), keys_of(record))

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """See `Metastore.create_table`. Cost: four calls, and what a schema costs."""
        _check_case("table", name.table)
        there = self._verbs.table(name)
        if there is not None:
            if is_paimon(there):
                return None
            raise AlreadyExistsError(f"{str(name)!r} is a table or view of Hive, not of Paimon", table=str(name))
        external = wants_external(schema.options, self._settings)
        location = written(schema.options[PATH]) if PATH in schema.options else self._location(name)
        root = self._root(name, location, synchronised_keys(schema))
        record = new_table(name, schema, location, self._owner(), self._settings, external=external)
        if external and root.schemas.ids():
            known = root.schemas.latest()
            _check_taken_up(known, schema, root.path)
            record = new_table(name, known, location, self._owner(), self._settings, external=True)
            return root if self._verbs.create_table(name, record) else None
        if root.schemas.ids():
            raise AlreadyExistsError(
                f"a table lies at {root.path} that the metastore does not know; repair({str(name)!r}) registers it",
                path=root.path,
                table=str(name),
            )
        refuse_remains(root, name)
        before(root)
        with self._locked(root):
            if not root.schemas.add(schema):
                return None
        return root if self._register(name, record, root, schema) else None

    def _register(self, name: TableName, record: Struct, root: TableRoot, schema: TableSchema) -> bool:
        """Name a table whose schema was just published; take the schema away if the metastore certainly did not."""
        try:
            made = self._verbs.create_table(name, record)
        except StorageUnknownError as error:
            raise StorageUnknownError(
                f"{error}. The table lies at {root.path}; Catalog.repair({str(name)!r}) registers it if the metastore"
                " does not know it",
                path=root.path,
                operation=error.operation,
            ) from error
        except StorageError:
            self._withdraw(root, schema)
            raise
        if not made and (there := self._verbs.table(name)) is not None and location_of(there) == location_of(record):
            return True  # somebody repaired the catalog just now
        if not made:
            self._withdraw(root, schema)
        return made

    def _withdraw(self, root: TableRoot, schema: TableSchema) -> None:
        """Take away the schema of a table that got no name, unless somebody writes to it already."""
        if root.snapshots.latest_id() is None and root.schemas.ids() == [schema.id]:
            root.store.delete(schema_path(root.path, schema.id))
            root.store.remove_directory(root.path)

    def drop_table(self, name: TableName) -> bool:
        """See `Metastore.drop_table`. The record goes first; data of an external table stay."""
        record = self._verbs.table(name)
        if record is None:
            return self._clear_remains(name)
        if not is_paimon(record):
            raise UsageError(f"{str(name)!r} is a table or view of Hive, not of Paimon; drop it with Hive")
        root = self._root(name, location_of(record) or self._location(name), ())
        if not self._verbs.drop_table(name):
            return False
        if not is_external(record):
            delete_table(root, self.warehouse)
        return True

    def _clear_remains(self, name: TableName) -> bool:
        """Delete what a drop that was interrupted left: a directory without schemas in the place of the table."""
        if self._verbs.database(name.database) is None:
            return False
        root = self._root(name, self._location(name), ())
        if root.store.stat(root.path) is None or root.schemas.ids():
            return False
        root.store.delete_tree(root.path)
        return True

    def rename_table(self, name: TableName, to: TableName) -> None:
        """See `Metastore.rename_table`.

        The record is renamed first, and decides; then the directory of a managed table moves, unless the metastore
        moved it. A table whose directory could not be moved has its new name and its old directory.
        """
        _check_case("table", to.table)
        record = self._verbs.table(name)
        if record is None or not is_paimon(record):
            raise TableNotFoundError(f"there is no table {str(name)!r}", table=str(name))
        if self._verbs.table(to) is not None:
            raise AlreadyExistsError(f"table {str(to)!r} exists already", table=str(to))
        source = location_of(record) or self._location(name)
        target = self._location(to)
        path = self._places.open(source)[1]
        moves = not is_external(record) and path == self._places.open(self._location(name))[1]
        if moves:
            other, new_path = self._places.open(target)
            if other.stat(new_path) is not None:
                raise AlreadyExistsError(f"{new_path} exists already", path=new_path, table=str(to))
            _require_directories(path, name)
        try:
            self._verbs.alter_table(name, renamed_table(record, to), _RENAMING)
        except RefusedError as error:
            if self._verbs.table(to) is not None:
                raise AlreadyExistsError(f"table {str(to)!r} exists already", table=str(to)) from error
            raise StorageError(
                f"the metastore refuses to rename {name} to {to}: {error.message}", path=path, operation="rename_table"
            ) from error
        if moves:
            self._move(to, source, target)

    def _move(self, name: TableName, source: str, target: str) -> None:
        """Move the directory of a table that was renamed, and say so, unless the metastore did both."""
        store, path = self._places.open(source)
        new_path = self._places.open(target)[1]
        if Schemas(store, path).ids():
            store.rename_directory(path, new_path)
        record = self._verbs.table(name)
        if record is not None and self._places.open(location_of(record) or target)[1] != new_path:
            self._verbs.alter_table(name, moved(record, target, self._settings), _RENAMING)
        if record is not None and keys_of(record):
            self._move_partitions(name, source, target)

    def _move_partitions(self, name: TableName, source: str, target: str) -> None:
        changed = []
        for partition in self._verbs.partitions(name):
            location = location_of(partition) or ""
            if location.startswith(source + "/"):
                changed.append(moved(partition, target + location[len(source) :], self._settings))
        self._verbs.change_partitions(name, changed)

    # -- repair -----------------------------------------------------------------------------------------------------

    def repair(self, database: str | None, table: str | None) -> None:
        """See `Metastore.repair`. Records that lie nowhere stay."""
        lying = DirectoryMetastore(self._places.store, self.warehouse, env=self._env, options=self.options)
        for one in lying.databases() if database is None else [database]:
            record = self._verbs.database(one)
            if record is None:
                if lying.database(one) is None:
                    raise DatabaseNotFoundError(f"there is no database {one!r}, nor a directory of one")
                self.create_database(Database(one))
            for name in self._lying(one) if table is None else [table]:
                self._repair(TableName(one, name))

    def _lying(self, database: str) -> list[str]:
        """Tables below the directory of a database."""
        store, path = self._places.open(self._database_location(database))
        directories = [status for status in store.list(path) if status.is_directory]
        known = self._env.pool.map(lambda status: bool(Schemas(store, status.path).ids()), directories)
        return [status.name for status, is_table in zip(directories, known, strict=True) if is_table]

    def _repair(self, name: TableName) -> None:
        record = self._verbs.table(name)
        if record is not None and not is_paimon(record):
            raise AlreadyExistsError(f"{str(name)!r} is a table or view of Hive, not of Paimon", table=str(name))
        location = self._location(name) if record is None else location_of(record) or self._location(name)
        root = self._root(name, location, ())
        schema = root.schemas.latest()
        keys = synchronised_keys(schema)
        registration = HiveRegistration(self._verbs, name, self._settings, self._env, keys)
        if record is None:
            external = wants_external(schema.options, self._settings)
            self._verbs.create_table(
                name, new_table(name, schema, location, self._owner(), self._settings, external=external)
            )
        else:
            registration.tell(record, schema)
        snapshot = root.snapshots.latest()
        if keys and schema.partition_keys and snapshot is not None:
            registration.add_partitions(schema, partition_files(root, snapshot)["partition"])
        elif keys:
            for tag in root.tags.names():
                registration.tag_made(root, tag)

    # -- parts ------------------------------------------------------------------------------------------------------

    def _root(self, name: TableName, location: str, keys: tuple[str, ...]) -> TableRoot:
        store, path = self._places.open(location)
        registration = HiveRegistration(self._verbs, name, self._settings, self._env, keys)
        return TableRoot(store, path, self._env, self.options, registration=registration)

    def _locked(self, root: TableRoot) -> AbstractContextManager[object]:
        registration = root.registration
        if not isinstance(registration, HiveRegistration) or registration.lock is None:
            return nullcontext()
        return registration.lock.held(MAIN_BRANCH)

    def _owner(self) -> Owner:
        return Owner(self._settings.servers.user, self._env.clock.millis() // 1000)

    def _location(self, name: TableName) -> str:
        """Where a table lies that says nothing else: below its database."""
        return f"{self._database_location(name.database)}/{name.table}"

    def _database_location(self, name: str) -> str:
        database = self.database(name)
        if database is None:
            raise DatabaseNotFoundError(f"there is no database {name!r}")
        return (database.location or self._default_location(name)).rstrip("/")

    def _default_location(self, database: str) -> str:
        return f"{self._places.written}/{database}{DATABASE_SUFFIX}"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._verbs.client, self._places, self._settings)


def _reopen(client: Client, places: Places, settings: HiveSettings) -> HiveMetastore:
    return HiveMetastore(client, places, settings, Env())


def _name_of(record: Struct) -> str:
    return thrift.text(record, T_NAME) or ""


def _check_case(what: str, name: str) -> None:
    if name != name.lower():
        raise UsageError(f"{what} name {name!r}: a Hive Metastore keeps names in lower case; write {name.lower()!r}")


def _require_directories(path: str, name: TableName) -> None:
    """Refuse to rename what the store cannot move, before anybody is told of the new name."""
    scheme, mark, _ = path.partition("://")
    if mark and scheme not in ("hdfs", "viewfs", "memory"):
        raise UnsupportedError(
            f"{scheme} has no directories that could be moved: {str(name)!r} cannot be renamed. An external table can",
            feature="renaming a managed table on an object store",
        )


def _check_taken_up(known: TableSchema, wanted: TableSchema, path: str) -> None:
    """Whether a table that lies in the place of a new external one may become that table, as Java decides."""
    same = (
        [(field.name, field.type) for field in known.fields] == [(field.name, field.type) for field in wanted.fields]
        and known.partition_keys == wanted.partition_keys
        and known.primary_keys == wanted.primary_keys
    )
    ignored = (PATH, "owner", "external", "EXTERNAL")
    other = [name for name, text in wanted.options.items() if name not in ignored and known.options.get(name) != text]
    if not same or other:
        raise SchemaError(
            f"a table lies at {path} whose columns, keys or options ({', '.join(other) or 'none'}) are not those of the"
            " external table that was asked for; repair() registers it as it is"
        )
