"""Shreds variants into columns: parts with exactly the target type go to `typed_value`, others to `value`.

The target of a node is a type: a ROW for objects, an ARRAY for arrays, VARIANT for no typed column, else a scalar. The
dictionary of a row is unchanged, and the bytes in `value` keep referring to it.

Source: format.md §8.9; Java `VariantShreddingWriter`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import binary_array, nulls_or_none, validity_bitmap
from paimon_py.codec.variant.arrays import as_variants
from paimon_py.codec.variant.encode import build_object
from paimon_py.codec.variant.form import METADATA, TYPED, VALUE
from paimon_py.codec.variant.layout import (
    ARRAY,
    EXACT,
    FLOAT,
    OBJECT,
    basic_type,
    check_apart,
    children_at,
    key_at,
    keys_of,
    scalar_at,
    size_at,
)
from paimon_py.spec.types import ArrayType, Atomic, DataType, Root, RowType

Places = list[tuple[bytes, bytes, int] | None]
"""Nodes: value, dictionary and position; None if missing."""

_NULL_NODE = b"\x00"
_RANGES = {Root.TINYINT: 1 << 7, Root.SMALLINT: 1 << 15, Root.INT: 1 << 31, Root.BIGINT: 1 << 63}


def shred(array: pa.Array, wanted: DataType, target: pa.DataType) -> pa.Array:
    """A column of variants as Parquet groups of the type `target`.

    Cost: some microseconds per row and key.
    Raises: CorruptionError for bytes that are not variants.
    """
    array = as_variants(array)
    valid = nulls_or_none(array)
    dictionaries = array.field(METADATA)
    there = np.ones(len(array), np.bool_) if valid is None else valid
    pairs = zip(array.field(VALUE).to_pylist(), dictionaries.to_pylist(), there, strict=True)
    nodes: Places = [(value, keys, 0) if fits else None for value, keys, fits in pairs]
    parts = _node(nodes, wanted, _inner(target))
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(target, len(array), [bitmap], null_count=nulls, children=[dictionaries, *parts])


def _inner(target: pa.DataType) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in target}


def _node(nodes: Places, wanted: DataType, target: dict[str, pa.DataType]) -> list[pa.Array]:
    """The columns `value` and, unless the node is not shredded, `typed_value`."""
    if TYPED not in target:
        return [binary_array([None if node is None else _bytes(node) for node in nodes])]
    if isinstance(wanted, RowType):
        return _objects(nodes, wanted, target[TYPED])
    if isinstance(wanted, ArrayType):
        return _arrays(nodes, wanted, target[TYPED])
    assert isinstance(wanted, Atomic)
    fit = _fitting(wanted)
    rest: list[bytes | None] = []
    typed: list[Any] = []
    for node in nodes:
        found = None if node is None or basic_type(node[0], node[2]) in (OBJECT, ARRAY) else fit(node)
        typed.append(found)
        rest.append(None if node is None or found is not None else _bytes(node))
    return [binary_array(rest), pa.array(typed, to_arrow_type(wanted))]


def _objects(nodes: Places, wanted: RowType, target: pa.DataType) -> list[pa.Array]:
    rest: list[bytes | None] = []
    there = np.zeros(len(nodes), np.bool_)
    fields: dict[str, Places] = {field.name: [None] * len(nodes) for field in wanted.fields}
    for row, node in enumerate(nodes):
        if node is None or basic_type(node[0], node[2]) != OBJECT:
            rest.append(None if node is None else _bytes(node))
            continue
        there[row] = True
        value, metadata, at = node
        keys, found = keys_of(metadata), children_at(value, at)
        check_apart(value, found.places)
        left: list[tuple[str, int, int]] = []
        for number, place in zip(found.ids, found.places, strict=True):
            name = key_at(keys, number)
            if name in fields:
                fields[name][row] = (value, metadata, place)
            else:
                left.append((name, number, place))
        rest.append(_object_of(value, left) if left else None)
    groups = []
    for position, field in enumerate(wanted.fields):
        inner = target.field(position).type
        children = _node(fields[field.name], field.type, _inner(inner))
        groups.append(pa.Array.from_buffers(inner, len(nodes), [None], null_count=0, children=children))
    bitmap, nulls = validity_bitmap(there)
    typed = pa.Array.from_buffers(target, len(nodes), [bitmap], null_count=nulls, children=groups)
    return [binary_array(rest), typed]


def _object_of(value: bytes, fields: Sequence[tuple[str, int, int]]) -> bytes:
    names, ids = [name for name, _, _ in fields], [number for _, number, _ in fields]
    return build_object(names, ids, [value[place : place + size_at(value, place)] for _, _, place in fields])


def _arrays(nodes: Places, wanted: ArrayType, target: pa.DataType) -> list[pa.Array]:
    rest: list[bytes | None] = []
    items: Places = []
    offsets = np.zeros(len(nodes) + 1, np.int32)
    there = np.zeros(len(nodes), np.bool_)
    for row, node in enumerate(nodes):
        if node is not None and basic_type(node[0], node[2]) == ARRAY:
            there[row] = True
            places = children_at(node[0], node[2]).places
            check_apart(node[0], places)
            items += [(node[0], node[1], place) for place in places]
            rest.append(None)
        else:
            rest.append(None if node is None else _bytes(node))
        offsets[row + 1] = len(items)
    inner = target.value_type
    children = _node(items, wanted.element, _inner(inner))
    child = pa.Array.from_buffers(inner, len(items), [None], null_count=0, children=children)
    bitmap, nulls = validity_bitmap(there)
    buffers = [bitmap, pa.py_buffer(offsets)]
    return [
        binary_array(rest), pa.Array.from_buffers(target, len(nodes), buffers, null_count=nulls, children=[child])
    ]  # fmt: skip


def _bytes(node: tuple[bytes, bytes, int]) -> bytes:
    value, _, at = node
    return value[at : at + size_at(value, at)]


def _fitting(kind: Atomic) -> Callable[[tuple[bytes, bytes, int]], Any]:
    """A function that returns the value of a scalar node if the type holds it exactly, else None."""
    root = kind.root
    if root in _RANGES:
        return lambda node: _integer(scalar_at(node[0], node[2]), _RANGES[root])
    if root is Root.DECIMAL:
        return lambda node: _decimal(scalar_at(node[0], node[2]), kind)
    if root in (Root.DOUBLE, Root.FLOAT):
        single = root is Root.FLOAT
        return lambda node: _float(node, single=single)
    wanted = bool if root is Root.BOOLEAN else str
    return lambda node: found if isinstance(found := scalar_at(node[0], node[2]), wanted) else None


def _is_whole(found: Any) -> bool:
    return isinstance(found, int) and not isinstance(found, bool)


def _integer(found: Any, end: int) -> int | None:
    return found if _is_whole(found) and -end <= found < end else None


def _float(node: tuple[bytes, bytes, int], *, single: bool) -> float | None:
    found = scalar_at(node[0], node[2])
    return found if isinstance(found, float) and (node[0][node[2]] == FLOAT << 2) is single else None


def _decimal(found: Any, kind: Atomic) -> Decimal | None:
    if not isinstance(found, Decimal) and not _is_whole(found):
        return None
    scale, precision = kind.scale or 0, kind.precision or 0
    unscaled = Decimal(found).scaleb(scale, EXACT)
    if unscaled != unscaled.to_integral_value() or abs(unscaled) >= 10**precision:
        return None
    return unscaled.scaleb(-scale, EXACT)
