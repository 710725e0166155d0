"""The changes to a Parquet footer that pyarrow does not support: INT96 columns and the name of the root.

The footer is a Thrift struct in compact protocol. INT96 and FIXED_LEN_BYTE_ARRAY(12) have the same bytes in plain and
dictionary pages, so changing the description in the footer converts a column. Writing converts binaries to INT96, which
every Java release reads as nanoseconds; reading converts INT96 to binaries, which pyarrow does not truncate to 64-bit
nanoseconds.

Source: parquet-format `parquet.thrift`; format.md §8.3.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import BinaryIO

from paimon_py.formats.parquet.thrift import BINARY, I32, Reader, Struct, encode, inner, items, number, write_varint

MAGIC = b"PAR1"
ROOT_NAME = b"paimon_schema"

_HEAD_BYTES = 64
"""More than what precedes the name of the root, and that name, which Arrow keeps short."""

_INT96, _FIXED = 3, 7
_INT96_BYTES = 12

# Field numbers of parquet.thrift.
_FILE_SCHEMA, _FILE_ROW_GROUPS, _FILE_METADATA = 2, 4, 5
_ELEMENT_TYPE, _ELEMENT_LENGTH, _ELEMENT_NAME, _ELEMENT_CHILDREN = 1, 2, 4, 5
_ELEMENT_CONVERTED, _ELEMENT_LOGICAL = 6, 10
_GROUP_COLUMNS, _CHUNK_METADATA = 1, 3
_COLUMN_TYPE, _COLUMN_STATISTICS = 1, 12


def tail(footer: bytes) -> bytes:
    """The footer, its length and the magic, as at the end of a file."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def split_tail(data: bytes) -> tuple[bytes, bytes]:
    """The bytes before the footer in `data`, which is the end of a file, and the footer.

    Raises: ValueError if `data` is not the end of a Parquet file or does not contain the whole footer.
    """
    if len(data) < 8 or data[-4:] != MAGIC:
        raise ValueError("no Parquet footer at the end")
    length = int.from_bytes(data[-8:-4], "little")
    if length > len(data) - 8:
        raise ValueError(f"the footer of {length} bytes is not complete")
    return data[: len(data) - 8 - length], data[len(data) - 8 - length : -8]


def finished_tail(data: bytes, int96: frozenset[tuple[str, ...]]) -> bytes:
    """The end of a file that pyarrow wrote, with its footer as in Java; `int96`: the leaf columns of that type.

    Raises: ValueError as `split_tail` and `fixed_to_int96`.
    """
    body, footer = split_tail(data)
    return body + tail(with_root_name(fixed_to_int96(footer, int96) if int96 else footer))


def read_footer(source: BinaryIO) -> bytes:
    """The footer of a file.

    Cost: two reads at the end of the file.
    Raises: ValueError if there is none.
    """
    size = source.seek(0, 2)
    source.seek(max(size - 8, 0))
    length = int.from_bytes(source.read(8)[:4], "little")
    source.seek(max(size - 8 - length, 0))
    return split_tail(source.read(length + 8))[1]


def with_root_name(footer: bytes) -> bytes:
    """The footer with the root of the schema named as in Java."""
    start, end = _root_name(footer[:_HEAD_BYTES])
    out = bytearray(footer[:start])
    write_varint(out, len(ROOT_NAME))
    out += ROOT_NAME
    out += footer[end:]
    return bytes(out)


@functools.lru_cache(maxsize=64)
def _root_name(head: bytes) -> tuple[int, int]:
    """The start and end of the root's name in the first bytes of a footer; files of one schema begin alike."""
    reader = Reader(head)
    reader.find(_FILE_SCHEMA)
    reader.list_header()
    reader.find(_ELEMENT_NAME)
    start = reader.position
    reader.skip(BINARY)
    return start, reader.position


def fixed_to_int96(footer: bytes, columns: frozenset[tuple[str, ...]]) -> bytes:
    """The footer with the 12-byte leaf columns at the paths `columns` as INT96, without statistics."""

    def is_wanted(path: tuple[str, ...], element: Struct) -> bool:
        if path not in columns:
            return False
        if number(element, _ELEMENT_TYPE) != _FIXED or number(element, _ELEMENT_LENGTH) != _INT96_BYTES:
            raise ValueError(f"column {'.'.join(path)} is not FIXED_LEN_BYTE_ARRAY(12)")
        return True

    return _retype(footer, is_wanted, _INT96)


def int96_to_fixed(footer: bytes) -> bytes:
    """The footer with every INT96 column as a 12-byte binary, without statistics and key-value metadata."""
    return _retype(footer, lambda _, element: number(element, _ELEMENT_TYPE) == _INT96, _FIXED)


def _retype(footer: bytes, wanted: Callable[[tuple[str, ...], Struct], bool], physical: int) -> bytes:
    file = Reader(footer).struct()
    leaves = leaf_elements(items(file, _FILE_SCHEMA))
    chosen = [wanted(path, element) for path, element in leaves]
    for (_, element), change in zip(leaves, chosen, strict=True):
        if change:
            _retype_element(element, physical)
    for group in items(file, _FILE_ROW_GROUPS):
        for chunk, change in zip(items(group, _GROUP_COLUMNS), chosen, strict=True):
            if change:
                column = inner(chunk, _CHUNK_METADATA) or {}
                column[_COLUMN_TYPE] = (I32, physical << 1)
                column.pop(_COLUMN_STATISTICS, None)
    if physical == _FIXED:
        file.pop(_FILE_METADATA, None)
    return encode(file)


def _retype_element(element: Struct, physical: int) -> None:
    for field in (_ELEMENT_LENGTH, _ELEMENT_CONVERTED, _ELEMENT_LOGICAL):
        element.pop(field, None)
    element[_ELEMENT_TYPE] = (I32, physical << 1)
    if physical == _FIXED:
        element[_ELEMENT_LENGTH] = (I32, _INT96_BYTES << 1)


def _name_of(element: Struct) -> str:
    """The name of a schema element. Raises: ValueError"""
    name = element.get(_ELEMENT_NAME, (0, None))[1]
    if not isinstance(name, bytes):
        raise ValueError("a schema element without a name")
    return name.decode()


def leaf_elements(elements: list[Struct]) -> list[tuple[tuple[str, ...], Struct]]:
    """The leaf elements of a schema in column order with their paths (without the root).

    Raises: ValueError for a damaged schema.
    """
    found: list[tuple[tuple[str, ...], Struct]] = []
    open_groups: list[tuple[tuple[str, ...], int]] = [((), 1)]
    if not all(isinstance(element, dict) for element in elements):
        raise ValueError("a schema of other things than elements")
    for position, element in enumerate(elements):
        while open_groups and open_groups[-1][1] == 0:
            open_groups.pop()
        if not open_groups:
            raise ValueError("schema elements outside the root")
        parent, left = open_groups.pop()
        open_groups.append((parent, left - 1))
        path = parent if position == 0 else (*parent, _name_of(element))
        children = number(element, _ELEMENT_CHILDREN) or 0
        if children:
            open_groups.append((path, children))
        elif position:
            found.append((path, element))
    return found
