"""What is special about Parquet: Java's layout, INT96, row groups, dictionaries, statistics."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.formats.samples import batches_of, every_type, fields_of, make_batch, open_bytes, read, rows_of, write

from paimon_py.errors import CorruptionError, OptionError, UnsupportedError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.formats.base import ReadSettings, WriteSettings
from paimon_py.formats.parquet import write as parquet_write
from paimon_py.formats.parquet.footer import fixed_to_int96, int96_to_fixed, split_tail, tail, with_root_name
from paimon_py.formats.parquet.format import ParquetFormat
from paimon_py.formats.parquet.int96 import from_int96, to_int96
from paimon_py.formats.parquet.thrift import Reader, items
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import ArrayType, Field, MapType, RowType


def metadata_of(data):
    return pq.read_metadata(io.BytesIO(data))


def ints(values, kind=None):
    return pa.array(values, kind or pa.int32())


def test_layout_and_field_ids_are_javas():
    inner = RowType(
        (Field(5, "x", parse_type("TIMESTAMP(9) WITH LOCAL TIME ZONE")), Field(6, "key", parse_type("INT")))
    )
    fields = [
        Field(1073741824, "_KEY_a", parse_type("INT NOT NULL")),
        Field(2147483645, "_VALUE_KIND", parse_type("TINYINT NOT NULL")),
        Field(0, "a", parse_type("DECIMAL(9, 2)")),
        Field(1, "b", parse_type("DECIMAL(18, 2)")),
        Field(2, "c", parse_type("DECIMAL(19, 2)")),
        Field(3, "t", parse_type("TIME(3)")),
        Field(4, "m", MapType(parse_type("STRING"), ArrayType(inner))),
        Field(7, "s", parse_type("MULTISET<TIMESTAMP(3)>")),
    ]
    data, _ = write("parquet", fields, [])
    text = str(pq.ParquetFile(io.BytesIO(data)).schema).split("\n", 1)[1]
    short = text.replace(", is_from_converted_type=false, force_set_converted_type=false", "")
    assert (
        short
        == """required group field_id=-1 paimon_schema {
  required int32 field_id=1073741824 _KEY_a;
  required int32 field_id=2147483645 _VALUE_KIND (Int(bitWidth=8, isSigned=true));
  optional int32 field_id=0 a (Decimal(precision=9, scale=2));
  optional int64 field_id=1 b (Decimal(precision=18, scale=2));
  optional fixed_len_byte_array(9) field_id=2 c (Decimal(precision=19, scale=2));
  optional int32 field_id=3 t (Time(isAdjustedToUTC=true, timeUnit=milliseconds));
  optional group field_id=4 m (Map) {
    repeated group field_id=-1 key_value {
      required binary field_id=536866814 key (String);
      optional group field_id=536875008 value (List) {
        repeated group field_id=-1 list {
          optional group field_id=536875009 element {
            optional int96 field_id=5 x;
            optional int32 field_id=6 key;
          }
        }
      }
    }
  }
  optional group field_id=7 s (Map) {
    repeated group field_id=-1 key_value {
      required int64 field_id=536863742 key (Timestamp(isAdjustedToUTC=false, timeUnit=milliseconds));
      required int32 field_id=536878080 value;
    }
  }
}
"""
    )


def test_pages_are_checked_and_encodings_are_those_every_java_reads():
    fields = every_type("parquet")
    data, _ = write("parquet", fields, [make_batch(fields, "parquet", 1, 500)])
    metadata = metadata_of(data)
    group = metadata.row_group(0)
    found = {code for index in range(metadata.num_columns) for code in group.column(index).encodings}
    assert found <= {"PLAIN", "RLE", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "BIT_PACKED"}
    assert metadata.metadata is None
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(io.BytesIO(_damaged_page(data)), page_checksum_verification=True).read()


def _damaged_page(data):
    column = metadata_of(data).row_group(0).column(10)
    at = column.data_page_offset + column.total_compressed_size - 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("kind", ["TIMESTAMP(7)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"])
def test_nanoseconds_are_exact_to_the_ends_of_the_range(kind):
    values = [-(2**63), -(2**63) + 1, -1, 0, 1, 86_400 * 10**9, -86_400 * 10**9, 2**63 - 1, None]
    fields = fields_of(kind)
    array = pa.array(values, pa.int64()).view(pa.timestamp("ns", "UTC" if "LOCAL" in kind else None))
    data, _ = write("parquet", fields, [pa.record_batch({"c0": array})])
    assert metadata_of(data).schema.column(0).physical_type == "INT96"
    assert read("parquet", data, fields)["c0"].combine_chunks().view(pa.int64()).to_pylist() == values


def test_nanoseconds_out_of_range_are_refused_and_not_wrapped():
    micros = pa.array([253_402_300_799_999_999], pa.int64())
    days, rest = divmod(micros[0].as_py() * 1000, 86_400 * 10**9)
    raw = np.array([(rest, days + 2_440_588)], [("n", "<i8"), ("d", "<u4")]).tobytes()
    array = pa.array([raw], pa.binary(12))
    assert from_int96(array, pa.timestamp("us")).view(pa.int64()).equals(micros)
    with pytest.raises(UnsupportedError, match="1677"):
        from_int96(array, pa.timestamp("ns"))


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_int96_is_the_inverse_of_itself(values, skip):
    array = pa.array(values, pa.int64()).view(pa.timestamp("ns")).slice(skip)
    assert from_int96(to_int96(array), pa.timestamp("ns")).equals(array)


def test_int64_nanoseconds_and_arrow_schemas_of_other_writers_are_read():
    array = pa.array([1, None, -5], pa.int64()).view(pa.timestamp("ns"))
    other = pa.table(
        {
            "c0": array,
            "c1": pa.array(["a", "b", "a"]).dictionary_encode(),
            "c2": pa.array([[1], None, []], pa.large_list(pa.int32())),
            "c3": pa.array(["x", None, ""], pa.large_string()),
            "c4": array,
        }
    )
    sink = io.BytesIO()
    pq.write_table(other, sink)
    fields = fields_of("TIMESTAMP(9)", "STRING", "ARRAY<INT>", "STRING", "TIMESTAMP(9) WITH LOCAL TIME ZONE")
    table = read("parquet", sink.getvalue(), fields)
    assert table["c0"].combine_chunks().equals(array)
    assert table["c1"].to_pylist() == ["a", "b", "a"]
    assert table["c2"].to_pylist() == [[1], None, []]
    assert table["c4"].combine_chunks().view(pa.int64()).to_pylist() == [1, None, -5]


def test_row_groups_are_filled_from_small_batches(monkeypatch):
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 100)
    fields = fields_of("INT", "STRING")
    batches = [make_batch(fields, "parquet", seed, 37) for seed in range(9)]
    data, bounds = write("parquet", fields, batches)
    metadata = metadata_of(data)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [100, 100, 100, 33]
    table = pa.Table.from_batches(batches)
    assert rows_of(read("parquet", data, fields)) == rows_of(table)
    assert bounds[0].min.as_py() == min(v for v in table["c0"].to_pylist() if v is not None)


def test_row_groups_end_at_the_block_size():
    fields = fields_of("BYTES")
    batch = pa.record_batch({"c0": [bytes([n % 256]) * 10_000 for n in range(200)]})
    data, _ = write("parquet", fields, [batch, batch], block_size_bytes=500_000)
    metadata = metadata_of(data)
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(sizes) == 400
    assert max(sizes) <= 50
    assert read("parquet", data, fields).num_rows == 400


def test_a_large_batch_is_split_into_row_groups(monkeypatch):
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 1000)
    fields = fields_of("INT")
    data, bounds = write("parquet", fields, [pa.record_batch({"c0": ints(range(10_500))})])
    assert metadata_of(data).num_row_groups == 11
    assert (bounds[0].min.as_py(), bounds[0].max.as_py()) == (0, 10_499)


def test_predicates_skip_row_groups_and_keep_positions(monkeypatch):
    monkeypatch.setattr(parquet_write, "ROW_GROUP_ROWS", 100)
    fields = fields_of("INT", "DECIMAL(20, 2)", "TIMESTAMP(0)", "DOUBLE")
    numbers = np.arange(1000)
    batch = pa.record_batch(
        {
            "c0": ints(list(range(1000))),
            "c1": pa.array([n // 100 for n in numbers], pa.int32()).cast(pa.decimal128(20, 2)),
            "c2": pa.array(list(range(1000)), pa.int64()).view(pa.timestamp("s")),
            "c3": pa.array([float(n) for n in numbers]),
        }
    )
    data, _ = write("parquet", fields, [batch])
    opened = open_bytes("parquet", data, fields)

    def found(predicate, columns=("c0",)):
        bound = bind(predicate, fields)
        return list(opened.positioned_batches(columns, batch_rows=1000, predicate=bound))

    (one,) = found(col("c0") == 250)
    assert (one[0], one[1].num_rows, one[1].column(0)[0].as_py()) == (200, 100, 200)
    assert [(at, b.num_rows) for at, b in found((col("c0") == 5) | (col("c1") >= 8))] == [(0, 100), (800, 200)]
    assert [at for at, _ in found(col("c2") == np.datetime64(450, "s"))] == [400]
    assert found(col("c0") > 5000) == []
    assert [(at, b.num_rows) for at, b in found(col("c0") == 999, columns=())] == [(900, 100)]
    assert sum(b.num_rows for _, b in found(col("c3") > 5000.0)) == 1000


def test_only_the_columns_asked_for_are_read():
    fields = fields_of(*["STRING"] * 20)
    batch = pa.record_batch({f"c{n}": [f"{n} {row} {row * 7919}" for row in range(5000)] for n in range(20)})
    data, _ = write("parquet", fields, [batch])

    class Counting(io.BytesIO):
        taken = 0

        def read(self, size=-1):
            piece = super().read(size)
            self.taken += len(piece)
            return piece

    source = Counting(data)
    opened = ParquetFormat().open(source, "/f", fields, len(data), ReadSettings(buffer_size_bytes=0))
    before = source.taken
    assert sum(b.num_rows for b in batches_of(opened, ["c3"], batch_rows=1000)) == 5000
    assert source.taken - before < len(data) / 15
    before = source.taken
    assert sum(b.num_rows for b in batches_of(opened, [], batch_rows=1000)) == 5000
    assert source.taken == before


def test_dictionaries_are_for_values_that_repeat():
    rows = 20_000
    fields = fields_of("STRING", "STRING", "BIGINT", "BIGINT", "ARRAY<STRING>", "BOOLEAN")
    batch = pa.record_batch(
        {
            "c0": [f"kind {n % 9}" for n in range(rows)],
            "c1": [f"unique {n}" for n in range(rows)],
            "c2": list(range(rows)),
            "c3": [n % 50 for n in range(rows)],
            "c4": [[f"tag {n % 5}"] for n in range(rows)],
            "c5": [n % 2 == 0 for n in range(rows)],
        }
    )
    data, _ = write("parquet", fields, [batch.slice(n, 1000) for n in range(0, rows, 1000)])
    group = metadata_of(data).row_group(0)
    assert [group.column(n).has_dictionary_page for n in range(6)] == [True, False, False, True, True, False]


def test_options_choose_dictionaries():
    fields = fields_of("INT", "INT")
    batch = pa.record_batch({"c0": ints([1] * 500), "c1": ints([1] * 500)})

    def chosen(**options):
        data, _ = write("parquet", fields, [batch], options=options)
        return [metadata_of(data).row_group(0).column(n).has_dictionary_page for n in (0, 1)]

    assert chosen() == [True, True]
    assert chosen(**{"parquet.enable.dictionary": "false"}) == [False, False]
    assert chosen(**{"parquet.enable.dictionary": "false", "parquet.enable.dictionary#c1": "true"}) == [False, True]
    assert chosen(**{"parquet.enable.dictionary#c1": "false"}) == [True, False]
    with pytest.raises(OptionError):
        chosen(**{"parquet.enable.dictionary": "maybe"})


def test_codecs_are_called_as_in_java():
    fields = fields_of("INT")
    batch = pa.record_batch({"c0": ints(range(1000))})
    names = {"none": "UNCOMPRESSED", "ZSTD": "ZSTD", "snappy": "SNAPPY", "gzip": "GZIP", "lz4_raw": "LZ4"}
    for name, stored in names.items():
        data, _ = write("parquet", fields, [batch], compression=name)
        assert metadata_of(data).row_group(0).column(0).compression == stored
        assert read("parquet", data, fields).num_rows == 1000
    data, _ = write("parquet", fields, [batch], options={"parquet.compression": "gzip"})
    assert metadata_of(data).row_group(0).column(0).compression == "GZIP"
    with pytest.raises(UnsupportedError, match="brotli"):
        write("parquet", fields, [], compression="brotli")


def test_long_values_have_bounds_although_the_footer_has_none():
    fields = fields_of("STRING", "BYTES")
    long = "z" * 6000
    batches = [
        pa.record_batch({"c0": ["b", long, None], "c1": [b"b", b"\xff" * 6000, b""]}),
        pa.record_batch({"c0": [None, None], "c1": pa.nulls(2, pa.binary())}),
    ]
    data, bounds = write("parquet", fields, batches)
    assert not metadata_of(data).row_group(0).column(0).statistics.has_min_max
    assert (bounds[0].min.as_py(), bounds[0].max.as_py(), bounds[0].null_count) == ("b", long, 3)
    assert (bounds[1].min.as_py(), bounds[1].max.as_py()) == (b"", b"\xff" * 6000)


@pytest.mark.parametrize("length", [3999, 4000, 4001, 4096, 4097, 5000])
def test_bounds_are_never_lost_around_the_footers_limit(length):
    fields = fields_of("STRING")
    _, bounds = write("parquet", fields, [pa.record_batch({"c0": ["m" * length, "a"]})])
    assert (bounds[0].min.as_py(), bounds[0].max.as_py()) == ("a", "m" * length)


def test_floats_and_nanoseconds_have_no_statistics_in_the_footer():
    fields = fields_of("DOUBLE", "FLOAT", "TIMESTAMP(9)", "INT", "ARRAY<DOUBLE>")
    data, bounds = write("parquet", fields, [make_batch(fields, "parquet", 1, 50)])
    group = metadata_of(data).row_group(0)
    assert [group.column(n).statistics is None for n in range(5)] == [True, True, True, False, True]
    assert bounds[2].min is None and bounds[2].null_count is not None


def test_statistics_are_bounds_of_every_ordered_type():
    texts = ("TINYINT", "SMALLINT", "DATE", "TIME(3)", "DECIMAL(5, 1)", "DECIMAL(15, 3)", "DECIMAL(38, 38)", "BYTES")
    fields = fields_of(*texts, "TIMESTAMP(0)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "CHAR(3)")
    batches = [make_batch(fields, "parquet", seed, 40) for seed in (1, 2, 3)]
    table = pa.Table.from_batches(batches)
    _, bounds = write("parquet", fields, batches)
    for column, bound in zip(table.columns, bounds, strict=True):
        ordered = sorted(v for v in column.to_pylist() if v is not None)
        assert (bound.min.as_py(), bound.max.as_py()) == (ordered[0], ordered[-1])
        assert bound.min.type == column.type


def test_retyping_there_and_back_keeps_the_footer():
    fields = fields_of("TIMESTAMP(9)", "INT", "ARRAY<TIMESTAMP(8)>", *["STRING"] * 20)
    data, _ = write("parquet", fields, [make_batch(fields, "parquet", 1, 30)])
    _, footer = split_tail(data)
    fixed = int96_to_fixed(footer)
    assert fixed != footer
    paths = frozenset({("c0",), ("c2", "list", "element")})
    assert fixed_to_int96(fixed, paths) == footer
    assert with_root_name(footer) == footer
    with pytest.raises(ValueError, match="FIXED_LEN"):
        fixed_to_int96(footer, paths)


def test_the_root_is_renamed_and_nothing_else_in_footers_of_any_number_of_columns():
    for count in (1, 14, 15, 16, 200):
        for name in ("c", "schema", "é" * 90):
            sink = pa.BufferOutputStream()
            pq.write_table(pa.table({f"{name}{number}": [number] for number in range(count)}), sink)
            _, footer = split_tail(sink.getvalue().to_pybytes())
            before, after = Reader(footer).struct(), Reader(with_root_name(footer)).struct()
            root = items(before, 2)[0]
            assert root[4][1] == b"schema"
            root[4] = (root[4][0], b"paimon_schema")
            assert after == before


def test_footers_that_are_not_whole_are_refused():
    fields = fields_of("TIMESTAMP(9)")
    data, _ = write("parquet", fields, [make_batch(fields, "parquet", 1, 3)])
    _, footer = split_tail(data)
    with pytest.raises(ValueError, match="no Parquet footer"):
        split_tail(data[:-1])
    with pytest.raises(ValueError, match="not complete"):
        split_tail(tail(footer)[4:])
    for length in range(len(footer)):
        with pytest.raises((ValueError, IndexError, KeyError)):
            int96_to_fixed(footer[:length])


def test_a_sink_needs_nothing_but_write():
    class Pipe:
        def __init__(self):
            self.pieces = []

        def write(self, data):
            self.pieces.append(bytes(data))
            return len(data)

    fields = every_type("parquet")
    pipe = Pipe()
    writer = ParquetFormat().create(pipe, fields, WriteSettings())
    batch = make_batch(fields, "parquet", 4, 20)
    writer.write(batch)
    writer.close()
    assert writer.bytes_written == sum(map(len, pipe.pieces))
    assert rows_of(read("parquet", b"".join(pipe.pieces), fields)) == rows_of(pa.Table.from_batches([batch]))


def test_rows_that_the_footer_does_not_announce_are_damage():
    fields = fields_of("INT")
    data, _ = write("parquet", fields, [pa.record_batch({"c0": ints(range(300))})])
    body, footer = split_tail(data)
    wrong = footer.replace(b"\xd8\x04", b"\xd6\x04", 1)
    assert wrong != footer
    with pytest.raises(CorruptionError):
        read("parquet", body + tail(wrong), fields)


def test_columns_with_dots_in_their_names_are_columns():
    fields = [
        Field(0, "a", RowType((Field(1, "b", parse_type("INT")),))),
        Field(2, "a.b", parse_type("DOUBLE")),
        Field(3, "x y\"'`", parse_type("STRING")),
    ]
    batch = pa.record_batch(
        [pa.array([{"b": 1}], pa.struct([("b", pa.int32())])), pa.array([float("nan")]), pa.array(["v"])],
        names=["a", "a.b", "x y\"'`"],
    )
    data, bounds = write("parquet", fields, [batch])
    assert rows_of(read("parquet", data, fields)) == rows_of(pa.Table.from_batches([batch]))
    assert bounds[1].min is None
    assert read("parquet", data, fields, ["a.b"])["a.b"].null_count == 0
