"""A snapshot of an Iceberg table, through the package `pyiceberg`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from paimon_py.errors import UnsupportedError
from paimon_py.imports.foreign import ForeignFile, ForeignTable, foreign_failure
from paimon_py.imports.source_files import Partition, url_of

_KEYS = ("string", "int", "long", "boolean", "date")
_EPOCH = datetime.date(1970, 1, 1)


def open_iceberg(source: object, snapshot_id: int | None, properties: Mapping[str, str]) -> ForeignTable:
    """A snapshot of a table: a `pyiceberg.table.Table`, or the path or URL of a metadata file.

    Raises:
        UnsupportedError: the package is not installed, or the snapshot has deletes that it cannot read.
        UsageError: the table cannot be read.
    """
    try:
        from pyiceberg.table import StaticTable, Table
    except ImportError as error:
        message = "import_iceberg needs pyiceberg: pip install 'paimon-py[iceberg]'"
        raise UnsupportedError(message, feature="Iceberg") from error
    try:
        table: Any = source
        if not isinstance(source, Table):
            table = StaticTable.from_metadata(str(source), dict(properties))
        return _foreign_table(table, snapshot_id)
    except (ValueError, OSError, LookupError, NotImplementedError) as error:
        if "equality delete" in str(error).lower():
            message = f"the snapshot has equality deletes, which pyiceberg does not read: {error}"
            raise UnsupportedError(message, feature="equality deletes") from error
        raise foreign_failure("the Iceberg", error) from error


def _foreign_table(table: Any, snapshot_id: int | None) -> ForeignTable:
    scan = table.scan(snapshot_id=snapshot_id)
    schema, spec = scan.projection(), table.spec()
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.transforms import IdentityTransform

    is_plain = bool(spec.fields) and all(isinstance(field.transform, IdentityTransform) for field in spec.fields)
    keys = tuple(schema.find_field(field.source_id).name for field in spec.fields) if is_plain else ()
    tasks = list(scan.plan_files())
    given = _given_columns(table, schema, keys)
    kinds = [schema.find_field(key).field_type for key in keys]
    files = tuple(_file(task, keys, kinds, spec.spec_id, given[task.file.spec_id]) for task in tasks)
    is_whole = all(not task.delete_files for task in tasks)
    named = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    return ForeignTable(
        format="Iceberg", url=_plain(table.location()).rstrip("/"),
        version=f"{table.metadata.table_uuid} {'empty' if named is None else named.snapshot_id}",
        columns=_without_ids(schema_to_pyarrow(schema)), ids={field.name: field.field_id for field in schema.fields},
        partition_keys=keys, files=files, rows=lambda: scan.to_arrow_batch_reader(),
        row_count=sum(task.file.record_count for task in tasks) if is_whole else None,
    )  # fmt: skip


def _given_columns(table: Any, schema: Any, keys: tuple[str, ...]) -> dict[int, tuple[str, ...]]:
    """The columns, beside the keys, whose values files of each partition spec may lack: its own keys and defaults."""
    from pyiceberg.transforms import IdentityTransform

    defaults = [field.name for field in schema.fields if field.initial_default is not None]
    found = {}
    for number, spec in table.specs().items():
        own = [
            schema.find_column_name(field.source_id) for field in spec.fields
            if isinstance(field.transform, IdentityTransform)
        ]  # fmt: skip
        found[number] = tuple(name for name in (*own, *defaults) if name is not None and name not in keys)
    return found


def _file(
    task: Any, keys: tuple[str, ...], kinds: list[Any], spec_id: int, given: tuple[str, ...]
) -> ForeignFile:
    values = [task.file.partition[at] for at in range(len(keys))] if task.file.spec_id == spec_id else []
    reason = None
    if task.delete_files:
        reason = "files have deleted rows"
    elif keys and task.file.spec_id != spec_id:
        reason = "files are partitioned in several ways"
    elif not all(str(kind) in _KEYS for kind in kinds):
        reason = f"partition keys are {', '.join(map(str, kinds))}; references know {', '.join(_KEYS)}"
    texts = (_text(value, kind) for value, kind in zip(values, kinds, strict=False))
    partition: Partition = tuple(zip(keys, texts, strict=False))
    return ForeignFile(
        url=_plain(task.file.file_path), size_bytes=task.file.file_size_in_bytes, partition=partition,
        given=given, only_copied=reason,
    )  # fmt: skip


def _plain(url: str) -> str:
    """A URL in the form used in our metadata; Iceberg takes `%` as a percent sign, too."""
    return url_of(url.removeprefix("file:").removeprefix("//") if url.startswith("file:/") else url)


def _text(value: object, kind: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and str(kind) == "date":
        return (_EPOCH + datetime.timedelta(days=value)).isoformat()
    return str(value)


def _without_ids(schema: pa.Schema) -> pa.Schema:
    """The schema without the metadata that Arrow writes into Parquet files."""
    return pa.schema([pa.field(field.name, field.type, field.nullable) for field in schema])
