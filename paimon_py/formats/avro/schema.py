"""Avro schemas of data files, and the Arrow layouts of the values that fastavro reads and writes.

Source: format.md §8.5; Java `AvroSchemaConverter`, `FieldReaderFactory`, `FieldWriterFactory`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.avro.data_files import branch
from paimon_py.errors import UnsupportedError
from paimon_py.formats.reshape import COUNT, lacks, map_parts
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, MapType, MultisetType, Root, RowType, VectorType

ROOT_NAME = "org.apache.paimon.avro.generated.record"

_PLAIN = {
    Root.BOOLEAN: "boolean",
    Root.TINYINT: "int",
    Root.SMALLINT: "int",
    Root.INT: "int",
    Root.BIGINT: "long",
    Root.FLOAT: "float",
    Root.DOUBLE: "double",
    Root.CHAR: "string",
    Root.VARCHAR: "string",
    Root.BINARY: "bytes",
    Root.VARBINARY: "bytes",
    Root.BLOB: "bytes",
}
_STRINGS = frozenset({Root.CHAR, Root.VARCHAR})
_STAMP_NAMES = {Root.TIMESTAMP: "timestamp", Root.TIMESTAMP_LTZ: "local-timestamp"}
_STAMP_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def record_schema(fields: Sequence[Field]) -> dict[str, Any]:
    """The Avro schema that Java writes for rows of `fields`.

    Raises:
        UnsupportedError: a type or a name that Avro files cannot represent.
    """
    return _record(fields, ROOT_NAME)


def written_type(kind: DataType) -> pa.DataType:
    """The Arrow layout whose Python values fastavro takes: integers for times, bytes for decimals, pairs for maps."""
    if isinstance(kind, Atomic):
        if kind.root is Root.DECIMAL:
            return pa.binary()
        if kind.root in _STAMP_NAMES:
            return pa.int64()
        return pa.int32() if kind.root in (Root.DATE, Root.TIME) else to_arrow_type(kind)
    if isinstance(kind, (ArrayType, VectorType)):
        return pa.list_(written_type(kind.element))
    if isinstance(kind, RowType):
        return pa.struct([(field.name, written_type(field.type)) for field in kind.fields])
    if isinstance(kind, (MapType, MultisetType)):
        key, value = map_parts(kind)
        return pa.list_(pa.struct([("key", written_type(key)), ("value", written_type(value))]))
    return to_arrow_type(kind)


def read_type(kind: DataType, schema: Any) -> pa.DataType:
    """The Arrow layout of the values that fastavro returns for a file's node `schema`.

    Raises: ValueError or KeyError if the node does not match the type.
    """
    node = branch(schema)
    if isinstance(kind, Atomic):
        return _read_atomic(kind, node)
    if not isinstance(node, dict):
        raise ValueError(f"{type(kind).__name__} stored as {node!r}")
    if isinstance(kind, (ArrayType, VectorType)):
        return pa.list_(read_type(kind.element, node["items"]))
    if isinstance(kind, RowType):
        nodes = {field["name"]: field["type"] for field in node["fields"]}
        known = [field for field in kind.fields if not lacks(list(nodes), kind, field)]
        return pa.struct([(field.name, read_type(field.type, nodes[field.name])) for field in known])
    if isinstance(kind, (MapType, MultisetType)):
        key, value = map_parts(kind)
        if node["type"] == "map":
            pair = ("string", node["values"])
        else:
            pair = tuple(field["type"] for field in branch(node["items"])["fields"])
        return pa.list_(pa.struct([("key", read_type(key, pair[0])), ("value", read_type(value, pair[1]))]))
    raise ValueError(f"{type(kind).__name__} cannot be read from Avro")


def _read_atomic(kind: Atomic, node: Any) -> pa.DataType:
    if kind.root is Root.DECIMAL:
        return pa.binary()
    if kind.root in _STAMP_NAMES:
        logical = node.get("logicalType", "") if isinstance(node, dict) else ""
        return pa.timestamp(_STAMP_UNITS.get(logical.rpartition("-")[2]) or stamp_unit(kind))
    return to_arrow_type(kind)


def stamp_unit(kind: Atomic) -> str:
    """The unit of a timestamp in Avro files."""
    return "ms" if (kind.precision or 0) <= 3 else "us"


def _record(fields: Sequence[Field], name: str) -> dict[str, Any]:
    for field in fields:
        if not _NAME.fullmatch(field.name):
            raise UnsupportedError(
                f"Avro cannot name a column {field.name!r}", feature="Avro names beyond [A-Za-z0-9_]"
            )
    return {"type": "record", **_split_name(name), "fields": [_field(field.name, field.type, name) for field in fields]}


def _split_name(name: str) -> dict[str, str]:
    space, _, simple = name.rpartition(".")
    return {"name": simple, "namespace": space}


def _field(name: str, kind: DataType, record: str) -> dict[str, Any]:
    field: dict[str, Any] = {"name": name, "type": _node(kind, f"{record}_{name}")}
    if kind.nullable:
        field["default"] = None
    return field


def _node(kind: DataType, name: str) -> Any:
    node = _value(kind, name)
    return ["null", node] if kind.nullable else node


def _value(kind: DataType, name: str) -> Any:
    if isinstance(kind, Atomic):
        return atomic_schema(kind)
    if isinstance(kind, RowType):
        return _record(kind.fields, name)
    if isinstance(kind, (ArrayType, VectorType)):
        return {"type": "array", "items": _node(kind.element, name)}
    key, value = map_parts(kind)
    if value is COUNT:
        value = Atomic(Root.INT)
    if isinstance(key, Atomic) and key.root in _STRINGS:
        return {"type": "map", "values": _node(value, name)}
    if isinstance(kind, MultisetType):
        raise UnsupportedError(
            "Java cannot read a MULTISET of other than strings from Avro", feature="MULTISET in Avro"
        )
    pair = [{"name": "key", "type": _node(key, f"{name}_key")}, _field("value", value, name)]
    return {"type": "array", "items": {"type": "record", **_split_name(name), "fields": pair}, "logicalType": "map"}


def atomic_schema(kind: Atomic) -> Any:
    """The Avro schema of a non-nested, NOT NULL value.

    Raises: UnsupportedError for a type that Avro files cannot represent.
    """
    plain = _PLAIN.get(kind.root)
    if plain is not None:
        return plain
    if kind.root is Root.DECIMAL:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if kind.root is Root.DATE:
        return {"type": "int", "logicalType": "date"}
    precision = kind.precision or 0
    if kind.root is Root.TIME:
        if precision > 3:
            raise UnsupportedError(f"Avro files cannot hold TIME({precision})", feature="TIME(4–9) in Avro")
        return {"type": "int", "logicalType": "time-millis"}
    if kind.root in _STAMP_NAMES:
        if precision > 6:
            text = f"{kind.root.value}({precision})"
            raise UnsupportedError(f"Avro files cannot hold {text}", feature="TIMESTAMP(7–9) in Avro")
        unit = "millis" if precision <= 3 else "micros"
        return {"type": "long", "logicalType": f"{_STAMP_NAMES[kind.root]}-{unit}"}
    raise UnsupportedError(f"Avro files cannot hold {kind.root.value}", feature=f"{kind.root.value} in Avro")
