"""Decodes variants to Python values and to JSON.

Source: format.md §8.9; Java `GenericVariant.toJson`.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from paimon_py.codec.java_float import java_float
from paimon_py.codec.variant.layout import (
    ARRAY,
    DEPTH_MAX,
    FLOAT,
    OBJECT,
    Scalar,
    basic_type,
    children_at,
    damage,
    key_at,
    keys_of,
    scalar_at,
)

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES = str.maketrans({chr(at): f"\\u{at:04X}" for at in range(32)} | _SHORT)


def to_python(value: bytes, metadata: bytes, at: int = 0) -> Any:
    """A node as None, bool, int, float, Decimal, str (also for UUIDs), bytes, date, datetime, list or dict.

    Raises: CorruptionError
    """
    return _Walk(value, keys_of(metadata)).python(at, 0)


def to_json(value: bytes, metadata: bytes, at: int = 0) -> str:
    """A node as JSON: keys in stored order, decimals without trailing zeros, times and bytes as strings.

    Raises: CorruptionError
    """
    parts: list[str] = []
    _Walk(value, keys_of(metadata)).json(at, 0, parts.append)
    return "".join(parts)


def quote(text: str) -> str:
    """A JSON string literal."""
    return f'"{text.translate(_ESCAPES)}"'


def plain_decimal(value: Decimal) -> Decimal:
    """A decimal without trailing zeros in its fraction, and never with an exponent above 0."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    kept = len(digits)
    while exponent < 0 and kept > 1 and digits[kept - 1] == 0:
        kept, exponent = kept - 1, exponent + 1
    if kept == 1 and digits[0] == 0:
        exponent, sign = 0, 0
    return Decimal((sign, digits[:kept], exponent))


def scalar_text(found: Scalar, *, single: bool) -> str:
    """A scalar other than a string, formatted as Java does. `single`: a float of four bytes."""
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return float_text(found, single=single)
    if isinstance(found, Decimal):
        return f"{plain_decimal(found):f}"
    if isinstance(found, datetime):
        return _moment_text(found)
    if isinstance(found, bytes):
        return base64.b64encode(found).decode()
    return "null" if found is None else str(found)


def float_text(number: float, *, single: bool) -> str:
    """A float, formatted as Java does."""
    if not single and 1e-3 <= abs(number) < 1e7:
        return repr(number)
    return java_float(number, single=single)


def _moment_text(found: datetime) -> str:
    text = f"{found:%H:%M:%S}"
    if found.microsecond:
        text += f".{found.microsecond:06d}".rstrip("0")
    return f"{found.date().isoformat()} {text}{'' if found.tzinfo is None else '+00:00'}"


class _Walk:
    """A traversal of one value that visits at most as many nodes as the value has bytes, whatever its offsets are."""

    def __init__(self, value: bytes, keys: tuple[str, ...]) -> None:
        self._value = value
        self._keys = keys
        self._left = len(value)

    def _enter(self, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise damage("its parts overlap")
        if depth > DEPTH_MAX:
            raise damage(f"it is nested more than {DEPTH_MAX} deep")

    def python(self, at: int, depth: int) -> Any:
        self._enter(depth)
        kind = basic_type(self._value, at)
        if kind not in (OBJECT, ARRAY):
            return scalar_at(self._value, at)
        found = children_at(self._value, at)
        items = [self.python(place, depth + 1) for place in found.places]
        if kind == ARRAY:
            return items
        return dict(zip((key_at(self._keys, number) for number in found.ids), items, strict=True))

    def json(self, at: int, depth: int, put: Callable[[str], None]) -> None:
        self._enter(depth)
        kind = basic_type(self._value, at)
        if kind not in (OBJECT, ARRAY):
            put(self._scalar(at))
            return
        found = children_at(self._value, at)
        put("{" if kind == OBJECT else "[")
        for position, place in enumerate(found.places):
            if position:
                put(",")
            if kind == OBJECT:
                put(quote(key_at(self._keys, found.ids[position])))
                put(":")
            self.json(place, depth + 1, put)
        put("}" if kind == OBJECT else "]")

    def _scalar(self, at: int) -> str:
        found = scalar_at(self._value, at)
        single = self._value[at] == FLOAT << 2
        if isinstance(found, str):
            return quote(found)
        text = scalar_text(found, single=single)
        is_text = isinstance(found, (date, bytes)) or (isinstance(found, float) and not math.isfinite(found))
        return f'"{text}"' if is_text else text
