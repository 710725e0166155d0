"""NaNs whose bits differ are one key, one partition and one value to match, as they compare equal."""

from __future__ import annotations

import os
import struct

import pyarrow as pa
import pytest
from unit.distributed.test_spread_merge import spread

from paimon_py import Catalog, Schema
from paimon_py.distributed import CommitLabel, DistributedWrite, MergeClauses, RowRouting

NANS = [struct.unpack(">d", bytes.fromhex(bits))[0] for bits in ("7ff8000000000000", "fff8000000000000", "7ff8000000000123", "fff0000000000001")]
"""Java's NaN, the one that processors make of 0.0 / 0.0, and others."""
KINDS = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}
BUCKETS = {
    "fixed": {"bucket": "13"}, "dynamic": {"dynamic-bucket.target-row-num": "1"},
    "waiting": {"dynamic-bucket.target-row-num": "1", "deletion-vectors.enabled": "true"},
}


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "lake"), {"fs.local.fsync": "false"})
    made.create_database("db")
    return made


def nan_rows(kind, values, texts):
    """Rows of a key of two columns; the casts of Arrow keep the sign of a NaN."""
    return pa.table({"k": pa.array(values, pa.float64()).cast(KINDS[kind]), "j": ["long text"] * len(values), "v": texts})


def create(catalog, kind, **options):
    columns = Schema([("k", f"{kind} NOT NULL"), ("j", "STRING NOT NULL"), ("v", "STRING")])
    return catalog.create_table("db.t", columns, primary_key=["k", "j"], options=options)


def values(table):
    return table.to_arrow()["v"].to_pylist()


@pytest.mark.parametrize("buckets", BUCKETS)
@pytest.mark.parametrize("kind", KINDS)
def test_all_nans_are_one_key(catalog, kind, buckets):
    table = create(catalog, kind, **BUCKETS[buckets])
    for number, nan in enumerate(NANS):
        table.write_arrow(nan_rows(kind, [nan, 1.0], [str(number), "one"]))
        assert sorted(values(table)) == [str(number), "one"]
    assert table.lookup([{"k": NANS[1], "j": "long text"}])["v"].to_pylist() == ["3"]
    (bits,) = {row.tobytes() for row in table.scan(where="v = '3'").to_arrow()["k"].to_numpy()}
    assert bits == struct.pack("<f" if kind == "FLOAT" else "<d", NANS[0]), "others hash the key as it is stored"
    table.merge(nan_rows(kind, NANS[1:2], ["merged"]), ["k", "j"], when_matched_update={"v": "source.v"}, when_not_matched_insert=True)
    assert sorted(values(table)) == ["merged", "one"]
    gone = nan_rows(kind, NANS[2:3], ["x"]).append_column("_row_kind", pa.array(["-D"]))
    table.write_arrow(gone)
    assert values(table) == ["one"]


@pytest.mark.parametrize("buckets", ["fixed", "dynamic"])
def test_processes_write_one_row_for_all_nans(catalog, buckets):
    table = create(catalog, "DOUBLE", **BUCKETS[buckets])
    for turn in range(2):
        data = nan_rows("DOUBLE", NANS, ["v"] * 4)
        writing, routing = DistributedWrite(table), RowRouting(table.schema, data.schema, 7)
        (batch,) = data.to_batches()
        (number,) = set(routing(batch).tolist())
        writing.commit(list(writing.part(data.schema, 7)([(number, batch)])), CommitLabel())
        assert table.refresh().count() == 1, turn


@pytest.mark.parametrize("keys", [[], ["k", "j", "p"]], ids=["append", "primary key"])
def test_all_nans_are_one_partition(catalog, keys):
    columns = Schema([("k", "DOUBLE NOT NULL"), ("j", "STRING NOT NULL"), ("v", "STRING"), ("p", "DOUBLE NOT NULL")])
    table = catalog.create_table("db.t", columns, primary_key=keys, partition_by=["p"], options={} if keys else {"bucket": "3", "bucket-key": "k"})
    for number, nan in enumerate(NANS):
        data = nan_rows("DOUBLE", [1.0], [str(number)]).append_column("p", pa.array([nan]))
        table.write_arrow(data, overwrite="dynamic" if number else None)
        assert values(table) == [str(number)]
    assert [name for name in os.listdir(table.location) if name.startswith("p=")] == ["p=NaN"]
    assert len(table.scan().splits()) == 1


@pytest.mark.parametrize("spills", [{}, {"write-buffer-size": "1 kb", "page-size": "1 kb"}], ids=["memory", "blocks"])
@pytest.mark.parametrize("tasks", [None, 3, 5, 8])
def test_source_rows_match_every_nan(catalog, tasks, spills):
    table = catalog.create_table("db.t", Schema([("d", "DOUBLE"), ("n", "BIGINT")]), options=spills)
    for number in range(8):
        table.write_arrow(pa.table({"d": [NANS[number % 2] if number < 4 else float(number)], "n": [number]}))
    source = pa.table({"d": [*NANS, *map(float, range(100, 200))], "n": pa.array([100] * 104, pa.int64())})
    clauses = MergeClauses(matched_delete=True, insert=("source.d < 3 OR NOT source.d < 1000", True))
    if tasks is None:
        table.merge(source, ["d"], when_matched_delete=True, when_not_matched_insert=clauses.insert)
    else:
        spread(table, source, ["d"], clauses, tasks=tasks)
    assert sorted(table.refresh().to_arrow()["n"].to_pylist()) == [4, 5, 6, 7]
