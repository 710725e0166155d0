"""Binding: columns found, literals fitted to their column, negation pushed down."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.errors import UsageError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.literal import DateValue, DecimalValue, TimestampValue, TimeValue
from paimon_py.expr.predicate import And, Compare, Constant, In, IsNull, Or, TextMatch
from paimon_py.spec.types import ArrayType, Atomic, Field, MapType, Root, RowType

INT = Atomic(Root.INT)
TYPES = {
    "flag": Atomic(Root.BOOLEAN),
    "tiny": Atomic(Root.TINYINT),
    "int": INT,
    "big": Atomic(Root.BIGINT),
    "float": Atomic(Root.FLOAT),
    "double": Atomic(Root.DOUBLE),
    "dec": Atomic(Root.DECIMAL, precision=10, scale=2),
    "wide": Atomic(Root.DECIMAL, precision=38, scale=10),
    "text": Atomic(Root.VARCHAR, length=100),
    "char": Atomic(Root.CHAR, length=5),
    "bytes": Atomic(Root.VARBINARY, length=100),
    "day": Atomic(Root.DATE),
    "time": Atomic(Root.TIME, precision=3),
    "ts3": Atomic(Root.TIMESTAMP, precision=3),
    "ts9": Atomic(Root.TIMESTAMP, precision=9),
    "ltz": Atomic(Root.TIMESTAMP_LTZ, precision=6),
    "list": ArrayType(INT),
    "map": MapType(INT, INT),
    "row": RowType((Field(100, "x", INT), Field(101, "inner", RowType((Field(102, "y", INT),))))),
    "variant": Atomic(Root.VARIANT),
}
FIELDS = [Field(position, name, type_) for position, (name, type_) in enumerate(TYPES.items())]
NEVER = Constant(False)
NOT_NULL = "not null"

noon = datetime.datetime.fromisoformat("2024-01-02T12:00:00")
midnight = datetime.datetime.fromisoformat("2024-01-02")
utc_midnight = midnight.replace(tzinfo=datetime.timezone.utc)
DAY = DateValue(19724)
SECONDS = 19724 * 86_400
FLOAT_MAX = float(np.finfo(np.float32).max)


def short(predicate):
    """A bound leaf as (operator, literal), Constant, or NOT_NULL."""
    if isinstance(predicate, Compare):
        return predicate.operator, predicate.literal
    if isinstance(predicate, IsNull) and predicate.negated:
        return NOT_NULL
    return predicate


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (col("int") < 2.5, ("<=", 2)),
        (col("int") > Decimal("2.5"), (">", 2)),
        (col("int") >= -2.5, (">", -3)),
        (col("int") == 2.5, NEVER),
        (col("int") != 2.5, NOT_NULL),
        (col("int") == 2.0, ("==", 2)),
        (col("tiny") == 1000, NEVER),
        (col("tiny") < 1000, NOT_NULL),
        (col("tiny") <= 127.5, ("<=", 127)),
        (col("tiny") > -129, NOT_NULL),
        (col("tiny") < -128.5, NEVER),
        (col("big") < 2**63, NOT_NULL),
        (col("big") > 10**5000, NEVER),
        (col("big") < float("nan"), NOT_NULL),
        (col("big") == float("inf"), NEVER),
        (col("big") >= float("-inf"), NOT_NULL),
        (col("big") == Decimal("1e999999999"), NEVER),
        (col("big") > Decimal("-1e-999999999"), (">", -1)),
        (col("dec") == 0.1, ("==", DecimalValue("0.10"))),
        (col("dec") == Decimal("0.105"), NEVER),
        (col("dec") > Decimal("0.105"), (">", DecimalValue("0.10"))),
        (col("dec") <= 99999999.99, ("<=", DecimalValue("99999999.99"))),
        (col("dec") < 100_000_000, NOT_NULL),
        (col("wide") == Decimal("1.5"), ("==", DecimalValue("1.5000000000"))),
        (col("float") == 0.1, ("==", float(np.float32(0.1)))),
        (col("float") < 1e39, ("<=", FLOAT_MAX)),
        (col("float") >= -1e39, (">=", -FLOAT_MAX)),
        (col("float") == 1e39, NEVER),
        (col("double") > 10**400, (">=", float("inf"))),
        (col("double") == 5, ("==", 5.0)),
        (col("double") > float("nan"), NEVER),
        (col("double") <= float("nan"), NOT_NULL),
        (col("day") == midnight, ("==", DAY)),
        (col("day") == noon, NEVER),
        (col("day") < noon, ("<=", DAY)),
        (col("day") == np.datetime64("2024-01-02T00:00:00.000000001"), NEVER),
        (col("day") < midnight.replace(microsecond=1), ("<=", DAY)),
        (col("day") == "2024-01-02", ("==", DAY)),
        (col("time") < datetime.time(0, 0, 0, 1500), ("<=", TimeValue(1_000_000))),
        (col("time") == "00:00:01", ("==", TimeValue(1_000_000_000))),
        (col("ts3") == datetime.date(2024, 1, 2), ("==", TimestampValue(SECONDS, 0))),
        (col("ts3") == np.datetime64("2024-01-02T00:00:00.000000001"), NEVER),
        (col("ts3") > np.datetime64(-1, "ns"), (">", TimestampValue(-1, 999_000_000))),
        (col("ts9") == pa.scalar(-1, pa.timestamp("ns")), ("==", TimestampValue(-1, 999_999_999))),
        (col("ts9") < datetime.datetime.fromisoformat("9999-12-31"), NOT_NULL),
        (col("ltz") == midnight, ("==", TimestampValue(SECONDS, 0, True))),
        (col("ltz") == utc_midnight, ("==", TimestampValue(SECONDS, 0, True))),
        (col("ltz") == "2024-01-02 01:00+01:00", ("==", TimestampValue(SECONDS, 0, True))),
        (col("char") == "ab", ("==", "ab")),
        (col("int").isin([]), NEVER),
        (col("int").not_in([]), NOT_NULL),
        (col("int").isin([None]), NEVER),
        (col("int").not_in([1, None]), NEVER),
        (col("int").isin([1, 2.5, None]), ("==", 1)),
        (~col("int").isin([1, 2.5]), ("!=", 1)),
        (~(col("int") == 2.5), NOT_NULL),
        (~(col("int") != 2.5), NEVER),
        (~(col("int") < 2.5), (">", 2)),
        (~col("flag"), ("==", False)),
        (~col("int").is_null(), NOT_NULL),
        (col("text").starts_with(""), NOT_NULL),
        (~col("text").contains(""), NEVER),
        (col("text").like("%%"), NOT_NULL),
        (col("text").like("a\\%b"), ("==", "a%b")),
        (~col("text").like("ab"), ("!=", "ab")),
    ],
)
def test_literals_are_fitted_without_changing_the_answer(predicate, expected):
    assert short(bind(predicate, FIELDS)) == expected


@pytest.mark.parametrize(
    ("pattern", "test", "plain"),
    [("a%", "starts_with", "a"), ("%\\_", "ends_with", "_"), ("%a%%", "contains", "a"), ("a%b", "like", "a%b")],
)
def test_like_becomes_the_simplest_test(pattern, test, plain):
    bound = bind(~col("text").like(pattern), FIELDS)
    assert isinstance(bound, TextMatch)
    assert (bound.test, bound.pattern, bound.negated) == (test, plain, True)


def test_negation_reaches_the_leaves():
    bound = bind(~((col("int") == 1) & (~(col("big") < 2) | col("text").isin(["a", "b"]))), FIELDS)
    assert isinstance(bound, Or) and isinstance(bound.parts[1], And)
    assert short(bound.parts[0]) == ("!=", 1)
    assert short(bound.parts[1].parts[0]) == ("<", 2)
    assert isinstance(bound.parts[1].parts[1], In) and bound.parts[1].parts[1].negated


def test_constants_disappear_from_and_and_or():
    assert bind((col("int") == 1) & (col("tiny") == 1000), FIELDS) == NEVER
    assert short(bind((col("int") == 1) | (col("tiny") == 1000), FIELDS)) == ("==", 1)


def test_columns_get_ids_and_types_along_the_path():
    bound = bind(col("row", "inner", "y") == 1, FIELDS)
    assert isinstance(bound, Compare)
    assert bound.column.ids == (len(TYPES) - 2, 101, 102) and bound.column.type == INT
    assert bind(bound, FIELDS) == bound


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (col("Int") == 1, "did you mean 'int'"),
        (col("doubel") == 1, "did you mean 'double'"),
        (col("zzz") == 1, "the columns are flag, tiny"),
        (col("row.x") == 1, r'col\(\["row", "x"\]\)'),
        (col("row", "z") == 1, "field 'z' of row does not exist"),
        (col("int", "x") == 1, "not a ROW"),
        (col("int") == "1", "number"),
        (col("int") == True, "number"),  # noqa: E712
        (col("text") == 1, "a str"),
        (col("text") == b"x", "a str"),
        (col("bytes") == "x", "bytes"),
        (col("flag") == 1, "True or False"),
        (col("day") == "yesterday", "ISO text"),
        (col("day") == 5, "datetime.date"),
        (col("ts3") == utc_midnight, "without zone"),
        (col("time") == noon, "datetime.time"),
        (col("list") == 1, "ARRAY, which has no order"),
        (col("map").isin([1]), "MAP"),
        (col("row") == 1, "ROW"),
        (col("variant") == 1, "VARIANT"),
        (~col("int"), "not BOOLEAN"),
        (col("int").like("a"), "text columns only"),
        (col("bytes").like("a"), "text columns only"),
        (col("bytes").starts_with("a"), "pattern"),
        (col("text").like("x" * 5000), "4096"),
    ],
)
def test_what_cannot_be_bound_says_why(predicate, message):
    with pytest.raises(UsageError, match=message):
        bind(predicate, FIELDS)


def test_every_type_can_be_tested_for_null():
    for name in TYPES:
        assert isinstance(bind(col(name).is_null(), FIELDS), IsNull)


def test_depth_is_bounded():
    predicate = col("int") == 1
    for value in range(300):
        predicate = (predicate & (col("int") == value)) | (col("big") == value)
    with pytest.raises(UsageError, match="nested deeper"):
        bind(predicate, FIELDS)
