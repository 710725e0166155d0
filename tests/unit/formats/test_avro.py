"""What is special about Avro: names, logical types, codecs, containers of other writers."""

import decimal
import io

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.formats.samples import batches_of, fields_of, make_batch, read, rows_of, write

from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.formats.avro.format import AvroFormat
from paimon_py.formats.avro.schema import record_schema
from paimon_py.formats.decimal_bytes import from_bytes, to_bytes
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import ArrayType, Field, RowType


def test_the_schema_is_javas():
    row = RowType((Field(9, "x", parse_type("INT NOT NULL")),))
    fields = [
        Field(0, "id", parse_type("BIGINT NOT NULL")),
        Field(1, "d", parse_type("DECIMAL(9, 2)")),
        Field(2, "t", parse_type("TIMESTAMP(3) NOT NULL")),
        Field(3, "z", parse_type("TIMESTAMP(6) WITH LOCAL TIME ZONE")),
        Field(4, "m", parse_type("MAP<STRING, INT>")),
        Field(5, "n", parse_type("MAP<INT, STRING NOT NULL>")),
        Field(6, "s", parse_type("MULTISET<STRING>")),
        Field(7, "r", ArrayType(row)),
    ]
    space = "org.apache.paimon.avro.generated"
    pair = [{"name": "key", "type": ["null", "int"]}, {"name": "value", "type": "string"}]
    nested = {
        "type": "record",
        "name": "record_r",
        "namespace": space,
        "fields": [{"name": "x", "type": "int"}],
    }
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    entries = {
        "type": "array",
        "items": {"type": "record", "name": "record_n", "namespace": space, "fields": pair},
        "logicalType": "map",
    }
    assert record_schema(fields) == {
        "type": "record",
        "name": "record",
        "namespace": space,
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "d", "type": ["null", decimal], "default": None},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "z", "type": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}], "default": None},
            {"name": "m", "type": ["null", {"type": "map", "values": ["null", "int"]}], "default": None},
            {"name": "n", "type": ["null", entries], "default": None},
            {"name": "s", "type": ["null", {"type": "map", "values": ["null", "int"]}], "default": None},
            {"name": "r", "type": ["null", {"type": "array", "items": ["null", nested]}], "default": None},
        ],
    }


def test_another_reader_sees_the_logical_types():
    fields = fields_of("DECIMAL(9, 2)", "DATE", "TIMESTAMP(3)", "MAP<STRING, INT>", "INT")
    batch = make_batch(fields, "avro", 11, 40)
    for name in ("c1", "c2"):
        assert batch.column(name).null_count < 40
    data, _ = write("avro", fields, [batch], compression="deflate")
    rows = list(fastavro.reader(io.BytesIO(data)))
    assert [row["c0"] for row in rows] == batch.column("c0").to_pylist()
    assert [row["c1"] for row in rows] == batch.column("c1").to_pylist()
    assert [row["c4"] for row in rows] == batch.column("c4").to_pylist()
    assert [row["c3"] for row in rows] == [None if v is None else dict(v) for v in batch.column("c3").to_pylist()]


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstd", "zstandard", "bzip2", "xz"])
def test_every_codec_of_java_is_written_and_read(codec):
    fields = fields_of("BIGINT", "STRING")
    batch = make_batch(fields, "avro", 1, 5000)
    data, _ = write("avro", fields, [batch], compression=codec)
    assert rows_of(read("avro", data, fields)) == rows_of(pa.Table.from_batches([batch]))


def test_the_codec_option_comes_before_the_compression_of_the_table():
    data, _ = write("avro", fields_of("INT"), [], options={"avro.codec": "snappy"})
    assert b"snappy" in data


def test_unknown_codecs_of_files_are_refused():
    data, _ = write("avro", fields_of("INT"), [], compression="deflate")
    with pytest.raises(UnsupportedError, match="deflata"):
        read("avro", data.replace(b"deflate", b"deflata"), fields_of("INT"))


@pytest.mark.parametrize(
    "kind",
    ["TIMESTAMP(7)", "TIMESTAMP(9) WITH LOCAL TIME ZONE", "TIME(4)", "MULTISET<INT>", "ARRAY<TIMESTAMP(9)>"],
)
def test_types_that_avro_cannot_hold_are_refused_by_name(kind):
    with pytest.raises(UnsupportedError) as error:
        write("avro", fields_of(kind), [])
    assert "Avro" in error.value.feature


def test_names_that_avro_cannot_hold_are_refused():
    for name in ("a b", "1a", "é", "", "a.b"):
        with pytest.raises(UnsupportedError, match="name"):
            write("avro", [Field(0, name, parse_type("INT"))], [])


