"""Which rows have equal values: whatever lies under a NULL, at any depth, and wherever the arrays begin."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.lsm.same_values import same_values

INNER = pa.struct([("a", pa.int32()), ("s", pa.string())])
KINDS = [
    pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.decimal128(30, 2), INNER, pa.list_(pa.int32()), pa.list_(INNER),
    pa.struct([("deep", INNER), ("l", pa.list_(pa.string()))]), pa.map_(pa.string(), INNER), pa.list_(pa.list_(pa.float32())),
]  # fmt: skip


def values(chance, kind, count):
    """An array in which nested values are NULL over parts that are not."""
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        mask = pa.array([chance.random() < 0.3 for _ in range(count)], pa.bool_())
        return pa.StructArray.from_arrays([values(chance, field.type, count) for field in fields], fields=fields, mask=mask)
    if pa.types.is_nested(kind):
        sizes = [chance.randrange(3) for _ in range(count)]
        mask = pa.array([chance.random() < 0.3 for _ in range(count)], pa.bool_())
        offsets = pa.array(np.cumsum([0, *sizes]), pa.int32())
        if pa.types.is_map(kind):
            keys = pa.array([f"k{at}" for size in sizes for at in range(size)], pa.string())
            return pa.MapArray.from_arrays(offsets, keys, values(chance, kind.item_type, sum(sizes)), type=kind, mask=mask)
        return pa.ListArray.from_arrays(offsets, values(chance, kind.value_type, sum(sizes)), type=kind, mask=mask)
    drawn = [chance.choice([None, 0, 1]) for _ in range(count)]
    return pa.array(drawn, pa.int8()).cast(pa.int64()).cast(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_equal_rows_are_those_whose_python_values_are_equal(kind, seed):
    chance = random.Random(seed)
    left, right = (values(chance, kind, 60).slice(chance.randrange(9)) for _ in range(2))
    left, right = (one.slice(0, min(len(left), len(right))) for one in (left, right))
    wanted = [one == other for one, other in zip(left.to_pylist(), right.to_pylist(), strict=True)]
    assert same_values(left, right).tolist() == wanted and True in wanted and False in wanted
    assert same_values(left, left).all()


def test_the_bits_of_floats_decide():
    nan, other = np.array([0x7FF8 << 48, 0xFFF8 << 48], np.uint64).view(np.float64)
    left, right = pa.array([0.0, nan, nan, 1.0]), pa.array([-0.0, nan, other, 1.0])
    assert same_values(left, right).tolist() == [False, True, False, True]
