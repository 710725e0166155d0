"""deltalake: one function for each line of the comparison."""

from __future__ import annotations

import datetime
import os
from importlib.metadata import entry_points
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake import DeltaTable, Transaction, write_deltalake
from deltalake.transaction import CommitProperties
from features import absent, main

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"], "n": pa.array([10, 20, 30], pa.int32())})


def table(rows=ROWS, **settings) -> DeltaTable:
    write_deltalake("t", rows, **settings)
    return DeltaTable("t")


def kept(made=None):
    return sorted((made or DeltaTable("t")).to_pyarrow_table().to_pylist(), key=lambda row: row["k"])


def files():
    return set(DeltaTable("t").file_uris())


def rows(**columns):
    return pa.table(columns)


def upserted(made, source):
    merging = made.merge(source, "t.k = s.k", source_alias="s", target_alias="t")
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def append():
    found = table().to_pyarrow_table(columns=["k"], filters=[("n", ">", 15)])
    assert sorted(found["k"].to_pylist()) == [2, 3]


def batches():
    assert sum(batch.num_rows for batch in table().to_pyarrow_dataset().to_batches()) == 3


def upsert():
    made = table()
    before = files()
    upserted(made, ROWS.slice(2).set_column(1, "v", pa.array(["C"])))
    assert [row["v"] for row in kept()] == ["a", "b", "C"] and not before & files()
    return "no: reads and rewrites the files with these keys"


def writers():
    table()
    one, two = DeltaTable("t"), DeltaTable("t")
    upserted(one, ROWS.slice(0, 1))
    try:
        upserted(two, ROWS.slice(0, 1))
    except deltalake.exceptions.CommitFailedError:
        return "the second is refused and has to start again"
    return None


def upsert_keeps():
    made = table()
    made.merge(rows(k=[1], v=["new"]), "t.k = s.k", source_alias="s", target_alias="t").when_matched_update(
        {"v": "s.v"}
    ).execute()
    assert kept()[0] == {"k": 1, "v": "new", "n": 10}


def merge():
    merging = table().merge(rows(k=[1, 2, 9], v=["x", None, "z"]), "t.k = s.k", source_alias="s", target_alias="t")
    merging = merging.when_matched_delete("s.v IS NULL").when_matched_update({"v": "s.v"})
    merging.when_not_matched_insert({"k": "s.k", "v": "s.v"}).execute()
    assert [(row["k"], row["v"]) for row in kept()] == [(1, "x"), (3, "c"), (9, "z")]


def delete():
    table().delete("n >= 20")
    assert len(kept()) == 1


def update():
    table().update(predicate="k = 2", updates={"n": "n + 1"})
    assert kept()[1]["n"] == 21


def delete_in_place():
    made = table(configuration={"delta.enableDeletionVectors": "true"})
    before = files()
    try:
        made.delete("k = 2")
    except deltalake.exceptions.DeltaError as error:
        return f"no: {str(error).split(':')[0][:60]}"
    assert not before & files()
    return "no: rewrites files"


def partial_update():
    return absent(DeltaTable, "partial", "merge_engine")


def aggregation():
    return absent(DeltaTable, "aggregat")


def changes():
    made = table(configuration={"delta.enableChangeDataFeed": "true"})
    made.update(predicate="k = 1", updates={"v": "'new'"})
    found = pa.table(DeltaTable("t").load_cdf(starting_version=1).read_all())
    kinds = dict(zip(found["_change_type"].to_pylist(), found["v"].to_pylist(), strict=True))
    assert kinds == {"update_preimage": "a", "update_postimage": "new"}


def stream():
    return absent(DeltaTable, "stream", "consumer") + ": versions are counted by hand"


def exactly_once():
    table()
    once = CommitProperties(app_transactions=[Transaction("job", 1)])
    for _ in range(2):
        write_deltalake("t", rows(k=[5]), mode="append", schema_mode="merge", commit_properties=once)
    found = len(kept())
    assert DeltaTable("t").transaction_version("job") == 1
    return "yes" if found == 4 else "by hand: the table keeps the number, the caller compares"


