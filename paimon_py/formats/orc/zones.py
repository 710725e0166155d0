"""Local times of the zones in which ORC files were written.

ORC stores a timestamp without zone as the instant at which the writer's local clock showed it. Writers are Java
programs, whose zones differ from the tz database: before 1900 they use only today's standard time.

Source: ORC `TimestampTreeReader`, `SerializationUtils.convertBetweenTimezones`; JDK `sun.util.calendar.ZoneInfo`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.errors import UnsupportedError

UTC_NAMES = frozenset({"", "UTC", "GMT", "UCT", "Z", "Zulu", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Etc/Zulu"})

_START = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BASE = datetime(2015, 1, 1, tzinfo=timezone.utc)
_YEAR_1900 = -2_208_988_800
_YEAR_2040 = 2_208_988_800
_CALENDAR_CYCLE = 146_097 * 86_400


def wall_seconds(stored: Ints, zone: str) -> Ints:
    """Seconds of local time since 1970.

    Shapes: stored — seconds since 2015-01-01 00:00 of `zone`, truncated before 1970.
    Cost: one Python step per distinct second in zones other than UTC.
    Raises: UnsupportedError: a zone that is missing in this machine's tz database.
    """
    if zone in UTC_NAMES:
        return stored
    rules = _rules(zone)
    return stored + offsets(stored, rules)


def base_seconds(zone: str) -> int:
    """The instant of 2015-01-01 00:00 in a zone, which is ORC's epoch."""
    base = int(_BASE.timestamp())
    if zone in UTC_NAMES:
        return base
    return base - _seconds(_BASE.replace(tzinfo=_rules(zone)))


def offsets(instants: Ints, rules: ZoneInfo) -> Ints:
    """Seconds by which local time is ahead of UTC. From 2040 on the rules repeat every 400 years."""
    late = _YEAR_2040 + (instants - _YEAR_2040) % _CALENDAR_CYCLE
    folded = np.where(instants < _YEAR_2040, np.maximum(instants, _YEAR_1900 - 1), late)
    distinct, places = np.unique(folded, return_inverse=True)
    standard = min(_seconds(datetime(2037, month, 15, tzinfo=timezone.utc).astimezone(rules)) for month in range(1, 13))
    ahead = [
        standard if second < _YEAR_1900 else _seconds((_START + timedelta(seconds=second)).astimezone(rules))
        for second in distinct.tolist()
    ]
    return np.array(ahead, np.int64)[places.reshape(-1)]


def _rules(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = f"the time zone {zone!r} of an ORC writer is not known on this machine"
        raise UnsupportedError(message, feature=f"ORC writer time zone {zone}") from error


def _seconds(moment: datetime) -> int:
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
