"""Opening the table of a directory; the error for a directory that has no table says what it has."""

from __future__ import annotations

import difflib
from typing import Protocol

from paimon_py.errors import TableNotFoundError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import DATABASE_SUFFIX, SCHEMA_PREFIX, schema_directory
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.store import List, Stat

_SHOWN = 3
"""The maximum number of tables, and of databases, that an error names."""
_ABOVE = 3
"""The number of parent directories to examine: enough for a bucket of a table with two partition keys."""


class _Looks(List, Stat, Protocol):
    """The store operations of this module."""


def schema_to_open(root: TableRoot) -> TableSchema:
    """The latest schema of the table in a directory that a user named.

    Raises: TableNotFoundError if there is no table; it names what there is: tables below, or a table of another format.
    """
    try:
        return root.latest_schema_to_open()
    except TableNotFoundError as error:
        hint = _hint(root.store, root.path.rstrip("/"))
        raise TableNotFoundError(f"{error}{hint}", path=error.path) from error


def _hint(store: _Looks, path: str) -> str:
    """A description of what the directory contains instead of a table. Cost: some lists."""
    status = store.stat(path)
    if status is not None and not status.is_directory:
        return "; it is a file, and a table is a directory"
    children = store.list(path)
    names = {child.name for child in children}
    folders = [child.name for child in children if child.is_directory]
    databases = [name for name in folders if name.endswith(DATABASE_SUFFIX)]
    if databases:
        shown = databases[:_SHOWN]
        tables = [f"{path}/{each}/{name}" for each in shown for name in _folders(store, f"{path}/{each}")]
        return f"; it is a warehouse{_tables(tables)}"
    if path.endswith(DATABASE_SUFFIX) and folders:
        return f"; it is a database{_tables([f'{path}/{name}' for name in folders])}"
    if "_delta_log" in names:
        return f"; it is a Delta table: catalog.import_delta('db.t', {path!r}) imports it"
    if "metadata" in names and any(child.name.endswith(".metadata.json") for child in store.list(f"{path}/metadata")):
        return f"; it is an Iceberg table: catalog.import_iceberg('db.t', {path!r}) imports it"
    above = path
    for _ in range(_ABOVE):
        above = above.rpartition("/")[0]
        if above and any(child.name.startswith(SCHEMA_PREFIX) for child in store.list(schema_directory(above))):
            return f"; it is in the directory of a table: open {above}"
    if any(name.endswith((".parquet", ".orc", ".avro")) for name in names):
        return f"; it has data files: catalog.import_files('db.t', {path!r}) makes a table of them"
    parent, _, name = path.rpartition("/")
    beside = [each for each in _folders(store, parent) if each != name] if parent else []
    near = difflib.get_close_matches(name, beside, n=1)
    return f"; did you mean {parent}/{near[0]}?" if near else ""


def _folders(store: _Looks, path: str) -> list[str]:
    return [child.name for child in store.list(path) if child.is_directory]


def _tables(paths: list[str]) -> str:
    more = f" and {len(paths) - _SHOWN:,} more" if len(paths) > _SHOWN else ""
    return f": open one of its tables, {', '.join(paths[:_SHOWN])}{more}" if paths else " without tables"
