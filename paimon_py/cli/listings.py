"""Commands that list tables, snapshots, partitions and columns, and that describe a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone

import click
import pyarrow as pa

from paimon_py import Catalog, Table
from paimon_py.cli.output import show_record, show_rows, show_table, takes_format
from paimon_py.cli.values import AnyTable, takes_place, takes_readable, takes_table
from paimon_py.files.physical import tracks_rows
from paimon_py.spec.redact import shown_options
from paimon_py.spec.type_text import sql_type

_SNAPSHOTS = [
    "snapshot_id", "commit_time", "commit_kind", "operation", "commit_user", "schema_id", "total_record_count",
    "delta_record_count", "watermark",
]  # fmt: skip
_FILES = ["partition", "bucket", "level", "file_path", "file_format", "record_count", "file_size_in_bytes"]
_TRACKED = ("first_row_id", "write_cols")
_COLUMNS = pa.schema([
    ("id", pa.int64()), ("name", pa.string()), ("type", pa.string()), ("key", pa.string()), ("default", pa.string()),
    ("comment", pa.string()),
])  # fmt: skip


@click.command("ls")
@click.argument("warehouse")
@click.argument("database", required=False)
@takes_format
@takes_place
def list_tables(warehouse: str, database: str | None, options: Mapping[str, str], form: str) -> None:
    """List the tables of a warehouse, or of one of its databases."""
    catalog = Catalog.open(warehouse, options, create=False)
    databases = catalog.databases() if database is None else [database]
    found = [(name, table) for name in databases for table in catalog.tables(name)]
    names = pa.table({"database": [name for name, _ in found], "table": [table for _, table in found]})
    show_table(names.cast(pa.schema([("database", pa.string()), ("table", pa.string())])), form)


@click.command()
@takes_table
@takes_format
def show(table: Table, form: str) -> None:
    """Describe a table: location, keys, options, and size."""
    schema, latest, parts = table.schema, table.snapshot(), table.partitions()
    record = {
        "name": table.name,
        "location": table.location,
        "comment": table.comment,
        "primary_key": list(schema.primary_keys),
        "partition_by": list(schema.partition_keys),
        "schema_id": schema.id,
        "snapshot_id": latest and latest.id,
        "commit_time": latest and latest.time,
        "partitions": len(parts),
        "files": sum(part.file_count for part in parts),
        "file_size_in_bytes": sum(part.file_size_in_bytes for part in parts),
        "rows_in_files": sum(part.record_count for part in parts),
        "options": shown_options(schema.options),
    }
    show_record(record, form)


@click.command("schema")
@takes_readable
@takes_format
def show_schema(table: AnyTable, form: str) -> None:
    """List the columns of a table: ids, types, keys."""
    schema = table.schema
    rows = [
        {
            "id": field.id, "name": field.name, "type": sql_type(field.type), "default": field.default,
            "comment": field.description,
            "key": _key(field.name in schema.primary_keys, field.name in schema.partition_keys),
        }
        for field in schema.fields
    ]  # fmt: skip
    show_table(pa.Table.from_pylist(rows, _COLUMNS), form)


def _key(primary: bool, partition: bool) -> str | None:
    return ", ".join(name for name, is_one in (("primary", primary), ("partition", partition)) if is_one) or None


@click.command()
@takes_table
@takes_format
def snapshots(table: Table, form: str) -> None:
    """List the snapshots, oldest first; times are UTC."""
    found = table.system("snapshots").scan(columns=_SNAPSHOTS).to_arrow()
    millis = {snapshot.id: snapshot.time_millis for snapshot in table.snapshots()}
    times = [millis.get(number) for number in found["snapshot_id"].to_pylist()]
    at = found.schema.get_field_index("commit_time")  # which is the clock of this machine, without a zone
    show_table(found.set_column(at, "commit_time", pa.array(times, pa.timestamp("ms", "UTC"))), form)


@click.command()
@takes_table
@takes_format
def files(table: Table, form: str) -> None:
    """List the data files of the latest snapshot; with row ids and columns if the table tracks rows."""
    scan = table.system("files").scan(columns=[*_FILES, *(_TRACKED if tracks_rows(table.schema) else ())])
    show_rows(scan.schema, scan.to_reader(), form)


@click.command()
@takes_table
@takes_format
def partitions(table: Table, form: str) -> None:
    """List the partitions that have files, with their sizes; times are UTC."""
    found = table.partitions()
    times = (part.last_file_creation_time for part in found)  # by the clock of this machine, without a zone
    columns = {
        "partition": [", ".join(f"{key}={value}" for key, value in part.partition.items()) for part in found],
        "record_count": [part.record_count for part in found],
        "file_size_in_bytes": [part.file_size_in_bytes for part in found],
        "file_count": [part.file_count for part in found],
        "last_file_creation_time": [None if time is None else time.astimezone(timezone.utc) for time in times],
    }
    kinds = (pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.timestamp("ms", "UTC"))
    arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), kinds, strict=True)]
    show_table(pa.table(arrays, names=list(columns)), form)
