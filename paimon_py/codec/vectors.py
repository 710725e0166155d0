"""Vectors as Arrow fixed-size lists, and as the plain lists that files store."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, nulls_or_none, validity_bitmap, validity_mask


def vectors_as_lists(array: pa.Array) -> pa.Array:
    """Fixed-size lists as lists; NULL lists have no items.

    Cost: new offsets, and a copy of the items if some lists are NULL.
    """
    valid = nulls_or_none(array)
    sizes = np.full(len(array), array.type.list_size, np.int32)
    if valid is not None:
        sizes[~valid] = 0
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    bitmap, nulls = validity_bitmap(valid)
    buffers = [bitmap, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(
        pa.list_(array.type.value_field), len(array), buffers, null_count=nulls, children=[array.flatten()]
    )


def lists_as_vectors(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Lists of fixed-width items as fixed-size lists of type `kind`; the items of NULL lists are zeros.

    Cost: no copy if nothing is NULL.
    Raises: ValueError for a list of another length, or a NULL item.
    """
    size, valid = kind.list_size, nulls_or_none(array)
    offsets = array.offsets.to_numpy().astype(np.int64)
    lengths = offsets[1:] - offsets[:-1]
    wrong = lengths != size if valid is None else (lengths != size) & valid
    if wrong.any():
        raise ValueError(f"a vector of {size} elements has {int(lengths[int(np.argmax(wrong))])}")
    if valid is None:
        child = array.values.slice(int(offsets[0]), len(array) * size)
        if child.null_count:
            raise ValueError("an element of a vector is NULL")
    else:
        child = _spread_items(array, offsets, size)
    bitmap, nulls = validity_bitmap(valid)
    return pa.Array.from_buffers(kind, len(array), [bitmap], null_count=nulls, children=[child])


def _spread_items(array: pa.Array, offsets: np.ndarray, size: int) -> pa.Array:
    """The items of lists, with room for those of NULL lists."""
    valid = validity_mask(array)
    places = offsets[:-1, None] + np.arange(size, dtype=np.int64)
    there = np.repeat(valid, size)
    child = array.values.take(from_numpy(places.reshape(-1), pa.int64(), there))
    if child.null_count > int((~there).sum()):
        raise ValueError("an element of a vector is NULL")
    return pa.Array.from_buffers(
        child.type, len(child), [None, *child.buffers()[1:]], null_count=0, offset=child.offset
    )
