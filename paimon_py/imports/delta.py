"""A version of a Delta table, through the package `deltalake`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

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
    """All rows, with the values of partition keys as the protocol of Delta defines them."""
    rows = pa.RecordBatchReader.from_stream(table.scan())
    schema, kinds = rows.schema, {}
    for place, field in enumerate(rows.schema):
        kind = _OF_TEXTS.get(field.type)
        if field.name in keys and kind is not None:
            kinds[place] = kind
            schema = schema.set(place, pa.field(field.name, kind))

    def whole() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            columns = [_meant(one, kinds.get(place)) for place, one in enumerate(batch.columns)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, whole()) if kinds else rows


_OF_TEXTS = {
    pa.string(): pa.string(), pa.string_view(): pa.string(), pa.large_string(): pa.string(),
    pa.binary(): pa.binary(), pa.binary_view(): pa.binary(), pa.large_binary(): pa.binary(),
}  # fmt: skip
"""Types of partition keys whose values deltalake returns as they are written, and the types in which they are read."""
_ESCAPED = re.compile(rb"(?:\\u00[0-9A-Fa-f]{2})+")


def _meant(column: pa.Array, kind: pa.DataType | None) -> pa.Array:
    """The values of a partition key: an empty one is NULL, and bytes may be escaped, as `\\u0001`."""
    if kind is None:
        return column
    coded = column.cast(kind).dictionary_encode()
    values = [_bytes(value) if isinstance(value, bytes) else value for value in coded.dictionary.to_pylist()]
    return pa.array([value or None for value in values], kind).take(coded.indices)


def _bytes(value: bytes) -> bytes:
    return bytes.fromhex(value.replace(b"\\u00", b"").decode()) if _ESCAPED.fullmatch(value) else value


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
