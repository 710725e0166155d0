"""The Avro schemas of Iceberg manifests and manifest lists.

Source: docs/format.md §25.2; Java `IcebergManifestEntry`, `IcebergDataFileMeta`, `IcebergManifestFileMeta`; Apache
Iceberg table specification, "Manifests".
"""

from __future__ import annotations

import functools
import re
from typing import Any

import msgspec

from paimon_py.formats.avro.schema import atomic_schema
from paimon_py.iceberg.fields import FIRST_PARTITION_ID
from paimon_py.spec.types import Atomic, Field

LINEAGE_VERSION = 3
"""The first format version with row ids."""

_LETTER = re.compile(r"[A-Za-z_]")
_LETTER_OR_DIGIT = re.compile(r"[A-Za-z0-9_]")


def avro_name(name: str) -> str:
    """The name of a column in an Avro schema; readers find it by its id."""
    first = name[:1] if _LETTER.fullmatch(name[:1]) else ("_" + name[:1] if name[:1].isdigit() else _escape(name[:1]))
    return first + "".join(char if _LETTER_OR_DIGIT.fullmatch(char) else _escape(char) for char in name[1:])


@functools.lru_cache(maxsize=64)
def manifest_schema(partition: tuple[Field, ...], version: int) -> bytes:
    """The schema of a manifest of a table with these partition keys."""
    keys = [_partition_field(field, place) for place, field in enumerate(partition)]
    file = [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", _record("r102", keys), 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _optional("null_value_counts", _map("k121_v122", 121, 122, "long"), 110),
        _optional("lower_bounds", _map("k126_v127", 126, 127, "bytes"), 125),
        _optional("upper_bounds", _map("k129_v130", 129, 130, "bytes"), 128),
        _optional("referenced_data_file", "string", 143),
        _optional("content_offset", "long", 144),
        _optional("content_size_in_bytes", "long", 145),
    ]
    if version >= LINEAGE_VERSION:
        file.append(_optional("first_row_id", "long", 142))
    entry = [
        _field("status", "int", 0),
        _optional("snapshot_id", "long", 1),
        _optional("sequence_number", "long", 3),
        _optional("file_sequence_number", "long", 4),
        _field("data_file", _record("r2", file), 2),
    ]
    return msgspec.json.encode(_record("manifest_entry", entry))


@functools.lru_cache(maxsize=8)
def list_schema(version: int, legacy: bool) -> bytes:
    """The schema of a manifest list; `legacy`: with the names of Iceberg 1.4."""
    data = "data_" if legacy else ""
    bounds = [
        _field("contains_null", "boolean", 509),
        _optional("contains_nan", "boolean", 518),
        _optional("lower_bound", "bytes", 510),
        _optional("upper_bound", "bytes", 511),
    ]
    fields = [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _optional("added_snapshot_id", "long", 503),
        _field(f"added_{data}files_count", "int", 504),
        _field(f"existing_{data}files_count", "int", 505),
        _field(f"deleted_{data}files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
        _optional("partitions", {"type": "array", "items": _record("r508", bounds), "element-id": 508}, 507),
    ]
    if version >= LINEAGE_VERSION:
        fields.append(_optional("first_row_id", "long", 520))
    return msgspec.json.encode(_record("manifest_file", fields))


def _escape(char: str) -> str:
    return f"_x{ord(char):X}" if char else ""


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _field(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": kind, "field-id": number}


def _optional(name: str, kind: Any, number: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _map(name: str, key: int, value: int, kind: str) -> dict[str, Any]:
    pair = [_field("key", "int", key), _field("value", kind, value)]
    return {"type": "array", "items": _record(name, pair), "logicalType": "map"}


def _partition_field(field: Field, place: int) -> dict[str, Any]:
    assert isinstance(field.type, Atomic)
    kind = atomic_schema(field.type)
    made = _optional if field.type.nullable else _field
    return made(avro_name(field.name), kind, FIRST_PARTITION_ID + place)
