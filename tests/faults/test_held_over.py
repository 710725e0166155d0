"""Objects that outlive their table: another table lies at its path by now, and no verb changes anything there."""

from __future__ import annotations

import inspect
import pickle
from datetime import timedelta

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, PaimonError, Table, TableNotFoundError, col
from paimon_py.storage.open import open_store

COLUMNS = pa.schema(
    [pa.field("p", pa.string(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())]
)
OTHER = pa.schema([*COLUMNS, ("w", pa.string())])
AGE = timedelta(milliseconds=1)
KINDS = {"keyed": ["p", "k"], "append": []}


def rows(*keys):
    return pa.table({"p": ["a"] * len(keys), "k": keys, "v": keys}, schema=COLUMNS)


def lived(catalog, kind, columns=COLUMNS, count=4):
    """A table with a past: snapshots, tags, a branch, a consumer, a user."""
    options = {"bucket": "1" if KINDS[kind] else "-1", "snapshot.num-retained.min": "1"}
    table = catalog.create_table("d.t", columns, primary_key=KINDS[kind], partition_by=["p"], options=options)
    for number in range(count):
        data = rows(number, number + 1)
        table.write_arrow(data if columns is COLUMNS else data.append_column("w", pa.nulls(2, pa.string())))
    table.create_tag("one", snapshot_id=1)
    table.create_branch("b", from_="one").write_arrow(table.scan(tag="one").to_arrow(), user="other", identifier=3)
    next(iter(table.stream(from_="earliest", consumer_id="c"))).acknowledge()
    return table


READS = {
    "branch", "branches", "changes", "committed", "consumers", "count", "doctor", "export", "filter_committed", "head", "history", "iceberg",
    "levels",
    "lookup", "open", "partitions", "refresh", "scan", "snapshot", "snapshots", "statistics", "stream", "system", "tags",
    "to_arrow", "to_pandas", "to_polars", "writer", "writer_numbers",
}  # fmt: skip
VERBS = {
    "alter": lambda table, _: table.alter(AddColumn("x", "INT")),
    "analyze": lambda table, _: table.analyze(),
    "backfill": lambda table, _: table.backfill({"v": 1}),
    "commit": lambda table, held: table.commit(held["changes"], user="u", identifier=1),
    "compact": lambda table, _: table.compact(full=True),
    "compact_manifests": lambda table, _: table.compact_manifests(),
    "compaction_tasks": lambda table, _: table.compaction_tasks(full=True),
    "create_branch": lambda table, _: table.create_branch("new"),
    "create_tag": lambda table, _: table.create_tag("new"),
    "delete": lambda table, _: table.delete("k = 1"),
    "delete_branch": lambda table, _: table.delete_branch("b"),
    "delete_consumer": lambda table, _: table.delete_consumer("c"),
    "delete_tag": lambda table, _: table.delete_tag("one"),
    "rename_tag": lambda table, _: table.rename_tag("one", "two"),
    "replace_tag": lambda table, _: table.replace_tag("one"),
    "drop_partitions": lambda table, _: table.drop_partitions([{"p": "a"}]),
    "expire_changelogs": lambda table, _: table.expire_changelogs(retain_min=1, retain_max=1),
    "expire_consumers": lambda table, _: table.expire_consumers(older_than=AGE),
    "expire_partitions": lambda table, _: table.expire_partitions(older_than=AGE, strategy="update-time"),
    "expire_snapshots": lambda table, _: table.expire_snapshots(retain_min=1, retain_max=1),
    "expire_tags": lambda table, _: table.expire_tags(older_than=AGE),
    "fast_forward": lambda table, _: table.fast_forward("b", discard=True),
    "load_files": lambda table, _: table.load_files(csv_file()),
    "mark_partitions_done": lambda table, _: table.mark_partitions_done([{"p": "a"}]),
    "merge": lambda table, _: table.merge(rows(1, 9), ["p", "k"], when_matched_update=True, when_not_matched_insert=True),
    "publish_iceberg": lambda table, _: table.publish_iceberg(),
    "purge_files": lambda table, _: table.purge_files(),
    "remove_orphans": lambda table, _: table.remove_orphans(older_than=AGE, dry_run=False),
    "remove_unexisting_files": lambda table, _: table.remove_unexisting_files(dry_run=False),
    "rename_branch": lambda table, _: table.rename_branch("b", "c"),
    "rescale": lambda table, _: table.rescale(3),
    "reset_consumer": lambda table, _: table.reset_consumer("c", 1),
    "rewrite_file_index": lambda table, _: table.rewrite_file_index(),
    "restore": lambda table, _: table.restore("one"),
    "rollback_to": lambda table, _: table.rollback_to("one"),
    "run_compaction": lambda table, held: table.run_compaction(held["task"]),
    "truncate": lambda table, _: table.truncate(),
    "update": lambda table, _: table.update("k = 1", {"v": col("v") + 1}),
    "update_rows": lambda table, _: table.update_rows(pa.table({"_ROW_ID": [1], "v": [1]})),
    "upsert": lambda table, _: table.upsert(rows(1), on=["p", "k"]),
    "write_arrow": lambda table, _: table.write_arrow(rows(7)),
}
HELD = {
    "branch": lambda held: held["branch"].write_arrow(rows(1)),
    "branch: cut": lambda held: held["branch"].rollback_to(1),
    "changes": lambda held: held["table"].commit(held["changes"]),
    "numbered changes": lambda held: held["table"].commit(held["changes"], user="other", identifier=3),
    "consumer": lambda held: held["step"].acknowledge(),
    "stream": lambda held: [step.acknowledge() for step in iter(held["stream"].poll, None)],
    "begun stream": lambda held: [step.acknowledge() for step in iter(held["begun"].poll, None)],
    "position": lambda held: list(held["table"].stream(from_=held["step"].position, until="now")),
    "scan": lambda held: held["scan"].to_arrow(),
    "tag": lambda held: held["table"].scan(tag="one").to_arrow(),
    "upsert of some columns": lambda held: held["table"].upsert(rows(1).select(["p", "k"])),
    "lookup": lambda held: held["table"].lookup([{"p": "a", "k": 1}]),
    "all rows": lambda held: held["table"].to_arrow(),
    "writer": lambda held: held["table"].commit(written(held["writer"])),
}


def csv_file():
    """A file of rows that lies beside no table."""
    store, path = open_store("memory://inbox/new.csv", {})
    store.put(path, b"p,k,v\na,7,7\n")
    return path


def written(writer):
    with writer:
        writer.write_arrow(rows(8))
        return writer.changes()


def held_by(table):
    """Everything that can be held of a table."""
    with table.writer() as writer:
        writer.write_arrow(rows(6))
        changes = writer.changes()
    begun = table.stream(from_="earliest", consumer_id="c")
    step = begun.poll()
    tasks = table.compaction_tasks(full=True)
    return {
        "table": table, "changes": changes, "writer": table.writer(), "branch": table.branch("b"), "step": step,
        "begun": begun, "stream": table.stream(from_="earliest", consumer_id="c"), "scan": table.scan(),
        "task": tasks[0] if tasks else None,
    }  # fmt: skip


def content(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def dropped(catalog, kind):
    catalog.drop_table("d.t")
    lived(catalog, kind)


def renamed(catalog, kind):
    catalog.rename_table("d.t", "d.old")
    lived(catalog, kind, count=6)


def altered_before(catalog, kind):
    catalog.drop_table("d.t")
    lived(catalog, kind).alter(AddColumn("x", "INT"))


def of_other_columns(catalog, kind):
    catalog.drop_table("d.t")
    lived(catalog, kind, OTHER)


REPLACEMENTS = (dropped, renamed, altered_before, of_other_columns)


def test_every_verb_that_changes_something_is_tried():
    public = {name for name, member in inspect.getmembers(Table, callable) if not name.startswith("_")}
    assert public == READS | set(VERBS)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=[False, True], ids=["same process", "pickled"])
def replaced(request, tmp_path, kind):
    """A function that lets another table take the place of one, and gives what was held of that."""

    def replace(replacement):
        catalog = Catalog.open(str(tmp_path))
        catalog.create_database("d")
        held = held_by(lived(catalog, kind))
        if request.param:
            held["table"] = pickle.loads(pickle.dumps(held["table"]))
            held["scan"] = pickle.loads(pickle.dumps(held["scan"]))
            held["branch"] = pickle.loads(pickle.dumps(held["branch"]))
        replacement(Catalog.open(str(tmp_path)), kind)
        return held

    return replace


def refusal(act):
    """The error with which a call is refused; None if it is not."""
    try:
        act()
    except PaimonError as error:
        return error
    return None


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=lambda each: each.__name__)
def test_a_table_object_changes_nothing_in_another_table(tmp_path, replaced, replacement):
    held = replaced(replacement)
    before = content(tmp_path)
    tried = [verb for verb in VERBS if verb != "run_compaction" or held["task"] is not None]
    for verb in tried:
        refused = refusal(lambda verb=verb: VERBS[verb](held["table"], held))
        assert isinstance(refused, TableNotFoundError) or "another table" in str(refused), verb
        assert content(tmp_path) == before, (verb, refused)


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=lambda each: each.__name__)
def test_an_object_of_one_table_neither_changes_nor_reads_another(tmp_path, replaced, replacement, kind):
    held = replaced(replacement)
    before = content(tmp_path)
    for what in HELD if kind == "keyed" else HELD.keys() - {"lookup", "upsert of some columns"}:
        refused = refusal(lambda what=what: HELD[what](held))
        assert refused is not None, what
        after = content(tmp_path)
        if what == "writer":  # files that were written before the commit are refused are orphans, as after any refusal
            left = {path for path in after.keys() - before.keys() if "/bucket-0/" in path}
            before |= {path: after[path] for path in left}
        assert after == before, (what, refused)
