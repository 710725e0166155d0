"""Scans with `postpone.merge-on-read`: what they return is what the table has once its waiting rows are published."""

from __future__ import annotations

import pickle
import random
import shutil
from datetime import datetime

import pytest

from paimon_py import AddColumn, Catalog, RenameColumn, Schema, UnsupportedError

READ = {"postpone.merge-on-read": "true"}
COLUMNS = {"k": "INT NOT NULL", "p": "INT NOT NULL", "s": "BIGINT", "a": "INT", "b": "STRING"}
KINDS = {
    "plain": {},
    "three buckets": {"postpone.default-bucket-num": "3"},
    "sequence field": {"sequence.field": "s"},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "sequence group": {"merge-engine": "partial-update", "fields.s.sequence-group": "a", "ignore-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "max", "fields.s.aggregate-function": "last_value"},
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "vectors": {"deletion-vectors.enabled": "true"},
    "orc": {"file.format": "orc", "postpone.default-bucket-num": "2", "write-buffer-spillable": "true"},
}


def rows(scan):
    return sorted((tuple(row.values()) for row in scan.to_arrow().to_pylist()), key=repr)


def published(table, path):
    """A copy of the table after a compaction."""
    shutil.copytree(table.location, path)
    done = Catalog.open(path.parent.parent).table(f"{path.parent.stem}.{path.name}")
    done.compact()
    return done


def play(tmp_path, name: str, seed: int, checked: set[int]) -> None:
    rng, catalog = random.Random(f"{name} {seed}"), Catalog.open(tmp_path)
    catalog.create_database("db")
    options = {"bucket": "-2", "num-sorted-run.compaction-trigger": "9", **KINDS[name]}
    table = catalog.create_table("db.t", Schema(COLUMNS), primary_key=["p", "k"], partition_by=["p"], options=options)
    deletes = name in ("plain", "three buckets", "sequence field", "vectors", "orc", "partial-update")
    for turn in range(max(checked) + 1):
        data = [
            {"k": rng.randrange(9), "p": rng.randrange(3 if turn else 1), "s": rng.randrange(9), "a": rng.choice([None, rng.randrange(99)]), "b": rng.choice([None, "x", "y"])}
            for _ in range(rng.randrange(1, 12))
        ]
        if deletes:
            data = [{**row, "_row_kind": rng.choice(["+I", "+I", "-D"])} for row in data]
        table.write_arrow(data)
        if turn == 2:
            table.compact(partitions=[{"p": 0}] if rng.random() < 0.5 else None)
        if turn == 3:
            table.alter(AddColumn("c", "INT"))
            table = catalog.table("db.t")
        if turn not in checked:
            continue
        after = published(table, tmp_path / "db.db" / f"after{turn}")
        scan = table.scan(options=READ)
        assert rows(scan) == rows(after.scan()), turn
        assert scan.count() == after.scan().count()
        for where in ("k < 4", "p = 0", "a > 30", "b = 'x' and k > 2", "a is null", "p = 1 and k = 3"):
            assert rows(table.scan(where=where, options=READ)) == rows(after.scan(where=where)), where
        one = [row[0] for row in rows(table.scan(columns=["b"], options=READ))]
        assert one == [row[0] for row in rows(after.scan(columns=["b"]))]
        first = table.scan(order_by=["k", "p"], limit=3, options=READ).to_arrow()
        assert first.column("k").to_pylist() == after.scan(order_by=["k", "p"], limit=3).to_arrow().column("k").to_pylist()
        assert table.scan(limit=2, options=READ).to_arrow().num_rows == min(2, len(rows(scan)))
        again = pickle.loads(pickle.dumps(scan))
        parts = [row for split in again.splits() for batch in again.read(bytes(split)) for row in batch.to_pylist()]
        assert sorted((tuple(row.values()) for row in parts), key=repr) == rows(scan)
        assert table.scan(options=READ, columns=[]).to_arrow().num_rows == scan.count()
        assert str(scan.explain(analyze=True))


@pytest.mark.parametrize("name", ["plain", "sequence group", "vectors"])
def test_waiting_rows_are_merged_as_a_compaction_does(tmp_path, name):
    play(tmp_path, name, 0, {4})


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", KINDS)
def test_waiting_rows_are_merged_as_a_compaction_does_in_many_lives(tmp_path, name, seed):
    play(tmp_path, name, seed, {0, 2, 3, 5})


def test_the_option_of_the_table_is_followed_by_scans_alone(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema(COLUMNS), primary_key=["p", "k"], options={"bucket": "-2", **READ})
    table.write_arrow([{"k": 1, "p": 1, "s": 1, "a": 1, "b": "x"}])
    first = table.snapshot()
    table.alter(RenameColumn("b", "c"))
    table = catalog.table("db.t")
    table.write_arrow([{"k": 1, "p": 1, "s": 1, "a": 2, "c": "y"}, {"k": 2, "p": 1, "s": 1, "a": 2, "c": "z"}])
    assert rows(table.scan()) == [(1, 1, 1, 2, "y"), (2, 1, 1, 2, "z")]
    assert rows(table.scan(snapshot_id=first.id)) == [(1, 1, 1, 1, "x")]
    assert rows(table.scan(options={"postpone.merge-on-read": "false"})) == []
    assert rows(table.scan(options={"scan.mode": "compacted-full"})) == []
    assert table.changes(0, mode="diff").to_arrow().num_rows == 0
    with pytest.raises(UnsupportedError, match="lookup"):
        table.lookup([{"p": 1, "k": 1}])
    with pytest.raises(UnsupportedError, match="files chosen by their time"):
        table.scan(options={"scan.file-creation-time-millis": str(int(datetime(2020, 1, 1).timestamp() * 1000))}).to_arrow()
    assert catalog.sql("SELECT max(k) AS k FROM db.t").to_pylist() == [{"k": 2}]
    table.compact()
    assert rows(table.scan()) == [(1, 1, 1, 2, "y"), (2, 1, 1, 2, "z")]


def test_rows_wait_in_more_partitions_than_are_read_one_by_one(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    options = {"bucket": "-2", "postpone.default-bucket-num": "1", **READ}
    table = catalog.create_table("db.t", Schema(COLUMNS), primary_key=["p", "k"], partition_by=["p"], options=options)
    table.write_arrow([{"k": 1, "p": p, "s": 1, "a": p, "b": "x"} for p in range(24)])
    table.compact()
    table.write_arrow([{"k": 2, "p": p, "s": 1, "a": p, "b": "y"} for p in range(0, 48, 2)])
    assert table.to_arrow().num_rows == table.count() == 48
    assert table.scan(where="a >= 0").to_arrow().num_rows == 48
