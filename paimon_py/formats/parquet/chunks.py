"""Reads the metadata of single column chunks from a Parquet footer.

pyarrow ends the process if the metadata of a chunk contradict the schema. This module therefore decodes them from the
bytes of the footer, and only the requested ones: a chunk is found by the path of its column.

Source: parquet-format `parquet.thrift`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from paimon_py.formats.parquet.statistics import GroupStatistics, Raw
from paimon_py.formats.parquet.thrift import BINARY, Reader, Struct, inner, items, number, write_varint

NO_STATISTICS = GroupStatistics(None, None, None, True)

# Field numbers of parquet.thrift.
_FILE_GROUPS, _GROUP_COLUMNS, _CHUNK_METADATA = 4, 1, 3
_ENCODINGS, _PATH, _CODEC, _VALUES, _SIZE, _DATA, _DICTIONARY, _STATISTICS = 2, 3, 4, 5, 7, 9, 11, 12
_NULLS, _MAX, _MIN = 3, 5, 6
_OLD = {_MAX: 1, _MIN: 2}
"""The fields in which writers repeat the bounds of numbers, for old readers."""

_PATH_OF_ONE = b"\x19\x18"
"""The beginning of the path of a non-nested column: the field after the encodings, a list of one binary."""
_FORMS = {"BOOLEAN": "<?", "INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


class Chunk(NamedTuple):
    """One column in one row group: codec, number of values, size in the file, and start."""

    codec: int
    values: int
    size: int
    start: int
    statistics: Struct | None


def flat_chunks(footer: bytes, name: str, rows: Sequence[int]) -> list[Chunk]:
    """The chunks of a non-nested column, one per row group; `rows`: the row counts of the groups.

    Cost: a search of the footer and 10 µs per chunk. If the search fails, the whole footer is decoded.
    Raises: ValueError or IndexError for an inconsistent footer.
    """
    path = bytearray(_PATH_OF_ONE)
    text = name.encode()
    write_varint(path, len(text))
    path += text
    places = _places(footer, bytes(path))
    if len(places) == len(rows):
        found = [_metadata(footer, place) for place in places]
    else:
        found = [_only(items(group, _GROUP_COLUMNS), text) for group in _groups(footer)]
    if len(found) != len(rows):
        raise ValueError(f"{len(found)} row groups where there are {len(rows)}")
    return [_chunk(metadata, name, count) for metadata, count in zip(found, rows, strict=True)]


def chunk_statistics(chunk: Chunk, physical: str) -> GroupStatistics:
    """The statistics of a chunk with the physical type `physical`.

    Raises: ValueError for bounds that are invalid for the type, or more nulls than rows.
    """
    if chunk.statistics is None:
        return NO_STATISTICS
    nulls = number(chunk.statistics, _NULLS)
    if nulls is not None and not 0 <= nulls <= chunk.values:
        raise ValueError(f"{nulls} nulls among {chunk.values} values")
    low, high = raw_bounds(chunk.statistics, physical)
    return GroupStatistics(low, high, nulls, nulls is None or nulls < chunk.values)


def raw_bounds(statistics: Struct, physical: str) -> tuple[Raw | None, Raw | None]:
    """Minimum and maximum of Thrift statistics as values of a physical type; (None, None) unless both are set.

    Bounds that are stored twice and differ are damaged, and treated as unknown.

    Raises: ValueError for bounds that are invalid for the type.
    """
    if _MIN not in statistics or _MAX not in statistics:
        return None, None
    (low_type, low), (high_type, high) = statistics[_MIN], statistics[_MAX]
    if low_type != BINARY or high_type != BINARY:
        raise ValueError("a bound that is not bytes")
    if any(statistics.get(old, statistics[new]) != statistics[new] for new, old in _OLD.items()):
        return None, None
    form = _FORMS.get(physical)
    if form is None:
        return low, high
    try:
        return struct.unpack(form, low)[0], struct.unpack(form, high)[0]
    except struct.error as error:
        raise ValueError(f"a bound of {len(low)} and one of {len(high)} bytes for type {physical}") from error


def _places(footer: bytes, path: bytes) -> list[int]:
    places = []
    at = footer.find(path)
    while at >= 0:
        places.append(at)
        at = footer.find(path, at + len(path))
    return places


def _metadata(footer: bytes, place: int) -> Struct:
    """The fields of a chunk from its path to its statistics."""
    reader = Reader(footer)
    reader.position = place
    return reader.struct(after=_ENCODINGS, until=_STATISTICS)


def _groups(footer: bytes) -> list[Struct]:
    reader = Reader(footer)
    kind = reader.find(_FILE_GROUPS)
    return items({_FILE_GROUPS: (kind, reader.value(kind))}, _FILE_GROUPS)


def _only(columns: Sequence[Struct], text: bytes) -> Struct:
    """The metadata of the only chunk of a column in a row group."""
    known = [inner(column, _CHUNK_METADATA) or {} for column in columns]
    found = [metadata for metadata in known if items(metadata, _PATH) == [text]]
    if len(found) != 1:
        raise ValueError(f"{len(found)} chunks of column {text.decode(errors='replace')} in a row group")
    return found[0]


def _chunk(metadata: Struct, name: str, rows: int) -> Chunk:
    codec, values, size, start, dictionary = (
        number(metadata, field) for field in (_CODEC, _VALUES, _SIZE, _DATA, _DICTIONARY)
    )
    if codec is None or values != rows or size is None or size < 0 or start is None or start < 0:
        raise ValueError(f"a chunk of column {name} does not fit its row group of {rows} rows")
    start = min(start, dictionary) if dictionary else start
    return Chunk(codec, rows, size, start, inner(metadata, _STATISTICS))
