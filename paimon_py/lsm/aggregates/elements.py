"""Splits ARRAY and MAP values into elements, and assembles them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import (
    Ints,
    Mask,
    child_range,
    from_numpy,
    ranges,
    validity_bitmap,
)
from paimon_py.lsm.aggregates.base import RETRACT, Actions, Steps


class Elements(NamedTuple):
    """The elements of all steps, one after the other.

    `rows`: their position in the child of the values. `steps`, `groups`: the step and group of each. `actions`: the
    action of its step; None if all are ADD.
    """

    rows: Ints
    steps: Ints
    groups: Ints
    actions: Actions | None


def elements_of(values: pa.Array, steps: Steps) -> Elements:
    """The elements in the values of the steps; a null has no elements."""
    sizes, index, first, _ = child_range(values)
    starts = np.cumsum(sizes) - sizes
    rows = np.arange(steps.total) if steps.rows is None else steps.rows
    own = ranges(starts[rows], sizes[rows])
    own = own + first if index is None else index[own]
    step = np.repeat(np.arange(len(rows)), sizes[rows])
    return Elements(own, step, steps.groups()[step], None if steps.actions is None else steps.actions[step])


def rebuilt(kind: pa.DataType, children: Sequence[pa.Array], rows: Ints, counts: Ints, valid: Mask | None) -> pa.Array:
    """Lists (one child) or maps (keys, items) of the elements at `rows`, with `counts` elements each, in order."""
    index = from_numpy(rows, pa.int64())
    taken = [child.take(index) for child in children]
    return assemble(kind, taken, counts, valid)


def assemble(kind: pa.DataType, children: Sequence[pa.Array], counts: Ints, valid: Mask | None) -> pa.Array:
    """Lists (one child) or maps (keys, items) of all the elements, with `counts` elements each.

    Raises: OverflowError if there are more than 32-bit offsets can address.
    """
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    if int(offsets[-1]) > 0x7FFF_FFFF:
        raise OverflowError(f"{int(offsets[-1])} elements do not fit into one {kind} array")
    if pa.types.is_map(kind):
        child = pa.StructArray.from_arrays(children, fields=[kind.key_field, kind.item_field])
    else:
        child = children[0]
    bitmap, nulls = validity_bitmap(valid)
    buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(kind, len(counts), buffers, null_count=nulls, children=[child])


def has_value(steps: Steps, present: Mask) -> Mask:
    """A mask of the groups that have a step whose value adds something: their result is not null."""
    wanted = steps.of(present)
    if steps.actions is not None:
        wanted = wanted & (steps.actions != RETRACT)
    found = np.zeros(len(steps.starts), np.bool_)
    found[steps.groups()[wanted]] = True
    return found
