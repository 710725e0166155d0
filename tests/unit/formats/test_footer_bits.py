"""Single bits of footers, flipped in processes of their own: an abort inside pyarrow would end the tests.

`tests/fuzz` sweeps all bits of many tables; here are samples of those that have ended a process, took gigabytes, or
were read as other values.
"""

from __future__ import annotations

import decimal
import functools
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.formats.samples import batches_of, fields_of, open_bytes, read, write

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.formats.base import ReadSettings
from paimon_py.formats.orc.footer import read_tail

ROOT = Path(__file__).parents[3]
FIELDS = fields_of("INT NOT NULL", "STRING", "DECIMAL(9, 2)", "DECIMAL(30, 5)", "DOUBLE", "ARRAY<INT>")
LAST_ROWS = bind((col("c0") >= 13) & (col("c1") >= "t3") & (col("c2") >= decimal.Decimal("1.3")) & (col("c4") >= 3.0), FIELDS)


SILENT = {"all": 0.0, "filter": 0.005, "page": 0.005}
"""Share of bits that may give other rows: bounds that leave a row group out look like any others."""


@functools.cache
def made(name):
    """A file of two row groups, or of one stripe, and its rows."""
    count = 24
    values = [
        range(count), [f"t{n // 4}" if n % 5 else None for n in range(count)], [decimal.Decimal(n).scaleb(-1) for n in range(count)],
        [decimal.Decimal(n * 10**9).scaleb(-5) for n in range(count)], [n / 4 for n in range(count)], [[n] * (n % 3) for n in range(count)],
    ]  # fmt: skip
    schema = to_arrow_schema(FIELDS)
    batch = pa.RecordBatch.from_arrays([pa.array(v, f.type) for v, f in zip(values, schema, strict=True)], schema=schema)
    settings = {"block_size_bytes": 500} if name == "parquet" else {"compression": "none"}
    return write(name, FIELDS, [batch.slice(0, 12), batch.slice(12)], **settings)[0], pa.Table.from_batches([batch])


def footer_at(name, data):
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little") if name == "parquet" else read_tail(io.BytesIO(data)).footer_at


def matching(table):
    """The rows for which `LAST_ROWS` is true."""
    return table.filter(pc.and_(pc.greater_equal(table["c0"], 13), pc.is_valid(table["c1"])))


def outcome(name, data, mode):
    """What one reading of damaged bytes comes to."""
    predicate = None if mode == "all" else LAST_ROWS
    try:
        opened = open_bytes(name, data, FIELDS, settings=ReadSettings(by_page=mode == "page"))
        batches = list(batches_of(opened, [field.name for field in FIELDS], batch_rows=1000, predicate=predicate))
    except CorruptionError as error:
        return "corruption" if error.path else "no path"
    except UnsupportedError:
        return "unsupported"
    expected = made(name)[1]
    found = pa.Table.from_batches(batches) if batches else expected.slice(0, 0)
    if predicate is not None:
        found, expected = matching(found), matching(expected)
    return "right" if found.equals(expected) else "wrong"


def sweep(name, mode, first, step):
    """Counts of outcomes over every so-many-th bit of a footer."""
    data, _ = made(name)
    counts = {}
    for bit in range(8 * footer_at(name, data) + first, 8 * len(data), step):
        damaged = data[: bit >> 3] + bytes([data[bit >> 3] ^ 1 << (bit & 7)]) + data[(bit >> 3) + 1 :]
        found = outcome(name, damaged, mode)
        counts[found] = counts.get(found, 0) + 1
    return counts


def in_a_child(name, mode, first, step):
    """The same in a process of its own."""
    code = f"import json; from unit.formats.test_footer_bits import sweep; print(json.dumps(sweep({name!r}, {mode!r}, {first}, {step})))"
    return json.loads(child(code))


