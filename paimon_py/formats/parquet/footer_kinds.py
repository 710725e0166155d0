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
from collections.abc import Iterator, Sequence

import msgspec

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
_COLUMN_TYPE, _COLUMN_PATH, _COLUMN_VALUES, _COLUMN_UNCOMPRESSED, _COLUMN_COMPRESSED = 1, 3, 5, 6, 7
_COLUMN_TEXTS, _COLUMN_DATA, _COLUMN_INDEX, _COLUMN_DICTIONARY = 8, 9, 10, 11
_KEPT = (_COLUMN_VALUES, _COLUMN_UNCOMPRESSED, _COLUMN_COMPRESSED, _COLUMN_DATA, _COLUMN_DICTIONARY)
_BYTE_ARRAY = 6

_INTEGERS = frozenset({I16, I32, I64})
_USUAL = frozenset({2, 3, 4, 5, 6, 7})
"""The fields of a column chunk in a file of its own, without encryption: its metadata, and where its page index is."""

_BEGIN_COLUMN = bytes((_CHUNK_OFFSET << 4 | I64, 0, 1 << 4 | STRUCT))
_TO_DICTIONARY = _COLUMN_DICTIONARY - _COLUMN_DATA << 4 | I64
_NUMBER = rb"[\x80-\xff]*[\x00-\x7f]"
_DATA_PAGE = re.compile(rb"\x15\x00\x15N\x15(N)(?:\x15(N)\x1c|\x2c)\x15(N)".replace(b"N", _NUMBER))
"""The header of a page of the first version: its size, its checksum, if any, and the number of its values."""
_DICTIONARY_PAGE = re.compile(
    rb"\x15\x04\x15N\x15(N)(?:\x15N\x3c|\x4c)\x15N\x15N[\x11\x12]?\x00\x00".replace(b"N", _NUMBER)
)
"""The whole header of a dictionary: its size."""


class Leaf(msgspec.Struct, frozen=True):
    """A leaf column of a schema: its path, its physical type, and whether it will be read."""

    path: tuple[bytes, ...]
    physical: int
    is_wanted: bool


