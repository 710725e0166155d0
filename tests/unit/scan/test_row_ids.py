"""Tables that track rows: ids and snapshots of rows through every verb, and rows by their ids."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

from paimon_py import AddColumn, Catalog, OptionError, PaimonError, RenameColumn, UsageError, col

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
TRACKED = {"row-tracking.enabled": "true"}
KINDS = {
    "rewritten": {}, "orc": {"file.format": "orc"}, "vectors": {"deletion-vectors.enabled": "true"},
    "many files": {"target-file-size": "1 b", "compaction.min.file-num": "3"}, "write-only": {"write-only": "true"},
    "clustered": {"clustering.columns": "v", "clustering.incremental": "true"},
}  # fmt: skip


def made(tmp_path, partition_by=("p",), **options):
    return new_catalog(str(tmp_path)).create_table("d.t", COLUMNS, partition_by=list(partition_by), options={**TRACKED, **options})


def rows(count, start=0):
    return pa.table({"k": range(start, start + count), "v": [0] * count, "p": ["ab"[i % 2] for i in range(count)]}, schema=COLUMNS)


def by_id(table):
    found = reopened(table).scan(columns=["_ROW_ID", "_SEQUENCE_NUMBER", "k", "v", "p"]).to_arrow().to_pylist()
    assert len({row["_ROW_ID"] for row in found}) == len(found)
    return {row["_ROW_ID"]: (row["_SEQUENCE_NUMBER"], row["k"], row["v"], row["p"]) for row in found}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_ids_stay_whatever_becomes_of_the_files(tmp_path, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    table = made(tmp_path, () if kind == "clustered" else ("p",), **KINDS[kind])
    known: dict[int, tuple] = {}
    given = 0

    def learn(count):
        """New rows have the next ids, and the number of their snapshot."""
        nonlocal given
        now = by_id(table)
        new = {number: row for number, row in now.items() if number >= given}
        assert sorted(new) == list(range(given, given + count))
        given += count
        assert table._root.latest().next_row_id == given
        known.update(new)

    for step in range(14):
        verb = rng.choice(("write", "write", "update", "delete", "merge", "compact", "move", "drop"))
        if verb == "write":
            count = rng.randrange(1, 8)
            table.write_arrow(rows(count, start=100 * step))
            assert all(row[0] == table.snapshot().id for number, row in by_id(table).items() if number >= given)
            learn(count)
        elif verb in ("update", "move") and known:
            some = rng.sample(sorted(known), min(3, len(known)))
            change = {"v": step} if verb == "update" else {"p": "c"}
            table.update(col("_ROW_ID").isin(some), change)
            now = table.snapshot().id
            known |= {n: (now, known[n][1], change.get("v", known[n][2]), change.get("p", known[n][3])) for n in some}
        elif verb == "delete" and known:
            some = rng.sample(sorted(known), min(2, len(known)))
            table.delete(col("_ROW_ID").isin(some))
            known = {number: row for number, row in known.items() if number not in some}
        elif verb == "merge":
            keys = [row[1] for row in known.values()][:2]
            data = pa.table({"k": [*keys, 10_000 + step], "v": [-step] * (len(keys) + 1), "p": ["a"] * (len(keys) + 1)}, schema=COLUMNS)
            table.merge(data, on=["k"], when_matched_update={"v": "source.v"}, when_not_matched_insert=True)
            now = table.snapshot().id
            known |= {number: (now, row[1], -step, row[3]) for number, row in known.items() if row[1] in keys}
            learn(1)
        elif verb == "compact":
            table.compact(full=rng.random() < 0.5)
        elif verb == "drop" and kind != "clustered" and any(row[3] == "a" for row in known.values()):
            table.drop_partitions([{"p": "a"}])
            known = {number: row for number, row in known.items() if row[3] != "a"}
        if table.snapshot() is not None:
            assert by_id(table) == known, (step, verb)
    assert {one.severity for one in table.doctor(deep=True)} <= {"note", "warning"}


def test_rows_come_in_the_order_of_the_ids_that_are_asked_for(tmp_path):
    table = made(tmp_path)
    for start in range(0, 40, 10):
        table.write_arrow(rows(10, start))
    everything = by_id(table)
    wanted = [33, 2, 17, 2, 999, 5]
    found = table.scan(row_ids=wanted, columns=["k"]).to_arrow()
    assert found.column_names == ["k"] and found["k"].to_pylist() == [everything[n][1] for n in wanted if n in everything]
    assert table.scan(row_ids=range(12, 9, -1), columns=["_ROW_ID", "v"]).to_arrow()["_ROW_ID"].to_pylist() == [12, 11, 10]
    assert table.scan(row_ids=wanted, limit=2).to_arrow()["k"].to_pylist() == [everything[33][1], everything[2][1]]
    assert table.scan(row_ids=wanted, where="p = 'a'").to_arrow()["p"].to_pylist() == [everything[n][3] for n in wanted if n in everything and everything[n][3] == "a"]
    assert table.scan(row_ids=[]).to_arrow().num_rows == 0 == table.scan(row_ids=range(0)).count()
    assert table.scan(row_ids=pa.array([3, 1])).to_arrow().num_rows == 2
    assert table.scan(row_ids=range(2, -1, -1)).to_arrow().num_rows == 3 and table.scan(row_ids=range(0, -1, -1)).count() == 1
    assert table.scan(row_ids=[1], snapshot_id=1).count() == 1 and table.scan(row_ids=[11], snapshot_id=1).count() == 0


def test_files_without_an_id_are_not_read(tmp_path):
    table = made(tmp_path, ())
    for start in range(0, 40, 10):
        table.write_arrow(rows(10, start))
    plan = table.scan(row_ids=[25, 27]).splits()
    assert sum(len(split.files) for split in plan) == 1
    assert sum(len(split.files) for split in table.scan(where="_ROW_ID >= 20 and v = 0").splits()) == 2


@pytest.mark.parametrize("ids", ["12", 5, [1.5], [True], [-1], [2**63], [None], {"a": 1}, range(-1, 3), range(2, -2, -1), [0, -1], range(-5, -1)])
def test_only_whole_numbers_are_ids(tmp_path, ids):
    with pytest.raises(UsageError, match="row_ids takes a list of whole numbers"):
        made(tmp_path).scan(row_ids=ids)


def test_tables_without_ids_say_how_tables_get_them(tmp_path):
    table = new_catalog(str(tmp_path)).create_table("d.t", COLUMNS)
    for ask in ({"row_ids": [1]}, {"columns": ["_ROW_ID"]}, {"where": "_SEQUENCE_NUMBER = 1"}):
        with pytest.raises(UsageError, match="row-tracking.enabled"):
            table.scan(**ask)
    with pytest.raises(PaimonError, match="order_by"):
        made(tmp_path / "other").scan(row_ids=[1], order_by="k", limit=1)


def test_columns_may_come_go_and_be_renamed(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(4))
    table.alter(AddColumn("w", "INT"), RenameColumn("v", "u"))
    table.write_arrow(pa.table({"k": [9], "u": [9], "p": ["a"], "w": [9]}))
    table.update("k = 1", {"w": 5})
    table.compact(full=True)
    found = {row["_ROW_ID"]: (row["_SEQUENCE_NUMBER"], row["k"], row["u"], row["w"]) for row in table.system("row_tracking").scan().to_arrow().to_pylist()}
    assert found == {0: (1, 0, 0, None), 1: (3, 1, 0, 5), 2: (1, 2, 0, None), 3: (1, 3, 0, None), 4: (2, 9, 9, 9)}


def test_ids_go_on_after_an_overwrite_and_begin_again_after_a_rollback(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(4))
    table.write_arrow(rows(2), overwrite={})
    assert sorted(by_id(table)) == [4, 5]
    table.truncate()
    table.write_arrow(rows(1))
    assert sorted(by_id(table)) == [6]
    table.rollback_to(1)
    table.write_arrow(rows(2))
    assert sorted(by_id(table)) == [0, 1, 2, 3, 4, 5]


def test_two_writers_at_the_same_time_get_different_ids(tmp_path):
    table = made(tmp_path, ())
    one, two = table.writer(), table.writer()
    one.write_arrow(rows(3))
    two.write_arrow(rows(2, start=50))
    first, second = one.changes(), two.changes()
    table.commit(second)
    table.commit(first)
    assert {number: row[:2] for number, row in by_id(table).items()} == {0: (1, 50), 1: (1, 51), 2: (2, 0), 3: (2, 1), 4: (2, 2)}


@pytest.mark.parametrize("options", [{"bucket": "2", "bucket-key": "k"}])
def test_only_tables_without_buckets_and_keys_track_rows(tmp_path, options):
    catalog = Catalog.open(str(tmp_path / "w"))
    catalog.create_database("d")
    with pytest.raises(OptionError, match="row-tracking"):
        catalog.create_table("d.t", COLUMNS, options={**TRACKED, **options})


def test_the_first_rows_in_the_order_of_ids_and_numbers(tmp_path):
    table = made(tmp_path, ())
    for start in range(0, 40, 10):
        table.write_arrow(rows(10, start))
    table.update("k = 3", {"v": 9})  # its file holds ids from now on
    for name in ("_ROW_ID", "_SEQUENCE_NUMBER"):
        values = table.scan(columns=[name]).to_arrow()[name].to_pylist()
        for down in (False, True):
            found = table.scan(columns=[name, "k"], order_by=[(name, "descending" if down else "ascending")], limit=12).to_arrow()
            assert found[name].to_pylist() == sorted(values, reverse=down)[:12]


@pytest.mark.parametrize("options", [{}, {"data-evolution.enabled": "true"}])
def test_a_snapshot_that_lacks_the_next_id_gives_no_id_twice(tmp_path, options):
    table = made(tmp_path, **options)
    table.write_arrow(rows(4))
    table.write_arrow(rows(3, start=4), overwrite={})
    given = table._root.latest().next_row_id
    latest = tmp_path / "d.db" / "t" / "snapshot" / f"snapshot-{table.snapshot().id}"
    value = json.loads(latest.read_text())
    del value["nextRowId"]
    latest.write_text(json.dumps(value))
    table = reopened(table)
    known = by_id(table)
    table.write_arrow(rows(2, start=10))
    now = by_id(table)
    assert {number: row for number, row in now.items() if number in known} == known
    assert sorted(now.keys() - known.keys()) == [given, given + 1] and table._root.latest().next_row_id == given + 2
