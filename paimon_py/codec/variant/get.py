"""Extracts parts of variants as a type: `variant_get` of whole columns.

A part is found by its path, and is NULL if the path does not exist. Scalars are cast from their natural type (BIGINT,
DOUBLE, FLOAT, DECIMAL, STRING, BOOLEAN, DATE, TIMESTAMP, BYTES) by Paimon's cast rules, all of one type together; any
part becomes STRING as JSON; arrays and objects become ARRAY, MAP and ROW part by part.

Source: format.md §8.9; Java `GenericVariant.variantGet`, `VariantGet`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import from_numpy, validity_bitmap
from paimon_py.codec.variant.arrays import of_encoded
from paimon_py.codec.variant.decode import plain_decimal, to_json
from paimon_py.codec.variant.encode import KeyDictionary, move
from paimon_py.codec.variant.form import Encoded
from paimon_py.codec.variant.layout import (
    ARRAY,
    EMPTY_METADATA,
    FLOAT,
    INSTANT,
    OBJECT,
    basic_type,
    check_apart,
    children_at,
    element_at,
    field_at,
    is_null,
    key_at,
    keys_of,
    scalar_at,
)
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import BYTES, MAX_LENGTH, STRING, ArrayType, Atomic, DataType, MapType, Root, RowType
from paimon_py.spec.variant_paths import Step

CastArray = Callable[[pa.Array, DataType, DataType], pa.Array]
"""Casts values from one type to another by Paimon's cast rules."""

_SHOWN = 80


class Node(NamedTuple):
    """A part of a variant: the bytes that contain it, its position, and the dictionary."""

    value: bytes
    metadata: bytes
    at: int


Nodes = list[Node | None]


class Wanted(NamedTuple):
    """The requested result: the target type, the cast function, whether values that cannot be cast become NULL, and the
    origin of the variants, for messages."""

    type: DataType
    cast: CastArray
    or_null: bool
    place: str

    def inner(self, kind: DataType) -> Wanted:
        """The same for a nested part of the type."""
        return self._replace(type=kind)


def walk(node: Node | None, steps: Sequence[Step]) -> Node | None:
    """The part at a path; None if it does not exist.

    Raises: CorruptionError
    """
    for step in steps:
        if node is None:
            return None
        value, metadata, at = node
        place = field_at(value, at, step, keys_of(metadata)) if isinstance(step, str) else element_at(value, at, step)
        node = None if place is None else Node(value, metadata, place)
    return node


def get(nodes: Nodes, wanted: Wanted) -> pa.Array:
    """The nodes as an array of the target type; None and JSON null become NULL.

    Raises:
        SchemaError: a value cannot be cast, unless NULL is allowed instead.
        CorruptionError: damaged bytes.
    """
    kind = wanted.type
    if isinstance(kind, Atomic) and kind.root is Root.VARIANT:
        return of_encoded([None if node is None else part_of(node) for node in nodes])
    nodes = [None if node is None or is_null(node.value, node.at) else node for node in nodes]
    if isinstance(kind, ArrayType):
        return _arrays(nodes, kind, wanted)
    if isinstance(kind, MapType):
        return _maps(nodes, kind, wanted)
    if isinstance(kind, RowType):
        return _rows(nodes, kind, wanted)
    if not isinstance(kind, Atomic):
        target = sql_type(kind)
        raise UnsupportedError(f"variants cannot be converted to {target}", feature=f"VARIANT to {target}")
    return _scalars(nodes, kind, wanted)


def part_of(node: Node) -> Encoded:
    """A part as a variant with its own dictionary."""
    keys = KeyDictionary()
    value = move(node.value, node.at, keys_of(node.metadata), keys)
    return Encoded(value, keys.metadata())


def _scalars(nodes: Nodes, kind: Atomic, wanted: Wanted) -> pa.Array:
    groups: dict[Atomic, list[int]] = {}
    values: list[Any] = [None] * len(nodes)
    for at, node in enumerate(nodes):
        if node is not None:
            source, values[at] = _natural(node, kind)
            if source is None:
                _refuse(node, wanted)
            else:
                groups.setdefault(source, []).append(at)
    arrow = to_arrow_type(kind)
    pieces = [pa.nulls(1, arrow)]
    places = np.zeros(len(nodes), np.int64)
    for source, rows in groups.items():
        places[rows] = np.arange(len(rows)) + sum(map(len, pieces))
        given = pa.array([values[at] for at in rows], to_arrow_type(source))
        pieces.append(_cast(given, source, [nodes[at] for at in rows], wanted))
    return pa.concat_arrays(pieces).take(from_numpy(places, pa.int64()))


def _natural(node: Node, kind: Atomic) -> tuple[Atomic | None, Any]:
    """The natural type of a node, and its value; the type is None if it cannot be cast."""
    if basic_type(node.value, node.at) in (OBJECT, ARRAY):
        whole = kind.root is Root.VARCHAR and kind.length == MAX_LENGTH
        return (STRING, to_json(*node)) if whole else (None, None)
    found = scalar_at(node.value, node.at)
    if isinstance(found, Decimal):
        found = plain_decimal(found)
        digits, scale = len(found.as_tuple().digits), -int(found.as_tuple().exponent)
        return Atomic(Root.DECIMAL, precision=max(digits, scale), scale=scale), found
    if isinstance(found, float):
        return _FLOAT if node.value[node.at] == FLOAT << 2 else _DOUBLE, found
    if node.value[node.at] == INSTANT << 2:
        return _INSTANT, found
    return _TYPES[type(found)], found


