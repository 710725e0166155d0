"""Every kind of wrong call has its own error, says what is wrong and what would be right, and touches no file."""

from __future__ import annotations

import datetime
import decimal
import json
import tarfile
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from locate import CORPUS
from unit.public import KEYED, QUICK, ROWS, append_table, env, files, keyed_table, new_catalog, refused, reopened

import paimon_py as pp
from paimon_py import (
    AlreadyExistsError,
    BranchNotFoundError,
    Catalog,
    Changes,
    CommitConflictError,
    CorruptionError,
    DatabaseNotFoundError,
    NotFoundError,
    OptionError,
    Schema,
    SchemaError,
    SnapshotNotFoundError,
    Table,
    TableNotFoundError,
    TagNotFoundError,
    UnsupportedError,
    UsageError,
    col,
)
from paimon_py.types import Split

INT = pa.int32()


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    return new_catalog(tmp_path_factory.mktemp("bad") / "w")


@pytest.fixture(scope="module")
def keyed(catalog):
    return keyed_table(catalog)


@pytest.fixture(scope="module")
def wide(catalog):
    return append_table(catalog)


def one(**columns):
    return pa.table(columns)


# -- what is written ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    ["k=1", b"x", None, 5, {"k": [1]}, object(), KEYED, ROWS["k"], [5], iter(["k=1"])],
    ids=lambda data: type(data).__name__,
)
def test_what_is_not_arrow_is_refused(keyed, data):
    with refused(keyed, UsageError, "Arrow"):
        keyed.write_arrow(data)


def test_all_columns_of_wrong_types_are_in_one_error(wide):
    data = one(i=["a"], s=[1], d=["2020"], t=[1.5], r=[1], n=[True], zz=[1])
    with refused(wide, SchemaError, "string given, INT needed", "int64 given, VARCHAR(3) needed") as caught:
        wide.write_arrow(data)
    text = str(caught.value)
    assert set(caught.value.fields) == {"i", "s", "d", "t", "r", "n", "zz"}
    for words in (
        "i: string given, INT needed; cast it to pyarrow int32",
        "d: string given, DATE needed",
        "t: double given, TIMESTAMP(3) needed",
        "r: int64 given, ROW<x INT NOT NULL, y STRING> needed",
        "n: bool given, DECIMAL(4, 2) needed",
        "zz: int64 given, the table has no such column; leave it out, or add it with table.alter",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (one(i=pa.array([2**40])), ("column i: 1099511627776 (row 0", "does not fit INT", "widen the column")),
        (one(i=[1.5]), ("i: double given, INT needed",)),
        (one(n=[decimal.Decimal("123.45")]), ("n", "DECIMAL(4, 2)")),
        (one(n=[decimal.Decimal("1.234")]), ("column n: 1.234 (row 0, decimal128(4, 3)) does not fit DECIMAL(4, 2)",)),
        (one(t=pa.array([1], pa.timestamp("us"))), ("column t", "TIMESTAMP(3)", "without loss")),
        (one(s=["abcd"]), ("column s: 'abcd' (row 0, 4 characters)", "VARCHAR(3)", "shorten it, or widen the column")),
        (one(c=["abc"]), ("column c", "3 characters", "CHAR(2)")),
        (one(b=[b"abc"]), ("column b: b'abc' (row 0, 3 bytes)", "BINARY(2)")),
        (one(vb=[b"abc"]), ("column vb", "3 bytes", "VARBINARY(2)")),
        (one(q=pa.array([None], INT)), ("column q is NOT NULL", "1 of 1 rows", "fill them, or make")),
        (one(r=[{"x": None, "y": "a"}]), ("column r.x is NOT NULL",)),
        (one(r=[{"y": "a"}]), ("r.x", "NOT NULL field 'x' is missing")),
        (one(r=[{"x": 1, "z": 2}]), ("r: ", "no field 'z'", "leave it out")),
        (one(a=pa.array([[1, None]], pa.list_(INT))), ("column a.element is NOT NULL",)),
        (one(m=pa.array([[("a", None)]], pa.map_(pa.string(), INT))), ("column m.value is NOT NULL",)),
        (one(I=pa.array([1], INT)), ("I: int32 given", "is it 'i'?")),
        (one(i=pa.nulls(1, pa.null()), nope=[1]), ("nope",)),
        (pa.Table.from_arrays([pa.array([1], INT)] * 2, names=["i", "i"]), ("i: given 2 times; keep one",)),
    ],
    ids=lambda value: value.column_names[0] if isinstance(value, pa.Table) else "",
)
def test_a_value_that_does_not_fit_is_refused(wide, data, words):
    with refused(wide, SchemaError, *words):
        wide.write_arrow(data)


@pytest.mark.parametrize("name", ["p", "k"])
def test_keys_must_be_there_and_not_null(keyed, name):
    with refused(keyed, SchemaError, f"{name}: missing", "NOT NULL needed; add it"):
        keyed.write_arrow(ROWS.drop_columns([name]))
    column = pa.nulls(2, KEYED.field(name).type)
    with refused(keyed, SchemaError, f"column {name} is NOT NULL", "2 of 2 rows"):
        keyed.write_arrow(ROWS.set_column(KEYED.get_field_index(name), name, column))


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["+I", "X"], ("'X'", "not a row kind: +I, -U, +U, -D")),
        (["+I", ""], ("''",)),
        (["+i", "+I"], ("'+i'",)),
        (pa.array(["+I", None]), ("NULL", "one of +I")),
        (pa.nulls(2), ("must be one string column", "null")),
        ([1, 2], ("must be one string column", "int64")),
        (pa.array([0, 4], pa.int8()), ("4",)),
        (pa.array([b"+I", b"-D"]), ("binary",)),
        (pa.array([[1], []]), ("list",)),
    ],
)
def test_wrong_row_kinds_are_refused(keyed, kinds, words):
    with refused(keyed, UsageError, "_row_kind", *words):
        keyed.write_arrow(ROWS.append_column("_row_kind", kinds if isinstance(kinds, pa.Array) else pa.array(kinds)))


