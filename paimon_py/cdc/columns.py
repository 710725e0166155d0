"""Converts the JSON values of one column to an Arrow array, exactly; errors name the value that does not fit.

Source: Java `DebeziumSchemaUtils.transformRawValue`; Debezium's documentation of data types.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.cdc.decimals import decimals_of
from paimon_py.cdc.event import SourceColumn
from paimon_py.cdc.geometry import geo_json, of_mysql
from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.files.casts.cast import cast
from paimon_py.spec.types import MAX_LENGTH

MISFITS = (ValueError, TypeError, ArithmeticError, RecursionError, binascii.Error, pa.ArrowException)
"""The exceptions of Python and Arrow for a value that does not match its column."""

_CLOCK = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]{1,6}))?", re.ASCII)
_DIGITS = re.compile(r"-?[0-9]{1,30}", re.ASCII)
_ZEROS = re.compile(r"(\.[0-9]{6})0+(?![0-9])", re.ASCII)
_FINE = re.compile(r"\.[0-9]{6}[0-9]*[1-9]", re.ASCII)
_TAIL = re.compile(r"\.0+$|(\.[0-9]*[1-9])0+$", re.ASCII)
_MOST_DIGITS = 150_000
"""More than a number of any database has; PostgreSQL's have up to 147,455."""
_EXACT = Context(prec=2 * _MOST_DIGITS, traps=[Inexact, InvalidOperation, Overflow])
_JSON = msgspec.json.Encoder(decimal_format="number")
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def build(column: SourceColumn, raw: Sequence[Any]) -> pa.Array:
    """Convert decoded JSON values (floats as `Decimal`) to the column's type.

    Raises: one of `MISFITS` if any value does not fit exactly.
    """
    if column.refused:
        raise ValueError(column.refused)
    if column.read_as is not None:
        inner = build(msgspec.structs.replace(column, type=column.read_as, read_as=None), raw)
        if pa.types.is_binary(inner.type):
            return inner.cast(pa.string())  # refuses invalid UTF-8; the cast of tables replaces it
        return cast(inner, column.read_as, column.type, column=column.name)
    arrow = to_arrow_type(column.type)
    if column.encoding == "decimal" and column.scale == getattr(arrow, "scale", None):
        decimals = decimals_of(raw, arrow)
        if decimals is not None:
            return decimals
    convert = _VALUES.get(column.encoding)
    if convert is None or (convert in _SAME_TEXT and set(map(type, raw)) <= _TEXT_OR_NULL):
        values = list(raw)
    else:
        values = [None if value is None else convert(value, column) for value in raw]
    if column.encoding in _WHOLE:
        _require(values, {int})
        _require_of_day(values, column.encoding)
        if column.encoding == "unsigned int64":
            _require_positive(values)
        return pa.array(values, _WHOLE[column.encoding]).cast(arrow)
    if column.encoding in ("micros of day", "clock text"):
        _require(values, {int})
        _require_of_day(values, column.encoding)
        return pa.array(values, pa.time64("us")).cast(arrow)
    if column.encoding == "instant":
        return pa.array(values, pa.string()).cast(pa.timestamp(arrow.unit, "UTC")).cast(arrow)
    if column.encoding == "time text":
        return pa.array(values, pa.string()).cast(arrow)
    if column.encoding == "boolean":
        _require(values, {bool})
    made = pa.array(values, arrow)
    if pa.types.is_floating(arrow):
        _require_finite(raw, made)
    length = getattr(column.type, "length", None)
    if length is not None and length < MAX_LENGTH:
        _require_lengths(made, length)
    return made


def _require(values: Sequence[Any], allowed: set[type]) -> None:
    strange = set(map(type, values)) - allowed - {type(None)}
    if strange:
        raise TypeError(f"expected {', '.join(sorted(kind.__name__ for kind in allowed))}")


def _require_of_day(values: Sequence[Any], encoding: str) -> None:
    end = _DAYS.get(encoding)
    if end is not None and any(value is not None and not 0 <= value < end for value in values):
        raise ValueError("a TIME is within one day")


def _require_positive(values: Sequence[Any]) -> None:
    """Refuse what Debezium makes of an unsigned number beyond 63 bits: it arrives as a negative one."""
    if any(value is not None and value < 0 for value in values):
        raise ValueError(
            "an unsigned number is not negative: the connector cut it to 64 bits with a sign; "
            "bigint.unsigned.handling.mode=precise keeps it"
        )


