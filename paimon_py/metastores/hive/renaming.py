"""Renames a table of a metastore, and moves the directory of a managed one.

The record is renamed first, which is decisive; then the directory is moved, unless the metastore moved it. If the move
fails, the table has its new name and its old directory.

Source: Java `HiveCatalog.renameTableImpl`, release 2.0; Hive's `HiveAlterHandler`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import AlreadyExistsError, StorageError, TableNotFoundError, UnsupportedError
from paimon_py.metadata.schemas import Schemas
from paimon_py.metastores.hive.connection import RefusedError
from paimon_py.metastores.hive.records import is_external, is_paimon, location_of, renamed_table, with_location
from paimon_py.metastores.hive.registration import keys_of
from paimon_py.metastores.hive.tables import HiveTables
from paimon_py.metastores.metastore import TableName

_MOVABLE = ("hdfs", "viewfs", "memory")
_QUIETLY: Mapping[str, str] = {"DO_NOT_UPDATE_STATS": "true"}


def rename(tables: HiveTables, name: TableName, to: TableName) -> None:
    """Rename a table; see `Metastore.rename_table` for errors. Cost: five calls, and the move."""
    record = tables.verbs.table(name)
    if record is None or not is_paimon(record):
        raise TableNotFoundError(f"table {str(name)!r} does not exist", table=str(name))
    if tables.verbs.table(to) is not None:
        raise AlreadyExistsError(f"table {str(to)!r} already exists", table=str(to))
    source, target = location_of(record) or tables.location(name), tables.location(to)
    path = tables.places.open(source)[1]
    moves = not is_external(record) and path == tables.places.open(tables.location(name))[1]
    if moves:
        _check_move(tables, name, path, target)
    try:
        tables.verbs.alter_table(name, renamed_table(record, to), _QUIETLY)
    except RefusedError as error:
        if tables.verbs.table(to) is not None:
            raise AlreadyExistsError(f"table {str(to)!r} already exists", table=str(to)) from error
        raise StorageError(
            f"the metastore refuses to rename {name} to {to}: {error.message}", path=path, operation="rename_table"
        ) from error
    if moves:
        _move(tables, to, source, target)


def _check_move(tables: HiveTables, name: TableName, path: str, target: str) -> None:
    """Refuse an impossible move before the table is renamed."""
    scheme, mark, _ = path.partition("://")
    if mark and scheme not in _MOVABLE:
        raise UnsupportedError(
            f"{scheme} cannot move directories: {str(name)!r} cannot be renamed. An external table can",
            feature="renaming a managed table on an object store",
        )
    store, new_path = tables.places.open(target)
    if new_path.split("/")[:3] != path.split("/")[:3] and ("://" in new_path or "://" in path):
        raise UnsupportedError(
            f"{path} cannot be moved to {new_path}, in another store: {str(name)!r} cannot be renamed into a database"
            " in that store",
            feature="renaming a table into another store",
        )
    if store.stat(new_path) is not None:
        raise AlreadyExistsError(f"{new_path} already exists", path=new_path)


def _move(tables: HiveTables, name: TableName, source: str, target: str) -> None:
    store, path = tables.places.open(source)
    new_path = tables.places.open(target)[1]
    if Schemas(store, path).ids():
        store.rename_directory(path, new_path)
    record = tables.verbs.table(name)
    if record is None:
        return
    if tables.places.open(location_of(record) or target)[1] != new_path:
        tables.verbs.alter_table(name, with_location(record, target, tables.settings), _QUIETLY)
    if keys_of(record):
        _move_partitions(tables, name, source, target)


def _move_partitions(tables: HiveTables, name: TableName, source: str, target: str) -> None:
    changed = []
    for partition in tables.verbs.partitions(name):
        location = location_of(partition) or ""
        if location.startswith(source + "/"):
            changed.append(with_location(partition, target + location[len(source) :], tables.settings))
    tables.verbs.change_partitions(name, changed)
