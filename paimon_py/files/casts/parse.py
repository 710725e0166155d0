"""Casts from strings to numbers, booleans, dates, times and timestamps.

The accepted input is exactly that of Java's parsers: `12.7` is the integer 12, and surrounding blanks are an error,
except for floats; digits alone are a count of days, milliseconds or ticks since 1970.

Source: Java `BinaryStringUtils`, `DateTimeUtils.parseDate`, `parseTime`, `parseTimestampData`, release 2.0.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.files.casts.job import Cast, bad_value, by_distinct
from paimon_py.files.casts.numbers import fit_decimal, rescaled_texts
from paimon_py.files.casts.times import DIGITS, MILLIS_PER_DAY
from paimon_py.spec.types import Root

BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `String.trim` removes."""

_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_WHOLE = r"^(?:[+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]*)$"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLOAT = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
_HEX_FLOAT = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_PLAIN_FLOAT = r"^-?[0-9]+(?:\.[0-9]+)?$"
_NUMERIC = re.compile(r"-?[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_TIMESTAMP = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{0,2})-(?P<day>[0-9]{0,2})"
    r"(?: (?P<h>[0-9]{0,2}):(?P<m>[0-9]{0,2}):(?P<s>[0-9]{0,2})(?:\.(?P<f>[0-9]{0,9}))?)?"
    r"(?:T(?P<h2>[0-9]{0,2}):(?P<m2>[0-9]{0,2})(?::(?P<s2>[0-9]{0,2})(?:\.(?P<f2>[0-9]{0,9}))?)?)?"
)
_USUAL_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_USUAL_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?$"
_YEARS_OF_NANOS = r"^(?:16[89]|1[789][0-9]|2[01][0-9]|22[0-5])"
"""Years from 1680 to 2259: outside the nanosecond range, Arrow 19 wraps silently."""
_EPOCH = datetime.date(1970, 1, 1).toordinal()


def text_to_boolean(array: pa.Array, job: Cast) -> pa.Array:
    """`t true y yes 1` and `f false n no 0`, in any case."""
    return by_distinct(array, _boolean, pa.bool_(), job)


def text_to_integer(array: pa.Array, job: Cast) -> pa.Array:
    """Digits with an optional sign; a fraction is truncated; out of range is an error."""
    kind = to_arrow_type(job.target)
    broken = array.filter(pc.invert(pc.match_substring_regex(array, _WHOLE)))
    if len(broken):
        raise bad_value(job, broken[0].as_py(), "not a number")
    whole = pc.replace_substring_regex(array, r"^\+?(-?)0*([0-9]*)(?:\.[0-9]*)?$", r"\1\2")
    whole = pc.replace_substring_regex(whole, r"^-?$", "0")
    try:
        return pc.cast(whole, kind)
    except pa.ArrowInvalid as error:
        raise bad_value(job, _first_outside(array, whole, kind), "out of range") from error


def text_to_float(array: pa.Array, job: Cast) -> pa.Array:
    """Java's decimal and hexadecimal forms, `NaN`, `Infinity`, with or without surrounding blanks."""
    kind = to_arrow_type(job.target)
    if pc.all(pc.match_substring_regex(array, _PLAIN_FLOAT)).as_py() is not False:
        return pc.cast(array, kind)
    convert = _single if job.target_type.root is Root.FLOAT else _double
    return by_distinct(array, convert, kind, job)


def text_to_decimal(array: pa.Array, job: Cast) -> pa.Array:
    """Any decimal notation, rounded half up; null if the precision is exceeded."""
    kind = to_arrow_type(job.target)
    plain = rescaled_texts(array, kind.precision, kind.scale)
    if plain is not None:
        return plain
    return by_distinct(array, lambda text: _decimal(text, kind.precision, kind.scale), kind, job)


