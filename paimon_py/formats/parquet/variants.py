"""Converts groups of Parquet files, plain or shredded, to columns of variants or of their parts.

Source: format.md §8.9; Java `PaimonShreddingUtils`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arrays import Mask
from paimon_py.codec.columns import from_numpy, nulls_or_none, numpy_values, validity_bitmap
from paimon_py.codec.variant.form import METADATA, TYPED, VALUE
from paimon_py.codec.variant.get import CastArray, Node, Nodes, Wanted, get, walk
from paimon_py.codec.variant.layout import EMPTY_METADATA
from paimon_py.codec.variant.unshred import RowKeys, nodes_of, unshred
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.formats.parquet.variant_paths import inner_node
from paimon_py.spec.types import BYTES, STRING, Atomic, DataType, Root, VariantPart, VariantParts
from paimon_py.spec.variant_paths import WHOLE, Step, parse_path

_TEXTS = frozenset((Root.CHAR, Root.VARCHAR))


def variants_of(array: pa.Array) -> pa.Array:
    """The variants of a group, whose columns are found by name.

    Raises: CorruptionError for bytes that are not variants.
    """
    return unshred(array)


def parts_of(array: pa.Array, kind: VariantParts, cast: CastArray) -> pa.Array:
    """Parts of the variants of a group, as a struct that is NULL where the variant is NULL.

    Shapes: in — a group with only the columns that `part_paths` names.
    Raises:
        SchemaError: a value cannot be cast, and NULL is not allowed instead.
        CorruptionError: bytes that are not variants.
    """
    valid = nulls_or_none(array)
    children, fields = [], []
    for field in kind.fields:
        assert isinstance(field, VariantPart)
        if field.name == WHOLE.name:
            child = unshred(array)
        else:
            wanted = Wanted(field.type, cast, field.or_null, f"the path {field.path}")
            child = _part(array, parse_path(field.path), wanted, _dictionaries(array))
        children.append(child)
        fields.append(pa.field(field.name, child.type))
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(pa.struct(fields), len(array), [bitmap], null_count=nulls, children=children)


def _dictionaries(array: pa.Array) -> list[bytes]:
    """The dictionary of each row; empty if none was read, since no keys are needed then."""
    if array.type.get_field_index(METADATA) < 0:
        return [EMPTY_METADATA] * len(array)
    return [found or EMPTY_METADATA for found in pc.struct_field(array, [METADATA]).to_pylist()]


def _part(node: pa.Array, steps: Sequence[Step], wanted: Wanted, rows: list[bytes]) -> pa.Array:
    """The part at a path below a node; `rows`: the dictionary of each slot."""
    if steps:
        typed = node.type.get_field_index(TYPED)
        inside = node.type.field(typed).type if typed >= 0 else None
        step = steps[0]
        if inner_node(node.type, step) is not None:
            return _part(pc.struct_field(node, [TYPED, step]), steps[1:], wanted, rows)
        if inside is not None and isinstance(step, int) and pa.types.is_list(inside):
            element, there = _elements(pc.struct_field(node, [TYPED]), step)
            found = _part(element, steps[1:], wanted, rows)
            return pc.if_else(from_numpy(there, pa.bool_()), found, pa.scalar(None, found.type))
        return get([walk(one, steps) for one in _by_value(node, rows)], wanted)
    fast = _column(node, wanted)
    if fast is None:
        keys = {metadata: RowKeys(metadata) for metadata in set(rows)}
        nodes = nodes_of(node, [keys[metadata] for metadata in rows])
        made = {metadata: one.metadata() for metadata, one in keys.items()}
        pairs = zip(nodes, rows, strict=True)
        return get([None if value is None else Node(value, made[metadata], 0) for value, metadata in pairs], wanted)
    others = get(_by_value(node, rows), wanted) if VALUE in _names(node.type) else None
    return fast if others is None else pc.coalesce(fast, others)


def _names(kind: pa.DataType) -> list[str]:
    return [field.name for field in kind]


def _by_value(node: pa.Array, rows: list[bytes]) -> Nodes:
    """The nodes stored in `value`."""
    if VALUE not in _names(node.type):
        return [None] * len(node)
    values = pc.struct_field(node, [VALUE]).to_pylist()
    return [None if value is None else Node(value, metadata, 0) for value, metadata in zip(values, rows, strict=True)]


def _elements(lists: pa.Array, index: int) -> tuple[pa.Array, Mask]:
    """An element of each list, and a mask of lists that have one."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    there = (offsets[1:] - offsets[:-1] > index) & numpy_values(pc.is_valid(lists))
    places = np.where(there, offsets[:-1] + index, 0)
    return lists.values.take(from_numpy(places, pa.int64(), there)), there


def _column(node: pa.Array, wanted: Wanted) -> pa.Array | None:
    """The scalars of a typed column, cast together; None if that is impossible or fails."""
    at = node.type.get_field_index(TYPED)
    if at < 0 or not isinstance(wanted.type, Atomic) or wanted.type.root is Root.VARIANT:
        return None
    typed = pc.struct_field(node, [TYPED])
    source, typed = _natural(typed)
    is_text = wanted.type.root in _TEXTS
    if source is None or (is_text and isinstance(source, Atomic) and source.root is Root.DECIMAL):
        return None  # decimal strings have no trailing zeros, value by value
    try:
        return wanted.cast(typed, source, wanted.type)
    except (SchemaError, UnsupportedError):
        return None


def _natural(typed: pa.Array) -> tuple[DataType | None, pa.Array]:
    """The natural variant type of a column's scalars, and the column in that form."""
    kind = typed.type
    if pa.types.is_integer(kind):
        return Atomic(Root.BIGINT), typed.cast(pa.int64())
    if pa.types.is_decimal(kind):
        return Atomic(Root.DECIMAL, precision=kind.precision, scale=kind.scale), typed
    for is_kind, source in _SOURCES:
        if is_kind(kind):
            return source, typed
    return None, typed


_SOURCES = (
    (pa.types.is_boolean, Atomic(Root.BOOLEAN)),
    (pa.types.is_float64, Atomic(Root.DOUBLE)),
    (pa.types.is_float32, Atomic(Root.FLOAT)),
    (pa.types.is_string, STRING),
    (pa.types.is_binary, BYTES),
    (pa.types.is_date32, Atomic(Root.DATE)),
)
