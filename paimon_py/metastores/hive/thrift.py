"""Thrift structs and messages in the binary protocol of a Hive Metastore. No I/O.

A struct keeps all fields that were read, including unknown ones, so that writing it back loses nothing, whatever the
version of the server.

Source: Thrift binary protocol (strict).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from paimon_py.errors import StorageError

STOP, BOOL, BYTE, DOUBLE, I16, I32, I64, STRING, STRUCT, MAP, SET, LIST = 0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15
"""Wire types."""

CALL, REPLY, EXCEPTION = 1, 2, 3
"""Kinds of messages."""

UNKNOWN_METHOD = 1
"""Type of an application exception: the server does not have the call."""

_VERSION = 0x80010000
_MOST_BYTES = 256 << 20
_DEEPEST = 32
_NUMBERS = {BOOL: ">?", BYTE: ">b", DOUBLE: ">d", I16: ">h", I32: ">i", I64: ">q"}

Struct = dict[int, tuple[int, Any]]
"""Type and value by field number. Strings are bytes."""


class Items(NamedTuple):
    """A list or set: the type of the items, and the items."""

    item_type: int
    items: list[Any]


class Pairs(NamedTuple):
    """A map: types of keys and values, and the pairs."""

    key_type: int
    value_type: int
    pairs: list[tuple[Any, Any]]


class Message(NamedTuple):
    """A received message: kind, name of the call, and the struct."""

    kind: int
    name: str
    number: int
    body: Struct


class MalformedError(StorageError):
    """Bytes that are not a Thrift message, one that is too large, or fields of the wrong type for the call."""

    kind = "malformed-answer"

    def __init__(self, message: str) -> None:
        super().__init__(f"invalid answer from a metastore: {message}", operation="receive")


def text(struct_: Struct, field: int) -> str | None:
    """A string field, None if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    value = struct_[field][1] if field in struct_ else None
    if value is None:
        return None
    if not isinstance(value, bytes):
        raise MalformedError(f"field {field} is not text")
    return value.decode("utf-8", "replace")


def number(struct_: Struct, field: int) -> int | None:
    """An integer field, None if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    value = struct_[field][1] if field in struct_ else None
    if value is not None and not isinstance(value, int):
        raise MalformedError(f"field {field} is not a number")
    return value


def inner(struct_: Struct, field: int) -> Struct:
    """A nested struct, empty if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    value = struct_[field][1] if field in struct_ else {}
    if not isinstance(value, dict):
        raise MalformedError(f"field {field} is not a struct")
    return value


def items(struct_: Struct, field: int) -> list[Any]:
    """The items of a list field, empty if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    value = struct_[field][1] if field in struct_ else Items(STRUCT, [])
    if not isinstance(value, Items):
        raise MalformedError(f"field {field} is not a list")
    return value.items


def structs(struct_: Struct, field: int) -> list[Struct]:
    """The structs of a list field, empty if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    found = items(struct_, field)
    if not all(isinstance(item, dict) for item in found):
        raise MalformedError(f"field {field} is not a list of structs")
    return found


