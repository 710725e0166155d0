"""What `col` writes down, and what it refuses."""

import datetime
import decimal
import pickle

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from paimon_py.errors import UsageError
from paimon_py.expr.column import col
from paimon_py.expr.literal import (
    BinaryValue,
    DateValue,
    DecimalValue,
    TimestampValue,
    TimeValue,
    parse_timestamp,
    to_literal,
)
from paimon_py.expr.predicate import And, Predicate

TREE = (
    (col("a") == 1)
    & ((col("b", "c") < 2.5) | ~col("s").like("a%"))
    & col("x").isin([b"\xff", None, datetime.date(2024, 1, 2), decimal.Decimal("1.50"), True])
    & (col("t") >= pa.scalar(-1, pa.timestamp("ns", "UTC")))
    & col("u").between(datetime.time(1, 2, 3), 10**30)
    & col("v").is_not_null()
)


def test_predicates_travel_as_pickle_and_msgpack_and_compare_by_value():
    assert pickle.loads(pickle.dumps(TREE)) == TREE
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(TREE), type=Predicate) == TREE
    assert (col("a") == 1) != (col("a") == 2)
    assert len({col("a") == 1, col("a") == 1, col("b") == 1}) == 2


def test_repr_reads_like_the_code():
    assert repr(col("a") == 1) == 'col("a") == 1'
    assert repr(~(col("a") > 1) & (col("p", "x").isin(["v", None]) | col("s").starts_with('"'))) == (
        '~(col("a") > 1) & (col("p", "x").isin(["v", None]) | col("s").starts_with("\\""))'
    )
    assert repr(col("a") < np.datetime64("2024-01-02T03:04:05.000000001")) == (
        'col("a") < timestamp("2024-01-02 03:04:05.000000001")'
    )
    assert "980 more" in repr(col("a").isin(range(1000)))


def test_chains_of_and_and_or_stay_flat():
    predicate = col("a") == 0
    for value in range(1, 3000):
        predicate = predicate & (col("a") != value)
    assert isinstance(predicate, And) and len(predicate.parts) == 3000


def test_truth_values_are_refused_with_a_hint():
    with pytest.raises(UsageError, match="`&`"):
        (col("a") == 1) and (col("b") == 2)
    with pytest.raises(UsageError, match="between"):
        1 < col("a") < 5
    with pytest.raises(UsageError):
        not col("a").is_null()
    with pytest.raises(UsageError, match="isin"):
        bool(col("a"))
    with pytest.raises(UsageError):
        col("a") in [1, 2]


def test_missing_parentheses_are_explained():
    with pytest.raises(UsageError, match="parentheses"):
        col("a") == 1 & col("b") == 2
    with pytest.raises(UsageError, match="parentheses"):
        (col("a") == 1) & col("b")
    with pytest.raises(UsageError, match="parentheses"):
        col("a") == (col("b") == 1)


@pytest.mark.parametrize("null", [None, pa.scalar(None, pa.int64()), np.datetime64("NaT")])
def test_comparing_with_null_points_to_is_null(null):
    with pytest.raises(UsageError, match=r"col\(\"a\"\)\.is_null\(\)"):
        col("a") == null
    with pytest.raises(UsageError, match="is_not_null"):
        col("a") != null


def test_wrong_arguments_are_refused():
    for call in (
        lambda: col("a") == [1],
        lambda: col("a") == object(),
        lambda: col("a").isin("abc"),
        lambda: col("a").isin(5),
        lambda: col("a").starts_with(5),
        lambda: col("a") == "\ud800",
        lambda: col("a") == datetime.time(1, tzinfo=datetime.timezone.utc),
        lambda: col("a") == np.datetime64(1, "ps"),
        lambda: col("a") == np.timedelta64(1, "s"),
        lambda: col(""),
        lambda: col([]),
        lambda: col("a", 5),
    ):
        with pytest.raises(UsageError):
            call()


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), DecimalValue(str(2**64 - 1))),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (bytearray(b"x"), BinaryValue(b"x")),
        (memoryview(b"x"), BinaryValue(b"x")),
        (decimal.Decimal("-Infinity"), float("-inf")),
        (datetime.date(1, 1, 1), DateValue(-719162)),
        (datetime.time(0, 0, 1, 5), TimeValue(1_000_005_000)),
        (datetime.datetime.fromisoformat("1969-12-31T23:59:59.999999"), TimestampValue(-1, 999_999_000)),
        (datetime.datetime.fromisoformat("9999-12-31"), TimestampValue(253402214400, 0)),
        (
            datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            TimestampValue(-7200, 0, True),
        ),
        (np.datetime64("1970-02"), DateValue(31)),
        (np.datetime64(-1, "ns"), TimestampValue(-1, 999_999_999)),
        (np.datetime64(3, "25s"), TimestampValue(75, 0)),
        (pa.scalar(-1, pa.timestamp("ns")), TimestampValue(-1, 999_999_999)),
        (pa.scalar(5, pa.timestamp("s", "Europe/Berlin")), TimestampValue(5, 0, True)),
        (pa.scalar(-5_000_000, pa.date32()), DateValue(-5_000_000)),
        (pa.scalar(86_400_000, pa.date64()), DateValue(1)),
        (pa.scalar(5, pa.time64("ns")), TimeValue(5)),
        (pa.scalar(decimal.Decimal("1.50")), DecimalValue("1.50")),
        (pa.scalar("x", pa.large_string()), "x"),
        (pa.scalar(b"x"), BinaryValue(b"x")),
        (pa.array(["x"]).dictionary_encode()[0], "x"),
    ],
)
def test_literals_are_taken_exactly(value, literal):
    found = to_literal(value)
    assert found == literal and type(found) is type(literal)


def test_pandas_timestamps_keep_their_nanoseconds():
    pandas = pytest.importorskip("pandas")
    assert to_literal(pandas.Timestamp("1970-01-01T00:00:00.123456789")) == TimestampValue(0, 123_456_789)
    assert to_literal(pandas.NaT) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01", TimestampValue(0, 0)),
        ("1970-01-01 00:00:01", TimestampValue(1, 0)),
        ("1970-01-01T00:01", TimestampValue(60, 0)),
        ("1969-12-31 23:59:59.5", TimestampValue(-1, 500_000_000)),
        ("1970-01-01 02:00:00+02:00", TimestampValue(0, 0, True)),
        ("1970-01-01 00:00:00.000000001Z", TimestampValue(0, 1, True)),
        ("1970-01-01 00:00:00.0000000001", None),
        ("1970-13-01", None),
        ("1970-01-01 24:00", None),
        ("1970-01-01 00:00:00 Berlin", None),
        ("", None),
    ],
)
def test_timestamp_texts(text, value):
    assert parse_timestamp(text) == value
