"""Pages can be left out: what comes of the others is what the whole file has at their positions, and nothing is lost."""

from __future__ import annotations

import functools
import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap
from unit.formats.samples import ATOMIC, fields_of, make_batch, open_bytes, read, write

from paimon_py.errors import CorruptionError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.formats.base import ReadSettings
from paimon_py.formats.parquet import pages as parquet_pages
from paimon_py.formats.parquet import thrift
from paimon_py.formats.parquet import write as parquet_write
from paimon_py.formats.parquet.format import ParquetFormat
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field, RowType

ROWS = 9000
BY_PAGE = ReadSettings(by_page=True)
SMALL = {"parquet.page.size": "9000"}
"""Arrow looks at the size of a page every 1024 rows."""
KEYED = fields_of("BIGINT NOT NULL", "STRING", "DOUBLE")


def keyed(rows=ROWS) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "c0": pa.array([10 * n for n in range(rows)], pa.int64()),
            "c1": [None if n % 7 == 0 else f"kind {n % 5}" * (1 + n % 30) for n in range(rows)],
            "c2": [None if n % 3 == 0 else n / 7 for n in range(rows)],
        }
    )


def pieces(data, fields, *, predicate=None, rows=None, columns=None):
    opened = open_bytes("parquet", data, fields, settings=BY_PAGE)
    names = [field.name for field in fields] if columns is None else columns
    bound = None if predicate is None else bind(predicate, fields)
    found = list(opened.positioned_batches(names, batch_rows=100, predicate=bound, rows=rows))
    opened.close()
    return found


def positions(found):
    return {at + n for at, batch in found for n in range(batch.num_rows)}


def bits(array):
    """Floats as numbers, so that NaN equals itself."""
    width = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}.get(array.type)
    return array if width is None else array.view(width)


def assert_same_rows(found, whole):
    for at, batch in found:
        for name in whole.column_names:
            assert bits(batch[name]).equals(bits(whole[name].slice(at, batch.num_rows).combine_chunks())), name
    starts = [at for at, _ in found]
    assert starts == sorted(starts)


@functools.cache
def every_flat_type():
    fields = fields_of(*ATOMIC, "TIMESTAMP(0)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(3) WITH LOCAL TIME ZONE")
    some = make_batch(fields, "parquet", 4, ROWS // 10)
    numbers = np.random.default_rng(4).integers(0, len(some), ROWS)
    return fields, some.take(pa.array(numbers.tolist()))


@pytest.mark.parametrize("dictionary", ["true", "false"])
@pytest.mark.parametrize("codec", ["none", "zstd", "snappy", "gzip"])
def test_wanted_rows_come_as_the_whole_file_has_them(codec, dictionary, monkeypatch):
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 5000)
    fields, batch = every_flat_type()
    options = {"parquet.page.size": "900" if dictionary == "true" else "9000", "parquet.enable.dictionary": dictionary}
    data, _ = write("parquet", fields, [batch], compression=codec, options=options)
    whole = read("parquet", data, fields)
    source = random.Random(5)
    for count in (0, 1, 2, 9):
        rows = BitMap(source.sample(range(ROWS), count))
        found = pieces(data, fields, rows=rows)
        assert positions(found) >= set(rows)
        assert_same_rows(found, whole)
    assert sum(batch.num_rows for _, batch in pieces(data, fields, rows=BitMap([4999]))) < 2000


def test_pages_of_version_2_by_other_writers_are_told_apart():
    sink = io.BytesIO()
    plain = pa.Table.from_batches([keyed()])
    pq.write_table(plain, sink, data_page_version="2.0", data_page_size=9000, use_dictionary=["c1"])
    whole = read("parquet", sink.getvalue(), KEYED)
    found = pieces(sink.getvalue(), KEYED, rows=BitMap([5, 7000]), predicate=col("c0") >= 0)
    assert positions(found) >= {5, 7000} and len(positions(found)) < ROWS
    assert_same_rows(found, whole)
    assert len(positions(pieces(sink.getvalue(), KEYED, predicate=col("c0") == 170))) < ROWS / 2


