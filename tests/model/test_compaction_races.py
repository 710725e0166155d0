"""Four processes write to one bucket and compact it at once: every acknowledged commit counts, in the order of snapshots.

Each process adds 1 to a key of all and to one of its own; sums say what was lost or counted twice, and a second column
that the later commit wins.
"""

from __future__ import annotations

import multiprocessing
import pathlib
import re
import subprocess
import uuid

import pyarrow as pa
import pytest

from paimon_py import Catalog, Table

CONTEXT = multiprocessing.get_context("spawn")
PROCESSES = 4
LAUNCHER = pathlib.Path(__file__).parents[2].parent / "shared" / "servers" / "s3"
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("last", pa.string())])
OPTIONS = {
    "aggregation": {
        "merge-engine": "aggregation",
        "fields.n.aggregate-function": "sum",
        "fields.last.aggregate-function": "last_value",
    },
    "vectors": {"deletion-vectors.enabled": "true"},
}


def work(warehouse: str, options: dict[str, str], worker: int, commits: int, answers) -> None:
    table = Catalog.open(warehouse, options).table("db.t")
    for number in range(commits):
        rows = pa.table({"k": [0, 1 + worker], "n": [1, 1], "last": [f"{worker}-{number}"] * 2}, schema=SCHEMA)
        answers.put((worker, number, table.write_arrow(rows).snapshot_ids[0]))
        if number % 3 == worker % 3:
            table.compact(full=number % 2 == 0)


def race(warehouse: str, settings: dict[str, str], kind: str, commits: int) -> None:
    catalog = Catalog.open(warehouse, settings)
    catalog.create_database("db", exist_ok=True)
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "2", **OPTIONS[kind]}
    catalog.create_table("db.t", SCHEMA, primary_key=["k"], options=options)
    answers = CONTEXT.Queue()
    workers = [CONTEXT.Process(target=work, args=(warehouse, settings, n, commits, answers)) for n in range(PROCESSES)]
    for worker in workers:
        worker.start()
    acknowledged = [answers.get(timeout=500) for _ in range(PROCESSES * commits)]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    table = Catalog.open(warehouse, settings).table("db.t")
    ids = [snapshot.id for snapshot in table.snapshots()]
    assert ids == list(range(1, len(ids) + 1))
    assert len({answer[2] for answer in acknowledged}) == len(acknowledged)
    kinds = [snapshot.commit_kind for snapshot in table.snapshots()]
    assert kinds.count("APPEND") == len(acknowledged) and "COMPACT" in kinds
    table.compact(full=True)
    check_rows(table, kind, acknowledged, commits)


def check_rows(table: Table, kind: str, acknowledged: list, commits: int) -> None:
    rows = table.scan().to_arrow().to_pylist()
    found = {row["k"]: (row["n"], row["last"]) for row in rows}
    assert len(found) == len(rows) == 1 + PROCESSES
    newest = max(acknowledged, key=lambda answer: answer[2])
    sums = kind == "aggregation"
    assert found[0] == (PROCESSES * commits if sums else 1, f"{newest[0]}-{newest[1]}")
    for worker in range(PROCESSES):
        assert found[1 + worker] == (commits if sums else 1, f"{worker}-{commits - 1}")


def test_processes_that_write_and_compact_one_bucket_lose_nothing(tmp_path):
    race(str(tmp_path), {}, "aggregation", 4)


@pytest.mark.full
@pytest.mark.parametrize("kind", OPTIONS)
def test_processes_that_write_and_compact_one_bucket_for_long_lose_nothing(tmp_path, kind):
    race(str(tmp_path), {}, kind, 25)


@pytest.mark.full
@pytest.mark.server
@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_processes_that_write_and_compact_one_bucket_on_s3_lose_nothing(tmp_path, kind):
    if not LAUNCHER.exists():
        pytest.skip(f"no server launcher at {LAUNCHER}")
    pytest.importorskip("s3fs")
    started = subprocess.run([str(LAUNCHER), "start", "--dir", str(tmp_path)], capture_output=True, text=True, timeout=570)
    assert started.returncode == 0, started.stderr
    try:
        found = dict(re.findall(r"^export (\w+)='?(.*?)'?$", started.stdout, re.MULTILINE))
        settings = {
            "s3.endpoint": found["AWS_ENDPOINT_URL"],
            "s3.access-key": found["AWS_ACCESS_KEY_ID"],
            "s3.secret-key": found["AWS_SECRET_ACCESS_KEY"],
            "s3.region": found["AWS_DEFAULT_REGION"],
            "s3.path.style.access": "true",
        }
        race(f"s3://warehouse/{uuid.uuid4()}", settings, kind, 10)
    finally:
        subprocess.run([str(LAUNCHER), "stop", "--dir", str(tmp_path)], check=True, capture_output=True, timeout=60)
