"""Every page of a Parquet file is protected: damage anywhere in its bytes is noticed, whatever the kind of the page."""

from __future__ import annotations

import collections
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.formats.samples import fields_of, read, write

from paimon_py.errors import CorruptionError
from paimon_py.formats.parquet.thrift import Reader

ROWS = 3000
FIELDS = fields_of("INT NOT NULL", "STRING", "DOUBLE", "ARRAY<STRING>", "TIMESTAMP(9)", "BOOLEAN", "STRING")
KINDS = {0: "data", 2: "dictionary", 3: "data v2"}


def rows() -> pa.RecordBatch:
    return pa.record_batch(
        {
            "c0": pa.array([n * n for n in range(ROWS)], pa.int32()),
            "c1": [None if n % 7 == 0 else f"kind {n % 5}" for n in range(ROWS)],
            "c2": [None if n % 3 == 0 else n / 7 for n in range(ROWS)],
            "c3": [[f"tag {n % 4}", None][: n % 3] for n in range(ROWS)],
            "c4": pa.array([n % 20 for n in range(ROWS)], pa.timestamp("ns")),
            "c5": [n % 2 == 0 for n in range(ROWS)],
            "c6": [f"all different {n * 7919 % ROWS}" for n in range(ROWS)],
        }
    )


def pages(data: bytes) -> list[tuple[str, int, int, bool]]:
    """(kind, first byte of the body, its length, whether there is a checksum) of every page."""
    found = []
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            column = metadata.row_group(group).column(index)
            at = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
            end = at + column.total_compressed_size
            while at < end:
                reader = Reader(data[at:])
                header = reader.struct()
                length = header[3][1] >> 1
                found.append((KINDS[header[1][1] >> 1], at + reader.position, length, 4 in header))
                at += reader.position + length
    return found


def assert_guarded(data: bytes) -> collections.Counter:
    """A flipped bit at the beginning, in the middle and at the end of each page is corruption."""
    kinds = collections.Counter()
    right = read("parquet", data, FIELDS)
    assert right.num_rows == ROWS
    for kind, start, length, checked in pages(data):
        kinds[kind] += 1
        assert checked, f"a {kind} page has no checksum"
        for at in {start, start + length // 2, start + length - 1}:
            broken = bytearray(data)
            broken[at] ^= 1 << at % 8
            with pytest.raises(CorruptionError) as caught:
                read("parquet", bytes(broken), FIELDS)
            assert caught.value.path == "/t/f"
    return kinds


@pytest.mark.parametrize("codec", ["none", "zstd", "snappy", "gzip", "lz4"])
def test_our_pages_are_guarded_under_every_codec(codec):
    data, _ = write("parquet", FIELDS, [rows()], compression=codec, options={"parquet.page.size": "4096"})
    kinds = assert_guarded(data)
    assert kinds["dictionary"] == 3 and kinds["data"] >= len(FIELDS)


def test_pages_of_version_2_by_other_writers_are_guarded():
    sink = io.BytesIO()
    data, _ = write("parquet", FIELDS, [rows()])
    plain = pq.ParquetFile(io.BytesIO(data)).read()
    pq.write_table(plain, sink, data_page_version="2.0", write_page_checksum=True, use_deprecated_int96_timestamps=True)
    kinds = assert_guarded(sink.getvalue())
    assert kinds["dictionary"] and kinds["data v2"]
