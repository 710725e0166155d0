"""Literals: texts of times against Python's own reader, and equality of literals."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from paimon_py import col, lit
from paimon_py.expr.literal import TimestampValue, parse_timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize("sign", "+-")
@pytest.mark.parametrize("colon", ["", ":"])
@pytest.mark.parametrize("minute", [0, 1, 30, 59, 60, 61, 99])
@pytest.mark.parametrize("hour", [0, 1, 9, 17, 18, 19, 99])
def test_a_zone_is_an_offset_of_at_most_18_hours_and_59_minutes(hour, minute, colon, sign):
    found = parse_timestamp(f"2024-03-01 00:30:05{sign}{hour:02}{colon}{minute:02}")
    if hour > 18 or minute > 59:
        assert found is None
    else:
        offset = timedelta(hours=hour, minutes=minute) * (-1 if sign == "-" else 1)
        instant = datetime(2024, 3, 1, 0, 30, 5, tzinfo=timezone(offset))
        assert found == TimestampValue((instant - EPOCH) // timedelta(seconds=1), 0, zoned=True)


@pytest.mark.parametrize(("text", "expected"), [("00:00", 0), ("23:59:59", 86_399), ("24:00", None), ("23:60", None), ("23:59:60", None)])
def test_a_clock_ends_before_midnight(text, expected):
    found = parse_timestamp(f"1970-01-01T{text}")
    assert found == (None if expected is None else TimestampValue(expected, 0))


@pytest.mark.parametrize("other", [1, 2, "1", None, lit(1), lit(2), lit("1"), lit(None)])
@pytest.mark.parametrize("value", [1, "1", None])
def test_a_literal_equals_literals_of_the_same_value_alone(value, other):
    same = type(other) is type(lit(1)) and other.value == value
    assert (lit(value) == other) is same
    assert (lit(value) != other) is not same


def test_a_literal_beside_a_column_is_a_condition():
    assert repr(lit(5) != col("a")) == repr(col("a") != 5) != repr(lit(5) == col("a")) == repr(col("a") == 5)
