"""The few changes to a Parquet footer that pyarrow cannot make: INT96 columns and the name of the root.

The footer is a Thrift struct in compact form. INT96 and FIXED_LEN_BYTE_ARRAY(12) have the same bytes in plain and
dictionary pages, so a column changes from one to the other by its description in the footer alone. Writing turns
binaries into INT96, which every Java release reads as nanoseconds; reading turns INT96 into binaries, which pyarrow
then does not cut to 64-bit nanoseconds.

Source: parquet-format `parquet.thrift`, Thrift compact protocol; format.md §8.3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

MAGIC = b"PAR1"
ROOT_NAME = b"paimon_schema"

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INT96, _FIXED = 3, 7
_INT96_BYTES = 12

# Field numbers of parquet.thrift.
_FILE_SCHEMA, _FILE_ROW_GROUPS, _FILE_METADATA = 2, 4, 5
_ELEMENT_TYPE, _ELEMENT_LENGTH, _ELEMENT_NAME, _ELEMENT_CHILDREN = 1, 2, 4, 5
_ELEMENT_CONVERTED, _ELEMENT_LOGICAL = 6, 10
_GROUP_COLUMNS, _CHUNK_METADATA = 1, 3
_COLUMN_TYPE, _COLUMN_STATISTICS = 1, 12

Struct = dict[int, tuple[int, Any]]


class _Sequence(msgspec.Struct, frozen=True):
    """A Thrift list: the wire type of its items and the items."""

    item_type: int
    items: list[Any]


def tail(footer: bytes) -> bytes:
    """Footer, length and magic as they end a file."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def split_tail(data: bytes) -> tuple[bytes, bytes]:
    """What precedes the footer in `data`, which ends a file, and the footer.

    Raises: ValueError if `data` does not end a Parquet file or does not hold the whole footer.
    """
    if len(data) < 8 or data[-4:] != MAGIC:
        raise ValueError("no Parquet footer at the end")
    length = int.from_bytes(data[-8:-4], "little")
    if length > len(data) - 8:
        raise ValueError(f"the footer of {length} bytes is not complete")
    return data[: len(data) - 8 - length], data[len(data) - 8 - length : -8]


def with_root_name(footer: bytes) -> bytes:
    """The footer with the root of the schema called as Java calls it."""
    reader = _Reader(footer)
    field = 0
    while True:
        header = reader.byte()
        if header >> 4 == 0 or header & 15 == 0:
            raise ValueError("a footer begins with short field headers")
        field += header >> 4
        if field == _FILE_SCHEMA:
            break
        reader.skip(header & 15)
    reader.list_header()
    field = 0
    while True:
        header = reader.byte()
        if header >> 4 == 0 or header & 15 == 0:
            raise ValueError("the root of a schema has no name")
        field += header >> 4
        if field == _ELEMENT_NAME:
            break
        reader.skip(header & 15)
    start = reader.position
    reader.skip(_BINARY)
    out = bytearray(footer[:start])
    _write_varint(out, len(ROOT_NAME))
    out += ROOT_NAME + footer[reader.position :]
    return bytes(out)


def fixed_to_int96(footer: bytes, columns: frozenset[tuple[str, ...]]) -> bytes:
    """The footer with the 12-byte leaf columns at the paths `columns` as INT96, without statistics."""

    def wanted(path: tuple[str, ...], element: Struct) -> bool:
        if path not in columns:
            return False
        if _number(element, _ELEMENT_TYPE) != _FIXED or _number(element, _ELEMENT_LENGTH) != _INT96_BYTES:
            raise ValueError(f"column {'.'.join(path)} is not FIXED_LEN_BYTE_ARRAY(12)")
        return True

    return _retype(footer, wanted, _INT96)


def int96_to_fixed(footer: bytes) -> bytes:
    """The footer with every INT96 column as a 12-byte binary, without statistics and key-value metadata."""
    return _retype(footer, lambda _, element: _number(element, _ELEMENT_TYPE) == _INT96, _FIXED)


