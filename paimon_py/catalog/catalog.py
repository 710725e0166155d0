"""The catalog maps names to tables; a metastore stores the names.

Source: format.md §1; Java `Catalog`, `AbstractCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import PurePath
from typing import cast

import msgspec
import pyarrow as pa

from paimon_py.api_hints import ApiHints
from paimon_py.arguments import NameList, as_mapping, as_names, check_flag, way_of, with_location
from paimon_py.catalog.clones import CatalogClones
from paimon_py.catalog.imports import CatalogImports
from paimon_py.catalog.maintenance import CatalogMaintenance
from paimon_py.catalog.server import CatalogServer
from paimon_py.catalog.sql import CatalogSql
from paimon_py.catalog.views_and_functions import CatalogViewsAndFunctions
from paimon_py.codec.arrow_types import from_arrow_schema
from paimon_py.env import Clock, Env, env_of
from paimon_py.errors import (
    AlreadyExistsError,
    DatabaseNotFoundError,
    OptionError,
    StorageError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.metadata.branches import check_branch_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.directories import DirectoryMetastore
from paimon_py.metastores.metastore import Database, Metastore, TableName
from paimon_py.metastores.open import open_metastore
from paimon_py.metastores.options import METASTORE, TABLE_DEFAULT_PREFIX
from paimon_py.spec.file_rules import names_codecs
from paimon_py.spec.layout import check_name, database_path
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.option_names import check_names
from paimon_py.spec.options import check_values, require_texts
from paimon_py.spec.redact import harmless_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_writable
from paimon_py.storage.store import Store
from paimon_py.table.table import Table

_PLACED = (("path", "hive"),)
"""Options of new tables that only some kinds of metastore accept."""

SYSTEM_DATABASE = "sys"
BRANCH_MARK = "branch_"


@with_location(lambda catalog: catalog.warehouse)
class Catalog(
    CatalogMaintenance, CatalogClones, CatalogImports, CatalogViewsAndFunctions, CatalogServer, CatalogSql, ApiHints
):
    """The databases and tables of one warehouse.

    A catalog can be pickled (without secrets) and used from several threads.
    """

    __slots__ = ("_env", "_metastore", "_table_defaults")

    def __init__(
        self,
        store: Store,
        warehouse: str = "",
        *,
        table_defaults: Mapping[str, str] | None = None,
        env: Env | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not hasattr(store, "put_new") or not isinstance(warehouse, str) or not warehouse:
            shown = repr(str(store)) if isinstance(store, (str, PurePath)) else "path"
            raise UsageError(f"Catalog takes a store and the directory of a warehouse; Catalog.open({shown}) opens one")
        self._env = env_of(env)
        self._table_defaults = as_mapping("table_defaults", table_defaults)
        self._metastore: Metastore = DirectoryMetastore(
            store, warehouse, env=self._env, options=as_mapping("options", options)
        )

    @classmethod
    def of(
        cls, metastore: Metastore, *, table_defaults: Mapping[str, str] | None = None, env: Env | None = None
    ) -> Catalog:
        """The catalog of an open metastore. Raises: UsageError if it is not one."""
        if not hasattr(metastore, "create_table"):
            raise UsageError(f"Catalog.of takes an open metastore, not {metastore!r}; Catalog.open(path) opens one")
        made = cls.__new__(cls)
        made._env = env_of(env)
        made._table_defaults = as_mapping("table_defaults", table_defaults)
        made._metastore = metastore
        return made

    @classmethod
    def open(
        cls,
        path: str | PurePath | None = None,
        options: Mapping[str, str] | None = None,
        *,
        create: bool = True,
        env: Env | None = None,
    ) -> Catalog:
        """Open a catalog: a warehouse, or the metastore of the option `metastore`.

        Args:
            path: directory or URL of the warehouse, which is created if it does not exist; the option `warehouse` is
                equivalent. With `metastore` = `rest` the name of the warehouse on the server.
            options: settings of the catalog and the store, including credentials, by Paimon's option names.
            create: False creates no directory, and rejects a path that is not a warehouse.
            env: clock, ids and threads to use instead of the machine's.

        Raises:
            UnsupportedError: the kind of metastore is unknown, or its package is not installed.
            UsageError: no path, or an invalid one; or the metastore has no address to connect to.
            OptionError: an option's value is not allowed, or its name looks like a misspelt catalog option.
            NotFoundError: the directory does not exist, and `create` is False.
            StorageError: the metastore cannot be reached.
        """
        settings, used = as_mapping("options", options), env_of(env)
        check_flag("create", create)
        require_texts(settings)
        size = len(TABLE_DEFAULT_PREFIX)
        defaults = {name[size:]: value for name, value in settings.items() if name.startswith(TABLE_DEFAULT_PREFIX)}
        return cls.of(open_metastore(path, settings, used, create=create), table_defaults=defaults, env=used)

    @property
    def warehouse(self) -> str:
        """Directory or URL of the warehouse."""
        return self._metastore.warehouse

    # -- databases --------------------------------------------------------------------------------------------------

    def create_database(
        self,
        name: str,
        *,
        exist_ok: bool = False,
        comment: str | None = None,
        location: str | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Create a database.

        Args:
            exist_ok: do nothing if the database exists.
            comment, location, options: for metastores that store them; `location` is the directory of its tables.

        Raises:
            AlreadyExistsError: a database of this name exists, unless `exist_ok`.
            UsageError: the name is unsafe, contains a dot, or is `sys`, which is reserved for the system.
            UnsupportedError: the metastore does not store a location, comment or options.
        """
        self._check_database(name)
        check_flag("exist_ok", exist_ok)
        if "." in name:
            raise UsageError(f"database name {name!r} must not contain a dot: its tables could not be named")
        database = Database(name, location, comment, as_mapping("options", options))
        if not self._metastore.create_database(database) and not exist_ok:
            raise AlreadyExistsError(f"database {name!r} already exists")

    def databases(self) -> list[str]:
        """Names of all databases, sorted. Cost: one list of the warehouse, or one request to the metastore."""
        return self._metastore.databases()

    def drop_database(self, name: str, *, cascade: bool = False, missing_ok: bool = False) -> None:
        """Drop a database, with its tables and views if `cascade`.

        Raises:
            DatabaseNotFoundError: the database does not exist, unless `missing_ok`.
            UsageError: it contains tables or views and `cascade` is not given.
        """
        self._check_database(name)
        check_flag("cascade", cascade)
        check_flag("missing_ok", missing_ok)
        if self._metastore.database(name) is None:
            if missing_ok:
                return
            raise self._no_database(name)
        tables, views = self._metastore.tables(name), self._all_views(name)
        for what, names in (("tables", tables), ("views", views)):
            if names and not cascade:
                shown = ", ".join([*names[:5], *["…"] * (len(names) > 5)])
                raise UsageError(f"database {name!r} has {what} ({shown}); cascade=True drops them too")
        for table in tables:
            self._metastore.drop_table(TableName(name, table))
        self._drop_views(name, views)
        self._metastore.drop_database(name)

    # -- tables -----------------------------------------------------------------------------------------------------

    def create_table(
        self,
        name: str,
        schema: Schema | pa.Schema | Iterable[object],
        *,
        primary_key: NameList = (),
        partition_by: NameList = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Create a table.

        Args:
            name: `database.table`.
            schema: columns as a pyarrow schema or a `Schema`, which can express every Paimon type; or a Spark, pandas
                or polars DataFrame or a pyarrow table, whose columns (but not rows) the new table gets.
            primary_key: columns whose values identify a row; they become NOT NULL.
            partition_by: columns whose values become directories.
            options: table options by Paimon's names, as strings.
            comment: the table's comment.
            exist_ok: return the existing table, regardless of its schema.

        Raises:
            AlreadyExistsError: the table exists, or another process created it first.
            DatabaseNotFoundError: the database does not exist.
            SchemaError, OptionError: columns, keys or options break a rule; the message contains the rule.
            UnsupportedError: a feature that paimon_py cannot write yet.

        Warns:
            PaimonWarning: options that have no effect in paimon_py yet; a primary key that is unique only per
                partition.
        """
        full = self._split(name, "create_table")
        check_flag("exist_ok", exist_ok)
        first = self._new_schema(schema, primary_key, partition_by, options, comment)
        if names_codecs(first.options):
            from paimon_py.files.codecs import check_codecs

            check_codecs(first)
        self._require_database(full.database)
        root = self._metastore.create_table(full, first, partial(check_new, first))
        if root is not None:
            self._report("create", name, root.path)
            return Table(root, first if root.registration is None else root.schemas.latest(), name)
        if not exist_ok:
            raise AlreadyExistsError(f"table {name!r} already exists", table=name)
        return self.table(name)

    def tables(self, database: str) -> list[str]:
        """Names of all tables of a database, sorted. Cost: one list, and one per directory in it.

        Raises:
            DatabaseNotFoundError: the database does not exist.
        """
        self._require_database(database)
        return self._metastore.tables(database)

    def table(self, name: str) -> Table:
        """Open a table, a branch (`db.t$branch_b1`), a system table (`db.t$files`), or a global one (`sys.tables`).

        Branches have system tables, too. A system table has only the read methods of a table.

        Cost: one list and one get.

        Raises:
            TableNotFoundError: the table does not exist.
            DatabaseNotFoundError: not even the database exists.
            UnsupportedError, UsageError: a system table that is not implemented, or that does not exist.
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

            return cast("Table", warehouse_table(_Warehouse(self, self._env.clock), name.partition(".")[2]))
        full = self._split(name, "table")
        root = self._metastore.find(full)
        try:
            if root is not None:
                return Table(root, root.latest_schema_to_open(), name)
        except TableNotFoundError as error:
            raise self._no_table(full, name, error.path) from error
        raise self._no_table(full, name)

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a table with all its data.

        The schemas are deleted first, the newest of them last, so that other processes see the whole table or none. To
        remove the remains of an interrupted drop, drop the table again. In external paths, only files that a snapshot
        or tag references are deleted, and of these only those below the table's external roots that are not inside
        another table of the warehouse.

        Raises:
            TableNotFoundError: the table does not exist, unless `missing_ok`.

        Warns: PaimonWarning for files that a snapshot references and that are not deleted.
        """
        full = self._split(name, "drop_table")
        check_flag("missing_ok", missing_ok)
        path = self._path_for_observers(full)
        is_there = self._metastore.drop_table(full)
        if not is_there and not missing_ok:
            raise self._no_table(full, name)
        if is_there:
            self._report("drop", name, path)

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table, optionally moving it to another database.

        Raises:
            TableNotFoundError, DatabaseNotFoundError: the table or the target database does not exist.
            AlreadyExistsError: a table with the new name exists.
            UnsupportedError: the store cannot move a directory in one step (object stores).
        """
        full, target = self._split(name, "rename_table"), self._split(new_name, "rename_table")
        self._require_database(target.database)
        self._metastore.rename_table(full, target)
        self._report("rename", new_name, self._path_for_observers(target), name)

    # -- parts ------------------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[object, ...]:
        known = harmless_options({TABLE_DEFAULT_PREFIX + name: text for name, text in self._table_defaults.items()})
        defaults = {name.removeprefix(TABLE_DEFAULT_PREFIX): text for name, text in known.items()}
        return _reopen, (self._metastore, defaults)

    def __repr__(self) -> str:
        return f"Catalog({self.warehouse!r})"

    def _new_schema(
        self,
        columns: Schema | pa.Schema | Iterable[object],
        primary_key: NameList,
        partition_by: NameList,
        options: Mapping[str, str] | None,
        comment: str | None,
    ) -> TableSchema:
        if options is not None and not isinstance(options, Mapping):
            raise UsageError(f"options map names to strings, got a {type(options).__name__}")
        spec = TableSpec(
            primary_keys=_names("primary_key", primary_key),
            partition_keys=_names("partition_by", partition_by),
            options={**self._table_defaults, **(options or {})},
            comment=comment,
        )
        kind = str(self._metastore.options.get(METASTORE, "")).lower()
        for option in ("path", "auto-create"):
            if spec.options.get(option, "false") != "false" and (option, kind) not in _PLACED:
                raise OptionError(f"option {option!r} is not allowed for tables of a catalog", option=option)
        return first_schema(as_schema(columns), spec, self._env.clock.millis())

    def _check_database(self, name: str) -> None:
        if check_name("database", name) == SYSTEM_DATABASE:
            message = f"the database {SYSTEM_DATABASE!r} contains only system tables, such as sys.tables"
            raise UnsupportedError(message, feature="system database")

    def _require_database(self, name: str) -> None:
        self._check_database(name)
        if self._metastore.database(name) is None:
            raise self._no_database(name)

    def _no_database(self, name: str) -> DatabaseNotFoundError:
        message = f"database {name!r} does not exist{_meant(name, self._metastore.databases)}"
        return DatabaseNotFoundError(message, path=database_path(self.warehouse, name))

    def _no_table(self, full: TableName, name: str, path: str | None = None) -> TableNotFoundError:
        """The error for a table that does not exist, with similar names. Raises: DatabaseNotFoundError"""
        self._require_database(full.database)
        hint = _meant(full.table, partial(self._metastore.tables, full.database), f"{full.database}.")
        return TableNotFoundError(f"table {name!r} does not exist{hint}", path=path, table=name)

    def _split(self, name: str, verb: str) -> TableName:
        """Database and table of a full name; rejects names of system tables and branches."""
        if not isinstance(name, str):
            raise UsageError(f"the name of a table is 'database.table', got {name!r}{way_of(name)}")
        database, dot, table = name.partition(".")
        if not dot:
            raise UsageError(f"the name of a table is 'database.table', got {name!r}")
        if f"${BRANCH_MARK}" in table:
            raise UsageError(
                f"{verb} does not take a branch such as {name!r}: use create_branch, delete_branch and rename_branch of"
                " the table"
            )
        if "$" in table:
            system = table.partition("$")[2]
            raise UnsupportedError(
                f"{verb}: system tables cannot be created or changed: {name!r}", feature=f"system table ${system}"
            )
        self._check_database(database)
        return TableName(database, check_name("table", table))


class _Warehouse(msgspec.Struct, frozen=True):
    """The part of a catalog that system tables of all tables use."""

    catalog: Catalog
    clock: Clock

    @property
    def warehouse(self) -> str:
        return self.catalog.warehouse

    def options(self) -> Mapping[str, str]:
        return self.catalog._metastore.options

    def databases(self) -> list[str]:
        return self.catalog.databases()

    def tables(self, database: str) -> list[str]:
        return self.catalog.tables(database)

    def root(self, database: str, table: str) -> TableRoot:
        root = self.catalog._metastore.find(TableName(database, table))
        if root is None:
            raise TableNotFoundError(f"table '{database}.{table}' does not exist", table=f"{database}.{table}")
        return root


def _meant(name: str, known: Callable[[], list[str]], before: str = "") -> str:
    try:
        from paimon_py.expr.bind import near_names

        near = near_names(name, known())
    except StorageError:  # a user allowed to open a table may not be allowed to list them
        return ""
    return f"; did you mean {' or '.join(repr(before + each) for each in near)}?" if near else ""


def as_schema(columns: Schema | pa.Schema | Iterable[object]) -> Schema:
    """The columns for a new table, from user input. Raises: UsageError, SchemaError"""
    if isinstance(columns, Schema):
        return columns
    if isinstance(columns, pa.Schema):
        return Schema(from_arrow_schema(columns))
    if hasattr(columns, "__arrow_c_schema__") and not isinstance(columns, (pa.DataType, pa.Field)):
        return Schema(from_arrow_schema(pa.schema(columns)))
    library = type(columns).__module__.partition(".")[0]
    if library == "pyspark":
        struct = getattr(columns, "schema", columns)
        if hasattr(struct, "jsonValue") and hasattr(struct, "fields"):
            from paimon_py.spec.spark_types import columns_of_spark

            return Schema(columns_of_spark(struct.jsonValue()))
    is_pandas = library == "pandas" and type(columns).__name__ == "DataFrame"
    if is_pandas or hasattr(columns, "__arrow_c_stream__"):
        from paimon_py.write.streams import open_stream

        return Schema(from_arrow_schema(open_stream(columns).schema))
    if isinstance(columns, (Mapping, list, tuple)):
        return Schema(columns)
    way = ""
    if isinstance(columns, TableSchema):
        way = "; Schema(schema.fields) has its columns"
    elif hasattr(columns, "schema"):
        way = "; pass its .schema"
    elif hasattr(columns, "dtypes"):
        way = "; pyarrow.Schema.from_pandas(frame) creates one of a frame's columns"
    elif isinstance(columns, str):
        way = '; write columns and types as {"id": "BIGINT", "name": "STRING"}'
    raise UsageError(f"a table's schema is a pyarrow.Schema or a paimon_py.Schema, not {type(columns).__name__}{way}")


def first_schema(columns: Schema, spec: TableSpec, time_millis: int) -> TableSchema:
    """The first schema of a table, checked by all rules for new ones.

    Raises: SchemaError, OptionError, UnsupportedError
    """
    from paimon_py.spec.validation import validate

    check_names(spec.options)
    check_values(spec.options)
    schema = new_table_schema(columns, spec, time_millis=time_millis)
    validate(schema)
    check_writable(schema)
    return schema


def check_new(schema: TableSchema, root: TableRoot) -> None:
    """Reject options that refer to missing branches, and warn of features that a new table does not provide."""
    from paimon_py.metadata.idle_warning import warn_of_iceberg, warn_of_idle_options, warn_of_keys_of_partitions

    check_branch_options(root, schema.options)
    warn_of_idle_options(root, schema.options)
    table = OpenTable(root, schema)
    warn_of_keys_of_partitions(table)
    warn_of_iceberg(table)


def _names(argument: str, names: NameList) -> tuple[str, ...]:
    if isinstance(names, str):
        raise UsageError(f"{argument} is a list of column names; write [{names!r}]")
    return () if names is None else as_names(f"{argument} is a list of column names", names)


def _reopen(metastore: Metastore, table_defaults: Mapping[str, str]) -> Catalog:
    return Catalog.of(metastore, table_defaults=table_defaults)
