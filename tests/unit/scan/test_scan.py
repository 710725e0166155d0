"""Questions to `Scan`: does it return the right rows of the right state, read no more than it must, and explain itself?"""

from __future__ import annotations

import pickle
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from unit.scan.build import opened, rows, table

from paimon_py.errors import (
    CorruptionError,
    SnapshotExpiredError,
    SnapshotNotFoundError,
    TagNotFoundError,
    UsageError,
)
from paimon_py.expr.column import col
from paimon_py.files import reader as file_reader
from paimon_py.scan import parcel
from paimon_py.scan.scan import Scan
from paimon_py.scan.split import Split
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.schema_changes import AddColumn, RenameColumn, SetOption

FIELDS = [("p", "STRING"), ("k", "INT NOT NULL"), ("v", "BIGINT"), ("s", "STRING")]


def batch(data, kinds=None):
    columns = {
        "p": pa.array([row[0] for row in data], pa.string()),
        "k": pa.array([row[1] for row in data], pa.int32()),
        "v": pa.array([row[2] for row in data], pa.int64()),
        "s": pa.array([f"s{row[2]}" for row in data]),
    }
    if kinds is not None:
        columns["_row_kind"] = pa.array(kinds)
    return pa.table(columns)


@pytest.fixture
def keyed():
    """Two partitions, two buckets; snapshot 2 replaces and deletes some rows of snapshot 1."""
    made = table(FIELDS, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2"})
    made.write_arrow(batch([(p, k, k) for p in "ab" for k in range(10)]))
    made.write_arrow(batch([("a", 3, 30), ("a", 4, 40), ("b", 5, None)], ["+U", "-D", "+I"]))
    return made


@pytest.fixture
def plain():
    """An append table of three commits."""
    made = table(FIELDS)
    for start in (0, 10, 20):
        made.write_arrow(batch([("x", k, k * k) for k in range(start, start + 10)]))
    return made


def latest(p):
    found = {k: (p, k, k, f"s{k}") for k in range(10)}
    if p == "a":
        found[3] = ("a", 3, 30, "s30")
        del found[4]
    else:
        found[5] = ("b", 5, None, "sNone")
    return sorted(found.values(), key=repr)


def test_the_newest_version_of_every_key_is_returned_and_deleted_ones_are_not(keyed):
    assert rows(keyed.scan()) == sorted(latest("a") + latest("b"), key=repr)
    assert keyed.scan().count() == 19


def test_earlier_states_are_read_by_snapshot_tag_and_time(keyed):
    keyed.create_tag("first", snapshot_id=1)
    first = keyed.snapshot(1)
    for chosen in ({"snapshot_id": 1}, {"tag": "first"}, {"options": {"scan.version": "first"}}):
        assert keyed.scan(**chosen).count() == 20
    assert keyed.scan(timestamp=keyed.snapshot(2).time_millis).count() in (19, 20)
    assert keyed.scan(timestamp=datetime(2200, 1, 1, tzinfo=timezone.utc)).count() == 19
    with pytest.raises(SnapshotNotFoundError):
        keyed.scan(timestamp=first.time_millis - 1).count()
    with pytest.raises(SnapshotNotFoundError):
        keyed.scan(snapshot_id=9).count()
    with pytest.raises(TagNotFoundError):
        keyed.scan(tag="none").count()


def test_a_scan_of_a_snapshot_has_the_schema_of_that_snapshot(plain):
    plain.alter(RenameColumn("v", "w"), AddColumn("x", "DOUBLE"))
    assert plain.scan().schema.names == ["p", "k", "w", "s", "x"]
    assert plain.scan(where=col("w") == 4).to_arrow().to_pylist() == [{"p": "x", "k": 2, "w": 4, "s": "s4", "x": None}]
    assert plain.scan(snapshot_id=3).schema.names == ["p", "k", "v", "s"]
    assert plain.scan(snapshot_id=3, where="v = 4", columns=["k"]).to_arrow().to_pylist() == [{"k": 2}]
    with pytest.raises(UsageError, match="'w'"):
        plain.scan(snapshot_id=3, where="w = 4").to_arrow()


def test_an_empty_table_is_empty_and_has_its_schema():
    empty = table(FIELDS)
    scan = empty.scan(columns=["s", "k"])
    assert scan.to_arrow().equals(
        pa.schema([pa.field("s", pa.string()), pa.field("k", pa.int32(), False)]).empty_table()
    )
    assert (scan.count(), scan.splits(), scan.head(3).num_rows) == (0, [], 0)
    assert "empty table" in str(scan.explain())


def test_columns_come_in_the_order_asked_for(keyed):
    assert keyed.scan(columns=["v", "p"], where="p = 'a' AND k = 3").to_arrow().to_pylist() == [{"v": 30, "p": "a"}]
    assert keyed.scan(columns=[]).to_arrow().num_rows == 19
    assert keyed.scan(columns=[], where=col("v") > 5).to_arrow().num_rows == keyed.scan(where="v > 5").count() == 9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"columns": ["K"]}, "did you mean 'k'"),
        ({"columns": ["zzzz"]}, "columns: p, k, v, s"),
        ({"columns": ["k", "k"]}, "more than once"),
        ({"columns": "k"}, "list of names"),
        ({"columns": [3]}, "names"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"where": col("w") == 1}, "column 'w' does not exist"),
        ({"where": "k = 'x'"}, "k"),
        ({"where": "k = "}, "position|expected|end"),
    ],
)
def test_a_wrong_call_is_refused_when_it_is_made(keyed, call, message):
    with pytest.raises(UsageError, match=message):
        keyed.scan(**call)


