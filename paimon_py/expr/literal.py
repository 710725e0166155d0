"""Literals of predicates: user input, converted to a few exact, serialisable values.

Times keep nanoseconds, decimals keep their digits, and nothing here rounds; how a literal fits a column is decided
when the predicate is bound.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any, Union

import msgspec
import numpy as np

from paimon_py.errors import UsageError

EPOCH_ORDINAL = 719_163
SECONDS_PER_DAY = 86_400
NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_DAY = SECONDS_PER_DAY * NANOS_PER_SECOND

_INT64_LIMIT = 1 << 63
_NANOS = {"h": 3_600 * NANOS_PER_SECOND, "m": 60 * NANOS_PER_SECOND, "s": NANOS_PER_SECOND}
_NANOS |= {"ms": 1_000_000, "us": 1_000, "ns": 1}
_FINER = {"ps": 1_000, "fs": 1_000_000, "as": 1_000_000_000}
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?", re.ASCII)
_ZONE = re.compile(r"Z|([+-])(\d{2})(?::?(\d{2}))?", re.ASCII)


class BinaryValue(msgspec.Struct, frozen=True, tag="binary"):
    """A byte string."""

    data: bytes

    def __repr__(self) -> str:
        return repr(self.data)


class DecimalValue(msgspec.Struct, frozen=True, tag="decimal"):
    """An exact number, as the text of a finite `Decimal`; also for integers beyond 64 bits."""

    text: str

    def __repr__(self) -> str:
        return f'Decimal("{self.text}")'


class DateValue(msgspec.Struct, frozen=True, tag="date"):
    """A day, counted from 1970-01-01."""

    days: int

    def __repr__(self) -> str:
        return f'date("{date_text(self.days)}")'


class TimeValue(msgspec.Struct, frozen=True, tag="time"):
    """A time of day in nanoseconds."""

    nanos: int

    def __repr__(self) -> str:
        return f'time("{_clock_text(self.nanos)}")'


class TimestampValue(msgspec.Struct, frozen=True, tag="timestamp"):
    """A point in time: seconds since 1970-01-01 and nanoseconds within the second.

    `zoned`: it is an instant (UTC); otherwise it is a wall clock without zone.
    """

    seconds: int
    nanos: int
    zoned: bool = False

    def __repr__(self) -> str:
        days, second = divmod(self.seconds, SECONDS_PER_DAY)
        clock = _clock_text(second * NANOS_PER_SECOND + self.nanos)
        return f'timestamp("{date_text(days)} {clock}{"Z" if self.zoned else ""}")'


def is_na(value: object) -> bool:
    """Whether a value is the NULL of pandas, which compares with nothing; works without pandas."""
    return type(value).__name__ == "NAType" and type(value).__module__.startswith("pandas")


LiteralValue = Union[bool, int, float, str, BinaryValue, DecimalValue, DateValue, TimeValue, TimestampValue]


def date_text(days: int) -> str:
    """ISO text of a day, or the plain count outside Python's calendar."""
    ordinal = days + EPOCH_ORDINAL
    if 1 <= ordinal <= datetime.date.max.toordinal():
        return datetime.date.fromordinal(ordinal).isoformat()
    return f"day {days}"


def _clock_text(nanos: int) -> str:
    second, fraction = divmod(nanos, NANOS_PER_SECOND)
    text = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f"{text}.{fraction:09}".rstrip("0") if fraction else text


