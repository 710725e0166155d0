"""Reads selected pages of a Parquet row group.

pyarrow decodes a column chunk from its beginning. A chunk with only some of its pages is also a valid chunk: with a
matching footer such chunks are a file, and pyarrow can decode it. Pages are selected by their headers, which
contain their row counts and, in files written by Arrow, the minimum and maximum of their values.

Source: parquet-format `parquet.thrift`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.codec.columns import Ints, Mask, combine, from_numpy
from paimon_py.formats.parquet import thrift
from paimon_py.formats.parquet.chunks import NO_STATISTICS, Chunk, chunk_statistics, flat_chunks, raw_bounds
from paimon_py.formats.parquet.footer import MAGIC, leaf_elements, tail
from paimon_py.formats.parquet.statistics import GroupStatistics
from paimon_py.formats.parquet.thrift import Struct
from paimon_py.lazy import lazy_property

_HEADER_BYTES = 512
DATA, _DICTIONARY, DATA_V2 = 0, 2, 3
_CODECS = frozenset({0, 1, 2, 4, 6})
"""No compression, Snappy, GZIP, Brotli and ZSTD; files with the two LZ4 variants are read by whole row groups."""
_ORDERED = frozenset({"INT32", "INT64", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"})
"""Physical types for which bounds in page headers are used."""
_ENCODINGS = thrift.Sequence(thrift.I32, [0, 3 << 1, 8 << 1])
"""PLAIN, RLE, RLE_DICTIONARY; readers use only the encodings in page headers."""

# Field numbers of parquet.thrift.
PAGE_TYPE, _PAGE_COMPRESSED, PAGE_DATA, PAGE_DATA_V2 = 1, 3, 5, 8
DATA_VALUES, _DATA_STATISTICS, _DATA_V2_STATISTICS = 1, 5, 8
_FILE_VERSION, _FILE_SCHEMA, _FILE_ROWS, _FILE_GROUPS = 1, 2, 3, 4
_ELEMENT_TYPE, _ELEMENT_NAME, _ELEMENT_CHILDREN = 1, 4, 5
_GROUP_COLUMNS, _GROUP_BYTES, _GROUP_ROWS, _CHUNK_OFFSET, _CHUNK_METADATA = 1, 2, 3, 2, 3
_COLUMN_TYPE, _COLUMN_ENCODINGS, _COLUMN_PATH, _COLUMN_CODEC, _COLUMN_VALUES = 1, 2, 3, 4, 5
_COLUMN_SIZE, _COLUMN_COMPRESSED, _COLUMN_DATA, _COLUMN_DICTIONARY = 6, 7, 9, 11


class Page(NamedTuple):
    """A page: first byte, length of header and body, row count, and the statistics in its header."""

    start: int
    size: int
    rows: int
    statistics: GroupStatistics


class Pages(NamedTuple):
    """The pages of one column in one row group.

    `number`: the index of the column. `starts`: the first row of each page, and the row count at the end.
    """

    number: int
    chunk: Chunk
    dictionary: Page | None
    data: tuple[Page, ...]
    starts: Ints

    def at(self, rows: Ints) -> Ints:
        """The pages that contain the rows."""
        pages: Ints = np.searchsorted(self.starts, rows, side="right") - 1
        return pages

    def statistics(self, cuts: Ints) -> list[GroupStatistics]:
        """The statistics of the values between each two cuts."""
        return [self.data[page].statistics for page in self.at(cuts[:-1]).tolist()]

    def place(self, row: int, kept: Ints) -> int:
        """The index of a row among the rows of the pages in `kept`, one of which contains it."""
        page = int(self.at(np.array([row]))[0])
        before = kept[kept < page]
        return int((self.starts[before + 1] - self.starts[before]).sum()) + row - int(self.starts[page])


class PageReader:
    """The pages of the non-nested top-level columns of a file."""

    def __init__(self, source: BinaryIO, footer: bytes, schema: pq.ParquetSchema, rows: Sequence[int]) -> None:
        """`footer`: the footer of the file; `rows`: the row counts of its row groups."""
        self._source = source
        self._file_footer = footer
        self._rows = rows
        columns = [schema.column(index) for index in range(len(schema))]
        self._columns = {
            column.name: (index, column.physical_type)
            for index, column in enumerate(columns)
            if column.path == column.name and column.max_repetition_level == 0
        }
        self._chunks: dict[str, list[Chunk]] = {}

    def flat_columns(self, names: Iterable[str]) -> list[str]:
        """The non-nested columns of the file among `names`."""
        return [name for name in names if name in self._columns]

    def chunks(self, name: str) -> list[Chunk]:
        """The chunks of a non-nested column, one per row group. See `flat_chunks`."""
        found = self._chunks.get(name)
        if found is None:
            found = self._chunks[name] = flat_chunks(self._file_footer, name, self._rows)
        return found

    def statistics(self, name: str) -> list[GroupStatistics]:
        """The footer's statistics of a non-nested column, by row group. Raises: as `chunk_statistics`."""
        _, physical = self._columns[name]
        return [chunk_statistics(chunk, physical) for chunk in self.chunks(name)]

    def can_read(self, group: int, names: Sequence[str]) -> bool:
        """Whether pages of these columns can be located and decoded separately."""
        return all(name in self._columns and self.chunks(name)[group].codec in _CODECS for name in names)

    def pages(self, group: int, name: str) -> Pages:
        """The pages of a column in a row group.

        Cost: a small read and 10 µs per page; no page is decoded.
        Raises: ValueError or IndexError for damaged bytes.
        """
        number, physical = self._columns[name]
        chunk = self.chunks(name)[group]
        dictionary, data = None, []
        for kind, page in _walk(self._source, chunk, physical):
            if kind == _DICTIONARY:
                dictionary = page
            elif page.rows:
                data.append(page)
        starts = np.cumsum([0, *(page.rows for page in data)], dtype=np.int64)
        if starts[-1] != chunk.values:
            raise ValueError(f"the pages of {name} do not have the rows of their row group")
        return Pages(number, chunk, dictionary, tuple(data), starts)

    def decode(self, chosen: Sequence[tuple[Pages, Sequence[int]]]) -> list[pa.Array]:
        """The rows of some data pages of each column, in the Arrow types of the file's columns.

        Cost: 0.1 ms for all columns with the same number of decoded rows, and their pages.
        Raises: pyarrow's errors for damaged pages.
        """
        alike: dict[int, list[int]] = {}
        for place, (pages, kept) in enumerate(chosen):
            alike.setdefault(sum(pages.data[number].rows for number in kept), []).append(place)
        found: dict[int, pa.Array] = {}
        for rows, places in alike.items():
            found.update(zip(places, self._decode_alike([chosen[place] for place in places], rows), strict=True))
        return [found[place] for place in range(len(chosen))]

    def _decode_alike(self, chosen: Sequence[tuple[Pages, Sequence[int]]], rows: int) -> list[pa.Array]:
        """Decode columns with `rows` decoded rows each; their pages form a file with one row group."""
        parts, columns, start = [MAGIC], [], len(MAGIC)
        for pages, kept in chosen:
            data = [pages.data[number] for number in kept]
            dictionary = [] if pages.dictionary is None else [pages.dictionary]
            parts += [read_exactly(self._source, page.start, page.size) for page in (*dictionary, *data)]
            size = sum(page.size for page in (*dictionary, *data))
            columns.append((pages, self._column(pages, start, size, rows)))
            start += size
        parts.append(tail(self._footer(columns, start - len(MAGIC), rows)))
        file = pa.BufferReader(b"".join(parts))
        table = pq.ParquetFile(file, page_checksum_verification=True).read(use_threads=False)
        return [combine(column) for column in table.columns]

    def _column(self, pages: Pages, start: int, size: int, rows: int) -> Struct:
        """The metadata of a column chunk whose `size` bytes of pages begin at `start`."""
        element = self._elements[1][pages.number]
        first_data = start + (0 if pages.dictionary is None else pages.dictionary.size)
        column: Struct = {
            _COLUMN_TYPE: element[_ELEMENT_TYPE],
            _COLUMN_ENCODINGS: (thrift.LIST, _ENCODINGS),
            _COLUMN_PATH: (thrift.LIST, thrift.Sequence(thrift.BINARY, [element[_ELEMENT_NAME][1]])),
            _COLUMN_CODEC: (thrift.I32, pages.chunk.codec << 1),
            _COLUMN_VALUES: (thrift.I64, rows << 1),
            _COLUMN_SIZE: (thrift.I64, size << 1),
            _COLUMN_COMPRESSED: (thrift.I64, size << 1),
            _COLUMN_DATA: (thrift.I64, first_data << 1),
        }
        if pages.dictionary is not None:
            column[_COLUMN_DICTIONARY] = (thrift.I64, start << 1)
        return {_CHUNK_OFFSET: (thrift.I64, start << 1), _CHUNK_METADATA: (thrift.STRUCT, column)}

    def _footer(self, columns: Sequence[tuple[Pages, Struct]], size: int, rows: int) -> bytes:
        """The footer of a file with `size` bytes of pages after its magic."""
        root, elements = self._elements
        root = {**root, _ELEMENT_CHILDREN: (thrift.I32, len(columns) << 1)}
        schema = [root, *(elements[pages.number] for pages, _ in columns)]
        group: Struct = {
            _GROUP_COLUMNS: (thrift.LIST, thrift.Sequence(thrift.STRUCT, [chunk for _, chunk in columns])),
            _GROUP_BYTES: (thrift.I64, size << 1),
            _GROUP_ROWS: (thrift.I64, rows << 1),
        }
        return thrift.encode(
            {
                _FILE_VERSION: (thrift.I32, 2 << 1),
                _FILE_SCHEMA: (thrift.LIST, thrift.Sequence(thrift.STRUCT, schema)),
                _FILE_ROWS: (thrift.I64, rows << 1),
                _FILE_GROUPS: (thrift.LIST, thrift.Sequence(thrift.STRUCT, [group])),
            }
        )

    @lazy_property
    def _elements(self) -> tuple[Struct, Sequence[Struct]]:
        """The root of the schema, and the element of every column."""
        reader = thrift.Reader(self._file_footer)
        kind = reader.find(_FILE_SCHEMA)
        elements = thrift.items({_FILE_SCHEMA: (kind, reader.value(kind))}, _FILE_SCHEMA)
        return elements[0], [element for _, element in leaf_elements(elements)]


