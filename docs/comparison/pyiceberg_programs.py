"""pyiceberg: one function for each line of the comparison."""

from __future__ import annotations

import datetime
import os
from importlib.metadata import entry_points

import pyarrow as pa
import pyiceberg.cli.console
import pyiceberg.table.maintenance
import pyiceberg.types
from features import absent, main
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"], "n": pa.array([10, 20, 30], pa.int32())})
KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])


def catalog() -> Catalog:
    return SqlCatalog("c", uri="sqlite:///c.db", warehouse=f"file://{os.getcwd()}/w")


def table(rows=ROWS, schema=None) -> Table:
    named = catalog()
    named.create_namespace("d")
    made = named.create_table("d.t", schema or rows.schema)
    if rows is not None:
        made.append(rows)
    return made


def kept(made=None, **asked):
    found = (made or catalog().load_table("d.t")).scan(**asked).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["k"])


def files():
    return {task.file.file_path for task in catalog().load_table("d.t").scan().plan_files()}


def append():
    found = table().scan(row_filter="n > 15", selected_fields=("k",)).to_arrow()
    assert sorted(found["k"].to_pylist()) == [2, 3]


def batches():
    assert sum(batch.num_rows for batch in table().scan().to_arrow_batch_reader()) == 3


def upsert():
    made = table()
    before = files()
    made.upsert(ROWS.slice(2).set_column(1, "v", pa.array(["C"])), join_cols=["k"])
    assert [row["v"] for row in kept()] == ["a", "b", "C"] and not before & files()
    return "no: reads and rewrites the files with these keys"


def writers():
    table()
    one, two = catalog().load_table("d.t"), catalog().load_table("d.t")
    new = ROWS.slice(0, 1).set_column(1, "v", pa.array(["new"]))
    one.upsert(new, join_cols=["k"])
    try:
        two.upsert(new, join_cols=["k"])
    except (CommitFailedException, ValidationException):
        return "the second is refused and has to start again"
    assert len(kept()) == 3
    return "both commit"


def upsert_keeps():
    made = table()
    try:
        made.upsert(pa.table({"k": pa.array([1], pa.int64()), "v": ["new"]}), join_cols=["k"])
    except Exception as error:
        return f"no: {type(error).__name__}"
    assert kept()[0] == {"k": 1, "v": "new", "n": 10}
    return None


def merge():
    return absent(Table, "merge") + ": `upsert` updates and inserts"


def delete():
    table().delete("n >= 20")
    assert len(kept()) == 1


def update():
    return absent(Table, "update_rows", "update_where") + ": read, change and overwrite"


def delete_in_place():
    made = table()
    before = files()
    made.delete("k = 2")
    assert not before & files()
    return "no: rewrites files"


def partial_update():
    return absent(Table, "partial", "merge_engine")


def aggregation():
    return absent(Table, "aggregat")


def changes():
    return absent(Table, "change", "cdf") + ": appended rows alone"


def stream():
    return absent(Table, "stream", "consumer")


def exactly_once():
    made = table()
    for _ in range(2):
        made.append(ROWS, snapshot_properties={"job": "1"})
    assert len(kept()) == 9
    return "by hand: properties of snapshots"


def lookup():
    return absent(Table, "lookup", "get_row")


def time_travel():
    made = table()
    first = made.current_snapshot()
    made.append(ROWS)
    by_time = made.snapshot_as_of_timestamp(first.timestamp_ms)
    assert len(kept(made, snapshot_id=first.snapshot_id)) == 3 and by_time.snapshot_id == first.snapshot_id


def tags():
    made = table()
    made.manage_snapshots().create_tag(made.current_snapshot().snapshot_id, "then").commit()
    made.append(ROWS)
    assert made.scan().use_ref("then").to_arrow().num_rows == 3


def branches():
    made = table()
    made.manage_snapshots().create_branch(made.current_snapshot().snapshot_id, "b").commit()
    made.append(ROWS, branch="b")
    assert (len(kept(made)), made.scan().use_ref("b").to_arrow().num_rows) == (3, 6)