def to_literal(value: object) -> LiteralValue | None:
    """The literal for a Python, numpy or pyarrow value; None for every kind of null.

    pyarrow scalars are recognised by the module of their type, so that Arrow need not be imported here.

    Raises: UsageError for values that no column can be compared with.
    """
    if is_na(value):
        return None
    if value is None or isinstance(value, (BinaryValue, DecimalValue, DateValue, TimeValue, TimestampValue)):
        return value
    if isinstance(value, np.generic):
        return _from_numpy(value)
    if type(value).__module__.startswith("pyarrow") and hasattr(value, "as_py"):
        return _from_arrow(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        number = int(value)
        return number if -_INT64_LIMIT <= number < _INT64_LIMIT else _decimal(Decimal(number))
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return BinaryValue(bytes(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    return _from_datetime(value)


def _text(value: str) -> str:
    text = str.__str__(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"the string {text!r} is not valid Unicode (it contains half of a surrogate pair)") from error
    return text


def _decimal(value: Decimal) -> LiteralValue:
    if value.is_nan():
        return float("nan")
    if value.is_infinite():
        return float("inf") if value > 0 else float("-inf")
    return DecimalValue(str(value))


def _from_datetime(value: object) -> LiteralValue | None:
    if isinstance(value, datetime.datetime):
        return _from_moment(value) if value == value else None  # NaT of pandas is NULL
    if isinstance(value, datetime.date):
        return DateValue(value.toordinal() - EPOCH_ORDINAL)
    if isinstance(value, datetime.time):
        if value.tzinfo is not None:
            raise UsageError(f"{value!r} has a time zone; a TIME column has none, so pass value.replace(tzinfo=None)")
        second = value.hour * 3600 + value.minute * 60 + value.second
        return TimeValue(second * NANOS_PER_SECOND + value.microsecond * 1_000)
    raise UsageError(
        f"cannot compare a column with a {type(value).__qualname__}: literals are Python bool, int, float, Decimal, "
        "str, bytes, date, time or datetime, numpy scalars and pyarrow scalars"
    )


def _from_moment(value: datetime.datetime) -> TimestampValue:
    days = value.toordinal() - EPOCH_ORDINAL
    nanos = (days * SECONDS_PER_DAY + value.hour * 3600 + value.minute * 60 + value.second) * NANOS_PER_SECOND
    nanos += value.microsecond * 1_000 + int(getattr(value, "nanosecond", 0))
    offset = value.utcoffset()
    if offset is not None:
        nanos -= (offset.days * SECONDS_PER_DAY + offset.seconds) * NANOS_PER_SECOND + offset.microseconds * 1_000
    return timestamp_of(nanos, zoned=offset is not None)


def timestamp_of(nanos: int, *, zoned: bool) -> TimestampValue:
    """The timestamp `nanos` nanoseconds after 1970-01-01."""
    seconds, rest = divmod(nanos, NANOS_PER_SECOND)
    return TimestampValue(seconds, rest, zoned)


def _from_numpy(value: np.generic[Any]) -> LiteralValue | None:
    if isinstance(value, np.datetime64):
        return _from_datetime64(value)
    if value.dtype.kind == "f":
        return float(value)
    if value.dtype.kind in "biuUS":
        return to_literal(value.item())
    raise UsageError(f"cannot compare a column with a numpy {value.dtype}")


def _from_datetime64(value: np.datetime64) -> LiteralValue | None:
    if np.isnat(value):
        return None
    unit, step = np.datetime_data(value.dtype)
    if unit in ("Y", "M", "W", "D"):
        return DateValue(int(value.astype("datetime64[D]").astype(np.int64)))
    count = int(value.astype(np.int64)) * step
    if unit in _NANOS:
        return timestamp_of(count * _NANOS[unit], zoned=False)
    nanos, rest = divmod(count, _FINER[unit])
    if rest:
        raise UsageError(f"{value!r} is finer than a nanosecond, the finest that a column can hold")
    return timestamp_of(nanos, zoned=False)


def _from_arrow(value: Any) -> LiteralValue | None:
    if not getattr(value, "is_valid", True):
        return None
    name = type(value).__name__
    if name == "TimestampScalar":
        return timestamp_of(value.value * _NANOS[value.type.unit], zoned=value.type.tz is not None)
    if name == "Date32Scalar":
        return DateValue(value.value)
    if name == "Date64Scalar":
        return DateValue(value.value // (SECONDS_PER_DAY * 1_000))
    if name in ("Time32Scalar", "Time64Scalar"):
        return TimeValue(value.value * _NANOS[value.type.unit])
    if name in ("DictionaryScalar", "ExtensionScalar"):
        return to_literal(value.value)
    return to_literal(value.as_py())


def parse_date(text: str) -> DateValue | None:
    """The day of an ISO string `yyyy-mm-dd`; None if it is not one."""
    match = _DATE.fullmatch(text.strip())
    return None if match is None else _day(match)


def _day(match: re.Match[str]) -> DateValue | None:
    try:
        day = datetime.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
    return DateValue(day.toordinal() - EPOCH_ORDINAL)


def parse_time(text: str) -> TimeValue | None:
    """The time of day of `hh:mm[:ss[.fraction]]`, or None."""
    match = _TIME.fullmatch(text.strip())
    return None if match is None else _clock(match)


def _clock(match: re.Match[str]) -> TimeValue | None:
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return TimeValue((hour * 3600 + minute * 60 + second) * NANOS_PER_SECOND + int((match[4] or "").ljust(9, "0")))


def parse_timestamp(text: str) -> TimestampValue | None:
    """The timestamp of `yyyy-mm-dd[ hh:mm[:ss[.fraction]]][zone]` (with `T` or a blank in between), or None.

    With a zone, `Z` or an offset such as `+02:00`, the result is an instant.
    """
    text = text.strip()
    date = _DATE.match(text)
    day = None if date is None else _day(date)
    if day is None:
        return None
    nanos, position = day.days * NANOS_PER_DAY, 10
    if text[position : position + 1] in ("T", " "):
        match = _TIME.match(text, position + 1)
        clock = None if match is None else _clock(match)
        if match is None or clock is None:
            return None
        nanos, position = nanos + clock.nanos, match.end()
    zone = text[position:].strip()
    if not zone:
        return timestamp_of(nanos, zoned=False)
    offset = _ZONE.fullmatch(zone)
    if offset is None or int(offset[2] or 0) > 18 or int(offset[3] or 0) > 59:
        return None
    seconds = int(offset[2] or 0) * 3600 + int(offset[3] or 0) * 60
    return timestamp_of(nanos - (-seconds if offset[1] == "-" else seconds) * NANOS_PER_SECOND, zoned=True)
