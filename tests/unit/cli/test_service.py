"""`paimon-py care`: lines, exit codes, and the end by a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog
from paimon_py.cli.app import main
from paimon_py.cli.sizes import size, size_text

ROOT = Path(__file__).parents[3]
KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])


@pytest.fixture
def warehouse(tmp_path):
    catalog = Catalog.open(tmp_path / "wh", {"fs.local.fsync": "false"})
    catalog.create_database("d")
    table = catalog.create_table("d.t", KEYED, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for n in range(7):
        table.write_arrow(pa.table({"k": [n], "v": ["x"]}))
    return str(tmp_path / "wh")


def test_one_round_says_what_it_did(warehouse, capsys):
    assert main(["care", warehouse, "--once"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(" s") and "1 table, 1 changed" in lines[0]
    assert lines[1].startswith("  d.t: 7 files of ") and lines[1].endswith(" merged")
    assert main(["care", warehouse, "--once", "--format", "json", "--orphans-every", "never"]) == 0
    assert json.loads(capsys.readouterr().out)["entries"][0]["compacted_files"] == 0


def test_a_budget_leaves_files_and_says_so(warehouse, capsys):
    other = Catalog.open(warehouse).create_table("d.u", KEYED, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    for n in range(9):
        other.write_arrow(pa.table({"k": [n], "v": ["x"]}))
    assert main(["care", warehouse, "--once", "--budget-bytes", "1", "--no-expire", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert ", 7 files left for the next round" in said and "d.u: 9 files" in said


def test_a_table_that_fails_is_exit_code_1(warehouse, capsys):
    for path in Path(warehouse, "d.db", "t", "manifest").iterdir():
        path.write_bytes(b"damage")
    assert main(["care", warehouse, "--once"]) == 1
    assert "d.t: error: " in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--every", "x"], ["--budget-bytes", "0"], ["--budget-bytes", "much"], ["--health", "x"]])
def test_wrong_usage(warehouse, wrong, capsys):
    assert main(["care", warehouse, "--once", *wrong]) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_with_0(warehouse, number):
    command = [sys.executable, "-m", "paimon_py", "care", warehouse, "--every", "1h", "--health", "0"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        assert "1 table, 1 changed" in process.stdout.readline()
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0 and "health at http://127.0.0.1:" in err


def test_sizes_are_read_and_shown():
    assert (size("2kb"), size("20 gb")) == (2048, 20 << 30)
    shown = [size_text(number) for number in (0, 999, 1000, 3 << 20, 1023 << 30, 1 << 60)]
    assert shown == ["0 B", "999 B", "1.0 KB", "3.0 MB", "1.0 TB", "1024 PB"]
