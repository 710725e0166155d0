"""pypaimon, the Python SDK of Apache Paimon: one function for each line of the comparison."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pyarrow as pa
import pypaimon
from features import absent, main
from pypaimon import CatalogFactory, Schema
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import SchemaChange
from pypaimon.table.data_evolution_merge_into import WhenMatched, WhenNotMatched

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"], "n": pa.array([10, 20, 30], pa.int32())})
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32())])
TRACKED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def catalog():
    return CatalogFactory.create({"warehouse": "w"})


def table(rows=ROWS, options=None, *, key=("k",), schema=SCHEMA, partition_by=()):
    named = catalog()
    named.create_database("d", True)
    settings = {"bucket": "1", **(options or {})} if key else dict(options or {})
    made = Schema.from_pyarrow_schema(
        schema, partition_keys=list(partition_by), primary_keys=list(key), options=settings
    )  # fmt: skip
    named.create_table("d.t", made, False)
    opened = named.get_table("d.t")
    if rows is not None:
        write(opened, rows)
    return opened


def write(made, rows, builder=None):
    builder = builder or made.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    fields = [SCHEMA.field(name) if name in SCHEMA.names else rows.schema.field(name) for name in rows.column_names]
    writer.write_arrow(rows.cast(pa.schema(fields)))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def kept(made=None):
    builder = (made or catalog().get_table("d.t")).new_read_builder()
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return sorted(found.to_pylist(), key=lambda row: row["k"])


def files():
    splits = catalog().get_table("d.t").new_read_builder().new_scan().plan().splits()
    return {file.file_name for split in splits for file in split.files}


def append():
    made = table(key=())
    builder = made.new_read_builder().with_projection(["k", "n"])
    builder = builder.with_filter(made.new_read_builder().new_predicate_builder().greater_than("n", 15))
    found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert sorted(found["k"].to_pylist()) == [2, 3]


def batches():
    builder = table().new_read_builder()
    reader = builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits())
    assert sum(batch.num_rows for batch in reader) == 3


def upsert():
    made = table()
    before = files()
    write(made, ROWS.slice(2).set_column(1, "v", pa.array(["C"])))
    assert before < files() and [row["v"] for row in kept()] == ["a", "b", "C"]


def writers():
    made = table()
    builders = [made.new_batch_write_builder() for _ in range(2)]
    messages = []
    for builder, value in zip(builders, ("one", "two"), strict=True):
        writer = builder.new_write()
        writer.write_arrow(ROWS.slice(0, 1).set_column(1, "v", pa.array([value])).cast(SCHEMA))
        messages.append(writer.prepare_commit())
    for builder, message in zip(builders, messages, strict=True):
        builder.new_commit().commit(message)
    assert len(kept()) == 3
    return {"one": "both commit, the earlier row stays", "two": "both commit, the later row wins"}[kept()[0]["v"]]


def upsert_keeps():
    def verb(key, options):
        builder = table(key=key, options=options).new_batch_write_builder()
        change = builder.new_update().with_update_type(["v"])
        new = pa.table({"k": pa.array([1], pa.int64()), "v": ["new"]})
        builder.new_commit().commit(change.upsert_by_arrow_with_key(new, ["k"]))
        assert kept()[0] == {"k": 1, "v": "new", "n": 10}

    return tried(verb)


def merge():
    def verb(key, options):
        options = {**(options or {}), "deletion-vectors.enabled": "true"}
        builder = table(key=key, options=options).new_batch_write_builder()
        source = pa.table({"k": pa.array([1, 9], pa.int64()), "v": ["x", "z"], "n": pa.array([1, 9], pa.int32())})
        clauses = {"when_matched": [WhenMatched.update("*")], "when_not_matched": [WhenNotMatched("*")]}
        builder.new_commit().commit(builder.new_update().merge_into(source, on=["k"], **clauses))
        assert [(row["k"], row["v"]) for row in kept()] == [(1, "x"), (2, "b"), (3, "c"), (9, "z")]

    return tried(verb)


def changed(verb, key=(), options=None):
    made = table(key=key, options=options)
    builder = made.new_batch_write_builder()
    change = builder.new_update()
    predicate = change.new_predicate_builder().equal("k", 2)
    builder.new_commit().commit(verb(change, predicate))
    return kept()


def tried(verb):
    found = []
    for name, key, options in (("key", ("k",), None), ("plain", (), None), ("tracked", (), TRACKED)):
        shutil.rmtree("w", ignore_errors=True)
        try:
            verb(key, options)
            found.append(name)
        except Exception:
            continue
    return {
        (): "no", ("tracked",): "in tables with row tracking", ("plain", "tracked"): "in append tables",
        ("key", "plain", "tracked"): "yes", ("key", "tracked"): "yes", ("plain",): "in append tables",
    }[tuple(found)]  # fmt: skip


def delete():
    def verb(key, options):
        options = {**(options or {}), "deletion-vectors.enabled": "true"}
        assert len(changed(lambda change, where: change.delete_by_predicate(where), key, options)) == 2

    return tried(verb)


def update():
    def verb(key, options):
        rows = changed(lambda change, where: change.update_by_predicate(where, {"n": 21}), key, options)
        assert rows[1]["n"] == 21

    return tried(verb)


def delete_in_place():
    def verb(key, options):
        options = {**(options or {}), "deletion-vectors.enabled": "true"}
        made = table(key=key, options=options)
        before = files()
        builder = made.new_batch_write_builder()
        change = builder.new_update()
        builder.new_commit().commit(change.delete_by_predicate(change.new_predicate_builder().equal("k", 2)))
        assert files() == before and len(kept()) == 2

    return tried(verb)


def partial_update():
    made = table(None, {"merge-engine": "partial-update"})
    nothing = pa.nulls(1, pa.int32())
    write(made, pa.table({"k": pa.array([1], pa.int64()), "v": ["a"], "n": nothing}))
    seven = pa.array([7], pa.int32())
    write(made, pa.table({"k": pa.array([1], pa.int64()), "v": pa.nulls(1, pa.string()), "n": seven}))
    assert kept() == [{"k": 1, "v": "a", "n": 7}]
    try:
        kept(made.copy({"partial-update.remove-record-on-delete": "true"}))
    except NotImplementedError:
        return "yes, without deletes"
    return None


def aggregation():
    made = table(None, {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"})
    write(made, ROWS)
    write(made, ROWS)
    assert [row["n"] for row in kept()] == [20, 40, 60]
    return "yes, some functions"


def changes():
    table(options={"changelog-producer": "lookup"})
    return absent(pypaimon.table.file_store_table.FileStoreTable, "changes", "new_compact") + ": writes no changelog"


def stream():
    made = table()
    builder = made.new_stream_read_builder().with_consumer_id("job")
    plans = builder.new_streaming_scan().stream_sync()
    assert builder.new_read().to_arrow(next(plans).splits()).num_rows == 3
    write(made, ROWS.set_column(0, "k", pa.array([4, 5, 6], pa.int64())))
    assert builder.new_read().to_arrow(next(plans).splits()).num_rows == 3
    assert os.listdir("w/d.db/t/consumer") == ["consumer-job"]


def exactly_once():
    made = table(key=())
    builder = made.new_stream_write_builder()
    for _ in range(2):
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(ROWS.cast(SCHEMA))
        messages = writer.prepare_commit(1)
        commit.commit(messages, 1)
    assert len(kept()) == 9
    return "by hand: the caller looks for the number"


def lookup():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "lookup", "get_row")


def time_travel():
    made = table()
    first = made.snapshot_manager().get_latest_snapshot()
    write(made, ROWS.set_column(0, "k", pa.array([4, 5, 6], pa.int64())))
    for name, value in (("scan.snapshot-id", first.id), ("scan.timestamp-millis", first.time_millis)):
        assert len(kept(made.copy({name: str(value)}))) == 3


def tags():
    made = table()
    made.create_tag("then")
    write(made, ROWS.set_column(0, "k", pa.array([4, 5, 6], pa.int64())))
    assert len(kept(made.copy({"scan.tag-name": "then"}))) == 3


def branches():
    made = table()
    made.create_tag("then")
    made.branch_manager().create_branch("b", "then")
    assert made.branch_manager().branches() == ["b"]


def rollback():
    made = table()
    write(made, ROWS.set_column(0, "k", pa.array([4, 5, 6], pa.int64())))
    made.rollback_to(1)
    assert len(kept()) == 3


def compact():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "compact")


def zorder():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "zorder", "cluster", "sort")


def index():
    made = table(key=(), options={"file-index.bloom-filter.columns": "v"})
    builder = made.new_read_builder()
    builder = builder.with_filter(builder.new_predicate_builder().equal("v", "bb"))
    split = [file for one in builder.new_scan().plan().splits() for file in one.files]
    return "no: global indexes, in tables with row tracking" if split else "yes"


def expire():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "expire")


def orphans():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "orphan")


def schema():
    table()
    named = catalog()
    named.alter_table("d.t", [SchemaChange.rename_column("v", "w"), SchemaChange.drop_column("n")], False)
    named.alter_table("d.t", [SchemaChange.add_column("m", AtomicType("INT"))], False)
    named.alter_table("d.t", [SchemaChange.update_column_type("m", AtomicType("BIGINT"))], False)
    assert kept()[0] == {"k": 1, "w": "a", "m": None}


def nested():
    columns = pa.schema([pa.field("k", pa.int64(), nullable=False), ("s", pa.struct([("x", pa.int32())]))])
    table(pa.table({"k": [1], "s": [{"x": 1}]}, columns), schema=columns, key=())
    catalog().alter_table("d.t", [SchemaChange.add_column(["s", "y"], AtomicType("STRING"))], False)
    assert kept() == [{"k": 1, "s": {"x": 1, "y": None}}]


def overwrite():
    made = table(key=(), partition_by=["v"])
    new = ROWS.slice(0, 1).set_column(0, "k", pa.array([7], pa.int64()))
    write(made, new, made.new_batch_write_builder().overwrite())
    assert [row["k"] for row in kept()] == [2, 3, 7]


def transforms():
    columns = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us"))])
    try:
        table(None, schema=columns, key=(), partition_by=["day(at)"])
        write(catalog().get_table("d.t"), pa.table({"k": [1], "at": pa.array([0], pa.timestamp("us"))}))
    except Exception as error:
        assert "day(at)" in str(error)
        return "no: a column holds the day"
    return None


def constraints():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "constraint")


def metadata():
    table()
    shown = []
    for name in ("files", "snapshots"):
        builder = catalog().get_table(f"d.t${name}").new_read_builder()
        shown.append(builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows)
    assert shown == [1, 1]


def two_tables():
    return absent(type(catalog()), "transaction")


def history():
    made = table()
    builder = catalog().get_table("d.t$snapshots").new_read_builder()
    (row,) = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    assert row["commit_kind"] == "APPEND" and row["commit_user"]
    absent(type(made), "history")
    return "kind and user, as a system table"


def observers():
    return absent(type(catalog()), "observer", "listener", "callback")


def metrics():
    return absent(pypaimon, "metrics", "prometheus")


def doctor():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "doctor", "repair", "check")


def dry_run():
    return absent(pypaimon.table.file_store_table.FileStoreTable, "dry_run", "orphan", "expire_snapshots")


def care():
    return absent(pypaimon, "runner", "service", "maintenance")


def command_line():
    (command,) = (one for one in entry_points(group="console_scripts") if one.value.startswith("pypaimon"))
    Path("paimon.yaml").write_text("metastore: filesystem\nwarehouse: w\n")
    table()
    program = str(Path(sys.executable).with_name(command.name))
    done, helped = (
        subprocess.run([program, "table", *words], capture_output=True, text=True, check=True)
        for words in (["read", "d.t"], ["--help"])
    )
    assert "c" in done.stdout and "rollback" in helped.stdout
    assert not {"compact", "history", "expire", "doctor"} & set(helped.stdout.split())
    return "to read, create, alter, import, roll back, branch and tag"


if __name__ == "__main__":
    main(globals())
