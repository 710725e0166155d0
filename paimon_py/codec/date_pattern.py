"""Parses dates and times with numeric patterns of Java's `DateTimeFormatter`, such as `yyyyMMdd HH:mm:ss`. Pure.

A `DatePattern` is a list of literals and numbers that consume a string from left to right; the numbers are combined to
a date at the end. Java's smart mode accepts valid dates and clamps days after the end of a month; its lenient mode
carries over, so that month 13 is January of the next year.

Worked example: `yyyyMMdd` reads 20240229. In Java, `yyyy` takes four or more digits, but leaves two for each of `MM`
and `dd`, which follow directly.

Source: Java `DateTimeFormatterBuilder.appendPattern`, `NumberPrinterParser`, `IsoChronology`, `SignStyle`.
"""

from __future__ import annotations

import re
from typing import Union

import msgspec

from paimon_py.errors import UnsupportedError, UsageError

DAY_NANOS = 86_400_000_000_000
_HOUR_NANOS, _MINUTE_NANOS, _SECOND_NANOS = 3_600_000_000_000, 60_000_000_000, 1_000_000_000
_YEAR_MAX = 999_999_999
_WIDEST = 19

_LETTERS = {"y": 4, "u": 4, "M": 2, "d": 2, "H": 2, "m": 2, "s": 2, "S": 9}
"""The supported letters, and the maximum number of each."""
_OF_JAVA = frozenset("GQqYwWEecFaAnNBVvzOXxZpgLhkKD[]")
"""Letters that only Java supports: names, eras, quarters, weeks, half days, days of the year, zones, optional parts."""
_TOKENS = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<other>.)", re.S)
_DIGITS = frozenset("0123456789")


class _Number(msgspec.Struct, frozen=True):
    """A number with a minimum and maximum of digits. `reserved`: digits that the adjacent numbers after it need.

    `sign`: "none"; "minus"; or "wide", where also a plus is possible, and required if there are more digits than the
        minimum.
    """

    field: str
    least: int
    most: int
    sign: str = "none"
    reserved: int = 0

    @property
    def is_fixed(self) -> bool:
        """Whether a number directly before this one leaves digits to it."""
        return self.least == self.most

    def read(self, text: str, at: int) -> tuple[int, int] | None:
        """The value at a position of a string, and its end; None if there is no number."""
        signs = {"none": "", "minus": "-", "wide": "+-"}[self.sign]
        sign = text[at] if at < len(text) and text[at] in signs else ""
        begin = at + len(sign)
        digits = 0
        while digits < self.most + self.reserved and text[begin + digits : begin + digits + 1] in _DIGITS:
            digits += 1
        if digits < self.least:
            return None
        digits = max(self.least, digits - self.reserved)
        value = int(text[begin : begin + digits])
        if sign == "-" and value == 0:
            return None
        if self.sign == "wide" and sign != "-" and (digits > self.least) != (sign == "+"):
            return None
        if self.field == "S":
            value *= 10 ** (9 - digits)
        return -value if sign == "-" else value, begin + digits


_Part = Union[str, _Number]


class DatePattern(msgspec.Struct, frozen=True):
    """Patterns for dates and times; the first match counts. `lenient`: values carry over."""

    alternatives: tuple[tuple[_Part, ...], ...]
    lenient: bool = False

    @classmethod
    def of(cls, text: str) -> DatePattern:
        """Parse a pattern such as `yyyy-MM-dd HH:mm`.

        Raises:
            UsageError: not a valid pattern of Java.
            UnsupportedError: parts that are not supported.
        """
        return cls((_with_widths(_parts(text)),))

    def nanos(self, text: str) -> int | None:
        """Nanoseconds from 1970 to the date and time in a string, midnight if it has no time; None: not a date."""
        for parts in self.alternatives:
            fields = _read(parts, text)
            if fields is not None:
                days, time = _days(fields, lenient=self.lenient), _time(fields, lenient=self.lenient)
                return None if days is None or time is None else days * DAY_NANOS + time
        return None


def _parts(pattern: str) -> list[_Part]:
    """The literals and numbers of a pattern."""
    parts: list[_Part] = []
    for token in _TOKENS.finditer(pattern):
        quoted, field, other = token["quoted"], token["field"], token["other"]
        if quoted is not None:
            parts.append(quoted.replace("''", "'") or "'")
        elif field is not None:
            parts.append(_number(pattern, field))
        elif other in _OF_JAVA:
            raise _unsupported_error(pattern, other)
        elif other in "'{}#":
            what = "a quote that does not end" if other == "'" else f"{other!r}, which is reserved"
            raise _not_a_pattern(pattern, what)
        else:
            parts.append(other)
    return parts


