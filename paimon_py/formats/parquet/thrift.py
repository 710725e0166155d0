"""Reads and writes Thrift structs in compact protocol, as in Parquet files, as plain values.

Source: Thrift compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
"""Wire types."""

_INTEGERS = frozenset({I16, I32, I64})

Struct = dict[int, tuple[int, Any]]
"""Wire type and value by field number. Integers stay zigzag-encoded, see `number`."""


class Sequence(NamedTuple):
    """A list: the wire type of its items and the items."""

    item_type: int
    items: list[Any]


def number(struct: Struct, field: int) -> int | None:
    """A signed integer field.

    Raises: ValueError if the field is something else.
    """
    if field not in struct:
        return None
    value = struct[field][1]
    if not isinstance(value, int):
        raise ValueError(f"field {field} of a struct is not a number")
    return (value >> 1) ^ -(value & 1)


def items(struct: Struct, field: int) -> list[Any]:
    """The items of a list field.

    Raises: ValueError if the field is missing or not a list.
    """
    value = struct[field][1] if field in struct else None
    if not isinstance(value, Sequence):
        raise ValueError(f"field {field} of a struct is not a list")
    return value.items


def inner(struct: Struct, field: int) -> Struct | None:
    """A nested struct; None if there is none.

    Raises: ValueError if the field is not a struct.
    """
    if field not in struct:
        return None
    value = struct[field][1]
    if not isinstance(value, dict):
        raise ValueError(f"field {field} of a struct is not a struct")
    return value


class Reader:
    """Reads Thrift compact values. Integers stay zigzag-encoded, since they are only written back."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def byte(self) -> int:
        value = self.data[self.position]
        self.position += 1
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self.data):
            raise ValueError("the bytes end inside a value")
        value = self.data[self.position : end]
        self.position = end
        return value

    def skip(self, kind: int) -> None:
        self.value(kind)

    def list_header(self) -> tuple[int, int]:
        header = self.byte()
        count = header >> 4
        return header & 15, self.varint() if count == 15 else count

    def find(self, wanted: int) -> int:
        """Move to a field of the struct at the current position.

        Returns: its wire type.
        Raises: ValueError if it does not exist.
        """
        for number, kind in self._fields():
            if number == wanted:
                return kind
            self.skip(kind)
        raise ValueError(f"a struct lacks field {wanted}")

    def value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self.varint()
        if kind == BINARY:
            return self.take(self.varint())
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            return self._sequence(*self.list_header())
        if kind in (TRUE, FALSE):
            return None
        if kind == BYTE:
            return self.byte()
        if kind == DOUBLE:
            return self.take(8)
        raise ValueError(f"unexpected Thrift type {kind} in a struct")

    def _sequence(self, item_type: int, count: int) -> Sequence:
        if item_type == STRUCT:
            return Sequence(item_type, [self.struct() for _ in range(count)])
        if item_type in _INTEGERS:
            return Sequence(item_type, [self.varint() for _ in range(count)])
        if item_type in (TRUE, FALSE):
            return Sequence(item_type, [self.byte() for _ in range(count)])
        return Sequence(item_type, [self.value(item_type) for _ in range(count)])

    def struct(self, after: int = 0, until: int = 1 << 15) -> Struct:
        """The struct at the current position, or its fields after `after`; fields beyond `until` may be skipped."""
        found: Struct = {}
        data, number = self.data, after
        while header := data[self.position]:
            self.position += 1
            if header > 15:
                number += header >> 4
            else:
                raw = self.varint()
                number = (raw >> 1) ^ -(raw & 1)
            kind = header & 15
            if kind in _INTEGERS and (byte := data[self.position]) < 128:  # most values: one byte, without a call
                self.position += 1
                found[number] = kind, byte
            else:
                found[number] = kind, self.value(kind)
            if number >= until:
                return found
        self.position += 1
        return found

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Number and wire type of each field of a struct; the caller reads each value before the next field."""
        number = 0
        while (header := self.byte()) != 0:
            delta = header >> 4
            if delta:
                number += delta
            else:
                raw = self.varint()
                number = (raw >> 1) ^ -(raw & 1)
            yield number, header & 15


def encode(fields: Struct) -> bytes:
    """Encode a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def write_varint(out: bytearray, value: int) -> None:
    """Append a varint."""
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, fields: Struct) -> None:
    previous = 0
    for number in sorted(fields):
        kind, value = fields[number]
        if 0 < number - previous < 16:
            out.append((number - previous) << 4 | kind)
        else:
            out.append(kind)
            write_varint(out, number << 1)
        previous = number
        _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        write_varint(out, value)
    elif kind == BINARY:
        write_varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        _write_list(out, value)
    elif kind == BYTE:
        out.append(value)
    elif kind == DOUBLE:
        out += value


def _write_list(out: bytearray, value: Sequence) -> None:
    count = len(value.items)
    if count < 15:
        out.append(count << 4 | value.item_type)
    else:
        out.append(0xF0 | value.item_type)
        write_varint(out, count)
    for item in value.items:
        if value.item_type in (TRUE, FALSE):
            out.append(item)
        else:
            _write_value(out, value.item_type, item)
