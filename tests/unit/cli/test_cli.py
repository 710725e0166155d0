"""The command line: what commands show, what they change, what they ask, and how they fail."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_py import Catalog, Schema, Table, variant
from paimon_py.cli.app import commands, main
from paimon_py.cli.terminal import progress

ROOT = Path(__file__).parents[3]
KEYED = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())]
)


def rows(p, k, v):
    return pa.table({"p": pa.array(p, pa.int32()), "k": k, "v": v})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    catalog = Catalog.open(str(tmp_path_factory.mktemp("made") / "wh"), {"fs.local.fsync": "false"})
    catalog.create_database("d")
    catalog.create_database("empty")
    table = catalog.create_table(
        "d.t", KEYED, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"}, comment="a [red] table"
    )
    table.write_arrow(rows([1, 1, 2], [1, 2, 3], ["a", "b", "c"]))
    table.write_arrow(rows([1, 1], [1, 4], ["A", None]))
    table.write_arrow(rows([2], [3], ["x\x1b[31m[red]\ny"]))
    return catalog.warehouse


@pytest.fixture
def warehouse(made, tmp_path):
    return shutil.copytree(made, tmp_path / "wh")


@pytest.fixture
def place(warehouse):
    return str(warehouse / "d.db" / "t")


@pytest.fixture
def run(capsys):
    def called(*arguments):
        code = main(list(map(str, arguments)))
        out, err = capsys.readouterr()
        return code, out, err

    return called


def good(run, *arguments):
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    return out


def as_json(run, *arguments):
    return json.loads(good(run, *arguments, "--format", "json"))


def test_tables_of_a_warehouse_and_of_a_database_are_listed(run, warehouse):
    assert as_json(run, "ls", warehouse) == [{"database": "d", "table": "t"}]
    assert good(run, "ls", warehouse, "d", "--format", "csv") == "database,table\nd,t\n"
    assert as_json(run, "ls", warehouse, "empty") == []
    assert "database" in good(run, "ls", warehouse)


def test_a_table_is_found_by_its_path_and_by_its_name(run, warehouse, place):
    shown = as_json(run, "show", place)
    assert (shown["primary_key"], shown["partition_by"], shown["snapshot_id"]) == (["p", "k"], ["p"], 3)
    assert (shown["files"], shown["partitions"], shown["options"]) == (4, 2, {"bucket": "1"})
    assert as_json(run, "show", "d.t", "--warehouse", warehouse)["files"] == 4
    assert "a [red] table" in good(run, "show", place)
    header, values = csv.reader(io.StringIO(good(run, "show", place, "--format", "csv")))
    assert dict(zip(header, values))["primary_key"] == '["p", "k"]'


def test_queries_are_answered(run, warehouse):
    query = "SELECT p, count(*) AS n FROM t WHERE k < 9 GROUP BY p ORDER BY p"
    assert as_json(run, "sql", warehouse, query, "-d", "d", "--set", "threads=1") == [{"p": 1, "n": 3}, {"p": 2, "n": 1}]
    assert good(run, "sql", warehouse, "SELECT k FROM d.t VERSION AS OF 1 WHERE v = 'b'", "--format", "csv") == "k\n2\n"
    assert "NULL" in good(run, "sql", warehouse, "SELECT * FROM d.t")
    for wrong, text in (("SELECT * FROM d.x", "table 'd.x' does not exist"), ("DROP TABLE d.t", "DROP is refused"), ("SELECT nope FROM d.t", "nope")):
        code, out, err = run("sql", warehouse, wrong)
        assert (code, out) == (1, "") and text in err


def test_files_are_imported(run, warehouse, tmp_path):
    (tmp_path / "lake" / "day=2024-01-01").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "lake" / "day=2024-01-01" / "a.parquet")
    (tmp_path / "lake" / "day=2024-01-01" / "notes.txt").write_text("no rows")
    arguments = ("import", warehouse, "d.new", tmp_path / "lake", "--partition-by", "day=DATE")
    shown = as_json(run, *arguments, "--dry-run")
    assert (shown["files"], shown["rows"], shown["snapshot_id"], shown["columns"]) == (1, 2, None, {"id": "BIGINT", "day": "DATE"})
    library = Catalog.open(str(warehouse)).import_files("d.new", tmp_path / "lake", partition_by={"day": "DATE"}, dry_run=True)
    assert shown["misfits"] == {each.path: each.reason for each in library.misfits} and list(shown["misfits"])[0].endswith("notes.txt")
    (tmp_path / "lake" / "day=2024-01-01" / "notes.txt").unlink()
    assert as_json(run, *arguments)["snapshot_id"] == 1
    assert as_json(run, "head", "d.new", "-w", warehouse)[0] == {"id": 1, "day": "2024-01-01"}
    code, out, err = run("import", warehouse, "d.t", tmp_path / "lake")
    assert (code, out) == (1, "") and "partitioned by" in err


def test_columns_snapshots_partitions_and_levels_are_listed(run, place):
    assert [(one["name"], one["type"], one["key"]) for one in as_json(run, "schema", place)] == [
        ("p", "INT NOT NULL", "primary, partition"), ("k", "BIGINT NOT NULL", "primary"), ("v", "STRING", None),
    ]  # fmt: skip
    assert [one["snapshot_id"] for one in as_json(run, "snapshots", place)] == [1, 2, 3]
    assert [(one["partition"], one["record_count"]) for one in as_json(run, "partitions", place)] == [("p=1", 4), ("p=2", 2)]
    levels = [(one["partition"], one["level"], one["file_count"]) for one in as_json(run, "tree", place)]
    assert levels == [("p=1", 0, 2), ("p=2", 0, 2)]


def test_the_levels_of_buckets_are_drawn(run, place):
    Table.open(place).compact(full=True, partitions=[{"p": 1}])
    drawn = good(run, "tree", place)
    assert "p=1" in drawn and "level 5  █" in drawn and "level 0  █" in drawn and "1 file, 3 rows" in drawn
    assert "more" not in drawn and " KB" in drawn and "iB" not in drawn
    short = good(run, "tree", place, "--limit", "1")
    assert "and 1 more buckets" in short and "p=2" not in short


def test_rows_are_shown_of_now_and_then(run, place):
    asked = ("--columns", "k,v", "--where", "p = 1")
    assert as_json(run, "head", place, *asked) == [{"k": 1, "v": "A"}, {"k": 2, "v": "b"}, {"k": 4, "v": None}]
    assert as_json(run, "head", place, *asked, "--snapshot", "1", "--limit", "1") == [{"k": 1, "v": "a"}]
    assert good(run, "head", place, *asked, "--format", "csv") == "k,v\n1,A\n2,b\n4,\n"
    good(run, "tag", place, "create", "then", "--snapshot", "1")
    assert as_json(run, "head", place, *asked, "--tag", "then")[0] == {"k": 1, "v": "a"}
    assert as_json(run, "head", f"{place}$audit_log", "-n", "1")[0]["rowkind"] == "+I"


def test_nothing_in_a_table_steers_the_terminal(run, place):
    shown = good(run, "head", place, "--where", "p = 2")
    assert r"x\x1b[31m[red]\ny" in shown and "\x1b" not in shown
    assert as_json(run, "head", place, "--where", "p = 2")[0]["v"] == "x\x1b[31m[red]\ny"


def test_changes_between_states_are_shown_and_followed(run, place):
    assert as_json(run, "diff", place, "1", "2", "--columns", "k,v") == [
        {"k": 1, "v": "A", "_row_kind": "+U"}, {"k": 4, "v": None, "_row_kind": "+I"},
    ]  # fmt: skip
    assert as_json(run, "diff", place, "2", "--mode", "delta", "--columns", "k") == [{"k": 3, "_row_kind": "+I"}]
    lines = good(run, "tail", place, "--from", "2", "--until", "now", "--columns", "k", "--format", "json").splitlines()
    assert [json.loads(line)["k"] for line in lines] == [1, 4, 3]
    text = good(run, "tail", place, "--from", "full", "--until", "now", "--columns", "k", "--format", "csv")
    assert text.splitlines()[0] == "k,_row_kind" and len(text.splitlines()) == 5
    assert "snapshot 3" in good(run, "tail", place, "--from", "3", "--until", "3")


def test_a_consumer_goes_on_where_it_stands(run, place):
    asked = ("tail", place, "--until", "now", "--consumer", "c", "--columns", "k", "--format", "json")
    first = good(run, *asked, "--from", "earliest")
    assert [json.loads(line)["k"] for line in first.splitlines()] == [1, 2, 3, 1, 4, 3]
    assert [one.next_snapshot_id for one in Table.open(place).consumers()] == [4]


def test_metadata_has_no_changes_and_system_tables_no_care(run, place):
    for command, way_out in (("diff", "use head"), ("tail", "use head")):
        code, out, err = run(command, f"{place}$snapshots", *(["1"] if command == "diff" else []))
        assert (code, out) == (1, "") and way_out in err
    code, _, err = run("compact", f"{place}$audit_log")
    assert code == 1 and "is a system table" in err


def test_compaction_and_expiry_leave_the_rows(run, place):
    before = Table.open(place).scan().to_arrow()
    assert as_json(run, "compact", place, "--full", "-p", "p=1")["snapshot_id"] == 4
    assert as_json(run, "compact", place, "--full", "--where", "p = 2")["snapshot_id"] == 5
    planned = as_json(run, "expire", place, "--retain-max", "1", "--retain-min", "1", "--dry-run")
    assert (planned["snapshot_ids"], planned["dry_run"]) == ([1, 2, 3, 4], True)
    done = as_json(run, "expire", place, "--retain-max", "1", "--retain-min", "1", "--yes")
    assert (done["snapshot_ids"], done["dry_run"]) == ([1, 2, 3, 4], False)
    assert Table.open(place).scan().to_arrow().sort_by("k") == before.sort_by("k")
    assert as_json(run, "expire", place, "--retain-max", "1", "--retain-min", "1", "--yes")["snapshot_ids"] == []


def test_the_log_is_shown_to_whoever_asks(run, place):
    quiet = run("compact", place, "--full", "-p", "p=1")
    code, out, err = run("-v", "compact", place, "--full", "-p", "p=2", "--format", "json")
    assert (quiet[0], quiet[2], code) == (0, "", 0) and json.loads(out)
    lines = err.splitlines()
    assert any(line.startswith("info: ") and "snapshot 5" in line for line in lines), err
    code, _, err = run("head", place)
    assert (code, err) == (0, ""), "the log ends with the command"
    code, _, err = run("--verbose", "head", f"{place}-nowhere")
    assert code == 1 and err.startswith("error: ")
    assert logging.getLogger("paimon_py").level == logging.NOTSET


def test_nothing_goes_unless_somebody_says_so(run, place, monkeypatch):
    asked = ("expire", place, "--retain-max", "1", "--retain-min", "1")
    for answer in ("", "n\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        code, out, err = run(*asked)
        assert code == 1 and "snapshot_ids" in out
        assert "Delete 2 snapshots" in err and "nothing was changed" in err
        assert len(Table.open(place).snapshots()) == 3
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert run(*asked)[0] == 0
    assert len(Table.open(place).snapshots()) == 1


def test_tags_are_made_listed_and_deleted(run, place, monkeypatch):
    assert as_json(run, "tag", place, "create", "a", "--retain", "7d")["snapshot_id"] == 3
    assert [one["tag_name"] for one in as_json(run, "tag", place, "list")] == ["a"]
    assert as_json(run, "tag", place, "list", "b") == []
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    code, out, _ = run("tag", place, "delete", "a")
    assert code == 1 and "tag_name" in out
    good(run, "tag", place, "delete", "a", "--yes")
    assert as_json(run, "tag", place) == []
    assert run("tag", place, "delete", "a", "--yes")[0] == 1
    assert run("tag", place, "create")[0] == 2


def test_branches_are_made_read_and_deleted(run, place, monkeypatch):
    good(run, "tag", place, "create", "t", "--snapshot", "1")
    assert as_json(run, "branch", place, "create", "b", "--from", "t") == {"branch_name": "b", "snapshot_id": 1}
    assert [one["branch_name"] for one in as_json(run, "branch", place)] == ["b"]
    assert len(as_json(run, "head", f"{place}$branch_b")) == 3
    assert [one["snapshot_id"] for one in as_json(run, "head", f"{place}$branch_b$snapshots")] == [1]
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    code, out, err = run("branch", place, "delete", "b")
    assert code == 1 and "total_record_count" in out and "Delete the branch b with its 1 snapshot?" in err
    good(run, "branch", place, "delete", "b", "--yes")
    assert as_json(run, "branch", place, "list") == []
    assert run("branch", place, "delete", "b", "--yes")[0] == 1 and run("branch", place, "create")[0] == 2


def test_a_branch_begins_with_the_latest_snapshot_or_empty(run, place):
    latest = as_json(run, "snapshots", place)[-1]["snapshot_id"]
    assert as_json(run, "branch", place, "create", "b")["snapshot_id"] == latest
    assert as_json(run, "branch", place, "create", "c", "--empty")["snapshot_id"] is None
    assert run("branch", place, "create", "d", "--empty", "--from", "1")[0] == 2


def test_a_table_is_made_what_a_branch_is(run, place, monkeypatch):
    good(run, "branch", place, "create", "b", "--from", "1")
    good(run, "tag", place, "create", "t")
    code, _, err = run("branch", place, "fast-forward", "b")
    assert code == 1 and "the tags 't'" in err and "paimon-py branch TABLE fast-forward b --discard" in err
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert run("branch", place, "fast-forward", "b", "--discard")[0] == 1
    assert len(as_json(run, "tag", place)) == 1
    done = as_json(run, "branch", place, "fast-forward", "b", "--discard", "--yes")
    assert (done["snapshot_id"], done["deleted_tags"]) == (1, ["t"]) and 2 in done["deleted_snapshots"]
    assert [one["snapshot_id"] for one in as_json(run, "snapshots", place)] == [1]


def test_files_are_listed(run, place):
    found = as_json(run, "files", place)
    assert [(one["bucket"], one["level"], one["record_count"]) for one in found].count((0, 0, 2)) == 2 and len(found) == 4


def test_row_ids_variants_and_blobs_are_shown(run, tmp_path):
    catalog = Catalog.open(tmp_path / "new")
    catalog.create_database("d")
    table = catalog.create_table(
        "d.m", Schema({"id": "INT", "v": "VARIANT", "image": "BLOB"}),
        options={"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    )  # fmt: skip
    table.write_arrow([{"id": 1, "v": variant('{"a": [1, "x"]}'), "image": b"\x01" * 100}, {"id": 2, "v": None, "image": b"\x02"}])
    table.update_rows(pa.table({"_ROW_ID": [1], "id": pa.array([20], pa.int32())}))
    found = as_json(run, "files", table.location)
    assert [(one["file_format"], one["first_row_id"], one["write_cols"]) for one in found] == [
        ("parquet", 0, ["id", "v"]), ("blob", 0, ["image"]), ("parquet", 0, ["id"]),
    ]  # fmt: skip
    rows = as_json(run, "head", table.location, "-c", "_ROW_ID,_SEQUENCE_NUMBER,id,v,image", "--blobs", "bytes")
    assert rows == [
        {"_ROW_ID": 0, "_SEQUENCE_NUMBER": 2, "id": 1, "v": '{"a":[1,"x"]}', "image": "01" * 100},
        {"_ROW_ID": 1, "_SEQUENCE_NUMBER": 2, "id": 20, "v": None, "image": "02"},
    ]
    drawn = good(run, "head", table.location, "--blobs", "bytes")
    assert '{"a":[1,"x"]}' in drawn and f"{'01' * 16}… (100 bytes)" in drawn and "NULL" in drawn
    first = as_json(run, "head", table.location, "--where", "id = 1")[0]["image"]
    assert first["uri"] == next(one["file_path"] for one in found if one["file_format"] == "blob") and first["length"] == 100
    assert f" 100 bytes of {first['uri'].rpartition('/')[2]}" in good(run, "head", table.location)
    assert '"{""a"":[1,""x""]}"' in good(run, "head", table.location, "--format", "csv")


def test_changes_and_queries_show_where_blobs_are(run, tmp_path):
    catalog = Catalog.open(tmp_path / "new")
    catalog.create_database("d")
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = catalog.create_table("d.m", Schema({"id": "INT", "image": "BLOB", "parts": "MAP<INT, BLOB>"}), options=options)
    table.write_arrow([{"id": 1, "image": b"\x01" * 100, "parts": {7: b"x"}}, {"id": 2, "image": None, "parts": None}])
    diff, tail = ("diff", table.location, "0", "1"), ("tail", table.location, "--from", "full", "--until", "now")
    query = ("sql", catalog.warehouse, "SELECT * FROM d.m WHERE image.length > 9")
    lines = [json.loads(line) for line in good(run, *tail, "--format", "json").splitlines()]
    for rows in (as_json(run, *diff), lines, as_json(run, *query)):
        row = next(row for row in rows if row["id"] == 1)
        assert (row["image"]["offset"], row["image"]["length"], row["parts"][0][0]) == (4, 100, 7)
        assert row["image"]["uri"].endswith("-1.blob") and row["parts"][0][1]["length"] == 1
    for command in (diff, tail):
        assert " 100 bytes of data-" in good(run, *command)
        assert f"{'01' * 16}… (100 bytes)" in good(run, *command, "--blobs", "bytes")
    plain = ("sql", catalog.warehouse, "SELECT octet_length(image) AS n FROM d.m WHERE id = 1")
    assert as_json(run, *plain, "--blobs", "bytes") == [{"n": 100}] and run(*plain)[0]


def test_orphans_are_shown_and_deleted_when_somebody_says_so(run, place, monkeypatch):
    assert as_json(run, "orphans", place, "--delete")["files"] == 0
    orphan = Path(place, "manifest", "manifest-0b6a3f42-0000-4000-8000-000000000000-0")
    orphan.write_bytes(b"orphan")
    os.utime(orphan, (1, 1))
    assert as_json(run, "orphans", place)["paths"] == [str(orphan)]
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    code, out, err = run("orphans", place, "--delete")
    assert code == 1 and str(orphan) in out and "Delete 1 file of 6 B?" in err and orphan.exists()
    assert "millis" not in out and re.search(r"older_than +\d{4}-\d\d-\d\d [\d:.]+Z", out)
    done = as_json(run, "orphans", place, "--delete", "--yes", "--older-than", "2d")
    assert (done["files"], done["dry_run"], orphan.exists()) == (1, False, False)


def test_the_doctor_speaks(run, place):
    assert as_json(run, "doctor", place) == []
    assert "healthy" in good(run, "doctor", place, "--deep")
    next(Path(place).rglob("data-*")).unlink()
    (found,) = as_json(run, "doctor", place)
    assert (found["severity"], found["code"], found["figure"]) == ("problem", "missing-files", 1)
    assert "missing-files" in good(run, "doctor", place)


NEW = {"p": [7, 7], "k": [1, 2], "v": ["a,b\nc", None]}


def write_file(path):
    if path.suffix == ".parquet":
        pq.write_table(rows(*NEW.values()), path)
    elif path.suffix == ".jsonl":
        path.write_text('{"p": 7, "k": 1, "v": "a,b\\nc"}\n{"k": 2, "p": 7}\n')
    else:
        split = "\t" if path.suffix == ".tsv" else ","
        path.write_text(f'k{split}p{split}v\n1{split}7{split}"a,b\nc"\n2{split}7{split}\n')
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl"])
def test_files_are_loaded_as_one_commit(run, place, tmp_path, suffix):
    file = write_file(tmp_path / f"new.{suffix}")
    done = as_json(run, "load", place, file)
    assert (done["snapshot_id"], done["rows"]) == (4, 2)
    assert Table.open(place).scan(where="p = 7").to_arrow().sort_by("k").to_pydict() == NEW


def test_several_files_and_kinds_make_one_commit(run, place, tmp_path):
    first, second = write_file(tmp_path / "new.parquet"), tmp_path / "more.txt"
    second.write_text("p;k;v;_row_kind\n7;1;-;-D\n1;1;;-D\n")
    code, _, err = run("load", place, second)
    assert code == 1 and "more.txt' does not say what the file is" in err and "--kind" in err
    done = as_json(run, "load", place, second, "--kind", "csv", "--delimiter", ";", "--null", "-")
    assert (done["snapshot_id"], done["rows"]) == (4, 2)
    good(run, "load", place, first, write_file(tmp_path / "new.csv"))
    assert len(Table.open(place).snapshots()) == 5
    assert Table.open(place).scan(where="p = 7 OR k = 1").to_arrow().sort_by("k").to_pydict() == NEW


@pytest.mark.parametrize(
    ("name", "text", "way_out"),
    [
        ("a.csv", "p,k,v\n1,x,y\n", "a.csv cannot be read"),
        ("a.csv", "p,k,nonsense\n1,1,y\n", "nonsense"),
        ("a.jsonl", '[{"p": 1}]', "a.jsonl cannot be read"),
        ("a.parquet", "PAR1", "a.parquet cannot be read"),
        ("a.csv", None, "does not exist"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_leaves_the_table_as_it_was(run, place, tmp_path, name, text, way_out):
    if text is not None:
        (tmp_path / name).write_text(text)
    before = sorted(Path(place).rglob("*"))
    code, out, err = run("load", place, tmp_path / name)
    assert (code, out) == (1, "") and err.startswith("error: ") and err.count("\n") == 1 and way_out in err
    assert sorted(path for path in Path(place).rglob("*") if path.is_file()) == [path for path in before if path.is_file()]


@pytest.mark.parametrize(
    ("arguments", "code", "way_out"),
    [
        (["ls", "{}/nowhere"], 1, "does not exist"),
        (["show", "{}/nowhere"], 1, "nowhere"),
        (["head", "d.x", "-w", "{}"], 1, "table 'd.x' does not exist"),
        (["head", "d.t", "-w", "{}", "--where", "q = 1"], 1, "column 'q' does not exist"),
        (["head", "d.t$nonsense", "-w", "{}"], 1, "nonsense"),
        (["diff", "d.t", "2", "nothing", "-w", "{}"], 1, "nothing"),
        (["expire", "d.t", "-w", "{}", "--retain-max", "1", "--retain-min", "2"], 1, "retain"),
        (["rollback", "d.t", "77", "-w", "{}"], 1, "no snapshot 77"),
        (["head", "{}"], 1, "it is a warehouse: open one of its tables, {}/d.db/t"),
        (["head", "{}/d.db"], 1, "it is a database: open one of its tables, {}/d.db/t"),
        (["head", "{}/empty.db"], 1, "is not a Paimon table"),
        (["head", "{}/d.db/t/snapshot/LATEST"], 1, "it is a file, and a table is a directory"),
        (["ls", "{}/d.db"], 1, "is a database, not a warehouse: its warehouse is {}"),
        (["sql", "{}/d.db/t", "SELECT 1"], 1, "is a table, not a warehouse: its warehouse is {}"),
        (["head", "d.t", "-w", "{}", "--tag", "nope"], 1, "no tag 'nope' in {}/d.db/t; it has no tags"),
        (["branch", "d.t", "fast-forward", "nope", "-w", "{}"], 1, "; it has no branches"),
        (["orphans", "d.t", "-w", "{}", "--older-than", "2999-01-01"], 1, "--older-than = '2999-01-01 00:00:00' is not in"),
        (["load", "d.t", "a.csv", "-w", "{}", "--keep-good", "/nowhere/b.csv"], 2, "directory '/nowhere' does not exist"),
        (["report", "{}", "--html", "/nowhere/b.html"], 2, "directory '/nowhere' does not exist"),
        (["import", "{}", "d.i", "{}/d.db/t"], 1, "is a Paimon table, whose files include deleted rows: use clone_table"),
        (["head", "{}/d.db/tt"], 1, "did you mean {}/d.db/t?"),
        (["head", "{}/d.db/t/p=1/bucket-0"], 1, "it is in the directory of a table: open {}/d.db/t"),
        (["alter", "d.t", "-w", "{}", "--unset", "nonsense"], 1, "d.t has no option 'nonsense'; its options are bucket"),
        (["alter", "d.t", "-w", "{}", "--unset", "bukcet"], 1, "did you mean 'bucket'?"),
        (["consumers", "d.t", "delete", "c", "-w", "{}"], 1, "no consumer 'c'"),
        (["alter", "d.t", "-w", "{}", "--type", "v INT"], 1, "To change it anyway, add --allow-narrowing"),
        (["alter", "d.t", "-w", "{}", "--add", "x"], 2, "'x' has no type"),
        (["alter", "d.t", "-w", "{}", "--add", "a INT, x"], 2, "'x' has no type"),
        (["iceberg", "d.t", "publish", "-w", "{}"], 1, "paimon-py alter TABLE --set metadata.iceberg.storage=table-location"),
        (["tail", "d.t", "-w", "{}", "--from", "no"], 1, "--from must be"),
        (["care", "{}", "--every", "0s"], 2, "above 0"),
        (["top", "{}", "--every", "0s"], 2, "above 0"),
        (["compact", "d.t", "-w", "{}", "--where", "k = 1"], 1, "paimon-py compact TABLE --where chooses partitions"),
        (["head", "d.t", "-w", "{}", "--where", "v = word"], 1, "the columns are p, k, v. Text is written in 'single quotes'"),
        (["head", "d.t", "-w", "{}", "-c", "zz"], 1, "column 'zz' does not exist"),
        (["head"], 2, "Missing argument 'TABLE'"),
        (["nonsense"], 2, "No such command"),
        (["undo", "w/d.db/t", "3"], 2, "No such command 'undo'; write paimon-py restore, or rollback."),
        (["restore", "w/d.db/t"], 2, "Missing option '--to'"),
        (["remove", "w/d.db/t"], 2, "write paimon-py delete for rows, or drop for a table."),
        (["truncate", "w/d.db/t"], 2, "write paimon-py delete --where TRUE."),
        (["delete", "d.t", "-w", "{}"], 2, "Missing option '--where'"),
        (["delete", "d.t", "-w", "{}", "--where", "q = 1", "--yes"], 1, "column 'q' does not exist"),
        (["vacuum", "w/d.db/t"], 2, "write paimon-py expire, and orphans."),
        (["head", "d.t", "-w", "{}", "--format", "xml"], 2, "xml"),
        (["head", "d.t", "-w", "{}", "--timestamp", "soon"], 2, "not a time such as"),
        (["expire", "d.t", "-w", "{}", "--older-than", "7 years"], 2, "neither an age"),
        (["expire", "d.t", "-w", "{}", "--older-than", "99999999999d"], 2, "too long"),
        (["head", "d.t", "-w", "{}", "-o", "s3.secret-key:hidden"], 2, "not NAME=VALUE"),
    ],
)
def test_errors_are_one_line_and_tell_wrong_usage(run, warehouse, arguments, code, way_out):
    found, out, err = run(*(argument.format(warehouse) for argument in arguments))
    assert re.search(r"[a-z]\w*\(|=True|=False|timedelta|::", err) is None  # no Python
    assert (found, out) == (code, "") and way_out.format(*[warehouse] * 2) in err and "hidden" not in err and "Traceback" not in err
    assert code == 2 or (err.startswith("error: ") and err.count("\n") == 1)
    assert not (warehouse / "nowhere").exists()


def test_times_have_a_zone_wherever_they_are_listed(run, place, monkeypatch):
    table = Table.open(place)
    table.create_tag("a", retain="1d")
    table.create_branch("b")
    for zone in ("America/New_York", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        listed = [*as_json(run, "tag", place), *as_json(run, "branch", place), *as_json(run, "snapshots", place)]
        found = {row[name] for row in listed for name in row if name.endswith("_time")}
        assert all(text.endswith("+00:00") for text in found)
        first = datetime.fromisoformat(as_json(run, "tag", place)[0]["commit_time"])
        assert first.timestamp() * 1000 == table.snapshot().time_millis


def test_options_reach_the_store(run, warehouse):
    code, _, err = run("ls", warehouse, "-o", "metastore=hive")
    assert code == 1 and "metastore" in err
    assert as_json(run, "ls", warehouse, "--option", "metastore=filesystem") == [{"database": "d", "table": "t"}]


def test_help_version_and_completion(run):
    assert "Commands:" in good(run, "--help") and "paimon-py" in good(run, "--version")
    for shell in ("bash", "zsh", "fish"):
        assert "_PAIMON_PY_COMPLETE" in good(run, "completion", shell)
    assert all("TABLE" in good(run, command, "-h") for command in ("head", "tree", "load", "tag"))


def process(code, *arguments):
    return subprocess.run([sys.executable, *code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_module_runs_and_says_what_to_install_where_click_is_missing(place):
    done = process(["-m", "paimon_py"], "head", place, "--format", "csv", "--columns", "k", "--where", "p = 2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "k\n3\n", "")
    without = "import sys; sys.modules['click'] = None; from paimon_py.__main__ import main; sys.exit(main([]))"
    done = process(["-c", without])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: the command line needs click, which is not installed: pip install 'paimon-py[cli]'\n"


def test_every_command_shows_examples_that_it_understands(run):
    for name, command in commands.commands.items():
        shown = good(run, name, "--help")
        examples = [line.strip() for line in shown.partition("Examples:\n")[2].splitlines() if line.strip()]
        assert examples, name
        for example in examples:
            script, called, *arguments = shlex.split(example)
            assert (script, called) == ("paimon-py", name)
            command.make_context(name, arguments)


def test_an_error_of_several_lines_is_one_line_without_its_drawing(run, place):
    code, _, err = run("head", place, "--where", "k >")
    assert (code, err) == (1, "error: expected a column or a literal, not the end (at character 4): k >\n")


def test_texts_come_out_as_utf_8_whatever_the_locale(place):
    Table.open(place).write_arrow(rows([9], [9], ["Käse 寿司"]))
    bare = {**os.environ, "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "paimon_py", "head", place, "--where", "p = 9", "--format"]
    for form in ("csv", "json", "table"):
        done = subprocess.run([*command, form], env=bare, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"") and "Käse 寿司" in done.stdout.decode()


def test_a_reader_who_has_enough_is_no_traceback(place):
    many = pa.table({"p": pa.array([3] * 20_000, pa.int32()), "k": range(20_000), "v": ["x" * 50] * 20_000})
    Table.open(place).write_arrow(many)
    command = [sys.executable, "-m", "paimon_py", "head", place, "-n", "20000", "--format", "csv"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"p,k,v\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def at_a_terminal(*arguments):
    """The code, stdout, and what a terminal got as stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "paimon_py", *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    )
    os.close(theirs)
    told = b""
    try:
        while part := os.read(ours, 65536):
            told += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    with process:
        return process.wait(), process.stdout.read().decode(), told.decode()


