"""Rows that the tasks of an executor read are those that this process reads, in the same order."""

from __future__ import annotations

import itertools
import threading

import pyarrow as pa
import pytest

from paimon_py import Catalog, col
from paimon_py.env import Env
from paimon_py.errors import CorruptionError, ResourceError, StorageError, UsageError
from paimon_py.executors import Job, LocalExecutor, ProcessExecutor, TaskResult
from paimon_py.executors.executor import run_tasks
from paimon_py.scan import parallel_read, read_tasks
from paimon_py.storage.memory_store import MemoryStore

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.list_(pa.string()))])
SHAPES = {
    "append": {"options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "2", "changelog-producer": "input"}},
    "evolving": {"options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
}
SCANS = [
    {}, {"where": col("k") > 60}, {"columns": ["v", "p"]}, {"columns": []}, {"where": col("p") == 99}, {"snapshot_id": 2},
    {"limit": 7}, {"limit": 0}, {"order_by": "k", "limit": 5},
]  # fmt: skip


@pytest.fixture(scope="module", params=SHAPES)
def table(request, tmp_path_factory):
    catalog = Catalog.open(tmp_path_factory.mktemp("reads"))
    catalog.create_database("d")
    small = {"source.split.target-size": "4 kb", "source.split.open-file-cost": "1 kb"}
    shape = SHAPES[request.param]
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], **{**shape, "options": {**shape["options"], **small}})
    for number in range(4):
        keys = range(20 * number, 20 * number + 40)
        table.write_arrow(pa.table({"p": [key % 3 for key in keys], "k": keys, "v": [[f"{number}"] * (key % 4) for key in keys]}, SCHEMA))
    if request.param == "append":
        table.delete(col("k") % 7 == 0)
    return table


class Counting:
    """Runs tasks here, the last of a job first, each twice; `jobs`: the number of tasks of each job."""

    def __init__(self):
        self.jobs = []

    def run(self, job, tasks):
        taken = list(tasks)
        self.jobs.append(len(taken))
        for task in reversed(taken):
            for _ in range(2):
                yield TaskResult.from_bytes(job.run_bytes(bytes(task)))


@pytest.mark.parametrize("asked", SCANS, ids=str)
def test_rows_by_tasks_are_the_rows(table, monkeypatch, asked):
    monkeypatch.setattr(read_tasks, "_TASK_BYTES", 2_000)
    monkeypatch.setattr(parallel_read, "_PARCEL_SPLITS", 2)
    monkeypatch.setattr(read_tasks, "_TASKS_AT_ONCE", 2)
    expected = table.scan(**asked).to_arrow()
    for executor in (LocalExecutor(), Counting()):
        assert table.scan(**asked).to_arrow(executor=executor).equals(expected)
        if asked.get("columns") != []:  # batches without columns lose their number of rows in read_all
            assert table.scan(**asked).to_reader(executor=executor).read_all().equals(expected)
        assert sum(batch.num_rows for batch in table.scan(**asked).to_reader(executor=executor)) == len(expected)


def test_processes_read(table):
    with ProcessExecutor(1) as executor:
        for asked in ({}, {"where": col("k") > 60, "columns": ["k"]}):
            assert table.scan(**asked).to_arrow(executor=executor).equals(table.scan(**asked).to_arrow())


def test_changes_and_system_tables(table):
    changes = table.changes(1, 3)
    if "data-evolution.enabled" not in table.options:
        assert changes.to_arrow(executor=Counting()).equals(changes.to_arrow())
    for name in ("files", "audit_log"):
        scan = table.system(name).scan()
        assert scan.to_arrow(executor=Counting()).equals(scan.to_arrow())


def test_a_stream_has_the_rows_of_few_tasks_in_memory(table, monkeypatch):
    monkeypatch.setattr(read_tasks, "_TASK_BYTES", 1)
    monkeypatch.setattr(parallel_read, "_PARCEL_SPLITS", 1)
    monkeypatch.setattr(read_tasks, "_TASKS_AT_ONCE", 1)
    counting = Counting()
    reader = table.scan().to_reader(executor=counting)
    reader.read_next_batch()
    assert counting.jobs == [1]
    rest = sum(batch.num_rows for batch in reader)
    assert 0 < rest < table.count() and set(counting.jobs) == {1} and len(counting.jobs) > 2
    counting.jobs.clear()
    table.scan().to_arrow(executor=counting)
    assert len(counting.jobs) == 1


def test_rows_that_do_not_fit_are_refused_before_all_are_read(monkeypatch):
    monkeypatch.setattr(read_tasks, "_TASK_BYTES", 1)
    monkeypatch.setattr(parallel_read, "_PARCEL_SPLITS", 1)
    catalog = Catalog(MemoryStore(), "/w", env=Env(memory_bytes=1_000_000))
    catalog.create_database("d")
    options = {"bucket": "-1", "source.split.target-size": "1 kb"}
    table = catalog.create_table("d.t", [("k", "BIGINT"), ("v", "STRING")], options=options)
    for _ in range(8):
        table.write_arrow(pa.table({"k": range(400), "v": [f"{number:0500}" for number in range(400)]}))
    begun = []

    class Noting:
        def run(self, job, tasks):
            for task in tasks:
                begun.append(task.number)
                for _ in range(2):
                    yield TaskResult.from_bytes(job.run_bytes(bytes(task)))

    with pytest.raises(ResourceError, match=r"/w/d.db/t need more memory than this process gets.*to_reader\(\)"):
        table.scan().to_arrow(executor=Noting())
    assert begun == [0, 1, 2]
    assert sum(batch.num_rows for batch in table.scan().to_reader(executor=LocalExecutor())) == 3_200
    assert table.scan(columns=["k"]).to_arrow(executor=LocalExecutor()).equals(table.scan(columns=["k"]).to_arrow())


