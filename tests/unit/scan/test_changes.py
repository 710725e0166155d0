"""`table.changes`: ends, modes, the order of changes, filters and columns, and diffs that make one state of another."""

from __future__ import annotations

import pickle
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, SnapshotExpiredError, SnapshotNotFoundError, TagNotFoundError, UsageError, col
from paimon_py.scan.scan import Scan

COLUMNS = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING"), ("n", "DOUBLE"), ("a", "ARRAY<INT>")])
TYPES = [pa.int32(), pa.int64(), pa.string(), pa.float64(), pa.list_(pa.int32()), pa.string()]


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "wh"))
    made.create_database("d")
    return made


def made(catalog, *, name="d.t", primary_key=("p", "k"), partition_by=("p",), **options):
    settings = {"bucket": "2", "write-only": "true", **options}
    return catalog.create_table(name, COLUMNS, primary_key=primary_key, partition_by=partition_by, options=settings)


def write(table, rows, **options):
    names = [*COLUMNS.names, "_row_kind"] if len(rows[0]) == 6 else COLUMNS.names
    table.write_arrow(pa.table([pa.array(c, t) for c, t in zip(zip(*rows), TYPES)], names), **options)


def row(p, k, v, kind="+I"):
    return (p, k, v, float(k), [k, None], kind)


def rows(scan):
    found = scan.to_arrow()
    assert scan.count() == found.num_rows
    return [tuple(each.values()) for each in found.to_pylist()]


@pytest.fixture
def life(catalog):
    table = made(catalog)
    write(table, [row(1, 1, "a"), row(1, 2, "a"), row(2, 1, "a")])
    write(table, [row(1, 1, "b", "+U"), row(1, 2, None, "-D")])
    table.compact(full=True)
    write(table, [row(1, 2, "c"), row(1, 1, "d", "+U")])
    return table


def test_delta_gives_what_was_written_in_the_order_in_which_it_happened(life):
    found = rows(life.changes(0, columns=["p", "k", "v"]))
    assert [(v, kind) for p, k, v, kind in found if (p, k) == (1, 1)] == [("a", "+I"), ("b", "+U"), ("d", "+U")]
    assert [(v, kind) for p, k, v, kind in found if (p, k) == (1, 2)] == [("a", "+I"), (None, "-D"), ("c", "+I")]
    assert len(found) == 7
    assert sorted(rows(life.changes(1, 3, columns=["k", "v"]))) == [(1, "b", "+U"), (2, None, "-D")]
    assert rows(life.changes(2, 3)) == []
    assert rows(life.changes(4)) == rows(life.changes(3, 3)) == []


def test_a_scan_of_changes_is_a_scan(life):
    scan = life.changes(1)
    assert isinstance(scan, Scan)
    assert scan.schema.names == [*COLUMNS.names, "_row_kind"]
    assert scan.schema.field("_row_kind").type == pa.string()
    assert scan.head(1).num_rows == 1
    assert life.changes(1, limit=2).count() == life.changes(1, limit=2).to_arrow().num_rows == 2
    assert pa.table(scan) == scan.to_arrow() == scan.to_reader().read_all()
    apart = [batch for split in scan.splits() for batch in scan.read(bytes(split))]
    assert pa.Table.from_batches(apart, scan.schema).sort_by("k") == scan.to_arrow().sort_by("k")
    assert pickle.loads(pickle.dumps(scan)).to_arrow() == scan.to_arrow()
    plan = scan.explain(analyze=True)
    assert (plan.since, plan.snapshot_id, plan.analysis.rows_returned) == (1, 4, 4)
    assert "changes after 1 up to 4" in str(plan)
    assert repr(scan) == f"Scan({life.location!r}, start=1, mode='auto')"
    assert not scan.to_pandas().empty
    assert not scan.to_polars().is_empty()


WHERES = {
    "p = 1": col("p") == 1,
    "k = 2": col("k") == 2,
    "v = 'd'": col("v") == "d",
    "_row_kind = '+U'": col("_row_kind") == "+U",
    "k = 1 AND _row_kind <> '-D'": (col("k") == 1) & (col("_row_kind") != "-D"),
    "v IS NULL": col("v").is_null(),
    "n > 1 OR _row_kind = '+U'": "n > 1 OR _row_kind = '+U'",
}


