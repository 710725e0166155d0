"""What is special about ORC: what its writer cannot say, time zones, ids."""

import io

import pyarrow as pa
import pytest
from pyarrow import orc
from unit.formats.samples import fields_of, read, rows_of, write

from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.formats.base import WriteSettings
from paimon_py.formats.orc.footer import read_tail
from paimon_py.formats.orc.format import OrcFormat
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import ArrayType, Field, MapType, RowType

SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def stamps(values, unit="us", zone=None):
    return pa.array(values, pa.int64()).view(pa.timestamp(unit, zone))


@pytest.mark.parametrize(("precision", "unit", "value"), [(6, "us", -1), (9, "ns", -998_999_999), (4, "us", -100)])
@pytest.mark.parametrize("nested", [False, True])
def test_fine_digits_in_the_last_second_before_1970_are_refused_before_the_file_is_complete(precision, unit, value, nested):
    kind = f"TIMESTAMP({precision})"
    fields = fields_of(f"MAP<INT, ARRAY<{kind}>>" if nested else kind)
    column = stamps([None, 5, value], unit)
    if nested:
        lists = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), column)
        column = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array([1], pa.int32()), lists)
    sink = io.BytesIO()
    writer = OrcFormat().create(sink, fields, WriteSettings())
    with pytest.raises(UnsupportedError, match="last second before 1970"):
        writer.write(pa.record_batch({"c0": column}))
    writer.abort()
    assert b"ORC" not in sink.getvalue()[3:]


