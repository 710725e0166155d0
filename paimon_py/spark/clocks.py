"""Converts local times in the time zone of a session to instants, as Spark does. Pure.

A local time inside a gap is moved forward by the length of the gap; of a local time that occurs twice the first
occurrence is used. A day begins with its first instant.

Source: Spark `DateTimeUtils`, `SparkDateTimeUtils.getZoneId`; Java `LocalDateTime.atZone`, `LocalDate.atStartOfDay`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from typing import NamedTuple

from paimon_py.distributed import zone_rules
from paimon_py.errors import UsageError
from paimon_py.types import DateValue, TimestampValue

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST, _LAST = -62_135_510_400, 253_402_214_400
"""One day after the start of year 1, and one day before the end of year 9999: beyond, the offsets are constant."""
_DAY = 86_400
_LONGEST = 26 * 3600
"""In seconds: no zone changes its offset by more than this, or twice within this time."""

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


def arrow_zone(zone: str) -> str:
    """The time zone of a session, under a name that Arrow accepts.

    Raises: UsageError for a zone that is unknown on this machine.
    """
    rules = zone_rules(_SHORT.get(zone, zone))
    if not isinstance(rules, timezone):
        return _SHORT.get(zone, zone)
    ahead = _seconds(rules.utcoffset(None))
    if ahead % 60:
        raise UsageError(f"the time zone {zone!r} is ahead of UTC by a part of a minute; write whole minutes")
    return f"{'-' if ahead < 0 else '+'}{abs(ahead) // 3600:02}:{abs(ahead) % 3600 // 60:02}"


class Jump(NamedTuple):
    """A change of the offset from UTC: its instant, and the offsets before and after it, in seconds."""

    at: int
    before: int
    after: int


class Clocks:
    """The local time of one zone. All numbers are seconds since 1970."""

    def __init__(self, zone: str) -> None:
        """`zone`: an id that is valid for `spark.sql.session.timeZone`.

        Raises: UsageError for a zone that is unknown on this machine.
        """
        self._rules: tzinfo = zone_rules(_SHORT.get(zone, zone))

    def instant(self, wall: TimestampValue) -> TimestampValue:
        """The instant of a local time."""
        return TimestampValue(wall.seconds - self._of_wall(wall.seconds, 0), wall.nanos, zoned=True)

    def wall(self, instant: TimestampValue, ahead: int) -> TimestampValue:
        """The local time at an instant, for an offset from UTC."""
        return TimestampValue(instant.seconds + ahead, instant.nanos)

    def ahead(self, instant: int) -> int:
        """The offset from UTC at an instant."""
        return _seconds((_EPOCH + timedelta(seconds=_clamp(instant))).astimezone(self._rules).utcoffset())

    def jump_before(self, instant: int) -> Jump | None:
        """The last change of the offset, if it is so recent that local times are skipped or occur twice."""
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
        """The first day that begins at an instant or later, and the first day that begins later."""
        near = (instant.seconds + self.ahead(instant.seconds)) // _DAY
        exact = (instant.seconds, instant.nanos)
        starts = [(day, (self.start(day), 0)) for day in range(near - 2, near + 4)]
        return (
            DateValue(_first(day for day, start in starts if start >= exact)),
            DateValue(_first(day for day, start in starts if start > exact)),
        )

    def _of_wall(self, wall: int, fold: int) -> int:
        """The offset from UTC at a local time; in a gap or an overlap the one before (0) or after (1) the change."""
        return _seconds((_EPOCH + timedelta(seconds=_clamp(wall))).replace(tzinfo=self._rules, fold=fold).utcoffset())


def _clamp(seconds: int) -> int:
    return min(max(seconds, _FIRST), _LAST)


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset // timedelta(seconds=1)


def _first(days: Iterator[int]) -> int:
    return next(days)
