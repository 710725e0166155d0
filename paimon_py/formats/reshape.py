"""Converts between array layouts of the same Paimon type, leaf by leaf.

Files represent some types differently from tables (INT96, ORC's nanoseconds, Avro's integers). `reshape` walks a type
and rebuilds the nested structure around leaves that a format converts; matching arrays are not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.columns import (
    child_range,
    from_numpy,
    is_list_view,
    nulls_or_none,
    numpy_values,
    validity_bitmap,
    validity_mask,
)
from paimon_py.codec.vectors import lists_as_vectors, vectors_as_lists
from paimon_py.spec.types import (
    ArrayType,
    Atomic,
    DataType,
    Field,
    MapType,
    MultisetType,
    Root,
    RowType,
    VariantParts,
    VectorType,
)

Leaf = Callable[[pa.Array, Any, pa.DataType], pa.Array]
"""Converts a column of an atomic type, or of parts of variants, to a layout."""

COUNT = Atomic(Root.INT, nullable=False)
TIMESTAMPS = frozenset({Root.TIMESTAMP, Root.TIMESTAMP_LTZ})
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def reshape(array: pa.Array, kind: DataType, target: pa.DataType, leaf: Leaf) -> pa.Array:
    """Convert `array`, which holds values of type `kind` in any layout, to the layout `target`.

    Row fields are found by name; missing ones are null (`lacks`).
    Leaf functions get only valid values, none below a null.
    Cost: shares the buffers of unchanged leaves; rebuilds list offsets and validity of slices.
    Raises: ValueError if the layout cannot represent the type.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        return reshape(array.storage, kind, target, leaf)
    if isinstance(kind, (Atomic, VariantParts)):
        return leaf(array, kind, target)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), target)
    if isinstance(kind, RowType):
        return _reshape_row(array, kind, target, leaf)
    if isinstance(kind, ArrayType):
        return _reshape_list(array, target, lambda child: reshape(child, kind.element, target.value_type, leaf))
    if isinstance(kind, VectorType):
        return _reshape_vector(array, kind, target, leaf)
    key, value = map_parts(kind)
    return _reshape_list(array, target, lambda child: _entries(child, (key, value), target, leaf))


def lacks(names: Sequence[str], kind: RowType, field: Field) -> bool:
    """Whether the ROW of a file, given by its field names, lacks a field of its schema, which is then NULL in every
    row.

    Unknown names may be the missing field, damaged or in a different case: then ValueError is raised.

    Raises: ValueError
    """
    if names.count(field.name) == 1:
        return False
    strange = sorted(set(names) - {each.name for each in kind.fields})
    if field.name in names or not field.type.nullable or strange:
        others = f"; it has {', '.join(strange)} instead" if strange else ""
        raise ValueError(f"a ROW has no field {field.name}, which its schema has, or more than one{others}")
    return True


def map_parts(kind: MapType | MultisetType) -> tuple[DataType, DataType]:
    """Key and value type; the value of a multiset is its count."""
    return (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, COUNT)


def leaves(kind: DataType) -> list[Atomic]:
    """The atomic types inside a type, depth first."""
    if isinstance(kind, Atomic):
        return [kind]
    return [leaf for part in _parts(kind) for leaf in leaves(part)]