def test_append_tables_know_no_row_kinds(wide):
    with refused(wide, UsageError, "_row_kind needs a table with a primary key; leave the column out"):
        wide.write_arrow(one(i=pa.array([1], INT), _row_kind=["+I"]))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (lambda: pd.DataFrame({"i": [1, "a"]}), ("column i: 'a' (row 1) does not fit INT: pass a whole number",)),
        (lambda: pd.DataFrame({"i": [1, 2**70]}), ("column i: 1180591620717411303424 (row 1) does not fit INT",)),
        (lambda: pd.DataFrame({"i": [1, None]}), ("frame['i'].astype('Int32')",)),
        (lambda: pd.DataFrame({"d": pd.to_datetime(["2024-02-29"])}), ("d: timestamp", "frame['d'].dt.date")),
        (lambda: pd.DataFrame([[1, 2]], columns=["i", "i"]), ("Duplicate column names",)),
        (lambda: pd.DataFrame({"i": [1.5]}), ("i: double given",)),
        (lambda: pl.DataFrame({"i": [object()]}, schema={"i": pl.Object}), ("i: ",)),
        (lambda: pl.DataFrame({"s": ["abcd"]}), ("VARCHAR(3)",)),
    ],
)
def test_frames_that_do_not_fit_are_refused(wide, frame, words):
    before = files(wide.location)
    with pytest.raises(UsageError) as caught:
        wide.write_arrow(frame())
    assert all(word in str(caught.value) for word in words), caught.value
    assert files(wide.location) == before


@pytest.mark.parametrize("format_name", ["parquet", "orc", "avro"])
def test_text_that_is_not_utf_8_is_refused(catalog, format_name):
    table = catalog.create_table(f"d.utf_{format_name}", Schema([("s", "STRING")]), options={"file.format": format_name})
    text = pa.array([b"\xff\xfe"]).view(pa.string())
    with refused(table, SchemaError, "not UTF-8"):
        table.write_arrow(one(s=text))


def test_an_error_of_the_input_reaches_the_caller_and_leaves_no_file(wide):
    def batches():
        yield pa.record_batch({"i": pa.array(range(1000), INT)})
        raise ZeroDivisionError("in the source")

    with refused(wide, ZeroDivisionError, "in the source"):
        wide.write_arrow(pa.RecordBatchReader.from_batches(pa.schema([("i", INT)]), batches()))


def test_a_late_bad_row_undoes_early_good_files(catalog):
    table = catalog.create_table("d.late", pa.schema([("i", INT)]), options={"target-file-size": "1 kb"})
    good = pa.record_batch({"i": pa.array(range(50_000), INT)})
    bad = pa.record_batch({"i": pa.array([2**40])})
    with refused(table, SchemaError, "column i: 1099511627776"), table.writer() as writer:
        writer.write_arrow(good)
        writer.write_arrow(bad)


# -- overwrite, commit, partitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overwrite", "words"),
    [
        (5, ('overwrite takes {"month": 3}, {} or "dynamic"', "5")),
        (True, ("overwrite takes",)),
        (["p"], ("overwrite takes",)),
        (b"dynamic", ("overwrite takes",)),
        ("static", ("overwrite takes", "'static'")),
        ({"q": 1}, ("'q' is not a partition key", "its keys: p")),
        ({"k": 1}, ("'k' is not a partition key",)),
        ({1: 2}, ("1 is not a partition key",)),
        ({"p": "abc"}, ("p='abc' does not fit",)),
        ({"p": [1]}, ("p=[1] does not fit",)),
        ({"p": 2**40}, ("p=1099511627776 does not fit",)),
        ({"p": 1}, ("rows of partition p=2 are outside the partition to overwrite",)),
        ({"p": None}, ("are outside the partition to overwrite",)),
    ],
)
def test_a_wrong_overwrite_is_refused(keyed, overwrite, words):
    with refused(keyed, UsageError, *words):
        keyed.write_arrow(ROWS, overwrite=overwrite)


def test_changes_outside_a_static_overwrite_are_refused_at_commit_too(keyed):
    with keyed.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    with refused(keyed, UsageError, "new files are outside the partition to overwrite"):
        keyed.commit(changes, overwrite={"p": 1})
    writer.discard(changes)


def test_overwrites_of_partitions_need_partitions(wide):
    with refused(wide, UsageError, "needs a partitioned table", "overwrite={}"):
        wide.write_arrow(one(i=pa.array([1], INT)), overwrite="dynamic")
    with refused(wide, UsageError, "'p' is not a partition key of the table; its keys: none"):
        wide.drop_partitions([{"p": 1}])


