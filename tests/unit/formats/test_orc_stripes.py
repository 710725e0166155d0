"""Which stripes of an ORC file are left out: never one that holds a match, and those that clearly hold none."""

from __future__ import annotations

import datetime
import io
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import orc
from pyroaring import BitMap
from unit.formats.samples import fields_of, write

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.errors import CorruptionError
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.formats.orc.format import OrcFormat

OPTIONS = {"orc.stripe.size": "1000", "orc.compress": "none"}
DAY = datetime.date(1970, 1, 1)
VALUES = {
    "TINYINT": lambda n: n % 100 - 50,
    "INT": lambda n: n - 2000,
    "BIGINT": lambda n: (n - 2000) * 10**12,
    "STRING": lambda n: f"{n:06}é",
    "VARCHAR(30)": lambda n: f"{n:06}",
    "DATE": lambda n: DAY + datetime.timedelta(days=n),
    "TIME": lambda n: (datetime.datetime.min + datetime.timedelta(seconds=n)).time(),
    "DECIMAL(9, 2)": lambda n: Decimal(n - 2000).scaleb(-2),
    "DECIMAL(30, 5)": lambda n: Decimal((n - 2000) * 10**18).scaleb(-5),
}
UNBOUNDED = {
    "DOUBLE": lambda n: float("nan") if n % 7 == 0 else float(n),
    "CHAR(9)": lambda n: f"{n:06}",
    "TIMESTAMP(3)": lambda n: datetime.datetime(1970, 1, 1) + datetime.timedelta(days=n),
    "BOOLEAN": lambda n: n % 2 == 0,
    "BYTES": lambda n: str(n).encode(),
}


def opened(data, fields):
    return OrcFormat().open(io.BytesIO(data), "f.orc", fields, len(data))


@pytest.mark.parametrize("compress", ["none", "zlib", "zstd", "snappy", "lz4"])
@pytest.mark.parametrize("kind", [*VALUES, *UNBOUNDED])
def test_stripes_that_are_left_out_hold_no_match(kind, compress):
    draw = random.Random(f"{kind} {compress}")
    fields = fields_of(kind, "INT")
    value = {**VALUES, **UNBOUNDED}[kind]
    schema = to_arrow_schema(fields)
    cells = [None if 1024 <= n < 2048 or draw.random() < 0.1 else value(n) for n in range(5000)]
    rows = pa.record_batch([pa.array(cells, schema.field(0).type), pa.array(range(5000), pa.int32())], schema=schema)
    data, _ = write("orc", fields, [rows], options={**OPTIONS, "orc.compress": compress})
    stripes = orc.ORCFile(io.BytesIO(data))
    counts = [stripes.read_stripe(at).num_rows for at in range(stripes.nstripes)]
    c = col(fields[0].name)
    literals = [value(draw.randrange(5000)) for _ in range(3)]
    leaves = [c.is_null(), c.is_not_null(), *(c == each for each in literals), c.isin(literals), c != literals[0]]
    if kind != "BOOLEAN":
        leaves += [c < literals[0], c >= literals[1], c.between(*sorted(literals[:2]))]
    left_out = 0
    for leaf in leaves:
        bound = bind(leaf, fields)
        matches = [at for at, hit in enumerate(evaluate(bound, dict(zip(schema.names, rows.columns, strict=True))).to_pylist()) if hit]
        parts = opened(data, fields).parts(bound)
        assert list(parts.row_counts) == counts and all(parts.has_wanted)
        read = opened(data, fields).positioned_batches([field.name for field in fields], batch_rows=600, predicate=bound)
        seen = {}
        for position, batch in read:
            assert batch.column(1).to_pylist() == list(range(position, position + batch.num_rows))
            seen.update(dict.fromkeys(range(position, position + batch.num_rows)))
        assert set(matches) <= set(seen)
        assert len(seen) == sum(count for count, taken in zip(counts, parts.chosen_parts, strict=True) if taken)
        left_out += parts.chosen_parts.count(False)
    if kind in VALUES and len(counts) > 2:
        assert left_out


def test_stripes_without_a_wanted_row_are_left_out():
    fields = fields_of("INT")
    rows = pa.record_batch({fields[0].name: pa.array(range(5000), pa.int32())})
    data, _ = write("orc", fields, [rows], options=OPTIONS)
    wanted = BitMap([1023, 4097])
    assert opened(data, fields).parts(None, wanted).chosen_parts == (True, False, False, False, True)
    pieces = opened(data, fields).positioned_batches([fields[0].name], batch_rows=9999, rows=wanted)
    assert [(position, batch.num_rows) for position, batch in pieces] == [(0, 1024), (4096, 904)]
    assert opened(data, fields).parts().chosen_parts == (True,) * 5


@pytest.mark.parametrize("seed", range(60))
def test_damaged_ends_are_noticed_or_leave_out_nothing_wrong(seed):
    draw = random.Random(seed)
    fields = fields_of("INT", "STRING")
    rows = pa.record_batch({"c0": pa.array(range(3000), pa.int32()), "c1": [str(n) for n in range(3000)]})
    data, _ = write("orc", fields, [rows], options=OPTIONS)
    damaged = bytearray(data)
    at = draw.randrange(len(data) - 400, len(data))
    damaged[at] = draw.randrange(256)
    bound = bind(col("c0") == 2500, fields)
    try:
        list(opened(bytes(damaged), fields).positioned_batches(["c0"], batch_rows=9999, predicate=bound))
    except CorruptionError as error:
        assert error.path == "f.orc"
