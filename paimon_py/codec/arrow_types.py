"""Paimon types and Arrow types.

Source: format.md §3.1; the table in the public documentation ("Types"). Java `ArrowUtils` differs in names only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from paimon_py.codec.variant.form import ARROW, FIELD_METADATA, is_variant
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.spec.type_text import TOO_DEEP, UNASSIGNED, require_shallow, sql_type, with_nullability
from paimon_py.spec.types import (
    BYTES,
    STRING,
    ArrayType,
    Atomic,
    DataType,
    Field,
    MapType,
    MultisetType,
    Root,
    RowType,
    VectorType,
)
from paimon_py.spec.vectors import is_element

_TO_ARROW = {
    Root.BOOLEAN: pa.bool_(),
    Root.TINYINT: pa.int8(),
    Root.SMALLINT: pa.int16(),
    Root.INT: pa.int32(),
    Root.BIGINT: pa.int64(),
    Root.FLOAT: pa.float32(),
    Root.DOUBLE: pa.float64(),
    Root.CHAR: pa.string(),
    Root.VARCHAR: pa.string(),
    Root.BINARY: pa.binary(),
    Root.VARBINARY: pa.binary(),
    Root.DATE: pa.date32(),
    Root.TIME: pa.time32("ms"),
    Root.VARIANT: ARROW,
    Root.BLOB: pa.large_binary(),
}
_FROM_ARROW = {
    pa.bool_(): Atomic(Root.BOOLEAN),
    pa.int8(): Atomic(Root.TINYINT),
    pa.int16(): Atomic(Root.SMALLINT),
    pa.int32(): Atomic(Root.INT),
    pa.int64(): Atomic(Root.BIGINT),
    pa.float32(): Atomic(Root.FLOAT),
    pa.float64(): Atomic(Root.DOUBLE),
    pa.date32(): Atomic(Root.DATE),
    pa.time32("s"): Atomic(Root.TIME, precision=0),
    pa.time32("ms"): Atomic(Root.TIME, precision=3),
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BYTES,
    pa.large_binary(): BYTES,
    pa.binary_view(): BYTES,
}
_UNITS = ("s", "ms", "ms", "ms", "us", "us", "us", "ns", "ns", "ns")
_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_INSTEAD = {
    pa.uint8(): "int16",
    pa.uint16(): "int32",
    pa.uint32(): "int64",
    pa.uint64(): "decimal128(20, 0)",
    pa.float16(): "float32",
    pa.date64(): "date32",
    pa.time64("us"): "time32('ms')",
    pa.time64("ns"): "time32('ms')",
    pa.null(): "the type that the column is meant to have",
}
_VARIANT = Atomic(Root.VARIANT)
_COMMENT_KEYS = (b"comment", b"description")


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type that can hold every value of a Paimon type.

    Raises:
        UnsupportedError: GEOMETRY, GEOGRAPHY.
    """
    if isinstance(data_type, Atomic):
        return _atomic(data_type)
    if isinstance(data_type, ArrayType):
        return pa.list_(_child("element", data_type.element))
    if isinstance(data_type, RowType):
        return pa.struct([to_arrow_field(field) for field in data_type.fields])
    if isinstance(data_type, MapType):
        return pa.map_(to_arrow_type(data_type.key), _child("value", data_type.value))
    if isinstance(data_type, MultisetType):
        return pa.map_(to_arrow_type(data_type.element), pa.int32())
    return pa.list_(_child("element", with_nullability(data_type.element, False)), data_type.length)


@functools.lru_cache(maxsize=4096)
def to_arrow_field(field: Field) -> pa.Field:
    """A column as an Arrow field; NOT NULL becomes `nullable=False`. Results are cached."""
    return _child(field.name, field.type)


def to_arrow_schema(fields: Iterable[Field]) -> pa.Schema:
    """Columns as an Arrow schema, in order; the only metadata is the extension name of VARIANT columns."""
    return pa.schema([to_arrow_field(field) for field in fields])


def from_arrow_type(arrow_type: pa.DataType) -> DataType:
    """The nullable Paimon type for an Arrow type; struct fields have no ids yet.

    Raises:
        SchemaError: Paimon has no such type (the message names the Arrow type to use instead), or the type is nested
            too deeply.
    """
    try:
        return require_shallow(_from(arrow_type))
    except RecursionError as error:
        raise SchemaError(TOO_DEEP) from error


