"""The Iceberg metadata of tables that were made step by step, against those of Java, and by what pyiceberg and DuckDB read."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
JUDGES = ROOT.parent / "shared" / "iceberg"
CASES = sorted((JUDGES / "cases").glob("*.json")) if JUDGES.exists() else []
OF_JAVA_2_0 = [path for path in CASES if json.loads(path.read_text()).get("java", "2.0.0") == "2.0.0"]
DRIFTING = ("pk-evolution", "pk-expire-tags")
"""Java counts `total-records` on from the true number of ours, and so comes to another number than from its own."""


def judged(tmp_path, verb, cases):
    missing = [name for name in ("pyiceberg", "fastavro", "pyroaring") if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"the judge needs {', '.join(missing)}")
    command = [sys.executable, "-W", "ignore", str(JUDGES / "judge.py"), verb, *map(str, cases)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.skipif(not CASES, reason="needs ../shared/iceberg")
def test_metadata_say_what_javas_say_and_readers_see_the_same_rows(tmp_path):
    judged(tmp_path, "run", CASES)


@pytest.mark.java
@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason="needs ../shared/iceberg")
def test_java_and_paimon_py_go_on_from_each_other(tmp_path):
    judged(tmp_path, "relay", [path for path in OF_JAVA_2_0 if path.stem not in DRIFTING])