def texts(struct_: Struct, field: int) -> list[str]:
    """The strings of a list field, empty if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    found = items(struct_, field)
    if not all(isinstance(item, bytes) for item in found):
        raise MalformedError(f"field {field} is not a list of strings")
    return [item.decode("utf-8", "replace") for item in found]


def mapping(struct_: Struct, field: int) -> dict[str, str]:
    """A map of strings, empty if the field is not set.

    Raises: MalformedError if the field has another type.
    """
    value = struct_[field][1] if field in struct_ else Pairs(STRING, STRING, [])
    if not isinstance(value, Pairs) or not all(isinstance(part, bytes) for pair in value.pairs for part in pair):
        raise MalformedError(f"field {field} is not a map of strings")
    return {key.decode("utf-8", "replace"): item.decode("utf-8", "replace") for key, item in value.pairs}


def of_text(value: str) -> tuple[int, Any]:
    """A string as a field."""
    return STRING, value.encode("utf-8", "surrogatepass")


def of_texts(values: Iterable[str]) -> tuple[int, Any]:
    """Strings as a list field."""
    return LIST, Items(STRING, [of_text(value)[1] for value in values])


def of_structs(values: Iterable[Struct]) -> tuple[int, Any]:
    """Structs as a list field."""
    return LIST, Items(STRUCT, list(values))


def of_mapping(values: Mapping[str, str]) -> tuple[int, Any]:
    """A map of strings as a field."""
    return MAP, Pairs(STRING, STRING, [(of_text(key)[1], of_text(value)[1]) for key, value in values.items()])


def message(kind: int, name: str, sequence: int, body: Struct) -> bytes:
    """A message as bytes."""
    out = [struct.pack(">I", _VERSION | kind)]
    _write(out, STRING, name.encode())
    out.append(struct.pack(">i", sequence))
    _write(out, STRUCT, body)
    return b"".join(out)


def _write(out: list[bytes], kind: int, value: Any) -> None:
    if kind in _NUMBERS:
        out.append(struct.pack(_NUMBERS[kind], value))
    elif kind == STRING:
        out += (struct.pack(">i", len(value)), value)
    elif kind == STRUCT:
        for number_, (inner_kind, inner_value) in value.items():
            out.append(struct.pack(">bh", inner_kind, number_))
            _write(out, inner_kind, inner_value)
        out.append(b"\0")
    elif kind == MAP:
        out.append(struct.pack(">bbi", value.key_type, value.value_type, len(value.pairs)))
        for key, item in value.pairs:
            _write(out, value.key_type, key)
            _write(out, value.value_type, item)
    else:
        out.append(struct.pack(">bi", value.item_type, len(value.items)))
        for item in value.items:
            _write(out, value.item_type, item)


class MessageReader:
    """Reads one message from a source of bytes, within size limits.

    `take` returns exactly the requested number of bytes, or raises.
    """

    __slots__ = ("_left", "_take")

    def __init__(self, take: Callable[[int], bytes]) -> None:
        self._take = take
        self._left = _MOST_BYTES

    def read(self) -> Message:
        """The next message.

        Raises: MalformedError, and what `take` raises.
        """
        (head,) = self._unpack(">I")
        if head & 0xFFFF0000 != _VERSION:
            raise MalformedError("the answer is not Thrift's strict binary protocol")
        name = self._text()
        (sequence,) = self._unpack(">i")
        return Message(head & 0xFF, name.decode("utf-8", "replace"), sequence, self._value(STRUCT, 0))

    def _bytes(self, size: int) -> bytes:
        if size < 0 or size > self._left:
            raise MalformedError(f"a message of more than {_MOST_BYTES} bytes, or a negative size")
        self._left -= size
        return self._take(size) if size else b""

    def _unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _text(self) -> bytes:
        return self._bytes(*self._unpack(">i"))

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise MalformedError(f"a message that is nested more than {_DEEPEST} deep")
        if kind in _NUMBERS:
            return self._unpack(_NUMBERS[kind])[0]
        if kind == STRING:
            return self._text()
        if kind == STRUCT:
            return self._fields(depth)
        if kind == MAP:
            key_type, value_type, count = self._unpack(">bbi")
            self._check_count(count)
            pairs = [(self._value(key_type, depth + 1), self._value(value_type, depth + 1)) for _ in range(count)]
            return Pairs(key_type, value_type, pairs)
        if kind in (LIST, SET):
            item_type, count = self._unpack(">bi")
            self._check_count(count)
            return Items(item_type, [self._value(item_type, depth + 1) for _ in range(count)])
        raise MalformedError(f"{kind} is not a Thrift type")

    def _fields(self, depth: int) -> Struct:
        found: Struct = {}
        while True:
            (kind,) = self._unpack(">b")
            if kind == STOP:
                return found
            (field,) = self._unpack(">h")
            found[field] = (kind, self._value(kind, depth + 1))

    def _check_count(self, count: int) -> None:
        if count < 0 or count > self._left:
            raise MalformedError(f"a list of {count} items is longer than its message")
