"""Tables whose rows have their columns in several files: every verb changes the columns that it names, and no others."""

from __future__ import annotations

import os
import random

import msgspec
import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

from paimon_py import (
    AddColumn,
    CommitConflictError,
    PaimonError,
    RenameColumn,
    SchemaError,
    SetOption,
    SnapshotExpiredError,
    UnsupportedError,
    UsageError,
    col,
    sql,
)
from paimon_py.files.file_index import read_indexes
from paimon_py.rows import backfill as backfill_module

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string()), ("p", pa.string())])
EVOLVES = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true", "compaction.min.file-num": "3"}
KINDS = {
    "parquet": {}, "orc": {"file.format": "orc"}, "avro": {"file.format": "avro"},
    "small": {"target-file-size": "10 b", "source.split.open-file-cost": "1 b"}, "indexed": {"file-index.bitmap.columns": "s,v"},
    "without statistics": {"metadata.stats-mode": "none"}, "64 bits": {"deletion-vectors.bitmap64": "true"},
    "small buffers": {"write-buffer-size": "1 b"},
}  # fmt: skip


def made(tmp_path, partition_by=("p",), **options):
    catalog = new_catalog(str(tmp_path))
    return catalog.create_table("d.t", COLUMNS, partition_by=list(partition_by), options={**EVOLVES, **options})


def rows(count, start=0):
    numbers = range(start, start + count)
    return pa.table({"k": numbers, "v": numbers, "s": [str(n) for n in numbers], "p": ["ab"[n % 2] for n in numbers]}, schema=COLUMNS)


def by_id(table):
    found = reopened(table).scan(columns=["_ROW_ID", *reopened(table).schema.names]).to_arrow().to_pylist()
    assert len({row["_ROW_ID"] for row in found}) == len(found)
    return {row.pop("_ROW_ID"): row for row in found}


def written(table):
    """Columns of the files, by first id, in the order of writing."""
    files = table.system("files").scan(columns=["first_row_id", "write_cols", "max_sequence_number"]).to_arrow().to_pylist()
    return [(file["first_row_id"], file["write_cols"]) for file in sorted(files, key=lambda file: (file["first_row_id"], file["max_sequence_number"]))]


