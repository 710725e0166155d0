"""What a small Avro file may cost, and counts that lie."""

import errno
import io
import json
import subprocess
import sys
import time

import fastavro
import pyarrow as pa
import pytest
from unit.formats.samples import fields_of, read, write

from paimon_py import Catalog, col
from paimon_py.codec.avro import container as avro
from paimon_py.errors import CorruptionError, ResourceError, SchemaError
from paimon_py.formats.avro.format import AvroFormat
from paimon_py.formats.base import ReadSettings, decoding
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

MIB = 300
SECONDS = 5


def test_small_files_cost_little_memory_and_time():
    command = [sys.executable, "-m", "tests.unit.formats.avro_bombs"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0 and len(lines) == 32, (run.returncode, lines[-1:], run.stderr[-500:])
    costly = [line for line in lines if line[2] > SECONDS or line[3] > MIB]
    assert not costly
    assert {line[1] for line in lines} == {"CorruptionError"}


def twice(data: bytes) -> bytes:
    """A container with its first block twice."""
    header = avro.read_header(data, "f")
    end = data.index(header.sync, header.end) + len(header.sync)
    return data[:end] + data[header.end : end] + data[end:]


@pytest.fixture
def table(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", pa.schema([("k", pa.int64()), ("v", pa.string())]), options={"file.format": "avro"}
    )
    table.write_arrow(pa.table({"k": list(range(100)), "v": [f"v{i}" for i in range(100)]}))
    return table


@pytest.mark.parametrize("scan", [{}, {"where": col("k") > 50}, {"where": col("v") == "v7", "columns": ["k"]}])
def test_a_doubled_block_gives_no_row_twice(table, tmp_path, scan):
    (file,) = tmp_path.rglob("data-*.avro")
    assert table.scan(**scan).to_arrow().num_rows in (100, 49, 1)
    file.write_bytes(twice(file.read_bytes()))
    with pytest.raises(CorruptionError, match="rows") as caught:
        table.scan(**scan).to_arrow()
    assert caught.value.path == str(file)


def test_a_lost_block_is_noticed_with_a_filter(table, tmp_path):
    (file,) = tmp_path.rglob("data-*.avro")
    data = file.read_bytes()
    header = avro.read_header(data, "f")
    file.write_bytes(data[: header.end] + bytes((0, 0)) + header.sync + bytes(len(data)))
    with pytest.raises(CorruptionError):
        table.scan(where=col("k") > 50).to_arrow()


def test_blocks_are_not_unpacked_when_their_counts_are_too_many(monkeypatch):
    fields = fields_of("BIGINT")
    data, _ = write("avro", fields, [pa.record_batch({"c0": pa.array(range(500), pa.int64())})])
    opened = AvroFormat().open(io.BytesIO(data), "/t/f", fields, len(data), ReadSettings(row_count=499))
    unpacked = []
    monkeypatch.setattr("paimon_py.codec.avro.container._inflate_zstd", lambda *args: unpacked.append(args))
    with pytest.raises(CorruptionError, match="500 rows or more, its manifest entry says 499"):
        list(opened.positioned_batches(["c0"], batch_rows=100))
    assert not unpacked


def test_large_rows_come_in_small_batches_and_whole():
    fields = fields_of("BIGINT", "STRING")
    text = "".join(chr(97 + i * i % 23) for i in range(3000)) * 2000
    batch = pa.record_batch({"c0": pa.array(range(6), pa.int64()), "c1": pa.array([text] * 6)})
    for codec in ("null", "zstd"):
        data, _ = write("avro", fields, [batch], compression=codec)
        opened = AvroFormat().open(io.BytesIO(data), "/t/f", fields, len(data), ReadSettings(row_count=6))
        batches = [part for _, part in opened.positioned_batches(["c0", "c1"], batch_rows=1000)]
        assert max(part.num_rows for part in batches) <= 3
        assert pa.Table.from_batches(batches).to_pydict() == batch.to_pydict()


def test_what_is_written_can_be_read_however_well_it_packs():
    fields = fields_of("STRING")
    batch = pa.record_batch({"c0": pa.array(["a" * (80 << 20)])})
    data, _ = write("avro", fields, [batch], compression="zstd")
    assert len(data) < 20_000
    assert read("avro", data, fields).column(0)[0].as_py() == "a" * (80 << 20)
    rows = fields_of("ARRAY<BOOLEAN>")
    with pytest.raises(SchemaError, match="more than readers would inflate"):
        write("avro", rows, [pa.record_batch({"c0": pa.array([[True] * (9 << 20)])})], compression="zstd")


def test_many_tiny_blocks_are_read_in_linear_time():
    schema = {"type": "record", "name": "record", "fields": [{"name": "c0", "type": "long"}]}
    one = avro.write_long(1) + avro.write_long(1) + b"\x02" + bytes(16)
    data = avro.header_bytes(json.dumps(schema).encode(), "null") + bytes(16)

    def seconds(blocks):
        start = time.process_time()
        assert read("avro", data + one * blocks, fields_of("BIGINT NOT NULL")).num_rows == blocks
        return time.process_time() - start

    few = min(seconds(2_000) for _ in range(3))
    assert seconds(20_000) < 40 * max(few, 0.01)


def test_a_null_key_of_a_map_is_refused():
    fields = [Field(0, "m", parse_type("MAP<INT, STRING>"))]
    pair = {
        "type": "record",
        "name": "pair",
        "fields": [{"name": "key", "type": ["null", "int"]}, {"name": "value", "type": ["null", "string"]}],
    }
    entries = {"type": "array", "items": pair, "logicalType": "map"}
    schema = {"type": "record", "name": "record", "fields": [{"name": "m", "type": ["null", entries]}]}
    sink = io.BytesIO()
    rows = [{"m": [{"key": 1, "value": "a"}, {"key": None, "value": "b"}]}]
    fastavro.writer(sink, fastavro.parse_schema(schema), rows)
    with pytest.raises(CorruptionError, match="key of a map is NULL") as caught:
        read("avro", sink.getvalue(), fields)
    assert caught.value.path == "/t/f"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 33554432 failed"),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_what_runs_out_is_not_called_a_damaged_file(error):
    with pytest.raises(ResourceError, match="memory or threads") as caught, decoding("/t/f"):
        raise error
    assert caught.value.path == "/t/f"


@pytest.mark.parametrize(
    "error", [pa.ArrowMemoryError("malloc of size 1152921504606846976 failed"), RecursionError("too deep")]
)
def test_what_no_machine_can_give_is_damage(error):
    with pytest.raises(CorruptionError), decoding("/t/f"):
        raise error
