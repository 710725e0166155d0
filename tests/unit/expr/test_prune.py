"""Pruning from bounds: what is excluded, and what must never be."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import Constant
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.spec.types import ArrayType, Atomic, Field, Root, RowType

NAN = float("nan")
INT = Atomic(Root.INT)
FIELDS = [
    Field(0, "i", INT),
    Field(1, "s", Atomic(Root.VARCHAR, length=99)),
    Field(2, "d", Atomic(Root.DOUBLE)),
    Field(3, "row", RowType((Field(4, "x", INT),))),
    Field(5, "list", ArrayType(INT)),
    Field(6, "dec", Atomic(Root.DECIMAL, precision=20, scale=2)),
    Field(7, "flag", Atomic(Root.BOOLEAN)),
    Field(8, "b", Atomic(Root.VARBINARY, length=99)),
]


def kept(predicate, name, pairs, nulls=None, rows=10, **more):
    types = {"i": pa.int32(), "s": pa.string(), "d": pa.float64(), "flag": pa.bool_(), "b": pa.binary()}
    kind = types.get(name, pa.null())
    low, high = pa.array([a for a, _ in pairs], kind), pa.array([b for _, b in pairs], kind)
    counts = None if nulls is None else pa.array(nulls, pa.int64())
    bounds = {name: Bounds(min=low, max=high, null_count=counts, **more)}
    found = may_match(bind(predicate, FIELDS), bounds, pa.array([rows] * len(pairs), pa.int64()))
    assert found.dtype == np.bool_
    return np.flatnonzero(found).tolist()


INTS = [(1, 5), (6, 6), (7, 9), (None, None), (None, 3), (8, None)]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("i") == 6, [1, 3]),
        (col("i") == 2, [0, 3, 4]),
        (col("i") < 6, [0, 3, 4]),
        (col("i") <= 6, [0, 1, 3, 4]),
        (col("i") > 6, [2, 3, 5]),
        (col("i") >= 6.5, [2, 3, 5]),
        (col("i") != 6, [0, 2, 3, 4, 5]),
        (col("i").isin([0, 6, 100]), [1, 3, 4, 5]),
        (col("i").not_in([6, 7]), [0, 2, 3, 4, 5]),
        (col("i").isin([10**12, 0.5]), []),
        (col("i").between(3, 6), [0, 1, 3, 4]),
        ((col("i") < 2) | (col("i") > 8), [0, 2, 3, 4, 5]),
        ((col("i") < 2) & (col("s") == "x"), [0, 3, 4]),
        (~((col("i") >= 2) | (col("s") == "x")), [0, 3, 4]),
    ],
)
def test_unknown_bounds_are_kept_and_known_ones_decide(predicate, expected):
    found = kept(predicate, "i", INTS)
    assert found == expected


def test_null_counts_decide_even_without_bounds():
    pairs = [(None, None)] * 4
    nulls = [10, 0, None, 5]
    assert kept(col("i") == 1, "i", pairs, nulls) == [1, 2, 3]
    assert kept(col("i") != 1, "i", pairs, nulls) == [1, 2, 3]
    assert kept(col("i").is_not_null(), "i", pairs, nulls) == [1, 2, 3]
    assert kept(col("i").is_null(), "i", pairs, nulls) == [0, 2, 3]
    assert kept(col("i").is_null(), "i", pairs) == [0, 1, 2, 3]
    assert kept(col("list").is_not_null(), "list", pairs, nulls) == [1, 2, 3]
    assert kept(col("row", "x") == 1, "row", pairs, nulls) == [1, 2, 3]
    assert kept(col("row", "x").is_null(), "row", pairs, nulls) == [0, 1, 2, 3]


def test_text_tests_use_ranges_of_prefixes():
    pairs = [("a", "az"), ("b", "bz"), ("a", "c"), (None, None), ("ba", "bb"), ("hello world this", "hello world thit")]
    assert kept(col("s").starts_with("b"), "s", pairs) == [1, 2, 3, 4]
    assert kept(col("s").starts_with("bz"), "s", pairs) == [1, 2, 3]
    assert kept(~col("s").starts_with("b"), "s", pairs) == [0, 2, 3, 5]
    assert kept(col("s").like("b_%x"), "s", pairs) == [1, 2, 3, 4]
    assert kept(col("s").like("%b"), "s", pairs) == [0, 1, 2, 3, 4, 5]
    assert kept(~col("s").like("b_%x"), "s", pairs) == [0, 1, 2, 3, 4, 5]
    assert kept(col("s") == "hello world this is long", "s", pairs) == [3, 5]
    assert kept(col("s").isin(["bab", "zz", ""]), "s", pairs) == [1, 2, 3, 4]
    assert kept(col("b").starts_with(b"\xff"), "b", [(b"\x00", b"\xfe"), (b"\x00", b"\xff\xff"), (None, None)]) == [
        1,
        2,
    ]


FLOATS = [(1.0, 2.0), (0.0, 0.0), (-0.0, -0.0), (NAN, NAN), (1.0, NAN), (None, None)]


@pytest.mark.parametrize(
    ("predicate", "trusted", "untrusted"),
    [
        (col("d") == 1.5, [0, 3, 4, 5], [0, 3, 4, 5]),
        (col("d") < 0.0, [1, 2, 3, 5], [1, 2, 3, 5]),
        (col("d") == -0.0, [1, 2, 3, 5], [1, 2, 3, 5]),
        (col("d") > -0.0, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d") > 2.0, [3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d") >= 0.5, [0, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d") != 0.0, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d") == NAN, [3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d") != NAN, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d").isin([5.0, 1.0]), [0, 3, 4, 5], [0, 3, 4, 5]),
        (col("d").isin([-0.0, 9.0]), [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        (col("d").isin([5.0, NAN]), [3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d").isin([NAN, NAN]), [3, 4, 5], [0, 1, 2, 3, 4, 5]),
        (col("d").not_in([5.0, NAN]), [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_float_bounds_beside_nan_and_zeros(predicate, trusted, untrusted):
    assert kept(predicate, "d", FLOATS, trusted_floats=True) == trusted
    assert kept(predicate, "d", FLOATS) == untrusted
    each = np.array([True] * 3 + [False] * 3)
    assert kept(predicate, "d", FLOATS, trusted_floats=each) == sorted(
        {row for row in trusted if row < 3} | {row for row in untrusted if row >= 3}
    )


def test_booleans_and_decimals_prune():
    assert kept(~col("flag"), "flag", [(True, True), (False, True), (None, None)]) == [1, 2]
    assert kept(col("flag").isin([True, False]), "flag", [(True, True), (False, True), (None, None)]) == [0, 1, 2]
    kind = pa.decimal128(20, 2)
    low = pa.array([Decimal("1.00"), Decimal("-5.00")], kind)
    high = pa.array([Decimal("2.00"), Decimal("-1.00")], kind)
    bounds = {"dec": Bounds(min=low, max=high)}
    rows = pa.array([1, 1], pa.int64())
    assert may_match(bind(col("dec") > 0, FIELDS), bounds, rows).tolist() == [True, False]
    assert may_match(bind(col("dec").isin([-3, 7]), FIELDS), bounds, rows).tolist() == [False, True]


def test_columns_without_bounds_constants_and_empty_input():
    rows = pa.array([1, 1], pa.int64())
    assert may_match(bind(col("i") == 1, FIELDS), {}, rows).tolist() == [True, True]
    assert may_match(Constant(False), {}, rows).tolist() == [False, False]
    assert kept(col("i") == 1, "i", []) == []
    assert kept(col("i").isin([1, 2]), "i", []) == []
    assert kept(col("d").isin([1, 2]), "d", []) == []
    assert kept(col("i") == 1, "i", [(1, 1)], nulls=[0], rows=0) == []
    with pytest.raises(ValueError, match="not bound"):
        may_match(~(col("i") == 1), {}, rows)


def test_sliced_bounds_are_read_at_their_offset():
    low = pa.array([9, 9, 9, 1, None, 5], pa.int32()).slice(3)
    bounds = {"i": Bounds(min=low, max=low, null_count=pa.array([7, 0, 0, 10], pa.int64()).slice(1))}
    rows = pa.array([0, 10, 10, 10], pa.int64()).slice(1)
    assert may_match(bind(col("i") >= 4, FIELDS), bounds, rows).tolist() == [False, True, False]
    assert may_match(bind(col("i").isin([1, 5, 6]), FIELDS), bounds, rows).tolist() == [True, True, False]