@pytest.mark.parametrize(
    ("partitions", "word"),
    [
        ([], "at least one"), ({}, "at least one"), (None, "at least one"), ("p", "at least one"), (5, "at least one"),
        ({"p": 1}, "at least one"), ([{}], "at least one"), (["p"], "at least one"),
        ([{"q": 1}], "'q' is not a partition key"), ([{"p": "x"}], "INT"), ([{"p": 1}, {"p": 1.5, "z": 1}], "'z'"),
    ],
)  # fmt: skip
def test_wrong_partitions_to_drop_are_refused(keyed, partitions, word):
    with refused(keyed, UsageError, word):
        keyed.drop_partitions(partitions)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"identifier": 3}, ("needs user=",)),
        ({"user": 5}, ("user must be a string", "5")),
        ({"user": "", "identifier": 1}, ("user must be a string",)),
        ({"user": "a\ud800", "identifier": 1}, ("user must be a string",)),
        ({"user": "u", "identifier": "1"}, ("identifier must be a whole number", "'1'")),
        ({"user": "u", "identifier": True}, ("identifier must be a whole number",)),
        ({"user": "u", "identifier": 1.5}, ("identifier must be a whole number",)),
        ({"user": "u", "identifier": -1}, ("identifier must be a whole number from 0",)),
        ({"user": "u", "identifier": 2**63}, ("identifier must be a whole number",)),
        ({"user": "u", "identifier": 2**63 - 1}, ("marks batch commits",)),
        ({"watermark": "12"}, ("watermark must be a whole number", "'12'")),
        ({"watermark": 2**63}, ("watermark must be",)),
        ({"properties": {1: "a"}}, ("properties must map strings to strings",)),
        ({"properties": {"a": None}}, ("properties must map strings to strings",)),
        ({"properties": "a=b"}, ("properties must map strings to strings",)),
        ({"overwrite": 7}, ("overwrite takes",)),
    ],
)
def test_what_no_snapshot_can_hold_is_refused(keyed, arguments, words):
    """A wrong watermark used to be stored as it was, after which nobody could read the table."""
    with keyed.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    with refused(keyed, UsageError, *words):
        keyed.commit(changes, **arguments)
    writer.discard(changes)


@pytest.mark.parametrize("watermark", ["12", 1.5, True, 2**64, [1]])
def test_a_wrong_watermark_is_refused_before_anything_is_written(keyed, watermark):
    with refused(keyed, UsageError, "watermark must be a whole number of epoch milliseconds"):
        keyed.write_arrow(ROWS, watermark=watermark)
    assert reopened(keyed).scan().count() == 2


@pytest.mark.parametrize(
    ("changes", "error", "word"),
    [
        (None, UsageError, "writer.changes()"), (5, UsageError, "writer.changes()"), ("x", UsageError, "writer"),
        ([1], UsageError, "writer.changes()"), ({"a": 1}, UsageError, "writer.changes()"),
        ([], UsageError, "at least one"), (iter(()), UsageError, "at least one"),
        (b"", CorruptionError, "not changes"), (b"junk", CorruptionError, "not changes"),
        (b"paimon-changes-6:", CorruptionError, "cut off"), (b"paimon-changes-3:x", CorruptionError, "version 3"),
        (b"paimon-split-7:", UsageError, "begin with 'paimon-split'"),
    ],
)  # fmt: skip
def test_what_are_no_changes_is_refused(keyed, changes, error, word):
    with refused(keyed, error, word):
        keyed.commit(changes)
    if isinstance(changes, bytes):
        with pytest.raises(error):
            Changes.from_bytes(changes)


def test_every_cut_and_every_flip_of_changes_is_recognised(keyed):
    with keyed.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    data = bytes(changes)
    for size in range(0, len(data), 7):
        with refused(keyed, CorruptionError, "changes"):
            keyed.commit(data[:size])
    for place in range(0, len(data), 11):
        with pytest.raises((CorruptionError, UsageError)):
            Changes.from_bytes(data[:place] + bytes([data[place] ^ 0x20]) + data[place + 1 :])
    for wrong in (None, 5, "x", bytearray(data)):
        with pytest.raises(UsageError, match="takes bytes"):
            Changes.from_bytes(wrong)
    assert Changes.from_bytes(data) == changes
    writer.discard(changes)


def test_changes_of_another_table_are_refused(catalog, keyed, wide):
    """They used to make a snapshot that names files which are not there: nobody could read the table any more."""
    twin = catalog.create_table("d.twin", KEYED, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2"})
    with twin.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    with refused(keyed, UsageError, "another table", "write the rows again"):
        keyed.commit(changes)
    with refused(keyed, UsageError, "another table"):
        keyed.commit(bytes(changes), overwrite="dynamic")
    with refused(wide, UsageError, "partitions of other columns than []", "another table"):
        wide.commit(changes)
    twin.alter(pp.AddColumn("more", "INT"))
    with twin.writer() as writer:
        writer.write_arrow(ROWS)
        later = writer.changes()
    with refused(keyed, UsageError, "schema 1", "another table"):
        keyed.commit(later)
    assert twin.commit([changes, later]).file_count == 4


@pytest.mark.parametrize("damage", ["deleted", "cut"])
def test_changes_whose_files_are_gone_are_refused(catalog, damage):
    table = keyed_table(catalog, f"d.gone_{damage}")
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    name = changes.buckets[0].written.added[0].name
    (path,) = Path(table.location).rglob(name)
    if damage == "deleted":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1])
    for arguments in ({}, {"user": "u", "identifier": 1}, {"overwrite": {}}, {"overwrite": "dynamic"}):
        with refused(table, UsageError, name, "write the rows again"):
            table.commit(changes, **arguments)
    assert reopened(table).scan().count() == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (pp.DropColumn("v"), "column v was dropped"),
        (pp.UpdateColumnType("v", "BYTES"), "the type of column v changed"),
        (pp.UpdateColumnNullability("v", False), "column v became NOT NULL"),
    ],
)
def test_changes_written_under_a_schema_that_has_gone_are_a_conflict(catalog, change, reason):
    table = keyed_table(catalog, f"d.moved_{type(change).__name__.lower()}")
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    reopened(table).alter(pp.SetOption("alter-column-null-to-not-null.disabled", "false"))
    reopened(table).alter(change)
    with refused(table, CommitConflictError, "nothing was committed", reason):
        table.commit(changes)
    assert reopened(table).scan().count() == 2


