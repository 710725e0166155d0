"""Eight processes commit to one local table at once: nothing is lost, nothing is twice, the later commit wins."""

from __future__ import annotations

import multiprocessing
from collections import Counter

import pyarrow as pa
import pytest

from paimon_py import Catalog, Table

PROCESSES = 8
COMMITS = 50
CONTEXT = multiprocessing.get_context("spawn")


def make(warehouse, columns, **settings) -> Table:
    catalog = Catalog.open(str(warehouse))
    catalog.create_database("db", exist_ok=True)
    return catalog.create_table("db.t", pa.schema(columns), **settings)


def append_many(path: str, worker: int, commits: int, answers) -> None:
    table = Table.open(path)
    for number in range(commits):
        result = table.write_arrow(pa.table({"worker": [worker], "number": [number]}))
        answers.put((worker, number, result.snapshot_id))


def upsert_many(path: str, worker: int, commits: int, answers) -> None:
    table = Table.open(path)
    for number in range(commits):
        value = f"{worker}-{number}"
        rows = pa.table({"k": [0, 1 + worker], "v": [value, value]})
        result = table.write_arrow(rows)
        answers.put((worker, number, result.snapshot_id))


def run(target, path: str, processes: int, commits: int) -> list[tuple[int, int, int]]:
    answers = CONTEXT.Queue()
    workers = [CONTEXT.Process(target=target, args=(path, n, commits, answers)) for n in range(processes)]
    for worker in workers:
        worker.start()
    got = [answers.get(timeout=300) for _ in range(processes * commits)]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    return got


def check_history(table: Table, acknowledged: list[tuple[int, int, int]]) -> None:
    ids = [snapshot.id for snapshot in table.snapshots()]
    assert ids == list(range(1, len(acknowledged) + 1))
    assert sorted(snapshot for *_, snapshot in acknowledged) == ids


def test_concurrent_appends_are_all_there_once(tmp_path):
    table = make(tmp_path, [("worker", pa.int64()), ("number", pa.int64())])
    acknowledged = run(append_many, table.location, PROCESSES, COMMITS)
    check_history(table, acknowledged)
    rows = table.scan().to_arrow()
    found = Counter(zip(rows["worker"].to_pylist(), rows["number"].to_pylist()))
    assert found == Counter((worker, number) for worker, number, _ in acknowledged)


def test_concurrent_upserts_of_one_bucket_behave_as_if_one_ran_after_the_other(tmp_path):
    schema = [pa.field("k", pa.int64(), nullable=False), pa.field("v", pa.string())]
    table = make(tmp_path, schema, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    acknowledged = run(upsert_many, table.location, PROCESSES, COMMITS)
    check_history(table, acknowledged)
    by_snapshot = {snapshot: f"{worker}-{number}" for worker, number, snapshot in acknowledged}
    for snapshot_id in (*range(1, 400, 37), 400):
        rows = table.scan(snapshot_id=snapshot_id).to_arrow()
        values = dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist()))
        assert values[0] == by_snapshot[snapshot_id], f"snapshot {snapshot_id}"
    last = {worker: number for worker, number, _ in sorted(acknowledged)}
    assert {key - 1: value for key, value in values.items() if key} == {w: f"{w}-{n}" for w, n in last.items()}


def test_concurrent_overwrites_leave_the_rows_of_exactly_one(tmp_path):
    table = make(tmp_path, [("worker", pa.int64()), ("number", pa.int64())])
    acknowledged = run(overwrite_many, table.location, 4, 8)
    last = max(acknowledged, key=lambda answer: answer[2])
    assert table.scan().to_arrow().to_pylist() == [{"worker": last[0], "number": last[1]}]


def overwrite_many(path: str, worker: int, commits: int, answers) -> None:
    table = Table.open(path)
    for number in range(commits):
        result = table.write_arrow(pa.table({"worker": [worker], "number": [number]}), overwrite={})
        answers.put((worker, number, result.snapshot_id))


@pytest.mark.parametrize("count", [4])
def test_concurrent_schema_changes_are_all_there(tmp_path, count):
    table = make(tmp_path, [("a", pa.int64())])
    run(alter_many, table.location, count, 5)
    names = Table.open(table.location).schema.names
    assert set(names) == {"a"} | {f"c{worker}_{number}" for worker in range(count) for number in range(5)}
    assert Table.open(table.location).schema.id == count * 5


def alter_many(path: str, worker: int, commits: int, answers) -> None:
    from paimon_py import AddColumn

    table = Table.open(path)
    for number in range(commits):
        table.alter(AddColumn(f"c{worker}_{number}", "INT"))
        answers.put((worker, number, 0))
