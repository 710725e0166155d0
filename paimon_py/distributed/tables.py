"""Tables for an engine's connector: created at a path, and with options for one read or write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import pyarrow as pa

from paimon_py.catalog.catalog import as_schema, check_new, first_schema
from paimon_py.env import env_of
from paimon_py.errors import AlreadyExistsError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import branch_directory, snapshot_directory
from paimon_py.spec.new_schema import Schema, TableSpec
from paimon_py.spec.option_changes import check_dynamic
from paimon_py.storage.refreshing_store import open_refreshing
from paimon_py.table.table import Table


def create_table_at(
    path: str, columns: Schema | pa.Schema | Iterable[object], options: Mapping[str, str], store: Mapping[str, str]
) -> None:
    """Create a table in a directory, without a catalog; of several creators one succeeds, the others find its table.

    Args:
        columns: as in `Catalog.create_table`.
        options: options of the table, including its keys.
        store: options of the store.

    Raises: AlreadyExistsError if the directory contains remains of another table; as `Catalog.create_table`.
    """
    used = env_of(None)
    opened, location = open_refreshing(path, store, used)
    root = TableRoot(opened, location, used, store)
    schema = first_schema(as_schema(columns), TableSpec(options=options), used.clock.millis())
    if any(opened.list(directory) for directory in (snapshot_directory(location), branch_directory(location))):
        raise AlreadyExistsError(f"{location} contains remains of another table: delete them, or give another path")
    check_new(schema, root)
    root.schemas.add(schema)


def with_options(table: Table, options: Mapping[str, str]) -> Table:
    """The table with other options, which are not stored.

    Raises: OptionError for an option that cannot change once there are data.
    """
    for name, text in options.items():
        check_dynamic(table.schema, name, text)
    schema = msgspec.structs.replace(table.schema, options={**table.schema.options, **options})
    return Table(table._root, schema, table.name)