@pytest.mark.parametrize(
    "where", ["p = 'a'", "k = 3", "v > 5", "p = 'b' AND (k < 3 OR v IS NULL)", "s LIKE 's3%'", "k IN (1, 3)"]
)
def test_filters_are_exact_before_and_after_the_merge(keyed, where):
    everything = [row for p in "ab" for row in latest(p)]
    answer = {
        "p = 'a'": lambda p, k, v, s: p == "a",
        "k = 3": lambda p, k, v, s: k == 3,
        "v > 5": lambda p, k, v, s: v is not None and v > 5,
        "p = 'b' AND (k < 3 OR v IS NULL)": lambda p, k, v, s: p == "b" and (k < 3 or v is None),
        "s LIKE 's3%'": lambda p, k, v, s: s.startswith("s3"),
        "k IN (1, 3)": lambda p, k, v, s: k in (1, 3),
    }[where]
    assert rows(keyed.scan(where=where)) == sorted((row for row in everything if answer(*row)), key=repr)
    assert keyed.scan(where=where).count() == len(rows(keyed.scan(where=where)))


def test_an_older_version_that_matches_does_not_stand_for_a_newer_one(keyed):
    assert keyed.scan(where="p = 'a' AND v = 3").count() == 0
    assert keyed.scan(where="v = 4").count() == 1


@pytest.mark.parametrize("limit", [0, 1, 9, 10, 11, 20, 21, 29, 30, 31])
def test_a_limit_plans_the_files_that_it_needs_and_no_split_without_files(plain, limit):
    """Three files of ten rows."""
    small = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}
    planned = [len(split.files) for split in plain.scan(limit=limit, options=small).splits()]
    assert sum(planned) == min(3, -(-limit // 10)) and 0 not in planned


def test_limit_and_head_stop_early(plain):
    plain._root.store.reset()
    assert plain.scan(limit=5).to_arrow().num_rows == 5
    assert len(opened(plain)) == 1
    assert plain.scan(limit=25).head(7)["k"].to_pylist() == list(range(7))
    assert plain.scan(limit=3).head(7).num_rows == 3
    assert (plain.scan(limit=0).to_arrow().num_rows, plain.scan(limit=12).count(), plain.scan(limit=99).count()) == (
        0,
        12,
        30,
    )


def test_counting_an_append_table_opens_no_file(plain):
    plain._root.store.reset()
    assert plain.scan().count() == 30
    assert opened(plain) == []


def test_partitions_buckets_keys_and_statistics_leave_files_out(keyed, plain):
    explained = keyed.scan(where="p = 'a' AND k = 3").explain()
    assert (explained.skipped.partition, explained.skipped.bucket > 0, explained.pushed.bucket) == (3, True, True)
    assert explained.file_count <= 2
    assert keyed.scan(where="k > 100").splits() == []
    assert keyed.scan(where="k > 100").explain().skipped.key > 0
    found = plain.scan(where="v = 400").explain()
    assert (found.skipped.stats, found.file_count) == (2, 1)
    text = str(found)
    assert "statistics 2" in text and 'col("v") == 400' in text and text == repr(found)


def test_statistics_do_not_tear_a_section_of_several_runs_apart():
    made = table([("k", "INT NOT NULL"), ("v", "INT")], primary_key=["k"], options={"bucket": "1"})

    def write(*pairs):
        keys, values = zip(*pairs, strict=True)
        made.write_arrow(pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32())}))

    write((1, 7), (2, 7))
    write((1, 0))
    write((8, 1))
    assert rows(made.scan(where="v = 7")) == [(2, 7)]
    assert made.scan(where="v = 7").explain().skipped.stats == 1
    assert made.scan(where="v = 9").splits() == []