def _from(arrow_type: pa.DataType) -> DataType:
    known = _FROM_ARROW.get(arrow_type)
    if known is not None:
        return known
    if pa.types.is_timestamp(arrow_type):
        root = Root.TIMESTAMP if arrow_type.tz is None else Root.TIMESTAMP_LTZ
        return Atomic(root, precision=_PRECISIONS[arrow_type.unit])
    if pa.types.is_decimal(arrow_type) and 0 <= arrow_type.scale <= arrow_type.precision <= 38:
        return Atomic(Root.DECIMAL, precision=arrow_type.precision, scale=arrow_type.scale)
    if pa.types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width > 0:
        return Atomic(Root.BINARY, length=arrow_type.byte_width)
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return _from(arrow_type.value_type)
    if pa.types.is_fixed_size_list(arrow_type) and not arrow_type.value_field.nullable and arrow_type.list_size > 0:
        element = _from(arrow_type.value_type)
        if is_element(element):
            return VectorType(element, arrow_type.list_size)
    if _is_list(arrow_type):
        return ArrayType(_inner(arrow_type.value_field))
    if pa.types.is_map(arrow_type):
        key = with_nullability(_from(arrow_type.key_type), False)
        return MapType(key, _inner(arrow_type.item_field))
    if pa.types.is_struct(arrow_type):
        fields = (arrow_type.field(index) for index in range(arrow_type.num_fields))
        return RowType(tuple(Field(UNASSIGNED, f.name, _inner(f), comment_of(f)) for f in fields))
    if is_of_storage(arrow_type):
        return _from(arrow_type.storage_type)
    instead = _INSTEAD.get(arrow_type)
    fix = f"use {instead}" if instead else "cast the column to a type that Paimon has, or leave it out"
    raise SchemaError(f"Paimon has no type for Arrow's {arrow_type}; {fix}")


def is_of_storage(kind: pa.DataType) -> bool:
    """Whether a type is an extension whose values are those of its storage: not so periods of pandas, whose numbers
    say nothing without their frequency."""
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name != "pandas.period"


def from_arrow_schema(schema: pa.Schema) -> list[tuple[str, DataType, str | None]]:
    """Name, type and comment of every column; a comment is the field metadata `comment` or `description`.

    Raises:
        SchemaError: names every column whose type Paimon lacks.
    """
    columns: list[tuple[str, DataType, str | None]] = []
    wrong: dict[str, str] = {}
    for field in schema:
        try:
            type_ = _VARIANT if is_variant(field) else from_arrow_type(field.type)
            type_ = with_nullability(type_, bool(field.nullable))
            columns.append((field.name, type_, comment_of(field)))
        except SchemaError as error:
            wrong[field.name] = f"column {field.name!r}: {error}"
    if wrong:
        raise SchemaError("; ".join(wrong.values()), fields=tuple(wrong))
    return columns


def comment_of(field: pa.Field) -> str | None:
    """The comment in an Arrow field's metadata."""
    metadata: dict[bytes, bytes] = field.metadata or {}
    for key in _COMMENT_KEYS:
        if key in metadata:
            return metadata[key].decode("utf-8", "replace")
    return None


def _atomic(data_type: Atomic) -> pa.DataType:
    arrow_type = _TO_ARROW.get(data_type.root)
    if arrow_type is not None:
        return arrow_type
    if data_type.root is Root.DECIMAL:
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        assert data_type.precision is not None
        return pa.timestamp(_UNITS[data_type.precision], "UTC" if data_type.root is Root.TIMESTAMP_LTZ else None)
    raise UnsupportedError(
        f"type {sql_type(data_type)} has no Arrow type in paimon_py yet", feature=f"{data_type.root.value} type"
    )


def _child(name: str, data_type: DataType) -> pa.Field:
    is_variant_type = isinstance(data_type, Atomic) and data_type.root is Root.VARIANT
    metadata = FIELD_METADATA if is_variant_type else None
    return pa.field(name, to_arrow_type(data_type), nullable=data_type.nullable, metadata=metadata)


def _inner(field: pa.Field) -> DataType:
    return with_nullability(_VARIANT if is_variant(field) else _from(field.type), bool(field.nullable))


def _is_list(arrow_type: Any) -> bool:
    return any(
        is_kind(arrow_type)
        for is_kind in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_fixed_size_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )
