"""The columns of a table in Iceberg's form: types, ids, partition spec.

Source: docs/format.md §25.4; Java `IcebergDataField`, `IcebergSchema`; Apache Iceberg table specification, "Schemas".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paimon_py.errors import UnsupportedError
from paimon_py.formats.reshape import map_parts
from paimon_py.spec.schema import SYSTEM_FIELD_ID_START, TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, MapType, MultisetType, Root, RowType

FIRST_PARTITION_ID = 1000
_BASE = 536_870_911
_STEP = 1024
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
    Root.BINARY: "binary",
    Root.VARBINARY: "binary",
    Root.DATE: "date",
    Root.TIME: "time",
}
_STAMPS = {Root.TIMESTAMP: "timestamp", Root.TIMESTAMP_LTZ: "timestamptz"}


def schema_value(schema: TableSchema) -> dict[str, Any]:
    """A version of the schema as a JSON value.

    Raises: UnsupportedError for a type that Iceberg does not have.
    """
    return {"type": "struct", "schema-id": schema.id, "fields": _fields(schema.fields)}


def partition_fields(schema: TableSchema) -> list[dict[str, Any]]:
    """The fields of the partition spec: every partition key with the identity transform."""
    return [
        {"name": field.name, "transform": "identity", "source-id": field.id, "field-id": FIRST_PARTITION_ID + place}
        for place, field in enumerate(schema.partition_fields)
    ]


def last_column_id(schemas: Sequence[TableSchema]) -> int:
    """The highest id of any column, element, key or value in any schema, and in files of primary-key tables."""
    found = [number for schema in schemas for field in schema.fields for number in _ids(field)]
    keyed = [schema for schema in schemas if schema.primary_keys]
    keys = [SYSTEM_FIELD_ID_START + field.id for schema in keyed for field in schema.key_fields]
    return max([*found, *keys], default=0)


def _fields(fields: Sequence[Field]) -> list[dict[str, Any]]:
    return [
        {
            "id": field.id, "name": field.name, "required": not field.type.nullable,
            "type": _type(field.type, field.id, 0), **({} if field.description is None else {"doc": field.description}),
        }
        for field in fields
    ]  # fmt: skip


def _type(kind: DataType, owner: int, depth: int) -> Any:
    """`owner`: the id of the enclosing column or row field; `depth`: the number of containers between."""
    if isinstance(kind, Atomic):
        return _atomic(kind)
    if isinstance(kind, RowType):
        return {"type": "struct", "fields": _fields(kind.fields)}
    depth += 1
    offset = _STEP * owner + depth
    if isinstance(kind, ArrayType):
        return {
            "type": "list", "element-id": _BASE + offset, "element-required": not kind.element.nullable,
            "element": _type(kind.element, owner, depth),
        }  # fmt: skip
    if isinstance(kind, (MapType, MultisetType)):
        key, value = map_parts(kind)
        return {
            "type": "map", "key-id": _BASE - offset, "key": _type(key, owner, depth), "value-id": _BASE + offset,
            "value-required": not value.nullable, "value": _type(value, owner, depth),
        }  # fmt: skip
    raise _unknown(kind)


def _atomic(kind: Atomic) -> str:
    plain = _PLAIN.get(kind.root)
    if plain is not None:
        return plain
    if kind.root is Root.DECIMAL:
        return f"decimal({kind.precision}, {kind.scale})"
    if kind.root in _STAMPS:
        return _STAMPS[kind.root] + ("_ns" if (kind.precision or 0) > 6 else "")
    raise _unknown(kind)


def _unknown(kind: DataType) -> UnsupportedError:
    text = sql_type(kind)
    return UnsupportedError(f"Iceberg metadata cannot hold {text} columns", feature=f"{text} in Iceberg metadata")


def _ids(field: Field) -> Iterator[int]:
    yield field.id
    yield from _inner_ids(field.type, field.id, 0)


def _inner_ids(kind: DataType, owner: int, depth: int) -> Iterator[int]:
    if isinstance(kind, RowType):
        for field in kind.fields:
            yield from _ids(field)
    elif isinstance(kind, ArrayType):
        yield _BASE + _STEP * owner + depth + 1
        yield from _inner_ids(kind.element, owner, depth + 1)
    elif isinstance(kind, (MapType, MultisetType)):
        yield _BASE + _STEP * owner + depth + 1
        for part in map_parts(kind):
            yield from _inner_ids(part, owner, depth + 1)
