"""Small batches are filtered together: the same rows in the same order, in batches that are bounded."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_py import Catalog, col
from paimon_py.scan.request import join_small

KIND = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.string()))])


def batch_of(rows, width, source):
    texts = pa.array([None if source.random() < 0.1 else "é" * source.randrange(width + 1) for _ in range(rows)], pa.string())
    inner = pa.array([{"x": row, "l": ["a"] * (row % 3)} if row % 5 else None for row in range(rows)], KIND)
    numbers = pa.array([source.randrange(99) for _ in range(rows)], pa.int64())
    return pa.RecordBatch.from_arrays([numbers, texts, inner], ["n", "t", "r"])


@pytest.mark.parametrize("seed", range(6))
def test_the_rows_are_the_same_in_bounded_batches(seed):
    source = random.Random(seed)
    widths = (3, 3, 3, 20_000 if seed % 2 else 3)
    given = [batch_of(source.choice((1, 9, 40, 4_096, 4_097)[: 3 if seed % 2 else 5]), source.choice(widths), source) for _ in range(60)]
    given = [batch.slice(1) if source.random() < 0.3 else batch for batch in given]
    found = list(join_small(iter(given)))
    assert pa.Table.from_batches(found, given[0].schema).equals(pa.Table.from_batches(given))
    assert len(found) < len(given)
    assert all(batch.num_rows <= 17 * 4_096 and batch.get_total_buffer_size() <= 20 << 20 for batch in found)


def test_large_batches_are_not_copied():
    batch = batch_of(5_000, 3, random.Random(1))
    assert [one is batch for one in join_small([batch, batch])] == [True, True]
    assert list(join_small([])) == []


def test_conditions_that_read_no_column_count_the_rows_of_small_files(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", pa.schema([("k", pa.int64())]), options={"bucket": "-1", "write-only": "true"})
    for _ in range(3):
        table.write_arrow(pa.table({"k": [1, 2, 3]}))
    for where, expected in ((col("k").is_not_null() | col("k").is_null(), 9), (col("k").isin([]), 0), (col("k") == 2, 3)):
        assert table.scan(where=where).count() == expected == len(table.scan(columns=[], where=where).to_arrow())


@pytest.mark.parametrize("key", [(), ("k",)])
def test_a_condition_on_many_small_files_finds_what_a_condition_on_all_rows_finds(tmp_path, key):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=not key), pa.field("v", pa.float64()), pa.field("s", pa.string())])
    options = {"bucket": "1" if key else "-1", "write-only": "true"}
    table = catalog.create_table("d.t", schema, primary_key=key, options=options)
    for start in range(0, 300, 20):
        keys = range(start, start + 20)
        values = [None, float("nan"), -0.0, *map(float, keys[3:])]
        table.write_arrow(pa.table({"k": keys, "v": values, "s": [f"s{k % 7}" for k in keys]}, schema=schema))
    for where in (col("v") > 100, col("v") <= 0, col("s") == "s3", col("v").is_null(), (col("k") < 55) | (col("s") > "s5")):
        found = table.scan(where=where).to_arrow()
        alone = pa.concat_tables(
            table.scan(where=where & (col("k") >= start) & (col("k") < start + 20)).to_arrow() for start in range(0, 300, 20)
        )
        assert found.num_rows and str(found.to_pylist()) == str(alone.to_pylist())