@pytest.mark.parametrize("mode", ["delta", "diff"])
@pytest.mark.parametrize("text", WHERES)
def test_filters_keep_exactly_the_changes_that_match(life, text, mode):
    with duckdb.connect() as connection:
        connection.register("whole", life.changes(1, mode=mode).to_arrow().drop_columns(["a"]))
        wanted = connection.execute(f"select * from whole where {text}").fetchall()
    filtered = life.changes(1, where=WHERES[text], mode=mode, columns=["p", "k", "v", "n"])
    assert sorted(rows(filtered), key=str) == sorted(wanted, key=str)


@pytest.mark.parametrize("mode", ["auto", "delta", "diff"])
def test_changes_between_the_ids_of_snapshots_travel(life, mode):
    """The id of a snapshot also holds its mark: it is no plain number."""
    first, *_, last = life.snapshots()
    scan = life.changes(first.id, last.id, mode=mode)
    found = [given for split in scan.splits() for given in scan.read(bytes(split)).read_all().to_pylist()]
    assert found == scan.to_arrow().to_pylist() == pickle.loads(pickle.dumps(scan)).to_arrow().to_pylist()
    assert len(found) > 0


def test_kinds_come_last_or_where_they_are_named(life):
    assert life.changes(1, columns=["v", "k"]).to_arrow().column_names == ["v", "k", "_row_kind"]
    assert life.changes(1, columns=["_row_kind", "k"]).to_arrow().column_names == ["_row_kind", "k"]
    assert life.changes(1, columns=[]).to_arrow().column_names == ["_row_kind"]
    with pytest.raises(UsageError, match="column 'w' does not exist"):
        life.changes(1, columns=["w"])


def test_ends_are_ids_tags_and_times(life):
    life.create_tag("first", snapshot_id=1)
    life.create_tag("third", snapshot_id=3)
    wanted = rows(life.changes(1, 3))
    assert rows(life.changes("first", "third")) == rows(life.changes("first", 3)) == wanted
    times = [snapshot.time_millis for snapshot in life.snapshots()]
    moments = [datetime.fromtimestamp(time / 1000, timezone.utc) for time in times]
    if len(set(times)) == len(times):
        assert rows(life.changes(moments[0], moments[2])) == wanted
    assert len(rows(life.changes(moments[0] - timedelta(days=1)))) == 7
    assert rows(life.changes(moments[0] - timedelta(days=2), moments[0] - timedelta(days=1))) == []


@pytest.mark.parametrize(
    "arguments, error, word",
    [
        ((3, 1), UsageError, "end before they begin"),
        (("third", "first"), UsageError, "end before they begin"),
        (("third", 1), UsageError, "an earlier state comes first"),
        ((None,), UsageError, "begin after a state"),
        ((-1,), UsageError, "0 for the empty table"),
        ((True,), UsageError, "not True"),
        ((1.5,), UsageError, "not 1.5"),
        ((1, object()), UsageError, "a snapshot id, the name of a tag or a datetime"),
        ((1, 99), SnapshotNotFoundError, "no snapshot 99"),
        ((99, None), SnapshotNotFoundError, "no snapshot 99"),
        (("nothing",), TagNotFoundError, "nothing"),
        ((1, "nothing"), TagNotFoundError, "nothing"),
    ],
)
def test_ends_that_are_none_are_refused(life, arguments, error, word):
    life.create_tag("first", snapshot_id=1)
    life.create_tag("third", snapshot_id=3)
    with pytest.raises(error, match=word):
        life.changes(*arguments).to_arrow()


def test_modes_that_are_none_or_do_not_go_with_the_table_are_refused(life):
    for mode in ("all", "Delta", None, 3):
        with pytest.raises(UsageError, match="mode is one of"):
            life.changes(1, mode=mode)
    with pytest.raises(UsageError, match="writes no changelog"):
        life.changes(1, mode="changelog").to_arrow()


