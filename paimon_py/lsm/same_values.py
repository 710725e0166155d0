"""Compares the values of rows, column by column, like a comparison of their bytes.

NULL equals NULL, NaN equals NaN with the same bits, and −0.0 differs from 0.0. Entries of maps are compared in order.

Source: Java `InternalRowSerializer.toBinaryRow`, compared by `IncrementalDiffSplitRead` and changelog producers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.lsm.sort_encoding import combine_chunks


def same_values(left: pa.Array, right: pa.Array) -> Mask:
    """A mask of the slots in which two arrays of one type and length have the same value.

    Cost: a comparison of Arrow; nested values are compared level by level.
    """
    in_left, in_right = validity_mask(left), validity_mask(right)
    both: Mask = in_left & in_right
    found: Mask = in_left == in_right
    kind = left.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            inner = same_values(pc.struct_field(left, [index]), pc.struct_field(right, [index]))
            found &= inner
    elif pa.types.is_nested(kind):
        rows = np.flatnonzero(both)
        found[rows] = _same_lists(left, right, rows)
    else:
        found[both] = numpy_values(pc.equal(_bits(left), _bits(right)).filter(from_numpy(both, pa.bool_())))
    return found


def _same_lists(left: pa.Array, right: pa.Array, rows: Ints) -> Mask:
    """A mask of the given rows, none NULL, in which two list or map columns have the same items in the same order."""
    one, other = (as_list(side) for side in (left, right))
    places = from_numpy(rows, pa.int64())
    sizes, others = (numpy_values(pc.list_value_length(side.take(places))) for side in (one, other))
    found: Mask = sizes == others
    alike = np.flatnonzero(found & (sizes > 0))
    if not len(alike):
        return found
    places = from_numpy(rows[alike], pa.int64())
    items = same_values(combine_chunks(one.take(places).flatten()), combine_chunks(other.take(places).flatten()))
    starts = np.cumsum(sizes[alike]) - sizes[alike]
    found[alike] = np.logical_and.reduceat(items, starts)
    return found


def as_list(column: pa.Array) -> pa.Array:
    """A map as a list of its entries."""
    if not pa.types.is_map(column.type):
        return column
    key = pa.field("key", column.type.key_type, nullable=False)
    entry = pa.struct([key, column.type.item_field.with_name("value")])
    return column.cast(pa.list_(pa.field("entries", entry, nullable=False)))


def _bits(column: pa.Array) -> pa.Array:
    if pa.types.is_float32(column.type):
        return column.view(pa.int32())
    return column.view(pa.int64()) if pa.types.is_float64(column.type) else column
