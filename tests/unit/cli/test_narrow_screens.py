"""What the command line shows on a narrow terminal, and which row of a file it says does not fit."""

from __future__ import annotations

import json
import re

import pytest

from paimon_py import Catalog, Schema
from paimon_py.cli.app import main

COLUMNS = {f"column_{number}": "STRING" for number in range(20)}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    path = tmp_path_factory.mktemp("narrow") / "wh"
    catalog = Catalog.open(path, {"fs.local.fsync": "false"})
    catalog.create_database("d")
    table = catalog.create_table("d.wide", Schema(COLUMNS))
    table.write_arrow([{name: f"value of {name} [b]" for name in COLUMNS}, {"column_3": None}])
    catalog.create_table("d.t", Schema({"k": "INT", "day": "DATE", "text": "STRING"}))
    return path


def on_terminal(capsys, monkeypatch, width, *arguments):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(list(map(str, arguments))) == 0
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()]
    assert max(map(len, lines)) <= width
    return lines


def test_rows_of_a_wide_table_stand_below_each_other(warehouse, capsys, monkeypatch):
    """At 80 columns there was one character a column, and forty lines a row."""
    lines = on_terminal(capsys, monkeypatch, 80, "head", warehouse / "d.db" / "wide")
    assert len(lines) == 2 * 21 + 1
    assert [lines[0].split(), lines[4].split(), lines[-17].split()] == [["row", "1"], ["column_3", "value", "of", "column_3", "[b]"], ["column_3", "NULL"]]
    wide = on_terminal(capsys, monkeypatch, 600, "head", warehouse / "d.db" / "wide")
    chosen = on_terminal(capsys, monkeypatch, 80, "head", warehouse / "d.db" / "wide", "--columns", "column_1,column_2")
    assert len(wide) == len(chosen) == 4


def test_snapshots_fit_a_narrow_terminal_and_their_times_have_a_zone(warehouse, capsys, monkeypatch):
    place = warehouse / "d.db" / "wide"
    lines = on_terminal(capsys, monkeypatch, 80, "snapshots", place)
    assert lines[1].split() == ["snapshot_id", "1"] and lines[2].endswith("Z")
    assert main(["snapshots", str(place), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["commit_time"].endswith("+00:00")
    assert main(["partitions", str(place), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["last_file_creation_time"].endswith("+00:00")


def test_deleting_orphans_is_no_dry_run_even_where_there_are_none(warehouse, capsys):
    for more, is_dry in ((["--delete", "--yes"], False), ([], True)):
        assert main(["orphans", str(warehouse / "d.db" / "wide"), *more, "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["dry_run"] is is_dry


FILES = {
    "value": (b'k,day,text\n1,2024-01-01,"a\nb"\n2,2024-13-01,c\n', "line 4, column 'day': '2024-13-01' is not of type DATE"),
    "later block": (b"k,text\n" + b"1,%s\n" % (b"a" * 50) * 40_000 + b"x,a\n", "line 40002, column 'k': 'x' is not of type INT"),
    "values": (b"k,text\n1,a\n1,a,b\n", "line 3: a different number of values than the file has columns"),
}


@pytest.mark.parametrize("name", FILES)
def test_the_row_that_does_not_fit_is_named(warehouse, tmp_path, capsys, name):
    """It was "In CSV column #1: CSV conversion error", without the row and the name of the column."""
    data, expected = FILES[name]
    (tmp_path / "a.csv").write_bytes(data)
    assert main(["load", str(warehouse / "d.db" / "t"), str(tmp_path / "a.csv")]) == 1
    assert f"a.csv cannot be read: {expected}; --keep-good loads the other rows" in capsys.readouterr().err


def test_text_of_another_encoding_is_told_with_a_way_out(warehouse, tmp_path, capsys):
    (tmp_path / "a.csv").write_bytes("k,text\n1,Köln\n".encode("latin-1"))
    assert main(["load", str(warehouse / "d.db" / "t"), str(tmp_path / "a.csv")]) == 1
    assert "iconv -f WINDOWS-1252 -t UTF-8" in capsys.readouterr().err
