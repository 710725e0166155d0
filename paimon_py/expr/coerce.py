"""Fits a comparison with a literal to a column of one type.

A column has a set of values it can hold; a literal may be between two of them, or beyond all. `fit` returns a
literal that the column can hold and the matching operator, or a constant answer for every value that is not
NULL. Nothing is rounded, with one exception: a literal for a FLOAT or DOUBLE column becomes the nearest value of
that type, as in Java, where the literal of a predicate has the column's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_FLOOR, Context, Decimal
from typing import NoReturn, Union

import numpy as np

from paimon_py.errors import UsageError
from paimon_py.expr.literal import (
    NANOS_PER_DAY,
    NANOS_PER_SECOND,
    SECONDS_PER_DAY,
    BinaryValue,
    DateValue,
    DecimalValue,
    LiteralValue,
    TimestampValue,
    TimeValue,
    parse_date,
    parse_time,
    parse_timestamp,
    timestamp_of,
)
from paimon_py.expr.predicate import Operator
from paimon_py.spec.types import Atomic, Root

INTEGER_BITS = {Root.TINYINT: 8, Root.SMALLINT: 16, Root.INT: 32, Root.BIGINT: 64}
TEXT = frozenset({Root.CHAR, Root.VARCHAR})
BINARY = frozenset({Root.BINARY, Root.VARBINARY})
ORDERED = frozenset(root for root in Root if root not in (Root.VARIANT, Root.BLOB, Root.GEOMETRY, Root.GEOGRAPHY))

_FLOAT_MAX = float(np.finfo(np.float32).max)
_DOUBLE_MAX = float(np.finfo(np.float64).max)
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_BEYOND = 80
_SPECIAL = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "-infinity": -math.inf, "-inf": -math.inf}

Fitted = Union[bool, tuple[Operator, LiteralValue]]


def fit(type_: Atomic, operator: Operator, literal: LiteralValue, where: str) -> Fitted:
    """Fit `value operator literal`, for every non-null value of the type.

    Args:
        where: the column as the user wrote it, for messages.

    Returns: the operator and a literal that the type holds exactly, or a constant answer.
    Raises: UsageError if the literal has another kind than the column.
    """
    root = type_.root
    if root is Root.BOOLEAN:
        return (operator, literal) if isinstance(literal, bool) else _wrong(type_, literal, where, "True or False")
    if root in TEXT:
        return (operator, literal) if isinstance(literal, str) else _wrong(type_, literal, where, "a str")
    if root in BINARY:
        return (operator, literal) if isinstance(literal, BinaryValue) else _wrong(type_, literal, where, "bytes")
    if root is Root.DOUBLE and isinstance(literal, float) and literal == literal:
        return operator, literal
    if root in (Root.FLOAT, Root.DOUBLE):
        return _fit_float(type_, operator, _number(type_, literal, where))
    if root in INTEGER_BITS:
        limit = 1 << (INTEGER_BITS[root] - 1)
        if type(literal) is int:
            return _fit_steps(operator, literal, True, (-limit, limit - 1))
        return _fit_number(operator, _number(type_, literal, where), 0, (-limit, limit - 1), int)
    if root is Root.DECIMAL:
        scale, limit = type_.scale or 0, 10 ** (type_.precision or 10)
        number = _number(type_, _shortest(literal), where)
        return _fit_number(operator, number, scale, (1 - limit, limit - 1), lambda units: _decimal(units, scale))
    return _fit_time(type_, operator, literal, where)


def timestamp_units(precision: int | None) -> int:
    """The units per second of a timestamp column: the coarsest of s, ms, us, ns that holds the precision."""
    digits = 6 if precision is None else precision
    return 10 ** (0 if digits == 0 else 3 if digits <= 3 else 6 if digits <= 6 else 9)


def _wrong(type_: Atomic, literal: object, where: str, wanted: str) -> NoReturn:
    name = type_.root.value
    raise UsageError(f"{where} is {name} and cannot be compared with {literal!r}: pass {wanted}")


def _fit_steps(operator: Operator, floor: int, exact: bool, limits: tuple[int, int]) -> bool | tuple[Operator, int]:
    """The comparison on an integer; the literal is at `floor`, or between it and the next if not `exact`."""
    low, high = limits
    if operator in ("==", "!="):
        return (operator, floor) if exact and low <= floor <= high else operator == "!="
    if not exact:
        operator = "<=" if operator in ("<", "<=") else ">"
    if floor > high:
        return operator in ("<", "<=")
    if floor < low:
        return operator in (">", ">=")
    return operator, floor


def _fit_number(
    operator: Operator,
    number: Decimal | float,
    scale: int,
    limits: tuple[int, int],
    literal: Callable[[int], LiteralValue],
) -> Fitted:
    floor, exact = _floor(number, scale)
    fitted = _fit_steps(operator, floor, exact, limits)
    return fitted if isinstance(fitted, bool) else (fitted[0], literal(fitted[1]))


def _floor(number: Decimal | float, scale: int) -> tuple[int, bool]:
    """The number in units of 10^-scale, rounded down, and whether that was exact; NaN is above everything."""
    beyond: int = 10**_BEYOND
    if isinstance(number, float):
        return (-beyond if number < 0 else beyond), False
    if not number:
        return 0, True
    if number.adjusted() + scale >= _BEYOND:
        return (-beyond if number < 0 else beyond), False
    if number.adjusted() + scale < -1:
        return (-1 if number < 0 else 0), False
    scaled = number.scaleb(scale, context=_EXACT)
    floor = scaled.to_integral_value(rounding=ROUND_FLOOR, context=_EXACT)
    return int(floor), floor == scaled


def _number(type_: Atomic, literal: LiteralValue, where: str) -> Decimal | float:
    """The exact value as a Decimal; floats only for NaN and the infinities."""
    if isinstance(literal, str) and type_.root in (Root.FLOAT, Root.DOUBLE):
        special = special_float(literal)
        if special is not None:
            return special
    if isinstance(literal, bool) or not isinstance(literal, (int, float, DecimalValue)):
        _wrong(type_, literal, where, "a number")
    if isinstance(literal, float):
        return Decimal(literal) if math.isfinite(literal) else literal
    return Decimal(literal) if isinstance(literal, int) else Decimal(literal.text)


def special_float(text: str) -> float | None:
    """NaN or an infinity by its name, in any case; None for anything else."""
    return _SPECIAL.get(text.casefold())


def _shortest(literal: LiteralValue) -> LiteralValue:
    """A float compared with a DECIMAL column means its printed digits, 0.1 and not 0.1000000000000000055….

    Whole floats keep their value.
    """
    if isinstance(literal, float) and math.isfinite(literal) and not literal.is_integer():
        return DecimalValue(repr(literal))
    return literal


def _decimal(units: int, scale: int) -> DecimalValue:
    return DecimalValue(str(Decimal(units).scaleb(-scale, context=_EXACT)))


def _fit_float(type_: Atomic, operator: Operator, number: Decimal | float) -> Fitted:
    largest = _FLOAT_MAX if type_.root is Root.FLOAT else _DOUBLE_MAX
    value = float(number)
    if type_.root is Root.FLOAT and math.isfinite(value):
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if isinstance(number, Decimal) and math.isinf(value):
        return _beyond_floats(operator, value, largest)
    if isinstance(number, Decimal) and value == 0:
        value = math.copysign(0.0, -1.0 if number.is_signed() else 1.0)
    if math.isnan(value):
        nan: dict[Operator, Fitted] = {">": False, "<=": True, "<": ("!=", value), ">=": ("==", value)}
        return nan.get(operator, (operator, value))
    return operator, value


def _beyond_floats(operator: Operator, infinity: float, largest: float) -> Fitted:
    """Fit a finite literal outside the type's range, which is between its largest value and infinity."""
    if operator in ("==", "!="):
        return operator == "!="
    below, above = (largest, infinity) if infinity > 0 else (infinity, -largest)
    return ("<=", below) if operator in ("<", "<=") else (">=", above)


