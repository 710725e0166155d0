"""Questions to `scan.reach`: is reading a sorted run stopped early, and never too early?"""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.scan.reach import reach
from paimon_py.spec.types import Atomic, Field, Root

FIELDS = (Field(0, "k", Atomic(Root.INT)), Field(1, "v", Atomic(Root.INT)))


def beyond(predicate, first, fields=FIELDS, kind=None):
    test = reach(bind(predicate, fields), "k")
    return None if test is None else test(pa.record_batch({"k": pa.array([first], kind or pa.int32())}))


@pytest.mark.parametrize(
    ("predicate", "first", "expected"),
    [
        (col("k") < 5, 5, True),
        (col("k") < 5, 4, False),
        (col("k") <= 5, 5, False),
        (col("k") == 5, 6, True),
        (col("k").isin([1, 9]), 9, False),
        (col("k").isin([1, 9]), 10, True),
        (col("k").between(2, 4) & (col("v") == 1), 5, True),
        ((col("k") < 3) | (col("k") == 7), 7, False),
        ((col("k") < 3) | (col("k") == 7), 8, True),
    ],
)
def test_a_run_is_left_behind_its_last_possible_key(predicate, first, expected):
    assert beyond(predicate, first) is expected


@pytest.mark.parametrize("predicate", [col("k") > 5, col("v") == 1, (col("k") < 3) | (col("v") == 1), col("k") != 5])
def test_nothing_stops_where_no_upper_bound_is_known(predicate):
    assert beyond(predicate, 100) is None


def test_floats_are_compared_as_java_does():
    fields = (Field(0, "k", Atomic(Root.DOUBLE)),)
    assert beyond(col("k") <= -0.0, 0.0, fields, pa.float64()) is True
    assert beyond(col("k") == math.nan, math.nan, fields, pa.float64()) is False
    assert beyond(col("k") <= math.inf, math.nan, fields, pa.float64()) is True


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_no_row_behind_the_reach_matches(data):
    value = st.integers(-5, 5)
    leaf = st.one_of(
        value.map(lambda v: col("k") < v),
        value.map(lambda v: col("k") >= v),
        value.map(lambda v: col("k") == v),
        st.lists(value, min_size=1, max_size=3).map(lambda v: col("k").isin(v)),
        value.map(lambda v: col("v") > v),
    )
    tree = st.recursive(
        leaf,
        lambda inner: st.tuples(inner, inner, st.booleans()).map(lambda t: t[0] & t[1] if t[2] else t[0] | t[1]),
        max_leaves=5,
    )
    predicate = bind(data.draw(tree), FIELDS)
    test = reach(predicate, "k")
    rows = [(k, v) for k in range(-6, 7) for v in range(-6, 7)]
    batch = pa.record_batch(
        {"k": pa.array([k for k, _ in rows], pa.int32()), "v": pa.array([v for _, v in rows], pa.int32())}
    )
    for at, matches in enumerate(evaluate(predicate, batch).to_pylist()):
        assert not (matches and test is not None and test(batch.slice(at, 1)))
