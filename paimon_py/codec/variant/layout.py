"""The byte layout of a variant: one value, and the dictionary of its object keys.

Nodes are positions in the bytes of the value. Every read is bounds-checked.

Source: format.md §8.9; the variant encoding of Apache Parquet, version 1.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal
from itertools import pairwise
from typing import NamedTuple

from paimon_py.errors import CorruptionError

NULL, TRUE, FALSE = 0, 1, 2
INT8, INT64 = 3, 6
DOUBLE = 7
DECIMAL4, DECIMAL8, DECIMAL16 = 8, 9, 10
DATE, INSTANT, CLOCK, FLOAT, BINARY, TEXT = 11, 12, 13, 14, 15, 16
UUID_ = 20
"""Ids of primitive values; INSTANT is microseconds in UTC, CLOCK microseconds without a time zone."""

PRIMITIVE, SHORT_TEXT, OBJECT, ARRAY = 0, 1, 2, 3
"""The low two bits of a value's first byte."""

VERSION = 1
DEPTH_MAX = 200
"""The maximum nesting depth of lists and objects."""

EMPTY_METADATA = b"\x01\x00\x00"
_SIZES = {
    NULL: 0, TRUE: 0, FALSE: 0, 3: 1, 4: 2, 5: 4, 6: 8, DOUBLE: 8, DECIMAL4: 5, DECIMAL8: 9, DECIMAL16: 17, DATE: 4,
    INSTANT: 8, CLOCK: 8, FLOAT: 4, UUID_: 16,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_DECIMAL_END = 10**38
EXACT = Context(prec=80)
"""A context that keeps every digit of a decimal."""

Scalar = None | bool | int | float | Decimal | str | bytes | date | datetime


def damage(reason: str) -> CorruptionError:
    """The error for damaged bytes of a variant."""
    return CorruptionError(f"a variant is damaged: {reason}")


@functools.lru_cache(maxsize=256)
def keys_of(metadata: bytes) -> tuple[str, ...]:
    """The keys in a dictionary, by id.

    Raises: CorruptionError
    """
    if not metadata or metadata[0] & 0x0F != VERSION:
        raise damage(f"its dictionary does not begin with version {VERSION}")
    width = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, width)
    first = 1 + width
    base = first + width * (count + 1)
    if base > len(metadata):
        raise damage(f"{count} keys in a dictionary of {len(metadata)} bytes")
    offsets = [_number(metadata, first + width * at, width) for at in range(count + 1)]
    room = len(metadata) - base
    if offsets[0] != 0 or offsets[-1] > room or any(a > b for a, b in pairwise(offsets)):
        raise damage("the offsets of its keys do not ascend")
    try:
        return tuple(metadata[base + a : base + b].decode() for a, b in pairwise(offsets))
    except UnicodeDecodeError as error:
        raise damage("a key is not UTF-8") from error


def basic_type(value: bytes, at: int) -> int:
    """PRIMITIVE, SHORT_TEXT, OBJECT or ARRAY."""
    if at >= len(value):
        raise damage(f"a value begins at byte {at} of {len(value)}")
    return value[at] & 3


def is_null(value: bytes, at: int) -> bool:
    """Whether the node is the null of JSON."""
    return basic_type(value, at) == PRIMITIVE and value[at] >> 2 == NULL


def scalar_at(value: bytes, at: int) -> Scalar:
    """The value of a node that is neither object nor array.

    Raises: CorruptionError, also for a time beyond the years 1 to 9999.
    """
    kind = value[at] >> 2
    if value[at] & 3 == SHORT_TEXT:
        return _text(_part(value, at + 1, kind))
    if kind in (NULL, TRUE, FALSE):
        return None if kind == NULL else kind == TRUE
    at += 1
    if kind in (BINARY, TEXT):
        data = _part(value, at + 4, _number(value, at, 4))
        return data if kind == BINARY else _text(data)
    size = _SIZES.get(kind)
    if size is None:
        raise damage(f"primitive type {kind} does not exist")
    data = _part(value, at, size)
    if kind in (DECIMAL4, DECIMAL8, DECIMAL16):
        if data[0] > 38:
            raise damage(f"a decimal of scale {data[0]}")
        unscaled = int.from_bytes(data[1:], "little", signed=True)
        if abs(unscaled) >= _DECIMAL_END:
            raise damage("a decimal of more than 38 digits")
        return Decimal(unscaled).scaleb(-data[0], EXACT)
    if kind in (DOUBLE, FLOAT):
        (number,) = struct.unpack("<d" if kind == DOUBLE else "<f", data)
        return float(number)
    if kind == UUID_:
        text = data.hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    whole = int.from_bytes(data, "little", signed=True)
    return whole if kind <= INT64 else _time(kind, whole)


