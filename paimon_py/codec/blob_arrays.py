"""The BLOBs inside arrays of the types BLOB, ARRAY<BLOB> and MAP<K, BLOB>."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa


def flat_blobs(column: pa.Array) -> pa.Array:
    """The BLOBs of all rows, one after the other."""
    if pa.types.is_large_binary(column.type):
        return column
    first, last = _range(column)
    return (column.items if pa.types.is_map(column.type) else column.values).slice(first, last - first)


def replace_blobs(column: pa.Array, replace: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The array with other BLOBs; `replace` takes those of all rows, and returns the new ones, in order."""
    if pa.types.is_large_binary(column.type):
        return replace(column)
    first, last = _range(column)
    offsets = pa.array(column.offsets.to_numpy() - first, pa.int32(), mask=_null_offsets(column))
    blobs = replace(flat_blobs(column))
    if pa.types.is_map(column.type):
        return pa.MapArray.from_arrays(offsets, column.keys.slice(first, last - first), blobs, column.type)
    return pa.ListArray.from_arrays(offsets, blobs, column.type)


def _range(column: pa.Array) -> tuple[int, int]:
    """The positions of the first element of a list or map array, and of the one after the last."""
    length = len(column)
    return (column.offsets[0].as_py(), column.offsets[length].as_py()) if length else (0, 0)


def _null_offsets(column: pa.Array) -> np.ndarray | None:
    """The mask of offsets that stand for NULL, in the form that Arrow takes."""
    if not column.null_count:
        return None
    return np.append(column.is_null().to_numpy(zero_copy_only=False), False)
