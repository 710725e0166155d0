"""Decides whether a REQUIRED column was written without definition levels.

A footer that declares a column REQUIRED says that its pages have no levels. If one bit of the footer is damaged, levels
are decoded as values. The first page with values shows whether it begins with levels.

Source: parquet-format `parquet.thrift` and its page on encodings (the hybrid of runs and packed bits).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import pyarrow as pa

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
_PAGE_SIZE, _V2_LEVEL_BYTES = 2, 5


def is_meant_required(
    source: BinaryIO, about: Mapping[bytes, bytes], stored: pa.Field, rows: Sequence[int]
) -> bool:
    """Whether the writer declared a non-nested column NOT NULL although its table does not, as the official SDK does.

    `about`: the properties of the footer; `stored`: the column as the file declares it; `rows`: the row counts of the
    row groups. The Arrow schema that Arrow's writers add says it; files without field ids come from writers that know
    nothing of the table. Any other file, such as those of Java, has to show it by the first page with values, which has
    no definition levels. A page whose compression pyarrow cannot undo by itself shows nothing.

    Cost: at most the footer and one page of the column are read.
    Raises: ValueError or IndexError for damaged bytes, and pyarrow's errors for a damaged compression.
    """
    text = about.get(b"ARROW:schema")
    if text is not None:
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text)))
        index = schema.get_field_index(stored.name)
        return index >= 0 and not schema.field(index).nullable
    if b"PARQUET:field_id" not in (stored.metadata or {}):
        return True
    chunks = flat_chunks(read_footer(source), stored.name, rows)
    first = next((chunk for chunk in chunks if chunk.values), None)
    return first is None or not _has_levels(source, first)


def _has_levels(source: BinaryIO, chunk: Chunk) -> bool:
    """Whether the first page with values begins with definition levels."""
    for header, place in page_headers(source, chunk):
        kind, size = thrift.number(header, PAGE_TYPE), thrift.number(header, _PAGE_SIZE)
        if size is None:
            raise ValueError(f"no page begins at byte {place.start}")
        if kind == DATA_V2:
            return (thrift.number(thrift.inner(header, PAGE_DATA_V2) or {}, _V2_LEVEL_BYTES) or 0) > 0
        values = thrift.number(thrift.inner(header, PAGE_DATA) or {}, DATA_VALUES) or 0
        if kind == DATA and values:
            body = read_exactly(source, place.body, place.end - place.body)
            if chunk.codec != 0:
                codec = _CODECS.get(chunk.codec)
                if codec is None:
                    return True
                body = pa.Codec(codec).decompress(body, decompressed_size=size).to_pybytes()
            return begins_with_levels(body, values)
    return False


def begins_with_levels(body: bytes, values: int) -> bool:
    """Whether the body of a page can begin with the levels 0 or 1 of so many values.

    Example: for 5 values that are all there, the levels are `02 00 00 00` (two bytes follow), `0a` (a run of 5),
    `01`. A page of REQUIRED indices into a dictionary cannot begin like that: its first byte is their width in bits,
    and the run of length 0 that would follow is never written.
    """
    end = 4 + int.from_bytes(body[:4], "little")
    if end < 6 or end > len(body):
        return False
    reader, found = thrift.Reader(body[:end]), 0
    reader.position = 4
    try:
        while reader.position < end:
            run = reader.varint()
            count = (run >> 1) * 8 if run & 1 else run >> 1
            if not count or found >= values:
                return False
            if run & 1:
                reader.take(run >> 1)
                count -= max(count - (values - found), 0) if count - (values - found) < 8 else 0  # the last is padded
            elif reader.byte() > 1:
                return False
            found += count
    except (ValueError, IndexError):
        return False
    return found == values
