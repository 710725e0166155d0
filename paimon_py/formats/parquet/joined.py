"""Joins small Parquet files that describe their columns alike into one file with the row groups of all of them.

To decode one file of many row groups takes half the time of many files with one. Column chunks keep their bytes; only
their offsets change. Files with anything unusual are left out, and have to be read by themselves.

Source: parquet-format `parquet.thrift`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from paimon_py.formats.base import JoinedFile
from paimon_py.formats.parquet.footer import MAGIC, leaf_elements, split_tail, tail
from paimon_py.formats.parquet.footer_kinds import FooterKind, FooterNumbers, Leaf
from paimon_py.formats.parquet.thrift import I64, LIST, STRUCT, Reader, items, number, write_varint

_FILE_SCHEMA, _ELEMENT_TYPE = 2, 1
_NEXT_LONG, _NEXT_LIST = bytes((1 << 4 | I64,)), bytes((1 << 4 | LIST,))
_KINDS_MAX = 4
"""The maximum number of kinds of footers of a schema that are kept."""


def join_files(files: Sequence[bytes], columns: Sequence[str], most_bytes: int) -> JoinedFile | None:
    """One file of those that are like the first one; None if there are fewer than two.

    Args:
        columns: the top-level columns that will be read.
        most_bytes: files are left out if the pages of all would have more bytes, once decompressed.
    Cost: 4 µs for each column of a file.
    """
    kinds: _Kinds | None = None
    bodies: list[bytes] = []
    places: list[int] = []
    row_counts: list[int] = []
    end = b""
    groups, start, count, size = bytearray(), 0, 0, 0
    for place, data in enumerate(files):
        try:
            body, footer = split_tail(data)
            if body[:4] != MAGIC:
                continue
            if kinds is None:
                kinds = _kinds_of(_head(footer), tuple(columns))
            if not footer.startswith(kinds.head):
                continue
            found = kinds.find(footer)
            encoded = found.groups_at(start, body)
        except (ValueError, IndexError):
            continue
        if not places:
            end = footer[found.end :]
        if footer[found.end :] != end or size + found.uncompressed > most_bytes:
            continue
        bodies.append(body)
        places.append(place)
        row_counts.append(found.row_count)
        groups += encoded
        start, count, size = start + len(body), count + found.group_count, size + found.uncompressed
    if kinds is None or len(places) < 2:
        return None
    about = bytearray(kinds.head + _NEXT_LONG)
    write_varint(about, sum(row_counts) << 1)
    about += _NEXT_LIST
    about.append(0xF0 | STRUCT)
    write_varint(about, count)
    about += groups + end
    return JoinedFile(b"".join((*bodies, tail(bytes(about)))), places, row_counts)


def _head(footer: bytes) -> bytes:
    """The bytes of a footer before its number of rows: version and schema."""
    reader = Reader(footer)
    reader.skip(reader.find(_FILE_SCHEMA))
    return footer[: reader.position]


class _Kinds:
    """The kinds of footers that begin alike.

    Attributes:
        head: the bytes before the number of rows: version and schema.
    """

    def __init__(self, head: bytes, columns: Sequence[str]) -> None:
        """Raises: ValueError or IndexError for a damaged schema."""
        reader = Reader(head)
        kind = reader.find(_FILE_SCHEMA)
        elements = items({_FILE_SCHEMA: (kind, reader.value(kind))}, _FILE_SCHEMA)
        self.head = head
        wanted = frozenset(columns)
        self._leaves = [
            Leaf(tuple(part.encode() for part in path), number(element, _ELEMENT_TYPE) or 0, path[0] in wanted)
            for path, element in leaf_elements(elements)
        ]
        self._kinds: tuple[FooterKind, ...] = ()

    def find(self, footer: bytes) -> FooterNumbers:
        """The numbers in a footer that begins with `head`.

        Raises: ValueError or IndexError if it is damaged or unusual.
        """
        begin = len(self.head)
        for kind in self._kinds:
            found = kind.find(footer, begin)
            if found is not None:
                return found
        kind = FooterKind(footer, begin, self._leaves)
        found = kind.find(footer, begin)
        if found is None:
            raise ValueError("a footer unlike itself")
        self._kinds = (kind, *self._kinds[: _KINDS_MAX - 1])
        return found


@functools.lru_cache(maxsize=64)
def _kinds_of(head: bytes, columns: tuple[str, ...]) -> _Kinds:
    """The kinds that were seen of the footers of a schema; threads may add to them at the same time."""
    return _Kinds(head, columns)
