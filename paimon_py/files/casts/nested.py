"""Casts of rows, arrays, maps and multisets: part by part, and as a whole to and from strings.

`convert` is the general cast function, passed by the caller for the parts.

Source: Java `SchemaEvolutionUtil.createRowCastExecutor`, `ArrayToStringCastRule`, `MapToStringCastRule`,
`RowToStringCastRule`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import child_range, from_numpy, nulls_or_none, validity_bitmap
from paimon_py.files.casts.job import Cast, bad_value
from paimon_py.files.casts.parse_nested import array_parts, map_parts, row_parts
from paimon_py.spec.types import STRING, ArrayType, Atomic, DataType, MapType, MultisetType, Root, RowType

Convert = Callable[[pa.Array, Cast], pa.Array]
_Parts = TypeVar("_Parts")
_COUNT = Atomic(Root.INT, nullable=False)


def row(array: pa.Array, job: Cast, convert: Convert) -> pa.Array:
    """Match fields by id; a field missing in the stored rows is null."""
    source, target = job.source, job.target
    assert isinstance(source, RowType) and isinstance(target, RowType)
    position = {field.id: at for at, field in enumerate(source.fields)}
    children = []
    for field in target.fields:
        at = position.get(field.id)
        if at is None:
            children.append(pa.nulls(len(array), to_arrow_type(field.type)))
        else:
            part = Cast(source.fields[at].type, field.type, f"{job.column}.{field.name}")
            children.append(convert(_child(array, at), part))
    return _struct(array, children, to_arrow_type(target))


def array_to_array(array: pa.Array, job: Cast, convert: Convert) -> pa.Array:
    """Cast the elements."""
    source, target = job.source, job.target
    assert isinstance(source, ArrayType) and isinstance(target, ArrayType)
    offsets, items = _items(array)
    return _list(
        array, offsets, convert(items, Cast(source.element, target.element, job.column)), to_arrow_type(target)
    )


def map_to_map(array: pa.Array, job: Cast, convert: Convert) -> pa.Array:
    """Cast keys and values of maps and multisets."""
    kind = to_arrow_type(job.target)
    offsets, entries = _items(array)
    (given_key, given_value), (key, value) = _entry_types(job.source), _entry_types(job.target)
    keys = convert(entries.field(0), Cast(given_key, key, f"{job.column}.key"))
    values = convert(entries.field(1), Cast(given_value, value, f"{job.column}.value"))
    return _list(array, offsets, _struct(entries, [keys, values], pa.struct([kind.key_field, kind.item_field])), kind)


def nested_to_text(array: pa.Array, job: Cast, convert: Convert) -> pa.Array:
    """`[a, b]`, `{k -> v}`, `{a, b}`; null parts are written as `null`."""
    source = job.source

    def words(part: pa.Array, kind: DataType) -> pa.Array:
        return pc.fill_null(convert(part, Cast(kind, STRING, job.column)), "null")

    if isinstance(source, RowType):
        fields = [words(array.field(at), field.type) for at, field in enumerate(source.fields)]
        texts = pc.binary_join_element_wise("{", pc.binary_join_element_wise(*fields, ", "), "}", "")
        return pc.if_else(pc.is_valid(array), texts, pa.scalar(None, pa.string()))
    offsets, items = _items(array)
    if isinstance(source, ArrayType):
        opening, closing, parts = "[", "]", words(items, source.element)
    else:
        key, value = _entry_types(source)
        keys, values = words(items.field(0), key), words(items.field(1), value)
        opening, closing, parts = "{", "}", pc.binary_join_element_wise(keys, values, " -> ")
    joined = pc.binary_join(_list(array, offsets, parts, pa.list_(pa.string())), ", ")
    return pc.binary_join_element_wise(opening, joined, closing, "")


def text_to_nested(array: pa.Array, job: Cast, convert: Convert) -> pa.Array:
    """Parse each distinct string into the strings of its parts, then cast these as columns."""
    encoded = array.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    target = job.target
    if isinstance(target, RowType):
        parsed = _rows(texts, target, job, convert)
    elif isinstance(target, MapType):
        parsed = _maps(texts, target, job, convert)
    else:
        assert isinstance(target, ArrayType)
        lists = [_parse(text, array_parts, job) for text in texts]
        items = convert(_texts(item for parts in lists for item in parts), Cast(STRING, target.element, job.column))
        parsed = pa.Array.from_buffers(
            to_arrow_type(target), len(texts), [None, _offsets(map(len, lists))], children=[items]
        )
    return parsed.take(encoded.indices)


def _rows(texts: Sequence[str], target: RowType, job: Cast, convert: Convert) -> pa.Array:
    rows = [_parse(text, lambda value: row_parts(value, len(target.fields)), job) for text in texts]
    children = [
        convert(_texts(parts[at] for parts in rows), Cast(STRING, field.type, f"{job.column}.{field.name}"))
        for at, field in enumerate(target.fields)
    ]
    return pa.Array.from_buffers(to_arrow_type(target), len(texts), [None], children=children)


def _maps(texts: Sequence[str], target: MapType, job: Cast, convert: Convert) -> pa.Array:
    kind = to_arrow_type(target)
    maps = [_parse(text, map_parts, job) for text in texts]
    keys = convert(_texts(key for part in maps for key, _ in part or ()), Cast(STRING, target.key, f"{job.column}.key"))
    values = convert(
        _texts(value for part in maps for _, value in part or ()), Cast(STRING, target.value, f"{job.column}.value")
    )
    entries = pa.Array.from_buffers(
        pa.struct([kind.key_field, kind.item_field]), len(keys), [None], children=[keys, values]
    )
    bitmap, nulls = validity_bitmap(np.array([part is not None for part in maps], np.bool_))
    offsets = _offsets(len(part or ()) for part in maps)
    return pa.Array.from_buffers(kind, len(texts), [bitmap, offsets], null_count=nulls, children=[entries])


def _parse(text: str, parts: Callable[[str], _Parts], job: Cast) -> _Parts:
    try:
        return parts(text)
    except ValueError as error:
        raise bad_value(job, text, str(error)) from error


def _texts(values: Iterable[str | None]) -> pa.Array:
    return pa.array(list(values), pa.string())


def _offsets(sizes: Iterable[int]) -> pa.Buffer:
    return pa.py_buffer(np.cumsum([0, *sizes], dtype=np.int32))


def _entry_types(kind: DataType) -> tuple[DataType, DataType]:
    if isinstance(kind, MultisetType):
        return kind.element, _COUNT
    assert isinstance(kind, MapType)
    return kind.key, kind.value


def _child(array: pa.Array, position: int) -> pa.Array:
    """A child of a struct array; values of null rows become null, so that they are not cast."""
    child = array.field(position)
    if array.null_count == 0 or not pc.any(pc.and_(pc.is_null(array), pc.is_valid(child))).as_py():
        return child
    return pc.if_else(pc.is_valid(array), child, pa.scalar(None, child.type))


def _struct(rows: pa.Array, children: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    bitmap, nulls = validity_bitmap(nulls_or_none(rows))
    return pa.Array.from_buffers(kind, len(rows), [bitmap], null_count=nulls, children=list(children))


def _list(lists: pa.Array, offsets: pa.Buffer, items: pa.Array, kind: pa.DataType) -> pa.Array:
    bitmap, nulls = validity_bitmap(nulls_or_none(lists))
    return pa.Array.from_buffers(kind, len(lists), [bitmap, offsets], null_count=nulls, children=[items])


def _items(array: pa.Array) -> tuple[pa.Buffer, pa.Array]:
    """Offsets from 0, and the items (for maps: entries as structs) of the lists in use."""
    sizes, index, first, last = child_range(array)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    kind = array.type
    if pa.types.is_map(kind):
        child = pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])
    else:
        child = array.values
    if index is not None:
        return pa.py_buffer(offsets), child.take(from_numpy(index, pa.int64()))
    return pa.py_buffer(offsets), child.slice(first, last - first)
