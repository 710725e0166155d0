"""Default values of columns: parses `defaultValue` to a Python value.

Source: Java `DefaultValueUtils` and the casts from string in `BinaryStringUtils` and `DateTimeUtils`.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from paimon_py.errors import SchemaError
from paimon_py.spec.cast_rules import BINARIES, INTEGERS, STRINGS, TIMESTAMPS
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, DataType, Root

_BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}
_TRUE = frozenset(("t", "true", "y", "yes", "1"))
_FALSE = frozenset(("f", "false", "n", "no", "0"))
_WHOLE = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_REAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?)")
_DATE = r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?"
_TIME = r"(\d{1,2})(?::(\d{1,2}))?(?::(\d{1,2})(?:\.(\d{1,9}))?)?"
_DATE_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_TIMESTAMP_TEXT = re.compile(rf"{_DATE}(?:[ T]{_TIME})?")

DefaultValue = bool | int | float | Decimal | str | bytes | date | time | datetime


def parse_default(data_type: DataType, text: str) -> DefaultValue:
    """The value of a column in rows that are written without it.

    Single quotes around the string are removed, as in Java. Timestamps are returned as epoch nanoseconds, times as
    `time`; LTZ strings are parsed as UTC.

    Raises:
        SchemaError: the string is not a value of the type, or defaults are not supported for the type.
    """
    if len(text) >= 2 and text.startswith("'") and text.endswith("'"):
        text = text[1:-1]
    if not isinstance(data_type, Atomic):
        raise SchemaError(f"a default value for type {sql_type(data_type)} is not supported")
    value = _parse(data_type, text)
    if value is None:
        raise SchemaError(f"default value {text!r} is not a value of type {sql_type(data_type)}")
    return value


def _parse(data_type: Atomic, text: str) -> DefaultValue | None:
    root = data_type.root
    if root in STRINGS:
        return text[: data_type.length]
    if root in BINARIES:
        return text.encode()[: data_type.length]
    stripped = text.strip()
    if root is Root.BOOLEAN:
        lower = text.lower()
        return True if lower in _TRUE else False if lower in _FALSE else None
    if root in INTEGERS:
        return _whole(text, _BITS[root])
    if root in (Root.FLOAT, Root.DOUBLE):
        number = stripped if stripped.endswith(("y", "N")) else stripped.rstrip("dDfF")
        return float(number) if _REAL.fullmatch(stripped) else None
    if root is Root.DECIMAL:
        return _decimal(data_type, stripped)
    if root is Root.DATE:
        match = _DATE_TEXT.fullmatch(stripped)
        return None if match is None else _date(*match.groups())
    if root is Root.TIME:
        match = _TIME_TEXT.fullmatch(stripped)
        return None if match is None else _time(*match.groups())
    if root in TIMESTAMPS:
        return _epoch_nanos(stripped)
    return None


def _whole(text: str, bits: int) -> int | None:
    if _WHOLE.fullmatch(text) is None or len(text) > 40:
        return None
    value = int(text.split(".")[0] or "0")
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def _decimal(data_type: Atomic, text: str) -> Decimal | None:
    assert data_type.precision is not None
    assert data_type.scale is not None
    with localcontext() as context:
        context.prec = 80
        try:
            value = Decimal(text).quantize(Decimal(1).scaleb(-data_type.scale), ROUND_HALF_UP)
        except InvalidOperation:
            return None
        fits = value.is_finite() and abs(value) < Decimal(10) ** (data_type.precision - data_type.scale)
    return value if fits else None


def _date(year: str, month: str | None, day: str | None) -> date | None:
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None


def _time(hour: str, minute: str | None, second: str | None, fraction: str | None) -> time | None:
    try:
        return time(int(hour), int(minute or 0), int(second or 0), int((fraction or "0").ljust(6, "0")[:3]) * 1000)
    except ValueError:
        return None


def _epoch_nanos(text: str) -> int | None:
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction = match.groups()
    on, at = _date(year, month, day), _time(hour or "0", minute, second, None)
    if on is None or at is None:
        return None
    whole = datetime.combine(on, at, timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return whole // timedelta(seconds=1) * 1_000_000_000 + int((fraction or "0").ljust(9, "0"))
