"""Times that a caller gives, as milliseconds since the epoch."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from paimon_py.errors import OptionError, UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def millis_of(name: str, moment: datetime | int) -> int:
    """A time as epoch milliseconds; a datetime without zone is local time. `name`: what messages call the time.

    Raises: UsageError
    """
    if isinstance(moment, bool) or not isinstance(moment, (datetime, int)):
        raise UsageError(f"{name} must be a datetime or epoch milliseconds, not {moment!r}")
    if isinstance(moment, int):
        return moment
    try:
        return (moment.astimezone(timezone.utc) - _EPOCH) // timedelta(milliseconds=1)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{name} {moment!r} is no time that this machine knows: {error}") from error


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