@pytest.mark.parametrize("together", [True, False])
def test_system_columns_and_unwanted_columns_are_not_decoded(monkeypatch, together):
    made = table(FIELDS, primary_key=["k"], options={"bucket": "1"})
    made.write_arrow(batch([("x", k, k) for k in range(6)]))
    made.write_arrow(batch([("x", k, -k) for k in range(3)]))
    seen = []
    real = file_reader.FileReader

    def spy(store, path, file, schema, fields, **more):
        seen.append([field.name for field in fields])
        return real(store, path, file, schema, fields, **more)

    def expect(self, files, file, fields, real=parcel.SmallFiles.expect):
        seen.append([field.name for field in fields])
        return real(self, files, file, fields)

    if together:
        monkeypatch.setattr(parcel.SmallFiles, "expect", expect)
    else:
        monkeypatch.setattr(parcel, "is_small", lambda _file: False)
        monkeypatch.setattr(file_reader, "FileReader", spy)
    assert made.scan(columns=["v"]).to_arrow().num_rows == 6
    assert seen == [["k", "v"], ["k", "v"]]
    seen.clear()
    made.write_arrow(batch([("x", 1, 1)], ["-D"]))
    assert made.scan(columns=["v"]).count() == 5
    assert seen == ([] if together else [["k", "_VALUE_KIND"]] * 3)  # a count reads one split after the other


def test_sequence_fields_decide_and_nulls_lose():
    options = {"bucket": "1", "sequence.field": "v"}
    made = table(FIELDS, primary_key=["k"], options=options)
    made.write_arrow(batch([("new", 1, 9), ("new", 2, 1), ("old", 3, None)]))
    made.write_arrow(batch([("late", 1, 8), ("late", 2, 1), ("late", 3, 0)]))
    assert rows(made.scan(columns=["k", "p"])) == [(1, "new"), (2, "late"), (3, "late")]
    descending = table(FIELDS, primary_key=["k"], options={**options, "sequence.field.sort-order": "descending"})
    descending.write_arrow(batch([("new", 1, 1), ("old", 2, None)]))
    descending.write_arrow(batch([("late", 1, 8), ("late", 2, 7)]))
    assert rows(descending.scan(columns=["k", "p"])) == [(1, "new"), (2, "late")]


def test_splits_are_read_in_another_process_as_values_or_bytes(keyed):
    scan = keyed.scan(columns=["k", "v"], where="v >= 0")
    splits = [Split.from_bytes(bytes(split)) for split in scan.splits()]
    there = pickle.loads(pickle.dumps(scan))
    read = pa.concat_tables([there.read(split).read_all() for split in splits])
    assert sorted(map(repr, read.to_pylist())) == sorted(map(repr, scan.to_arrow().to_pylist()))
    assert there.read(bytes(splits[0])).schema == scan.schema


