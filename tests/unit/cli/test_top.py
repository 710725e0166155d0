"""`paimon-py top`: what a screen shows, at the widths of a small and a large terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog
from paimon_py.cli.app import main
from paimon_py.cli.frames import age_text, table_frame
from paimon_py.cli.top import view_of

ROOT = Path(__file__).parents[3]
KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    path = tmp_path_factory.mktemp("top") / "wh"
    catalog = Catalog.open(path, {"fs.local.fsync": "false"})
    catalog.create_database("d")
    table = catalog.create_table("d.piled_up", KEYED, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for n in range(10):
        table.write_arrow(pa.table({"k": [n, n + 1], "v": ["x", "y"]}), user="a-user-with-a-long-name", identifier=n)
    table.delete("k = 3")
    table.create_tag("t")
    table.stream(consumer_id="reader", from_=4).poll().acknowledge()
    catalog.create_table("d.empty", KEYED)
    catalog.create_table("d.a_table_with_a_rather_long_name_of_its_own", KEYED).write_arrow(pa.table({"k": [1], "v": ["x"]}))
    return str(path)


def screen(capsys, monkeypatch, width, *arguments):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["top", *arguments, "--once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    return lines


@pytest.mark.parametrize("width", [80, 200])
def test_a_table_fits_its_screen(warehouse, capsys, monkeypatch, width):
    lines = screen(capsys, monkeypatch, width, f"{warehouse}/d.db/piled_up")
    text = "\n".join(lines)
    assert lines[0].startswith("piled_up") and lines[0].endswith("Z")
    assert "snapshot 11 DELETE by " in text and "11 commits in 10 min" in text and "11 snapshots, 1 tag" in text
    assert "worst bucket: 11 sorted runs (compactions begin at 5), 11 of 8 files on level 0" in text
    assert "to merge: 11 files of " in text
    assert any(line.split() == ["7", "reader"] for line in lines)
    commit = next(line for line in lines if line.strip().startswith("11 ") and "DELETE" in line)
    assert ("a-user-with-a-long-name" in text) is (width == 200) and commit.split()[3:6] in (["DELETE", "0", "1"], ["s", "DELETE", "0"])
    assert ("rows in all" in text) is (width == 200)


@pytest.mark.parametrize("width", [80, 200])
def test_a_warehouse_fits_its_screen_and_the_worst_table_is_first(warehouse, capsys, monkeypatch, width):
    lines = screen(capsys, monkeypatch, width, warehouse)
    assert "3 tables, 12 files" in lines[0] and lines[0].endswith("Z")
    assert lines[3].startswith("d.piled_up") and lines[3].endswith("L0 piles up")
    assert sum(line.startswith("d.") for line in lines) == 3
    assert ("last operation" in lines[2]) is (width == 200)


def test_an_empty_table_and_one_that_cannot_be_read(warehouse, capsys, monkeypatch, tmp_path):
    assert any("the table is empty" in line for line in screen(capsys, monkeypatch, 80, "d.empty", "-w", warehouse))
    broken = Catalog.open(tmp_path / "wh", {"fs.local.fsync": "false"})
    broken.create_database("d")
    table = broken.create_table("d.t", KEYED)
    table.write_arrow(pa.table({"k": [1], "v": ["x"]}))
    for path in Path(table.location, "manifest").iterdir():
        path.write_bytes(b"damage")
    lines = screen(capsys, monkeypatch, 200, str(tmp_path / "wh"))
    assert lines[3].startswith("d.t") and "cannot be decoded" in lines[3] or "manifest" in lines[3]


def test_a_system_table_is_refused(warehouse, capsys):
    assert main(["top", "d.piled_up$files", "-w", warehouse, "--once"]) == 1
    assert "is a system table" in capsys.readouterr().err


def test_a_view_is_drawn_as_often_as_asked(warehouse):
    view = view_of(Catalog.open(warehouse).table("d.piled_up"), 3)
    assert table_frame(view, 80) is not None and len(view.history) == 3 and view.recent == 11


def test_ages_are_short():
    assert [age_text(number) for number in (None, 0, 59, 60, 7200, 86_400 * 3)] == ["", "0 s", "59 s", "1 min", "2 h", "3 d"]


def test_the_live_screen_goes_on_until_an_interrupt(warehouse):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "paimon_py", "top", warehouse, "--every", "1s"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(command, cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE, env=environment)
    os.close(theirs)
    shown, deadline = b"", time.monotonic() + 60
    try:
        while shown.count(b"piled_up") < 2 and time.monotonic() < deadline:
            if select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        while select.select([ours], [], [], 1)[0]:
            try:
                if not os.read(ours, 65536):
                    break
            except OSError:
                break
        assert process.wait(60) == 0 and process.stderr.read() == b""
    finally:
        process.kill()
        process.stderr.close()
        os.close(ours)
    assert shown.count(b"piled_up") >= 2 and b"L0 piles up" in shown
