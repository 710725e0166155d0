"""A metastore in a SQL database, with Java's tables and keys: both can use one database concurrently.

A row records that a table exists; its schemas and data are stored below the warehouse as in a file system catalog. A
table is created by its `schema-0`, at which exactly one creator succeeds, and then registered in the database. `repair`
registers tables without a row.

Source: Java `JdbcCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext

from paimon_py.env import Env
from paimon_py.errors import (
    AlreadyExistsError,
    OptionError,
    PaimonError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
)
from paimon_py.metadata.catalog_entry import LockedRegistration
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.directories import DirectoryMetastore, delete_table, refuse_remains
from paimon_py.metastores.jdbc import sql
from paimon_py.metastores.jdbc.database import SqlDatabase, TakenError
from paimon_py.metastores.jdbc.lock import KEY_LENGTH, JdbcLock
from paimon_py.metastores.jdbc.names import SYNC, Names
from paimon_py.metastores.jdbc.views import JdbcViewStore
from paimon_py.metastores.metastore import BeforeCreation, Database, TableName
from paimon_py.metastores.options import LockOptions, flag
from paimon_py.metastores.warehouse import open_warehouse
from paimon_py.spec.layout import MAIN_BRANCH, database_path, table_path
from paimon_py.spec.redact import harmless_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SchemaChange
from paimon_py.storage.locked_store import LockedStore
from paimon_py.storage.store import Store

CATALOG_KEY = "catalog-key"
_EXISTS = "exists"
_LOCATION = "location"


class JdbcMetastore:
    """The databases and tables in a SQL database, below one warehouse."""

    __slots__ = ("_env", "_key_length", "_locks", "_names", "_options", "_store", "_warehouse")

    def __init__(
        self, sql_database: SqlDatabase, store: Store, warehouse: str, options: Mapping[str, str], env: Env
    ) -> None:
        self._names = Names(sql_database, options.get(CATALOG_KEY, "jdbc"), flag(options, SYNC, default=True))
        self._store = store
        self._warehouse = warehouse
        self._options = options
        self._env = env
        self._locks = LockOptions.of(options, warehouse)
        length = options.get(KEY_LENGTH, "255").strip()
        if not length.isdecimal() or int(length) < 1:
            raise OptionError(f"option {KEY_LENGTH} must be a whole number above 0, not {length!r}", option=KEY_LENGTH)
        self._key_length = int(length)

    @classmethod
    def open(cls, warehouse: str, options: Mapping[str, str], env: Env, create: bool) -> JdbcMetastore:
        """Connect, and create missing tables in the database.

        Raises: UsageError, UnsupportedError, OptionError, StorageError, NotFoundError as `Catalog.open`.
        """
        sql_database = SqlDatabase(options, env)
        store, place = open_warehouse(warehouse, options, env, create=create)
        made = cls(sql_database, store, place, options, env)
        _make_tables(sql_database, None if made._locks is None else made._key_length)
        return made

    @property
    def warehouse(self) -> str:
        """See `Metastore.warehouse`."""
        return self._warehouse

    @property
    def options(self) -> Mapping[str, str]:
        """See `Metastore.options`."""
        return self._options

    # -- databases --------------------------------------------------------------------------------------------------

    def databases(self) -> list[str]:
        """See `Metastore.databases`."""
        return self._names.databases()

    def database(self, name: str) -> Database | None:
        """See `Metastore.database`."""
        options = self._names.options_of_database(name)
        if not options and not self._names.has_database(name):
            return None
        options.pop(_EXISTS, None)
        location = options.pop(_LOCATION, None) or database_path(self._warehouse, name)
        return Database(name, location, options.pop("comment", None), options)

    def create_database(self, database: Database) -> bool:
        """See `Metastore.create_database`."""
        if database.location is not None:
            raise UnsupportedError(
                "databases of a JDBC catalog are stored below its warehouse and cannot have another location",
                feature="database location",
            )
        if self._names.has_database(database.name):
            return False
        own = {_EXISTS: "true", _LOCATION: database_path(self._warehouse, database.name)}
        comment = {} if database.comment is None else {"comment": database.comment}
        try:
            self._names.add_database(database.name, {**database.options, **comment, **own})
        except TakenError:
            return False
        return True

    def drop_database(self, name: str) -> None:
        """See `Metastore.drop_database`. The directory is deleted too if it is empty."""
        self._names.drop_database(name)
        self._store.remove_directory(database_path(self._warehouse, name))

    # -- tables -----------------------------------------------------------------------------------------------------

    def tables(self, database: str) -> list[str]:
        """See `Metastore.tables`."""
        return self._names.tables(database)

    def find(self, name: TableName) -> TableRoot | None:
        """See `Metastore.find`."""
        return self._root(name) if self._names.has_table(name) else None

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """See `Metastore.create_table`."""
        self._names.options_of(schema)
        with _hold(self._lock(name)):
            if self._names.has_table(name):
                return None
            if self._names.has_view(name):
                raise AlreadyExistsError(f"{str(name)!r} is a view", table=str(name))
            root = self._root(name)
            if root.schemas.ids():
                raise AlreadyExistsError(
                    f"the table at {root.path} is not registered in the catalog's database;"
                    f" repair({str(name)!r}) registers it",
                    path=root.path,
                    table=str(name),
                )
            refuse_remains(root, name)
            before(root)
            if not root.schemas.add(schema):
                return None
            _register_new(self._names, self._warehouse, name, OpenTable(root, schema))
            return root

    def new_location(self, name: TableName) -> TableRoot | None:
        """See `Metastore.new_location`."""
        if self._names.has_view(name):
            raise AlreadyExistsError(f"{str(name)!r} is a view", table=str(name))
        return None if self._names.has_table(name) else self._root(name)

    def adopt_table(self, name: TableName, root: TableRoot, publish: Callable[[], bool]) -> bool:  # noqa: ARG002
        """See `Metastore.adopt_table`."""
        with _hold(self._lock(name)):
            if not publish():
                return False
            _register_existing(self, name)
            return True

    def drop_table(self, name: TableName) -> bool:
        """See `Metastore.drop_table`. The row is deleted first."""
        root = self._root(name)
        if not self._names.drop_table(name):
            return _clear_remains(root)
        delete_table(root, self._warehouse)
        return True

    def rename_table(self, name: TableName, to: TableName) -> None:
        """See `Metastore.rename_table`. The directory is moved first, and back if the name certainly did not change."""
        source, target = self._root(name).path, self._root(to).path
        with ExitStack() as locks:
            for each in sorted((name, to)):
                locks.enter_context(_hold(self._lock(each)))
            if not self._names.has_table(name):
                raise TableNotFoundError(f"table {str(name)!r} does not exist", path=source, table=str(name))
            if self._names.has_table(to) or self._store.stat(target) is not None:
                raise AlreadyExistsError(f"table {str(to)!r} already exists", path=target, table=str(to))
            if self._names.has_view(to):
                raise AlreadyExistsError(f"{str(to)!r} is a view", table=str(to))
            self._store.rename_directory(source, target)
            try:
                self._names.rename_table(name, to)
            except StorageUnknownError:
                if not self._names.has_table(to):
                    self._store.rename_directory(target, source)
                    raise
            except PaimonError:
                self._store.rename_directory(target, source)
                raise

    def repair(self, database: str | None, table: str | None) -> None:
        """See `Metastore.repair`. Rows of tables without a directory are kept."""
        lying = DirectoryMetastore(self._store, self._warehouse, env=self._env, options=self._options)
        for one in lying.databases() if database is None else [database]:
            names = lying.tables(one) if table is None else [table]
            for each in names:
                _register_existing(self, TableName(one, each))
            if self.database(one) is None and lying.database(one) is not None:
                self.create_database(Database(one))

    @property
    def view_store(self) -> JdbcViewStore:
        """See `SupportsViews.view_store`."""
        return JdbcViewStore(self._names, lambda name: _hold(self._lock(name)))

    # -- parts ------------------------------------------------------------------------------------------------------

    def _root(self, name: TableName) -> TableRoot:
        path = table_path(self._warehouse, name.database, name.table)
        registration = JdbcRegistration(self._lock(name), self._names, name)
        store = self._store if self._locks is None else LockedStore(self._store)
        return TableRoot(store, path, self._env, self._options, registration=registration)

    def _lock(self, name: TableName) -> JdbcLock | None:
        if self._locks is None:
            return None
        names = self._names
        return JdbcLock(names.sql_database, names.catalog_key, name, self._locks, self._key_length, self._env)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._names.sql_database, self._store, self._warehouse, harmless_options(self._options))


def _reopen(
    sql_database: SqlDatabase, store: Store, warehouse: str, options: Mapping[str, str]
) -> JdbcMetastore:
    return JdbcMetastore(sql_database, store, warehouse, options, Env())


def _register_existing(metastore: JdbcMetastore, name: TableName) -> None:
    latest = metastore._root(name).schemas.latest()
    if metastore.database(name.database) is None:
        metastore.create_database(Database(name.database))
    try:
        metastore._names.add_table(name, latest)
    except TakenError:
        metastore._names.keep_options(name, latest)


def _hold(lock: JdbcLock | None) -> AbstractContextManager[object]:
    return nullcontext() if lock is None else lock.hold(MAIN_BRANCH)


def _register_new(names: Names, warehouse: str, name: TableName, table: OpenTable) -> None:
    """Register a table whose first schema was just published, or withdraw the schema."""
    try:
        names.add_table(name, table.schema)
    except TakenError:
        return
    except StorageUnknownError:
        if not names.has_table(name):
            delete_table(table.root, warehouse)
            raise
    except PaimonError:
        delete_table(table.root, warehouse)
        raise


def _clear_remains(root: TableRoot) -> bool:
    """Delete the remains of an interrupted drop or clone: a directory without schemas."""
    if root.store.stat(root.path) is None or root.schemas.ids():
        return False
    root.store.delete_tree(root.path)
    return True


def _make_tables(sql_database: SqlDatabase, lock_length: int | None) -> None:
    """Create missing tables, including the table of locks if `lock_length` is given."""
    wanted = dict(sql.CREATE)
    if lock_length is not None:
        wanted[sql.LOCKS] = sql.create_locks(lock_length)
    more = sql.OF_MYSQL if sql_database.dialect in ("mysql", "mariadb") else ""
    for table, statement in wanted.items():
        if sql_database.has_table(table):
            continue
        try:
            sql_database.write((statement + more, {}))
        except StorageError:
            if not sql_database.has_table(table):  # another process may have created it
                raise


class JdbcRegistration(LockedRegistration):
    """A table in a database, which may also store its options."""

    __slots__ = ("_name", "_names")

    def __init__(self, lock: JdbcLock | None, names: Names, name: TableName) -> None:
        super().__init__(lock)
        self._names = names
        self._name = name

    def alter(
        self, root: TableRoot, changes: Sequence[SchemaChange], publish: Callable[[], TableSchema], /
    ) -> TableSchema:
        """See `CatalogEntry.alter`.

        Warns: PaimonWarning if the schema was published but its options could not be stored in the database.
        """
        schema = super().alter(root, changes, publish)
        if root.branch != MAIN_BRANCH:
            return schema
        try:
            self._names.keep_options(self._name, schema)
        except (StorageError, OptionError) as error:
            from paimon_py.logs import warn

            warn(
                f"schema {schema.id} of {self._name} is published, but its options are not in the catalog's database;"
                f" repair({str(self._name)!r}) stores them: {error}"
            )
        return schema