def rollback():
    made = table()
    first = made.current_snapshot().snapshot_id
    made.delete("k > 0")
    made.manage_snapshots().rollback_to_snapshot(first).commit()
    assert len(kept()) == 3


def compact():
    return absent(Table, "compact", "optimize", "rewrite") and absent(
        pyiceberg.table.maintenance.MaintenanceTable, "compact", "rewrite"
    )


def zorder():
    return absent(Table, "zorder", "z_order", "cluster")


def index():
    return absent(Table, "index", "bloom")


def expire():
    made = table()
    first = made.current_snapshot()
    old = files()
    made.delete("k = 1")
    made.maintenance.expire_snapshots().older_than(
        datetime.datetime.fromtimestamp(first.timestamp_ms / 1000 + 1, datetime.timezone.utc)
    ).commit()
    left = all(os.path.exists(path.removeprefix("file://")) for path in old)
    return "states only, their files stay" if left else "yes"


def orphans():
    return absent(pyiceberg.table.maintenance.MaintenanceTable, "orphan")


def schema():
    made = table()
    with made.update_schema() as change:
        change.rename_column("v", "w")
        change.delete_column("n")
        change.add_column("m", pyiceberg.types.IntegerType())
    with made.update_schema() as change:
        change.update_column("m", pyiceberg.types.LongType())
    assert kept()[0] == {"k": 1, "w": "a", "m": None}


def nested():
    made = table(pa.table({"k": pa.array([1], pa.int64()), "s": [{"x": 1}]}))
    with made.update_schema() as change:
        change.add_column(("s", "y"), pyiceberg.types.StringType())
    assert kept() == [{"k": 1, "s": {"x": 1, "y": None}}]


def overwrite():
    made = table()
    with made.update_spec() as change:
        change.add_identity("v")
    made = catalog().load_table("d.t")
    made.overwrite(ROWS)
    made.dynamic_partition_overwrite(ROWS.slice(0, 1).set_column(0, "k", pa.array([7], pa.int64())))
    assert [row["k"] for row in kept()] == [2, 3, 7]


def transforms():
    made = table(None, pa.schema([("k", pa.int64()), ("at", pa.timestamp("us"))]))
    with made.update_spec() as change:
        change.add_field("at", DayTransform())
    moments = pa.array([0, 86_400_000_000], pa.timestamp("us"))
    made.append(pa.table({"k": pa.array([1, 2], pa.int64()), "at": moments}))
    assert len(files()) == 2


def constraints():
    return absent(Table, "constraint")


def metadata():
    made = table()
    assert made.inspect.files().num_rows == 1 and made.inspect.snapshots().num_rows == 1


def two_tables():
    return absent(Catalog, "commit_tables", "transaction_of")


def history():
    made = table()
    made.delete("k = 1", snapshot_properties={"user": "ann"})
    last = made.snapshots()[-1].summary
    assert (last.operation.value, last["user"]) == ("overwrite", "ann")
    return "yes, users in properties of the caller"


def observers():
    return absent(Catalog, "observer", "listener", "callback")


def metrics():
    return absent(pyiceberg, "metrics", "prometheus")


def doctor():
    return absent(Table, "doctor", "repair", "check")


def dry_run():
    return absent(pyiceberg.table.maintenance.MaintenanceTable, "dry_run", "orphan")


def care():
    return absent(pyiceberg, "runner", "service")


def command_line():
    named = {one.name for one in entry_points(group="console_scripts") if one.value.startswith("pyiceberg")}
    found = pyiceberg.cli.console.run.commands
    assert named == {"pyiceberg"} and {"describe", "files", "drop", "rename"} <= set(found)
    assert not {"compact", "expire", "rollback", "load", "sql"} & set(found)
    return "to look, rename, drop and set properties"


if __name__ == "__main__":

    main(globals())
