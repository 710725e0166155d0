"""Encodes Python values and JSON as variants.

Numbers use the smallest encoding that holds them. Keys get ids in the order of first use. The fields of an object are
sorted by key in Java's string order (UTF-16); their values are stored in the original order.

Source: format.md §8.9; Java `GenericVariantBuilder`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NoReturn

from paimon_py.codec.variant.form import Encoded
from paimon_py.codec.variant.layout import (
    ARRAY,
    BINARY,
    CLOCK,
    DATE,
    DECIMAL4,
    DEPTH_MAX,
    DOUBLE,
    FALSE,
    INSTANT,
    INT8,
    OBJECT,
    SHORT_TEXT,
    TEXT,
    TRUE,
    UUID_,
    VERSION,
    basic_type,
    check_apart,
    children_at,
    key_at,
    keys_of,
    size_at,
)
from paimon_py.errors import SchemaError

_DIGITS_MAX = 38
_SHORT_MAX = 63
_BYTE_MAX = 255
_SIZE_MAX = (1 << 27) - 1
"""The maximum size of a variant in bytes, as in Java."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_TOO_DEEP = f"lists and objects are nested more than {DEPTH_MAX} deep"


class KeyDictionary:
    """A dictionary that grows while values are encoded."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def id_of(self, key: str) -> int:
        """The id of a key; assigns a new one if needed."""
        return self.ids.setdefault(key, len(self.ids))

    def metadata(self) -> bytes:
        """The bytes of the dictionary."""
        texts = [_utf8(key) for key in self.ids]
        total = sum(map(len, texts))
        width = _width(max(total, len(texts)))
        offsets = [0]
        for text in texts:
            offsets.append(offsets[-1] + len(text))
        head = bytes([VERSION | (width - 1) << 6]) + len(texts).to_bytes(width, "little")
        return head + _joined_numbers(offsets, width) + b"".join(texts)


def encode(value: object) -> Encoded:
    """The variant of a Python value: None, numbers, strings, bytes, dates, times, UUIDs, lists, mappings, variants.

    Raises: SchemaError for other types, and for values that are too large or nested too deeply.
    """
    keys = KeyDictionary()
    data = encode_node(value, keys, 0)
    return _check(Encoded(data, keys.metadata()))


def from_json(text: str | bytes) -> Encoded:
    """The variant of a JSON document.

    Numbers with a decimal point become decimals with the written digits; those with an exponent, or with more than 38
    digits, become doubles.
    Raises: SchemaError if the input is not JSON, or an object contains a key twice.
    """
    try:
        value = _decoder.decode(text if isinstance(text, str) else text.decode())
    except RecursionError as error:
        raise SchemaError(_TOO_DEEP) from error
    except ValueError as error:
        raise SchemaError(f"{_excerpt(text)} is not JSON: {error}") from error
    return encode(value)


def encode_node(value: object, keys: KeyDictionary, depth: int) -> bytes:
    """The bytes of a value; its keys are added to the dictionary as needed."""
    if value is None or isinstance(value, bool):
        return b"\x00" if value is None else _head(TRUE if value else FALSE)
    if isinstance(value, int):
        return encode_integer(value)
    if isinstance(value, str):
        return encode_text(_utf8(value))
    if isinstance(value, float):
        return _head(DOUBLE) + struct.pack("<d", value)
    if isinstance(value, Mapping):
        return _object(value, keys, depth + 1)
    if isinstance(value, (list, tuple)):
        if depth >= DEPTH_MAX:
            raise SchemaError(_TOO_DEEP)
        return build_array([encode_node(item, keys, depth + 1) for item in value])
    if isinstance(value, Encoded):
        return move(value.value, 0, keys_of(value.metadata), keys)
    return _other(value)


def move(value: bytes, at: int, own: tuple[str, ...], keys: KeyDictionary, depth: int = 0) -> bytes:
    """A node of another variant, whose keys are `own`, re-encoded with the ids of this dictionary."""
    kind = basic_type(value, at)
    if kind not in (OBJECT, ARRAY):
        return value[at : at + size_at(value, at)]
    if depth >= DEPTH_MAX:
        raise SchemaError(_TOO_DEEP)
    found = children_at(value, at)
    check_apart(value, found.places, size_at(value, at))
    if kind == ARRAY:
        return build_array([move(value, place, own, keys, depth + 1) for place in found.places])
    names = [key_at(own, number) for number in found.ids]
    ids = [keys.id_of(name) for name in names]
    parts = [move(value, place, own, keys, depth + 1) for place in found.places]
    return build_object(names, ids, parts)


def encode_integer(value: int) -> bytes:
    """An integer in the smallest encoding that holds it."""
    for width in range(4):
        if -(1 << (8 << width) - 1) <= value < 1 << (8 << width) - 1:
            return _head(INT8 + width) + value.to_bytes(1 << width, "little", signed=True)
    return encode_decimal(value, 0)


def encode_decimal(unscaled: int, scale: int) -> bytes:
    """A decimal in the smallest encoding that holds its digits and its scale."""
    digits = max(len(str(abs(unscaled))), scale)
    if digits > _DIGITS_MAX:
        raise SchemaError(f"a decimal of a variant has at most {_DIGITS_MAX} digits, not {digits}")
    step = 0 if digits <= 9 else 1 if digits <= 18 else 2
    return _head(DECIMAL4 + step) + bytes([scale]) + unscaled.to_bytes(4 << step, "little", signed=True)


def encode_text(data: bytes) -> bytes:
    """A string, given as UTF-8."""
    if len(data) <= _SHORT_MAX:
        return bytes([len(data) << 2 | SHORT_TEXT]) + data
    return _head(TEXT) + len(data).to_bytes(4, "little") + data


def build_object(names: Sequence[str], ids: Sequence[int], parts: Sequence[bytes]) -> bytes:
    """An object from its keys, their ids, and the bytes of its values."""
    order = sorted(range(len(names)), key=lambda at: names[at].encode("utf-16-be", "surrogatepass"))
    count = len(names)
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    large = count > _BYTE_MAX
    id_width, offset_width = _width(max(ids, default=0)), _width(starts[-1])
    head = ((large << 4 | (id_width - 1) << 2 | (offset_width - 1)) << 2) | OBJECT
    return b"".join((
        bytes([head]), count.to_bytes(4 if large else 1, "little"),
        _joined_numbers([ids[at] for at in order], id_width),
        _joined_numbers([*(starts[at] for at in order), starts[-1]], offset_width), *parts,
    ))  # fmt: skip


def build_array(parts: Sequence[bytes]) -> bytes:
    """An array from the bytes of its elements."""
    starts = [0]
    for part in parts:
        starts.append(starts[-1] + len(part))
    large = len(parts) > _BYTE_MAX
    width = _width(starts[-1])
    head = ((large << 2 | (width - 1)) << 2) | ARRAY
    count = len(parts).to_bytes(4 if large else 1, "little")
    return b"".join((bytes([head]), count, _joined_numbers(starts, width), *parts))


def _object(value: Mapping[Any, Any], keys: KeyDictionary, depth: int) -> bytes:
    if depth > DEPTH_MAX:
        raise SchemaError(_TOO_DEEP)
    names = list(value)
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise SchemaError(f"keys of a variant are strings, not {wrong!r:.80}")
    ids, parts = [], []
    for name in names:
        ids.append(keys.id_of(name))
        parts.append(encode_node(value[name], keys, depth))
    return build_object(names, ids, parts)


def _other(value: object) -> bytes:
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime):
        if value != value:  # NaT of pandas
            return b"\x00"
        if getattr(value, "nanosecond", 0):
            raise SchemaError(f"{value!r} is finer than a microsecond, which a variant cannot store")
        kind = CLOCK if value.tzinfo is None else INSTANT
        moment = value.replace(tzinfo=timezone.utc) if kind == CLOCK else value
        return _head(kind) + struct.pack("<q", (moment - _EPOCH) // _MICROSECOND)
    if isinstance(value, date):
        return _head(DATE) + struct.pack("<i", value.toordinal() - _EPOCH.toordinal())
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return _head(BINARY) + len(data).to_bytes(4, "little") + data
    if type(value).__name__ == "UUID" and isinstance(of_uuid := getattr(value, "bytes", None), bytes):
        return _head(UUID_) + of_uuid
    raise SchemaError(
        f"a variant can be None, bool, int, float, Decimal, str, bytes, date, datetime, UUID, lists and mappings, not "
        f"{value!r:.80}"
    )


def _decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise SchemaError(f"a decimal of a variant is a number, not {value}")
    if len(digits) + max(exponent, 0) > _DIGITS_MAX or -exponent > _DIGITS_MAX:
        raise SchemaError(f"a decimal of a variant has at most {_DIGITS_MAX} digits, not {value}")
    unscaled = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return encode_decimal(-unscaled if sign else unscaled, max(-exponent, 0))


def _head(kind: int) -> bytes:
    return bytes([kind << 2])


def _width(number: int) -> int:
    """The size of the smallest unsigned integer that holds a number."""
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3 if number < 1 << 24 else 4


def _joined_numbers(numbers: Sequence[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"{_excerpt(text)} contains half of a UTF-16 surrogate pair, which is not text") from error


def _check(found: Encoded) -> Encoded:
    size = max(len(found.value), len(found.metadata))
    if size > _SIZE_MAX:
        raise SchemaError(f"a variant of {size} bytes: Java reads at most {_SIZE_MAX}")
    return found


def _excerpt(text: str | bytes) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:80]}…"


def _json_real(text: str) -> Decimal | float:
    if "e" in text or "E" in text:
        return float(text)
    whole, _, fraction = text.lstrip("-").partition(".")
    digits = len((whole + fraction).lstrip("0"))
    return float(text) if digits > _DIGITS_MAX or len(fraction) > _DIGITS_MAX else Decimal(text)


def _json_integer(text: str) -> int | float:
    return int(text) if len(text) <= _DIGITS_MAX else _long_integer(text)


def _long_integer(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= _DIGITS_MAX else float(text)


def _json_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.80} appears twice in an object")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number of JSON")


_decoder = json.JSONDecoder(
    parse_float=_json_real, parse_int=_json_integer, parse_constant=_refuse_constant, object_pairs_hook=_json_object
)

