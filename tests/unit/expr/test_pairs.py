"""Columns compared with columns: every pair of types against a plain Python reading, and what is refused."""

import math
import pickle
import struct
from decimal import Decimal
from fractions import Fraction

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.errors import UsageError
from paimon_py.expr.arrays import arrow_type
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import CompareColumns, Constant, Predicate
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.expr.references import columns_of
from paimon_py.expr.split import split_conjuncts, translate
from paimon_py.expr.sql import parse_where
from paimon_py.spec.types import Atomic, Field, Root, RowType

FAMILIES = [
    [Atomic(Root.TINYINT), Atomic(Root.SMALLINT), Atomic(Root.INT), Atomic(Root.BIGINT), Atomic(Root.FLOAT), Atomic(Root.DOUBLE),
     Atomic(Root.DECIMAL, precision=4, scale=2), Atomic(Root.DECIMAL, precision=38, scale=10), Atomic(Root.DECIMAL, precision=38, scale=38)],
    [Atomic(Root.CHAR, length=4), Atomic(Root.VARCHAR, length=9)],
    [Atomic(Root.BINARY, length=2), Atomic(Root.VARBINARY, length=9)],
    [Atomic(Root.DATE), *(Atomic(Root.TIMESTAMP, precision=digits) for digits in (0, 3, 6, 9))],
    [Atomic(Root.TIMESTAMP_LTZ, precision=3), Atomic(Root.TIMESTAMP_LTZ, precision=9)],
    [Atomic(Root.TIME, precision=3)],
    [Atomic(Root.BOOLEAN)],
]  # fmt: skip
BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}
UNITS = {0: 1, 3: 10**3, 6: 10**6, 9: 10**9}
OPERATORS = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
FLOATS = (Root.FLOAT, Root.DOUBLE)
SPECIAL = [0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 2.0**63, -(2.0**63), 2.0**53]


def values(kind):
    """Stored values: units since 1970 for dates and timestamps, else plain ones."""
    if kind.root in BITS:
        half = 1 << (BITS[kind.root] - 1)
        edges = [value for value in (half - 1, -half, 2**53 + 1, 2**53, 0, 1) if -half <= value < half]
        return st.integers(-half, half - 1) | st.integers(-3, 3) | st.sampled_from(edges)
    if kind.root in FLOATS:
        width = 32 if kind.root is Root.FLOAT else 64
        return st.floats(width=width) | st.floats(-3, 3, width=width) | st.integers(-3, 3).map(float) | st.sampled_from(SPECIAL)
    if kind.root is Root.DECIMAL:
        whole = 10 ** (kind.precision - kind.scale)
        near = st.integers(-min(3, whole - 1), min(3, whole - 1)).map(lambda n: n * 10**kind.scale)
        units = st.integers(1 - 10**kind.precision, 10**kind.precision - 1) | near | st.just(10 ** max(kind.scale - 1, 0))
        return units.map(lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -kind.scale)))
    if kind.root in (Root.CHAR, Root.VARCHAR):
        return st.text(alphabet="ab \ufeff😀", max_size=3)
    if kind.root is Root.BINARY:
        return st.binary(min_size=2, max_size=2)
    if kind.root is Root.VARBINARY:
        return st.binary(max_size=2)
    if kind.root is Root.BOOLEAN:
        return st.booleans()
    if kind.root is Root.TIME:
        return st.integers(0, 86_399_999) | st.integers(0, 2)
    days = st.integers(-3, 3) | st.integers(-100_000, 100_000)
    if kind.root is Root.DATE:
        return days
    unit = UNITS[kind.precision]
    far = st.integers(-(2**63), 2**63 - 1) if kind.precision else st.integers(-(10**11), 10**11)
    return days.filter(lambda n: abs(n) < 3).map(lambda n: n * 86_400 * unit) | far | st.integers(-3, 3)