def text_to_date(array: pa.Array, job: Cast) -> pa.Array:
    """`2024-05-14`, optionally with a time after a blank, without day or month, or as a count of days."""
    if _all_match(array, _USUAL_DATE):
        try:
            return pc.cast(array, pa.date32())
        except pa.ArrowInvalid as error:
            broken = next(text for text in array.drop_null().to_pylist() if not _is_day(text))
            raise bad_value(job, broken) from error
    days = by_distinct(array, _days, pa.int32(), job)
    return days.view(pa.date32())


def text_to_time(array: pa.Array, job: Cast) -> pa.Array:
    """`12:34:56.789`, shorter forms, with an offset, or a count of milliseconds.

    Java keeps times outside one day; Arrow cannot represent them, so they are errors.
    """
    millis = by_distinct(array, _within_a_day, pa.int32(), job)
    return millis.view(to_arrow_type(job.target))


def text_to_timestamp(array: pa.Array, job: Cast) -> pa.Array:
    """`2024-01-02 03:04:05.678` with a blank or a `T`, or shorter forms; digits are truncated to the precision of the
    type.

    Digits alone are a count since 1970 in the unit of the precision, except for LTZ.
    """
    kind = to_arrow_type(job.target)
    precision, held = job.target_type.precision or 0, DIGITS[kind.unit]
    if _all_match(array, _USUAL_TIMESTAMP) and (held < 9 or _all_match(array, _YEARS_OF_NANOS)):
        cut = pc.replace_substring_regex(array, rf"\.([0-9]{{0,{precision}}})[0-9]*$", r".\1")
        try:
            usual = pc.cast(pc.replace_substring_regex(cut, r"\.$", ""), pa.timestamp(kind.unit))
            return usual.view(kind)
        except pa.ArrowInvalid:
            pass  # an invalid day such as 31 February, which the parser below clamps or refuses
    with_counts = job.target_type.root is Root.TIMESTAMP
    ticks = by_distinct(array, lambda text: _ticks(text, precision, held, with_counts), pa.int64(), job)
    return ticks.view(kind)


def _all_match(array: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(array, pattern)).as_py() is not False


def _first_outside(array: pa.Array, whole: pa.Array, kind: pa.DataType) -> str | None:
    bounds = np.iinfo(f"int{kind.bit_width}")
    for text, digits in zip(array.to_pylist(), whole.to_pylist(), strict=True):
        if digits is not None and not bounds.min <= int(digits) <= bounds.max:
            return str(text)
    return None


def _boolean(text: str) -> bool:
    lower = text.lower()
    if lower not in _TRUE and lower not in _FALSE:
        raise ValueError("not a boolean")
    return lower in _TRUE


def _double(text: str) -> float:
    trimmed = text.strip(BLANKS)
    special = trimmed.lstrip("+-") if len(trimmed) - len(trimmed.lstrip("+-")) <= 1 else ""
    if special in ("NaN", "Infinity"):
        return float(trimmed)
    if match := _FLOAT.fullmatch(trimmed):
        return float(match[1])
    if match := _HEX_FLOAT.fullmatch(trimmed):
        try:
            return float.fromhex(match[1])
        except OverflowError:
            return math.copysign(math.inf, -1 if trimmed.startswith("-") else 1)
    raise ValueError("not a number")


def _single(text: str) -> float:
    """The nearest float32: rounding the nearest double again is wrong only if that double is exactly halfway."""
    double = _double(text)
    with np.errstate(over="ignore"):
        nearest = np.float32(double)
    if double - double != 0 or not np.isfinite(nearest) or float(nearest) == double:
        return float(nearest)
    match = _FLOAT.fullmatch(text.strip(BLANKS))
    exact = decimal.Decimal(match[1]) if match else decimal.Decimal(double)
    other = np.nextafter(nearest, np.float32(math.copysign(math.inf, double - float(nearest))))
    halfway = (float(nearest) + float(other)) / 2
    if double == halfway and exact != (limit := decimal.Decimal(halfway)):
        return float(max(nearest, other) if exact > limit else min(nearest, other))
    return float(nearest)


def _decimal(text: str, precision: int, scale: int) -> decimal.Decimal | None:
    if not _DECIMAL.fullmatch(text):
        raise ValueError("not a number")
    return fit_decimal(decimal.Decimal(text), precision, scale)


