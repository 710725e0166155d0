"""Arrow arrays of nested types from Python values, for formats whose rows are decoded one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, validity_bitmap
from paimon_py.formats.reshape import map_parts
from paimon_py.spec.types import ArrayType, Atomic, DataType, RowType, VariantParts, VectorType

FromValues = Callable[[Sequence[Any], Atomic, pa.DataType], pa.Array]
"""Values of one scalar type, None for NULL, as an array of an Arrow type."""


def array_of(values: Sequence[Any], kind: DataType, target: pa.DataType, leaf: FromValues) -> pa.Array:
    """An array of type `target`.

    Shapes: `values` — None for NULL; lists for ARRAY and VECTOR, sequences in the order of the fields for ROW, lists of
        pairs for MAP and MULTISET, what `leaf` takes for scalars.
    Raises: ValueError for a vector of another length.
    """
    if isinstance(kind, VariantParts):
        raise TypeError("parts of variants are read from Parquet files")
    if isinstance(kind, Atomic):
        return leaf(values, kind, target)
    there = np.array([value is not None for value in values], np.bool_)
    bitmap, nulls = validity_bitmap(None if bool(there.all()) else there)
    if isinstance(kind, RowType):
        children = [
            array_of([None if row is None else row[at] for row in values], field.type, target.field(at).type, leaf)
            for at, field in enumerate(kind.fields)
        ]
        return pa.Array.from_buffers(target, len(values), [bitmap], null_count=nulls, children=children)
    if isinstance(kind, VectorType):
        if any(value is not None and len(value) != kind.length for value in values):
            raise ValueError(f"a vector has another length than {kind.length}")
        filled = [item for value in values for item in (value or [None] * kind.length)]
        items = array_of(filled, kind.element, target.value_type, leaf)
        return pa.Array.from_buffers(target, len(values), [bitmap], null_count=nulls, children=[items])
    lists = [value or () for value in values]
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    flat = [item for each in lists for item in each]
    if isinstance(kind, ArrayType):
        child = array_of(flat, kind.element, target.value_type, leaf)
    else:
        parts = zip(map_parts(kind), (target.key_field, target.item_field), strict=True)
        columns = [
            array_of([item[at] for item in flat], part, field.type, leaf) for at, (part, field) in enumerate(parts)
        ]
        child = pa.StructArray.from_arrays(columns, fields=[target.key_field, target.item_field])
    buffers = [bitmap, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(target, len(values), buffers, null_count=nulls, children=[child])


def steps_array(values: Sequence[int | None], target: pa.DataType, width: type[np.integer[Any]]) -> pa.Array:
    """Whole numbers as the days, milliseconds or other steps of a type of this width."""
    numbers = np.array([0 if value is None else value for value in values], width)
    there = np.array([value is not None for value in values], np.bool_)
    return from_numpy(numbers, target, None if bool(there.all()) else there)
