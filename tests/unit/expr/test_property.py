"""Random predicates over random columns against a plain Python reading of what they mean."""

import datetime
import math
import re
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon_py.expr.arrays import arrow_type
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.predicate import And, Compare, In, IsNull, Not, Or, TextMatch
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.expr.split import split_conjuncts
from paimon_py.spec.types import Atomic, Field, Root

EPOCH = datetime.datetime.fromisoformat("1970-01-01")
TYPES = {
    "tiny": Atomic(Root.TINYINT),
    "big": Atomic(Root.BIGINT),
    "float": Atomic(Root.FLOAT),
    "double": Atomic(Root.DOUBLE),
    "dec": Atomic(Root.DECIMAL, precision=4, scale=2),
    "text": Atomic(Root.VARCHAR, length=99),
    "bytes": Atomic(Root.VARBINARY, length=99),
    "flag": Atomic(Root.BOOLEAN),
    "day": Atomic(Root.DATE),
    "ts": Atomic(Root.TIMESTAMP, precision=3),
    "nanos": Atomic(Root.TIMESTAMP, precision=9),
}
FIELDS = [Field(position, name, type_) for position, (name, type_) in enumerate(TYPES.items())]

float32s = st.floats(width=32)
moments = st.integers(-3_000, 3_000)
VALUES = {
    "tiny": st.integers(-128, 127) | st.integers(-3, 3),
    "big": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "float": float32s | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "double": st.floats() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("-inf")]),
    "dec": st.decimals(-99, 99, places=2) | st.integers(-3, 3).map(lambda n: Decimal(n).quantize(Decimal("0.01"))),
    "text": st.text(alphabet="ab%_\\\n\ufeff😀", max_size=4),
    "bytes": st.binary(max_size=2),
    "flag": st.booleans(),
    "day": st.integers(-3, 3),
    "ts": moments,
    "nanos": moments,
}
numbers = (
    st.integers(-5, 5)
    | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")])
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.floats(-3, 3)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-200, max_value=200)
)
microseconds = st.integers(-4_000_000, 4_000_000).map(lambda n: EPOCH + datetime.timedelta(microseconds=n))
nanoseconds = moments.map(lambda n: np.datetime64(n, "ns"))
days = st.integers(-4, 4).map(lambda n: EPOCH.date() + datetime.timedelta(days=n))
LITERALS = {
    "tiny": numbers,
    "big": numbers,
    "float": numbers,
    "double": numbers,
    "dec": numbers,
    "text": VALUES["text"],
    "bytes": VALUES["bytes"],
    "flag": st.booleans(),
    "day": days | microseconds,
    "ts": microseconds | nanoseconds | days,
    "nanos": microseconds | nanoseconds | days,
}


def leaves(name):
    column, literals = col(name), LITERALS[name]
    operators = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    choices = [
        st.builds(column._compare, operators, literals),
        st.builds(column.between, literals, literals),
        st.builds(column.isin, st.lists(literals | st.none(), max_size=4)),
        st.builds(column.not_in, st.lists(literals, max_size=4)),
        st.sampled_from([column.is_null(), column.is_not_null()]),
    ]
    if name == "text":
        choices.append(st.builds(column.like, st.text(alphabet="ab%_\\\n😀", max_size=5)))
        choices.append(st.builds(column.ilike, st.text(alphabet="aB%_\\\n😀", max_size=5)))
    if name in ("text", "bytes"):
        choices += [st.builds(test, literals) for test in (column.starts_with, column.ends_with, column.contains)]
    return st.one_of(choices)


def trees(names):
    return st.recursive(
        st.sampled_from(names).flatmap(leaves),
        lambda inner: (
            st.builds(lambda a, b: a & b, inner, inner)
            | st.builds(lambda a, b: a | b, inner, inner)
            | inner.map(lambda a: ~a)
        ),
        max_leaves=6,
    )


@st.composite
def cases(draw):
    names = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=2, unique=True))
    size = draw(st.integers(1, 8))
    columns = {name: draw(st.lists(VALUES[name] | st.none(), min_size=size, max_size=size)) for name in names}
    return columns, draw(trees(names))


def expected(predicate, row):
    """SQL's answer for one row: True, False or None."""
    if isinstance(predicate, Not):
        answer = expected(predicate.part, row)
        return None if answer is None else not answer
    if isinstance(predicate, (And, Or)):
        answers = [expected(part, row) for part in predicate.parts]
        decisive = isinstance(predicate, Or)
        return decisive if decisive in answers else None if None in answers else not decisive
    name = predicate.column.name
    value = row[name]
    if isinstance(predicate, IsNull):
        return (value is None) is not predicate.negated
    if value is None:
        return None
    if isinstance(predicate, TextMatch):
        return _text(predicate, value)
    key = _value_key(name, value)
    if isinstance(predicate, In):
        if any(_literal_key(name, literal) == key for literal in predicate.literals):
            return not predicate.negated
        return None if predicate.has_null else predicate.negated
    assert isinstance(predicate, Compare)
    other = _literal_key(name, predicate.literal)
    return {
        "==": key == other,
        "!=": key != other,
        "<": key < other,
        "<=": key <= other,
        ">": key > other,
        ">=": key >= other,
    }[predicate.operator]


