"""Paimon's data types as values, parsed from and printed to the strings of a schema file.

Source: format.md §3.1; Java `DataTypeJsonParser`, `DataTypes`.
"""

from __future__ import annotations

import enum
from typing import Union

import msgspec

MAX_LENGTH = 2_147_483_647


class Root(str, enum.Enum):
    """The kinds of atomic types, spelled as in a schema file."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP WITH LOCAL TIME ZONE"
    VARIANT = "VARIANT"
    BLOB = "BLOB"
    GEOMETRY = "GEOMETRY"
    GEOGRAPHY = "GEOGRAPHY"


class Atomic(msgspec.Struct, frozen=True, tag="atomic"):
    """A type without nested types.

    `length` belongs to CHAR, VARCHAR, BINARY, VARBINARY (STRING is VARCHAR and BYTES is VARBINARY of MAX_LENGTH);
    `precision` to DECIMAL, TIME and the timestamps; `scale` to DECIMAL; `parameters` (reference system, edge
    algorithm) to GEOMETRY and GEOGRAPHY.
    """

    root: Root
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    parameters: tuple[str, ...] = ()


STRING = Atomic(Root.VARCHAR, length=MAX_LENGTH)
BYTES = Atomic(Root.VARBINARY, length=MAX_LENGTH)


class ArrayType(msgspec.Struct, frozen=True, tag="array"):
    """ARRAY of one element type."""

    element: DataType
    nullable: bool = True


class MultisetType(msgspec.Struct, frozen=True, tag="multiset"):
    """MULTISET: elements with their counts."""

    element: DataType
    nullable: bool = True


class MapType(msgspec.Struct, frozen=True, tag="map"):
    """MAP from key to value."""

    key: DataType
    value: DataType
    nullable: bool = True


class RowType(msgspec.Struct, frozen=True, tag="row"):
    """ROW of named fields."""

    fields: tuple[Field, ...]
    nullable: bool = True


class VectorType(msgspec.Struct, frozen=True, tag="vector"):
    """VECTOR of a fixed number of non-NULL elements."""

    element: DataType
    length: int
    nullable: bool = True


DataType = Union[Atomic, ArrayType, MultisetType, MapType, RowType, VectorType]


class Field(msgspec.Struct, frozen=True):
    """A column or a field of a ROW.

    `id` is unique within the table forever; names may change. `default` is the string `defaultValue`.
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default: str | None = None


class VariantPart(Field, frozen=True):
    """The part of a VARIANT at a path, as a field: `path` such as `$.user.id`, the type to cast to, and whether values
    that cannot be cast become NULL.
    """

    path: str = "$"
    or_null: bool = False


class VariantParts(RowType, frozen=True, tag="variant_parts"):
    """Parts of a VARIANT column, in place of the column: `fields` are `VariantPart`s. Not a type of schemas."""
