"""Finds the numbers in the footers of Parquet files that differ in little else.

The first footer of a kind is walked through once, which gives regular expressions for all of its kind. An expression
consists of whole fields, so it matches a footer if and only if the same fields follow one another there.

Worked example: of a column `k` with bounds of eight bytes, the walk makes the fields `15 04 … 19 18 01 6b …` into
`\\x15N…\\x19\\x18\\x01k…\\x18\\x08.{8}`, where `N` is the expression for a varint. A text may be longer in the next
footer, and ends the expression: the next one is tried behind as many bytes as the text begins with.

Source: parquet-format `parquet.thrift`; Thrift compact protocol.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from paimon_py.formats.parquet.footer import MAGIC
from paimon_py.formats.parquet.thrift import (
    BINARY,
    BYTE,
    DOUBLE,
    FALSE,
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Reader,
    write_varint,
)

# Field numbers of parquet.thrift.
_GROUP_COLUMNS, _GROUP_BYTES, _GROUP_ROWS = 1, 2, 3
_CHUNK_OFFSET, _CHUNK_METADATA = 2, 3
_COLUMN_TYPE, _COLUMN_PATH, _COLUMN_UNCOMPRESSED, _COLUMN_COMPRESSED, _COLUMN_TEXTS, _COLUMN_DATA = 1, 3, 6, 7, 8, 9
_COLUMN_INDEX, _COLUMN_DICTIONARY = 10, 11
_KEPT = (_COLUMN_UNCOMPRESSED, _COLUMN_COMPRESSED, _COLUMN_DATA, _COLUMN_DICTIONARY)
_BYTE_ARRAY = 6 << 1

_INTEGERS = frozenset({I16, I32, I64})
_USUAL = frozenset({2, 3, 4, 5, 6, 7})
"""The fields of a column chunk in a file of its own, without encryption: its metadata, and where its page index is."""

_BEGIN_COLUMN = bytes((_CHUNK_OFFSET << 4 | I64, 0, 1 << 4 | STRUCT))
_TO_DICTIONARY = _COLUMN_DICTIONARY - _COLUMN_DATA << 4 | I64
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"


class FooterKind:
    """Footers with the same fields from the number of rows to the last row group."""

    __slots__ = ("_expressions", "groups")

    def __init__(self, footer: bytes, begin: int) -> None:
        """Walk through a footer from the field with its number of rows, which begins at byte `begin`.

        Raises: ValueError or IndexError for what is damaged or unusual.
        """
        walk = _Walk(footer, begin)
        walk.file()
        self._expressions = [_compiled(bytes(text)) for text in walk.expressions]
        self.groups = walk.groups

    def find(self, footer: bytes, begin: int) -> FooterNumbers | None:
        """The numbers of a footer; None if it is of another kind."""
        values: list[bytes] = []
        at = begin
        for place, expression in enumerate(self._expressions):
            if place:
                length = footer[at]
                if length > 127:
                    return None
                at += 1 + length
            match = expression.match(footer, at)
            if match is None:
                return None
            values += match.groups()
            at = match.end()
        return FooterNumbers(self.groups, values, at)


class FooterNumbers:
    """The numbers of a footer.

    Attributes:
        end: where the row groups end in the footer.
        group_count: the number of row groups; `row_count`: the rows in them.
        uncompressed: the bytes of the pages of all columns, once decompressed; known after `groups_at`.
    """

    __slots__ = ("_groups", "_values", "end", "group_count", "row_count", "uncompressed")

    def __init__(self, groups: list[_Group], values: list[bytes], end: int) -> None:
        self._groups, self._values, self.end = groups, values, end
        self.group_count = len(groups)
        self.row_count = _long(values[0])
        self.uncompressed = 0

    def groups_at(self, start: int, body_bytes: int) -> bytearray:
        """The row groups for a place `start` bytes later, without statistics.

        Args:
            body_bytes: the number of bytes before the footer.
        Raises: ValueError for pages outside the file, or row groups that do not have the rows of the file.
        """
        out = bytearray()
        values = iter(self._values)
        next(values)
        uncompressed = rows = 0
        for header, have_dictionary in self._groups:
            out += header
            for has_dictionary in have_dictionary:
                begin, size, compressed, data = next(values), next(values), next(values), _long(next(values))
                out += _BEGIN_COLUMN
                out += begin
                write_varint(out, data + start << 1)
                if has_dictionary and (dictionary := _long(next(values))):
                    out.append(_TO_DICTIONARY)
                    write_varint(out, dictionary + start << 1)
                    data = min(data, dictionary)
                out += b"\0\0"
                if data < len(MAGIC) or data + _long(compressed) > body_bytes:
                    raise ValueError("pages outside their file")
                uncompressed += _long(size)
            out += next(values)
            rows += _long(next(values))
            out.append(0)
        if rows != self.row_count:
            raise ValueError(f"{rows} rows in row groups, {self.row_count} by the footer")
        self.uncompressed = uncompressed
        return out


_Group = tuple[bytes, list[bool]]
"""The header of a row group and of its list of columns, and whether each of these has a dictionary."""


class _Walk:
    """Walks through a footer and writes regular expressions for it.

    Attributes:
        expressions: one for the fields up to each text, and one for those behind the last.
        groups: what is found of the row groups.
    """

    def __init__(self, footer: bytes, begin: int) -> None:
        self._data = footer
        self._at = begin
        self._physical = 0
        self.expressions = [bytearray()]
        self.groups: list[_Group] = []

    def file(self) -> None:
        """Walk from the number of rows to the last row group."""
        self._header(1, I64)
        self._number(is_kept=True)
        self._header(1, LIST)
        for _ in range(self._list(STRUCT)):
            self._group()

    def _group(self) -> None:
        begin = self._at
        self._header(_GROUP_COLUMNS, LIST)
        count = self._list(STRUCT)
        header = self._data[begin : self._at]
        self.groups.append((header, [self._chunk() for _ in range(count)]))
        self._write(b"(")
        self._header(_GROUP_BYTES - _GROUP_COLUMNS, I64)
        self._number()
        self._header(_GROUP_ROWS - _GROUP_BYTES, I64)
        self._number(is_kept=True)
        self._write(b")")
        for _, kind in self._fields():
            self._value(kind)

    def _chunk(self) -> bool:
        """Walk through a column chunk; whether it has a dictionary."""
        found: list[bool] = []
        for number, kind in self._fields():
            if number not in _USUAL:
                raise ValueError(f"a column chunk with field {number}")
            if number == _CHUNK_METADATA and kind == STRUCT:
                found.append(self._metadata())
            else:
                self._value(kind)
        if len(found) != 1:
            raise ValueError("a column chunk without metadata")
        return found[0]

    def _metadata(self) -> bool:
        """Walk through the metadata of a column chunk; whether it has a dictionary."""
        found: set[int] = set()
        self._write(b"(")
        for number, kind in self._fields():
            found.add(number)
            if number == _COLUMN_TEXTS:  # they would end the expression inside the group
                raise ValueError("texts beside a column")
            if number in _KEPT:
                if kind != I64:
                    raise ValueError(f"a number of type {kind}")
                self._write(b")" if number == _COLUMN_DATA else b"")
                self._number(is_kept=True)
            elif number == _COLUMN_TYPE and kind == I32:
                self._physical = self._data[self._at]
                self._number()
            elif number == _COLUMN_PATH and kind == LIST:
                begin = self._at
                reader = self._reader()
                reader.skip(kind)
                self._literal(reader.position - begin)
            else:
                self._value(kind)
        if not {*_KEPT, _COLUMN_TYPE} - {_COLUMN_DICTIONARY} <= found or _COLUMN_INDEX in found:
            raise ValueError("unusual metadata of a column")
        return _COLUMN_DICTIONARY in found

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Number and wire type of each field of a struct; the caller walks through each value before the next."""
        number = 0
        while header := self._data[self._at]:
            if header < 16:
                raise ValueError("fields that are not in order")
            number += header >> 4
            self._literal(1)
            yield number, header & 15
        self._literal(1)

    def _value(self, kind: int) -> None:
        if kind in _INTEGERS:
            self._number()
        elif kind == BINARY:
            self._binary()
        elif kind == STRUCT:
            for _, inner in self._fields():
                self._value(inner)
        elif kind == LIST:
            item = self._data[self._at] & 15
            for _ in range(self._list(item)):
                if item in (TRUE, FALSE):
                    raise ValueError("a list of truth values")
                self._value(item)
        elif kind in (BYTE, DOUBLE):
            length = 1 if kind == BYTE else 8
            self._write(b".{%d}" % length)
            self._at += length
        elif kind not in (TRUE, FALSE):
            raise ValueError(f"a value of type {kind}")

    def _binary(self) -> None:
        length = self._data[self._at]
        if length > 127:
            raise ValueError("a long text")
        if self._physical == _BYTE_ARRAY:
            self.expressions.append(bytearray())
        else:
            self._write(re.escape(self._data[self._at : self._at + 1]) + b".{%d}" % length)
        self._at += 1 + length

    def _header(self, delta: int, kind: int) -> None:
        if self._data[self._at] != delta << 4 | kind:
            raise ValueError("fields that are missing")
        self._literal(1)

    def _list(self, kind: int) -> int:
        """Walk through the header of a list; the number of its items."""
        reader = self._reader()
        found, count = reader.list_header()
        if found != kind:
            raise ValueError(f"a list of type {found}")
        self._literal(reader.position - self._at)
        return count

    def _number(self, *, is_kept: bool = False) -> None:
        self._write(b"(" + _NUMBER + b")" if is_kept else _NUMBER)
        while self._data[self._at] > 127:
            self._at += 1
        self._at += 1

    def _literal(self, length: int) -> None:
        self._write(re.escape(self._data[self._at : self._at + length]))
        self._at += length

    def _reader(self) -> Reader:
        reader = Reader(self._data)
        reader.position = self._at
        return reader

    def _write(self, text: bytes) -> None:
        self.expressions[-1] += text


@functools.lru_cache(maxsize=1024)
def _compiled(expression: bytes) -> re.Pattern[bytes]:
    return re.compile(expression, re.DOTALL)


def _long(varint: bytes) -> int:
    """A number that is not negative."""
    if len(varint) == 2:
        value = varint[0] & 127 | varint[1] << 7
    elif len(varint) == 1:
        value = varint[0]
    else:
        value = shift = 0
        for byte in varint:
            value |= (byte & 127) << shift
            shift += 7
    if value & 1:
        raise ValueError("a negative number")
    return value >> 1
