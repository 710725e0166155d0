"""Unions of bitmaps and sketches that are stored as bytes: rbm32, rbm64, theta_sketch, hll_sketch.

Source: format.md §12.5; Java `FieldRoaringBitmap32Agg`, `FieldRoaringBitmap64Agg`, `FieldThetaSketchAgg`,
`FieldHllSketchAgg`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Mask, binary_array, from_numpy, validity_mask
from paimon_py.codec.roaring import union_32, union_64
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.lsm.aggregates.base import ADD_REVERSED, Fold
from paimon_py.lsm.aggregates.sketches import union_hll, union_theta
from paimon_py.spec.aggregate_rules import Aggregate

_UNIONS: dict[str, Callable[[Sequence[bytes]], bytes]] = {
    "rbm32": union_32,
    "rbm64": union_64,
    "theta_sketch": union_theta,
    "hll_sketch": union_hll,
}


def union(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The union of every group's values; a single value is kept unchanged, byte by byte.

    Cost: a loop over groups, and the unions of the library.
    Raises: SchemaError for bytes that are not such a bitmap or sketch; UnsupportedError if sketches are not installed.
    """
    steps = fold.steps
    steps = steps.only(steps.of(validity_mask(values)))
    rows = np.arange(steps.total) if steps.rows is None else steps.rows
    parts = values.take(from_numpy(rows, pa.int64())).to_pylist()
    older = np.zeros(len(rows), np.bool_) if steps.actions is None else steps.actions == ADD_REVERSED
    results: list[bytes | None] = []
    for start, end in zip(steps.starts.tolist(), steps.ends.tolist(), strict=True):
        if end - start < 2:
            results.append(parts[start] if end > start else None)
            continue
        try:
            results.append(_unite(_UNIONS[made.function], parts[start:end], older[start:end]))
        except UnsupportedError:
            raise
        except ValueError as error:
            name = made.field.name
            raise SchemaError(
                f"column {name!r} contains bytes that aggregate function {made.function} cannot read: {error}; write "
                "the bytes that Java's library serialises",
                fields=(name,),
            ) from error
    return binary_array(results, values.type)


def _unite(unite: Callable[[Sequence[bytes]], bytes], parts: Sequence[bytes], older: Mask) -> bytes:
    """Union parts in order, older ones placed before the state: some bytes depend on the order."""
    if not older[1:].any():
        return unite(parts)
    state = parts[0]
    for part, is_older in zip(parts[1:], older[1:].tolist(), strict=True):
        state = unite((part, state) if is_older else (state, part))
    return state