def test_predicates_leave_pages_out_and_no_row_that_matches():
    data, _ = write("parquet", KEYED, [keyed()], options=SMALL)
    whole = read("parquet", data, KEYED)
    source = random.Random(6)
    for _ in range(20):
        low = source.randrange(10 * ROWS)
        high = low + source.choice((0, 50, 5000))
        found = pieces(data, KEYED, predicate=(col("c0") >= low) & (col("c0") <= high))
        assert positions(found) >= {n for n in range(ROWS) if low <= 10 * n <= high}
        assert len(positions(found)) <= 4096
        assert_same_rows(found, whole)
    wanted = [source.randrange(ROWS) for _ in range(3)]
    found = pieces(data, KEYED, predicate=col("c0").isin([10 * n for n in wanted]), columns=["c2"])
    assert positions(found) >= set(wanted) and len(positions(found)) <= 3 * 1024 * 2
    assert_same_rows(found, whole.select(["c2"]))
    for nothing in (col("c0") == 10 * ROWS, col("c0") < 0):
        assert pieces(data, KEYED, predicate=nothing) == []


def test_rows_in_no_order_are_read_without_more_questions(monkeypatch):
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 3000)
    mixed = keyed().take(pa.array(np.random.default_rng(7).permutation(ROWS)))
    data, _ = write("parquet", KEYED, [mixed], options=SMALL)
    asked = []
    walk = parquet_pages.PageReader.pages
    monkeypatch.setattr(
        parquet_pages.PageReader, "pages", lambda self, group, name: asked.append((group, name)) or walk(self, group, name)
    )
    found = pieces(data, KEYED, predicate=col("c0") > 5 * ROWS)
    assert len(positions(found)) == ROWS and asked == [(0, "c0")]
    assert_same_rows(found, read("parquet", data, KEYED))


def test_most_of_a_row_group_is_decoded_in_batches():
    data, _ = write("parquet", KEYED, [keyed()], options=SMALL)
    found = pieces(data, KEYED, predicate=col("c0") > 30 * ROWS // 10)
    assert len(positions(found)) == ROWS
    assert_same_rows(found, read("parquet", data, KEYED))


def test_a_page_with_nulls_and_few_rows_beside_it_may_match():
    """Pages of two columns end at different rows: how many rows of a page are null says nothing of a part of it."""
    values = [None] * 800 + list(range(ROWS - 800))
    batch = pa.record_batch({"c0": pa.array(values, pa.int64()), "c1": ["long " * 40] * ROWS})
    fields = fields_of("BIGINT", "STRING")
    data, _ = write("parquet", fields, [batch], options={**SMALL, "parquet.enable.dictionary": "false"})
    for predicate, matching in ((col("c0").is_null(), range(800)), (col("c0") == 0, [800]), (col("c0") > ROWS - 900, [ROWS - 1])):
        found = pieces(data, fields, predicate=predicate & (col("c1") >= "a"))
        assert positions(found) >= set(matching)


def test_few_rows_need_few_bytes():
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size=-1):
            piece = super().read(size)
            self.taken += len(piece)
            return piece

    data, _ = write("parquet", KEYED, [keyed(60_000)], compression="none", options={"parquet.page.size": "16384"})
    source = Counting(data)
    opened = ParquetFormat().open(source, "/f", KEYED, len(data), BY_PAGE)
    before = source.taken
    found = [batch.num_rows for _, batch in opened.positioned_batches(["c0", "c2"], batch_rows=100, rows=BitMap([31_000]))]
    assert sum(found) < 6000 and max(found) <= 100
    assert source.taken - before < len(data) / 5