def _require_lengths(made: pa.Array, length: int) -> None:
    lengths = (pc.utf8_length if pa.types.is_string(made.type) else pc.binary_length)(made)
    if (pc.max(lengths).as_py() or 0) > length:
        raise ValueError(f"longer than {length}")


def _require_finite(raw: Sequence[Any], made: pa.Array) -> None:
    infinite = pc.sum(pc.is_inf(made).cast(pa.int64())).as_py() or 0
    if infinite != sum(value in ("Infinity", "-Infinity") for value in raw if isinstance(value, str)):
        raise OverflowError("the number is too large")


def _text(value: Any, column: SourceColumn) -> str:
    del column
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, Decimal)):
        return str(value)
    return _JSON.encode(value).decode()


def _string(value: Any, column: SourceColumn) -> str:
    if isinstance(value, (bool, int, Decimal)):
        raise TypeError("expected a string")
    return _text(value, column)


def _float(value: Any, column: SourceColumn) -> float:
    del column
    if isinstance(value, str):
        return _NOT_NUMBERS[value] if value in _NOT_NUMBERS else _refuse("expected a number")
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return _refuse("expected a number")
    return float(value)


def _bytes(value: Any, column: SourceColumn) -> bytes:
    del column
    if not isinstance(value, str):
        raise TypeError("expected base64 text")
    return base64.b64decode(value, validate=True)


def _bits(value: Any, column: SourceColumn) -> bytes:
    length = getattr(column.type, "length", 0) or 0
    return _bytes(value, column)[::-1].rjust(length, b"\0")


def _decimal(value: Any, column: SourceColumn) -> Decimal:
    """Unscaled bytes as base64, Debezium's default, or a JSON number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        raise TypeError("expected base64 text or a number")
    if isinstance(value, str):
        unscaled = _bytes(value, column)
        if not unscaled:
            raise ValueError("no bytes")
        return _unscaled_number(unscaled).scaleb(-column.scale, _EXACT)
    return Decimal(value)


def _unscaled_number(number: bytes) -> Decimal:
    """The number in two's complement. Cost: `Decimal(int)` takes time by the square of the digits; halves do not."""
    if len(number) * 8 > _MOST_DIGITS * 10 // 3:
        raise ValueError("the number has more digits than those of any database")
    return _by_halves(int.from_bytes(number, "big", signed=True), 8 * len(number))


def _by_halves(number: int, bits: int) -> Decimal:
    if bits <= 2048:
        return Decimal(number)
    low = bits // 2
    high = _EXACT.multiply(_by_halves(number >> low, bits - low), _EXACT.power(2, low))
    return _EXACT.add(high, _by_halves(number & ((1 << low) - 1), low))


def _decimal_text(value: Any, column: SourceColumn) -> str:
    return _all_digits(_decimal(value, column))


def _variable_decimal(value: Any, column: SourceColumn) -> str:
    if not isinstance(value, dict) or type(value.get("scale")) is not int or abs(value["scale"]) > 20_000:
        raise TypeError("expected an object with scale and value")
    return _all_digits(_unscaled_number(_bytes(value.get("value"), column)).scaleb(-value["scale"], _EXACT))


def _all_digits(number: Decimal) -> str:
    """The number without an exponent, which could stand for gigabytes of zeros."""
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS or _places(number) > _MOST_DIGITS:
        raise ValueError("the number has more digits than those of any database")
    return f"{number:f}"


def _places(number: Decimal) -> int:
    """The digits after the point."""
    exponent = number.as_tuple().exponent
    return -exponent if isinstance(exponent, int) else 0


def _whole_text(value: Any, column: SourceColumn) -> int:
    text = _string(value, column)
    if not _DIGITS.fullmatch(text):
        raise ValueError("expected a whole number")
    return int(text)


def _number_text(value: Any, column: SourceColumn) -> Decimal:
    found = Decimal(_string(value, column))
    if not found.is_finite():
        raise ValueError("expected a number")
    return found


def _float_text(value: Any, column: SourceColumn) -> float:
    return float(_number_text(value, column))


def _boolean_text(value: Any, column: SourceColumn) -> bool:
    text = _string(value, column)
    if text not in ("0", "1"):
        raise ValueError("expected 0 or 1")
    return text == "1"