def test_a_column_renamed_meanwhile_is_no_conflict(catalog):
    table = keyed_table(catalog, "d.renamed")
    with table.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    reopened(table).alter(pp.RenameColumn("v", "w"))
    table.commit(changes)
    assert reopened(table).scan(columns=["w"]).to_arrow()["w"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize("end", ["closed", "aborted", "failed"])
def test_a_writer_that_has_ended_takes_no_rows(keyed, end):
    before = files(keyed.location)
    writer = keyed.writer()
    writer.write_arrow(ROWS)
    if end == "closed":
        writer.close()
    elif end == "aborted":
        writer.abort()
    else:
        with pytest.raises(SchemaError):
            writer.write_arrow(ROWS.set_column(1, "k", pa.nulls(2, pa.int64())))
    with pytest.raises(UsageError, match=f"this writer has .*{end}; open a new one"):
        writer.write_arrow(ROWS)
    with pytest.raises(UsageError, match="open a new one"), writer:
        pass
    if end == "closed":
        writer.discard(writer.changes())
    else:
        with pytest.raises(UsageError, match="its files are deleted; open a new one and write again"):
            writer.changes()
    assert files(keyed.location) == before


# -- scans --------------------------------------------------------------------------------------------------------------

NOT_FOUND = [
    ({"snapshot_id": 0}, SnapshotNotFoundError, "no snapshot 0"),
    ({"snapshot_id": -1}, SnapshotNotFoundError, "no snapshot -1"),
    ({"snapshot_id": 999}, SnapshotNotFoundError, "it has snapshots 1 to 2"),
    ({"snapshot_id": 2**70}, SnapshotNotFoundError, "no snapshot"),
    ({"timestamp": 0}, SnapshotNotFoundError, "the oldest one is 1"),
    ({"timestamp": datetime.datetime(1971, 1, 1)}, SnapshotNotFoundError, "the oldest one is 1"),
    ({"watermark": 6}, SnapshotNotFoundError, "has reached watermark 6"),
    ({"tag": "nope"}, TagNotFoundError, "no tag 'nope'"),
    ({"options": {"scan.version": "nope"}}, TagNotFoundError, "nope"),
    ({"options": {"scan.version": "999"}}, SnapshotNotFoundError, "999"),
]
WRONG_SCANS = [
    ({"snapshot_id": "1"}, UsageError, "snapshot_id must be a whole number"),
    ({"snapshot_id": True}, UsageError, "snapshot_id must be a whole number"),
    ({"tag": 5}, UsageError, "tag is the name of a tag, not 5"),
    ({"tag": "../x"}, UsageError, "dot"),
    ({"timestamp": "2020"}, UsageError, "timestamp must be a datetime"),
    ({"timestamp": datetime.time(10, 0)}, UsageError, "timestamp must be a datetime"),
    ({"timestamp": datetime.datetime.min}, UsageError, "timestamp"),
    ({"watermark": "x"}, UsageError, "watermark must be a whole number"),
    ({"snapshot_id": 1, "tag": "first"}, UsageError, "one state"),
    ({"timestamp": 1, "watermark": 1}, UsageError, "one state"),
    ({"snapshot_id": 1, "options": {"scan.tag-name": "first"}}, UsageError, "one state"),
    ({"options": {"scan.tag-name": "first", "scan.snapshot-id": "1"}}, UsageError, "one state"),
    ({"columns": 5}, UsageError, "list of names"),
    ({"columns": "v"}, UsageError, "columns=['v']"),
    ({"columns": [1]}, UsageError, "columns must be a list of names, not 1"),
    ({"columns": ["zz"]}, UsageError, "column 'zz' does not exist; columns: p, k, v"),
    ({"columns": ["V"]}, UsageError, "did you mean 'v'?"),
    ({"columns": ["v", "k", "v"]}, UsageError, "'v' more than once"),
    ({"where": 5}, UsageError, "where takes a predicate"),
    ({"where": True}, UsageError, "where takes a predicate"),
    ({"where": ""}, UsageError, "expected a column"),
    ({"where": "v ="}, UsageError, "expected a column or a literal"),
    ({"where": "v = 'x"}, UsageError, "character"),
    ({"where": "v = 'x' AND"}, UsageError, "character"),
    ({"where": "DROP TABLE t"}, UsageError, "character"),
    ({"where": "zz = 1"}, UsageError, "column 'zz' does not exist"),
    ({"where": "k = 'a'"}, UsageError, "cannot be compared"),
    ({"where": "(" * 20_000}, UsageError, "nested deeper"),
    ({"where": col("zz") == 1}, UsageError, "column 'zz' does not exist"),
    ({"where": col("k") == "abc"}, UsageError, "BIGINT and cannot be compared with 'abc': pass a number"),
    ({"where": col("v") == 5}, UsageError, "pass a str"),
    ({"where": col("k").isin([1, "a"])}, UsageError, "'a'"),
    ({"where": col("k").like("a%")}, UsageError, "text columns only"),
    ({"where": col("p").between("a", 3)}, UsageError, "'a'"),
    ({"limit": -1}, UsageError, "limit must be a whole number of rows"),
    ({"limit": "5"}, UsageError, "limit"),
    ({"limit": True}, UsageError, "limit"),
    ({"options": "x"}, UsageError, "options map names to strings"),
    ({"options": {1: "2"}}, OptionError, "an option's name is a string"),
    ({"options": {"bukcet": "4"}}, OptionError, "did you mean 'bucket'?"),
    ({"options": {"scan.snapshot-ld": "1"}}, OptionError, "did you mean 'scan.snapshot-id'?"),
    ({"options": {"source.split.target-sise": "1"}}, OptionError, "did you mean 'source.split.target-size'?"),
    ({"options": {"source.split.target-size": "abc"}}, OptionError, "a size such as"),
    ({"options": {"scan.snapshot-id": "x"}}, OptionError, "whole number"),
    ({"options": {"scan.snapshot-id": 1}}, OptionError, "write '1'"),
    ({"options": {"scan.timestamp": "junk"}}, OptionError, "must be a time such as"),
    ({"options": {"scan.mode": "nonsense"}}, OptionError, "one of"),
    ({"options": {"scan.mode": "from-snapshot"}}, UsageError, "cannot be combined with"),
    ({"options": {"bucket": "7"}}, OptionError, "a read cannot change it"),
    ({"options": {"bucket-key": "v"}}, OptionError, "cannot change"),
    ({"options": {"merge-engine": "aggregation"}}, OptionError, "cannot change"),
    ({"options": {"scan.bucket": "one"}}, OptionError, "scan.bucket"),
    ({"options": {"scan.fallback-delta-branch": "b"}}, UnsupportedError, "scan.fallback-delta-branch"),
    ({"options": {"incremental-between": "2,1"}}, UsageError, "ends before it begins"),
    ({"options": {"incremental-between": "a,1"}}, UsageError, "neither two tags"),
    ({"options": {"incremental-between": "1,2", "incremental-between-scan-mode": "x"}}, OptionError, "one of"),
    ({"options": {"incremental-to-auto-tag": "first"}}, OptionError, "not an automatic tag"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "word"), NOT_FOUND + WRONG_SCANS, ids=lambda value: str(value)[:60])
def test_a_wrong_scan_is_refused(keyed, arguments, error, word):
    with refused(keyed, error, word):
        keyed.scan(**arguments).to_arrow()


def test_there_is_no_time_before_the_first_snapshot(keyed):
    first = keyed.snapshot(1).time_millis
    assert keyed.scan(timestamp=first).count() == 2
    with refused(keyed, SnapshotNotFoundError, f"({first - 1}):", f"({first})"):
        keyed.scan(timestamp=first - 1).count()


def test_a_predicate_has_no_truth_value():
    with pytest.raises(UsageError, match="&"):
        _ = col("a") == 1 and col("b") == 2


@pytest.mark.parametrize("split", [None, 5, "x", [1]])
def test_what_is_no_split_is_refused(keyed, split):
    with refused(keyed, UsageError, "takes one of scan.splits"):
        keyed.scan().read(split)


OF_A_SPLIT = f"paimon-split-{Split.edition}:".encode()


@pytest.mark.parametrize("data", [b"", b"junk", OF_A_SPLIT, OF_A_SPLIT + bytes(12), OF_A_SPLIT + b"\x81\xa1\xff\xff"])
def test_bytes_that_are_no_split_are_refused(keyed, data):
    with refused(keyed, CorruptionError, "not a split"):
        keyed.scan().read(data)


def test_a_split_is_read_by_the_scan_that_made_it(catalog, keyed):
    table = keyed_table(catalog, "d.split_of")
    (split, *_) = table.scan().splits()
    table.alter(pp.AddColumn("w", "INT"))
    with refused(table, UsageError, "schema 0", "read a split with the scan that made it"):
        table.scan().read(bytes(split))


@pytest.mark.parametrize(("verb", "argument"), [("head", -1), ("head", "x"), ("head", True)])
def test_wrong_arguments_of_verbs_are_refused(keyed, verb, argument):
    with refused(keyed, UsageError, repr(argument)):
        getattr(keyed.scan(), verb)(argument)


# -- snapshots and tags -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda t: t.snapshot("1"), UsageError, "whole number"),
        (lambda t: t.snapshot(True), UsageError, "whole number"),
        (lambda t: t.snapshot(0), SnapshotNotFoundError, "no snapshot 0"),
        (lambda t: t.snapshot(-1), SnapshotNotFoundError, "no snapshot -1"),
        (lambda t: t.snapshot(99), SnapshotNotFoundError, "it has snapshots 1 to 2"),
        (lambda t: t.create_tag("first"), AlreadyExistsError, "'first'"),
        (lambda t: t.create_tag("t", 99), SnapshotNotFoundError, "no snapshot 99"),
        (lambda t: t.create_tag("t", "1"), UsageError, "whole number"),
        (lambda t: t.create_tag("a/b"), UsageError, "slashes"),
        (lambda t: t.create_tag(5), UsageError, "a tag name is a string"),
        (lambda t: t.create_tag(None), UsageError, "a tag name is a string"),
        (lambda t: t.delete_tag("nope"), TagNotFoundError, "no tag 'nope'"),
        (lambda t: t.delete_tag("../snapshot/snapshot-1"), UsageError, "dot"),
        (lambda t: t.delete_tag(5), UsageError, "a tag name is a string"),
    ],
)
def test_wrong_snapshots_and_tags_are_refused(keyed, call, error, word):
    with refused(keyed, error, word):
        call(keyed)