def _text(predicate, value):
    pattern = getattr(predicate.pattern, "data", predicate.pattern)
    if predicate.test == "starts_with":
        return value.startswith(pattern)
    if predicate.test == "ends_with":
        return value.endswith(pattern)
    if predicate.test == "contains":
        return pattern in value
    regex = re.sub(
        r"\\(.)|(%)|(_)|(.)",
        lambda m: ".*" if m[2] else "." if m[3] else re.escape(m[1] or m[4]),
        pattern,
        flags=re.S,
    )
    return re.fullmatch(regex, value, re.S) is not None


def _value_key(name, value):
    if name in ("float", "double"):
        return _float_key(value)
    if name in ("tiny", "big", "dec"):
        return (0, Fraction(value))
    if name in ("day", "ts", "nanos"):
        return value * {"day": 86_400_000_000_000, "ts": 1_000_000, "nanos": 1}[name]
    return value.encode() if isinstance(value, str) else value


def _literal_key(name, literal):
    if name in ("float", "double"):
        number = float(getattr(literal, "text", literal))
        if name == "double" or not math.isfinite(number):
            return _float_key(number)
        try:
            return _float_key(struct.unpack("<f", struct.pack("<f", number))[0])
        except OverflowError:
            return (0, Fraction(number), 1)
    if name in ("tiny", "big", "dec"):
        if isinstance(literal, float) and not math.isfinite(literal):
            return (-1, 0) if literal < 0 else (1, 0)
        if name == "dec" and isinstance(literal, float) and not literal.is_integer():
            return (0, Fraction(repr(literal)))
        return (0, Fraction(getattr(literal, "text", literal)))
    if hasattr(literal, "days"):
        return literal.days * 86_400_000_000_000
    if hasattr(literal, "seconds"):
        return literal.seconds * 1_000_000_000 + literal.nanos
    data = getattr(literal, "data", literal)
    return data.encode() if isinstance(data, str) else data


def _float_key(value):
    if math.isnan(value):
        return (2, 0, 0)
    if math.isinf(value):
        return (1 if value > 0 else -1, 0, 0)
    return (0, Fraction(value), 0 if value == 0 and math.copysign(1, value) < 0 else 1)


def _arrays(columns):
    arrays = {}
    for name, values in columns.items():
        target = arrow_type(TYPES[name])
        arrays[name] = pa.array(values, target)
    return arrays


@settings(max_examples=200, deadline=None, derandomize=True)
@given(cases())
def test_evaluation_agrees_with_the_plain_reading(case):
    columns, predicate = case
    size = len(next(iter(columns.values())))
    wanted = [expected(predicate, {name: values[row] for name, values in columns.items()}) for row in range(size)]
    bound = bind(predicate, FIELDS)
    arrays = _arrays(columns)
    assert evaluate(bound, arrays).to_pylist() == [answer is True for answer in wanted]
    only, rest = split_conjuncts(bound, [next(iter(columns))])
    parts = [evaluate(part, arrays).to_pylist() for part in (only, rest) if part is not None]
    assert [all(flags) for flags in zip(*parts, strict=True)] == [answer is True for answer in wanted] or not parts


def _bounds(columns, cuts, trusted):
    """True bounds of the groups between the cuts; with NaN ignored if not trusted."""
    found = {}
    for name, values in columns.items():
        groups = [values[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
        lows, highs, nulls = [], [], []
        for group in groups:
            known = [value for value in group if value is not None]
            if not trusted and name in ("float", "double"):
                known = [value for value in known if not math.isnan(value)]
            lows.append(min(known, key=lambda value: _value_key(name, value), default=None))
            highs.append(max(known, key=lambda value: _value_key(name, value), default=None))
            nulls.append(sum(value is None for value in group))
        target = arrow_type(TYPES[name])
        counts = pa.array(nulls, pa.int64())
        found[name] = Bounds(
            min=pa.array(lows, target), max=pa.array(highs, target), null_count=counts, trusted_floats=trusted
        )
    return found


@st.composite
def small_cases(draw):
    name = draw(st.sampled_from(list(TYPES)))
    values = draw(st.lists(VALUES[name] | st.none(), min_size=1, max_size=3))
    leaf = draw(leaves(name))
    return {name: values}, ~leaf if draw(st.booleans()) else leaf


@settings(max_examples=300, deadline=None, derandomize=True)
@given(small_cases() | cases(), st.integers(0, 3), st.booleans())
def test_pruning_never_loses_a_group_with_a_match(case, cut, trusted):
    columns, predicate = case
    size = len(next(iter(columns.values())))
    cuts = [0, min(cut, size), size]
    rows = pa.array([end - start for start, end in zip(cuts, cuts[1:], strict=False)], pa.int64())
    kept = may_match(bind(predicate, FIELDS), _bounds(columns, cuts, trusted), rows)
    matches = [
        expected(predicate, {name: values[row] for name, values in columns.items()}) is True for row in range(size)
    ]
    for group, (start, end) in enumerate(zip(cuts, cuts[1:], strict=False)):
        assert kept[group] or not any(matches[start:end])