def test_a_split_of_another_schema_is_refused(plain):
    split = plain.scan(snapshot_id=1).splits()[0]
    plain.alter(AddColumn("x", "INT"))
    with pytest.raises(UsageError, match="schema"):
        plain.scan().read(split)


def test_one_scan_sees_one_state(plain):
    scan = plain.scan()
    assert scan.count() == 30
    plain.write_arrow(batch([("x", 99, 99)]))
    assert (scan.to_arrow().num_rows, plain.scan().count()) == (30, 31)
    assert pickle.loads(pickle.dumps(scan)).count() == 30


def test_files_lost_to_expiry_are_told_from_damage(plain):
    scan = plain.scan(snapshot_id=1)
    store, (split,) = plain._root.store, scan.splits()
    store.delete(f"/warehouse/db.db/t/bucket-0/{split.files[0].name}")
    with pytest.raises(CorruptionError, match="does not exist, but snapshot"):
        scan.to_arrow()
    store.delete(snapshot_path("/warehouse/db.db/t", 1))
    with pytest.raises(SnapshotExpiredError, match="create_tag") as caught:
        scan.to_arrow()
    assert caught.value.snapshot_id == 1


def test_everything_arrow_speaks_takes_a_scan(plain):
    scan = plain.scan(columns=["k", "v"], where="k < 3")
    expected = {"k": [0, 1, 2], "v": [0, 1, 4]}
    assert pa.table(scan).to_pydict() == pa.RecordBatchReader.from_stream(scan).read_all().to_pydict() == expected
    assert scan.to_reader().schema == scan.schema == scan.to_arrow().schema
    pandas, polars, duckdb = map(pytest.importorskip, ("pandas", "polars", "duckdb"))
    assert isinstance(scan.to_pandas(), pandas.DataFrame)
    assert isinstance(scan.to_polars(), polars.DataFrame)
    connection = duckdb.connect()
    assert scan.to_duckdb(connection, "squares").fetchall() == [(0, 0), (1, 1), (2, 4)]
    for _ in range(2):
        assert connection.sql("select sum(v) from squares").fetchall() == [(5,)]


def test_a_scan_prints_what_it_reads(plain):
    assert repr(plain.scan()) == "Scan('/warehouse/db.db/t', latest)"
    shown = repr(plain.scan(snapshot_id=2, columns=["k"], where="k > 1", limit=3))
    assert shown == "Scan('/warehouse/db.db/t', snapshot_id=2, columns=['k'], where=col(\"k\") > 1, limit=3)"


def test_a_scan_is_made_without_a_request_when_it_reads_the_latest_state(plain):
    plain._root.store.reset()
    scan = Scan(plain._root, plain.schema, columns=["k"], where="v > 3")
    assert scan.schema.names == ["k"]
    assert plain._root.store.paths == []


def test_a_scan_of_one_bucket_reads_no_other(keyed):
    whole = sorted(rows(keyed.scan()))
    parts = [keyed.scan(options={"scan.bucket": str(bucket)}) for bucket in (0, 1)]
    assert sorted(row for part in parts for row in rows(part)) == whole
    assert all(rows(part) and {split.bucket for split in part.splits()} == {number} for number, part in enumerate(parts))
    assert [part.count() for part in parts] == [len(rows(part)) for part in parts]
    assert keyed.scan(options={"scan.bucket": "9"}).count() == 0


def test_a_table_of_one_bucket_changes_rows_of_every_bucket(keyed):
    keyed.alter(SetOption("scan.bucket", "1"))
    limited = keyed.refresh()
    one, every = rows(limited.scan()), [*rows(limited.scan()), *rows(limited.scan(options={"scan.bucket": "0"}))]
    assert 0 < len(one) < len(every)
    assert limited.lookup([{"p": row[0], "k": row[1]} for row in every]).num_rows == len(every)
    number = limited.snapshot().id
    told = [len(rows(limited.changes(number - 1, number, mode=mode))) for mode in ("delta", "diff")]
    assert told == [1, 1] or max(told) < 3
    step = next(limited.stream())
    assert sum(batch.num_rows for batch in step.to_reader()) == len(one)
    assert limited.delete("true").deleted == len(every)
