"""A writer and a follower in processes of their own, killed at random: no change is lost, none comes twice.

Each batch is in the table once; the steps that the follower stored, applied in their order, give the table; and they are the
changes that a batch read finds between the same snapshots.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.stream_processes import CASES, Sink, rows_of, table_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
ROOT = Path(__file__).parents[2]
KILLS = 40
"""In one of the runs of the full suite."""
RUNS = [(case, seed) for case in CASES for seed in range(10, 14)]
assert len(RUNS) * KILLS >= 300


def play(directory, case, seed, kills):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "tests" / "faults" / "stream_processes.py"), str(directory), str(seed), str(kills), case],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    assert told["killed"] >= kills and not told["bad"], (told, done.stderr[-3000:])
    table = table_of(directory)
    users = [(snapshot.commit_identifier, snapshot.commit_kind) for snapshot in table.snapshots() if snapshot.commit_user == "job"]
    assert sorted(number for number, kind in users if kind == "APPEND") == list(range(1, told["batches"] + 1))
    check_rows(table, seed, told["batches"])
    check_steps(directory, table, case)
    return told


def check_rows(table, seed, batches):
    """Every batch was taken once, in its place."""
    wanted = {}
    for number in range(1, batches + 1):
        for row in rows_of(seed, number).to_pylist():
            wanted.pop(row["k"], None)
            if row["_row_kind"] != "-D":
                wanted[row["k"]] = row["v"]
    found = table.scan().to_arrow().to_pydict()
    assert dict(zip(found["k"], found["v"])) == wanted


def check_steps(directory, table, case):
    """What was stored gives the table, and is what happened."""
    table.compact(full=True)
    sink = Sink(directory / "steps")
    numbers, steps = sink.numbers(), sink.steps()
    begun = sum(step["full"] for step in steps)  # who died before the first acknowledgement begins anew
    assert [step["full"] for step in steps] == [True] * begun + [False] * (len(steps) - begun)
    numbers, steps = numbers[begun - 1 :], steps[begun - 1 :]
    follow_last(directory, table, steps, numbers)
    rows = {}
    for step in steps:
        for row in map(json.loads, step["rows"]):
            if row["_row_kind"] in ("-U", "-D"):
                if case not in ("none", "input"):
                    assert rows.get(row["k"]) == row["v"], f"{row} goes and was not there"
                rows.pop(row["k"], None)
        for row in map(json.loads, step["rows"]):
            if row["_row_kind"] in ("+I", "+U"):
                rows[row["k"]] = row["v"]
    found = table.scan().to_arrow().to_pydict()
    assert rows == dict(zip(found["k"], found["v"]))
    stored = sorted(row for step in steps[1:] for row in step["rows"])
    told = table.changes(numbers[0] - 1, numbers[-1] - 1).to_arrow().to_pylist()
    assert stored == sorted(json.dumps(row) for row in told)


def follow_last(directory, table, steps, numbers):
    """The changes of the last compaction, which came after both had ended."""
    stream = table.stream(from_=steps[-1]["position"])
    while (step := stream.poll()) is not None:
        rows = sorted(json.dumps(row) for row in step.to_arrow().to_pylist())
        steps.append({"full": False, "rows": rows})
        numbers.append(step.next_snapshot_id)


@pytest.mark.parametrize(("case", "seed"), [("lookup", 1), ("full compaction", 2)])
def test_a_few_kills_lose_and_double_nothing(case, seed, tmp_path):
    play(tmp_path, case, seed, 3)


@pytest.mark.full
@pytest.mark.parametrize(("case", "seed"), RUNS)
def test_many_kills_lose_and_double_nothing(case, seed, tmp_path):
    assert play(tmp_path, case, seed, KILLS)["steps"] > 5
