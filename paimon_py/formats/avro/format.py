"""Avro data files.

Rows without nested columns are encoded and decoded column by column. Others become Python objects on their way through
fastavro, which is slow.

Source: format.md §8.5; Java `AvroFileFormat`, `AvroBulkFormat`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_field, to_arrow_type
from paimon_py.codec.avro.columns import decode_window, flat_layout, flat_plan
from paimon_py.codec.avro.data_files import DataFileEncoder, DataFileReader, branch, plain_schema
from paimon_py.codec.avro.rows import encode
from paimon_py.codec.row_size import row_bytes
from paimon_py.errors import OptionError, SchemaError
from paimon_py.expr.predicate import Predicate
from paimon_py.formats import decimal_bytes
from paimon_py.formats.avro.schema import read_type, record_schema, stamp_unit, written_type
from paimon_py.formats.base import (
    ColumnBounds,
    Encoder,
    FileWriter,
    OpenFile,
    ReadSettings,
    WriteSettings,
    decoding,
    empty_rows,
    next_or_none,
    row_batches,
)
from paimon_py.formats.bounds import running_bounds
from paimon_py.formats.parts import Parts
from paimon_py.formats.reshape import TIMESTAMPS, as_leaf, reshape
from paimon_py.formats.stored import check_absent
from paimon_py.spec.types import Atomic, Field, Root

CHUNK_ROWS = 8192
"""The maximum number of rows held as Python objects at one time."""

ZSTD_LEVEL_MAX = 22
"""The maximum zstandard level; higher levels of other libraries are reduced to it."""

_DEFAULT_READ = ReadSettings()
_CODECS = {
    "null": "null",
    "deflate": "deflate",
    "snappy": "snappy",
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "bzip2": "bzip2",
    "xz": "xz",
}


class AvroFormat:
    """Format `avro`."""

    name = "avro"

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,
        settings: ReadSettings = _DEFAULT_READ,
    ) -> OpenFile:
        return AvroOpenFile(source, path, fields, size_bytes, settings)

    def create(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> FileWriter:
        return self.encoder(fields, settings)(sink)

    def encoder(self, fields: Sequence[Field], settings: WriteSettings) -> Encoder:
        return functools.partial(AvroFileWriter, fields=fields, settings=settings)


class _Column(NamedTuple):
    """A column of the result, and its conversion from the records; `layout` is None if the file lacks the column."""

    field: Field
    target: pa.Field
    layout: pa.DataType | None


class AvroOpenFile:
    """See `OpenFile`. Fields that are not requested are skipped in the bytes; all blocks are read."""

    def __init__(
        self, source: BinaryIO, path: str, fields: Sequence[Field], size_bytes: int, settings: ReadSettings
    ) -> None:
        self._source = source
        self._path = path
        self._size_bytes = size_bytes
        self._settings = settings
        self._fields = {field.name: field for field in fields}

    @property
    def row_count(self) -> int | None:
        return None

    def positioned_batches(
        self,
        columns: Sequence[str],
        *,
        batch_rows: int,
        predicate: Predicate | None = None,  # noqa: ARG002
        rows: BitMap | None = None,  # noqa: ARG002
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        self._source.seek(0)
        reader = DataFileReader(self._source, self._path, self._size_bytes, self._settings.row_count)
        with decoding(self._path):
            nodes = {field["name"]: field["type"] for field in branch(reader.schema)["fields"]}
            plan = [self._column(self._fields[name], nodes) for name in columns]
        position = 0
        stored = [column for column in plan if column.layout is not None]
        for batch in self._read(reader, stored, batch_rows):
            yield position, batch if len(stored) == len(plan) else _complete(batch, plan)
            position += batch.num_rows

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:  # noqa: ARG002
        return Parts()

    def close(self) -> None:
        self._source.close()

    def _column(self, field: Field, nodes: dict[str, Any]) -> _Column:
        target = to_arrow_field(field)
        if field.name not in nodes:
            check_absent(self._path, field, nodes, self._settings)
            return _Column(field, target, layout=None)
        return _Column(field, target, read_type(field.type, nodes[field.name]))

    def _read(self, reader: DataFileReader, plan: Sequence[_Column], batch_rows: int) -> Iterator[pa.RecordBatch]:
        names = {column.field.name for column in plan}
        schema = pa.schema([column.target for column in plan])
        if not names:
            for count in reader.counts():
                yield from row_batches(empty_rows(count), batch_rows)
            return
        with decoding(self._path):
            root = branch(plain_schema(reader.schema))
            wanted = {**root, "fields": [field for field in root["fields"] if field["name"] in names]}
            flat = flat_plan(reader.shape, {column.field.name: column.layout for column in plan})
        windows = reader.windows()
        while (window := next_or_none(windows, self._path)) is not None:
            with decoding(self._path):
                arrays = None if flat is None else decode_window(window, flat)
            if arrays is not None:
                with decoding(self._path):
                    shown = [_to_target(arrays[column.field.name], column) for column in plan]
                    batch = pa.RecordBatch.from_arrays(shown, schema=schema)
                yield from row_batches(batch, batch_rows)
                continue
            records = reader.records(wanted, min(batch_rows, CHUNK_ROWS), window)
            while (chunk := next_or_none(records, self._path)) is not None:
                with decoding(self._path):
                    shown = [_array(chunk, column) for column in plan]
                yield pa.RecordBatch.from_arrays(shown, schema=schema)


class AvroFileWriter:
    """See `FileWriter`."""

    def __init__(self, sink: BinaryIO, fields: Sequence[Field], settings: WriteSettings) -> None:
        self._sink = sink
        self._fields = tuple(fields)
        self._layouts = [written_type(field.type) for field in fields]
        level = min(settings.zstd_level, ZSTD_LEVEL_MAX)
        self._encoder = DataFileEncoder(record_schema(fields), _codec(settings), level)
        self._flat = flat_layout(self._encoder.shape, self._layouts)
        self._bounds = [running_bounds(field, settings.without_stats) for field in fields]
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._rows = self._position = 0

    @property
    def row_count(self) -> int:
        return self._rows

    @property
    def bytes_written(self) -> int:
        return self._position + self._pending_bytes

    def write(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            piece = batch.slice(start, CHUNK_ROWS)
            self._pending.append(self._physical(piece))
            self._pending_rows += piece.num_rows
            self._pending_bytes += row_bytes(piece)
            if self._pending_rows >= CHUNK_ROWS:
                self._flush()
        self._rows += batch.num_rows

    def close(self) -> list[ColumnBounds]:
        self._flush()
        return [tracker.result() for tracker in self._bounds]

    def abort(self) -> None:
        self._pending = []

    def _physical(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for field, layout, tracker in zip(self._fields, self._layouts, self._bounds, strict=True):
            array = batch.column(field.name)
            if not field.type.nullable and array.null_count:
                raise SchemaError(f"column {field.name} is NOT NULL but holds null", fields=(field.name,))
            tracker.add(array)
            arrays.append(reshape(array, field.type, layout, _written_leaf))
        return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in self._fields])

    def _flush(self) -> None:
        if not self._pending and self._position:
            return
        try:
            data = self._encode(self._pending)
        except (ValueError, TypeError, OverflowError) as error:
            raise SchemaError(f"rows cannot be written as Avro: {error}") from error
        self._sink.write(data)
        self._position += len(data)
        self._pending = []
        self._pending_rows = self._pending_bytes = 0

    def _encode(self, batches: Sequence[pa.RecordBatch]) -> bytes:
        """The bytes of rows: encoded column by column, or record by record if there are nested columns."""
        if self._flat is None or not batches:
            return self._encoder.encode([record for batch in batches for record in batch.to_pylist()])
        (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
        rows, ends = encode(batch.columns, self._flat)
        return self._encoder.encode_rows(rows.tobytes(), ends.tolist())


def _codec(settings: WriteSettings) -> str:
    """The codec's name in the file; `avro.codec` takes precedence over `file.compression`."""
    option = "avro.codec" if "avro.codec" in settings.options else "file.compression"
    name = settings.options.get("avro.codec", settings.compression)
    found = _CODECS.get(name.strip().lower())
    if found is None:
        raise OptionError(f"{name!r} is not a codec of Avro; allowed: {', '.join(_CODECS)}", option=option, value=name)
    return found