def test_changes_whose_snapshots_have_expired_name_the_retention(life):
    Path(life.location, "snapshot", "snapshot-1").unlink()
    Path(life.location, "snapshot", "EARLIEST").write_text("2")
    with pytest.raises(SnapshotExpiredError, match=r"snapshot 1 .*snapshot\.time-retained"):
        life.changes(0).to_arrow()
    with pytest.raises(SnapshotExpiredError, match=r"snapshot 1 .*snapshot\.num-retained\.min"):
        life.changes(1, mode="diff").to_arrow()
    assert len(rows(life.changes(2))) == 2
    assert len(rows(life.changes(1))) == 4, "the state before the changes need not be there"


def test_changes_outlive_their_snapshots_where_changelogs_are_kept(life):
    whole = rows(life.changes(0))
    (kept := Path(life.location, "changelog")).mkdir()
    for number in (1, 2):
        Path(life.location, "snapshot", f"snapshot-{number}").rename(kept / f"changelog-{number}")
    Path(life.location, "snapshot", "EARLIEST").write_text("3")
    assert rows(life.changes(0)) == whole
    assert len(rows(life.changes(0, 2))) == 5
    assert len(rows(life.changes(1, 2))) == 2
    with pytest.raises(SnapshotExpiredError, match="snapshot 1 "):
        life.changes(1, mode="diff").to_arrow()


def test_a_tag_of_another_history_is_refused(life):
    life.create_tag("here", snapshot_id=2)
    path = Path(life.location, "tag", "tag-here")
    path.write_text(path.read_text().replace("manifest-list-", "manifest-list-x"))
    with pytest.raises(UsageError, match="is no longer in the table's history"):
        life.changes("here").to_arrow()


def test_changes_of_an_empty_table_are_none(catalog):
    table = made(catalog)
    for mode in ("auto", "delta", "diff"):
        assert rows(table.changes(0, mode=mode)) == []
    with pytest.raises(SnapshotNotFoundError):
        table.changes(1).to_arrow()


def test_a_diff_is_one_net_change_a_key(life):
    assert sorted(rows(life.changes(1, mode="diff", columns=["p", "k", "v"]))) == [(1, 1, "d", "+U"), (1, 2, "c", "+U")]
    assert sorted(rows(life.changes(1, 2, mode="diff", columns=["k", "v"]))) == [(1, "b", "+U"), (2, "a", "-D")]
    assert rows(life.changes(2, 3, mode="diff")) == []
    assert sorted(rows(life.changes(0, 1, mode="diff", columns=["k", "v"]))) == [(1, "a", "+I"), (1, "a", "+I"), (2, "a", "+I")]


def test_a_diff_of_nested_values_and_zeros_sees_every_bit(catalog):
    table = made(catalog, partition_by=(), primary_key=("k",))
    write(table, [(1, k, "x", 0.0, [1, None]) for k in range(6)])
    write(table, [(1, 0, "x", 0.0, [1, None]), (1, 1, "x", -0.0, [1, None]), (1, 2, "x", 0.0, [1]), (1, 3, "x", 0.0, None),
                  (1, 4, "x", None, [1, None]), (1, 5, "x", float("nan"), [1, None])])  # fmt: skip
    assert sorted(rows(table.changes(1, mode="diff", columns=["k"]))) == [(k, "+U") for k in range(1, 6)]
    write(table, [(1, 5, "x", float("nan"), [1, None])])
    assert rows(table.changes(2, mode="diff")) == []


def test_files_that_both_states_have_are_not_read(catalog):
    table = made(catalog, **{"target-file-size": "1 kb", "file.format": "parquet"})
    write(table, [row(p, k, "a") for p in (1, 2) for k in range(50)])
    table.compact(full=True)
    write(table, [row(1, 7, "b")])
    plan = table.changes(2, mode="diff").explain()
    assert plan.skipped.same > 0
    assert {split.partition for split in plan.splits} == {plan.splits[0].partition}
    assert rows(table.changes(2, mode="diff", columns=["p", "k", "v"])) == [(1, 7, "b", "+U")]