def child(code):
    """The last line that a process prints, which has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("mode", ["all", "filter", "page"])
def test_bits_of_parquet_footers_are_found_or_make_no_difference(mode):
    found = in_a_child("parquet", mode, 0, 53)
    assert found.keys() <= {"right", "corruption", "unsupported", "wrong"}
    assert found.get("wrong", 0) <= SILENT[mode] * sum(found.values())


def test_bits_of_orc_footers_are_found_or_make_no_difference():
    found = in_a_child("orc", "all", 0, 11)
    assert found.keys() <= {"right", "corruption", "unsupported"}


def test_a_decimal_of_too_many_digits_in_an_orc_footer_is_corruption():
    data, _ = made("orc")
    wide = data.replace(b"\x28\x1e\x30\x05", b"\x28\x3e\x30\x05")
    assert wide != data
    code = f"from unit.formats.test_footer_bits import *; print(outcome('orc', bytes.fromhex({wide.hex()!r}), 'all'))"
    assert child(code) == "corruption"


def maps():
    """An ORC file with keys and NULLs, and the bytes of the footer of its stripe."""
    fields = fields_of("STRING", "MAP<STRING, INT>")
    rows = [None, [("a", 1)], [("b", None), ("c", 3)], []] * 5
    batch = pa.record_batch([pa.array(["x", None] * 10), pa.array(rows, pa.map_(pa.string(), pa.int32()))], names=["c0", "c1"])
    data, _ = write("orc", fields, [batch], compression="none")
    (stripe,) = read_tail(io.BytesIO(data)).stripes
    start = stripe.offset + stripe.index_bytes + stripe.data_bytes
    return fields, data, range(8 * start, 8 * (start + stripe.footer_bytes))


def sweep_maps():
    """How many bits of the footer of a stripe are found by name, after a reading of each."""
    fields, data, bits = maps()
    keys = 0
    for bit in bits:
        damaged = data[: bit >> 3] + bytes([data[bit >> 3] ^ 1 << (bit & 7)]) + data[(bit >> 3) + 1 :]
        try:
            list(batches_of(open_bytes("orc", damaged, fields), ["c0", "c1"], batch_rows=1000))
        except CorruptionError as error:
            keys += "keys that are NULL" in str(error)
    return keys


def test_a_stripe_whose_keys_would_be_null_is_corruption():
    assert int(child("from unit.formats.test_footer_bits import *; print(sweep_maps())")) > 0


@pytest.mark.parametrize("kind", ["STRING", "CHAR(9)", "ARRAY<STRING>", "MAP<STRING, INT>", "MAP<INT, STRING>", "ROW<a INT, b STRING>"])
def test_texts_in_orc_that_are_no_text_are_corruption(kind):
    fields = fields_of(kind)
    values = {"A": [["wörd"]], "R": [{"a": 1, "b": "wörd"}], "MAP<S": [[("wörd", 1)]], "MAP<I": [[(1, "wörd")]]}
    rows = next((rows for start, rows in values.items() if kind.startswith(start)), ["wörd"])
    batch = pa.record_batch([pa.array(rows, to_arrow_schema(fields)[0].type)], names=["c0"])
    data, _ = write("orc", fields, [batch], compression="none")
    assert read("orc", data, fields).num_rows == 1
    broken = data.replace("wörd".encode(), b"w\xe3\xb6rd")
    assert len(broken) == len(data) and broken != data
    with pytest.raises(CorruptionError, match="UTF8") as caught:
        read("orc", broken, fields)
    assert caught.value.path == "/t/f"


def test_a_postscript_with_chunks_of_terabytes_is_corruption():
    """pyarrow ends the process for some of them."""
    fields = fields_of("INT", "STRING")
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2], pa.int32()), pa.array(["a", "b"])], schema=to_arrow_schema(fields))
    data = write("orc", fields, [batch], compression="zstd")[0]
    start = len(data) - 1 - data[-1]
    place = data.index(b"\x18", start) + 1  # the number behind the tag of field 3
    end = next(at for at in range(place, len(data)) if data[at] < 128) + 1
    postscript = data[start:place] + b"\x80\x80\xff\xff\xff\xff\x0c" + data[end:-1]
    with pytest.raises(CorruptionError, match="chunks of 57174604627968 bytes"):
        read("orc", data[:start] + postscript + bytes([len(postscript)]), fields)
