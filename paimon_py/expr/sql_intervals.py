"""Constants of time in SQL text: intervals added to dates and timestamps, and the current time.

Grammar, keywords in any case:

    interval = INTERVAL ( number | 'number' ) unit | INTERVAL 'number unit { number unit }'
    unit     = YEAR | QUARTER | MONTH | WEEK | DAY | HOUR | MINUTE | SECOND | MILLISECOND | MICROSECOND, or with S
    now      = ( NOW | CURRENT_TIMESTAMP | LOCALTIMESTAMP | CURRENT_DATE | TODAY ) "(" ")"

Months come first, and a day that a month does not have becomes its last day, as in DuckDB.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from typing import Protocol, Union

import msgspec

from paimon_py.expr.literal import (
    EPOCH_ORDINAL,
    NANOS_PER_DAY,
    NANOS_PER_SECOND,
    SECONDS_PER_DAY,
    DateValue,
    TimestampValue,
    timestamp_of,
)

Moment = Union[DateValue, TimestampValue]

_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}
_NANOS = {
    "hour": 3600 * NANOS_PER_SECOND, "minute": 60 * NANOS_PER_SECOND, "second": NANOS_PER_SECOND,
    "millisecond": 1_000_000, "microsecond": 1_000,
}  # fmt: skip
_PARTS = re.compile(r"([+-]?\d{1,9})\s*([a-z]+)")


class Now(Protocol):
    """The current time."""

    def millis(self) -> int:
        """Milliseconds since the epoch, UTC."""

    def local_millis(self) -> int:
        """Wall clock of the local zone as milliseconds, as if it were UTC."""


NOW: dict[str, Callable[[Now], Moment]] = {
    **dict.fromkeys(("now", "current_timestamp"), lambda now: timestamp_of(now.millis() * 1_000_000, zoned=True)),
    "localtimestamp": lambda now: timestamp_of(now.local_millis() * 1_000_000, zoned=False),
    **dict.fromkeys(("current_date", "today"), lambda now: DateValue(now.local_millis() // (SECONDS_PER_DAY * 1000))),
}
"""Functions that return the current time: an instant, the wall clock of this machine, and its day."""


class Interval(msgspec.Struct, frozen=True):
    """A length of time: months, days and nanoseconds, which are added one after the other."""

    months: int = 0
    days: int = 0
    nanos: int = 0


def parse_interval(text: str) -> Interval | None:
    """The interval of numbers with units such as `1 day 2 hours`; None if it is not one."""
    months = days = nanos = 0
    plain = text.strip().lower()
    if not plain or _PARTS.sub("", plain).strip():
        return None
    for number, word in _PARTS.findall(plain):
        unit = word.removesuffix("s")
        months += int(number) * _MONTHS.get(unit, 0)
        days += int(number) * _DAYS.get(unit, 0)
        nanos += int(number) * _NANOS.get(unit, 0)
        if unit not in _MONTHS and unit not in _DAYS and unit not in _NANOS:
            return None
    return Interval(months, days, nanos)


def interval_text(interval: Interval, sign: int) -> str:
    """The interval, or with `sign` −1 its opposite, as `parse_interval` reads it."""
    parts = {"month": interval.months, "day": interval.days, **_clock_parts(interval.nanos)}
    return " ".join(f"{sign * number} {unit}" for unit, number in parts.items() if number) or "0 day"


def _clock_parts(nanos: int) -> dict[str, int]:
    seconds, rest = divmod(abs(nanos), NANOS_PER_SECOND)
    hours, seconds = divmod(seconds, 3600)
    negative = -1 if nanos < 0 else 1
    return {"hour": negative * hours, "second": negative * seconds, "microsecond": negative * rest // 1_000}


def shift(moment: Moment, interval: Interval, sign: int) -> Moment | None:
    """A date or timestamp plus (`sign` 1) or minus (−1) an interval; None outside the years 1 to 9999.

    A date becomes the timestamp of its midnight.
    """
    if isinstance(moment, DateValue):
        moment = TimestampValue(moment.days * SECONDS_PER_DAY, 0)
    day, second = divmod(moment.seconds, SECONDS_PER_DAY)
    found = _with_months(day, sign * interval.months)
    if found is None:
        return None
    nanos = second * NANOS_PER_SECOND + moment.nanos + sign * interval.nanos
    nanos += (found + sign * interval.days) * NANOS_PER_DAY
    is_known = 1 <= nanos // NANOS_PER_DAY + EPOCH_ORDINAL <= datetime.date.max.toordinal()
    return timestamp_of(nanos, zoned=moment.zoned) if is_known else None


def _with_months(day: int, months: int) -> int | None:
    if not 1 <= day + EPOCH_ORDINAL <= datetime.date.max.toordinal():
        return None
    date = datetime.date.fromordinal(day + EPOCH_ORDINAL)
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    if not 1 <= year <= datetime.MAXYEAR:
        return None
    last = calendar.monthrange(year, month + 1)[1]
    return datetime.date(year, month + 1, min(date.day, last)).toordinal() - EPOCH_ORDINAL