def _fit_time(type_: Atomic, operator: Operator, literal: LiteralValue, where: str) -> Fitted:
    if type_.root is Root.TIME:
        clock = parse_time(literal) if isinstance(literal, str) else literal
        if not isinstance(clock, TimeValue):
            _wrong(type_, literal, where, "a datetime.time, or a string such as '12:34:56.789'")
        millis, rest = divmod(clock.nanos, 1_000_000)
        fitted = _fit_steps(operator, millis, not rest, (0, NANOS_PER_DAY // 1_000_000 - 1))
        return fitted if isinstance(fitted, bool) else (fitted[0], TimeValue(fitted[1] * 1_000_000))
    moment = _moment(type_, literal, where)
    if type_.root is Root.DATE:
        days, rest = divmod(moment.seconds, SECONDS_PER_DAY)
        fitted = _fit_steps(operator, days, not rest and not moment.nanos, (-(1 << 31), (1 << 31) - 1))
        return fitted if isinstance(fitted, bool) else (fitted[0], DateValue(fitted[1]))
    nanos = NANOS_PER_SECOND // timestamp_units(type_.precision)
    units, rest = divmod(moment.seconds * NANOS_PER_SECOND + moment.nanos, nanos)
    fitted = _fit_steps(operator, units, not rest, (-(1 << 63), (1 << 63) - 1))
    if isinstance(fitted, bool):
        return fitted
    return fitted[0], timestamp_of(fitted[1] * nanos, zoned=type_.root is Root.TIMESTAMP_LTZ)


def _moment(type_: Atomic, literal: LiteralValue, where: str) -> TimestampValue:
    """The literal as a point in time: a date is its midnight; for a local time zone a wall clock is read as UTC."""
    value: object = literal
    if isinstance(literal, str):
        value = (parse_date(literal) if type_.root is Root.DATE else None) or parse_timestamp(literal)
    if isinstance(value, DateValue):
        return TimestampValue(value.days * SECONDS_PER_DAY, 0)
    if not isinstance(value, TimestampValue):
        wanted = "date" if type_.root is Root.DATE else "datetime"
        _wrong(type_, literal, where, f"a datetime.{wanted}, or ISO text such as '2024-01-31'")
    if value.zoned and type_.root is not Root.TIMESTAMP_LTZ:
        _wrong(type_, literal, where, "a time without zone, because the column has none (localtimestamp() for now())")
    return value
