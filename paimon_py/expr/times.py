"""Calculations over columns of dates and timestamps: added intervals and days, days of timestamps, truncated times.

Timestamps WITH LOCAL TIME ZONE are calculated in UTC. Months come first, and a day that a month does not have becomes
its last day, as for constants (`sql_intervals`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.errors import SchemaError
from paimon_py.expr.sql_intervals import Interval, parse_interval

FUNCTIONS = {"add_interval": 0, "date": 0, "date_trunc": 1}
"""Functions of a date or timestamp, and the place of that argument; the others are constants."""

_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS_PER_DAY = 86_400


def kernel(name: str, fixed: Sequence[object], kind: pa.DataType) -> Callable[[Sequence[pa.Array]], pa.Array]:
    """The function of a name in `FUNCTIONS` for a column of a type, with its constants; it takes one array.

    Raises: SchemaError for a type or constant that it does not take. The function raises ArrowInvalid for a result that
        no time can be.
    """
    if not (pa.types.is_date32(kind) or pa.types.is_timestamp(kind)):
        what = "an INTERVAL is added to" if name == "add_interval" else f"{name} takes"
        raise SchemaError(f"{what} a date or timestamp, not {kind}")
    if name == "date":
        return lambda given: _day_of(given[0])
    if name == "date_trunc":
        unit = _unit_of(fixed[0])
        return lambda given: _truncate(given[0], unit)
    interval = parse_interval(str(fixed[0]))
    assert interval is not None, fixed
    return lambda given: _add_interval(given[0], interval)


def _add_interval(array: pa.Array, interval: Interval) -> pa.Array:
    """Dates or timestamps plus an interval; dates become timestamps, their midnights.

    Raises: ArrowInvalid for a result that the type cannot hold.
    """
    if pa.types.is_date32(array.type):
        array = array.cast(pa.timestamp("us"))
    unit = array.type.unit
    while interval.nanos * _PER_SECOND[unit] % 1_000_000_000:
        unit = {"s": "ms", "ms": "us", "us": "ns"}[unit]
    kind = pa.timestamp(unit, array.type.tz)
    per_second = _PER_SECOND[unit]
    numbers = array.cast(kind).cast(pa.int64())
    if interval.months:
        numbers = _with_months(numbers, interval.months, per_second * _SECONDS_PER_DAY)
    more = interval.days * _SECONDS_PER_DAY * per_second + interval.nanos * per_second // 1_000_000_000
    return pc.add_checked(numbers, pa.scalar(more, pa.int64())).cast(kind)


def add_days(array: pa.Array, days: pa.Array) -> pa.Array:
    """Dates plus whole numbers of days.

    Raises: ArrowInvalid for a result that no date can be.
    """
    return pc.add_checked(array.cast(pa.int32()).cast(pa.int64()), days).cast(pa.int32()).cast(pa.date32())


def _day_of(array: pa.Array) -> pa.Array:
    """The days of timestamps; dates as they are."""
    return array if pa.types.is_date32(array.type) else pc.floor_temporal(array, unit="day").cast(pa.date32())


def _truncate(array: pa.Array, unit: str) -> pa.Array:
    """Times rounded down to a unit of `_UNITS`; weeks begin on Mondays."""
    if pa.types.is_date32(array.type) and unit in _UNITS[_UNITS.index("day") :]:
        return array
    return pc.floor_temporal(array, unit=unit)


def _unit_of(text: object) -> str:
    """The unit of a truncation.

    Raises: SchemaError for anything else.
    """
    unit = text.strip().lower() if isinstance(text, str) else ""
    if unit not in _UNITS:
        raise SchemaError(f"date_trunc takes a unit first, one of {', '.join(_UNITS)}, not {text!r}")
    return unit


def _with_months(numbers: pa.Array, months: int, per_day: int) -> pa.Array:
    """Times as numbers of which `per_day` are a day, with months added."""
    known = numbers.is_valid()
    values = np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), np.int64)
    days = np.floor_divide(values, per_day)
    dates = days.astype("datetime64[D]")
    month = dates.astype("datetime64[M]")
    target = month + np.timedelta64(months, "M")
    last = _days(target + np.timedelta64(1, "M")) - _days(target) - 1
    moved = _days(target) + np.minimum(days - _days(month), last)
    if np.abs(moved).max(initial=0) > np.iinfo(np.int64).max // per_day - 1:
        raise pa.ArrowInvalid("a time with these months added is beyond its type")
    return pc.if_else(known, pa.array(moved * per_day + (values - days * per_day)), pa.nulls(len(numbers), pa.int64()))


def _days(months: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return months.astype("datetime64[D]").astype(np.int64)
