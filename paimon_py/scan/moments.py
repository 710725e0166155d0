"""Converts times from callers to milliseconds since the epoch."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import Any, cast

from paimon_py.arguments import as_python
from paimon_py.errors import OptionError, UsageError
from paimon_py.spec.options import parse_duration

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NO_TIME = 31_536_000_000
"""The end of 1970: a smaller number is meant as days, hours or seconds, not as milliseconds since the epoch."""
_NO_MORE = 253_402_300_799_999
"""The end of the year 9999: a larger number is meant as microseconds or nanoseconds."""


def millis_of(name: str, moment: datetime | str | int) -> int:
    """A time as epoch milliseconds; without a zone it is local time, and a day stands for its midnight.

    `name`: the name of the time in messages.

    Strings are ISO 8601, `2024-01-31` or `2024-01-31T10:00:00+02:00`; a trailing `Z` is UTC.

    Raises: UsageError
    """
    moment = as_python(moment)
    if isinstance(moment, int) and not isinstance(moment, bool):
        if moment > _NO_MORE:
            raise UsageError(
                f"{name} = {moment} is after the year 9999: a number counts milliseconds since the epoch, not micro- or"
                " nanoseconds"
            )
        return moment
    found = _datetime_of(name, moment)
    try:
        return (found.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{name} {moment!r} is outside the times that this machine supports: {error}") from error


def _datetime_of(name: str, moment: object) -> datetime:
    wrong = f"{name} must be a datetime, a string such as 2024-01-31T10:00:00 or epoch milliseconds, not {moment!r}"
    if isinstance(moment, str):
        text = moment.strip()
        try:
            return datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text)
        except ValueError:
            raise UsageError(wrong) from None
    if isinstance(moment, date) and not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    if type(moment).__name__ == "datetime64":  # of NumPy
        return _datetime_of(name, str(moment)[:26])
    if not isinstance(moment, datetime) or moment != moment:  # NaT of pandas is not a time
        raise UsageError(wrong)
    if type(moment) is not datetime and hasattr(moment, "to_pydatetime"):  # pandas treats times without zone as UTC
        return cast(datetime, cast(Any, moment).floor("us").to_pydatetime())
    return moment


def as_moment(name: str, given: object) -> object:
    """A day, or a NumPy time, as a datetime; other values unchanged.

    Raises: UsageError for NaT.
    """
    is_day = isinstance(given, date) and not isinstance(given, datetime)
    return _datetime_of(name, given) if is_day or type(given).__name__ == "datetime64" else given


def age_of(name: str, given: timedelta) -> int:
    """An age in milliseconds; a slightly negative age counts as 0, to tolerate clock differences.

    Raises: UsageError if it is negative by a day or more.
    """
    if given <= timedelta(days=-1):
        raise UsageError(f"{name} = {given!r} is not in the past: an age is above 0, such as timedelta(days=7)")
    return given // timedelta(milliseconds=1)


def as_age(given: object) -> object:
    """A string such as "1d", "12 h" or "90 min" as an age; other values unchanged."""
    nanos = parse_duration(given) if isinstance(given, str) and given.strip()[-1:].isalpha() else None
    return given if nanos is None else timedelta(microseconds=nanos // 1000)


def limit_before(name: str, given: datetime | timedelta | str | int, now_millis: int) -> int:
    """A time limit in epoch milliseconds, from a time or an age, which may be a string such as "7d".

    Raises: UsageError for a number that is an age instead of a time, and for a clearly negative age.
    """
    given = cast("datetime | timedelta | str | int", as_age(given))
    if isinstance(given, timedelta):
        return now_millis - age_of(name, given)
    if isinstance(given, str) and not given.strip()[:4].isdigit():
        raise UsageError(
            f"{name} must be an age such as '7d', '12h' or timedelta(days=7), or a time such as 2024-01-31T10:00:00,"
            f" not {given!r}"
        )
    found = millis_of(name, given)
    if not isinstance(given, (str, date)) and 0 < found < _NO_TIME <= now_millis:
        raise UsageError(
            f"{name} = {given!r} is a time in epoch milliseconds, in 1970: for an age write timedelta(days=…), for a"
            " time a datetime"
        )
    return found


def moment_of_text(option: str, text: str) -> int:
    """The time in an option, such as 2024-01-31 10:00:00, in local time.

    Raises: OptionError
    """
    try:
        return millis_of(option, datetime.fromisoformat(text.strip()))
    except ValueError:
        message = f"option {option} must be a time such as 2024-01-31 10:00:00, not {text!r}"
        raise OptionError(message, option=option, value=text) from None


def wall_millis(millis: int) -> int:
    """The local time of this machine at a moment, as if it were epoch milliseconds."""
    moment = (_EPOCH + timedelta(milliseconds=millis)).astimezone()
    return millis + (moment.utcoffset() or timedelta()) // timedelta(milliseconds=1)
