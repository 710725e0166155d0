"""paimon_py: one function for each line of the comparison."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from features import absent, main

from paimon_py import AddColumn, Catalog, DropColumn, RenameColumn, SchemaError, Table, UpdateColumnType, col
from paimon_py.metrics import follow, prometheus
from paimon_py.service import CareRunner, CareSettings, StopFlag

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"], "n": pa.array([10, 20, 30], pa.int32())})
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])


def table(rows=ROWS, options=None, *, key=("k",), schema=SCHEMA, partition_by=()) -> Table:
    catalog = Catalog.open("w")
    catalog.create_database("d")
    made = catalog.create_table("d.t", schema, primary_key=key, partition_by=partition_by, options=options)
    if rows is not None:
        made.write_arrow(rows)
    return made


def kept(made, **asked):
    return sorted(made.scan(**asked).to_arrow().to_pylist(), key=lambda row: row["k"])


def files(made):
    return set(made.system("files").scan(columns=["file_path"]).to_arrow()["file_path"].to_pylist())


def append():
    assert kept(table(key=(), rows=ROWS), columns=["k"], where="n > 15") == [{"k": 2}, {"k": 3}]


def batches():
    assert sum(batch.num_rows for batch in table().scan().to_reader()) == 3


def upsert():
    made = table(options={"bucket": "1"})
    before = files(made)
    made.upsert(pa.table({"k": [3, 4], "v": ["C", "d"]}))
    assert before < files(made) and [row["v"] for row in kept(made)] == ["a", "b", "C", "d"]


def writers():
    made = table(options={"bucket": "1"})
    with made.writer() as one, made.writer() as two:
        one.write_arrow(pa.table({"k": [1], "v": ["one"]}))
        two.write_arrow(pa.table({"k": [1], "v": ["two"]}))
        first, second = one.changes(), two.changes()
    made.commit(first)
    made.commit(second)
    assert kept(made, where="k = 1")[0]["v"] == "two"
    return "both commit, the later row wins"


def upsert_keeps():
    made = table()
    made.upsert(pa.table({"k": [1], "v": ["new"]}), on=["k"])
    assert kept(made, where="k = 1") == [{"k": 1, "v": "new", "n": 10}]


def merge():
    made = table()
    made.merge(
        pa.table({"k": [1, 2, 9], "v": ["x", None, "z"]}), on=["k"],
        when_matched_delete=[col("source.v").is_null()], when_matched_update={"v": col("source.v")},
        when_not_matched_insert=True,
    )  # fmt: skip
    assert [(row["k"], row["v"]) for row in kept(made)] == [(1, "x"), (3, "c"), (9, "z")]


def delete():
    made = table(key=())
    made.delete("n >= 20")
    assert len(kept(made)) == 1


def update():
    made = table(key=())
    made.update("k = 2", {"n": col("n") + 1})
    assert kept(made)[1]["n"] == 21


def delete_in_place():
    made = table(key=(), options={"deletion-vectors.enabled": "true"})
    before = files(made)
    made.delete("k = 2")
    assert files(made) == before and len(kept(made)) == 2
    return "yes: deletion vectors"


def partial_update():
    made = table(None, {"merge-engine": "partial-update"})
    made.write_arrow(pa.table({"k": [1], "v": ["a"]}))
    made.write_arrow(pa.table({"k": [1], "n": pa.array([7], pa.int32())}))
    assert kept(made) == [{"k": 1, "v": "a", "n": 7}]


def aggregation():
    made = table(options={"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"})
    made.write_arrow(ROWS)
    assert [row["n"] for row in kept(made)] == [20, 40, 60]
    return "yes, every function of Java, with retraction"


def changes():
    made = table(options={"changelog-producer": "lookup"})
    before = made.snapshot().id
    made.upsert(pa.table({"k": [1], "v": ["new"]}))
    found = made.changes(before).to_arrow()
    assert sorted(zip(found["_row_kind"].to_pylist(), found["v"].to_pylist())) == [("+U", "new"), ("-U", "a")]


def stream():
    made = table()
    step = made.stream(from_="earliest", consumer_id="job").poll()
    assert step.to_arrow().num_rows == 3
    step.acknowledge()
    made.upsert(pa.table({"k": [4]}))
    assert made.stream(consumer_id="job").poll().to_arrow()["k"].to_pylist() == [4]


def exactly_once():
    made = table()
    with made.writer() as writer:
        writer.write_arrow(pa.table({"k": [5]}))
        changes = bytes(writer.changes())
    made.commit(changes, user="job", identifier=1)
    assert made.commit(changes, user="job", identifier=1).already_committed and len(kept(made)) == 4


def lookup():
    assert table().lookup([{"k": 2}]).to_pylist()[0]["v"] == "b"


def time_travel():
    made = table()
    then = datetime.datetime.now(datetime.timezone.utc)
    made.upsert(pa.table({"k": [4]}))
    assert len(kept(made, snapshot_id=1)) == len(kept(made, timestamp=then)) == 3


def tags():
    made = table()
    made.create_tag("then")
    made.truncate()
    assert len(kept(made, tag="then")) == 3


def branches():
    made = table()
    made.create_branch("b", from_=1)
    made.branch("b").upsert(pa.table({"k": [4]}))
    assert (len(kept(made)), len(kept(made.branch("b")))) == (3, 4)
    return "yes, also fast-forwarded"


def rollback():
    made = table()
    made.truncate()
    made.rollback_to(1)
    assert len(kept(made)) == 3


def compact():
    made = table(key=())
    made.write_arrow(ROWS)
    made.compact(full=True)
    assert (len(files(made)), len(kept(made))) == (1, 6)


def zorder():
    made = table(key=())
    made.compact(order_by=["k", "n"], strategy="zorder")
    assert len(kept(made)) == 3
    return "yes, also Hilbert curves"


def index():
    made = table(key=(), options={"file-index.bloom-filter.columns": "v"})
    assert made.scan(where="v = 'bb'").explain().index_files == 1
    return "yes: Bloom, bitmap, bit-sliced, range bitmap"


def expire():
    made = table(options={"bucket": "1"})
    made.write_arrow(ROWS)
    made.compact(full=True)
    assert made.expire_snapshots(retain_min=1, retain_max=1).data_files > 0


def orphans():
    made = table()
    left = Path("w/d.db/t/bucket-0/data-0c9dbb37-2f24-4c92-9be5-ba8f0a2e0c4f-0.parquet")
    left.write_bytes(b"left behind")
    os.utime(left, (0, 0))
    made.remove_orphans(dry_run=False)
    assert not left.exists() and len(kept(made)) == 3


def schema():
    made = table()
    made.alter(RenameColumn("v", "w"), DropColumn("n"))
    made.alter(AddColumn("m", "INT"))
    made.write_arrow(pa.table({"k": [4], "m": pa.array([1], pa.int32())}))
    made.alter(UpdateColumnType("m", "BIGINT"))
    assert kept(made)[3] == {"k": 4, "w": None, "m": 1}


def nested():
    columns = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.struct([("x", pa.int32())]))])
    made = table(pa.table({"k": [1], "s": [{"x": 1}]}, columns), schema=columns)
    made.alter(AddColumn(("s", "y"), "STRING"))
    assert kept(made) == [{"k": 1, "s": {"x": 1, "y": None}}]


def overwrite():
    made = table(key=(), partition_by=["v"])
    made.write_arrow(pa.table({"k": [7], "v": ["a"], "n": pa.array([0], pa.int32())}), overwrite="dynamic")
    assert [row["k"] for row in kept(made)] == [2, 3, 7]


def transforms():
    columns = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us"))])
    try:
        table(None, schema=columns, key=(), partition_by=["day(at)"])
    except SchemaError as error:
        assert "day(at)" in str(error)
        return "no: a column holds the day"
    return None


def constraints():
    return absent(Table, "constraint")


def metadata():
    made = table()
    assert made.system("files").scan().count() == 1 and made.system("snapshots").scan().count() == 1
    return "yes: every system table of Java"


def two_tables():
    return absent(Catalog, "transaction")


def history():
    made = table()
    made.delete("k = 1", user="ann", identifier=7)
    last = made.history()[0]
    assert (last.operation, last.user, last.identifier, last.deleted_rows) == ("DELETE", "ann", 7, 1)


def observers():
    table()
    catalog, seen = Catalog.open("w"), []
    catalog.register_observer(seen.append)
    catalog.table("d.t").write_arrow(ROWS)
    assert [event.added_rows for event in seen] == [3]


def metrics():
    catalog = Catalog.open("w")
    follow(catalog)
    table(None)
    catalog.table("d.t").write_arrow(ROWS)
    assert 'paimon_commits_total{table="d.t",commit_kind="APPEND"} 1' in prometheus()
    return "yes, also OpenTelemetry"


def doctor():
    made = table()
    (file,) = files(made)
    Path(file).unlink()
    (finding,) = made.doctor()
    assert finding.code == "missing-files" and "table." in finding.mend


def dry_run():
    made = table(options={"bucket": "1"})
    made.write_arrow(ROWS)
    made.compact(full=True)
    before = set(Path("w").rglob("*"))
    assert made.expire_snapshots(retain_min=1, retain_max=1, dry_run=True).data_files > 0
    assert set(Path("w").rglob("*")) == before


def care():
    made = table(options={"bucket": "1", "write-only": "true"})
    for _ in range(6):
        made.write_arrow(ROWS)
    CareRunner(Catalog.open("w"), CareSettings(), stop=StopFlag()).run_round()
    assert len(files(made)) == 1


def command_line():
    table()
    done = subprocess.run([sys.executable, "-m", "paimon_py", "history", "w/d.db/t"], capture_output=True, text=True)
    assert done.returncode == 0 and "APPEND" in done.stdout
    return "yes: load, query, maintain, roll back, report"


if __name__ == "__main__":
    main(globals())
