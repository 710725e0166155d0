"""Patterns of dates: what Java reads (answers of JDK 17), and what is refused."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from paimon_py import UnsupportedError, UsageError
from paimon_py.codec.date_pattern import DAY_NANOS, DEFAULT_PATTERN, DatePattern, days_of
from paimon_py.codec.partition_text import civil
from paimon_py.codec.partition_time import PartitionTime
from paimon_py.errors import OptionError


def shown(nanos):
    """A moment as `LocalDateTime` prints it, with seconds."""
    if nanos is None:
        return None
    days, clock = divmod(nanos, DAY_NANOS)
    seconds, fraction = divmod(clock, 10**9)
    year, month, day = civil(days)
    text = f"{year:04d}-{month:02d}-{day:02d} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:09d}".rstrip("0") if fraction else text


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2024-01-02", "2024-01-02 00:00:00"),
        ("2024-1-2 3:4:5.6", "2024-01-02 03:04:05.6"),
        ("2024-13-45", "2025-02-14 00:00:00"),
        ("2024-1-1 25:61:0", "2024-01-02 02:01:00"),
        ("-5-1-1", "-005-01-01 00:00:00"),
        ("12024-02-30", "12024-03-01 00:00:00"),
        ("2024-0-0", "2023-11-30 00:00:00"),
        ("2024-01-02T03:04:05", None),
        ("+2024-01-02", None),
        ("2024-01-02 ", None),
        ("2024-01-02 03:04", None),
        ("20240102", None),
        ("19800", None),
        ("9999999999-1-1", None),
        ("2024-1--0", None),
        ("", None),
    ],
)
def test_dates_without_a_pattern_are_read_leniently(text, meant):
    assert shown(DEFAULT_PATTERN.nanos(text)) == meant


@pytest.mark.parametrize(
    ("pattern", "text", "meant"),
    [
        ("yyyyMMdd", "20240229", "2024-02-29 00:00:00"),
        ("yyyyMMdd", "20230231", "2023-02-28 00:00:00"),
        ("yyyyMMdd", "20230230", "2023-02-28 00:00:00"),
        ("yyyyMMdd", "20230431", "2023-04-30 00:00:00"),
        ("yyyyMMdd", "20231301", None),
        ("yyyyMMdd", "20230132", None),
        ("yyyyMMdd", "202401011", None),
        ("yyyyMMdd", "+202401011", "20240-10-11 00:00:00"),
        ("yyyyMMdd", "2024011", None),
        ("yyyyMMddHH", "2024010124", "2024-01-02 00:00:00"),
        ("yyyyMMddHHmm", "202401012401", None),
        ("yyyyMMddHHmmssSSS", "20240101101112999", "2024-01-01 10:11:12.999"),
        ("y-M-d", "2024-1-12", "2024-01-12 00:00:00"),
        ("yyyy-MM-dd HH:mm:ss", "2024-01-01", None),
        ("uuuuMMdd", "00000101", "0000-01-01 00:00:00"),
        ("yyyyMMdd", "00000101", None),
        ("yyyy'year'MM''dd", "2024year01'02", "2024-01-02 00:00:00"),
        ("yyyy-MM-dd'T'HH:mm", "2024-01-01T10:11", "2024-01-01 10:11:00"),
        ("yyyy-MM-dd'T'HH:mm", "2024-01-01T24:00", "2024-01-02 00:00:00"),
        ("yyyy-MM-dd'T'HH:mm", "2024-01-01T24:01", None),
        ("yyyy-MM-dd'T'HH:mm", "2024-01-01T10", None),
        ("yMMdd", "20240102", "2024-01-02 00:00:00"),
        ("yMMdd", "120240102", "12024-01-02 00:00:00"),
        ("yyyyMMdd", "-20240102", None),
        ("uuuuMMdd", "-20240102", "-2024-01-02 00:00:00"),
        ("dMMyyyy", "1022024", None),
        ("yyyy-MM-dd ss", "2024-01-01 59", "2024-01-01 00:00:00"),
        ("yyyy-MM-dd ss", "2024-01-01 60", None),
        ("yyyyMMdd yyyy", "20240102 2024", "2024-01-02 00:00:00"),
        ("yyyyMMdd yyyy", "20240102 2025", None),
        ("yyyyMM", "202401", None),
        ("HH", "10", None),
        ("yyyyMMddHHss", "202401011099", "2024-01-01 00:00:00"),
    ],
)
def test_patterns_read_what_java_reads(pattern, text, meant):
    assert shown(DatePattern.of(pattern).nanos(text)) == meant


@pytest.mark.parametrize("pattern", ["HHH", "ddd", "'open", "yyyy{", "#", "bb", "SSSSSSSSSS", "i"])
def test_no_patterns_of_java_are_refused(pattern):
    with pytest.raises(UsageError, match="not a date pattern"):
        DatePattern.of(pattern)
    with pytest.raises(OptionError, match="timestamp-formatter"):
        PartitionTime.of(("dt",), None, pattern)


@pytest.mark.parametrize("pattern", ["dd MMM yyyy", "E", "LL", "yyyy-ww", "HH:mm z", "QQ", "ppH", "yyMMdd", "yyyyDDD", "hh a", "kk", "yyyy-MM-dd['T'HH]"])
def test_other_parts_of_java_are_not_read(pattern):
    with pytest.raises(UnsupportedError, match="does not support"):
        DatePattern.of(pattern)


@pytest.mark.parametrize("year", [-400, -1, 0, 1, 1600, 1899, 1900, 1970, 2000, 2024, 9999, 123_456])
def test_days_and_dates_are_the_same(year):
    for month, day in ((1, 1), (2, 28), (3, 1), (12, 31)):
        assert civil(days_of(year, month, day)) == (year, month, day)
        if 1 <= year <= 9999:
            assert days_of(year, month, day) == (date(year, month, day) - date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("pattern", "values", "meant"),
    [
        (None, ("2024-01-02", None), "2024-01-02"),
        (None, (None, "2024-01-02"), None),
        ("$dt", ("2024-01-02", None), "2024-01-02"),
        ("$dt1", ("x", "2024-01-02"), "2024-01-02"),
        ("$dt1-$dt-05", ("02", "2024"), "2024-02-05"),
        ("$dt", (None, "x"), None),
        ("$year", ("x", "x"), None),
        ("2024-01-02", ("x", None), "2024-01-02"),
        ("$dt$", ("2024-01-02", None), None),
    ],
)
def test_values_replace_their_keys(pattern, values, meant):
    found = PartitionTime.of(("dt", "dt1"), pattern, None).nanos(values)
    assert found == (None if meant is None else (datetime.fromisoformat(meant) - datetime(1970, 1, 1)).days * DAY_NANOS)