class Watching:
    """Runs tasks here; `jobs`: the bytes of the rows of each task of each job."""

    def __init__(self):
        self.jobs = []

    def run(self, job, tasks):
        self.jobs.append([])
        for result in LocalExecutor().run(job, tasks):
            self.jobs[-1].append(result.value.size_bytes)
            yield result


@pytest.mark.parametrize("limit", [None, 1_000_000, 400_000])
def test_a_stream_takes_as_many_tasks_as_fit_into_memory(monkeypatch, limit):
    monkeypatch.setattr(read_tasks, "_TASK_BYTES", 1 if limit is None else read_tasks._TASK_BYTES)
    monkeypatch.setattr(parallel_read, "_PARCEL_SPLITS", 1)
    catalog = Catalog(MemoryStore(), "/w", env=Env(memory_bytes=limit))
    catalog.create_database("d")
    options = {"bucket": "-1", "source.split.target-size": "1 kb", "file.compression": "none"}
    table = catalog.create_table("d.t", [("k", "BIGINT"), ("v", "STRING")], options=options)
    for step in range(20):
        table.write_arrow(pa.table({"k": range(200), "v": [f"{number:0500}{step}" for number in range(200)]}))
    watching = Watching()
    assert sum(batch.num_rows for batch in table.scan().to_reader(executor=watching)) == 4_000
    assert sum(map(len, watching.jobs)) == 20
    if limit is None:
        assert [len(sizes) for sizes in watching.jobs] == [16, 4]
        return
    room = Env(memory_bytes=limit).memory.rows_bytes // 2
    assert all(len(sizes) == 1 or sum(sizes) <= room for sizes in watching.jobs[1:]), "the first job may be surprised"
    assert max(map(len, watching.jobs[1:])) == max(1, room // watching.jobs[0][0])


def test_threads_of_a_local_executor_read_at_the_same_time(table, monkeypatch):
    monkeypatch.setattr(read_tasks, "_TASK_BYTES", 1)
    monkeypatch.setattr(parallel_read, "_PARCEL_SPLITS", 1)
    both, real = threading.Barrier(2), type(table.scan()).read

    def read(scan, split):
        both.wait(60)
        return real(scan, split)

    expected = table.scan().to_arrow()
    pairs = len(expected) and len(table.scan().splits()) // 2 * 2
    scan = table.scan()
    tasks = [read_tasks.SplitsTask(splits=(bytes(split),), size_bytes=1) for split in scan.splits()[:pairs]]
    monkeypatch.setattr(type(scan), "read", read)
    monkeypatch.setattr(scan._root.env, "pool", Env(threads=2).pool)
    for executor in (LocalExecutor(threads=2), LocalExecutor()):
        found = run_tasks(executor, Job(read_tasks.READ_SPLITS, None, scan), tasks)
        rows = [pa.ipc.read_record_batch(pa.py_buffer(data), scan.schema) for each in found for data in each.batches]
        assert pa.Table.from_batches(rows, scan.schema).equals(expected.slice(0, sum(map(len, rows))))


def test_the_number_of_splits_read_at_the_same_time_is_that_of_the_table(table, monkeypatch):
    monkeypatch.setattr(read_tasks, "_TASK_BYTES", 1)
    monkeypatch.setattr(parallel_read, "_PARCEL_SPLITS", 1)
    running, seen, real = [], [], type(table.scan()).read

    def read(scan, split):
        running.append(split)
        seen.append(len(running))
        rows = real(scan, split).read_all()
        running.remove(split)
        return rows.to_reader()

    expected = table.scan().to_arrow()
    monkeypatch.setattr(type(table.scan()), "read", read)
    scan = table.scan(options={"read.parallelism": "1"})
    assert scan.to_arrow(executor=LocalExecutor(threads=4)).equals(expected)
    assert set(seen) == {1}


def test_tasks_that_fail(table, monkeypatch):
    class Failing:
        def run(self, job, tasks):
            for task in tasks:
                error = StorageError("the store failed", operation="get")
                yield TaskResult(job.kind.tag, task.number, None, error)

    class Losing:
        def run(self, job, tasks):
            yield from itertools.islice(LocalExecutor().run(job, tasks), 1, None)

    for read in (table.scan().to_arrow, lambda executor: table.scan().to_reader(executor=executor).read_all()):
        with pytest.raises(StorageError, match="the store failed"):
            read(executor=Failing())
        with pytest.raises(CorruptionError, match="neither a result nor an error"):
            read(executor=Losing())
        with pytest.raises(UsageError, match="executor must be"):
            read(executor=4)


def test_blobs_as_references(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    table = catalog.create_table("d.t", [("k", "BIGINT"), ("b", "BLOB")], options=options)
    table.write_arrow(pa.table({"k": [1, 2], "b": pa.array([b"one", b"two"], pa.large_binary())}))
    for blobs in (None, "bytes", "refs"):
        found = table.scan().to_arrow(blobs=blobs, executor=Counting())
        assert found.equals(table.scan().to_arrow(blobs=blobs))
    assert found["b"][0].as_py() != b"one"
