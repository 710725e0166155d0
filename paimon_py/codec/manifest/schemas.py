"""The Avro schemas of manifest, manifest list and index manifest, exactly as Java 2.x writes them.

Source: format.md §5, §10.1; Java `ManifestEntry`, `DataFileMeta`, `ManifestFileMeta`, `IndexManifestEntry`.
"""

from __future__ import annotations

from typing import Any

import msgspec

VERSION = 2
"""`_VERSION` of manifest entries and of manifest list records."""

INDEX_VERSION = 1
"""`_VERSION` of index manifest records."""

_NAMESPACE = "org.apache.paimon.avro.generated"
_NULL_COUNTS = {"type": "array", "items": ["null", "long"]}
_TEXTS = {"type": "array", "items": "string"}


def _field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _nullable(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _text(fields: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"type": "record", "name": "record", "namespace": _NAMESPACE, "fields": fields})


def _stats(name: str) -> dict[str, Any]:
    return _record(
        name, [_field("_MIN_VALUES", "bytes"), _field("_MAX_VALUES", "bytes"), _nullable("_NULL_COUNTS", _NULL_COUNTS)]
    )


_FILE = [
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _field("_MIN_KEY", "bytes"),
    _field("_MAX_KEY", "bytes"),
    _field("_KEY_STATS", _stats("record__FILE__KEY_STATS")),
    _field("_VALUE_STATS", _stats("record__FILE__VALUE_STATS")),
    _field("_MIN_SEQUENCE_NUMBER", "long"),
    _field("_MAX_SEQUENCE_NUMBER", "long"),
    _field("_SCHEMA_ID", "long"),
    _field("_LEVEL", "int"),
    _field("_EXTRA_FILES", _TEXTS),
    _nullable("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
    _nullable("_DELETE_ROW_COUNT", "long"),
    _nullable("_EMBEDDED_FILE_INDEX", "bytes"),
    _nullable("_FILE_SOURCE", "int"),
    _nullable("_VALUE_STATS_COLS", _TEXTS),
    _nullable("_EXTERNAL_PATH", "string"),
    _nullable("_FIRST_ROW_ID", "long"),
    _nullable("_WRITE_COLS", _TEXTS),
]

MANIFEST = _text(
    [
        _field("_VERSION", "int"),
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_TOTAL_BUCKETS", "int"),
        _field("_FILE", _record("record__FILE", _FILE)),
    ]
)

MANIFEST_LIST = _text(
    [
        _field("_VERSION", "int"),
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_NUM_ADDED_FILES", "long"),
        _field("_NUM_DELETED_FILES", "long"),
        _field("_PARTITION_STATS", _stats("record__PARTITION_STATS")),
        _field("_SCHEMA_ID", "long"),
        _nullable("_MIN_BUCKET", "int"),
        _nullable("_MAX_BUCKET", "int"),
        _nullable("_MIN_LEVEL", "int"),
        _nullable("_MAX_LEVEL", "int"),
        _nullable("_MIN_ROW_ID", "long"),
        _nullable("_MAX_ROW_ID", "long"),
    ]
)

_RANGE = _record(
    "record__DELETIONS_VECTORS_RANGES",
    [_field("f0", "string"), _field("f1", "int"), _field("f2", "int"), _nullable("_CARDINALITY", "long")],
)
_GLOBAL_INDEX = _record(
    "record__GLOBAL_INDEX",
    [
        _field("_ROW_RANGE_START", "long"),
        _field("_ROW_RANGE_END", "long"),
        _field("_INDEX_FIELD_ID", "int"),
        _nullable("_EXTRA_FIELD_IDS", {"type": "array", "items": "int"}),
        _nullable("_INDEX_META", "bytes"),
        _nullable("_SOURCE_META", "bytes"),
    ],
)

INDEX_MANIFEST = _text(
    [
        _field("_VERSION", "int"),
        _field("_KIND", "int"),
        _field("_PARTITION", "bytes"),
        _field("_BUCKET", "int"),
        _field("_INDEX_TYPE", "string"),
        _field("_FILE_NAME", "string"),
        _field("_FILE_SIZE", "long"),
        _field("_ROW_COUNT", "long"),
        _nullable("_DELETIONS_VECTORS_RANGES", {"type": "array", "items": ["null", _RANGE]}),
        _nullable("_EXTERNAL_PATH", "string"),
        _nullable("_GLOBAL_INDEX", _GLOBAL_INDEX),
    ]
)
