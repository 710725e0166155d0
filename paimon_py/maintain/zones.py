"""Local times of a time zone.

Source: Java `ZoneId.of`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from paimon_py.errors import UsageError
from paimon_py.scan.moments import wall_millis

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?(?::?([0-9]{2}))?")
_UTC = ("Z", "UTC", "GMT", "UT")


def wall_in(zone: str | None, millis: int) -> int:
    """The local time at a moment, as if it were epoch milliseconds.

    `zone`: an id such as `America/Los_Angeles` or `GMT-08:00`; None: this machine's zone.

    Raises: UsageError: a zone that this machine does not know.
    """
    if zone is None:
        return wall_millis(millis)
    moment = datetime.fromtimestamp(millis // 1000, zone_rules(zone))
    return millis + (moment.utcoffset() or timedelta()) // timedelta(milliseconds=1)


def zone_rules(text: str) -> tzinfo:
    """The rules of a zone by its id.

    Raises: UsageError: a zone that this machine does not know.
    """
    if text in _UTC:
        return timezone.utc
    offset = _OFFSET.fullmatch(text)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.group(2, 3, 4))
        ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes < 60 and seconds < 60 and ahead <= timedelta(hours=18):
            return timezone(-ahead if offset[1] == "-" else ahead)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"the time zone {text!r} is not known on this machine; write one such as Europe/Berlin or GMT+01:00"
        ) from error
