"""Manifests, manifest lists and index manifests in ORC, for tables whose option `manifest.format` is `orc`.

The layers above only know their records in Avro. An ORC file is converted to an Avro file with the same records when it
is read, and from an Avro file when it is written; readers detect the format from the contents, so both may occur in one
history.

Source: Java `ManifestFile`, `ManifestList`, `IndexManifestFile` under `OrcFileFormat`, releases 0.9 to 2.0.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.avro.data_files import DataFileEncoder, DataFileReader, plain_schema
from paimon_py.codec.damaged_names import check_names
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.formats.base import WriteSettings, decoding
from paimon_py.formats.orc.footer import STRUCT, OrcType, read_tail
from paimon_py.formats.orc.format import OrcFormat
from paimon_py.spec.types import BYTES, STRING, ArrayType, Atomic, DataType, Field, Root, RowType

_ORC, _PARQUET = b"ORC", b"PAR1"
_BATCH_ROWS = 4096
_LEVEL = 1
_EPOCH = datetime.fromtimestamp(0, timezone.utc).replace(tzinfo=None)
_MILLISECOND = timedelta(milliseconds=1)
_BYTE_NUMBERS = ("_KIND", "_FILE_SOURCE")
"""Fields that Java stores in one byte, for which Avro has no type."""

_ATOMIC = {"int": Atomic(Root.INT), "long": Atomic(Root.BIGINT), "string": STRING, "bytes": BYTES}


def as_avro(data: bytes, path: str, schema: bytes) -> bytes:
    """A file below `manifest/` in Avro: the file itself, or the converted records of an ORC file.

    Args:
        schema: the schema that Java 2.x writes in Avro.
        Raises:
            CorruptionError: not a complete ORC file with such records.
            UnsupportedError: Parquet, or unknown fields.
    """
    if data.startswith(_PARQUET):
        raise UnsupportedError(
            f"{path} is a Parquet file; manifests can be read in Avro and ORC",
            feature="manifest.format=parquet", path=path,
        )  # fmt: skip
    if not data.startswith(_ORC):
        return data
    records = _read(data, path, _fields(schema))
    try:
        return DataFileEncoder(msgspec.json.decode(schema), "zstandard", _LEVEL).encode(records)
    except (ValueError, TypeError, OverflowError) as error:
        raise CorruptionError(f"{path} lacks a required field of its records: {error}", path=path) from error


def as_orc(data: bytes, schema: bytes, compression: str) -> bytes:
    """The ORC file with the records of an Avro file.

    Args:
        compression: as in the option `manifest.compression`.
    Raises:
        OptionError, UnsupportedError: ORC has no such codec, or pyarrow does not write it.
    """
    fields = _fields(schema)
    reader = DataFileReader(io.BytesIO(data), "manifest", len(data))
    sink = io.BytesIO()
    writer = OrcFormat().create(sink, fields, WriteSettings(compression=compression))
    for records in reader.records(plain_schema(msgspec.json.decode(schema)), _BATCH_ROWS):
        writer.write(pa.RecordBatch.from_pylist(records, schema=to_arrow_schema(fields)))
    writer.close()
    return sink.getvalue()


def _read(data: bytes, path: str, known: Sequence[Field]) -> list[dict[str, Any]]:
    """The records of an ORC file, with the fields that it has."""
    source = io.BytesIO(data)
    with decoding(path):
        types = read_tail(source).types
        if not types or types[0].kind != STRUCT:
            raise CorruptionError(f"{path} contains no records", path=path)
        fields = _present(known, types, types[0], path)
    file = OrcFormat().open(source, path, fields, len(data))
    batches = file.positioned_batches([field.name for field in fields], batch_rows=_BATCH_ROWS)
    return [_plain(record) for _, batch in batches for record in batch.to_pylist()]


def _present(known: Sequence[Field], types: Sequence[OrcType], node: OrcType, path: str) -> list[Field]:
    """The known fields that a file has: earlier releases lack some. Unknown fields are ignored, as in Java.

    Raises: CorruptionError for a known name with a flipped bit.
    """
    check_names(node.names, [field.name for field in known], path)
    places = dict(zip(node.names, node.children, strict=True))
    return [
        msgspec.structs.replace(field, type=_present_type(field.type, types, types[places[field.name]], path))
        for field in known
        if field.name in places
    ]


def _present_type(kind: DataType, types: Sequence[OrcType], node: OrcType, path: str) -> DataType:
    if isinstance(kind, RowType) and node.kind == STRUCT:
        return msgspec.structs.replace(kind, fields=tuple(_present(kind.fields, types, node, path)))
    if isinstance(kind, ArrayType) and node.children:
        return msgspec.structs.replace(kind, element=_present_type(kind.element, types, types[node.children[0]], path))
    return kind


def _plain(value: Any) -> Any:
    """A record in the form that the Avro encoder needs: times are milliseconds."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return (value - _EPOCH) // _MILLISECOND if isinstance(value, datetime) else value


@lru_cache(maxsize=3)
def _fields(schema: bytes) -> tuple[Field, ...]:
    """The columns of an Avro schema of Java, all nullable as in ORC."""
    return _columns(msgspec.json.decode(schema)["fields"])


def _columns(fields: Sequence[dict[str, Any]]) -> tuple[Field, ...]:
    return tuple(
        Field(number, field["name"], Atomic(Root.TINYINT) if field["name"] in _BYTE_NUMBERS else _type(field["type"]))
        for number, field in enumerate(fields)
    )


def _type(kind: Any) -> DataType:
    if isinstance(kind, list):
        return _type(next(part for part in kind if part != "null"))
    if isinstance(kind, str):
        return _ATOMIC[kind]
    if kind["type"] == "record":
        return RowType(_columns(kind["fields"]))
    if kind["type"] == "array":
        return ArrayType(_type(kind["items"]))
    return Atomic(Root.TIMESTAMP, precision=3)