class FooterKind:
    """Footers with the same fields from the number of rows to the last row group."""

    __slots__ = ("_expressions", "groups")

    def __init__(self, footer: bytes, begin: int, leaves: Sequence[Leaf]) -> None:
        """Walk through a footer from the field with its number of rows, which begins at byte `begin`.

        Args:
            leaves: the leaf columns by its schema.
        Raises: ValueError or IndexError for what is damaged or unusual.
        """
        walk = _Walk(footer, begin, leaves)
        walk.file()
        self._expressions = [_compile(bytes(text)) for text in walk.expressions]
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
        uncompressed: the bytes of the pages of wanted columns, once decompressed; known after `groups_at`.
    """

    __slots__ = ("_groups", "_values", "end", "group_count", "row_count", "uncompressed")

    def __init__(self, groups: list[_Group], values: list[bytes], end: int) -> None:
        self._groups, self._values, self.end = groups, values, end
        self.group_count = len(groups)
        self.row_count = _long(values[0])
        self.uncompressed = 0

    def groups_at(self, start: int, body: bytes) -> bytearray:
        """The row groups for a place `start` bytes later, without statistics.

        Offsets of columns that are not wanted stay as they are.

        Args:
            body: what precedes the footer.
        Raises: ValueError if a wanted column is not a single page with the values that the footer says, or if the row
            groups do not have the rows of the file.
        """
        out = bytearray()
        values, at = self._values, 1
        uncompressed = rows = 0
        for group in self._groups:
            out += group.header
            counts = []
            for column in group.columns:
                out += _BEGIN_COLUMN
                out += values[at]
                begin, at = at, at + 5 + column.has_dictionary
                if not column.is_wanted:
                    out += values[begin + 4]
                    out += b"\0\0"
                    continue
                first, before = _long(values[begin + 4]), _long(values[begin + 5]) if column.has_dictionary else 0
                write_varint(out, first + start << 1)
                if before:
                    out.append(_TO_DICTIONARY)
                    write_varint(out, before + start << 1)
                out += b"\0\0"
                values_here, end = _long(values[begin + 1]), (before or first) + _long(values[begin + 3])
                if not column.is_nested:
                    counts.append(values_here)
                _check_pages(body, before, first, end, values_here, column)
                uncompressed += _long(values[begin + 2])
            out += values[at]
            rows_here, at = _long(values[at + 1]), at + 2
            if any(count != rows_here for count in counts):
                raise ValueError("a column without the rows of its row group")
            rows += rows_here
            out.append(0)
        if rows != self.row_count:
            raise ValueError(f"{rows} rows in row groups, {self.row_count} by the footer")
        self.uncompressed = uncompressed
        return out


def _check_pages(body: bytes, dictionary: int, data: int, end: int, values: int, column: _Chunk) -> None:
    """Require that a column chunk is a dictionary, if any, and one page with these values: the decoder reads on in the
    chunk of the next file where a page has more.
    """
    if dictionary:
        before = _DICTIONARY_PAGE.match(body, dictionary)
        if before is None or before.end() + _long(before[1]) != data:
            raise ValueError("a dictionary that does not end where its data begin")
    page = _DATA_PAGE.match(body, data)
    if page is None or _long(page[3]) != values or page.end() + _long(page[1]) > end or end > len(body):
        raise ValueError("a column chunk of other pages")
    if column.is_nested and page[2] is None:
        raise ValueError("nested values without a checksum")


class _Chunk(msgspec.Struct, frozen=True):
    """The common properties of all column chunks of a kind of footers."""

    has_dictionary: bool
    is_wanted: bool
    is_nested: bool


class _Group(msgspec.Struct, frozen=True):
    """A row group: its header with that of its list of columns, and these."""

    header: bytes
    columns: list[_Chunk]


class _Walk:
    """Walks through a footer and writes regular expressions for it.

    Attributes:
        expressions: one for the fields up to each text, and one for those behind the last.
        groups: what is found of the row groups.
    """

    def __init__(self, footer: bytes, begin: int, leaves: Sequence[Leaf]) -> None:
        self._data = footer
        self._at = begin
        self._leaves = leaves
        self._physical = -1
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
        if count != len(self._leaves):
            raise ValueError(f"a row group of {count} columns, a schema of {len(self._leaves)}")
        header = self._data[begin : self._at]
        self.groups.append(_Group(header, [self._chunk(leaf) for leaf in self._leaves]))
        self._write(b"(")
        self._header(_GROUP_BYTES - _GROUP_COLUMNS, I64)
        self._number()
        self._header(_GROUP_ROWS - _GROUP_BYTES, I64)
        self._number(is_kept=True)
        self._write(b")")
        for _, kind in self._fields():
            self._value(kind)

    def _chunk(self, leaf: Leaf) -> _Chunk:
        found: list[_Chunk] = []
        for number, kind in self._fields():
            if number not in _USUAL:
                raise ValueError(f"a column chunk with field {number}")
            if number == _CHUNK_METADATA and kind == STRUCT:
                found.append(self._metadata(leaf))
            else:
                self._value(kind)
        if len(found) != 1:
            raise ValueError("a column chunk without metadata")
        return found[0]

    def _metadata(self, leaf: Leaf) -> _Chunk:
        """Walk through the metadata of a column chunk."""
        found: set[int] = set()
        self._physical = -1
        self._write(b"(")
        for number, kind in self._fields():
            found.add(number)
            if number == _COLUMN_TEXTS:  # they would end the expression inside the group
                raise ValueError("texts next to a column")
            if number in _KEPT:
                if kind != I64:
                    raise ValueError(f"a number of type {kind}")
                if number == _COLUMN_DATA:
                    self._write(b")")
                    self._physical = leaf.physical
                self._number(is_kept=True)
            elif number == _COLUMN_TYPE and kind == I32:
                self._require(self._data[self._at] == leaf.physical << 1)
                self._literal(1)
            elif number == _COLUMN_PATH and kind == LIST:
                self._require(self._path() == leaf.path)
            else:
                self._value(kind)
        self._physical = -1
        self._require({*_KEPT, _COLUMN_TYPE, _COLUMN_PATH} - {_COLUMN_DICTIONARY} <= found)
        self._require(_COLUMN_INDEX not in found)
        return _Chunk(_COLUMN_DICTIONARY in found, leaf.is_wanted, len(leaf.path) > 1)

    def _require(self, is_usual: bool) -> None:
        if not is_usual:
            raise ValueError("unusual metadata of a column")

    def _path(self) -> tuple[bytes, ...]:
        reader = self._reader()
        item, count = reader.list_header()
        if item != BINARY:
            raise ValueError("a path of something else")
        path = tuple(reader.take(reader.varint()) for _ in range(count))
        self._literal(reader.position - self._at)
        return path

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
def _compile(expression: bytes) -> re.Pattern[bytes]:
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