def cuts_of(pages: Sequence[Pages]) -> Ints:
    """The rows of a row group at which a page of any column begins, and the row count."""
    return np.array(sorted({start for each in pages for start in each.starts.tolist()}), np.int64)


def rows_between(
    reader: PageReader, pages: Sequence[Pages], cuts: Ints, wanted: Mask
) -> Iterator[tuple[int, list[pa.Array]]]:
    """The rows of a row group between selected cuts, including adjacent rows that are decoded anyway.

    Shapes: `wanted` — a slot for the rows between each two `cuts`. Out — the first row of a run, and a column for
      each of `pages`.
    Cost: decodes the pages with a selected row.
    """
    decoded = np.ones(len(wanted), np.bool_)
    kept = []
    for each in pages:
        at = each.at(cuts[:-1])
        is_kept = np.zeros(len(each.data), np.bool_)
        is_kept[at[wanted]] = True
        kept.append(np.flatnonzero(is_kept))
        decoded &= is_kept[at]
    if not wanted.any():
        return
    columns = reader.decode([(each, numbers.tolist()) for each, numbers in zip(pages, kept, strict=True)])
    edges = np.flatnonzero(np.diff(decoded, prepend=False, append=False))
    for start, stop in cuts[edges].reshape(-1, 2).tolist():
        yield start, [
            _part(column, each.place(start, numbers), stop - start)
            for column, each, numbers in zip(columns, pages, kept, strict=True)
        ]