@pytest.mark.parametrize(("precision", "unit"), [(0, "s"), (3, "ms"), (6, "us"), (9, "ns")])
def test_whole_milliseconds_before_1970_come_back(precision, unit):
    step = max(1, SECOND[unit] // 1000)
    column = stamps([-step, -1_000_000 * step, 0, None, 123 * step], unit)
    fields = fields_of(f"TIMESTAMP({precision})")
    data, _ = write("orc", fields, [pa.record_batch({"c0": column})])
    assert read("orc", data, fields)["c0"].combine_chunks().equals(column)


@pytest.mark.parametrize(("kind", "unit"), [("TIMESTAMP(0)", "s"), ("TIMESTAMP(3)", "ms"), ("TIMESTAMP(6)", "us")])
@pytest.mark.parametrize("year", [1600, 9999])
def test_times_beyond_64_bits_of_nanoseconds_come_back(kind, unit, year):
    seconds = {1600: -11_676_096_000, 9999: 253_370_764_800}[year]
    column = stamps([seconds * SECOND[unit], None, 0], unit)
    data, _ = write("orc", fields_of(kind), [pa.record_batch({"c0": column})])
    assert read("orc", data, fields_of(kind))["c0"].combine_chunks().equals(column)


@pytest.mark.parametrize("seconds", [2**60, -(2**60)])
def test_seconds_beyond_64_bits_of_milliseconds_are_refused(seconds):
    with pytest.raises(UnsupportedError, match="years"):
        write("orc", fields_of("TIMESTAMP(0)"), [pa.record_batch({"c0": stamps([seconds], "s")})])


def test_a_time_out_of_range_does_not_keep_other_columns_from_being_read():
    far = pa.table({"c0": stamps([253_370_764_800_000_000]), "c1": pa.array([7], pa.int32())})
    sink = io.BytesIO()
    orc.write_table(far, sink)
    assert read("orc", sink.getvalue(), fields_of("TIMESTAMP(6)", "INT"), ["c1"])["c1"].to_pylist() == [7]


@pytest.mark.parametrize("legacy", [True, False])
def test_local_time_zone_is_an_instant_or_a_wall_time_as_the_option_says(legacy):
    fields = fields_of("TIMESTAMP(3) WITH LOCAL TIME ZONE")
    column = stamps([0, 1_700_000_000_123, None], "ms", "UTC")
    options = {} if legacy else {"orc.timestamp-ltz.legacy.type": "false"}
    data, _ = write("orc", fields, [pa.record_batch({"c0": column})], options=options)
    assert orc.ORCFile(io.BytesIO(data)).schema.field("c0").type.tz == (None if legacy else "UTC")
    assert read("orc", data, fields)["c0"].combine_chunks().equals(column)


def test_digits_beyond_the_precision_are_cut_towards_the_past():
    sink = io.BytesIO()
    orc.write_table(pa.table({"c0": stamps([-1, 1_999_999, None])}), sink)
    assert read("orc", sink.getvalue(), fields_of("TIMESTAMP(0)"))["c0"].cast(pa.int64()).to_pylist() == [-1, 1, None]


def test_ids_stand_on_every_node():
    row = RowType((Field(3, "x", parse_type("INT")),))
    fields = [Field(1, "m", MapType(parse_type("STRING"), ArrayType(row))), Field(4, "t", parse_type("TIME(3)"))]
    data, _ = write("orc", fields, [])
    schema = orc.ORCFile(io.BytesIO(data)).schema
    found = []

    def walk(field):
        found.append((field.name, int(field.metadata[b"paimon.id"])))
        kind = field.type
        if pa.types.is_map(kind):
            walk(kind.key_field)
            walk(kind.item_field)
        elif pa.types.is_list(kind):
            walk(kind.value_field)
        elif pa.types.is_struct(kind):
            for child in kind:
                walk(child)

    for field in schema:
        walk(field)
    ids = [number for _, number in found]
    assert ids == [1, 536_870_911 - 1025, 536_870_911 + 1025, 536_870_911 + 1026, 3, 4]
    assert schema.field("t").type == pa.int32()


def test_char_loses_its_padding_and_varchar_keeps_blanks():
    sink = io.BytesIO()
    orc.write_table(pa.table({"c0": ["ab   ", "     ", None], "c1": ["ab ", " ", ""]}), sink)
    table = read("orc", sink.getvalue(), fields_of("CHAR(5)", "VARCHAR(5)"))
    assert table["c0"].to_pylist() == ["ab", "", None]
    assert table["c1"].to_pylist() == ["ab ", " ", ""]


def test_bytes_have_no_bounds_and_nested_columns_count_nulls():
    fields = fields_of("BYTES", "MAP<INT, INT>", "TIMESTAMP(9)")
    batch = pa.record_batch(
        {
            "c0": [b"a", None],
            "c1": pa.array([None, [(1, 2)]], pa.map_(pa.int32(), pa.int32())),
            "c2": stamps([5, 3], "ns"),
        }
    )
    _, bounds = write("orc", fields, [batch])
    assert [(b.min is None, b.null_count) for b in bounds] == [(True, 1), (True, 1), (False, 0)]


def test_stripes_follow_one_another():
    fields = fields_of("INT", "STRING")
    numbers = [range(first, first + 3000) for first in range(0, 18_000, 3000)]
    batches = [pa.record_batch({"c0": pa.array(n, pa.int32()), "c1": [str(x**9) for x in n]}) for n in numbers]
    data, _ = write("orc", fields, batches, block_size_bytes=20_000)
    assert orc.ORCFile(io.BytesIO(data)).nstripes > 1
    assert rows_of(read("orc", data, fields, batch_rows=700)) == rows_of(pa.Table.from_batches(batches))


def test_codecs_are_called_as_in_java():
    fields = fields_of("INT")
    batch = pa.record_batch({"c0": pa.array(range(5000), pa.int32())})
    for name, stored in {"none": "UNCOMPRESSED", "zlib": "ZLIB", "ZSTD": "ZSTD", "lz4": "LZ4"}.items():
        data, _ = write("orc", fields, [batch], compression=name)
        assert orc.ORCFile(io.BytesIO(data)).compression == stored
    data, _ = write("orc", fields, [batch], options={"orc.compress": "SNAPPY"})
    assert orc.ORCFile(io.BytesIO(data)).compression == "SNAPPY"
    with pytest.raises(UnsupportedError, match="lzo"):
        write("orc", fields, [], compression="lzo")
    for option, text in (("orc.stripe.size", "big"), ("orc.compression.strategy", "best")):
        with pytest.raises(OptionError) as caught:
            write("orc", fields, [], options={option: text})
        assert option in str(caught.value)


@pytest.mark.parametrize(("kinds", "options", "block"), [
    (["INT"] * 199, {}, 256 << 10), (["INT"] * 200, {}, 64 << 10), (["ROW<a INT, b STRING>"] * 100, {}, 64 << 10),
    (["INT"] * 200, {"orc.compress.size": "131072"}, 128 << 10),
])  # fmt: skip
def test_files_of_many_columns_are_compressed_in_small_blocks_since_every_column_holds_some(kinds, options, block):
    fields = fields_of(*kinds)
    batch = pa.record_batch([pa.nulls(3, pa.int32()) if kind == "INT" else pa.array([{"a": 1, "b": "x"}] * 3) for kind in kinds], names=[field.name for field in fields])
    data, _ = write("orc", fields, [batch], options=options)
    assert read_tail(io.BytesIO(data)).chunks.block_bytes == block
    assert read("orc", data, fields).num_rows == 3
