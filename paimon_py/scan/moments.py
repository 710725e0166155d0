"""Times that a caller gives, as milliseconds since the epoch."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import Any, cast

from paimon_py.arguments import as_python
from paimon_py.errors import OptionError, UsageError
from paimon_py.spec.options import parse_duration

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NO_TIME = 31_536_000_000
"""The end of 1970: a number below is meant as days, hours or seconds, not as milliseconds since the epoch."""
_NO_MORE = 253_402_300_799_999
"""The end of the year 9999: a number above is meant as microseconds or nanoseconds."""


def millis_of(name: str, moment: datetime | str | int) -> int:
    """A time as epoch milliseconds; one without zone is local time, a day begins at midnight.

    `name`: what messages call the time.

    Texts are ISO 8601, `2024-01-31` or `2024-01-31T10:00:00+02:00`; a `Z` at their end is UTC.

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
        raise UsageError(f"{name} {moment!r} is not a time that this machine knows: {error}") from error


def _datetime_of(name: str, moment: object) -> datetime:
    wrong = f"{name} must be a datetime, a text such as 2024-01-31T10:00:00 or epoch milliseconds, not {moment!r}"
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
    if type(moment) is not datetime and hasattr(moment, "to_pydatetime"):  # pandas takes no zone for local time
        return cast(datetime, cast(Any, moment).floor("us").to_pydatetime())
    return moment


def as_moment(name: str, given: object) -> object:
    """A day, or a time of NumPy, as a datetime; anything else as it is.

    Raises: UsageError for NaT.
    """
    is_day = isinstance(given, date) and not isinstance(given, datetime)
    return _datetime_of(name, given) if is_day or type(given).__name__ == "datetime64" else given


def age_of(name: str, given: timedelta) -> int:
    """An age in milliseconds; one a little below 0 is that of everything, also by clocks that disagree.

    Raises: UsageError for one that is a day or more below 0.
    """
    if given <= timedelta(days=-1):
        raise UsageError(f"{name} = {given!r} is not in the past: an age is above 0, such as timedelta(days=7)")
    return given // timedelta(milliseconds=1)


def as_age(given: object) -> object:
    """A text such as "1d", "12 h" or "90 min" as an age; anything else as it is."""
    nanos = parse_duration(given) if isinstance(given, str) and given.strip()[-1:].isalpha() else None
    return given if nanos is None else timedelta(microseconds=nanos // 1000)


def limit_before(name: str, given: datetime | timedelta | str | int, now_millis: int) -> int:
    """The time that a caller says as an age, also as a text such as "7d", or as a time, in epoch milliseconds.

    Raises: UsageError for a number that is an age and no time, and for an age far below 0.
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
    """The time that an option holds, such as 2024-01-31 10:00:00, local time.

    Raises: OptionError
    """
    try:
        return millis_of(option, datetime.fromisoformat(text.strip()))
    except ValueError:
        message = f"option {option} must be a time such as 2024-01-31 10:00:00, not {text!r}"
        raise OptionError(message, option=option, value=text) from None


def wall_millis(millis: int) -> int:
    """What a clock on the wall of this machine's zone shows at a time, as if it were epoch milliseconds."""
    moment = (_EPOCH + timedelta(milliseconds=millis)).astimezone()
    return millis + (moment.utcoffset() or timedelta()) // timedelta(milliseconds=1)
