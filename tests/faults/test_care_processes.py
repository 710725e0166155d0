"""Eight processes write, compact, tag, expire, clean and read one table at once: no file that is kept is ever missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, CommitRetriesExhaustedError, SnapshotExpiredError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
ROOT = Path(__file__).parents[2]
OPTIONS = {
    "keyed": {"bucket": "1", "num-sorted-run.compaction-trigger": "3"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "input": {"bucket": "1", "changelog-producer": "input"},
}
KEPT = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "6", "write-only": "false"}
OLD = timedelta(seconds=20)
"""No writer of the test holds files uncommitted for longer."""
COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


def table_of(directory: str):
    return Catalog.open(directory).table("d.t")


def write(directory: str, number: int, rounds: int) -> int:
    """Upsert keys of this writer alone; the last round says what the keys hold."""
    for at in range(rounds):
        table_of(directory).write_arrow(pa.table({"k": [number * 10 + one for one in range(5)], "v": [at] * 5}))
    return rounds


def compact(directory: str, _: int, rounds: int) -> int:
    for _ in range(rounds):
        table_of(directory).compact(full=True)
    return rounds


def expire(directory: str, number: int, rounds: int) -> int:
    """Expire, and keep a tag for a while."""
    for at in range(rounds):
        table = table_of(directory)
        if table.snapshot() is not None:
            name = f"t{number}-{at}"
            try:
                table.create_tag(name)
                table.expire_snapshots(retain_min=1, retain_max=2, older_than=timedelta(0))
                table.scan(tag=name).to_arrow()
                table.delete_tag(name)
            except SnapshotExpiredError:
                continue
    return rounds


def clean(directory: str, _: int, rounds: int) -> int:
    return sum(table_of(directory).remove_orphans(older_than=OLD, dry_run=False).files for _ in range(rounds))


def read(directory: str, _: int, rounds: int) -> int:
    """The latest state can be read, or expired meanwhile."""
    found = 0
    for _ in range(rounds):
        try:
            found += table_of(directory).scan().to_arrow().num_rows
        except SnapshotExpiredError:
            continue
    return found


WORKS = (write, write, write, compact, expire, expire, clean, read)


def run(directory: str, rounds: int) -> list[str]:
    """What went wrong in the processes, which all begin at once."""
    children = {}
    for number, work in enumerate(WORKS):
        process = os.fork()
        if not process:
            try:
                work(directory, number, rounds if work is write else 2 * rounds)
            except (CommitConflictError, CommitRetriesExhaustedError) as error:
                sys.stderr.write(f"gave up: {error}\n")
                os._exit(7 if work is write else 0)
            except BaseException as error:  # noqa: BLE001 - the parent reads how the child ended
                sys.stderr.write(f"{work.__name__} {type(error).__name__}: {error}\n")
                os._exit(3)
            os._exit(0)
        children[process] = work.__name__
    ended = [(children.pop(process), os.waitstatus_to_exitcode(code)) for process, code in (os.wait() for _ in WORKS)]
    return [f"{name} ended with {code}" for name, code in ended if code]


def play(directory: Path, kind: str, rounds: int) -> None:
    catalog = Catalog.open(directory)
    catalog.create_database("d")
    catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={**OPTIONS[kind], **KEPT})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, str(directory), str(rounds)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [], done.stderr[-3000:]
    table = table_of(str(directory))
    table.compact(full=True)
    for snapshot in table.snapshots():
        table.scan(snapshot_id=snapshot.id).to_arrow()
    for tag in table.tags():
        table.scan(tag=tag.name).to_arrow()
    found = table.scan().to_arrow()
    rows = dict(zip(found["k"].to_pylist(), found["v"].to_pylist()))
    assert rows == {number * 10 + one: rounds - 1 for number in range(3) for one in range(5)}


def test_concurrent_processes_for_a_while(tmp_path):
    play(tmp_path, "keyed", 4)


@pytest.mark.full
@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("turn", range(4))
def test_concurrent_processes_for_long(kind, turn, tmp_path):
    play(tmp_path, kind, 60)


if __name__ == "__main__":
    where, given_rounds = sys.argv[1:]
    print(json.dumps(run(where, int(given_rounds))))