def test_bars_go_to_the_terminal_and_results_to_whoever_reads_them(place, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("p,k,v\n" + "".join(f"5,{at},x\n" for at in range(50_000)))
    code, out, told = at_a_terminal("load", place, file, "--format", "json")
    assert code == 0 and json.loads(out)["rows"] == 50_000
    assert "loading rows into files" in told and "100%" in told
    code, out, told = at_a_terminal("compact", place, "--full", "--format", "json")
    assert code == 0 and json.loads(out)["snapshot_id"] == 5 and "compacting rows" in told


def test_a_bar_shows_names_as_they_are(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress("loading") as report:
        report(1, 2, "odd[red] [/b]\x1b[2J.csv")
    assert r"loading odd[red] [/b]\x1b[2J.csv" in capsys.readouterr().err


def test_no_file_is_read_before_all_are_there(run, place, tmp_path):
    first = write_file(tmp_path / "new.csv")
    code, _, err = run("load", place, first, tmp_path / "nowhere.csv")
    assert code == 1 and "does not exist" in err and Table.open(place).snapshot().id == 3


def test_a_table_is_created_changed_and_dropped(run, tmp_path):
    path = str(tmp_path / "new" / "shop.db" / "orders")
    columns = "id BIGINT NOT NULL, price DECIMAL(8, 2), place ROW<a INT, b STRING>"
    made = as_json(run, "create", path, "--columns", columns, "-k", "id", "--option", "bucket=2", "--comment", "sales")
    assert made == {"name": "shop.orders", "location": path}
    table = Table.open(path)
    assert table.schema.primary_keys == ("id",) and table.options["bucket"] == "2" and table.comment == "sales"
    changes = ["--add", "note STRING", "--after", "price", "--rename", "price=cost", "--type", "cost DECIMAL(9, 2)"]
    good(run, "alter", path, *changes, "--set", "snapshot.num-retained.max=20", "--comment", "")
    shown = [(row["name"], row["type"]) for row in as_json(run, "schema", path)]
    assert shown == [
        ("id", "BIGINT NOT NULL"), ("cost", "DECIMAL(9, 2)"), ("note", "STRING"), ("place", "ROW<a INT, b STRING>")
    ]  # fmt: skip
    good(run, "alter", path, "--drop", "note", "--unset", "snapshot.num-retained.max")
    assert "snapshot.num-retained.max" not in Table.open(path).options
    code, _, err = run("create", path, "--columns", columns)
    assert code == 1 and "already" in err
    good(run, "create", path, "--columns", columns, "--exist-ok")
    code, _, err = run("drop", path)
    assert code == 1 and Table.open(path)
    assert good(run, "drop", "shop.orders", "-w", tmp_path / "new", "--yes") == f"dropped {path}\n"
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["create", "x", "--columns", "a INT"], "does not end in DATABASE.db/TABLE"),
        (["create", "t", "-w", "wh", "--columns", "a INT"], "not a name such as db.t"),
        (["create", "d.db/t", "--columns", "a TEXT"], "did you mean 'a STRING'?"),
        (["create", "d.db/t", "--columns", "a"], "does not list columns"),
        (["drop", "/"], "does not end in DATABASE.db/TABLE"),
    ],
)
def test_wrong_definitions_are_wrong_usage(run, arguments, told):
    code, _, err = run(*arguments)
    assert code == 2 and told in err