def _is_day(text: str) -> bool:
    try:
        _days(text)
    except ValueError:
        return False
    return True


def _number(text: str) -> int:
    trimmed = text.strip(BLANKS)
    if not _DIGITS.fullmatch(trimmed):
        raise ValueError("not a date or time")
    return int(trimmed)


def _in_range(count: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= count < 1 << (bits - 1):
        raise ValueError("out of range")
    return count


def _days(text: str) -> int:
    if _NUMERIC.fullmatch(text):
        return _in_range(int(text), 32)
    blank = text.find(" ")
    parts = (text[:blank] if blank > 0 else text).split("-", 2)
    year, month, day = (*(_number(part) for part in parts), 1, 1)[:3]
    return _day(year, month, day)


def _day(year: int, month: int, day: int) -> int:
    if year == 0:
        return datetime.date(400, month, day).toordinal() - _DAYS_OF_400_YEARS - _EPOCH
    return datetime.date(year, month, day).toordinal() - _EPOCH


_DAYS_OF_400_YEARS = 146_097


def _within_a_day(text: str) -> int:
    millis = _clock(text)
    if not 0 <= millis < MILLIS_PER_DAY:
        raise ValueError("outside one day")
    return millis


def _clock(text: str) -> int:
    """Milliseconds of the day in `h[:m[:s[.fraction]]][±h[:m]]`.

    An offset after `+` is added and one after `-` subtracted.
    """
    if _NUMERIC.fullmatch(text):
        return _in_range(int(text), 32)
    sign = -1 if "-" in text else 1
    clock, _, offset = text.partition("-" if sign < 0 else "+")
    shift = 0
    if len(clock) < len(text):
        hours, colon, minutes = offset.partition(":")
        if colon and clock.count(":") < 2:
            raise ValueError("an offset with minutes needs a time with seconds")
        shift = sign * (_number(hours) * 3_600_000 + (_number(minutes) * 60_000 if colon else 0))
    head, dot, fraction = clock.partition(".") if clock.count(":") >= 2 else (clock, "", "")
    parts = [_number(part) for part in head.split(":", 2)]
    hour, minute, second = (*parts, 0, 0)[:3]
    millis = _fraction_millis(fraction.strip(BLANKS)) if dot else 0
    return (hour * 3600 + minute * 60 + second) * 1000 + millis + shift


def _fraction_millis(text: str) -> int:
    digits = [int(char) if char in "0123456789" else 0 for char in text[:3].ljust(3, "0")]
    rounded = len(text) > 3 and text[3] >= "5"
    return digits[0] * 100 + digits[1] * 10 + digits[2] + int(rounded)


def _ticks(text: str, precision: int, held: int, with_counts: bool) -> int:
    if with_counts and _NUMERIC.fullmatch(text):
        if precision not in (0, 3, 6, 9):
            raise ValueError(f"a count needs precision 0, 3, 6 or 9, not {precision}")
        return _in_range(int(text), 64)
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise ValueError("not a timestamp")
    year, month, day = int(match["year"]), int(match["month"] or 1), int(match["day"] or 1)
    hour, minute, second = (int(match[name] or match[f"{name}2"] or 0) for name in "hms")
    fraction = (match["f"] or match["f2"] or "").ljust(9, "0")
    if match["day"] and not match["month"]:
        raise ValueError("a day without a month")
    if not (year >= 1 and 1 <= month <= 12 and 1 <= day <= 31 and minute < 60 and second < 60):
        raise ValueError("no such day or time")
    if hour > 23 and not (hour == 24 and minute == second == int(fraction) == 0):
        raise ValueError("no such time")
    while not _exists(year, month, day):
        day -= 1
    seconds = _day(year, month, day) * (MILLIS_PER_DAY // 1000) + hour * 3600 + minute * 60 + second
    kept = int(fraction[:precision].ljust(9, "0"))
    return _in_range(seconds * 10**held + kept // 10 ** (9 - held), 64)


def _exists(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True
