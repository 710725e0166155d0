"""A metastore of directories: the warehouse itself is the only record.

A database is the directory `<name>.db` of the warehouse, a table a directory in it that contains a schema. Publishing
`schema/schema-0` creates a table, and exactly one of several creators succeeds.

Source: format.md §1; Java `FileSystemCatalog`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paimon_py.env import Env
from paimon_py.errors import AlreadyExistsError, TableNotFoundError, UnsupportedError
from paimon_py.metadata.external_files import delete_external_files
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.schemas import Schemas
from paimon_py.metastores.metastore import BeforeCreation, Database, TableName
from paimon_py.spec.layout import (
    CLONE_DIRECTORY,
    DATABASE_SUFFIX,
    branch_directory,
    database_path,
    join,
    schema_path,
    snapshot_directory,
    table_path,
)
from paimon_py.spec.redact import harmless_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_movable
from paimon_py.storage.store import Store

DATABASE_MARKER = ".database"
"""An empty file that preserves an empty database in stores without directories."""


class DirectoryMetastore:
    """The databases and tables of a directory."""

    __slots__ = ("_env", "_options", "_store", "_warehouse")

    def __init__(self, store: Store, warehouse: str, *, env: Env, options: Mapping[str, str]) -> None:
        self._store = store
        self._warehouse = warehouse
        self._env = env
        self._options = options

    @property
    def warehouse(self) -> str:
        """See `Metastore.warehouse`."""
        return self._warehouse

    @property
    def options(self) -> Mapping[str, str]:
        """See `Metastore.options`."""
        return self._options

    def databases(self) -> list[str]:
        """See `Metastore.databases`. Cost: one list."""
        return sorted(
            status.name.removesuffix(DATABASE_SUFFIX)
            for status in self._store.list(self._warehouse)
            if status.is_directory and status.name.endswith(DATABASE_SUFFIX) and status.name != DATABASE_SUFFIX
        )

    def database(self, name: str) -> Database | None:
        """See `Metastore.database`. Cost: one stat."""
        path = database_path(self._warehouse, name)
        return None if self._store.stat(path) is None else Database(name, path)

    def create_database(self, database: Database) -> bool:
        """See `Metastore.create_database`."""
        if database.location is not None or database.comment is not None or database.options:
            raise UnsupportedError(
                "a database of a file system catalog is a directory of the warehouse: it has no location, comment"
                " or options",
                feature="database location, comment and options",
            )
        path = database_path(self._warehouse, database.name)
        if self._store.stat(path) is not None:
            return False
        self._store.make_directory(path)
        return self._store.stat(path) is not None or self._store.put_new(join(path, DATABASE_MARKER), b"")

    def drop_database(self, name: str) -> None:
        """See `Metastore.drop_database`."""
        self._store.delete_tree(database_path(self._warehouse, name))

    def tables(self, database: str) -> list[str]:
        """See `Metastore.tables`. Cost: one list, and one per directory in it."""
        statuses = self._store.list(database_path(self._warehouse, database))
        directories = [status for status in statuses if status.is_directory]
        known = self._env.pool.map(lambda status: bool(Schemas(self._store, status.path).ids()), directories)
        return sorted(status.name for status, is_table in zip(directories, known, strict=True) if is_table)

    def find(self, name: TableName) -> TableRoot:
        """See `Metastore.find`. Cost: none."""
        return TableRoot(self._store, self._path(name), self._env, self._options)

    def create_table(self, name: TableName, schema: TableSchema, before: BeforeCreation) -> TableRoot | None:
        """See `Metastore.create_table`."""
        root = self.find(name)
        if root.schemas.ids():
            return None
        refuse_remains(root, name)
        before(root)
        return root if root.schemas.add(schema) else None

    def new_location(self, name: TableName) -> TableRoot:
        """See `Metastore.new_location`. Cost: none."""
        return self.find(name)

    def adopt_table(self, name: TableName, root: TableRoot, publish: Callable[[], bool]) -> bool:  # noqa: ARG002
        """See `Metastore.adopt_table`."""
        return publish()

    def drop_table(self, name: TableName) -> bool:
        """See `Metastore.drop_table`."""
        path = self._path(name)
        if self._store.stat(path) is None:
            return False
        delete_table(self.find(name), self._warehouse)
        return True

    def rename_table(self, name: TableName, to: TableName) -> None:
        """See `Metastore.rename_table`."""
        path, target = self._path(name), self._path(to)
        schemas = Schemas(self._store, path)
        if not schemas.ids():
            raise TableNotFoundError(f"table {str(name)!r} does not exist", path=path, table=str(name))
        if self._store.stat(target) is not None:
            raise AlreadyExistsError(f"table {str(to)!r} already exists", path=target, table=str(to))
        check_movable(schemas.latest(), "rename")
        self._store.rename_directory(path, target)

    def repair(self, database: str | None, table: str | None) -> None:
        """See `Metastore.repair`."""
        what = "catalog" if database is None else repr(".".join(part for part in (database, table) if part))
        raise UnsupportedError(
            f"repair of {what}: tables of this catalog are directories, and there is no separate metastore"
            "; Table.remove_unexisting_files repairs a table that has lost data files",
            feature="repair",
        )

    def _path(self, name: TableName) -> str:
        return table_path(self._warehouse, name.database, name.table)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._store, self._warehouse, harmless_options(self._options))


def _reopen(store: Store, warehouse: str, options: Mapping[str, str]) -> DirectoryMetastore:
    return DirectoryMetastore(store, warehouse, env=Env(), options=options)


def refuse_remains(root: TableRoot, name: TableName) -> None:
    """Refuse to create a table in place of one whose drop or clone was interrupted. Cost: three lists.

    Raises: AlreadyExistsError
    """
    path = root.path
    clone = join(path, CLONE_DIRECTORY)
    if any(root.store.list(directory) for directory in (snapshot_directory(path), branch_directory(path), clone)):
        raise AlreadyExistsError(
            f"{path} contains the remains of an interrupted drop or clone; drop_table({str(name)!r}) removes them",
            path=path,
            table=str(name),
        )


def delete_table(root: TableRoot, warehouse: str) -> None:
    """Delete a table's directory, and its external files that belong to no other table.

    Schemas are deleted first, the newest of them last, so that others see the whole table or none.

    Warns: PaimonWarning for files that a snapshot references and that are not deleted.
    """
    left = delete_external_files(root, warehouse)
    for number in root.schemas.ids():
        root.store.delete(schema_path(root.path, number))
    root.store.delete_tree(root.path)
    if left:
        from paimon_py.logs import warn

        named = ", ".join(left[:5])
        warn(f"{root.path} was dropped; files that may belong to other tables were kept ({len(left)}): {named}")