def test_an_empty_table_has_nothing_to_tag(catalog):
    table = catalog.create_table("d.untagged", KEYED)
    with refused(table, UsageError, "no snapshot to tag yet"):
        table.create_tag("t")
    with refused(table, SnapshotNotFoundError, "no snapshot yet"):
        table.snapshot(1)
    with refused(table, SnapshotNotFoundError, "no snapshot yet"):
        table.scan(snapshot_id=1).to_arrow()
    with refused(table, SnapshotNotFoundError, "no snapshot yet"):
        table.scan(timestamp=4_102_444_800_000).to_arrow()


# -- alter --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        (5, UsageError, "not a schema change: 5"),
        ("ADD COLUMN x INT", UsageError, "not a schema change"),
        ([pp.AddColumn("x", "INT")], UsageError, "not a schema change"),
        (pp.AddColumn("v", "INT"), SchemaError, "already is a column 'v'"),
        (pp.AddColumn("x", "NUMBER"), SchemaError, "unknown type 'NUMBER'"),
        (pp.AddColumn("x", "INT NOT NULL"), SchemaError, "existing rows have no value"),
        (pp.AddColumn("x", 5), SchemaError, "a type is text such as"),
        (pp.AddColumn("x", "ARRAY<" * 5000 + "INT" + ">" * 5000), SchemaError, "nested too deeply"),
        (pp.AddColumn("x", {"type": "ARRAY"}), SchemaError, "x"),
        (pp.AddColumn("x", "INT", comment=5), UsageError, "comment is a string"),
        (pp.AddColumn(5, "INT"), UsageError, "a name or a list of names"),
        (pp.AddColumn("", "INT"), UsageError, "empty"),
        (pp.AddColumn([], "INT"), UsageError, "a name or a list of names"),
        (pp.AddColumn(["v", "x"], "INT"), SchemaError, "'v' is not a ROW"),
        (pp.AddColumn("_KEY_k", "INT"), SchemaError, "must not start with _KEY_"),
        (pp.AddColumn("x", "INT", position=5), UsageError, "a position is First()"),
        (pp.AddColumn("x", "INT", position=pp.After("zz")), SchemaError, "column 'zz' does not exist"),
        (pp.DropColumn("zz"), SchemaError, "column 'zz' does not exist; the columns are 'p', 'k', 'v'"),
        (pp.DropColumn("p"), SchemaError, "partition key 'p'"),
        (pp.DropColumn("k"), SchemaError, "primary key 'k'"),
        (pp.RenameColumn("v", "k"), SchemaError, "already is a column 'k'"),
        (pp.RenameColumn("v", 5), UsageError, "a column name is a string"),
        (pp.RenameColumn("v", ""), UsageError, "empty"),
        (pp.RenameColumn("p", "pp"), SchemaError, "partition column 'p'"),
        (pp.UpdateColumnType("k", "INT"), SchemaError, "primary-key column 'k'"),
        (pp.UpdateColumnType("v", "ARRAY<INT>"), SchemaError, "no such cast"),
        (pp.UpdateColumnNullability("k", True), SchemaError, "primary-key column 'k'"),
        (pp.UpdateColumnNullability("v", False), SchemaError, "existing rows may contain NULL"),
        (pp.UpdateColumnNullability("v", 5), UsageError, "True or False"),
        (pp.UpdateColumnPosition("v", 5), UsageError, "a position is First()"),
        (pp.UpdateColumnPosition("v", pp.After("v")), SchemaError, "next to itself"),
        (pp.UpdateColumnComment("v", 5), UsageError, "comment is a string"),
        (pp.UpdateColumnDefault("k", "x"), SchemaError, "not a value of type BIGINT"),
        (pp.UpdateColumnDefault("v", 5), UsageError, "default is a string"),
        (pp.UpdateComment(5), UsageError, "comment is a string"),
        (pp.UpdateComment("\ud800"), UsageError, "comment is a string"),
        (pp.SetOption("bukcet", "4"), OptionError, "did you mean 'bucket'?"),
        (pp.SetOption("bucket", "x"), OptionError, "whole number"),
        (pp.SetOption("bucket", 4), OptionError, "write '4'"),
        (pp.SetOption("bucket", "-1"), OptionError, "-1 is final"),
        (pp.SetOption(5, "4"), OptionError, "5"),
        (pp.SetOption("merge-engine", "aggregation"), OptionError, "once the table holds data"),
        (pp.SetOption("deletion-vectors.enabled", "true"), OptionError, "once the table holds data"),
        (pp.SetOption("row-tracking.enabled", "true"), OptionError, "once the table holds data"),
        (pp.SetOption("path", "/elsewhere"), OptionError, "cannot change"),
        (pp.RemoveOption("bucket"), OptionError, "cannot be removed"),
        (pp.RemoveOption("bukcet"), OptionError, "did you mean 'bucket'?"),
        (pp.RemoveOption(5), OptionError, "5"),
    ],
    ids=lambda value: str(value)[:70],
)
def test_a_wrong_alteration_is_refused(keyed, change, error, word):
    with refused(keyed, error, word):
        keyed.alter(change)
    assert keyed.schema.id == 0