def key(value, kind, other):
    """Something Python orders as the values of both kinds are ordered together."""
    if kind.root in FLOATS:
        return float_key(value)
    if other.root in FLOATS and kind.root is Root.DECIMAL:
        nearest = float(value)
        return float_key(struct.unpack("<f", struct.pack("<f", shortened(value)))[0] if other.root is Root.FLOAT else nearest)
    if kind.root in BITS or kind.root is Root.DECIMAL:
        return (0, Fraction(value), 1)
    if kind.root is Root.DATE:
        return value * 86_400 * 10**9
    if kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
        return value * (10**9 // UNITS[kind.precision])
    return value.encode() if isinstance(value, str) else value


def shortened(value):
    """A double that rounds to the float nearest to a decimal: itself, unless it lies on the border of two floats."""
    double = float(value)
    low = struct.unpack("<f", struct.pack("<f", double))[0]
    if Fraction(double) == Fraction(value) or Fraction(double) == Fraction(low):
        return double
    return math.nextafter(double, math.inf if Fraction(value) > Fraction(double) else -math.inf)


def float_key(value):
    if math.isnan(value):
        return (2, 0, 0)
    if math.isinf(value):
        return (1 if value > 0 else -1, 0, 0)
    return (0, Fraction(value), 0 if value == 0 and math.copysign(1, value) < 0 else 1)


def array(given, kind):
    target = arrow_type(kind)
    if kind.root in (Root.DATE, Root.TIME):
        return pa.array(given, pa.int32()).view(target)
    return pa.array(given, pa.int64()).view(target) if pa.types.is_timestamp(target) else pa.array(given, target)


@st.composite
def cases(draw):
    family = draw(st.sampled_from(FAMILIES))
    left, right = draw(st.sampled_from(family)), draw(st.sampled_from(family))
    size = draw(st.integers(1, 6))
    columns = [draw(st.lists(values(kind) | st.none(), min_size=size, max_size=size)) for kind in (left, right)]
    predicate = CompareColumns(col("a")._ref, draw(st.sampled_from(list(OPERATORS))), col("b")._ref)
    return (left, right), columns, predicate, draw(st.booleans())


def expected(case):
    (left, right), columns, predicate, negated = case
    holds = OPERATORS[predicate.operator]
    return [
        a is not None and b is not None and holds(key(a, left, right), key(b, right, left)) is not negated
        for a, b in zip(*columns, strict=True)
    ]


def bound_of(case):
    (left, right), _, predicate, negated = case
    return bind(~predicate if negated else predicate, [Field(0, "a", left), Field(1, "b", right)])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(cases())
def test_pairs_of_columns_compare_as_their_values_do(case):
    kinds, columns, _, _ = case
    arrays = {name: array(column, kind) for name, column, kind in zip("ab", columns, kinds, strict=True)}
    assert evaluate(bound_of(case), arrays).to_pylist() == expected(case)
    padded = {name: pa.concat_arrays([column[:1], column]).slice(1) for name, column in arrays.items()}
    assert evaluate(bound_of(case), padded).to_pylist() == expected(case)
    coded = {name: column.dictionary_encode() for name, column in arrays.items()}
    assert evaluate(bound_of(case), coded).to_pylist() == expected(case)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(cases(), st.booleans(), st.booleans())
def test_pruning_by_two_ranges_never_loses_a_match(case, trusted, other_trusted):
    kinds, columns, _, _ = case
    bounds = {}
    for name, column, kind, trust in zip("ab", columns, kinds, (trusted, other_trusted), strict=True):
        known = [value for value in column if value is not None]
        known = [value for value in known if trust or kind.root not in FLOATS or not math.isnan(value)]
        ends = [pick(known, key=lambda value, kind=kind: key(value, kind, kind), default=None) for pick in (min, max)]
        low, high = (array([end], kind) for end in ends)
        nulls = pa.array([len(column) - len([value for value in column if value is not None])])
        bounds[name] = Bounds(min=low, max=high, null_count=nulls, trusted_floats=trust)
    rows = pa.array([len(columns[0])])
    assert may_match(bound_of(case), bounds, rows)[0] or not any(expected(case))
    assert may_match(bound_of(case), {"a": bounds["a"]}, rows)[0] or not any(expected(case))


def ranged(*ranges):
    low, high = ([ends[side] for ends in ranges] for side in (0, 1))
    return Bounds(min=pa.array(low, pa.int64()), max=pa.array(high, pa.int64()), null_count=pa.array([0] * len(ranges)))


@pytest.mark.parametrize(("text", "may"), [
    ("a < b", [True, False, True]), ("a <= b", [True, False, True]), ("a > b", [False, True, False]),
    ("a = b", [False, False, True]), ("a != b", [True, True, False]), ("NOT a >= b", [True, False, True]),
])  # fmt: skip
def test_ranges_that_lie_apart_decide(text, may):
    bounds = {"a": ranged((1, 2), (5, 9), (3, 3)), "b": ranged((3, 4), (1, 4), (3, 3 if "!=" in text else 9))}
    fields = [Field(0, "a", Atomic(Root.BIGINT)), Field(1, "b", Atomic(Root.BIGINT))]
    assert may_match(bind(parse_where(text), fields), bounds, pa.array([5, 5, 5])).tolist() == may


ROW = RowType((Field(5, "x", Atomic(Root.INT)),))
FIELDS = [
    Field(0, "a", Atomic(Root.INT)), Field(1, "b", Atomic(Root.BIGINT)), Field(2, "t", Atomic(Root.VARCHAR, length=9)),
    Field(3, "d", Atomic(Root.DATE)), Field(4, "z", Atomic(Root.TIMESTAMP_LTZ, precision=3)), Field(6, "r", ROW),
    Field(7, "blob", Atomic(Root.BLOB)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), [
    ("a = t", "INT.*VARCHAR"), ("t > d", "VARCHAR.*DATE"), ("d < z", "DATE.*TIMESTAMP.*time zone"), ("a = r", "ROW.*no order"),
    ("blob = blob", "BLOB.*no order"), ("a = nobody", "column 'nobody' does not exist.*single quotes"), ('t = "nut"', "single quotes"),
    ("nobody = a", "column 'nobody' does not exist"), ("a BETWEEN b AND t", "INT.*VARCHAR"), ("r.x = r.y", "field 'y' of r does not exist"),
])  # fmt: skip
def test_columns_that_have_no_order_together_are_refused_by_name(text, words):
    with pytest.raises(UsageError, match=words):
        bind(parse_where(text), FIELDS)


def test_text_and_python_say_the_same_and_survive_pickling_and_printing():
    predicate = (col("a") < col("b")) & ~(col("r", "x") == col("a")) | (col("b") >= col("a"))
    assert parse_where("a < b AND NOT r.x = a OR b >= a") == predicate
    assert eval(repr(predicate), {"col": col}) == predicate
    assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(predicate), type=Predicate) == predicate
    assert parse_where("a BETWEEN r.x AND 7") == col("a").between(col("r", "x"), 7)
    assert columns_of(predicate) == {"a", "b", "r"}


