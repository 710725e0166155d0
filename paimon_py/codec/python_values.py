"""Python values as Arrow arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from numbers import Integral, Number

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import binary_array, integer_array
from paimon_py.codec.variant.form import METADATA, VALUE, Encoded, is_pair

_EPOCH = date(1970, 1, 1).toordinal()
_FLOAT_MAX = float(np.finfo(np.float32).max)
_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def python_array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Like `pa.array(values, kind)`, but only for values that the type can represent exactly.

    Arrow would truncate fractions, drop time zones, and accept numbers as dates and bytes as strings. Common values
    avoid `pa.array`, because it imports pandas, which takes 0.2 s.

    Raises: OverflowError, ValueError, TypeError or pa.ArrowException for values that the type cannot hold.
    """
    given = set(map(type, values))
    if given == {type(None)}:
        return pa.nulls(len(values), kind)
    whole = pa.types.is_signed_integer(kind) and given == {int}
    wide = pa.types.is_float64(kind) and given == {float}
    if whole or wide or (pa.types.is_boolean(kind) and given == {bool}):
        return integer_array(values, kind)
    if given == {str} and pa.types.is_string(kind):
        return binary_array([str(value).encode() for value in values], kind)
    if given == {date} and pa.types.is_date32(kind):
        return integer_array([value.toordinal() - _EPOCH for value in values if isinstance(value, date)], kind)
    fit = _fitting(kind)
    return pa.array([fit(value) for value in values], kind)


def shown_value(value: object) -> str:
    """The value as errors show it, cut to a readable length."""
    try:
        return f"{value!r:.200}"
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number of thousands of digits"


def _fitting(kind: pa.DataType) -> Callable[[object], object]:
    """The function that converts a value to a form that Arrow interprets correctly.

    Raises: ValueError, when called, for a value of the wrong kind, or one that the type cannot hold.
    """
    own, wanted = next(((fit, wanted) for is_kind, fit, wanted in _SORTS if is_kind(kind)), (None, ""))

    def fit_value(value: object) -> object:
        if isinstance(value, pa.Scalar):
            value = value.as_py()
        if isinstance(value, np.datetime64):
            return _steps(value, kind)
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or own is None or (isinstance(value, datetime) and value != value):
            return value if own is None else None
        found = own(value, kind)
        if found is None:
            raise ValueError(f"pass {wanted}, not {shown_value(value)}")
        return found

    return fit_value


def _struct(value: object, kind: pa.DataType) -> object:
    if isinstance(value, Encoded) and is_pair(kind):
        return {VALUE: value.value, METADATA: value.metadata}
    if not isinstance(value, Mapping) or any(kind.get_field_index(name) < 0 for name in value):
        return None
    return {inner.name: _fitting(inner.type)(value.get(inner.name)) for inner in kind}


def _list(value: object, kind: pa.DataType) -> object:
    if not isinstance(value, (list, tuple, np.ndarray)):
        return None
    if pa.types.is_fixed_size_list(kind) and len(value) != kind.list_size:
        raise ValueError(f"pass {kind.list_size} elements, not {len(value)}")
    return list(map(_fitting(kind.value_type), value))


def _map(value: object, kind: pa.DataType) -> object:
    if not isinstance(value, (Mapping, list, tuple)):
        return None
    key_of, item_of = _fitting(kind.key_type), _fitting(kind.item_type)
    pairs = value.items() if isinstance(value, Mapping) else value
    return [(key_of(key), item_of(item)) for key, item in pairs]


def _boolean(value: object, _: pa.DataType) -> object:
    return value if isinstance(value, bool) else None


def _integer(value: object, kind: pa.DataType) -> object:
    if not isinstance(value, Integral) or isinstance(value, bool):
        return None
    if not -(1 << (kind.bit_width - 1)) <= int(value) < 1 << (kind.bit_width - 1):
        raise ValueError(f"{value} is out of range")
    return value


def _floating(value: object, kind: pa.DataType) -> object:
    if not isinstance(value, Number) or isinstance(value, (bool, complex)):
        return None
    number = float(value)  # type: ignore[arg-type]
    if pa.types.is_float32(kind) and _FLOAT_MAX < abs(number) < math.inf:
        raise ValueError(f"{value} is out of range")
    if isinstance(value, Integral) and int(np.float32(number) if pa.types.is_float32(kind) else number) != value:
        raise ValueError(f"{value} has more digits than the column stores")
    if isinstance(value, Decimal) and value.is_finite():
        _require_digits(value, number, kind)
    return number


