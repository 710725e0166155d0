"""Which instants a clock on the wall of a session's time zone means, as Spark says it. Pure.

A wall time that clocks skip is as far behind the gap as it is inside; of a wall time that they show twice the first one
counts. A day begins with its first instant.

Source: Spark `DateTimeUtils`, `SparkDateTimeUtils.getZoneId`; Java `LocalDateTime.atZone`, `LocalDate.atStartOfDay`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from paimon_py.distributed import zone_rules
from paimon_py.types import DateValue, TimestampValue

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST, _LAST = -62_135_510_400, 253_402_214_400
"""A day after the year 1 begins, and a day before the year 9999 ends: beyond, the offsets stay what they are."""
_DAY = 86_400
_LONGEST = 26 * 3600
"""Seconds: no zone turns its clocks further, or twice within."""

_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "EST": "-05:00", "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "MST": "-07:00", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""Java's `ZoneId.SHORT_IDS`."""


class Jump(NamedTuple):
    """When clocks are turned, and how far they are ahead of UTC before and afterwards, in seconds."""

    at: int
    before: int
    after: int


class Clocks:
    """The clocks of one zone. All counts are seconds since 1970."""

    def __init__(self, zone: str) -> None:
        """`zone`: an id as `spark.sql.session.timeZone` takes it.

        Raises: UsageError for a zone that this machine does not know.
        """
        self._rules: tzinfo = zone_rules(_SHORT.get(zone, zone))

    def instant(self, wall: TimestampValue) -> TimestampValue:
        """The instant that a wall time means."""
        return TimestampValue(wall.seconds - self._of_wall(wall.seconds, 0), wall.nanos, zoned=True)

    def wall(self, instant: TimestampValue, ahead: int) -> TimestampValue:
        """What clocks show that are so far ahead of UTC."""
        return TimestampValue(instant.seconds + ahead, instant.nanos)

    def ahead(self, instant: int) -> int:
        """How far clocks are ahead of UTC at an instant."""
        return _seconds((_EPOCH + timedelta(seconds=_clamp(instant))).astimezone(self._rules).utcoffset())

    def jump_before(self, instant: int) -> Jump | None:
        """The jump of the clocks that an instant comes so shortly after that wall times are skipped or shown twice."""
        before, after = self.ahead(instant - _LONGEST), self.ahead(instant)
        if before == after:
            return None
        low, high = instant - _LONGEST, instant
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.ahead(middle) == before else (low, middle)
        return Jump(high, before, after) if instant < high + abs(after - before) else None

    def start(self, day: int) -> int:
        """The first instant of a day."""
        wall = day * _DAY
        first, second = self._of_wall(wall, 0), self._of_wall(wall, 1)
        if first >= second:
            return wall - first
        jump = self.jump_before(wall - first)
        return wall - first if jump is None else jump.at

    def days_from(self, instant: TimestampValue) -> tuple[DateValue, DateValue]:
        """The first day that begins at an instant or later, and the first one that begins later."""
        near = (instant.seconds + self.ahead(instant.seconds)) // _DAY
        exact = (instant.seconds, instant.nanos)
        starts = [(day, (self.start(day), 0)) for day in range(near - 2, near + 4)]
        return (
            DateValue(_first(day for day, start in starts if start >= exact)),
            DateValue(_first(day for day, start in starts if start > exact)),
        )

    def _of_wall(self, wall: int, fold: int) -> int:
        """How far clocks are ahead of UTC as they show a time; in a gap or an overlap before (0) or after (1)."""
        return _seconds((_EPOCH + timedelta(seconds=_clamp(wall))).replace(tzinfo=self._rules, fold=fold).utcoffset())


def _clamp(seconds: int) -> int:
    return min(max(seconds, _FIRST), _LAST)


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(seconds=1)


def _first(days: Iterator[int]) -> int:
    return next(days)
