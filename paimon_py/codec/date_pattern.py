"""Parses dates and times with patterns of Java's `DateTimeFormatter` in the root locale. Pure.

A `DatePattern` is a list of parts that consume a string from left to right and set fields; the fields are combined at
the end. Smart mode accepts valid dates and clamps days after the end of a month; lenient mode carries over, so that
month 13 is January of the next year. AM without an hour is midnight, as in Java before 16; later versions return six
o'clock.

Source: Java `DateTimeFormatterBuilder.appendPattern`, `NumberPrinterParser`, `Parsed`, `IsoChronology`, `SignStyle`.
"""

from __future__ import annotations

import calendar
from typing import Union

import msgspec

from paimon_py.codec.partition_text import civil
from paimon_py.errors import UnsupportedError, UsageError

DAY_NANOS = 86_400_000_000_000
_HOUR_NANOS, _MINUTE_NANOS, _SECOND_NANOS = 3_600_000_000_000, 60_000_000_000, 1_000_000_000
_YEAR_MAX = 999_999_999
_WIDEST = 19

_FIELDS = {"d": 2, "h": 2, "H": 2, "k": 2, "K": 2, "m": 2, "s": 2, "M": 2, "D": 3, "S": 9, "a": 1}
"""The supported fields other than years, and the maximum number of letters of each."""
_OTHERS = frozenset("GQqYwWEecFAnNBVvzOXxZpgL")
"""Letters that only Java supports: eras, quarters, weeks, day names, zones, nanosecond counts, padding."""


class _Number(msgspec.Struct, frozen=True):
    """A number with a minimum and maximum of digits. `reserved`: digits that the adjacent numbers after it need.

    `sign`: see `_may_have_sign`.
    """

    field: str
    least: int
    most: int
    sign: str = "none"
    reserved: int = 0

    @property
    def is_fixed(self) -> bool:
        """Whether a number directly before this one leaves digits to it."""
        return self.least == self.most and self.sign == "none"

    def read(self, text: str, at: int) -> tuple[int, int] | None:
        """The value at a position of a string, and its end; None if there is no number."""
        begin, sign = at, text[at : at + 1]
        if sign in ("+", "-") and sign:
            if not _may_have_sign(self.sign, sign):
                return None
            begin += 1
        digits = 0
        while digits < self.most + self.reserved and text[begin + digits : begin + digits + 1] in _DIGITS:
            digits += 1
        if digits < self.least:
            return None
        digits = max(self.least, digits - self.reserved)
        value = int(text[begin : begin + digits])
        if sign == "-":
            return None if value == 0 else (-value, begin + digits)
        if self.sign == "wide" and (digits <= self.least) == (sign == "+"):
            return None
        return self.meaning(value), begin + digits

    def meaning(self, value: int) -> int:
        """The field's value: a two-digit year is of this century, and digits of a second are its fraction."""
        if self.field in ("u", "y") and self.is_fixed:
            return 2000 + value
        return value * 10 ** (9 - self.most) if self.field == "S" else value


class _Fraction(msgspec.Struct, frozen=True):
    """A decimal point and up to nine digits of a second's fraction."""

    def read(self, text: str, at: int) -> tuple[int, int] | None:
        """The nanoseconds at a position of a string, and their end; None if there are none."""
        end = at + 1
        while end <= at + 9 and text[end : end + 1] in _DIGITS:
            end += 1
        if text[at : at + 1] != "." or end == at + 1:
            return None
        return int(text[at + 1 : end].ljust(9, "0")), end

    field = "S"


class _HalfDay(msgspec.Struct, frozen=True):
    """AM or PM."""

    def read(self, text: str, at: int) -> tuple[int, int] | None:
        """0 for AM or 1 for PM at a position of a string, and its end."""
        found = ("AM", "PM").index(text[at : at + 2]) if text[at : at + 2] in ("AM", "PM") else None
        return None if found is None else (found, at + 2)

    field = "a"


class _Optional(msgspec.Struct, frozen=True):
    """An optional sequence of parts."""

    parts: tuple[_Part, ...]


_Part = Union[str, _Number, _Fraction, _HalfDay, _Optional]
_DIGITS = frozenset("0123456789")


def _may_have_sign(style: str, sign: str) -> bool:
    """Whether a number may have a sign: "none", "minus" or "wide" (a plus if there are more digits than needed)."""
    return style == "wide" or (style == "minus" and sign == "-")