def test_a_type_that_may_not_fit_is_changed_when_somebody_says_so(run, place):
    good(run, "alter", place, "--type", "v INT", "--allow-narrowing")
    assert [row["type"] for row in as_json(run, "schema", place)][-1] == "INT"


def test_changes_that_say_nothing_are_wrong_usage(run, place):
    for arguments in ([], ["--add", "a INT", "--add", "b INT", "--first"], ["--first"], ["--add", "a INT, b INT"]):
        code, _, err = run("alter", place, *arguments)
        assert code == 2 and "Error: " in err


def test_a_table_gets_another_number_of_buckets(run, place, tmp_path):
    assert as_json(run, "alter", place, "--unset", "snapshot.time-retained", "--set", "bucket=2")["schema_id"] == 1
    (tmp_path / "a.json").write_text('{"p": 1, "k": 9}')
    code, _, err = run("load", place, tmp_path / "a.json")
    assert code == 1 and "rewrite p=1 with paimon-py rescale TABLE 2, or" in err
    assert as_json(run, "rescale", place, "2", "-p", "p=1")["rows"] == 3
    assert as_json(run, "load", place, tmp_path / "a.json")["rows"] == 1


def test_an_older_state_is_restored_and_the_restoration_undone(run, place):
    before = sorted(map(str, Table.open(place).to_arrow().to_pylist()))
    done = as_json(run, "restore", place, "--to", 1)
    assert (done["snapshot_id"], done["before"]) == (4, 3)
    table = Table.open(place)
    assert table.to_arrow().num_rows == table.scan(snapshot_id=1).count()
    assert as_json(run, "restore", place, "--to", 3, "--user", "u", "--identifier", 1)["snapshot_id"] == 5
    assert as_json(run, "restore", place, "--to", 3, "--user", "u", "--identifier", 1)["already_committed"]
    assert sorted(map(str, Table.open(place).to_arrow().to_pylist())) == before
    assert [one["operation"] for one in as_json(run, "history", place, "-n", 2)] == ["RESTORE", "RESTORE"]
    code, _, err = run("restore", place, "--to", 1, "--identifier", 1)
    assert (code, "needs --user" in err) == (2, True)
    code, _, err = run("restore", place, "--to", 77)
    assert (code, "no snapshot 77" in err) == (1, True)