def test_a_column_beside_itself_says_only_whether_it_is_there():
    assert bind(parse_where("a <= a"), FIELDS) == bind(col("a").is_not_null(), FIELDS)
    assert bind(parse_where("NOT a = a"), FIELDS) == Constant(False)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(("right", "same"), [("b", [True, False, False, False, True]), ("1", [True, False, True, False, False]), ("NULL", [False, True, False, False, True])])
def test_distinct_takes_null_for_a_value(right, same, negated):
    arrays = {"a": pa.array([1, None, 1, 2, None], pa.int32()), "b": pa.array([1, 2, None, 3, None], pa.int64())}
    predicate = parse_where(f"a IS {'NOT ' if negated else ''}DISTINCT FROM {right}")
    assert evaluate(bind(predicate, FIELDS), arrays).to_pylist() == [each is negated for each in same]
    assert evaluate(bind(~predicate, FIELDS), arrays).to_pylist() == [each is not negated for each in same]
    value = {"b": col("b"), "1": 1, "NULL": None}[right]
    assert predicate == (~col("a").is_distinct_from(value) if negated else col("a").is_distinct_from(value))


def test_pairs_are_split_and_translated_like_other_conditions():
    bound = bind(parse_where("(a < b AND t = 'x') OR (a = 1 AND b = 2)"), FIELDS)
    only, rest = split_conjuncts(bound, ["a", "b"])
    assert only == bind(parse_where("a < b OR (a = 1 AND b = 2)"), FIELDS)
    assert rest == bound
    older = [Field(0, "old", Atomic(Root.SMALLINT)), Field(1, "b", Atomic(Root.BIGINT))]
    assert translate(bind(parse_where("a < b"), FIELDS), older) == bind(parse_where("old < b"), older)
    assert translate(bind(parse_where("a < r.x"), FIELDS), older) == Constant(True)
    assert translate(bind(parse_where("a < b"), FIELDS), [older[0], Field(1, "b", Atomic(Root.VARCHAR, length=3))]) == Constant(True)