def test_columns_that_are_nested_come_beside_the_pages_of_others():
    inner = RowType((Field(5, "b", parse_type("INT")),))
    fields = [*KEYED, Field(3, "c3", inner), Field(4, "c3.b", parse_type("INT"))]
    row = pa.array([{"b": n} for n in range(ROWS)], pa.struct([("b", pa.int32())]))
    other = pa.array([-n for n in range(ROWS)], pa.int32())
    batch = pa.record_batch([*keyed().columns, row, other], names=[field.name for field in fields])
    data, _ = write("parquet", fields, [batch], options=SMALL)
    whole = read("parquet", data, fields)
    for asked in ({"rows": BitMap([7])}, {"predicate": col("c0") == 10 * 4000}):
        found = pieces(data, fields, **asked)
        assert 0 < len(positions(found)) < ROWS / 2
        for start, piece in found:
            assert piece["c3"].equals(whole["c3"].slice(start, piece.num_rows).combine_chunks())
        assert_same_rows([(start, piece.drop_columns(["c3"])) for start, piece in found], whole.drop_columns(["c3"]))
    assert len(positions(pieces(data, fields, rows=BitMap([7]), columns=["c3"]))) == ROWS
    at, some = pieces(data, fields, rows=BitMap([1500]), columns=["c3.b", "c0"])[0]
    assert some.num_rows < ROWS / 2 and some["c3.b"].to_pylist() == [-n for n in range(at, at + some.num_rows)]


def test_codecs_with_two_meanings_come_by_row_groups():
    data, _ = write("parquet", KEYED, [keyed()], compression="lz4", options=SMALL)
    assert len(positions(pieces(data, KEYED, rows=BitMap([7])))) == ROWS


@pytest.mark.parametrize("name", ["c0", "c1"])
def test_a_flipped_bit_in_the_header_of_a_page_hides_no_row(name):
    """Headers have no checksum. Numbers have their bounds twice there; of texts the footer knows the outermost."""
    fields = fields_of("BIGINT NOT NULL", "STRING")
    numbers = pa.array([10 * n for n in range(ROWS)], pa.int64())
    batch = pa.record_batch({"c0": numbers, "c1": [f"key {n:05}" for n in range(ROWS)]})
    data, _ = write("parquet", fields, [batch], options={**SMALL, "parquet.enable.dictionary": "false"})
    opened = open_bytes("parquet", data, fields, settings=BY_PAGE)
    places = [(page.start, page.size) for page in opened._pages.pages(0, name).data]
    opened.close()
    wanted = {"c0": col("c0") == 10 * 4000, "c1": col("c1") == "key 04000"}[name]
    hidden = bits = 0
    for start, size in places:
        reader = thrift.Reader(data[start : start + size])
        reader.struct()
        for bit in range(8 * reader.position):
            changed = bytearray(data)
            changed[start + bit // 8] ^= 1 << bit % 8
            bits += 1
            try:
                found = pieces(bytes(changed), fields, predicate=wanted)
            except CorruptionError:
                continue
            hidden += 4000 not in positions(found)
    assert bits > 1000
    assert hidden == 0 if name == "c0" else hidden <= bits / 25


def test_a_column_that_the_file_lacks_is_corruption():
    data, _ = write("parquet", KEYED, [keyed()], options=SMALL)
    fields = [*KEYED, Field(9, "new", parse_type("ARRAY<INT>"))]
    with pytest.raises(CorruptionError, match="has no column new"):
        pieces(data, fields, rows=BitMap([1500]), columns=["new", "c0"])


def test_damage_is_noticed_in_the_pages_that_are_read():
    data, _ = write("parquet", KEYED, [keyed()], options=SMALL)
    at = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).data_page_offset
    reader = thrift.Reader(data[at:])
    header = reader.struct()
    body = at + reader.position
    broken = bytearray(data)
    broken[body + 20] ^= 4
    with pytest.raises(CorruptionError):
        pieces(bytes(broken), KEYED, rows=BitMap([1]))
    far = pieces(bytes(broken), KEYED, rows=BitMap([8900]))
    assert_same_rows(far, read("parquet", data, KEYED))

    kind, inner = header[5]
    for field, value in ((5, (kind, {**inner, 1: (thrift.I32, inner[1][1] + 2)})), (3, (thrift.I32, header[3][1] + 2))):
        wrong = thrift.encode({**header, field: value})
        assert len(wrong) == reader.position
        with pytest.raises(CorruptionError):
            pieces(data[:at] + wrong + data[body:], KEYED, rows=BitMap([8900]))
