"""Avro records decoded in columns are those that fastavro gives, or are left to it."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pytest

from paimon_py.codec.avro import columns as avro_columns
from paimon_py.codec.avro import data_files as avro_data
from paimon_py.codec.avro import starts as avro_starts
from paimon_py.errors import CorruptionError
from paimon_py.formats.avro import format as avro
from paimon_py.formats.avro.format import AvroFormat
from paimon_py.formats.base import ReadSettings, WriteSettings
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

TYPES = [
    "INT", "BIGINT", "SMALLINT", "TINYINT", "STRING", "BYTES", "BOOLEAN", "DOUBLE", "FLOAT", "DATE", "TIME(3)", "TIMESTAMP(3)",
    "TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", "DECIMAL(9, 2)", "DECIMAL(38, 10)", "CHAR(3)", "BINARY(2)", "VARCHAR(9)",
]  # fmt: skip


def values(kind: pa.DataType, count: int, rng: random.Random):
    """Values of a type, from its smallest to its largest, some of them NULL."""
    if pa.types.is_decimal(kind):
        return pa.array([rng.randrange(-10**6, 10**6) for _ in range(count)], pa.int64()).cast(pa.decimal128(38, 0)).cast(pa.decimal128(38, kind.scale)).cast(kind)
    if pa.types.is_string(kind):
        return pa.array([rng.choice(("", "a", "äö", "x" * rng.randrange(400))) for _ in range(count)])
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([rng.randbytes(2) for _ in range(count)]).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array([rng.random() < 0.5 for _ in range(count)])
    if pa.types.is_floating(kind):
        return pa.array([rng.choice((0.0, -0.0, float("nan"), float("inf"), rng.uniform(-1e9, 1e9))) for _ in range(count)], kind)
    bits = kind.bit_width
    if pa.types.is_timestamp(kind):
        bits = 46 if kind.unit == "ms" else 56
    if pa.types.is_time(kind):
        return pa.array([rng.randrange(86_400_000) for _ in range(count)], pa.int32()).cast(kind)
    if pa.types.is_date(kind):
        return pa.array([rng.randrange(-700_000, 2_000_000) for _ in range(count)], pa.int32()).cast(kind)
    numbers = [rng.choice((0, -1, 63, 64, -(1 << bits - 1), (1 << bits - 1) - 1, rng.randrange(-(1 << rng.randrange(1, bits)), 1 << rng.randrange(1, bits - 1)))) for _ in range(count)]
    numbers = [max(-(1 << bits - 1), min((1 << bits - 1) - 1, number)) for number in numbers]
    return pa.array(numbers, pa.int64()).cast(kind)


def written(fields, columns, codec="zstd"):
    sink = io.BytesIO()
    writer = AvroFormat().create(sink, fields, WriteSettings(compression=codec))
    writer.write(pa.RecordBatch.from_arrays(columns, names=[field.name for field in fields]))
    writer.close()
    return sink.getvalue()


def made(rng: random.Random, rows: int, kinds):
    from paimon_py.codec.arrow_types import to_arrow_type

    fields, columns = [], []
    for number, text in enumerate(kinds):
        nullable = rng.random() < 0.7
        fields.append(Field(number, f"c{number}", parse_type(text if nullable else f"{text} NOT NULL")))
        column = values(to_arrow_type(fields[-1].type), rows, rng)
        if nullable:
            holes = pa.array([rng.random() < 0.8 for _ in range(rows)])
            column = pa.compute.if_else(holes, column, pa.scalar(None, column.type))
        columns.append(column)
    return fields, columns


def read(data, fields, names, batch_rows=3000):
    opened = AvroFormat().open(io.BytesIO(data), "/f.avro", fields, len(data), ReadSettings())
    return pa.Table.from_batches([batch for _, batch in opened.positioned_batches(names, batch_rows=batch_rows)])


@pytest.fixture
def ways(monkeypatch):
    """Decoding with fastavro, and in columns in two ways; how often the latter gave columns."""
    given = []

    def decoded(window, plan):
        found = avro_columns.decode_window(window, plan)
        given.append(found is not None)
        return found

    monkeypatch.setattr(avro, "decode_window", decoded)

    def choose(many_blocks):
        """In columns, with one numpy step for all blocks from so many on; 0: by fastavro."""
        monkeypatch.setattr(avro, "flat_plan", avro_columns.flat_plan if many_blocks else lambda *_: None)
        monkeypatch.setattr(avro_starts, "_MANY_BLOCKS", many_blocks)

    return choose, given


@pytest.mark.parametrize("seed", range(6))
def test_columns_are_those_of_records(ways, seed):
    choose, given = ways
    rng = random.Random(seed)
    fields, columns = made(rng, rng.choice((1, 700, 6000)), rng.sample(TYPES, rng.randrange(1, 7)))
    data = written(fields, columns, rng.choice(("zstd", "null", "snappy", "deflate")))
    wanted = rng.sample([field.name for field in fields], rng.randrange(1, len(fields) + 1))
    choose(0)
    right = read(data, fields, wanted)
    for many_blocks in (1, 1 << 30):
        choose(many_blocks)
        found = read(data, fields, wanted)
        assert given and all(given)
        assert found.schema == right.schema
        for one, other in zip(found.columns, right.columns):
            assert str(one.to_pylist()) == str(other.to_pylist())


@pytest.mark.parametrize("seed", range(3))
def test_small_blocks_of_long_texts_are_passed_by_both_ways(ways, monkeypatch, seed):
    choose, given = ways
    monkeypatch.setattr(avro_data, "BLOCK_BYTES", 400)
    rng = random.Random(f"texts {seed}")
    texts = [rng.choice((None, "", "b" * 63, "c" * 64, "d" * rng.randrange(20_000))) for _ in range(300)]
    fields = [Field(0, "a", parse_type("STRING")), Field(1, "b", parse_type("BIGINT NOT NULL")), Field(2, "c", parse_type("BYTES NOT NULL"))]
    columns = [pa.array(texts, pa.string()), pa.array(range(300)), pa.array([(text or "")[::-1].encode() for text in texts])]
    data = written(fields, columns)
    for many_blocks in (1, 1 << 30):
        choose(many_blocks)
        assert [column.to_pylist() for column in read(data, fields, ["a", "b", "c"]).columns] == [column.to_pylist() for column in columns]
    assert given and all(given)


@pytest.mark.parametrize("seed", range(6))
def test_rows_encoded_by_column_are_the_bytes_of_records(monkeypatch, seed):
    rng = random.Random(f"written {seed}")
    fields, columns = made(rng, rng.choice((0, 1, 700, 9000)), rng.sample(TYPES, rng.randrange(1, 7)))
    codec = rng.choice(("zstd", "null", "snappy", "deflate"))
    found = written(fields, columns, codec)
    monkeypatch.setattr(avro, "flat_layout", lambda *_: None)
    assert written(fields, columns, codec) == found


def test_inner_columns_are_left_to_fastavro(ways):
    choose, given = ways
    choose(1)
    fields = [Field(0, "a", parse_type("INT")), Field(1, "l", parse_type("ARRAY<INT>"))]
    data = written(fields, [pa.array([1, None], pa.int32()), pa.array([[1], None], pa.list_(pa.int32()))])
    assert read(data, fields, ["a"])["a"].to_pylist() == [1, None] and not given


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_found_by_both_ways_alike(ways, seed):
    choose, _ = ways
    rng = random.Random(f"damage {seed}")
    fields, columns = made(rng, 300, rng.sample(TYPES, 4))
    data = written(fields, columns, "null")
    outcomes = set()
    for _ in range(24):
        damaged = bytearray(data)
        damaged[rng.randrange(700, len(data))] ^= 1 << rng.randrange(8)
        told = []
        for many_blocks in (0, 1, 1 << 30):
            choose(many_blocks)
            try:
                told.append(str(read(bytes(damaged), fields, [field.name for field in fields]).to_pylist()))
            except CorruptionError as error:
                told.append(type(error))
        assert told[0] == told[1] == told[2]
        outcomes.add(told[0] is CorruptionError)
    assert outcomes == {True, False}