def test_a_table_is_taken_back(run, place):
    code, _, err = run("rollback", place, 1)
    assert code == 1 and "from snapshot 3 to 1?" in err
    assert as_json(run, "rollback", place, 1, "--yes")["snapshot_ids"] == [2, 3]
    Table.open(place).create_tag("now")
    assert as_json(run, "rollback", place, "now", "-y")["snapshot_id"] == 1


def test_a_file_that_cannot_be_written_is_named_without_a_number(run, place, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    code, _, err = run("report", Path(place).parents[1], "--html", "page.html")
    assert (code, err) == (1, "error: page.html: Permission denied\n")


def test_rows_are_deleted_once_after_a_question(run, place):
    table = Table.open(place)
    rows = table.count()
    code, _, err = run("delete", place, "--where", "k >= 0 AND now() > TIMESTAMP '2024-01-01 00:00:00Z'")
    assert code == 1 and f"Delete {rows} rows of {place}?" in err
    assert table.refresh().count() == rows
    least = min(table.to_arrow()["k"].to_pylist())
    for is_done in (False, True):
        how = ("--where", f"k <= {least}", "--yes", "--user", "daily", "--identifier", 7)
        found = as_json(run, "delete", place, *how)
        assert (found["deleted"], found["already_committed"]) == (0 if is_done else 1, is_done)
    assert table.refresh().count() == rows - 1


def test_consumers_are_listed_moved_and_deleted(run, place):
    stream = Table.open(place).stream(consumer_id="c", from_=1)
    stream.poll().acknowledge()
    assert as_json(run, "consumers", place) == [{"name": "c", "next_snapshot_id": 2, "behind": 2}]
    assert as_json(run, "consumers", place, "reset", "c", 3)["next_snapshot_id"] == 3
    assert run("consumers", place, "reset", "c")[0] == run("consumers", place, "delete")[0] == 2
    good(run, "consumers", place, "delete", "c", "--yes")
    assert as_json(run, "consumers", place) == []


BAD = """p,k,v
1,10,"a
b"
x,11,c
,12,d
1,13

1,14,""
1,"1,5",e
1,16,
"""


@pytest.mark.parametrize("packed", [False, True])
def test_rows_that_fit_are_loaded_and_the_others_kept(run, place, tmp_path, packed):
    path = tmp_path / ("new.csv.gz" if packed else "new.csv")
    path.write_bytes(gzip.compress(BAD.encode()) if packed else BAD.encode())
    code, _, err = run("load", place, path)
    assert code == 1 and "new.csv" in err and Table.open(place).snapshot().id == 3
    bad, number = tmp_path / "bad.csv", ["--user", "u", "--identifier", "7"]
    done = as_json(run, "load", place, path, "--keep-good", bad, *number)
    assert (done["rows"], done["bad_rows"]) == (3, 4)
    kept = list(csv.DictReader(io.StringIO(bad.read_text())))
    assert [(row["line"], row["column"], row["value"], row["record"]) for row in kept] == [
        ("4", "p", "x", "x,11,c"), ("5", "p", "", ",12,d"), ("6", "", "", "1,13"), ("9", "k", "1,5", '1,"1,5",e')
    ]  # fmt: skip
    assert kept[1]["problem"] == "NULL in a column that is NOT NULL" and kept[3]["problem"] == "'1,5' is not of type BIGINT"
    found = Table.open(place).scan(where="k >= 10").to_arrow().sort_by("k")
    assert found["v"].to_pylist() == ["a\nb", "", None]
    assert as_json(run, "load", place, path, "--keep-good", bad, *number)["already_committed"]
    assert len(list(csv.DictReader(io.StringIO(bad.read_text())))) == 4


def test_what_comes_on_stdin_is_loaded(place):
    for kind, text in (("csv", "p,k,v\n5,1,z\n"), ("json", '{"p": 5, "k": 2, "v": "y"}\n')):
        command = [sys.executable, "-m", "paimon_py", "load", place, "-", "--kind", kind]
        subprocess.run(command, input=text.encode(), check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    assert Table.open(place).scan(where="p = 5").count() == 2
    command = [sys.executable, "-m", "paimon_py", "load", place, "-"]
    assert subprocess.run(command, input=b"", check=False, cwd=ROOT, capture_output=True).returncode == 2


def test_packed_files_that_are_cut_or_not_packed_are_named(run, place, tmp_path):
    whole = gzip.compress(b"p,k,v\n5,1,z\n" * 50)
    for name, data in (("cut.csv.gz", whole[:20]), ("plain.csv.gz", b"p,k,v\n"), ("cut.parquet.gz", whole[:20])):
        path = tmp_path / name
        path.write_bytes(data)
        code, _, err = run("load", place, path)
        assert code == 1 and f"{name} cannot be read" in err and len(err.splitlines()) == 1
    code, _, err = run("load", place, tmp_path / "cut.parquet.gz", "--keep-good", tmp_path / "bad.csv")
    assert code == 1 and "only rows of CSV files" in err and not (tmp_path / "bad.csv").exists()


@pytest.mark.parametrize(("is_done", "more", "said"), [
    (False, (), "error: interrupted: nothing was loaded; run the command again\n"),
    (True, (), "there are commits after snapshot 3; paimon-py history TABLE shows whether the load is one of them"),
    (True, ("--user", "u", "--identifier", "7"), "run the command again: rows that were loaded already are not loaded twice"),
    (True, ("--user", "u", "--identifier", "0"), "run the command again: rows that were loaded already are not loaded twice"),
])  # fmt: skip
def test_an_interrupted_load_says_what_was_done(run, place, tmp_path, monkeypatch, is_done, more, said):
    (tmp_path / "a.json").write_text('{"p": 1, "k": 9}')
    load_files = Table.load_files

    def interrupted(self, *args, **kwargs):
        if is_done:
            load_files(self, *args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Table, "load_files", interrupted)
        code, out, err = run("load", place, tmp_path / "a.json", *more)
    assert (code, out) == (130, "") and said in err and err.strip().count("\n") == 0
    if more:
        assert as_json(run, "load", place, tmp_path / "a.json", *more)["already_committed"] is True


@pytest.mark.parametrize(("name", "inside"), [("Delta", "_delta_log/0.json"), ("Iceberg", "metadata/v1.metadata.json")])
def test_tables_of_others_are_named(run, warehouse, tmp_path, name, inside):
    (tmp_path / "o" / inside).parent.mkdir(parents=True)
    (tmp_path / "o" / inside).write_text("{}")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "o" / "a.parquet")
    assert f"it is {'a' if name == 'Delta' else 'an'} {name} table: catalog.import_" in run("head", tmp_path / "o")[2]
    code, _, err = run("import", warehouse, "d.i", tmp_path / "o")
    assert code == 1 and f"{name} table, whose files include deleted rows: use import_{name.lower()}" in err


def test_a_key_of_directories_needs_no_type(run, warehouse, tmp_path):
    (tmp_path / "l" / "day=1").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "l" / "day=1" / "a.parquet")
    assert as_json(run, "import", warehouse, "d.i", tmp_path / "l", "--partition-by", "day")["columns"]["day"] == "STRING"
    code, _, err = run("load", warehouse / "d.db" / "t", tmp_path / "none.json")
    assert code == 1 and "does not exist" in err
    (tmp_path / "a.json").write_text('[{"p": 1, "k": 1}]')
    assert "jq -c '.[]' makes lines" in run("load", warehouse / "d.db" / "t", tmp_path / "a.json")[2]


def test_an_interrupted_import_is_continued(run, warehouse, tmp_path, monkeypatch):
    source = tmp_path / "l"
    source.mkdir()
    pq.write_table(pa.table({"id": [1]}), source / "a.parquet")
    with monkeypatch.context() as patch:
        patch.setattr("paimon_py.imports.verb._references", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        code, _, err = run("import", warehouse, "d.i", source)
    assert code == 130 and "error: interrupted: run the command again, which imports the remaining files" in err
    assert "i" not in Catalog.open(str(warehouse)).tables("d")
    assert as_json(run, "import", warehouse, "d.i", source)["rows"] == 1


def test_iceberg_metadata_are_shown_and_published(run, place):
    assert as_json(run, "iceberg", place)["enabled"] is False
    code, _, err = run("iceberg", place, "publish")
    assert code == 1 and "writes no Iceberg metadata" in err
    good(run, "alter", place, "--set", "metadata.iceberg.storage=table-location")
    assert as_json(run, "iceberg", place, "publish")["version"] == 3
    shown = as_json(run, "iceberg", place)
    assert (shown["enabled"], shown["snapshot_id"], shown["lag"]) == (True, 3, 0)