def _part(column: pa.Array, start: int, count: int) -> pa.Array:
    """A copy of some rows, so that the column they are taken from can be released."""
    if count == len(column):
        return column
    return column.take(from_numpy(np.arange(start, start + count), pa.int64()))


def _walk(source: BinaryIO, chunk: Chunk, physical: str) -> Iterator[tuple[int, Page]]:
    """The pages of a chunk, with their kinds."""
    knows = physical in _ORDERED and chunk_statistics(chunk, physical).low is not None
    for header, place in page_headers(source, chunk):
        kind, rows, said = thrift.number(header, PAGE_TYPE) or 0, 0, NO_STATISTICS
        if kind in (DATA, DATA_V2):
            data = thrift.inner(header, PAGE_DATA if kind == DATA else PAGE_DATA_V2) or {}
            rows = thrift.number(data, DATA_VALUES) or 0
            inner = thrift.inner(data, _DATA_STATISTICS if kind == DATA else _DATA_V2_STATISTICS)
            if knows and inner is not None:
                # bounds of a page also hold for some of its rows, but its null count does not
                low, high = raw_bounds(inner, physical)
                said = GroupStatistics(low, high, None, True)
        yield kind, Page(place.start, place.end - place.start, rows, said)


class PagePlace(NamedTuple):
    """The first byte of a page, that of its body, and the byte after it."""

    start: int
    body: int
    end: int


def page_headers(source: BinaryIO, chunk: Chunk) -> Iterator[tuple[Struct, PagePlace]]:
    """The headers of the pages of a chunk, in order, with the places of the pages.

    Raises: ValueError or IndexError where no page begins.
    """
    start, end = chunk.start, chunk.start + chunk.size
    while start < end:
        header, length = _header(source, start, end - start)
        kind, compressed = thrift.number(header, PAGE_TYPE), thrift.number(header, _PAGE_COMPRESSED)
        if kind is None or compressed is None or compressed < 0 or start + length + compressed > end:
            raise ValueError(f"no page begins at byte {start}")
        place = PagePlace(start, start + length, start + length + compressed)
        yield header, place
        start = place.end


def _header(source: BinaryIO, start: int, most: int) -> tuple[Struct, int]:
    """The header at a position, and its length."""
    window = _HEADER_BYTES
    while True:
        reader = thrift.Reader(read_exactly(source, start, min(window, most)))
        try:
            return reader.struct(), reader.position
        except (ValueError, IndexError):
            if window >= most:
                raise
        window *= 64


def read_exactly(source: BinaryIO, start: int, length: int) -> bytes:
    """The bytes of a range. Raises: ValueError if the file ends before."""
    source.seek(start)
    data = source.read(length)
    if len(data) != length:
        raise ValueError(f"the file ends before byte {start + length}")
    return data