class DatePattern(msgspec.Struct, frozen=True):
    """A pattern for dates and times. `lenient`: values out of range carry over."""

    parts: tuple[_Part, ...]
    lenient: bool = False

    @classmethod
    def of(cls, text: str) -> DatePattern:
        """Parse a pattern such as `yyyy-MM-dd HH:mm`.

        Raises:
            UsageError: not a valid pattern of Java.
            UnsupportedError: letters that are not supported.
        """
        return cls(_Builder(text).parts())

    def nanos(self, text: str) -> int | None:
        """Nanoseconds from 1970 to the date and time in a string, midnight if it has no time; None: not a date."""
        fields: dict[str, int] = {}
        if _read(self.parts, text, 0, fields) != len(text):
            return None
        try:
            return _days(fields, lenient=self.lenient) * DAY_NANOS + _time(fields, lenient=self.lenient)
        except _NoDateError:
            return None


class _NoDateError(Exception):
    """The fields contradict each other, or do not form a date."""


class _Builder:
    """Builds the parts of a pattern, letter by letter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._levels: list[list[_Part]] = [[]]
        self._number: int | None = None

    def parts(self) -> tuple[_Part, ...]:
        """All parts."""
        at = 0
        while at < len(self._text):
            letter = self._text[at]
            if letter.isascii() and letter.isalpha():
                end = at
                while self._text[end : end + 1] == letter:
                    end += 1
                self._field(letter, end - at)
            elif letter == "'":
                end = self._add_quoted(at)
            else:
                end = at + 1
                self._sign(letter)
            at = end
        while len(self._levels) > 1:
            self._close()
        return tuple(self._levels[0])

    def _field(self, letter: str, count: int) -> None:
        if letter in ("u", "y"):
            if count > _WIDEST:
                raise self._wrong(f"more than {_WIDEST} letters {letter}")
            if count == 2:
                return self._add(_Number(letter, 2, 2))
            return self._add(_Number(letter, count, _WIDEST, "minus" if count < 4 else "wide"))
        most = _FIELDS.get("M" if letter == "L" else letter)
        if (letter in _OTHERS and letter != "L") or (letter in "ML" and count > 2):
            raise UnsupportedError(
                f"the pattern {self._text!r} has {letter * count!r}, which paimon_py does not read; numbers of years, "
                "months, days, hours, minutes and seconds are read (yyyy MM dd HH mm ss), and AM or PM",
                feature="names, weeks and zones in patterns of dates",
            )
        if most is None or count > most:
            raise self._wrong(f"{letter * count!r}")
        if letter == "a":
            return self._plain(_HalfDay())
        if letter == "S":
            return self._add(_Number("S", count, count))
        if count == 1:
            return self._add(_Number("M" if letter == "L" else letter, 1, _WIDEST, "minus"))
        return self._add(_Number("M" if letter == "L" else letter, count, most))

    def _add_quoted(self, at: int) -> int:
        """Add a quoted literal that begins here. Returns: its end."""
        text, end = "", at + 1
        while True:
            close = self._text.find("'", end)
            if close < 0:
                raise self._wrong("a quote that does not end")
            text += self._text[end:close]
            if self._text[close + 1 : close + 2] != "'":
                break
            text, end = text + "'", close + 2
        self._plain(text or "'")
        return close + 1

    def _sign(self, letter: str) -> None:
        if letter in "{}#":
            raise self._wrong(f"{letter!r}, which is reserved")
        if letter == "[":
            self._number = None
            self._levels.append([])
        elif letter == "]":
            if len(self._levels) == 1:
                raise self._wrong("']' without '['")
            self._close()
        else:
            self._plain(letter)

    def _close(self) -> None:
        parts = self._levels.pop()
        if parts:
            self._plain(_Optional(tuple(parts)))

    def _plain(self, part: _Part) -> None:
        self._levels[-1].append(part)
        self._number = None

    def _add(self, number: _Number) -> None:
        """Add a number; adjacent numbers are separated by their widths."""
        parts = self._levels[-1]
        parts.append(number)
        first = parts[self._number] if self._number is not None else None
        if isinstance(first, _Number) and self._number is not None and number.is_fixed:
            parts[self._number] = msgspec.structs.replace(first, reserved=first.reserved + number.most)
        else:
            self._number = len(parts) - 1

    def _wrong(self, what: str) -> UsageError:
        return UsageError(f"{self._text!r} is not a date pattern: it has {what}; such as yyyy-MM-dd HH:mm:ss is one")


def _read(parts: tuple[_Part, ...], text: str, at: int, fields: dict[str, int]) -> int | None:
    """Match parts against a string, setting `fields`. Returns the end, None if they do not match."""
    for part in parts:
        if isinstance(part, str):
            if not text.startswith(part, at):
                return None
            at += len(part)
        elif isinstance(part, _Optional):
            tried = dict(fields)
            end = _read(part.parts, text, at, tried)
            if end is not None:
                fields.update(tried)
                at = end
        else:
            found = part.read(text, at)
            if found is None or fields.setdefault(part.field, found[0]) != found[0]:
                return None
            at = found[1]
    return at


def _days(fields: dict[str, int], *, lenient: bool) -> int:
    """Days from 1970 to the date in the fields."""
    year = _year(fields)
    by_month = _day_of_month(year, fields, lenient=lenient) if {"M", "d"} <= fields.keys() else None
    if "D" not in fields:
        return _need(by_month)
    _require(1 <= fields["D"] <= 365 + calendar.isleap(year))
    by_year = days_of(year, 1, 1) + fields["D"] - 1
    _, month, day = civil(by_year)
    agrees = fields.get("M", month) == month and fields.get("d", day) == day
    _require(agrees if by_month is None else by_month == by_year)
    return by_year


def _year(fields: dict[str, int]) -> int:
    year, of_era = fields.get("u"), fields.get("y")
    if of_era is not None:
        _require(1 <= of_era <= _YEAR_MAX + 1)
        meant = of_era if year is None or year > 0 else 1 - of_era
        _require(year in (None, meant))
        year = meant
    _require(year is not None and -_YEAR_MAX <= year <= _YEAR_MAX)
    return _need(year)


def _day_of_month(year: int, fields: dict[str, int], *, lenient: bool) -> int:
    month, day = fields["M"], fields["d"]
    if lenient:
        years, month = divmod(month - 1, 12)
        _require(abs(year + years) <= _YEAR_MAX)
        return days_of(year + years, month + 1, 1) + day - 1
    _require(1 <= month <= 12 and 1 <= day <= 31)
    years, following = divmod(month, 12)
    return min(days_of(year, month, day), days_of(year + years, following + 1, 1) - 1)


def _time(fields: dict[str, int], *, lenient: bool) -> int:
    """Nanoseconds of the day; 0 if the fields contain no time."""
    hour = _hour(fields)
    minute, second, nano = fields.get("m"), fields.get("s"), fields.get("S")
    rest = (minute or 0) * _MINUTE_NANOS + (second or 0) * _SECOND_NANOS + (nano or 0)
    has_gap = (minute is None and (second, nano) != (None, None)) or (second is None and nano is not None)
    if has_gap and hour is not None:
        return 0
    if not lenient:
        _require((minute or 0) in range(60) and (second or 0) in range(60))
        _require((hour or 0) in range(24) or (hour == 24 and not rest))
    return 0 if hour is None else hour * _HOUR_NANOS + rest


def _hour(fields: dict[str, int]) -> int | None:
    """The hour of the day; None if no field gives it."""
    hour, of_half, half = fields.get("H"), fields.get("K"), fields.get("a")
    if "k" in fields:
        hour = _same(hour, _of_clock(fields["k"], 24))
    if "h" in fields:
        of_half = _same(of_half, _of_clock(fields["h"], 12))
    _require((of_half or 0) in range(12))
    if hour is None:
        return None if half is None or of_half is None else half * 12 + of_half
    _require(of_half in (None, hour % 12) and half in (None, hour // 12 % 2))
    return hour


def _of_clock(shown: int, hours: int) -> int:
    """The hour of a clock that counts from 1 to `hours`, which stands for 0."""
    _require(0 <= shown <= hours)
    return shown % hours


def _same(known: int | None, value: int) -> int:
    _require(known in (None, value))
    return value


def _need(value: int | None) -> int:
    if value is None:
        raise _NoDateError
    return value


def _require(holds: bool) -> None:
    if not holds:
        raise _NoDateError


def days_of(year: int, month: int, day: int) -> int:
    """Days from 1970 to a date of the proleptic Gregorian calendar, for any year."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


DEFAULT_PATTERN = DatePattern(
    (
        _Number("u", 1, 10, "minus"), "-", _Number("M", 1, 2, "minus"), "-", _Number("d", 1, 2, "minus"),
        _Optional(
            (
                " ", _Number("H", 1, 2, "minus"), ":", _Number("m", 1, 2, "minus"), ":", _Number("s", 1, 2, "minus"),
                _Optional((_Fraction(),)),
            )
        ),
    ),
    lenient=True,
)  # fmt: skip
"""A date and optionally a time, as Paimon parses partitions if no pattern is configured."""
