"""A scan of a few rows gives the first ones of the scan without a limit, and reads little for them."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_py import Catalog, col

ROWS = 30_000
SHAPES = {
    "keyed": {"primary_key": ["k"], "options": {"bucket": "1", "write-only": "true"}},
    "two buckets": {"primary_key": ["k"], "options": {"bucket": "2", "write-only": "true"}},
    "partial": {"primary_key": ["k"], "options": {"bucket": "1", "write-only": "true", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}},
    "avro": {"primary_key": ["k"], "options": {"bucket": "1", "write-only": "true", "file.format": "avro"}},
    "append": {"options": {"bucket": "-1"}},
}


@pytest.fixture(scope="module", params=SHAPES)
def table(request, tmp_path_factory):
    catalog = Catalog.open(tmp_path_factory.mktemp("few"))
    catalog.create_database("d")
    rng = random.Random(request.param)
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.int64()), pa.field("s", pa.string())])
    made = catalog.create_table("d.t", schema, **SHAPES[request.param])
    for _ in range(3):
        keys = rng.sample(range(ROWS), ROWS // 2)
        made.write_arrow(pa.table({"k": keys, "v": [rng.randrange(100) for _ in keys], "s": [f"s{key}" for key in keys]}, schema))
    if made.schema.primary_keys:
        made.delete(col("k") < 9_000)
    return made


@pytest.mark.parametrize("limit", [0, 1, 7, 5_000, 29_999])
@pytest.mark.parametrize("where", [None, col("v") == 3, col("k") > 20_000, (col("k") > 100) & (col("v") < 50)])
def test_the_first_rows_are_those_of_the_whole(table, limit, where):
    whole = table.scan(where=where).to_arrow()
    assert table.scan(where=where, limit=limit).to_arrow().equals(whole.slice(0, limit))
    assert table.scan(where=where).head(limit).equals(whole.slice(0, limit))
    assert table.scan(where=where, limit=limit).count() == min(limit, whole.num_rows)


def test_a_scan_that_was_read_whole_gives_its_head(table):
    scan = table.scan()
    whole = scan.to_arrow()
    assert scan.head(3).equals(whole.slice(0, 3)) and scan.to_arrow().num_rows == whole.num_rows