def _clock_text(value: Any, column: SourceColumn) -> int:
    """Microseconds of the day."""
    match = _CLOCK.fullmatch(_string(value, column))
    if match is None:
        raise ValueError("expected a time of day such as 10:11:12.5")
    hours, minutes, seconds = (int(part) for part in match.groups()[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + int((match[4] or "").ljust(6, "0"))


def _time_text(value: Any, column: SourceColumn) -> str:
    """The time without zeros at the end of its fraction, which any precision holds."""
    return _TAIL.sub(r"\1", _string(value, column))


def _instant(value: Any, column: SourceColumn) -> str:
    return _ZEROS.sub(r"\1", _string(value, column))


def is_finer_than_micros(value: Any) -> bool:
    """Whether the string of an instant has fractions of a microsecond."""
    return isinstance(value, str) and _FINE.search(value) is not None


def _enum_text(value: Any, column: SourceColumn) -> str:
    """The name of an enumeration value, if the log contains its number."""
    text = _string(value, column)
    if text not in column.choices and _DIGITS.fullmatch(text) and 0 < int(text) <= len(column.choices):
        return column.choices[int(text) - 1]
    return text


def _set_text(value: Any, column: SourceColumn) -> list[str]:
    """The names in a set, if the log contains a number with a bit per name."""
    text = _string(value, column)
    if _DIGITS.fullmatch(text):
        number = int(text)
        if not 0 <= number < 1 << len(column.choices):
            raise ValueError(f"the set has {len(column.choices)} names")
        return [name for place, name in enumerate(column.choices) if number >> place & 1]
    names = text.split(",") if text else []
    if not set(names) <= set(column.choices):
        raise ValueError("expected names of the set, or the number of their bits")
    return names


def _set_as_text(value: Any, column: SourceColumn) -> str:
    return f"[{','.join(_set_text(value, column))}]"


def _bit_number(value: Any, column: SourceColumn) -> bytes:
    """The bits of a number from the log; base64 otherwise, as in Java."""
    text = _string(value, column)
    length = getattr(column.type, "length", 0) or 0
    if _DIGITS.fullmatch(text):
        return int(text).to_bytes(length, "big")
    return _bytes(value, column)


def _geometry(value: Any, column: SourceColumn) -> str:
    if not isinstance(value, dict):
        raise TypeError("expected an object with wkb")
    srid = value.get("srid")
    if not isinstance(srid, (int, type(None))):
        raise TypeError("expected a number as srid")
    if value.get("wkb") is None and "x" in value and "y" in value:
        point = struct.pack("<BIdd", 1, 1, _float(value["x"], column), _float(value["y"], column))
        return geo_json(point, srid or 0)
    return geo_json(_bytes(value.get("wkb"), column), srid or 0)


def _mysql_geometry(value: Any, column: SourceColumn) -> str:
    return of_mysql(_latin_text(value, column))


def _bit_text(value: Any, column: SourceColumn) -> str:
    return "".join(f"{byte:08b}" for byte in _bytes(value, column)[::-1])


def _text_bytes(value: Any, column: SourceColumn) -> bytes:
    return _string(value, column).encode()


def _latin_text(value: Any, column: SourceColumn) -> bytes:
    return _string(value, column).encode("latin-1")


def _refuse(reason: str) -> float:
    raise TypeError(reason)


_VALUES: dict[str, Callable[[Any, SourceColumn], Any]] = {
    "any text": _text, "string": _string, "float": _float, "base64": _bytes, "bits": _bits, "decimal": _decimal,
    "whole text": _whole_text, "number text": _number_text, "float text": _float_text, "boolean text": _boolean_text,
    "latin text": _latin_text, "time text": _time_text, "clock text": _clock_text, "decimal text": _decimal_text,
    "variable decimal": _variable_decimal, "bit text": _bit_text, "text bytes": _text_bytes, "instant": _instant,
    "enum text": _enum_text, "set text": _set_text, "set as text": _set_as_text, "bit number": _bit_number,
    "geometry": _geometry, "mysql geometry": _mysql_geometry,
}  # fmt: skip
_DAYS = {"millis of day": 86_400_000, "micros of day": 86_400_000_000}
_SAME_TEXT, _TEXT_OR_NULL = (_text, _string), {str, type(None)}
_WHOLE = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(), "unsigned int64": pa.int64(),
    "days": pa.int32(), "millis of day": pa.int32(), "millis": pa.int64(), "micros": pa.int64(), "nanos": pa.int64(),
}  # fmt: skip