def _number(pattern: str, field: str) -> _Number:
    """The number for a repeated letter."""
    letter, count = field[0], len(field)
    is_year = letter in "yu"
    if letter in _OF_JAVA or (letter == "M" and count > 2) or (is_year and count not in (1, 4)):
        raise _unsupported_error(pattern, field)
    if count > _LETTERS.get(letter, 0):
        raise _not_a_pattern(pattern, repr(field))
    if is_year:
        return _Number(letter, count, _WIDEST, "minus" if count == 1 else "wide")
    if letter == "S" or count == 2:
        return _Number(letter, count, count)
    return _Number(letter, 1, _WIDEST, "minus")


def _with_widths(parts: list[_Part]) -> tuple[_Part, ...]:
    """The parts, where each number knows how many digits the fixed numbers directly after it need."""
    found: list[_Part] = []
    reserved = 0
    for part in reversed(parts):
        if isinstance(part, str):
            reserved = 0
        elif part.is_fixed:
            reserved += part.most
        else:
            part, reserved = msgspec.structs.replace(part, reserved=reserved), 0
        found.append(part)
    return tuple(reversed(found))


def _unsupported_error(pattern: str, part: str) -> UnsupportedError:
    return UnsupportedError(
        f"the pattern {pattern!r} has {part!r}, which paimon_py does not support; it supports numbers of years,"
        " months, "
        "days, hours, minutes and seconds, such as yyyyMMdd, yyyy-MM-dd HH:mm:ss.SSS or yyyy-M-d'T'H:m",
        feature="names, weeks, half days, zones and optional parts in date patterns",
    )


def _not_a_pattern(pattern: str, what: str) -> UsageError:
    return UsageError(f"{pattern!r} is not a date pattern: it has {what}; for example, yyyy-MM-dd HH:mm:ss is one")


def _read(parts: tuple[_Part, ...], text: str) -> dict[str, int] | None:
    """The numbers of a string that matches all parts, by letter; None if it does not."""
    fields: dict[str, int] = {}
    at = 0
    for part in parts:
        if isinstance(part, str):
            if not text.startswith(part, at):
                return None
            at += len(part)
            continue
        found = part.read(text, at)
        if found is None or fields.setdefault(part.field, found[0]) != found[0]:
            return None
        at = found[1]
    return fields if at == len(text) else None


def _days(fields: dict[str, int], *, lenient: bool) -> int | None:
    """Days from 1970 to the date in the fields; None if they do not form one."""
    if not {"M", "d"} <= fields.keys():
        return None
    year, month, day = _year(fields), fields["M"], fields["d"]
    if year is None:
        return None
    if lenient:
        years, month = divmod(month - 1, 12)
        return None if abs(year + years) > _YEAR_MAX else days_of(year + years, month + 1, 1) + day - 1
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    years, following = divmod(month, 12)
    return min(days_of(year, month, day), days_of(year + years, following + 1, 1) - 1)


def _year(fields: dict[str, int]) -> int | None:
    """The year; None if it is missing or out of range. `y`: a year of the Common Era, at least 1."""
    year = fields.get("u", fields.get("y"))
    if year is None or abs(year) > _YEAR_MAX or ("y" in fields and fields["y"] < 1):
        return None
    return None if fields.get("y", year) != year else year


def _time(fields: dict[str, int], *, lenient: bool) -> int | None:
    """Nanoseconds of the day; 0 if the fields contain no hour, or leave out minutes or seconds between others."""
    hour, minute, second, nano = (fields.get(letter) for letter in "HmsS")
    rest = (minute or 0) * _MINUTE_NANOS + (second or 0) * _SECOND_NANOS + (nano or 0)
    has_gap = (minute is None and (second, nano) != (None, None)) or (second is None and nano is not None)
    if has_gap and hour is not None:
        return 0
    if not lenient and not (
        (minute or 0) in range(60) and (second or 0) in range(60)
        and ((hour or 0) in range(24) or (hour == 24 and not rest))
    ):  # fmt: skip
        return None
    return 0 if hour is None else hour * _HOUR_NANOS + rest


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970 to a date of the proleptic Gregorian calendar, for any year."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


_DATE = (_Number("u", 1, 10, "minus"), "-", _Number("M", 1, 2, "minus"), "-", _Number("d", 1, 2, "minus"))
_CLOCK = (" ", _Number("H", 1, 2, "minus"), ":", _Number("m", 1, 2, "minus"), ":", _Number("s", 1, 2, "minus"))
DEFAULT_PATTERN = DatePattern((_DATE, _DATE + _CLOCK, (*_DATE, *_CLOCK, ".", _Number("S", 1, 9))), lenient=True)
"""A date and optionally a time, as Paimon parses partitions if no pattern is configured."""