def lookup():
    return absent(DeltaTable, "lookup", "get_row")


def time_travel():
    then = datetime.datetime.fromtimestamp(table().history()[0]["timestamp"] / 1000, datetime.timezone.utc)
    write_deltalake("t", ROWS, mode="append")
    by_time = DeltaTable("t")
    by_time.load_as_version(then)
    assert len(kept(DeltaTable("t", version=0))) == len(kept(by_time)) == 3


def tags():
    return absent(DeltaTable, "tag")


def branches():
    return absent(DeltaTable, "branch")


def rollback():
    made = table()
    made.delete()
    made.restore(0)
    assert len(kept()) == 3


def compact():
    table()
    write_deltalake("t", ROWS, mode="append")
    DeltaTable("t").optimize.compact()
    assert (len(files()), len(kept())) == (1, 6)


def zorder():
    made = table()
    made.optimize.z_order(["k", "n"])
    assert len(kept()) == 3


def index():
    return absent(DeltaTable, "index")


def expire():
    made = table()
    made.delete("k = 1")
    gone = made.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert len(gone) == 1


def orphans():
    made = table()
    left = Path("t/left.parquet")
    left.write_bytes(b"left behind")
    os.utime(left, (0, 0))
    made.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert not left.exists()


def schema():
    return absent(type(table().alter), "rename", "drop_columns", "type") + ": columns can be added"


def nested():
    inner = pa.struct([("x", pa.int32())])
    table(pa.table({"k": pa.array([1], pa.int64()), "s": pa.array([{"x": 1}], inner)}))
    wider = pa.struct([("x", pa.int32()), ("y", pa.string())])
    more = pa.table({"k": pa.array([2], pa.int64()), "s": pa.array([{"x": 2, "y": "a"}], wider)})
    write_deltalake("t", more, mode="append", schema_mode="merge")
    assert kept()[0]["s"] == {"x": 1, "y": None}
    return "yes, with new rows"


def overwrite():
    table(partition_by=["v"])
    write_deltalake("t", ROWS.slice(0, 1), mode="overwrite", predicate="v = 'a'")
    assert len(kept()) == 3
    return "by a condition"


def transforms():
    try:
        write_deltalake("t", pa.table({"at": pa.array([0], pa.timestamp("us"))}), partition_by=["day(at)"])
    except Exception as error:
        assert "day(at)" in str(error)
        return "no: a column holds the day"
    return None


def constraints():
    made = table()
    made.alter.add_constraint({"few": "n < 100"})
    try:
        write_deltalake("t", ROWS.set_column(2, "n", pa.array([1, 2, 300], pa.int32())), mode="append")
    except deltalake.exceptions.DeltaError:
        return "yes"
    return None


def metadata():
    made = table()
    assert len(made.history()) == 1 and made.get_add_actions(flatten=True).num_rows == 1
    return "files and history"


def two_tables():
    return absent(deltalake, "multi_table", "catalog_transaction")


def history():
    made = table()
    made.delete("k = 1", commit_properties=CommitProperties(custom_metadata={"user": "ann"}))
    last = made.history()[0]
    assert (last["operation"], last["user"]) == ("DELETE", "ann")
    return "yes, users in properties of the caller"


def observers():
    absent(deltalake, "observer", "listener", "callback")
    return absent(DeltaTable, "observer", "listener", "callback")


def metrics():
    assert table().delete("k = 1")["num_deleted_rows"] == 1
    absent(deltalake, "metrics", "prometheus")
    return "no: numbers as results of calls"


def doctor():
    made = table()
    os.unlink(made.file_uris()[0])
    assert len(made.repair(dry_run=True)["files_removed"]) == 1
    return "missing files alone, which `repair` takes out of the table"


def dry_run():
    made = table()
    made.delete()
    before = set(Path("t").rglob("*"))
    assert len(made.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True)) == 1
    assert set(Path("t").rglob("*")) == before


def care():
    return absent(deltalake, "runner", "service", "maintenance")


def command_line():
    assert [one for one in entry_points(group="console_scripts") if one.value.startswith("deltalake")] == []
    return "no"


if __name__ == "__main__":
    main(globals())