def test_a_union_at_the_root_is_read():
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "c0", "type": ["null", "int"]},
            {"name": "c1", "type": {"type": "map", "values": "string"}},
        ],
    }
    sink = io.BytesIO()
    fastavro.writer(sink, ["null", schema], [{"c0": 1, "c1": {"a": "b"}}, {"c0": None, "c1": {}}])
    table = read("avro", sink.getvalue(), fields_of("INT", "MAP<STRING, STRING>"))
    assert table.to_pylist() == [{"c0": 1, "c1": [("a", "b")]}, {"c0": None, "c1": []}]
    assert read("avro", sink.getvalue(), fields_of("INT", "STRING"), ["c0"])["c0"].to_pylist() == [1, None]


def test_the_unit_of_a_timestamp_is_what_the_file_says():
    fields = [{"name": "c0", "type": {"type": "long", "logicalType": "timestamp-micros"}}]
    sink = io.BytesIO()
    fastavro.writer(sink, {"type": "record", "name": "r", "fields": fields}, [{"c0": -1}, {"c0": 5_000_999}])
    table = read("avro", sink.getvalue(), fields_of("TIMESTAMP(3)"))
    assert table["c0"].cast(pa.int64()).to_pylist() == [-1, 5000]


def test_dates_and_times_outside_pythons_years_come_back():
    fields = fields_of("DATE", "TIMESTAMP(6)", "TIMESTAMP(0) WITH LOCAL TIME ZONE")
    batch = pa.record_batch(
        {
            "c0": pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32()),
            "c1": pa.array([-(2**63), 2**63 - 1], pa.int64()).view(pa.timestamp("us")),
            "c2": pa.array([-(2**53), 2**53], pa.int64()).view(pa.timestamp("s", "UTC")),
        }
    )
    data, _ = write("avro", fields, [batch])
    assert pa.Table.from_batches([batch]).equals(read("avro", data, fields))


def test_a_file_that_ends_after_a_block_is_damaged():
    fields = fields_of("STRING")
    batches = [pa.record_batch({"c0": [f"{n} {'x' * 100}" for n in range(8192)]}) for _ in range(3)]
    whole, _ = write("avro", fields, batches, compression="null")
    cut = whole.rindex(whole[-16:], 0, -16) + 16
    assert cut < len(whole)
    with pytest.raises(CorruptionError, match="ends after"):
        list(batches_of(AvroFormat().open(io.BytesIO(whole[:cut]), "/f", fields, len(whole)), ["c0"], batch_rows=100))


def test_blocks_hold_about_64_kilobytes():
    fields = fields_of("STRING")
    batch = pa.record_batch({"c0": [f"{n} {'x' * 100}" for n in range(8192)]})
    data, _ = write("avro", fields, [batch], compression="null")
    sizes = [len(block.bytes_.getbuffer()) for block in fastavro.block_reader(io.BytesIO(data))]
    assert len(sizes) > 10
    assert max(sizes) < 70_000


@given(
    st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1), max_size=40),
    st.integers(0, 38),
    st.integers(0, 2),
)
@settings(max_examples=80, deadline=None)
def test_decimals_have_javas_bytes(values, scale, skip):
    exact = [None if v is None else decimal.Decimal(f"{v}E-{scale}") for v in values]
    array = pa.array(exact, pa.decimal128(38, scale)).slice(skip)
    packed = to_bytes(array)
    for value, raw in zip(values[skip:], packed.to_pylist(), strict=True):
        if value is not None:
            length = (value.bit_length() if value >= 0 else (value + 1).bit_length()) // 8 + 1
            assert raw == value.to_bytes(length, "big", signed=True)
    assert from_bytes(packed, array.type).equals(array)


def test_decimals_without_bytes_or_with_too_many_are_damage():
    for raw in (b"", bytes(17)):
        with pytest.raises(ValueError, match="bytes"):
            from_bytes(pa.array([raw], pa.binary()), pa.decimal128(38, 0))
    with pytest.raises(pa.ArrowInvalid):
        from_bytes(pa.array([b"\x7f\xff"], pa.binary()), pa.decimal128(2, 0))


def test_the_same_rows_give_the_same_bytes():
    fields = fields_of("INT", "STRING")
    batch = make_batch(fields, "avro", 1, 100)
    assert write("avro", fields, [batch])[0] == write("avro", fields, [batch])[0]


def test_a_broken_schema_in_the_header_is_damage():
    data, _ = write("avro", fields_of("INT"), [], compression="null")
    for bad in (b'{"type":"recorb"', b'{"type":"rec\xffrd"', b'["type":"record"'):
        with pytest.raises(CorruptionError):
            read("avro", data.replace(b'{"type":"record"', bad), fields_of("INT"))