def test_altering_nothing_is_refused(keyed):
    with refused(keyed, UsageError, "at least one change"):
        keyed.alter()


def test_one_wrong_change_undoes_all_given_with_it(keyed):
    with refused(keyed, SchemaError, "zz"):
        keyed.alter(pp.AddColumn("x", "INT"), pp.DropColumn("zz"))


# -- catalog ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda c: c.create_database("d"), AlreadyExistsError, "'d' already exists"),
        (lambda c: c.create_database(5), UsageError, ""),
        (lambda c: c.create_table("d.keyed", KEYED), AlreadyExistsError, "d.keyed"),
        (lambda c: c.create_table("nope.t", KEYED), DatabaseNotFoundError, "'nope'"),
        (lambda c: c.create_table("t", KEYED), UsageError, "'database.table'"),
        (lambda c: c.create_table("d.t", "a INT"), UsageError, "pyarrow.Schema"),
        (lambda c: c.create_table("d.t", KEYED, comment=5), UsageError, "comment is a string"),
        (lambda c: c.create_table("d.t", KEYED, primary_key="k"), UsageError, "['k']"),
        (lambda c: c.create_table("d.t", KEYED, primary_key=["zz"]), SchemaError, "zz"),
        (lambda c: c.create_table("d.t", KEYED, partition_by=[5]), UsageError, "list of column names"),
        (lambda c: c.create_table("d.t", KEYED, options={"bukcet": "4"}), OptionError, "did you mean 'bucket'?"),
        (lambda c: c.create_table("d.t", KEYED, options={"bucket": "x"}), OptionError, "whole number"),
        (lambda c: c.create_table("d.t", KEYED, options={"bucket": 4}), OptionError, "write '4'"),
        (lambda c: c.table("d.nope"), TableNotFoundError, "d.nope"),
        (lambda c: c.table("nope.t"), DatabaseNotFoundError, "'nope'"),
        (lambda c: c.tables("nope"), DatabaseNotFoundError, "'nope'"),
        (lambda c: c.drop_table("d.nope"), TableNotFoundError, "d.nope"),
        (lambda c: c.drop_database("nope"), DatabaseNotFoundError, "'nope'"),
        (lambda c: c.drop_database("d"), UsageError, "cascade=True"),
        (lambda c: c.rename_table("d.nope", "d.other"), TableNotFoundError, "d.nope"),
        (lambda c: c.rename_table("d.keyed", "d.wide"), AlreadyExistsError, "d.wide"),
        (lambda c: c.rename_table("d.keyed", "d.keyed"), AlreadyExistsError, "d.keyed"),
        (lambda c: c.rename_table("d.keyed", "nope.t"), DatabaseNotFoundError, "nope"),
        (lambda c: c.rename_table("d.keyed", "d.../x"), UsageError, "dot"),
        (lambda c: c.table("d.keyed$row_tracking"), UsageError, "row-tracking.enabled"),
        (lambda c: c.table("d.keyed$branch_b1"), BranchNotFoundError, "no branch 'b1'"),
        (lambda c: c.create_table("d.t$files", KEYED), UnsupportedError, "$files"),
        (lambda c: c.table("sys.nothing"), UsageError, "sys"),
    ],
)
def test_wrong_calls_of_a_catalog_are_refused(catalog, keyed, wide, call, error, word):
    with refused(catalog, error, word):
        call(catalog)