class Children(NamedTuple):
    """The parts of an object or array: their positions, and the key ids of an object."""

    places: list[int]
    ids: list[int]


def children_at(value: bytes, at: int) -> Children:
    """The parts of an object or array.

    Cost: linear in their number.
    Raises: CorruptionError
    """
    head = value[at]
    is_object = head & 3 == OBJECT
    offset_width = (head >> 2 & 3) + 1
    id_width = (head >> 4 & 3) + 1 if is_object else 0
    count_width = 4 if head >> (6 if is_object else 4) & 1 else 1
    count = _number(value, at + 1, count_width)
    first = at + 1 + count_width
    offsets = first + id_width * count
    start = offsets + offset_width * (count + 1)
    if start > len(value):
        raise damage(f"{count} parts at byte {at} of {len(value)}")
    size = _number(value, offsets + offset_width * count, offset_width)
    if start + size > len(value):
        raise damage(f"its parts end at byte {start + size} of {len(value)}")
    found = _numbers(value, offsets, offset_width, count)
    if count and max(found) >= size:
        raise damage("a part begins after the end of its parent")
    return Children([start + offset for offset in found], _numbers(value, first, id_width, count) if is_object else [])


def key_at(keys: Sequence[str], number: int) -> str:
    """A key by its id.

    Raises: CorruptionError
    """
    if number >= len(keys):
        raise damage(f"key {number} of {len(keys)}")
    return keys[number]


def field_at(value: bytes, at: int, key: str, keys: tuple[str, ...]) -> int | None:
    """The field of an object by its key; None if it does not exist, or if the node is not an object."""
    if basic_type(value, at) != OBJECT:
        return None
    found = children_at(value, at)
    return next((p for p, n in zip(found.places, found.ids, strict=True) if key_at(keys, n) == key), None)


def element_at(value: bytes, at: int, index: int) -> int | None:
    """The element of an array by its index; None if it does not exist, or if the node is not an array."""
    if basic_type(value, at) != ARRAY:
        return None
    places = children_at(value, at).places
    return places[index] if index < len(places) else None


def size_at(value: bytes, at: int) -> int:
    """The size of a node in bytes.

    Raises: CorruptionError
    """
    kind = basic_type(value, at)
    head = value[at]
    if kind == SHORT_TEXT:
        size = 1 + (head >> 2)
    elif kind == PRIMITIVE:
        number = head >> 2
        if number in (BINARY, TEXT):
            size = 5 + _number(value, at + 1, 4)
        elif number in _SIZES:
            size = 1 + _SIZES[number]
        else:
            raise damage(f"primitive type {number} does not exist")
    else:
        offset_width = (head >> 2 & 3) + 1
        id_width = (head >> 4 & 3) + 1 if kind == OBJECT else 0
        count_width = 4 if head >> (6 if kind == OBJECT else 4) & 1 else 1
        count = _number(value, at + 1, count_width)
        offsets = at + 1 + count_width + id_width * count
        start = offsets + offset_width * (count + 1)
        size = start - at + _number(value, offsets + offset_width * count, offset_width)
    if at + size > len(value):
        raise damage(f"a value at byte {at} ends at {at + size} of {len(value)}")
    return size


def check_apart(value: bytes, places: Sequence[int], room: int | None = None) -> None:
    """Refuse overlapping parts, which would expand when they are copied separately.

    Args:
        room: size of the container of the parts; default: the size of the value.
    Cost: linear in the number of parts.
    Raises: CorruptionError
    """
    if sum(size_at(value, place) for place in places) > (len(value) if room is None else room):
        raise damage("its parts overlap")


def _time(kind: int, whole: int) -> date | datetime:
    try:
        if kind == DATE:
            return date.fromordinal(whole + _EPOCH_DAY)
        moment = _EPOCH + timedelta(microseconds=whole)
    except (OverflowError, ValueError) as error:
        raise damage("a time is beyond the years 1 to 9999") from error
    return moment.replace(tzinfo=None) if kind == CLOCK else moment


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise damage("a string is not UTF-8") from error


def _part(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise damage(f"a value ends at byte {at + size} of {len(data)}")
    return data[at : at + size]


def _number(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise damage(f"a number ends at byte {at + width} of {len(data)}")
    return int.from_bytes(data[at : at + width], "little")


def _numbers(data: bytes, at: int, width: int, count: int) -> list[int]:
    """Consecutive numbers, known to be inside the bytes."""
    if width == 1:
        return list(data[at : at + count])
    return [int.from_bytes(data[at + width * i : at + width * (i + 1)], "little") for i in range(count)]
