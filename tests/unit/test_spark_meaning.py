"""How Spark reads wall times, names and floats, without Spark; tests/interop/test_spark_meaning.py asks Spark itself."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from paimon_py import UsageError
from paimon_py.expr.literal import DateValue, parse_timestamp
from paimon_py.expr.references import refs_of
from paimon_py.spark.case_rule import CaseRule
from paimon_py.spark.clocks import Clocks, arrow_zone
from paimon_py.spark.meaning import Meaning
from paimon_py.spec.types import Atomic, Field, Root

FIELDS = [
    Field(0, "ltz", Atomic(Root.TIMESTAMP_LTZ, precision=6)), Field(1, "ntz", Atomic(Root.TIMESTAMP, precision=6)),
    Field(2, "d", Atomic(Root.DATE)), Field(3, "f", Atomic(Root.FLOAT)), Field(4, "x", Atomic(Root.DOUBLE)),
]  # fmt: skip


def day(text):
    return datetime.date.fromisoformat(text).toordinal() - datetime.date(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    ("zone", "wall", "instant"),
    [
        ("America/New_York", "2024-07-01 00:00", "2024-07-01 04:00Z"),
        ("America/New_York", "2024-03-10 02:30", "2024-03-10 07:30Z"),  # skipped
        ("America/New_York", "2024-11-03 01:30", "2024-11-03 05:30Z"),  # shown twice
        ("Pacific/Apia", "2011-12-30 12:00", "2011-12-30 22:00Z"),
        ("CTT", "2024-01-01 00:00", "2023-12-31 16:00Z"),
        ("EST", "2024-07-01 00:00", "2024-07-01 05:00Z"),
        ("GMT+8", "2024-01-01 00:00", "2023-12-31 16:00Z"),
        ("UTC", "0001-01-01 00:00", "0001-01-01 00:00Z"),
        ("America/New_York", "9999-12-31 23:59:59", None),
    ],
)
def test_a_wall_time_is_the_instant_that_spark_says(zone, wall, instant):
    found = Clocks(zone).instant(parse_timestamp(wall))
    assert found.zoned
    assert instant is None or found == parse_timestamp(instant)


def test_a_day_begins_with_its_first_instant():
    assert Clocks("America/Sao_Paulo").start(day("2018-11-04")) == parse_timestamp("2018-11-04 03:00Z").seconds
    assert Clocks("America/Toronto").start(day("1919-03-31")) == parse_timestamp("1919-03-31 04:30Z").seconds
    apia, skipped = Clocks("Pacific/Apia"), day("2011-12-30")
    assert apia.start(skipped) == apia.start(skipped + 1)
    first, later = apia.days_from(parse_timestamp("2011-12-30 10:00Z"))
    assert (first, later) == (DateValue(skipped), DateValue(skipped + 2))


def test_a_zone_that_nobody_knows_is_refused():
    with pytest.raises(UsageError, match="time zone 'Mars/Olympus' is not known"):
        Meaning("Mars/Olympus").condition("ltz < '2024-07-01'", FIELDS)


def test_a_time_whose_zone_nobody_says_is_refused_where_the_zone_matters():
    nowhere = Meaning(None)
    for text in ("ltz < '2024-07-01'", "ltz IN (TIMESTAMP '2024-07-01 00:00:00')", "NOT ltz = DATE '2024-07-01'"):
        with pytest.raises(UsageError, match=r"\.option\('timeZone'"):
            nowhere.condition(text, FIELDS)
    for text in ("ltz < '2024-07-01Z'", "ntz < TIMESTAMP '2024-07-01 00:00:00'", "d = DATE '2024-07-01'"):
        assert nowhere.condition(text, FIELDS) is not None


def test_in_with_texts_beside_times_is_refused_outside_of_ansi_mode():
    with pytest.raises(UsageError, match="write DATE"):
        Meaning("UTC", ansi=False).condition("d IN ('2024-07-01')", FIELDS)
    assert Meaning("UTC").condition("d IN ('2024-07-01 12:00')", FIELDS).literals == ("2024-07-01",)


def test_names_are_found_in_any_case_unless_they_matter():
    assert CaseRule().one_of("K", ["k", "v"]) == "k"
    assert CaseRule().one_of("x", ["k", "v"]) == "x"
    assert CaseRule().one_of("V", ["v", "V"]) == "V"
    assert CaseRule(matter=True).one_of("K", ["k"]) == "K"
    with pytest.raises(UsageError, match="'AB' may be 'Ab' and 'aB'"):
        CaseRule().one_of("AB", ["Ab", "aB"])
    assert CaseRule().rename(["K", "V", "other"], ["k", "v"]) == ["k", "v", "other"]
    assert CaseRule().rename(["K", "k"], ["k", "v"]) == ["K", "k"]
    with pytest.raises(UsageError, match="'K' and 'K' are both|are both the column 'k'"):
        CaseRule().rename(["K", "K"], ["k"])


@pytest.mark.parametrize(
    ("zone", "name"),
    [
        ("Z", "+00:00"), ("GMT+8", "+08:00"), ("-5", "-05:00"), ("UTC+0530", "+05:30"), ("EST", "-05:00"),
        ("CTT", "Asia/Shanghai"), ("Europe/Berlin", "Europe/Berlin"), ("Etc/GMT+5", "Etc/GMT+5"),
    ],
)  # fmt: skip
def test_the_clocks_of_a_session_have_a_name_in_arrow(zone, name):
    assert arrow_zone(zone) == name
    assert pc.local_timestamp(pa.array([0], pa.timestamp("us", name))).null_count == 0


def test_zones_that_arrow_has_no_name_for_are_refused():
    for zone, reason in (("GMT+00:00:30", "part of a minute"), ("Mars/Base", "not known")):
        with pytest.raises(UsageError, match=reason):
            arrow_zone(zone)


def test_calculated_values_have_the_columns_of_the_session_and_no_times():
    found = Meaning("UTC", names=CaseRule()).condition("F * 2 > coalesce(X, 0)", FIELDS)
    assert [str(ref) for ref in refs_of(found)] == ['col("f")', 'col("x")']
    with pytest.raises(UsageError, match="not with times such as"):
        Meaning("UTC").condition("coalesce(d, DATE '2020-01-01') > DATE '2024-01-01'", FIELDS)