def test_what_exists_already_may_be_meant(catalog, keyed):
    with refused(catalog, NotFoundError):  # the files are compared, then an error is made up
        catalog.create_database("d", exist_ok=True)
        assert catalog.create_table("d.keyed", pa.schema([("x", INT)]), exist_ok=True).schema == keyed.schema
        catalog.drop_table("d.nope", missing_ok=True)
        catalog.drop_database("nope", missing_ok=True)
        raise NotFoundError("made up")


@pytest.mark.parametrize("metastore", ["glue", "GLUE", "nonsense"])
def test_other_metastores_are_refused_by_name(tmp_path, metastore):
    with refused(tmp_path, UnsupportedError, "the supported kinds are 'filesystem'") as caught:
        Catalog.open(tmp_path / "w", {"metastore": metastore, "uri": "thrift://h:1"})
    assert caught.value.feature == f"metastore={metastore}"


@pytest.mark.parametrize(
    ("call", "error", "word"),
    [
        (lambda path: Table.open(path / "nope"), TableNotFoundError, "not a Paimon table"),
        (lambda path: Table.open(""), UsageError, "not a path"),
        (lambda path: Table.open("a\0b"), UsageError, "not a path"),
        (lambda path: Table.open("zzz://bucket/t"), UsageError, "zzz"),
        (lambda path: Table.open(path, {"fs.local.fsync": "perhaps"}), OptionError, "true or false"),
        (lambda path: Table.open(path, {"fs.local.fsync": True}), OptionError, "needs a string"),
        (lambda path: Table.open(path, "x"), UsageError, "options map names to strings"),
        (lambda path: Catalog.open(None), UsageError, "path or URL"),
        (lambda path: Catalog.open(7), UsageError, "path or URL"),
    ],
)
def test_wrong_places_are_refused(tmp_path, call, error, word):
    with refused(tmp_path, error, word):
        call(tmp_path)


# -- features that are not there yet ------------------------------------------------------------------------------------

AT_CREATE = [
    ({"bucket": "1", "branch": "b1"}, "branch"),
]


@pytest.mark.parametrize(("options", "feature"), AT_CREATE, ids=[feature for _, feature in AT_CREATE])
def test_features_are_refused_by_name_at_creation(catalog, options, feature):
    columns = pa.schema([pa.field("k", INT, nullable=False), ("v", INT)])
    with refused(catalog, UnsupportedError, feature) as caught:
        catalog.create_table("d.later", columns, primary_key=["k"], options=options)
    assert caught.value.feature == feature


@pytest.mark.parametrize(
    ("schema", "options", "feature"),
    [
        (KEYED, {"file.format": "csv"}, "file.format=csv"),
        (Schema([("a", "GEOMETRY")]), {}, "GEOMETRY type"),
    ],
)
def test_features_of_append_tables_are_refused_by_name_at_creation(catalog, schema, options, feature):
    with refused(catalog, UnsupportedError) as caught:
        catalog.create_table("d.later", schema, options=options)
    assert caught.value.feature == feature


JAVA = {
    "chain-daily": "chain-table.enabled",
}


