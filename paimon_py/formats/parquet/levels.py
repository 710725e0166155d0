"""Decides whether a REQUIRED column was written without definition levels.

A footer that declares a column REQUIRED says that its pages have no levels. If one bit of the footer is damaged, levels
are decoded as values. The first page with values shows whether it begins with levels.

Source: parquet-format `parquet.thrift` and its page on encodings (the hybrid of runs and packed bits).
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.formats.parquet import thrift
from paimon_py.formats.parquet.chunks import Chunk, flat_chunks
from paimon_py.formats.parquet.footer import read_footer
from paimon_py.formats.parquet.pages import (
    DATA,
    DATA_V2,
    DATA_VALUES,
    PAGE_DATA,
    PAGE_DATA_V2,
    PAGE_TYPE,
    page_headers,
    read_exactly,
)

_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}

# Field numbers of parquet.thrift.
_PAGE_SIZE, _DATA_ENCODING, _V2_LEVEL_BYTES = 2, 2, 5
_PLAIN, _BYTE_STREAM_SPLIT = 0, 9
_BYTES = {"INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}


def is_meant_required(
    source: BinaryIO, metadata: pq.FileMetaData, stored: pa.Field, rows: Sequence[int]
) -> bool:
    """Whether the writer declared a non-nested column NOT NULL although its table does not, as the official SDK does.

    `metadata`: the decoded footer; `stored`: the column as the file declares it; `rows`: the row counts of the
    row groups. The Arrow schema that Arrow's writers add says it; files without field ids come from writers that know
    nothing of the table. Any other file, such as those of Java, has to show it by the first page with values, which has
    no definition levels. A page whose compression pyarrow cannot undo by itself shows nothing.

    Cost: at most the footer and one page of the column are read.
    Raises: ValueError or IndexError for damaged bytes, and pyarrow's errors for a damaged compression.
    """
    text = (metadata.metadata or {}).get(b"ARROW:schema")
    if text is not None:
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text)))
        index = schema.get_field_index(stored.name)
        return index >= 0 and not schema.field(index).nullable
    if b"PARQUET:field_id" not in (stored.metadata or {}):
        return True
    chunks = flat_chunks(read_footer(source), stored.name, rows)
    first = next((chunk for chunk in chunks if chunk.values), None)
    if first is None:
        return True
    columns = (metadata.schema.column(index) for index in range(metadata.num_columns))
    return not _has_levels(source, first, next(column for column in columns if column.path == stored.name))


def _has_levels(source: BinaryIO, chunk: Chunk, column: pq.ColumnSchema) -> bool:
    """Whether the first page with values begins with definition levels."""
    for header, place in page_headers(source, chunk):
        kind, size = thrift.number(header, PAGE_TYPE), thrift.number(header, _PAGE_SIZE)
        if size is None:
            raise ValueError(f"no page begins at byte {place.start}")
        if kind == DATA_V2:
            return (thrift.number(thrift.inner(header, PAGE_DATA_V2) or {}, _V2_LEVEL_BYTES) or 0) > 0
        data = thrift.inner(header, PAGE_DATA) or {}
        values = thrift.number(data, DATA_VALUES) or 0
        if kind == DATA and values:
            body = read_exactly(source, place.body, place.end - place.body)
            if chunk.codec != 0:
                codec = _CODECS.get(chunk.codec)
                if codec is None:
                    return True
                body = pa.Codec(codec).decompress(body, decompressed_size=size).to_pybytes()
            levels = levels_before(body, values)
            if levels is None or thrift.number(data, _DATA_ENCODING) not in (_PLAIN, _BYTE_STREAM_SPLIT):
                return levels is not None
            return _are_plain(body[levels.end :], levels.present, column)
    return False


class Levels(NamedTuple):
    """Where the levels at the beginning of a page end, and how many of its values are not NULL."""

    end: int
    present: int


def levels_before(body: bytes, values: int) -> Levels | None:
    """The levels 0 or 1 of so many values at the beginning of a page; None if it does not begin with levels.

    Example: for 5 values that are all there, the levels are `02 00 00 00` (two bytes follow), `0a` (a run of 5),
    `01`. A page of REQUIRED indices into a dictionary cannot begin like that: its first byte is their width in bits,
    and the run of length 0 that would follow is never written. Plain values can: the REQUIRED INTs 2 and 4 are
    `02 00 00 00 04 00 00 00`, the levels of two NULLs; but no value may follow these, and two bytes do.
    """
    end = 4 + int.from_bytes(body[:4], "little")
    if end < 6 or end > len(body):
        return None
    reader, found, present = thrift.Reader(body[:end]), 0, 0
    reader.position = 4
    try:
        while reader.position < end:
            run = reader.varint()
            count = (run >> 1) * 8 if run & 1 else run >> 1
            if not count or found >= values:
                return None
            if run & 1:
                present += int.from_bytes(reader.take(run >> 1), "little").bit_count()
                count -= max(count - (values - found), 0) if count - (values - found) < 8 else 0  # the last is padded
            else:
                level = reader.byte()
                if level > 1:
                    return None
                present += level * count
            found += count
    except (ValueError, IndexError):
        return None
    return Levels(end, present) if found == values else None


def _are_plain(data: bytes, count: int, column: pq.ColumnSchema) -> bool:
    """Whether these bytes can be exactly `count` plain values of a column."""
    if column.physical_type == "BOOLEAN":
        return len(data) == (count + 7) // 8
    if column.physical_type != "BYTE_ARRAY":
        width = int(_BYTES.get(column.physical_type, column.length))
        return len(data) == count * width
    at = 0
    for _ in range(count):
        if at >= len(data):
            return False
        at += 4 + int.from_bytes(data[at : at + 4], "little")
    return at == len(data)
