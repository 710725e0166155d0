"""Metadata tables of all tables of a warehouse: those of the database `sys`.

Source: Java `AllTablesTable`, `AllPartitionsTable`, `AllTableOptionsTable`, `CatalogOptionsTable`,
`CatalogUtils.createGlobalSystemTable`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import msgspec
import pyarrow as pa

from paimon_py.codec.manifest.columns import ABSENT
from paimon_py.errors import NotFoundError, UnsupportedError, UsageError
from paimon_py.logs import warn
from paimon_py.metadata.partition_files import counted_files
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.moments import millis_of
from paimon_py.spec.redact import shown_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.system.metadata_table import MetadataTable
from paimon_py.system.metadata_table_def import Columns, MetadataTableDef, RowRequest, chunks, exactly, fields_of
from paimon_py.system.texts import partition_names

if TYPE_CHECKING:
    from paimon_py.expr.sql_intervals import Now

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the wall clock of the writer of the file


class Warehouse(Protocol):
    """The catalog operations that these tables use."""

    @property
    def warehouse(self) -> str:
        """Directory or URL."""

    @property
    def clock(self) -> Now:
        """The current time."""

    def options(self) -> Mapping[str, str]:
        """The options of the catalog."""

    def databases(self) -> list[str]:
        """The names of all databases."""

    def tables(self, database: str) -> list[str]:
        """The names of all tables of a database."""

    def root(self, database: str, table: str) -> TableRoot:
        """The metadata of a table."""


class WarehouseSource(msgspec.Struct, frozen=True):
    """All tables of a warehouse."""

    of: Warehouse

    @property
    def path(self) -> str:
        """Directory or URL of the warehouse."""
        return self.of.warehouse

    @property
    def clock(self) -> Now:
        """The clock of the catalog."""
        return self.of.clock

    def find(self) -> Snapshot | None:
        """None: every table has its own snapshot."""
        return None

    def at(self, _snapshot: Snapshot | None) -> Warehouse:
        """The warehouse."""
        return self.of


class _Found(msgspec.Struct, frozen=True):
    database: str
    table: str
    root: TableRoot
    schema: TableSchema


_TABLES: Columns[_Found] = {
    "database_name STRING": lambda one: one.database,
    "table_name STRING": lambda one: one.table,
    "table_type STRING": lambda one: one.schema.options.get("type", "table"),
    "partitioned BOOLEAN": lambda one: bool(one.schema.partition_keys),
    "primary_key BOOLEAN": lambda one: bool(one.schema.primary_keys),
    "owner STRING": lambda one: one.schema.options.get("owner"),
    "created_at BIGINT": lambda one: _number(one.schema.options.get("createdAt")),
    "created_by STRING": lambda one: one.schema.options.get("createdBy"),
    "updated_at BIGINT": lambda one: _number(one.schema.options.get("updatedAt")),
    "updated_by STRING": lambda one: one.schema.options.get("updatedBy"),
    "record_count BIGINT": lambda _one: None,
    "file_size_in_bytes BIGINT": lambda _one: None,
    "file_count BIGINT": lambda _one: None,
    "last_file_creation_time BIGINT": lambda _one: None,
}
"""Row counts and sizes are known only to catalogs with versions of tables, such as REST; others return NULL."""

_TABLE_OPTIONS: Columns[tuple[_Found, str, str]] = {
    "database_name STRING": lambda one: one[0].database,
    "table_name STRING": lambda one: one[0].table,
    "key STRING": lambda one: one[1],
    "value STRING": lambda one: one[2],
}
_PARTITIONS: Columns[tuple[_Found, pa.Table]] = {
    "database_name STRING": lambda one: [one[0].database] * one[1].num_rows,
    "table_name STRING": lambda one: [one[0].table] * one[1].num_rows,
    "partition_name STRING": lambda one: partition_names(_partition(one[1]), one[0].schema, directory=True),
    "record_count BIGINT": lambda one: one[1]["record_count"],
    "file_size_in_bytes BIGINT": lambda one: one[1]["file_size_in_bytes"],
    "file_count BIGINT": lambda one: one[1]["file_count"],
    "last_file_creation_time BIGINT": lambda one: _epoch(one[1]["creation_time_millis"]),
    "done BOOLEAN": lambda one: [False] * one[1].num_rows,
}
_OPTIONS: Columns[tuple[str, str]] = {
    "key STRING NOT NULL": lambda one: one[0],
    "value STRING NOT NULL": lambda one: one[1],
}


def _tables(request: RowRequest, warehouse: Warehouse) -> Iterator[pa.RecordBatch]:
    """One row for each table. Cost: a list and a get for each that may match"""
    for part in chunks(_names(request, warehouse)):
        yield request.rows(list(_open(warehouse, part)), _TABLES)


def _table_options(request: RowRequest, warehouse: Warehouse) -> Iterator[pa.RecordBatch]:
    """One row for each option of each table, and for its path."""
    for part in chunks(_names(request, warehouse)):
        found = [
            (one, key, value)
            for one in _open(warehouse, part)
            for key, value in {**one.schema.options, "path": one.root.path}.items()
        ]
        yield request.rows(found, _TABLE_OPTIONS)


def _partitions(request: RowRequest, warehouse: Warehouse) -> Iterator[pa.RecordBatch]:
    """One row for each partition of each table that has partitions. Cost: the manifests of tables that may match"""
    for part in chunks(_names(request, warehouse)):
        for one in _open(warehouse, part):
            snapshot = one.root.snapshots.latest() if one.schema.partition_keys else None
            if snapshot is not None:
                try:
                    found = counted_files(one.root, snapshot, None, by=("partition",), waiting=False)
                except UnsupportedError as error:
                    _skip_unreadable(one.database, one.table, error)
                    continue
                yield request.batch(found.num_rows, (one, found), _PARTITIONS)


def _catalog_options(request: RowRequest, warehouse: Warehouse) -> Iterator[pa.RecordBatch]:
    """The options of the catalog; `***` for values that may be secrets."""
    options = {**shown_options(warehouse.options()), "warehouse": warehouse.warehouse}
    yield request.rows(list(options.items()), _OPTIONS)


def _names(request: RowRequest, warehouse: Warehouse) -> list[tuple[str, str]]:
    """Databases and tables that may match."""
    found = []
    for database in request.matching("database_name", warehouse.databases()):
        try:
            tables = warehouse.tables(database)
        except NotFoundError:  # dropped meanwhile
            continue
        known = {"database_name": exactly(pa.array([database] * len(tables), pa.string()))}
        known["table_name"] = exactly(pa.array(tables, pa.string()))
        wanted = request.may_match(len(tables), known).tolist()
        found += [(database, table) for table, keep in zip(tables, wanted, strict=True) if keep]
    return found


def _open(warehouse: Warehouse, names: Sequence[tuple[str, str]]) -> Iterator[_Found]:
    for database, table in names:
        root = warehouse.root(database, table)
        try:
            yield _Found(database, table, root, root.schemas.latest())
        except NotFoundError:  # dropped meanwhile
            continue
        except UnsupportedError as error:
            _skip_unreadable(database, table, error)


def _skip_unreadable(database: str, table: str, error: UnsupportedError) -> None:
    """Warn that a table of a later release is skipped."""
    warn(f"{database}.{table} is omitted: {error}")


def _partition(found: pa.Table) -> pa.Array:
    return found["partition"].combine_chunks()


def _epoch(wall: pa.ChunkedArray) -> list[int | None]:
    """Times of a wall clock of this machine's zone as epoch milliseconds."""
    moments = [None if millis == ABSENT else _EPOCH + timedelta(milliseconds=millis) for millis in wall.to_pylist()]
    return [None if moment is None else millis_of("last_file_creation_time", moment) for moment in moments]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


_KEYS = ("database_name", "table_name")
WAREHOUSE_TABLES = {
    made.name: made
    for made in (
        MetadataTableDef(name="tables", fields=fields_of(_TABLES), keys=_KEYS, make=_tables),
        MetadataTableDef(
            name="partitions", fields=fields_of(_PARTITIONS), keys=(*_KEYS, "partition_name"), make=_partitions
        ),
        MetadataTableDef(
            name="all_table_options", fields=fields_of(_TABLE_OPTIONS), keys=("table_name",), make=_table_options
        ),
        MetadataTableDef(name="catalog_options", fields=fields_of(_OPTIONS), keys=("key",), make=_catalog_options),
    )
}


def warehouse_table(warehouse: Warehouse, name: str) -> MetadataTable:
    """A table of the database `sys`.

    Raises: UsageError if there is none with this name.
    """
    made = WAREHOUSE_TABLES.get(name.lower())
    if made is None:
        known = ", ".join(f"sys.{each}" for each in WAREHOUSE_TABLES)
        raise UsageError(f"table sys.{name} does not exist; the tables of sys are {known}")
    return MetadataTable(made, WarehouseSource(warehouse), "sys.")