@pytest.mark.parametrize(("name", "feature"), JAVA.items(), ids=JAVA)
def test_tables_of_java_with_features_are_refused_by_name(tmp_path, name, feature):
    with tarfile.open(CORPUS / name / "warehouse.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (warehouse,) = {path.parent for path in tmp_path.rglob("*.db")}
    table = Catalog.open(warehouse, QUICK).table(json.loads((CORPUS / name / "case.json").read_text())["table"])
    calls = (table.changes, table.stream, table.lookup, table.delete, table.writer, table.truncate, table.write_arrow)
    for call in calls:
        with refused(table, UnsupportedError) as caught:
            call() if call in (table.writer, table.stream, table.truncate) else call(0 if call == table.changes else ROWS)
        assert caught.value.feature == feature


# -- hostile names ------------------------------------------------------------------------------------------------------

HOSTILE = [
    "", " ", "  ", ".", "..", "...", ".hidden", "../x", "../../etc/passwd", "/etc", "a/b", "a/../b", "a/", "/", "//",
    "\\", "a\\b", "..\\x", "C:\\x", "\\\\server\\share", "a\0b", "\0", "a\nb", "a\rb", "a\tb", "\x1b[2J", "a\x7fb", "\x01",
    "a\x85b", "a\x9bb", " a", "a ", "a\t", "\u00a0a", "a\u2003", "a\u2028b", "a\u2029b", "a\u200bb", "\ufeffa",
    "a\u202eb", "a\u2066b", "\ud800", "a\udcffb", "a\u00adb", "%2e%2e%2f", "a%2Fb", "%00", "a?b", "a#b", "a*b",
    "x" * 256, "x" * 5000, "é" * 128, "😀" * 64, None, 5, 1.5, b"a", ["a"], True, ("a", "b"),
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:30])
def test_a_hostile_name_is_refused_everywhere(catalog, keyed, name):
    around = Path(catalog.warehouse).parent
    calls = {
        "database": [catalog.create_database, catalog.drop_database, catalog.tables],
        "tag": [keyed.create_tag, keyed.delete_tag, lambda tag: keyed.scan(tag=[] if tag is None else tag).to_arrow()],
        "table": [lambda table: catalog.create_table(f"d.{table}" if isinstance(table, str) else table, KEYED)],
    }
    if isinstance(name, str):
        calls["table"] += [
            lambda table: catalog.table(f"d.{table}"),
            lambda table: catalog.drop_table(f"d.{table}"),
            lambda table: catalog.rename_table("d.keyed", f"d.{table}"),
            lambda table: catalog.create_table(f"{table}.t", KEYED),
        ]
        calls["branch"] = [lambda branch: catalog.table(f"d.keyed$branch_{branch}")]
    before = files(around)
    for attempts in calls.values():
        for attempt in attempts:
            with pytest.raises(UsageError):
                attempt(name)
    assert files(around) == before


@pytest.mark.parametrize(
    "name",
    ["", " ", "\t", "a\0b", "a\nb", "a\x7fb", "a\x85b", "x" * 256, "é" * 128, "\ud800", "a\udcffb", "_KEY_a",
     "_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", None, 5, b"a"],
    ids=lambda name: ascii(name)[:30],
)  # fmt: skip
def test_a_hostile_column_name_is_refused_everywhere(catalog, keyed, name):
    before = files(catalog.warehouse)
    for call in (
        lambda: catalog.create_table("d.columns", Schema([(name, "INT")])),
        lambda: keyed.alter(pp.AddColumn(name, "INT")),
        lambda: keyed.alter(pp.RenameColumn("v", name)),
    ):
        with pytest.raises(UsageError):
            call()
    if isinstance(name, str) and not name.startswith("_"):
        with pytest.raises(UsageError):
            catalog.create_table("d.columns", Schema([("r", {"type": "ROW", "fields": [{"name": name, "type": "INT"}]})]))
    assert files(catalog.warehouse) == before


STRANGE = ["a b", "a.b", "a/b", "../x", "..", "é", "a$b", "'", '"', "`", "a,b", "a=b", "%", "\\", "*", "x" * 100, "😀", "-1"]


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
@pytest.mark.parametrize("name", STRANGE, ids=lambda name: ascii(name)[:12])
def test_strange_column_names_and_partition_values_are_only_text(tmp_path, name, format_name):
    catalog = new_catalog(tmp_path / "w")
    table = catalog.create_table(
        "d.t", Schema([(name, "STRING"), ("v", "INT")]), partition_by=[name], options={"file.format": format_name}
    )
    values = [name, "../../../x", "/", "\0", ".", None]
    table.write_arrow(pa.table({name: values, "v": pa.array(range(6), INT)}))
    found = reopened(table).scan(where=col(name) == name).to_arrow().to_pylist()
    assert found == [{name: name, "v": 0}]
    assert sorted(reopened(table).scan().to_arrow()["v"].to_pylist()) == list(range(6))
    assert {path.name for path in tmp_path.iterdir()} == {"w"}
    assert {path.name for path in (tmp_path / "w" / "d.db").iterdir()} == {"t"}


@pytest.mark.parametrize(("kind", "size"), [("database", 252), ("table", 255), ("tag", 251)])
def test_the_longest_names_work_and_one_byte_more_is_refused(tmp_path, kind, size):
    catalog = new_catalog(tmp_path / "w")
    table = keyed_table(catalog)
    create = {
        "database": catalog.create_database,
        "table": lambda name: catalog.create_table(f"d.{name}", KEYED),
        "tag": table.create_tag,
    }[kind]
    create("x" * size)
    with refused(catalog, UsageError, f"longer than {size} bytes"):
        create("x" * (size + 1))


def test_schemas_of_arrow_that_paimon_cannot_hold_are_refused(catalog):
    for kind in (pa.uint8(), pa.uint64(), pa.decimal256(50, 2), pa.null(), pa.duration("s"), pa.month_day_nano_interval()):
        with refused(catalog, SchemaError, "column 'a'"):
            catalog.create_table("d.types", pa.schema([("a", kind)]))
    with refused(catalog, SchemaError):
        catalog.create_table("d.types", pa.schema([("a", INT), ("a", INT)]))
    with refused(catalog, SchemaError, "at least one"):
        catalog.create_table("d.types", pa.schema([]))


def test_the_environment_of_these_tests_does_not_wait():
    assert env().clock.elapsed() == 0
