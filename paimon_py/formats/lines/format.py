"""Data files whose rows are lines: JSON objects, or the texts of one column. Read only.

Source: format.md §28.5; Java `JsonFileFormat`, `TextFileFormat`, release 2.0.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_field
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.errors import CorruptionError, OptionError, SchemaError, UnsupportedError
from paimon_py.expr.predicate import Predicate
from paimon_py.formats.base import (
    CastArray,
    OpenFile,
    ReadOnlyFormat,
    ReadSettings,
    decoding,
    empty_rows,
    row_batches,
)
from paimon_py.formats.from_python import array_of
from paimon_py.formats.parts import Parts
from paimon_py.formats.stored import check_absent
from paimon_py.spec.cast_rules import is_text
from paimon_py.spec.types import STRING, ArrayType, Atomic, DataType, Field, MapType, Root, RowType, VectorType

_PIECE_BYTES = 1 << 20
_CHUNK_ROWS = 8192
_CODECS = {"gz": 31, "deflate": 15}
"""Windows of zlib by the last extension of a file."""

_DEFAULTS = ReadSettings()
_PLAIN = ("json", "text")


class LinesFormat(ReadOnlyFormat):
    """Formats `json` and `text`."""

    def __init__(self, name: str) -> None:
        """`name`: json or text."""
        self.name = name

    def open(
        self,
        source: BinaryIO,
        path: str,
        fields: Sequence[Field],
        size_bytes: int,  # noqa: ARG002
        settings: ReadSettings = _DEFAULTS,
    ) -> OpenFile:
        return LinesFile(self.name, source, path, fields, settings)


class LinesFile:
    """See `OpenFile`. No line is left out; some thousand are in memory at a time."""

    def __init__(
        self, name: str, source: BinaryIO, path: str, fields: Sequence[Field], settings: ReadSettings
    ) -> None:
        """Raises: UnsupportedError for compressions, and texts of several columns; OptionError for no delimiter."""
        self._name = name
        self._source = source
        self._path = path
        self._fields = {field.name: field for field in fields}
        self._settings = settings
        word = path.rpartition(".")[2]
        if word not in (*_PLAIN, *_CODECS):
            raise UnsupportedError(
                f"{path}: lines compressed as {word} cannot be read; set 'file.compression' = 'none' or 'gzip'",
                feature=f"file.compression of {name} files as {word}", path=path,
            )
        self._window = _CODECS.get(word)
        if name == "text" and [is_text(field.type) for field in settings.stored] != [True]:
            message = f"{path}: a file of the format text contains one column of strings"
            raise UnsupportedError(message, feature="file.format=text of other columns", path=path)
        if not settings.line_delimiter:
            option = f"{name}.line-delimiter"
            raise OptionError(f"option {option!r} is empty: nothing ends a line", option=option, value="")
        self._delimiter = settings.line_delimiter.encode()

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
        stored = [field.name for field in self._settings.stored]
        fields = [self._fields[name] for name in columns]
        for field in fields:
            if field.name not in stored:
                check_absent(self._path, field, stored, self._settings)
        schema = pa.schema([to_arrow_field(field) for field in fields])
        position = 0
        for lines in self._chunks(min(batch_rows, _CHUNK_ROWS)):
            with decoding(self._path):
                whole = self._batch(lines, fields, schema) if columns else empty_rows(len(lines))
            for piece in row_batches(whole, batch_rows):
                yield position, piece
                position += piece.num_rows

    def parts(self, predicate: Predicate | None = None, rows: BitMap | None = None) -> Parts:  # noqa: ARG002
        return Parts()

    def close(self) -> None:
        self._source.close()

    def _batch(self, lines: list[bytes], fields: Sequence[Field], schema: pa.Schema) -> pa.RecordBatch:
        if self._name == "text":
            texts = pa.array([line.decode("utf-8") for line in lines], pa.string())
            return pa.RecordBatch.from_arrays([texts.cast(field.type) for field in schema], schema=schema)
        assert self._settings.cast is not None
        leaf = partial(_leaf, cast=self._settings.cast)
        rows = [json.loads(line, parse_int=str, parse_float=str, parse_constant=str) for line in lines]
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a line is not a JSON object")
        arrays = [
            array_of([_plain(row.get(field.name), field.type) for row in rows], field.type, target.type, leaf)
            for field, target in zip(fields, schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _chunks(self, count: int) -> Iterator[list[bytes]]:
        """The lines of the file, some at a time."""
        self._source.seek(0)
        rest, lines = b"", list[bytes]()
        for piece in self._pieces():
            *whole, rest = (rest + piece).split(self._delimiter)
            lines += whole
            while len(lines) >= count:
                yield lines[:count]
                lines = lines[count:]
        if rest:
            lines.append(rest)
        if lines:
            yield lines

    def _pieces(self) -> Iterator[bytes]:
        """The bytes of the lines. Raises: CorruptionError where they cannot be unpacked."""
        unpack = None if self._window is None else zlib.decompressobj(self._window)
        while (unpack is None or not unpack.eof) and (piece := self._source.read(_PIECE_BYTES)):
            if unpack is None:
                yield piece
                continue
            try:
                while piece and not unpack.eof:
                    yield unpack.decompress(piece, _PIECE_BYTES)
                    piece = unpack.unconsumed_tail
            except zlib.error as error:
                raise CorruptionError(f"{self._path} cannot be unpacked: {error}", path=self._path) from error
        if unpack is not None:
            yield unpack.flush()
            if not unpack.eof or unpack.unused_data or self._source.read(1):
                raise CorruptionError(f"{self._path} does not end where its compressed data end", path=self._path)


def _plain(value: Any, kind: DataType) -> Any:
    """A value of JSON in the form of `array_of`. Raises: ValueError for a value of another sort."""
    if value is None:
        return None
    if isinstance(kind, Atomic):
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str):
            raise ValueError(f"{kind.root.value} stored as a JSON {type(value).__name__}")
        return value
    if isinstance(kind, (ArrayType, VectorType)) and isinstance(value, list):
        return [_plain(item, kind.element) for item in value]
    if isinstance(kind, RowType) and isinstance(value, dict):
        return [_plain(value.get(field.name), field.type) for field in kind.fields]
    if isinstance(kind, MapType) and isinstance(value, dict):
        return [(key, _plain(item, kind.value)) for key, item in value.items()]
    raise ValueError(f"a nested value stored as a JSON {type(value).__name__}")


def _leaf(values: Sequence[Any], kind: Atomic, target: pa.DataType, cast: CastArray) -> pa.Array:
    """The values that strings stand for. Raises: ValueError for a string that stands for none."""
    if kind.root in (Root.BINARY, Root.VARBINARY):
        return pa.array([None if text is None else base64.b64decode(text, validate=True) for text in values], target)
    texts = pa.array(values, pa.string())
    if kind.root in (Root.CHAR, Root.VARCHAR):
        return texts.cast(target)
    try:
        if kind.root is not Root.TIMESTAMP_LTZ:
            return cast(texts, STRING, kind)
        plain = cast(texts, STRING, Atomic(Root.TIMESTAMP, precision=kind.precision))
    except SchemaError as error:
        raise ValueError(str(error)) from error
    # the text is the instant in UTC
    valid = np.asarray(plain.is_valid(), np.bool_)
    return from_numpy(numpy_values(plain.fill_null(0).cast(pa.int64())), target, None if valid.all() else valid)
