"""The table that a write names, made if there is none: with the columns of the data, and the options as its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import types as st

from paimon_py import Catalog, Schema
from paimon_py.catalog.catalog import check_new, first_schema
from paimon_py.env import env_of
from paimon_py.errors import AlreadyExistsError, TableNotFoundError
from paimon_py.metadata.root import TableRoot
from paimon_py.spark.source.opening import write_to
from paimon_py.spark.source.options import SourceOptions, place_of
from paimon_py.spec.layout import branch_directory, snapshot_directory
from paimon_py.spec.new_schema import TableSpec
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.spec.spark_types import columns_of_spark
from paimon_py.storage.refreshing_store import open_renewed

if TYPE_CHECKING:
    from paimon_py import Table


def written_to(asked: SourceOptions, given: st.StructType) -> Table:
    """The table to write to, made if there is none.

    Raises: as `write_to`, and as `Catalog.create_table`.
    """
    try:
        return write_to(asked)
    except TableNotFoundError:
        _create(asked, given)
    return write_to(asked)


def _create(asked: SourceOptions, given: st.StructType) -> None:
    kinds = st.StructType([field for field in given if field.name.lower() != ROW_KIND_COLUMN])
    columns = Schema(columns_of_spark(kinds.jsonValue()))
    warehouse, name = place_of(asked)
    if warehouse is None:
        _create_at(name, columns, asked.table, asked.store)
        return
    catalog = Catalog.open(warehouse or None, {**asked.store, **asked.catalog}, create=False)
    catalog.create_table(name, columns, options=asked.table, exist_ok=True)


def _create_at(path: str, columns: Schema, options: Mapping[str, str], store: Mapping[str, str]) -> None:
    """Make a table in a directory, without a catalog; of several creators one succeeds, and the others find its table.

    Raises: AlreadyExistsError if what is left of another table is there; as `first_schema`.
    """
    used = env_of(None)
    opened, location = open_renewed(path, store, used)
    root = TableRoot(opened, location, used, store)
    schema = first_schema(columns, TableSpec(options=options), used.clock.millis())
    if any(opened.list(directory) for directory in (snapshot_directory(location), branch_directory(location))):
        raise AlreadyExistsError(f"{location} holds the remains of another table: delete them, or name another place")
    check_new(schema, root)
    root.schemas.add(schema)
