"""A catalog: names to tables, over a warehouse directory.

A database is the directory `<name>.db` of the warehouse, a table a directory in it that holds a schema. There is no
other record: creating a table means publishing `schema/schema-0`, and of several creators exactly one succeeds.

Source: format.md §1; Java `FileSystemCatalog`, `AbstractCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import cast

import msgspec
import pyarrow as pa

from paimon_py.catalog_care import CatalogCare
from paimon_py.codec.arrow_types import from_arrow_schema
from paimon_py.doors import mapped, names_place
from paimon_py.env import Env
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    NotFoundError,
    OptionError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.metadata.branches import check_branch_options
from paimon_py.metadata.external_files import delete_external_files
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.schemas import Schemas
from paimon_py.spec.layout import (
    DATABASE_SUFFIX,
    branch_directory,
    check_name,
    database_path,
    join,
    schema_path,
    snapshot_directory,
    table_path,
)
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.option_names import check_names
from paimon_py.spec.options import check_values
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.shown import harmless_options
from paimon_py.spec.supported import check_writable
from paimon_py.storage.open import open_store
from paimon_py.storage.store import Store
from paimon_py.table import Table

SYSTEM_DATABASE = "sys"
BRANCH_MARK = "branch_"
DATABASE_MARKER = ".database"
"""An empty file that keeps an empty database alive in stores without directories."""

TABLE_DEFAULT_PREFIX = "table-default."
"""Catalog options with this prefix are table options of every new table."""


@names_place(lambda catalog: catalog._warehouse)
class Catalog(CatalogCare):
    """The databases and tables of one warehouse.

    Can be pickled (secrets are left out) and used from several threads.
    """

    __slots__ = ("_env", "_options", "_store", "_table_defaults", "_warehouse")

    def __init__(
        self,
        store: Store,
        warehouse: str,
        *,
        table_defaults: Mapping[str, str] | None = None,
        env: Env | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._warehouse = warehouse
        self._table_defaults = mapped("table_defaults", table_defaults)
        self._env = env or Env()
        self._options = mapped("options", options)

    @classmethod
    def open(
        cls,
        path: str | PurePath | None = None,
        options: Mapping[str, str] | None = None,
        *,
        create: bool = True,
        env: Env | None = None,
    ) -> Catalog:
        """Open a warehouse; its directory is made when missing.

        Args:
            path: directory or URL; the option `warehouse` says the same.
            options: credentials and settings of the store and of the catalog, by Paimon's option names.
            create: False makes no directory, and refuses a path that is no warehouse.
            env: clock, ids and threads to use instead of the machine's.

        Raises:
            UnsupportedError: a metastore other than `filesystem`.
            UsageError: no path, or one that is no path.
            NotFoundError: there is no such directory, and `create` is False.
        """
        settings = mapped("options", options)
        metastore = settings.get("metastore", "filesystem")
        if str(metastore).lower() != "filesystem":
            raise UnsupportedError(
                f"catalogs with 'metastore' = {metastore!r} are not supported yet; 'filesystem' is",
                feature=f"metastore={metastore}",
            )
        location = settings.get("warehouse") if path is None else path
        if not isinstance(location, (str, PurePath)) or not location:
            raise UsageError(
                f"Catalog.open needs the path or URL of a warehouse, not {type(location).__name__} or an empty text"
            )
        store, warehouse = open_store(str(location), settings)
        if create:
            store.make_directory(warehouse)
        else:
            _require_warehouse(store, warehouse)
        size = len(TABLE_DEFAULT_PREFIX)
        defaults = {name[size:]: value for name, value in settings.items() if name.startswith(TABLE_DEFAULT_PREFIX)}
        return cls(store, warehouse, table_defaults=defaults, env=env, options=settings)

    @property
    def warehouse(self) -> str:
        """Directory or URL of the warehouse."""
        return self._warehouse

    # -- databases --------------------------------------------------------------------------------------------------

    def create_database(self, name: str, *, exist_ok: bool = False) -> None:
        """Make a database.

        Raises:
            AlreadyExistsError: there is one of this name, unless `exist_ok`.
            UsageError: a hostile name, one with a dot, or `sys`, which is kept for the system.
        """
        path = self._database_path(name)
        if "." in name:
            raise UsageError(f"database name {name!r} must not contain a dot: its tables could not be named")
        if self._has_database(name):
            if exist_ok:
                return
            raise AlreadyExistsError(f"database {name!r} exists already", path=path)
        self._store.make_directory(path)
        if self._has_database(name):
            return
        if not self._store.put_new(join(path, DATABASE_MARKER), b"") and not exist_ok:
            raise AlreadyExistsError(f"database {name!r} exists already", path=path)

    def databases(self) -> list[str]:
        """Names of all databases, sorted. Cost: one list."""
        return sorted(
            status.name.removesuffix(DATABASE_SUFFIX)
            for status in self._store.list(self._warehouse)
            if status.is_directory and status.name.endswith(DATABASE_SUFFIX) and status.name != DATABASE_SUFFIX
        )

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Remove a database, with its tables if `cascade`.

        Raises:
            DatabaseNotFoundError: there is none, unless `missing_ok`.
            UsageError: it has tables and `cascade` is not given.
        """
        path = self._database_path(name)
        if not self._has_database(name):
            if missing_ok:
                return
            raise DatabaseNotFoundError(f"there is no database {name!r}", path=path)
        tables = self.tables(name)
        if tables and not cascade:
            raise UsageError(
                f"database {name!r} has tables ({', '.join(tables[:5])}{', …' if len(tables) > 5 else ''}); "
                "cascade=True drops them too"
            )
        for table in tables:
            self._delete_table(join(path, table))
        self._store.delete_tree(path)

    # -- tables -----------------------------------------------------------------------------------------------------

    def create_table(
        self,
        name: str,
        schema: Schema | pa.Schema | Iterable[object],
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Create a table.

        Args:
            name: `database.table`.
            schema: columns as a pyarrow schema or a `Schema`, which can say every Paimon type.
            primary_key: columns whose values identify a row; they become NOT NULL.
            partition_by: columns whose values are directories.
            options: table options by Paimon's names, as text.
            comment: the table's comment.
            exist_ok: return the table that is there, whatever its schema.

        Raises:
            AlreadyExistsError: the table exists, or somebody else created it first.
            DatabaseNotFoundError: there is no such database.
            SchemaError, OptionError: columns, keys or options break a rule; the message names it.
            UnsupportedError: a feature that paimon_py cannot write yet.

        Warns: PaimonWarning for options that paimon_py does nothing for yet.
        """
        database, table = self._split(name, "create_table")
        path = table_path(self._warehouse, database, table)
        if options is not None and not isinstance(options, Mapping):
            raise UsageError(f"options map names to texts, got a {type(options).__name__}")
        first = self._new_schema(
            schema,
            TableSpec(
                primary_keys=_names("primary_key", primary_key),
                partition_keys=_names("partition_by", partition_by),
                options={**self._table_defaults, **(options or {})},
                comment=comment,
            ),
        )
        self._require_database(database)
        root = self._root(path)
        if not root.schemas.ids():
            self._refuse_remains(path, name)
            from paimon_py.metadata.idle_warning import warn_of_idle_options

            check_branch_options(root, first.options)
            warn_of_idle_options(root, first.options)
            if root.schemas.add(first):
                return Table(root, first, name)
        if not exist_ok:
            raise AlreadyExistsError(f"table {name!r} exists already", path=path, table=name)
        return Table(root, root.schemas.latest(), name)

    def tables(self, database: str) -> list[str]:
        """Names of all tables of a database, sorted. Cost: one list, and one per directory in it.

        Raises:
            DatabaseNotFoundError: there is no such database.
        """
        self._require_database(database)
        statuses = self._store.list(self._database_path(database))
        directories = [status for status in statuses if status.is_directory]
        known = self._env.pool.map(lambda status: bool(Schemas(self._store, status.path).ids()), directories)
        return sorted(status.name for status, is_table in zip(directories, known, strict=True) if is_table)

    def table(self, name: str) -> Table:
        """Open a table, a branch of one (`db.t$branch_b1`), a system table of either (`db.t$files`), or one of all
        tables (`sys.tables`).

        A system table has the reading verbs of a table, and no others.

        Cost: one list and one get.

        Raises:
            TableNotFoundError: there is none.
            DatabaseNotFoundError: there is not even the database.
            UnsupportedError, UsageError: a system table that is not built, or that does not exist.
        """
        if isinstance(name, str) and "$" in name:
            base, _, rest = name.partition("$")
            branch, _, system = rest.partition("$")
            if not branch.startswith(BRANCH_MARK):
                return cast("Table", self.table(base).system(rest))
            found = self.table(base).branch(branch[len(BRANCH_MARK) :])
            return cast("Table", found.system(system)) if system else found
        if isinstance(name, str) and name.startswith(f"{SYSTEM_DATABASE}."):
            from paimon_py.system.warehouse_tables import warehouse_table

            return cast("Table", warehouse_table(_Warehouse(self), name.partition(".")[2]))
        database, table = self._split(name, "table")
        root = self._root(table_path(self._warehouse, database, table))
        try:
            schema = root.schemas.latest()
        except TableNotFoundError as error:
            self._require_database(database)
            raise TableNotFoundError(f"there is no table {name!r}", path=root.path, table=name) from error
        return Table(root, schema, name)

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Remove a table with all its data.

        The schemas go first, the newest of them last, so that others see the whole table or none. What an interrupted
        drop has left is removed by dropping again. Of external paths only the files that a snapshot or tag names go,
        and of them only those below the table's external roots that lie in no other table of the warehouse.

        Raises:
            TableNotFoundError: there is none, unless `missing_ok`.

        Warns: PaimonWarning for files that a snapshot names and that are not deleted.
        """
        database, table = self._split(name, "drop_table")
        path = table_path(self._warehouse, database, table)
        if self._store.stat(path) is None:
            if missing_ok:
                return
            self._require_database(database)
            raise TableNotFoundError(f"there is no table {name!r}", path=path, table=name)
        self._delete_table(path)

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name, perhaps in another database.

        Raises:
            TableNotFoundError, DatabaseNotFoundError: there is no such table or target database.
            AlreadyExistsError: there is a table of the new name.
            UnsupportedError: the store cannot move a directory in one step (object stores).
        """
        database, table = self._split(name, "rename_table")
        new_database, new_table = self._split(new_name, "rename_table")
        path = table_path(self._warehouse, database, table)
        target = table_path(self._warehouse, new_database, new_table)
        if not self._schemas(path).ids():
            raise TableNotFoundError(f"there is no table {name!r}", path=path, table=name)
        self._require_database(new_database)
        if self._store.stat(target) is not None:
            raise AlreadyExistsError(f"table {new_name!r} exists already", path=target, table=new_name)
        self._store.rename_directory(path, target)

    # -- parts ------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[object, ...]:
        known = harmless_options({TABLE_DEFAULT_PREFIX + name: text for name, text in self._table_defaults.items()})
        defaults = {name.removeprefix(TABLE_DEFAULT_PREFIX): text for name, text in known.items()}
        return _reopen, (self._store, self._warehouse, defaults, harmless_options(self._options))

    def __repr__(self) -> str:
        return f"Catalog({self._warehouse!r})"

    def _root(self, path: str) -> TableRoot:
        return TableRoot(self._store, path, self._env, self._options)

    def _schemas(self, path: str) -> Schemas:
        return Schemas(self._store, path)

    def _delete_table(self, path: str) -> None:
        root = self._root(path)
        left = delete_external_files(root, self._warehouse)
        for number in self._schemas(path).ids():
            self._store.delete(schema_path(path, number))
        self._store.delete_tree(path)
        if left:
            from paimon_py.metadata.idle_warning import warn

            named = ", ".join(left[:5])
            warn(f"{path} was dropped; of the files it named outside, {len(left)} are not its own and stay: {named}")

    def _refuse_remains(self, path: str, name: str) -> None:
        if any(self._store.list(directory) for directory in (snapshot_directory(path), branch_directory(path))):
            raise AlreadyExistsError(
                f"{path} holds the remains of a table that was dropped halfway; drop_table({name!r}) removes them",
                path=path,
                table=name,
            )

    def _new_schema(self, columns: Schema | pa.Schema | Iterable[object], spec: TableSpec) -> TableSchema:
        from paimon_py.spec.validation import validate

        check_names(spec.options)
        check_values(spec.options)
        for option in ("path", "auto-create"):
            if spec.options.get(option, "false") != "false":
                raise OptionError(f"option {option!r} is not for tables of a catalog", option=option)
        schema = new_table_schema(_as_schema(columns), spec, time_millis=self._env.clock.millis())
        validate(schema)
        check_writable(schema)
        return schema

    def _database_path(self, name: str) -> str:
        if name == SYSTEM_DATABASE:
            message = f"the database {SYSTEM_DATABASE!r} holds tables of the system, such as sys.tables, and no others"
            raise UnsupportedError(message, feature="system database")
        return database_path(self._warehouse, name)

    def _has_database(self, name: str) -> bool:
        return self._store.stat(self._database_path(name)) is not None

    def _require_database(self, name: str) -> None:
        if not self._has_database(name):
            raise DatabaseNotFoundError(f"there is no database {name!r}", path=self._database_path(name))

    def _split(self, name: str, verb: str) -> tuple[str, str]:
        """Database and table of a full name; system tables and branches are refused by name."""
        if not isinstance(name, str):
            raise UsageError(f"a table is named 'database.table', got {name!r}")
        database, dot, table = name.partition(".")
        if not dot:
            raise UsageError(f"a table is named 'database.table', got {name!r}")
        if f"${BRANCH_MARK}" in table:
            raise UsageError(
                f"{verb} is not for branches such as {name!r}: create_branch, delete_branch and rename_branch of the"
                " table are"
            )
        if "$" in table:
            system = table.partition("$")[2]
            raise UnsupportedError(
                f"{verb}: a system table is not made or changed: {name!r}", feature=f"system table ${system}"
            )
        self._database_path(database)
        return database, check_name("table", table)


class _Warehouse(msgspec.Struct, frozen=True):
    """What system tables of all tables see of a catalog."""

    catalog: Catalog

    @property
    def warehouse(self) -> str:
        return self.catalog.warehouse

    def options(self) -> Mapping[str, str]:
        return self.catalog._options

    def databases(self) -> list[str]:
        return self.catalog.databases()

    def tables(self, database: str) -> list[str]:
        return self.catalog.tables(database)

    def root(self, database: str, table: str) -> TableRoot:
        return self.catalog._root(table_path(self.catalog.warehouse, database, table))


def _as_schema(columns: Schema | pa.Schema | Iterable[object]) -> Schema:
    if isinstance(columns, Schema):
        return columns
    if isinstance(columns, pa.Schema):
        return Schema(from_arrow_schema(columns))
    if hasattr(columns, "__arrow_c_schema__"):
        return Schema(from_arrow_schema(pa.schema(columns)))
    raise UsageError(f"a table's schema is a pyarrow.Schema or a paimon_py.Schema, not {type(columns).__name__}")


def _require_warehouse(store: Store, warehouse: str) -> None:
    status = store.stat(warehouse)
    if status is None or not status.is_directory:
        message = f"there is no warehouse at {warehouse}: Catalog.open makes one unless create=False"
        raise NotFoundError(message, path=warehouse)


def _names(argument: str, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise UsageError(f"{argument} is a list of column names; write [{names!r}]")
    given = tuple(names or ())
    if not all(isinstance(name, str) for name in given):
        raise UsageError(f"{argument} is a list of column names, got {names!r}")
    return given


def _reopen(
    store: Store, warehouse: str, table_defaults: Mapping[str, str], options: Mapping[str, str]
) -> Catalog:
    return Catalog(store, warehouse, table_defaults=table_defaults, options=options)