LIVES = {
    "plain": {},
    "compacted": {"write-only": "false", "num-sorted-run.compaction-trigger": "2"},
    "small files": {"write-only": "false", "target-file-size": "1 kb", "num-sorted-run.compaction-trigger": "2"},
    "vectors": {"write-only": "false", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "2"},
    "first row": {"write-only": "false", "merge-engine": "first-row", "num-sorted-run.compaction-trigger": "2"},
    "partial": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "sum": {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "max"},
    "sequence": {"sequence.field": "n", "write-only": "false", "num-sorted-run.compaction-trigger": "3"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "5"},
    "orc": {"file.format": "orc", "ignore-delete": "true"},
    "avro": {"file.format": "avro", "bucket": "1"},
}


def state(table, number):
    return {(each[0], each[1]): each for each in rows(table.scan(snapshot_id=number))}


def live(table, rng, steps, deletes):
    for _ in range(steps):
        choice = rng.random()
        if choice < 0.15:
            table.compact(full=rng.random() < 0.5)
        elif choice < 0.22:
            p = rng.randrange(3)
            write(table, [row(p, k, "over") for k in range(rng.randrange(1, 6))], overwrite={"p": p})
        else:
            keys = {(rng.randrange(3), rng.randrange(40)) for _ in range(rng.randrange(1, 20))}
            kinds = ("+I", "+U", "-D") if deletes else ("+I", "+U")
            write(table, [(p, k, rng.choice(["a", "b", "c", None]), float(rng.randrange(4)), [rng.randrange(2)], rng.choice(kinds))
                          for p, k in keys])  # fmt: skip


@pytest.mark.parametrize("kind", LIVES)
def test_a_diff_makes_one_state_of_another(catalog, kind):
    rng = random.Random(kind)
    table = made(catalog, **LIVES[kind])
    live(table, rng, 8, deletes=kind not in ("first row", "sum"))
    last = table.snapshot().id
    states = {number: state(table, number) for number in range(1, last + 1)} | {0: {}}
    for _ in range(6):
        a, b = sorted((rng.randrange(last + 1), rng.randrange(1, last + 1)))
        found, seen = dict(states[a]), set()
        for *values, change in rows(table.changes(a, b, mode="diff")):
            key = (values[0], values[1])
            assert key not in seen, "one change a key"
            seen.add(key)
            assert (change == "+I") == (key not in states[a]), (key, change)
            assert (change == "-D") == (key not in states[b]), (key, change)
            assert states[a].get(key) != tuple(values) or change == "-D"
            found.pop(key, None)
            if change != "-D":
                found[key] = tuple(values)
        assert found == states[b], (a, b)


def test_a_diff_sees_rows_that_only_deletion_vectors_took_away(catalog):
    """The file is the same in both states, and nothing else has its keys."""
    table = made(catalog, partition_by=(), primary_key=("k",), bucket="1", **{"deletion-vectors.enabled": "true"})
    write(table, [row(1, k, "a") for k in range(9)])
    table.compact(full=True)
    before, names = table.snapshot().id, [file.name for split in table.scan().splits() for file in split.files]
    write(table, [row(1, k, None, "-D") for k in (3, 5)])
    table.compact()
    assert [file.name for split in table.scan().splits() for file in split.files] == names
    assert sorted(rows(table.changes(before, mode="diff", columns=["k"]))) == [(3, "-D"), (5, "-D")]


def test_a_diff_sees_through_other_numbers_of_buckets(catalog):
    table = made(catalog)
    write(table, [row(p, k, "a") for p in (1, 2) for k in range(20)])
    table.rescale(5)
    write(table, [row(1, 3, "b"), row(1, 4, None, "-D")])
    assert sorted(rows(table.changes(1, mode="diff", columns=["p", "k", "v"])), key=str) == [(1, 3, "b", "+U"), (1, 4, "a", "-D")]


def test_a_key_that_moves_to_another_partition_is_one_change(catalog):
    table = made(catalog, primary_key=("k",), bucket="-1")
    write(table, [row(1, 1, "a"), row(1, 2, "a")])
    write(table, [row(2, 1, "b")])
    assert rows(table.changes(1, mode="diff", columns=["p", "k", "v"])) == [(2, 1, "b", "+U")]
