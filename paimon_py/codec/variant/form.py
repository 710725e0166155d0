"""The two parts of a variant, as bytes and as Arrow structs, whose field names Parquet's extension type defines."""

from __future__ import annotations

import msgspec
import pyarrow as pa

VALUE, METADATA, TYPED = "value", "metadata", "typed_value"
EXTENSION = "parquet.variant"
FIELD_METADATA = {b"ARROW:extension:name": EXTENSION.encode(), b"ARROW:extension:metadata": b""}
ARROW = pa.struct([pa.field(VALUE, pa.binary(), nullable=False), pa.field(METADATA, pa.binary(), nullable=False)])


class Encoded(msgspec.Struct, frozen=True):
    """A variant: its value, and its key dictionary."""

    value: bytes
    metadata: bytes


def is_pair(kind: pa.DataType) -> bool:
    """Whether a type is a struct of the two parts of a variant, in any order and binary type."""
    return bool(pa.types.is_struct(kind)) and kind.num_fields == 2 and {f.name for f in kind} == {VALUE, METADATA} and (
        all(is_bytes(field.type) for field in kind)
    )  # fmt: skip


def is_variant(field: pa.Field) -> bool:
    """Whether a field is declared to hold variants: by its type or by its metadata."""
    if isinstance(field.type, pa.BaseExtensionType):
        return field.type.extension_name == EXTENSION and is_pair(field.type.storage_type)
    named = (field.metadata or {}).get(b"ARROW:extension:name")
    return named == EXTENSION.encode() and is_pair(field.type)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether the values of a type are byte strings."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))
