"""Streams and `changes` of tables with row tracking: rows before and after each change, identified by `_ROW_ID`."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, Schema, SnapshotExpiredError, UsageError, col
from paimon_py.metadata.blob_access import BlobAccess
from paimon_py.scan import id_plan

KINDS = {"rewritten": {}, "marked": {"deletion-vectors.enabled": "true"}}
KINDS["evolving"] = {**KINDS["marked"], "data-evolution.enabled": "true"}
COLUMNS = {"p": "STRING", "id": "BIGINT", "v": "STRING"}
NAMES = ["id", "v", "_ROW_ID"]


def made(columns=COLUMNS, **options):
    catalog = Catalog.open("memory://identified")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    settings = {"row-tracking.enabled": "true", "write-only": "true", **options}
    return catalog.create_table("d.t", Schema(columns), partition_by=["p"] if "p" in columns else [], options=settings)


def row(number, v="a", p="x", **more):
    return {"p": p, "id": number, "v": v, **more}


def told(read):
    return [tuple(each.values()) for each in read.to_arrow().to_pylist()]


def by_id(scan):
    return {each["_ROW_ID"]: each for each in scan.to_arrow().to_pylist()}


def apply(rows, table):
    """Apply changes to rows by id; old values must be those that were there."""
    for each in table.to_pylist():
        if each.pop("_row_kind") in ("-D", "-U"):
            assert rows.pop(each["_ROW_ID"]) == each
        else:
            assert rows.setdefault(each["_ROW_ID"], each) is each


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_has_the_rows_before_and_after_what_happened(kind):
    table = made(**KINDS[kind])
    table.write_arrow([row(1), row(2), row(3), row(4, p="y")])
    stream = table.stream(columns=NAMES)
    assert len(told(stream.poll())) == 4
    table.update("id IN (2, 4)", {"v": "b"})
    step = stream.poll()
    olds, news = told(step)[:2], told(step)[2:]
    assert sorted(olds) == [(2, "a", 1, "-U"), (4, "a", 3, "-U")]
    assert sorted(news) == [(2, "b", 1, "+U"), (4, "b", 3, "+U")]
    again = pickle.loads(pickle.dumps(step))
    assert sorted(told(again)) == sorted(told(step))
    table.delete("id = 1")
    table.upsert([{"id": 3, "v": "c", "p": "x"}, {"id": 9, "v": "n", "p": "x"}], on=["id", "p"])
    later = [told(each) for each in table.stream(from_=step.position, columns=NAMES, until="now")]
    assert later == [[(1, "a", 0, "-D")], [(3, "a", 2, "-U"), (3, "c", 2, "+U"), (9, "n", 4, "+I")]]
    assert table.compact(full=True).file_count and stream.poll() and stream.poll() and stream.poll() is None
    table.truncate()
    assert sorted(told(stream.poll())) == [(2, "b", 1, "-D"), (3, "c", 2, "-D"), (4, "b", 3, "-D"), (9, "n", 4, "-D")]
    table.write_arrow([row(2, "b")], overwrite={})
    assert told(stream.poll()) == [(2, "b", 5, "+I")]


@pytest.mark.parametrize("kind", KINDS)
def test_differences_of_states_are_by_id_if_ids_are_wanted(kind):
    table = made(**KINDS[kind])
    table.write_arrow([row(1), row(2)])
    table.update("id = 1", {"v": "b"})
    assert sorted(told(table.changes(1, mode="diff", columns=["id", "v"]))) == [(1, "a", "-D"), (1, "b", "+I")]
    scan = table.changes(1, mode="diff", columns=NAMES)
    assert told(scan) == [(1, "a", 0, "-U"), (1, "b", 0, "+U")] and scan.count() == 2
    assert table.changes(1, mode="diff", where="_ROW_ID >= 0").schema.names == [*COLUMNS, "_row_kind"]
    assert table.changes(1, mode="diff", where="_ROW_ID > 0").count() == 0
    table.write_arrow([row(2), row(1, "b")], overwrite={})
    assert told(table.changes(2, mode="diff", columns=["id", "v"])) == []
    assert Counter(each[-1] for each in told(table.changes(2, mode="diff", columns=NAMES))) == {"-D": 2, "+I": 2}
    assert [each[-1] for each in told(table.changes(0, 1, columns=NAMES))] == ["+I", "+I"]
    whole = table.system("row_tracking").changes(1, 2, mode="diff").to_arrow()
    assert whole.column_names == [*COLUMNS, "_ROW_ID", "_SEQUENCE_NUMBER", "_row_kind"] and whole["_SEQUENCE_NUMBER"].to_pylist() == [1, 2]
    steps = table.system("row_tracking").stream(from_=2)
    assert steps.poll().to_arrow().column_names == whole.column_names


def test_a_change_is_returned_if_either_of_its_rows_matches():
    table = made(**{"deletion-vectors.enabled": "true"})
    table.write_arrow([row(1, "a"), row(2, "b")])
    table.update("true", {"v": lambda rows: pa.array([{"a": "b", "b": "a"}[v] for v in rows["v"].to_pylist()])})
    wanted = [(1, "a", 0, "-U"), (2, "a", 1, "+U")]
    stream = table.stream(from_=2, columns=NAMES, where="v = 'a'")
    assert told(stream.poll()) == wanted
    for mode in ("auto", "diff"):
        scan = table.changes(1, mode=mode, columns=NAMES, where="v = 'a'")
        assert told(scan) == wanted and scan.count() == 2
    assert told(table.changes(1, columns=["id"], where="_row_kind = '+U' AND v = 'a'")) == [(2, "+U")]


def test_rows_that_move_to_another_partition_keep_their_identity():
    table = made(**{"source.split.target-size": "1 b"})
    table.write_arrow([row(1), row(2), row(3, p="y")])
    table.update("id = 1", {"p": "y"})
    for read in (table.stream(from_=2, columns=["p", *NAMES]).poll(), table.changes(1, mode="diff", columns=["p", *NAMES], where="p = 'y'")):
        assert told(read)[-1] == ("y", 1, "a", 0, "+U")
    assert told(table.changes(1, mode="diff", columns=["p", *NAMES], where="p = 'x'")) == [("x", 1, "a", 0, "-U")]


def test_files_of_other_rows_are_compared_apart():
    table = made(**{"deletion-vectors.enabled": "true", "source.split.target-size": "1 b"})
    for number in range(4):
        table.write_arrow([row(number)])
    table.update("id < 3", {"v": "b"})
    scan = table.changes(4, mode="diff", columns=NAMES)
    assert len(scan.splits()) == 1 and len(told(scan)) == 6
    assert scan.explain().skipped.same == 2
    evolving = made(**KINDS["evolving"], **{"source.split.target-size": "1 b"})
    for number in range(4):
        evolving.write_arrow([row(number)])
    evolving.update("id < 3", {"v": "b"})
    scan = evolving.changes(4, mode="diff", columns=NAMES)
    assert len(scan.splits()) == 3 and len(told(scan)) == 6
    assert scan.splits()[0].compared.identified == ("v",)


def test_what_scans_by_id_need_not_read_is_known_from_statistics():
    table = made()
    for number in range(3):
        table.write_arrow([row(number), row(number + 10)])
    table.update("id >= 0", {"v": "b"})
    plan = table.scan(row_ids=[2]).explain()
    assert plan.skipped.stats == 0 and plan.file_count == 1  # one file has all rows
    table.write_arrow([row(99)])
    table.update("id = 99", {"v": "c"})
    assert table.scan(row_ids=[6]).explain().skipped.stats == 1
    assert table.scan(row_ids=[6]).to_arrow()["v"].to_pylist() == ["c"]


def test_old_rows_come_first_though_they_do_not_fit_in_memory(monkeypatch):
    table = made(**{"write-buffer-size": "1 kb"})
    files = []
    kind = type(table._root.env.spill)
    real = kind.create

    def create(place):
        files.append(real(place))
        return files[-1]

    table.write_arrow([row(number, "a" * 20) for number in range(400)])
    table.update("id < 300", {"v": "b" * 20})
    monkeypatch.setattr(kind, "create", create)
    kinds = [each[-1] for each in told(table.stream(from_=2, columns=NAMES).poll())]
    assert kinds == ["-U"] * 300 + ["+U"] * 300
    assert len(files) > 32
    for file in files:
        with pytest.raises(OSError):
            file.open_read()


def test_bytes_of_unchanged_rows_are_not_read(monkeypatch):
    table = made({"id": "BIGINT", "v": "STRING", "b": "BLOB"}, **KINDS["evolving"])
    table.write_arrow([{"id": number, "v": "a", "b": bytes([number]) * 5} for number in range(20)])
    table.update("id = 3", {"v": "b"})
    read = []
    real = BlobAccess.read
    monkeypatch.setattr(BlobAccess, "read", lambda self, ref: read.append(ref) or real(self, ref))
    step = table.stream(from_=2, columns=["id", "b", "_ROW_ID"]).poll()
    assert told(step) == [(3, b"\3" * 5, 3, "-U"), (3, b"\3" * 5, 3, "+U")] and len(read) == 2
    table.update("id = 4", {"b": b"new"})
    stream = table.stream(from_=3, columns=["id", "b"], options={"blob-as-descriptor": "true"})
    assert [each[-1] for each in told(stream.poll())] == ["-U", "+U"]
    assert told(table.stream(from_=3, columns=["b"], where="id = 4").poll()) == [(b"\4" * 5, "-U"), (b"new", "+U")]


def test_pairs_of_the_binlog_are_of_one_row():
    table = made(**KINDS["evolving"])
    table.write_arrow([row(number) for number in range(3)])
    table.update("id > 0", {"v": "b"})
    log = table.system("binlog").stream(from_=2).poll().to_arrow().to_pylist()
    assert all(len(each["id"]) == 1 or len(set(each["id"])) == 1 for each in log)
    table.update("id = 0", {"v": "c"})
    log = table.system("binlog").stream(from_=3, columns=["rowkind", "id", "v"]).poll().to_arrow().to_pylist()
    assert log == [{"rowkind": "+U", "id": [0, 0], "v": ["a", "c"]}]


def test_the_option_reads_as_java_does():
    table = made(**{"streaming-read-append-overwrite": "false"})
    table.write_arrow([row(1)])
    table.update("id = 1", {"v": "b"})
    assert table.stream(from_=2).poll() is None and table.changes(1).count() == 0


def test_rows_that_lost_their_ids_are_compared_by_value(monkeypatch):
    table = made()
    table.write_arrow([row(1), row(2)])
    table.update("id = 1", {"v": "b"})
    monkeypatch.setattr(id_plan, "_lacks_ids", lambda _: True)
    assert sorted(told(table.stream(from_=2, columns=["id", "v"]).poll())) == [(1, "a", "-D"), (1, "b", "+I")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_consumer_keeps_what_it_must_compare(kind):
    table = made(**KINDS[kind])
    table.write_arrow([row(1)])
    table.write_arrow([row(2)])
    stream = table.stream(from_=1, consumer_id="c", columns=NAMES)
    for _ in range(2):
        stream.poll().acknowledge()
    table.update("id = 1", {"v": "b"})
    table.write_arrow([row(3)])
    assert table.expire_snapshots(retain_max=1, retain_min=1).snapshot_ids == (1,)
    assert told(table.stream(consumer_id="c", columns=NAMES).poll()) == [(1, "a", 0, "-U"), (1, "b", 0, "+U")]
    table.delete_consumer("c")
    position = stream.position
    table.expire_snapshots(retain_max=2, retain_min=2)
    with pytest.raises(SnapshotExpiredError):
        table.stream(from_=position, columns=NAMES).poll()


def test_ids_are_refused_where_rows_have_none():
    catalog = Catalog.open("memory://identified-not")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"id": "INT"}))
    table.write_arrow([{"id": 1}])
    for read in (lambda: table.changes(0, columns=["_ROW_ID"]), lambda: table.stream(columns=["_ROW_ID"])):
        with pytest.raises(UsageError, match="row-tracking.enabled"):
            read()
    with pytest.raises(UsageError, match="isin"):
        made().scan(row_ids=[1], options={"incremental-between": "1,2"})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_lives(kind, seed):
    chance = random.Random(seed)
    table = made(**KINDS[kind], **chance.choice([{}, {"write-buffer-size": "1 kb"}, {"metadata.stats-mode": "none"}]))
    names = [*COLUMNS, "_ROW_ID"]

    def some():
        return [row(chance.randrange(9), chance.choice("abc"), chance.choice("xy")) for _ in range(chance.randrange(1, 5))]

    table.write_arrow(some())
    stream, rows, states = table.stream(from_=1, columns=names, consumer_id="c"), {}, {0: {}}
    for _ in range(12):
        step = chance.randrange(8)
        if step < 2:
            table.write_arrow(some())
        elif step == 2:
            table.delete(col("id") == chance.randrange(9))
        elif step == 3:
            table.update(col("id") < chance.randrange(9), {"v": chance.choice("abc")})
        elif step == 4 and kind != "evolving":
            table.update(col("id") == chance.randrange(9), {"p": chance.choice("xy")})
        elif step == 5:
            table.compact(full=chance.random() < 0.5)
        elif step == 6:
            table.alter(AddColumn(f"c{len(table.schema.names)}", "INT"))
            table.refresh()
        elif step == 7:
            table.write_arrow([row(chance.randrange(9))], overwrite={"p": "x"})
        states[table.snapshot().id] = by_id(table.scan(columns=names))
        if chance.random() < 0.4:
            for each in iter(stream.poll, None):
                apply(rows, each.to_arrow())
                each.acknowledge()
            assert rows == states[table.snapshot().id]
    for _ in range(4):
        before, after = sorted(chance.sample(list(states), 2))
        for mode in ("auto", "diff"):
            found = dict(states[before])
            scan = table.changes(before, after, mode=mode, columns=names)
            apply(found, scan.to_arrow())
            assert found == states[after]
            wanted = Counter(map(str, (each for each in scan.to_arrow().to_pylist() if each["v"] == "a")))
            assert Counter(map(str, table.changes(before, after, mode=mode, columns=names, where="v = 'a'").to_arrow().to_pylist())) == wanted