def with_values(array: pa.Array, values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """An array of fixed-width `values` with the nulls of `array`."""
    bitmap, nulls = validity_bitmap(nulls_or_none(array))
    return pa.Array.from_buffers(kind, len(array), [bitmap, pa.py_buffer(values)], null_count=nulls)


def rescale(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Timestamps in another unit; digits finer than the unit are truncated toward the past."""
    source, unit = array.type.unit, target.unit
    if source == unit:
        return array.view(target)
    if _UNITS[source] < _UNITS[unit]:
        return array.cast(pa.timestamp(unit, array.type.tz)).view(target)
    values = np.floor_divide(numpy_values(array), _UNITS[source] // _UNITS[unit])
    return with_values(array, values, target)


def as_leaf(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A leaf in the type `target`: the same bytes if possible, else a lossless cast.

    Raises: pa.ArrowInvalid if a value does not fit.
    """
    kind = array.type
    if kind.equals(target):
        return array
    if pa.types.is_dictionary(kind):
        return as_leaf(array.dictionary_decode(), target)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(target):
        return rescale(array, target)
    return array.cast(target)


def _parts(kind: DataType) -> Sequence[DataType]:
    if isinstance(kind, RowType):
        return [field.type for field in kind.fields]
    if isinstance(kind, (ArrayType, VectorType)):
        return [kind.element]
    if isinstance(kind, (MapType, MultisetType)):
        return map_parts(kind)
    return ()


def _reshape_row(array: pa.Array, kind: RowType, target: pa.DataType, leaf: Leaf) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise ValueError(f"a ROW cannot be read from {array.type}")
    parts = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    children = []
    for position, field in enumerate(kind.fields):
        wanted = target.field(position).type
        if lacks([each.name for each in array.type], kind, field):
            children.append(pa.nulls(len(array), wanted))
            continue
        children.append(reshape(parts[array.type.get_field_index(field.name)], field.type, wanted, leaf))
    bitmap, nulls = validity_bitmap(nulls_or_none(array))
    return pa.Array.from_buffers(target, len(array), [bitmap], null_count=nulls, children=children)


def _reshape_list(array: pa.Array, target: pa.DataType, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        array = vectors_as_lists(array)
    elif is_list_view(kind):
        array = _views_as_lists(array)
    elif pa.types.is_large_list(kind):
        array = array.cast(pa.list_(kind.value_field))
    elif not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        raise ValueError(f"{target} cannot be read from {kind}")
    offsets = _offsets(array)
    if array.null_count and _hides_items(array, offsets):
        array = array.take(from_numpy(np.arange(len(array)), pa.int64()))
        offsets = _offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    child = convert(array.values.slice(first, last - first))
    bitmap, nulls = validity_bitmap(nulls_or_none(array))
    shifted = pa.py_buffer(offsets - np.int32(first) if first else offsets)
    return pa.Array.from_buffers(target, len(array), [bitmap, shifted], null_count=nulls, children=[child])


def _views_as_lists(array: pa.Array) -> pa.Array:
    """List views as lists. (Arrow's own cast makes lists that end outside of their offsets.)"""
    sizes, places, _, _ = child_range(array)
    assert places is not None, "the items of views are in any order"
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    bitmap, nulls = validity_bitmap(nulls_or_none(array))
    child = array.values.take(from_numpy(places, pa.int64()))
    kind, buffers = pa.list_(array.type.value_field), [bitmap, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, len(array), buffers, null_count=nulls, children=[child])


def _reshape_vector(array: pa.Array, kind: VectorType, target: pa.DataType, leaf: Leaf) -> pa.Array:
    """Vectors are stored in files as lists."""
    lists = vectors_as_lists(array) if pa.types.is_fixed_size_list(array.type) else array
    wanted = target if pa.types.is_list(target) else pa.list_(target.value_field)
    lists = _reshape_list(lists, wanted, lambda child: reshape(child, kind.element, wanted.value_type, leaf))
    return lists if wanted is target else lists_as_vectors(lists, target)


def _offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    buffer = array.buffers()[1]
    if buffer is None or buffer.size == 0:
        return np.zeros(len(array) + 1, np.int32)
    return np.frombuffer(buffer, np.int32, count=len(array) + 1, offset=array.offset * 4)


def _hides_items(array: pa.Array, offsets: npt.NDArray[np.int32]) -> bool:
    """Whether a null list has items."""
    return bool((offsets[1:] - offsets[:-1])[~validity_mask(array)].any())


def _entries(child: pa.Array, parts: tuple[DataType, DataType], target: pa.DataType, leaf: Leaf) -> pa.Array:
    """Key-value pairs: the first two fields of the struct below a map, whatever their names."""
    if not pa.types.is_struct(child.type) or child.type.num_fields != 2:
        raise ValueError(f"map entries cannot be read from {child.type}")
    pair = pa.struct([target.key_field, target.item_field]) if pa.types.is_map(target) else target.value_type
    arrays = [
        reshape(child.field(position), part, pair.field(position).type, leaf) for position, part in enumerate(parts)
    ]
    if pa.types.is_map(target) and arrays[0].null_count:
        raise ValueError("a key of a map is NULL, which Arrow cannot hold")
    return pa.Array.from_buffers(pair, len(child), [None], null_count=0, children=arrays)
