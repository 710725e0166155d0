"""The Arrow schema that makes pyarrow write Java's Parquet layout, and the names of its leaf columns.

Source: format.md §8.3; Java `ParquetSchemaConverter`, `SpecialFields`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.variant.form import ARROW, METADATA, VALUE
from paimon_py.formats.field_ids import identified_schema
from paimon_py.formats.parquet.int96 import INT96_STORAGE
from paimon_py.formats.reshape import TIMESTAMPS, map_parts
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, DataType, Field, Root, RowType, VectorType

FIELD_ID = b"PARQUET:field_id"
_PART = Atomic(Root.VARBINARY, nullable=False, length=MAX_LENGTH)
_FLOATS = frozenset({Root.FLOAT, Root.DOUBLE})


class LeafColumn(NamedTuple):
    """A leaf column: its path in the file, its type, and whether it is a top-level column of the table."""

    path: tuple[str, ...]
    type: Atomic
    flat: bool

    @property
    def dotted_path(self) -> str:
        """The path in the form of pyarrow's settings."""
        return ".".join(self.path)


def physical_schema(fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of a file with the columns `fields`, with field ids on every node.

    Raises:
        UnsupportedError: a type that cannot be written.
    """
    return _with_ids(tuple(fields))


def leaf_columns(fields: Sequence[Field]) -> list[LeafColumn]:
    """The leaf columns of a file written by pyarrow, in file order."""
    return [leaf for field in fields for leaf in _leaves_of(field)]


@functools.lru_cache(maxsize=64)
def _with_ids(fields: tuple[Field, ...]) -> pa.Schema:
    """The schema of a writer's files; cached, since a writer may create thousands."""
    return identified_schema(fields, FIELD_ID, _layout)


@functools.lru_cache(maxsize=1024)
def _leaves_of(field: Field) -> tuple[LeafColumn, ...]:
    return tuple(_leaves((field.name,), field.type))


def is_int96(kind: Atomic) -> bool:
    """Whether Parquet files store the type as INT96: timestamps with more than six digits."""
    return kind.root in TIMESTAMPS and (kind.precision or 0) > 6


def has_footer_bounds(kind: Atomic) -> bool:
    """Whether the footer may contain minimum and maximum.

    Not for floating point: pyarrow omits NaN from the bounds, and Java then skips row groups that contain NaN. Not for
    INT96, whose bytes have no order.
    """
    return kind.root not in _FLOATS and not is_int96(kind)


def is_variant_type(kind: DataType) -> bool:
    """Whether the type is VARIANT, which is stored as a group of two columns."""
    return isinstance(kind, Atomic) and kind.root is Root.VARIANT


def _layout(kind: Atomic) -> pa.DataType:
    if is_variant_type(kind):
        return pa.struct([field.with_metadata({FIELD_ID: b"%d" % at}) for at, field in enumerate(ARROW)])
    return INT96_STORAGE if is_int96(kind) else to_arrow_type(kind)


def _leaves(path: tuple[str, ...], kind: DataType) -> list[LeafColumn]:
    if is_variant_type(kind):
        return [LeafColumn((*path, part), _PART, flat=False) for part in (VALUE, METADATA)]
    if isinstance(kind, Atomic):
        return [LeafColumn(path, kind, flat=len(path) == 1)]
    if isinstance(kind, RowType):
        return [leaf for field in kind.fields for leaf in _leaves((*path, field.name), field.type)]
    if isinstance(kind, (ArrayType, VectorType)):
        return _leaves((*path, "list", "element"), kind.element)
    key, value = map_parts(kind)
    return [*_leaves((*path, "key_value", "key"), key), *_leaves((*path, "key_value", "value"), value)]