def _require_digits(value: Decimal, number: float, kind: pa.DataType) -> None:
    """Refuse a decimal with more digits than the float shows, such as 0.12345678901234567890 for a DOUBLE."""
    shown = str(np.float32(number)) if pa.types.is_float32(kind) else repr(number)
    exact = float(np.float32(number)) if pa.types.is_float32(kind) else number
    if value not in (Decimal(shown), Decimal(exact)):
        raise ValueError(f"{value} has more digits than the column stores: it would become {shown}")


def _decimal(value: object, _: pa.DataType) -> object:
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError(f"{value} is not a number of a decimal column")
    return value if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else None


def _text(value: object, _: pa.DataType) -> object:
    return value if isinstance(value, str) else None


def _bytes(value: object, _: pa.DataType) -> object:
    return bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else None


def _date(value: object, _: pa.DataType) -> object:
    if isinstance(value, datetime):
        return value.date() if value.tzinfo is None and value.time() == time() else None
    return value if isinstance(value, date) else None


def _time(value: object, kind: pa.DataType) -> object:
    if not isinstance(value, time) or value.tzinfo is not None:
        return None
    _require_steps(value, value.microsecond * 1_000, kind)
    return value


def _timestamp(value: object, kind: pa.DataType) -> object:
    if not isinstance(value, datetime):
        if not isinstance(value, date):
            return None
        value = datetime.combine(value, time())
    if value.tzinfo is not None and kind.tz is None:
        raise ValueError(f"{value!r} has a time zone, which the column does not have")
    _require_zone(value, value.tzinfo is not None, kind)
    _require_steps(value, value.microsecond * 1_000 + int(getattr(value, "nanosecond", 0)), kind)
    return value


def _steps(value: np.datetime64, kind: pa.DataType) -> int | None:
    """A numpy time as the integer that Arrow stores."""
    if np.isnat(value):
        return None
    if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
        raise ValueError(f"{value!r} is not valid for the column")
    _require_zone(value, not pa.types.is_timestamp(kind), kind)
    kept = value.astype(f"datetime64[{kind.unit if pa.types.is_timestamp(kind) else 'D'}]")
    if kept != value:
        raise ValueError(f"{value!r} is finer than the column, or out of range")
    return int(kept.astype(np.int64))


def _require_zone(value: object, has_zone: bool, kind: pa.DataType) -> None:
    if not has_zone and kind.tz is not None:
        raise ValueError(
            f"{value!r} has no time zone, and the column holds instants: pass value.replace(tzinfo=timezone.utc) "
            "for a time in UTC, or value.astimezone() for one of this machine's clock"
        )


def _require_steps(value: object, nanos: int, kind: pa.DataType) -> None:
    if nanos % _NANOS[kind.unit]:
        raise ValueError(f"{value!r} is finer than the column")


_BINARIES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_SORTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[object, pa.DataType], object], str], ...] = (
    (pa.types.is_struct, _struct, "a mapping that has only fields of the ROW"),
    (pa.types.is_map, _map, "a mapping"),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind), _list, "a list"),
    (pa.types.is_boolean, _boolean, "True or False"),
    (pa.types.is_integer, _integer, "a whole number"),
    (pa.types.is_floating, _floating, "a number"),
    (pa.types.is_decimal, _decimal, "an int or a decimal.Decimal"),
    (pa.types.is_string, _text, "a str"),
    (lambda kind: any(is_kind(kind) for is_kind in _BINARIES), _bytes, "bytes"),
    (pa.types.is_date, _date, "a datetime.date"),
    (pa.types.is_time, _time, "a datetime.time without a time zone"),
    (pa.types.is_timestamp, _timestamp, "a datetime.datetime"),
)
"""The conversion of values for an Arrow type (None: wrong kind), and what to pass instead."""


def value_text(column: pa.Array, row: int) -> str:
    """A value as shown in messages, including times outside Python's range."""
    try:
        return repr(column[row].as_py())
    except (OverflowError, ValueError):
        return f"a {column.type} beyond the years 1 to 9999"