def _complete(batch: pa.RecordBatch, plan: Sequence[_Column]) -> pa.RecordBatch:
    """The rows of a batch, completed with the columns missing in the file, which are NULL."""
    arrays = [
        pa.nulls(batch.num_rows, column.target.type) if column.layout is None else batch.column(column.field.name)
        for column in plan
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([column.target for column in plan]))


def _array(chunk: Sequence[dict[str, Any]], column: _Column) -> pa.Array:
    name = column.field.name
    return _to_target(pa.array([record[name] for record in chunk], column.layout), column)


def _to_target(array: pa.Array, column: _Column) -> pa.Array:
    return reshape(array, column.field.type, column.target.type, _read_leaf)


def _read_leaf(array: pa.Array, kind: Atomic, target: pa.DataType) -> pa.Array:
    return decimal_bytes.from_bytes(array, target) if kind.root is Root.DECIMAL else as_leaf(array, target)


def _written_leaf(array: pa.Array, kind: Atomic, target: pa.DataType) -> pa.Array:
    """Values in the form that fastavro takes; times become integers."""
    if kind.root is Root.DECIMAL:
        return decimal_bytes.to_bytes(as_leaf(array, to_arrow_type(kind)))
    if kind.root in TIMESTAMPS:
        return as_leaf(array, pa.timestamp(stamp_unit(kind), array.type.tz)).view(target)
    if kind.root in (Root.DATE, Root.TIME):
        return array.view(target)
    return as_leaf(array, target)
