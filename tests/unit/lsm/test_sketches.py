"""Columns of bitmaps and sketches, and what is no such thing."""

from __future__ import annotations

import random
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.lsm.aggregates import aggregator_of, sketches
from paimon_py.lsm.aggregates.base import ADD, ADD_REVERSED, CLEAR, Fold
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema


def united(function, values, starts, ends, codes=None):
    options = {"bucket": "1", "merge-engine": "aggregation", "fields.c.aggregate-function": function}
    spec = TableSpec(primary_keys=("id",), options=options)
    schema = new_table_schema(Schema([("id", "INT"), ("c", "BYTES")]), spec, time_millis=1)
    codes = codes or [ADD] * len(values)
    fold = Fold(np.array(starts), np.array(ends), np.array(codes, np.int8))
    return aggregator_of(schema, "c", function)(pa.array(values, pa.binary()), fold).to_pylist()


def test_bitmaps_of_a_group_are_merged_and_a_single_bitmap_is_unchanged():
    odd = b"no bitmap, but alone"
    one, two = BitMap([1, 2]).serialize(), BitMap([2, 70_000]).serialize()
    found = united("rbm32", [one, None, two, odd, None, None, one, two], [0, 3, 4, 6], [3, 4, 6, 8], [ADD] * 7 + [CLEAR])
    assert set(BitMap.deserialize(found[0])) == {1, 2, 70_000}
    assert found[1:] == [odd, None, None]


@pytest.mark.parametrize("function", ["rbm32", "rbm64", "theta_sketch", "hll_sketch"])
def test_bytes_of_something_else_name_column_and_function(function):
    if function.endswith("sketch"):
        pytest.importorskip("datasketches")
    with pytest.raises(SchemaError, match=f"column 'c' contains bytes that aggregate function {function} cannot read"):
        united(function, [b"just some text", b"and another"], [0], [2])


def test_sketches_are_united_like_the_library_does():
    datasketches = pytest.importorskip("datasketches")
    rng = random.Random(7)
    parts, whole = [], set()
    for _ in range(5):
        sketch = datasketches.update_theta_sketch()
        for value in rng.sample(range(50_000), 9_000):
            sketch.update(value)
            whole.add(value)
        parts.append(sketch.compact().serialize())
    (found,) = united("theta_sketch", parts, [0], [5], [ADD, ADD_REVERSED, ADD, ADD, ADD_REVERSED])
    union = datasketches.theta_union()
    for part in parts:
        union.update(datasketches.compact_theta_sketch.deserialize(part))
    estimate = datasketches.compact_theta_sketch.deserialize(found).get_estimate()
    assert estimate == union.get_result().get_estimate()
    assert abs(estimate - len(whole)) < 0.1 * len(whole)


def test_sketches_without_their_package_say_how_to_get_it(monkeypatch):
    sketches._library.cache_clear()
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'paimon-py\[sketches\]'"):
        united("hll_sketch", [b"a", b"b"], [0], [2])
    assert united("hll_sketch", [b"a", None], [0], [2]) == [b"a"]
    monkeypatch.undo()
    sketches._library.cache_clear()
