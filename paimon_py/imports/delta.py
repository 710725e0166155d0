"""A version of a Delta table, through the package `deltalake`."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.imports.foreign import ForeignFile, ForeignTable, foreign_failure
from paimon_py.imports.source_files import url_of


def open_delta(source: object, version: int | None, storage_options: Mapping[str, str]) -> ForeignTable:
    """A version of a table: a `deltalake.DeltaTable`, or its path or URL.

    Raises:
        UnsupportedError: the package is not installed.
        UsageError: the table cannot be read.
    """
    try:
        import deltalake
    except ImportError as error:
        message = "import_delta needs deltalake: pip install 'paimon-py[delta]'"
        raise UnsupportedError(message, feature="Delta") from error
    try:
        table: Any = source
        if not isinstance(source, deltalake.DeltaTable):
            table = deltalake.DeltaTable(str(source), version=version, storage_options=dict(storage_options) or None)
        elif version is not None:
            raise UsageError("version= is for a path: a DeltaTable already has a version")
        return _foreign_table(table)
    except (deltalake.exceptions.DeltaError, OSError) as error:
        raise foreign_failure("the Delta", error) from error


def _foreign_table(table: Any) -> ForeignTable:
    keys = tuple(table.metadata().partition_columns)
    columns = pa.schema(table.schema().to_arrow())
    dead = {_plain(str(row["filepath"])) for row in pa.table(table.deletion_vectors()).to_pylist()}
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    url = _plain(table.table_uri).rstrip("/")
    actions = pa.table(table.get_add_actions())
    files = tuple(
        ForeignFile(
            url=path, size_bytes=row["size_bytes"],
            partition=tuple((key, _text((row.get("partition") or {}).get(key))) for key in keys),
            only_copied="files have deletion vectors" if path in dead else None,
        )
        for row in actions.to_pylist()
        for path in [_absolute(url, row["path"])]
    )  # fmt: skip
    counts = None if dead else [row["num_records"] for row in actions.to_pylist()]
    return ForeignTable(
        format="Delta", url=url, version=str(table.version()), columns=columns, partition_keys=keys, files=files,
        rows=lambda: _rows(table, keys),
        row_count=None if counts is None or None in counts else sum(counts),
        only_copied=f"its columns are mapped by {mapping}" if mapping != "none" else None,
    )  # fmt: skip


def _rows(table: Any, keys: tuple[str, ...]) -> pa.RecordBatchReader:
    """All rows; an empty string as a partition key is NULL, by the protocol of Delta."""
    rows = pa.RecordBatchReader.from_stream(table.scan())
    types = pa.types
    places = [
        place for place, field in enumerate(rows.schema)
        if field.name in keys and (types.is_string_view(field.type) or types.is_string(field.type))
    ]  # fmt: skip
    schema = rows.schema
    for place in places:
        schema = schema.set(place, pa.field(schema.field(place).name, pa.string()))

    def whole() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            columns = batch.columns
            for place in places:
                texts = columns[place].cast(pa.string())
                columns[place] = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, whole()) if places else rows


def _absolute(url: str, path: str) -> str:
    return _plain(path) if "://" in path else f"{url}/{unquote(path)}"


def _plain(url: str) -> str:
    """A URL in the form used in our metadata."""
    return url_of(unquote(url[len("file://") :])) if url.startswith("file://") else url


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    return str(value)