def _cast(given: pa.Array, source: Atomic, nodes: Nodes, wanted: Wanted) -> pa.Array:
    try:
        return wanted.cast(given, source, wanted.type)
    except (SchemaError, UnsupportedError):
        if len(given) == 1:
            _refuse(nodes[0], wanted)
            return pa.nulls(1, to_arrow_type(wanted.type))
    half = len(given) // 2
    first = _cast(given.slice(0, half), source, nodes[:half], wanted)
    return pa.concat_arrays([first, _cast(given.slice(half), source, nodes[half:], wanted)])


def _refuse(node: Node | None, wanted: Wanted) -> None:
    """Report a value that cannot be cast, unless NULL is allowed instead."""
    if wanted.or_null or node is None:
        return
    is_scalar = basic_type(node.value, node.at) not in (OBJECT, ARRAY)
    text = to_json(*node) if is_scalar or node.metadata != EMPTY_METADATA else "an object or array"
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    raise SchemaError(
        f"{wanted.place}: {shown} cannot be {sql_type(wanted.type)}; variant(…, or_null=True) makes NULL of such values"
    )


def _parts(nodes: Nodes, kind: int, wanted: Wanted) -> list[list[tuple[str, Node]] | None]:
    """The parts of objects (with their keys) or arrays; None for NULL."""
    found: list[list[tuple[str, Node]] | None] = []
    for node in nodes:
        if node is None or basic_type(node.value, node.at) != kind:
            _refuse(node, wanted)
            found.append(None)
            continue
        value, metadata, at = node
        children = children_at(value, at)
        keys = keys_of(metadata) if kind == OBJECT else ()
        names = [key_at(keys, number) for number in children.ids] if kind == OBJECT else [""] * len(children.places)
        check_apart(value, children.places)
        found.append([(name, Node(value, metadata, place)) for name, place in zip(names, children.places, strict=True)])
    return found


def _arrays(nodes: Nodes, kind: ArrayType, wanted: Wanted) -> pa.Array:
    found = _parts(nodes, ARRAY, wanted)
    child = get([node for parts in found for _, node in parts or ()], wanted.inner(kind.element))
    return _lists(to_arrow_type(kind), found, child)


def _maps(nodes: Nodes, kind: MapType, wanted: Wanted) -> pa.Array:
    if not isinstance(kind.key, Atomic) or kind.key.root is not Root.VARCHAR:
        feature = f"VARIANT to {sql_type(kind)}"
        text = f"{wanted.place}: objects can only be converted to MAPs with STRING keys, not to {sql_type(kind)}"
        raise UnsupportedError(text, feature=feature)
    found = _parts(nodes, OBJECT, wanted)
    arrow = to_arrow_type(kind)
    keys = pa.array([name for parts in found for name, _ in parts or ()], arrow.key_type)
    items = get([node for parts in found for _, node in parts or ()], wanted.inner(kind.value))
    entry = pa.struct([arrow.key_field, arrow.item_field])
    entries = pa.Array.from_buffers(entry, len(keys), [None], null_count=0, children=[keys, items])
    return _lists(arrow, found, entries)


def _lists(arrow: pa.DataType, found: Sequence[list[tuple[str, Node]] | None], child: pa.Array) -> pa.Array:
    offsets = np.zeros(len(found) + 1, np.int32)
    np.cumsum([len(parts or ()) for parts in found], out=offsets[1:])
    bitmap, nulls = validity_bitmap(np.array([parts is not None for parts in found], np.bool_))
    return pa.Array.from_buffers(arrow, len(found), [bitmap, pa.py_buffer(offsets)], null_count=nulls, children=[child])


def _rows(nodes: Nodes, kind: RowType, wanted: Wanted) -> pa.Array:
    there = [node is not None and basic_type(node.value, node.at) == OBJECT for node in nodes]
    for node, fits in zip(nodes, there, strict=True):
        if not fits:
            _refuse(node, wanted)
    objects = [node if fits else None for node, fits in zip(nodes, there, strict=True)]
    children = [get([walk(node, (field.name,)) for node in objects], wanted.inner(field.type)) for field in kind.fields]
    bitmap, nulls = validity_bitmap(np.array(there, np.bool_))
    return pa.Array.from_buffers(to_arrow_type(kind), len(nodes), [bitmap], null_count=nulls, children=children)


_FLOAT, _DOUBLE = Atomic(Root.FLOAT), Atomic(Root.DOUBLE)
_INSTANT = Atomic(Root.TIMESTAMP_LTZ, precision=6)
_TYPES: dict[type, Atomic] = {
    bool: Atomic(Root.BOOLEAN),
    int: Atomic(Root.BIGINT),
    str: STRING,
    bytes: BYTES,
    date: Atomic(Root.DATE),
    datetime: Atomic(Root.TIMESTAMP, precision=6),
}