def _retype(footer: bytes, wanted: Callable[[tuple[str, ...], Struct], bool], physical: int) -> bytes:
    file = _Reader(footer).struct()
    leaves = _leaves(file[_FILE_SCHEMA][1].items)
    chosen = [wanted(path, element) for path, element in leaves]
    for (_, element), change in zip(leaves, chosen, strict=True):
        if change:
            _retype_element(element, physical)
    for group in file[_FILE_ROW_GROUPS][1].items:
        for chunk, change in zip(group[_GROUP_COLUMNS][1].items, chosen, strict=True):
            if change:
                column = chunk[_CHUNK_METADATA][1]
                column[_COLUMN_TYPE] = (_I32, physical << 1)
                column.pop(_COLUMN_STATISTICS, None)
    if physical == _FIXED:
        file.pop(_FILE_METADATA, None)
    out = bytearray()
    _write_struct(out, file)
    return bytes(out)


def _retype_element(element: Struct, physical: int) -> None:
    for field in (_ELEMENT_LENGTH, _ELEMENT_CONVERTED, _ELEMENT_LOGICAL):
        element.pop(field, None)
    element[_ELEMENT_TYPE] = (_I32, physical << 1)
    if physical == _FIXED:
        element[_ELEMENT_LENGTH] = (_I32, _INT96_BYTES << 1)


def _leaves(elements: list[Struct]) -> list[tuple[tuple[str, ...], Struct]]:
    """Leaf elements in column order with their paths (root left out)."""
    found: list[tuple[tuple[str, ...], Struct]] = []
    open_groups: list[tuple[tuple[str, ...], int]] = [((), 1)]
    for position, element in enumerate(elements):
        while open_groups and open_groups[-1][1] == 0:
            open_groups.pop()
        if not open_groups:
            raise ValueError("schema elements outside the root")
        parent, left = open_groups.pop()
        open_groups.append((parent, left - 1))
        path = parent if position == 0 else (*parent, element[_ELEMENT_NAME][1].decode())
        children = _number(element, _ELEMENT_CHILDREN) or 0
        if children:
            open_groups.append((path, children))
        elif position:
            found.append((path, element))
    return found


def _number(struct: Struct, field: int) -> int | None:
    """A signed integer field."""
    if field not in struct:
        return None
    raw: int = struct[field][1]
    return (raw >> 1) ^ -(raw & 1)


class _Reader:
    """Reads Thrift compact values. Integers stay zigzag-encoded: they are only written back."""

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
            raise ValueError("the footer ends inside a value")
        value = self.data[self.position : end]
        self.position = end
        return value

    def skip(self, kind: int) -> None:
        self.value(kind)

    def list_header(self) -> tuple[int, int]:
        header = self.byte()
        count = header >> 4
        return header & 15, self.varint() if count == 15 else count

    def value(self, kind: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self.varint()
        if kind == _BINARY:
            return self.take(self.varint())
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            item_type, count = self.list_header()
            read = self.byte if item_type in (_TRUE, _FALSE) else lambda: self.value(item_type)
            return _Sequence(item_type, [read() for _ in range(count)])
        if kind in (_TRUE, _FALSE):
            return None
        if kind == _BYTE:
            return self.byte()
        if kind == _DOUBLE:
            return self.take(8)
        raise ValueError(f"unexpected Thrift type {kind} in a footer")

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while True:
            header = self.byte()
            if header == 0:
                return fields
            delta = header >> 4
            if delta:
                number += delta
            else:
                raw = self.varint()
                number = (raw >> 1) ^ -(raw & 1)
            kind = header & 15
            fields[number] = (kind, self.value(kind))


def _write_varint(out: bytearray, value: int) -> None:
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
            _write_varint(out, number << 1)
        previous = number
        _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_I16, _I32, _I64):
        _write_varint(out, value)
    elif kind == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind == _STRUCT:
        _write_struct(out, value)
    elif kind in (_LIST, _SET):
        _write_list(out, value)
    elif kind == _BYTE:
        out.append(value)
    elif kind == _DOUBLE:
        out += value


def _write_list(out: bytearray, value: _Sequence) -> None:
    count = len(value.items)
    if count < 15:
        out.append(count << 4 | value.item_type)
    else:
        out.append(0xF0 | value.item_type)
        _write_varint(out, count)
    for item in value.items:
        if value.item_type in (_TRUE, _FALSE):
            out.append(item)
        else:
            _write_value(out, value.item_type, item)
