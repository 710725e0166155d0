"""Checks that the columns of a file match the file's schema.

A file contains every column of the schema it was written with, in one layout per type. A missing column (unless other
writers may omit it), or a layout that would be read as other values, indicates damage: in footers without checksums,
there is no other sign of it.

Source: format.md §8.3, §8.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import is_list_view
from paimon_py.codec.variant.form import METADATA, TYPED, VALUE, is_bytes
from paimon_py.errors import CorruptionError
from paimon_py.formats.base import ReadSettings
from paimon_py.formats.reshape import lacks, map_parts
from paimon_py.spec.schema import KEY_PREFIX, ROW_ID, SEQUENCE_NUMBER, VALUE_KIND
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, Root, RowType, VariantParts, VectorType

Stamps = Callable[[Atomic], Collection[pa.DataType]]
"""The layouts in which a format stores timestamps of a type."""

_ASCII = 127
_TEXTS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary,
    pa.types.is_binary_view,
)  # fmt: skip
_BYTES = (*_TEXTS, pa.types.is_fixed_size_binary)
_KINDS: dict[Root, tuple[Callable[[pa.DataType], bool], ...]] = {
    Root.BOOLEAN: (pa.types.is_boolean,),
    Root.TINYINT: (pa.types.is_integer,),
    Root.SMALLINT: (pa.types.is_integer,),
    Root.INT: (pa.types.is_integer,),
    Root.BIGINT: (pa.types.is_integer,),
    Root.FLOAT: (pa.types.is_float32,),
    Root.DOUBLE: (pa.types.is_float64,),
    Root.CHAR: _TEXTS,
    Root.VARCHAR: _TEXTS,
    Root.BINARY: _BYTES,
    Root.VARBINARY: _BYTES,
    Root.BLOB: _BYTES,
    Root.DATE: (pa.types.is_date32, pa.types.is_int32),
    Root.TIME: (lambda kind: kind == pa.time32("ms"), pa.types.is_int32),
}


def check_absent(path: str, field: Field, stored: Collection[str], settings: ReadSettings) -> None:
    """Refuse a file that lacks a column, unless the column is NULL in every row, as other writers omit it.

    Unknown names may be the missing column, damaged or in a different case: such files are refused.

    Args:
        stored: the names of the columns in the file.
    Raises: CorruptionError
    """
    own = (*settings.schema_names, SEQUENCE_NUMBER, VALUE_KIND, ROW_ID)
    strange = [name for name in stored if name not in own and not name.startswith(KEY_PREFIX)]
    if field.name in stored or field.name not in settings.may_lack or strange:
        others = f"; it has {', '.join(sorted(strange))} instead" if strange else ""
        message = f"{path} has no column {field.name}, which its schema has, or more than one{others}"
        raise CorruptionError(message, path=path)


def check_stored(stored: pa.DataType, kind: DataType, stamps: Stamps) -> None:
    """Compare the Arrow type of a file's column with the type of its field.

    Raises: ValueError if values would be misread.
    """
    if isinstance(stored, pa.BaseExtensionType):
        check_stored(stored.storage_type, kind, stamps)
    elif isinstance(kind, VariantParts):
        if not is_stored_variant(stored):
            raise ValueError(f"a VARIANT stored as {stored}")
    elif isinstance(kind, Atomic):
        _check_leaf(stored, kind, stamps)
    elif isinstance(kind, RowType):
        _check_row(stored, kind, stamps)
    elif isinstance(kind, ArrayType):
        if not (_is_list(stored) or pa.types.is_fixed_size_list(stored)):
            raise ValueError(f"an ARRAY stored as {stored}")
        check_stored(stored.value_type, kind.element, stamps)
    elif isinstance(kind, VectorType):
        if not (_is_list(stored) or _is_vector(stored, kind)):
            raise ValueError(f"a VECTOR of {kind.length} stored as {stored}")
        check_stored(stored.value_type, kind.element, stamps)
    else:
        for inner, part in zip(_entries(stored), map_parts(kind), strict=True):
            check_stored(inner, part, stamps)


def is_stored_variant(stored: pa.DataType) -> bool:
    """Whether a group in a file stores variants: a dictionary, and a value, a typed value or both."""
    if not pa.types.is_struct(stored):
        return False
    kinds = {field.name: field.type for field in stored}
    if len(kinds) < stored.num_fields or METADATA not in kinds or not {VALUE, TYPED} & set(kinds) or (
        set(kinds) - {VALUE, TYPED, METADATA}
    ):  # fmt: skip
        return False
    return all(is_bytes(kinds[name]) for name in (VALUE, METADATA) if name in kinds)


def check_texts(array: pa.Array) -> None:
    """Refuse strings that are not UTF-8, which no other check detects in files without checksums.

    Shapes: an array that begins at offset 0.
    Cost: 0.1 ms per megabyte of ASCII, ten times that for other strings.
    Raises: pa.ArrowInvalid
    """
    kind = array.type
    if pa.types.is_string(kind):
        data = array.buffers()[2]
        if data is not None and data.size and np.frombuffer(data, np.uint8).max() > _ASCII:
            array.validate(full=True)
    elif pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            check_texts(array.field(place))
    elif pa.types.is_map(kind):
        check_texts(array.keys)
        check_texts(array.items)
    elif pa.types.is_list(kind):
        check_texts(array.values)


def _entries(stored: pa.DataType) -> tuple[pa.DataType, pa.DataType]:
    """The key and value types of a map, or of a list of pairs."""
    if pa.types.is_map(stored):
        return stored.key_type, stored.item_type
    pair = stored.value_type if pa.types.is_list(stored) else stored
    if pair is stored or not pa.types.is_struct(pair) or pair.num_fields != 2:
        raise ValueError(f"a MAP stored as {stored}")
    return pair.field(0).type, pair.field(1).type


def _is_list(stored: pa.DataType) -> bool:
    return bool(pa.types.is_list(stored) or pa.types.is_large_list(stored) or is_list_view(stored))


def _is_vector(stored: pa.DataType, kind: VectorType) -> bool:
    return bool(pa.types.is_fixed_size_list(stored) and stored.list_size == kind.length)


def _check_row(stored: pa.DataType, kind: RowType, stamps: Stamps) -> None:
    if not pa.types.is_struct(stored):
        raise ValueError(f"a ROW stored as {stored}")
    for field in kind.fields:
        if not lacks([each.name for each in stored], kind, field):
            check_stored(stored.field(field.name).type, field.type, stamps)


def _in_utc(stored: pa.DataType) -> pa.DataType:
    """Instants by the clocks of UTC: the zone that Arrow's own metadata names changes no value."""
    is_zoned = pa.types.is_timestamp(stored) and stored.tz is not None
    return pa.timestamp(stored.unit, "UTC") if is_zoned else stored


def _check_leaf(stored: pa.DataType, kind: Atomic, stamps: Stamps) -> None:
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if kind.root is Root.VARIANT:
        fits = is_stored_variant(stored)
    elif kind.root is Root.DECIMAL:
        fits = pa.types.is_decimal(stored) and stored.scale == kind.scale
    elif kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        fits = _in_utc(stored) in stamps(kind)
    else:
        known = _KINDS.get(kind.root)
        fits = known is None or any(is_kind(stored) for is_kind in known)
    if not fits:
        raise ValueError(f"a {kind.root.value} stored as {stored}")