def names_on_disk(tmp_path):
    return sorted(path.name for path in tmp_path.rglob("*") if path.is_file() and "snapshot" not in path.parts)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_what_a_dict_says_whatever_is_done(tmp_path, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    table = made(tmp_path, rng.choice(((), ("p",))), **KINDS[kind])
    known: dict[int, dict] = {}
    given = 0

    def learn(count):
        nonlocal given
        new = {n: row for n, row in by_id(table).items() if n >= given}
        assert sorted(new) == list(range(given, given + count))
        given += count
        known.update(new)

    def change(ids, values):
        known.update({n: {**known[n], **values} for n in ids})

    for step in range(18):
        verb = rng.choice(("write", "write", "update", "set", "set", "delete", "merge", "upsert", "compact", "alter", "drop"))
        some = rng.sample(sorted(known), min(3, len(known)))
        if verb == "write":
            count = rng.randrange(1, 8)
            data = rows(count, 100 * step)
            table.write_arrow(data)
            learn(count)
        elif verb == "update" and some:
            table.update(col("_ROW_ID").isin(some), {"v": step, "s": sql("s || 'x'")})
            known.update({n: {**known[n], "v": step, "s": None if known[n]["s"] is None else known[n]["s"] + "x"} for n in some})
        elif verb == "set" and some:
            table.update_rows(pa.table({"_ROW_ID": some, "v": pa.array([None, -step, step][: len(some)], pa.int64())}))
            for n, value in zip(some, [None, -step, step]):
                change([n], {"v": value})
        elif verb == "delete" and some:
            assert table.delete(col("_ROW_ID").isin(some)).deleted == len(some)
            for n in some:
                del known[n]
        elif verb == "merge" and some:
            keys = [known[n]["k"] for n in some]
            data = pa.table({"k": [*keys, 10_000 + step], "v": [-1] * len(keys) + [0], "p": ["b"] * (len(keys) + 1)})
            result = table.merge(
                data, on=["k"], when_matched_delete=f"target.k = {keys[0]}", when_matched_update={"v": "source.v"}, when_not_matched_insert=True,
            )  # fmt: skip
            gone = [n for n, row in known.items() if row["k"] == keys[0]]
            assert result.deleted == len(gone)
            for n in gone:
                del known[n]
            change([n for n, row in known.items() if row["k"] in keys], {"v": -1})
            learn(1)
        elif verb == "upsert" and some:
            keys = [known[n]["k"] for n in some]
            table.upsert(pa.table({"k": [*keys, 20_000 + step], "s": ["u"] * (len(keys) + 1)}), on=["k"])
            change([n for n, row in known.items() if row["k"] in keys], {"s": "u"})
            learn(1)
        elif verb == "compact":
            table.compact(full=rng.random() < 0.5)
        elif verb == "alter":
            name = f"x{step}"
            table.alter(AddColumn(name, "INT"))
            table = reopened(table)
            known = {n: {**row, name: None} for n, row in known.items()}
            if some:
                table.update_rows(pa.table({"_ROW_ID": some, name: pa.array(range(len(some)), pa.int32())}))
                for at, n in enumerate(some):
                    change([n], {name: at})
        elif verb == "drop" and table._schema.partition_keys and any(row["p"] == "a" for row in known.values()):
            table.drop_partitions([{"p": "a"}])
            known = {n: row for n, row in known.items() if row["p"] != "a"}
        if table.snapshot() is not None:
            assert by_id(table) == known, (step, verb)
            assert table.scan(where="v > 3").count() == sum(row["v"] is not None and row["v"] > 3 for row in known.values())
            assert table.scan(where="s = 'u'").count() == sum(row["s"] == "u" for row in known.values())
    assert {one.severity for one in table.doctor(deep=True)} <= {"note", "warning"}


def test_only_the_columns_that_are_set_are_written(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(10))
    table.write_arrow(rows(5, 10))
    assert table.update_rows(pa.table({"_ROW_ID": [12, 3], "v": [0, 0]})).files_added == 2
    assert table.update("k = 4", {"s": "four"}).files_added == 1
    table.merge([{"k": 5, "v": 1, "s": "m"}], on=["k"], when_matched_update=[("source.v > 5", {"v": 0}), {"s": "source.s"}])
    table.upsert([{"k": 6, "s": "u"}], on=["k"])
    assert written(table) == [(0, None), (0, ["v"]), (0, ["s"]), (0, ["v", "s"]), (0, ["s"]), (10, None), (10, ["v"])]
    table.compact(full=True)
    assert written(table) == [(0, None)]


def test_a_compaction_keeps_dead_rows_dead_and_ids_what_they_are(tmp_path):
    table = made(tmp_path)
    for start in (0, 10, 20):
        table.write_arrow(rows(10, start))
    table.delete("k IN (3, 11, 12, 28)")
    table.update("k > 15", {"v": -1})
    before = by_id(table)
    table.compact(full=True)
    assert by_id(table) == before and len(before) == 26
    table.delete("k = 20")
    table.compact(full=True)
    assert by_id(table) == {n: row for n, row in before.items() if row["k"] != 20}


def test_columns_are_renamed_dropped_and_added_again_between_files(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(4))
    table.update_rows(pa.table({"_ROW_ID": [1], "v": [10]}))
    table.alter(RenameColumn("v", "w"))
    table = reopened(table)
    table.update_rows(pa.table({"_ROW_ID": [2], "w": [20]}))
    table.alter(RenameColumn("w", "z"), AddColumn("v", "STRING"))
    table = reopened(table)
    table.update_rows(pa.table({"_ROW_ID": [0], "v": ["new"]}))
    found = [(row["z"], row["v"]) for row in by_id(table).values()]
    assert found == [(0, "new"), (10, None), (20, None), (3, None)]
    table.compact(full=True)
    assert [(row["z"], row["v"]) for row in by_id(table).values()] == found


BAD = {
    "no ids": (pa.table({"v": [1]}), UsageError, "_ROW_ID"),
    "no columns": (pa.table({"_ROW_ID": [1]}), UsageError, "at least one column to set"),
    "an id that no row has": (pa.table({"_ROW_ID": [1, 77], "v": [1, 1]}), UsageError, r"no row has the ids 77 \(1 in all\)"),
    "a row that is dead": (pa.table({"_ROW_ID": [2], "v": [1]}), UsageError, "no row has the ids 2"),
    "an id twice": (pa.table({"_ROW_ID": [1, 1], "v": [1, 2]}), UsageError, "given twice"),
    "NULL": (pa.table({"_ROW_ID": pa.array([None], pa.int64()), "v": [1]}), UsageError, "without NULL"),
    "a text": (pa.table({"_ROW_ID": ["1"], "v": [1]}), UsageError, "whole numbers"),
    "a negative id": (pa.table({"_ROW_ID": [-1], "v": [1]}), UsageError, "whole number from 0"),
    "an unknown column": (pa.table({"_ROW_ID": [1], "vv": [1]}), SchemaError, "'vv', which the table does not have"),
    "a wrong type": (pa.table({"_ROW_ID": [1], "v": ["x"]}), SchemaError, "v"),
    "a partition column": (pa.table({"_ROW_ID": [1], "p": ["b"]}), UsageError, "no row moves to another partition"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_leave_nothing_behind(tmp_path, name):
    data, error, message = BAD[name]
    table = made(tmp_path)
    table.write_arrow(rows(4))
    table.delete("k = 1")  # of partition b, whose rows have the ids 2 and 3
    before, files = by_id(table), names_on_disk(tmp_path)
    with pytest.raises(error, match=message):
        table.update_rows(data)
    assert by_id(table) == before and names_on_disk(tmp_path) == files


def test_nothing_to_set_is_nothing_done(tmp_path):
    table = made(tmp_path)
    table.write_arrow(rows(4))
    assert table.update_rows(pa.table({"_ROW_ID": pa.array([], pa.int64()), "v": pa.array([], pa.int64())})).snapshot_id is None
    assert table.update("k > 99", {"v": 1}).snapshot_id is None
    assert made(tmp_path / "empty").update("true", {"v": 1}).snapshot_id is None


def test_unsupported_options_are_refused_by_name(tmp_path):
    table = made(tmp_path / "one", **{"deletion-vectors.enabled": "false"})
    table.write_arrow(rows(4))
    with pytest.raises(UnsupportedError, match="deleted only by deletion vectors"):
        table.delete("k = 1")
    with pytest.raises(UnsupportedError, match="deleted only by deletion vectors"):
        table.merge([{"k": 1}], on=["k"], when_matched_delete=True)
    assert table.update("k = 1", {"v": 5}).updated == 1
    for values in ({"p": "b"}, {"p": "b", "v": 1}):
        with pytest.raises(UsageError, match="no row moves to another partition"):
            table.update("k = 1", values)
    with pytest.raises(UnsupportedError, match="stay in the order of their ids"):
        table.compact(order_by=["v"])
    plain = new_catalog(str(tmp_path / "two")).create_table("d.t", COLUMNS, options={"row-tracking.enabled": "true"})
    for verb in (lambda: plain.update_rows(pa.table({"_ROW_ID": [1], "v": [1]})), lambda: plain.backfill({"v": 1})):
        with pytest.raises(UsageError, match="data-evolution.enabled"):
            verb()


def test_a_repeated_number_does_nothing(tmp_path):
    table = made(tmp_path)
    table.write_arrow(rows(4))
    data = pa.table({"_ROW_ID": [1], "v": [5]})
    assert not table.update_rows(data, user="u", identifier=1).already_committed
    assert table.update_rows(data, user="u", identifier=1).already_committed


# -- others at the same time ------------------------------------------------------------------------------------------

RIVALS = {
    "append": lambda t: t.write_arrow(rows(2, 50)),
    "another column": lambda t: t.update_rows(pa.table({"_ROW_ID": [1], "s": ["theirs"]})),
    "the same cells": lambda t: t.update_rows(pa.table({"_ROW_ID": [1], "v": [7]})),
    "delete": lambda t: t.delete("k = 8"),
    "delete of such a row": lambda t: t.delete("k = 6"),
    "compact": lambda t: t.compact(full=True),
    "overwrite": lambda t: t.write_arrow(rows(12), overwrite={}),
}


@pytest.mark.parametrize("rival", RIVALS)
def test_an_update_that_was_overtaken_ends_as_if_it_came_later(tmp_path, rival):
    table = made(tmp_path, ())
    table.write_arrow(rows(6))
    table.write_arrow(rows(4, 6))
    called = []

    def values(old):
        if not called:
            called.append(RIVALS[rival](reopened(table)))
        return pa.array([row["v"] + 100 for row in old.to_pylist()], pa.int64())

    result = table.update("k IN (1, 6)", {"v": values})
    assert (result.rounds > 1) == (rival != "append")  # whose rows cannot match
    after = {row["k"]: row for row in by_id(table).values()}
    assert after[1]["v"] == (107 if rival == "the same cells" else 101)
    assert after[1]["s"] == ("theirs" if rival == "another column" else "1")
    assert (6 in after) == (rival != "delete of such a row") and after.get(6, {"v": 106})["v"] == 106
    assert (8 in after) == (rival != "delete")
    assert len(after) == {"append": 12, "overwrite": 12, "delete": 9, "delete of such a row": 9}.get(rival, 10)


@pytest.mark.parametrize("rival", ["another column", "the same cells", "delete", "compact"])
def test_a_compaction_that_was_overtaken_is_dropped(tmp_path, rival):
    table = made(tmp_path, ())
    table.write_arrow(rows(6))
    table.write_arrow(rows(4, 6))
    table.delete("k = 9")
    (task,) = table.compaction_tasks(full=True)
    changes = table.run_compaction(bytes(task))
    RIVALS[rival](reopened(table))
    before = by_id(table)
    with pytest.raises(CommitConflictError, match="others|other"):
        table.commit(bytes(changes))
    assert by_id(table) == before
    reopened(table).compact(full=True)
    assert by_id(table) == before


def test_a_compaction_beside_new_rows_fits(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(6))
    table.update("k = 1", {"v": 0})
    (task,) = table.compaction_tasks(full=True)
    changes = table.run_compaction(bytes(task))
    reopened(table).write_arrow(rows(4, 6))
    before = by_id(table)
    table.commit(bytes(changes))
    assert by_id(table) == before and len(written(table)) == 2


def test_files_with_some_columns_come_from_verbs_alone(tmp_path):
    """A blind commit of a wrong range would make the table unreadable, as it does in Java."""
    table = made(tmp_path, ())
    table.write_arrow(rows(6))
    with table.writer() as writer:
        writer.write_arrow(rows(3, 6))
    changes = writer.changes()
    (bucket,) = changes.buckets
    (file,) = bucket.written.added
    for lie in ({"first_row_id": 0}, {"first_row_id": 2, "write_columns": ("v",)}, {"write_columns": ("v",)}):
        added = (msgspec.structs.replace(file, **lie),)
        edit = msgspec.structs.replace(bucket.written, added=added)
        blind = msgspec.structs.replace(changes, buckets=(msgspec.structs.replace(bucket, written=edit),))
        with pytest.raises(PaimonError, match="contains a part of its rows' columns"):
            table.commit(bytes(blind))
    assert len(by_id(table)) == 6


# -- backfill ---------------------------------------------------------------------------------------------------------


def test_a_backfill_fills_what_is_null_range_by_range(tmp_path, monkeypatch):
    monkeypatch.setattr(backfill_module, "COMMIT_BYTES", 1)
    table = made(tmp_path)
    for start in (0, 10, 20):
        table.write_arrow(rows(10, start))
    table.alter(AddColumn("double", "BIGINT"))
    table = reopened(table)
    table.update("k = 4", {"double": -4})
    told = []
    result = table.backfill({"double": col("v") * 2}, where="k < 25", progress=lambda done, total, what: told.append((done, total)))
    assert result.updated == 24 and len(result.snapshot_ids) == 6
    assert [row["double"] for row in by_id(table).values() if row["k"] < 25 and row["k"] != 4] == [2 * row["k"] for row in by_id(table).values() if row["k"] < 25 and row["k"] != 4]
    assert {row["k"]: row["double"] for row in by_id(table).values()}[4] == -4
    assert told[-1][0] == told[-1][1] and [done for done, _ in told] == sorted(done for done, _ in told)
    assert table.backfill({"double": col("v") * 2}, where="k < 25").snapshot_id is None
    assert table.backfill({"double": col("v") * 2}).updated == 5
    assert all(names in (None, ["double"]) for _, names in written(table))


def test_a_backfill_that_ended_early_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(backfill_module, "COMMIT_BYTES", 1)
    table = made(tmp_path, ())
    for start in (0, 10, 20):
        table.write_arrow(rows(10, start))
    table.alter(AddColumn("y", "BIGINT"))
    table = reopened(table)
    calls = []

    def failing(old):
        calls.append(len(old))
        if len(calls) > 3:
            raise RuntimeError("the model server is gone")
        return old["v"]

    with pytest.raises(RuntimeError):
        table.backfill({"y": failing})
    left = sum(row["y"] is None for row in by_id(table).values())
    assert 0 < left < 30
    assert table.backfill({"y": col("v")}).updated == left
    assert all(row["y"] == row["v"] for row in by_id(table).values())


def test_a_backfill_with_a_number_is_carried_out_once_and_goes_on_before(tmp_path, monkeypatch):
    monkeypatch.setattr(backfill_module, "COMMIT_BYTES", 1)
    table = made(tmp_path, ())
    for start in (0, 10, 20):
        table.write_arrow(rows(10, start))
    table.alter(AddColumn("y", "BIGINT"))
    table = reopened(table)
    before = table.snapshot().id

    def failing(old):
        if table.refresh().snapshot().id > before:
            raise RuntimeError("the model server is gone")
        return old["v"]

    with pytest.raises(RuntimeError):
        table.backfill({"y": failing}, user="job", identifier=3)
    result = table.backfill({"y": col("v")}, user="job", identifier=3)
    assert result.updated == 20 and all(row["y"] == row["v"] for row in by_id(table).values())
    labels = [(one.commit_user, one.commit_identifier) for one in table.snapshots() if one.id > before]
    assert labels[-1] == ("job", 3) and all(user != "job" for user, _ in labels[:-1]) and len(labels) == 3
    table.write_arrow(pa.table({"k": [99], "v": [99], "p": ["a"]}))
    assert table.backfill({"y": col("v")}, user="job", identifier=3).already_committed
    assert by_id(table)[30]["y"] is None
    assert table.backfill({"y": col("v")}, user="other").updated == 1 and table.snapshot().commit_user == "other"


def test_a_backfill_of_nothing_writes_nothing(tmp_path):
    table = made(tmp_path)
    assert table.backfill({"s": "x"}).snapshot_id is None
    table.write_arrow(pa.table({"k": [1, 2], "v": pa.array([None, None], pa.int64()), "p": ["a", "a"]}))
    assert table.backfill({"v": col("v") + 1}).snapshot_id is None
    for bad, error in (({}, UsageError), ({"nope": 1}, UsageError), ({"v": "x"}, SchemaError), ({"p": "x"}, UsageError)):
        with pytest.raises(error):
            table.backfill(bad)


# -- care -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["0 b", "1 mb"], ids=["in files", "in entries"])
def test_indexes_are_made_of_the_columns_that_a_file_has(tmp_path, limit):
    table = made(tmp_path, ())
    table.write_arrow(rows(8))
    table.update("k = 1", {"v": 50})
    table.update("k = 2", {"s": "new"})
    table.alter(SetOption("file-index.bitmap.columns", "s,v"), SetOption("file-index.in-manifest-threshold", limit))
    table = reopened(table)
    table.rewrite_file_index()
    root, snapshot = table._root, table._root.latest()
    found = {
        entry.file.write_columns: set(read_indexes(root.files, place.path(entry.file), entry.file))
        for entry in root.manifests.live_entries(snapshot).entries()
        for place in [table._open_table.bucket(entry.partition, entry.bucket)]
    }
    assert sorted(map(sorted, found.values())) == [["s"], ["s", "v"], ["v"]]
    assert all(indexed <= set(columns or table.schema.names) for columns, indexed in found.items())
    before = by_id(table)
    for where, count in (("s = '2'", 0), ("s = 'new'", 1), ("s = '3'", 1), ("v = 50", 1), ("v = 1", 0), ("v = 5 AND s = '5'", 1), ("s IS NULL", 0)):
        assert table.scan(where=where).count() == table.scan(where=where).to_arrow().num_rows == count, where
    plan = table.scan(where="v = 50 AND s = '33'").explain()
    assert (plan.file_count, plan.index_rows) == ((3, 8) if limit == "0 b" else (0, 0))
    table.update("k = 3", {"v": 51})
    assert table.scan(where="v = 51").count() == 1
    assert by_id(table) == {**before, 3: {**before[3], "v": 51}}


def test_some_columns_of_rows_are_not_taken_out_of_the_table(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(4))
    table.write_arrow(rows(4, 4))
    table.update("k = 1", {"v": 50})
    paths = {(row["first_row_id"], row["write_cols"] is None): row["file_path"] for row in table.system("files").scan().to_arrow().to_pylist()}
    os.remove(paths[0, True])
    assert len(table.remove_unexisting_files(dry_run=True).paths) == 1
    with pytest.raises(UnsupportedError, match="holds other columns of rows whose files are missing"):
        table.remove_unexisting_files(dry_run=False)
    os.remove(paths[0, False])
    done = table.remove_unexisting_files(dry_run=False)
    assert done.snapshot_id is not None and (len(done.paths), done.rows) == (2, 4)
    assert [row["k"] for row in by_id(table).values()] == [4, 5, 6, 7]


def test_changes_of_a_verb_are_told_row_by_row(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(4))
    result = table.update_rows(pa.table({"_ROW_ID": [2], "s": ["x"]}))
    found = table.changes(result, columns=["k", "s"]).to_arrow().to_pylist()
    assert [(row["_row_kind"], row["k"], row["s"]) for row in found] == [("-D", 2, "2"), ("+I", 2, "x")]


def test_many_ids_at_once(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(5000))
    table.write_arrow(rows(5000, 5000))
    ids = list(range(1, 9999, 3))
    table.update_rows(pa.table({"_ROW_ID": ids[::-1], "v": [-n for n in ids[::-1]]}))
    assert [row["v"] for n, row in by_id(table).items()] == [-n if n in set(ids) else n for n in range(10_000)]


def test_a_branch_has_columns_of_its_own(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(4))
    table.create_branch("b")
    table.branch("b").update("k = 1", {"s": "there"})
    assert by_id(table)[1]["s"] == "1"
    table.fast_forward("b")
    assert by_id(table)[1]["s"] == "there"


def test_values_made_from_an_older_state_are_refused_where_others_set_the_same_columns(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(6))
    table.write_arrow(rows(4, 6))
    read = table.snapshot().id
    data = pa.table({"_ROW_ID": [1, 2], "v": [100, 200]})
    table.update("k = 3", {"s": "another column"})
    table.update("k = 8", {"v": 5})  # of other rows
    table.write_arrow(rows(2, 10))
    table.compact(full=True)
    table.update_rows(data, snapshot_id=read)
    before = by_id(table)
    with pytest.raises(CommitConflictError, match=f"set column v of rows .* computed from snapshot {read}"):
        table.update_rows(data, snapshot_id=read)
    assert by_id(table) == before
    table.update_rows(data)
    for wrong, error in ((99, PaimonError), ("1", UsageError), (True, UsageError)):
        with pytest.raises(error, match="99|whole number"):
            table.update_rows(data, snapshot_id=wrong)
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(PaimonError, match=str(read)):
        table.update_rows(data, snapshot_id=read)


def test_spark_changes_no_rows_of_such_tables(tmp_path):
    from paimon_py.rows.rules import check_one_process

    with pytest.raises(UnsupportedError, match="merge_spark does not change rows of tables with data-evolution.enabled yet"):
        check_one_process(made(tmp_path).schema, "merge_spark")


def test_values_of_any_row_of_a_file_are_refused_where_others_set_the_column_in_that_file(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(3))
    table.write_arrow(rows(3, 3))
    read = table.snapshot().id
    table.update("k = 4", {"v": 5})
    for row in (3, 4, 5):
        with pytest.raises(CommitConflictError, match=f"set column v of rows .* computed from snapshot {read}"):
            table.update_rows(pa.table({"_ROW_ID": [row], "v": [9]}), snapshot_id=read)
    table.update_rows(pa.table({"_ROW_ID": [2], "v": [9]}), snapshot_id=read)


def test_streams_know_commits_that_set_columns_also_when_the_snapshot_before_is_gone(tmp_path):
    table = made(tmp_path, (), **{"snapshot.num-retained.min": "1"})
    table.write_arrow(rows(4))
    table.update("k = 1", {"v": 5})
    table.write_arrow(rows(2, 4))
    table.write_arrow(rows(2, 6))
    assert table.changes(2, 4, mode="delta").to_arrow().num_rows == 4
    table.create_tag("kept", snapshot_id=2)
    for retained, first, fails in ((3, 2, True), (2, 3, False)):
        table.expire_snapshots(retain_max=retained, retain_min=1)
        stream = reopened(table).stream(from_=first)
        if fails:
            with pytest.raises(SnapshotExpiredError, match="snapshot 1 "):
                stream.poll()
        else:
            assert stream.poll().to_arrow().num_rows == 2


def test_an_upsert_of_nothing_but_keys_inserts_the_others_and_writes_no_columns(tmp_path):
    """It ended with a raw ValueError, since a file of no columns was to be written."""
    table = made(tmp_path)
    table.write_arrow(rows(4))
    before, files = by_id(table), names_on_disk(tmp_path)
    done = reopened(table).upsert([{"k": 1}, {"k": 2}], on=["k"])
    assert (done.updated, done.inserted, done.snapshot_id) == (2, 0, None)
    assert by_id(table) == before and names_on_disk(tmp_path) == files
    done = reopened(table).upsert([{"k": 1}, {"k": 9}], on=["k"])
    assert (done.updated, done.inserted) == (1, 1)
    assert by_id(table) == {**before, 4: {"k": 9, "v": None, "s": None, "p": None}}
    assert reopened(table).merge([{"k": 3}], on=["k"], when_matched_update=True).updated == 1


def test_a_backfill_of_several_columns_changes_each_row_that_gets_any_value(tmp_path):
    table = made(tmp_path, ())
    table.write_arrow(rows(12))
    table.alter(AddColumn("a", "BIGINT"), AddColumn("b", "BIGINT"))
    table = reopened(table)
    result = table.backfill({"a": sql("CASE WHEN v % 2 = 0 THEN v END"), "b": sql("CASE WHEN v % 3 = 0 THEN v END")})
    wanted = {n: (n if n % 2 == 0 else None, n if n % 3 == 0 else None) for n in range(12)}
    assert {row["k"]: (row["a"], row["b"]) for row in by_id(table).values()} == wanted
    assert result.updated == sum(any(value is not None for value in pair) for pair in wanted.values())
