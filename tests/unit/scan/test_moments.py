"""Times from callers, at the edges of what is taken for a time."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from paimon_py import OptionError, UsageError
from paimon_py.scan.moments import age_of, limit_before, millis_of, moment_of_text

LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
YEAR = 31_536_000_000
NOW = 1_700_000_000_000


def test_the_last_millisecond_of_the_year_9999_is_a_time_and_the_next_is_none():
    assert millis_of("t", LAST) == millis_of("t", "9999-12-31T23:59:59.999Z") == LAST
    with pytest.raises(UsageError, match="after the year 9999"):
        millis_of("t", LAST + 1)


def test_a_number_within_1970_is_meant_as_an_age():
    assert [limit_before("t", given, NOW) for given in (-1, 0, YEAR, "1970-01-02T00:00:00Z")] == [-1, 0, YEAR, 86_400_000]
    for wrong in (1, YEAR - 1):
        with pytest.raises(UsageError, match="timedelta"):
            limit_before("t", wrong, NOW)
    assert limit_before("t", 1, YEAR - 1) == 1, "a clock that stands in 1970"


def test_an_age_may_be_negative_by_less_than_a_day():
    assert limit_before("t", timedelta(milliseconds=1) - timedelta(days=1), NOW) == NOW + 86_399_999
    with pytest.raises(UsageError, match="not in the past"):
        age_of("t", timedelta(days=-1))


def test_a_time_without_a_zone_is_local():
    for given in (datetime(2024, 7, 1), date(2024, 7, 1), "2024-07-01", "2024-07-01 00:00"):
        assert millis_of("t", given) == datetime(2024, 7, 1).astimezone(timezone.utc).timestamp() * 1000


@pytest.mark.parametrize("around", ["", " ", "\t", "\n "])
def test_blanks_around_a_time_in_an_option_do_not_count(around):
    for text in ("2024-01-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00.123"):
        assert moment_of_text("scan.timestamp", around + text + around) == moment_of_text("scan.timestamp", text)
    with pytest.raises(OptionError, match="must be a time such as"):
        moment_of_text("scan.timestamp", around + "noon")
