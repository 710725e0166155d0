"""Buckets written and compacted by several threads: the same files, errors that leave nothing."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from unit.write.support import TABLE, CountingIds, FixedClock, data_files, root_of, schema_of

from paimon_py import StorageError
from paimon_py.compaction.plan import plan_compaction
from paimon_py.env import Env, SerialPool, ThreadPool
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.store_spill import StoreSpill

COLUMNS = {"k": "BIGINT NOT NULL", "p": "INT NOT NULL", "v": "BIGINT"}
KINDS = {
    "append": ([], {"bucket": "3", "bucket-key": "k"}, {}),
    "append, many row groups": ([], {"bucket": "3", "bucket-key": "k"}, {"count": 900_000}),
    "append, small files": ([], {"bucket": "3", "bucket-key": "k", "target-file-size": "20 kb"}, {}),
    "no buckets": ([], {"bucket": "-1"}, {}),
    "waiting": (["k", "p"], {"bucket": "-2"}, {}),
    "keyed": (["k", "p"], {"bucket": "3"}, {}),
    "keyed, partial-update": (["k", "p"], {"bucket": "3", "merge-engine": "partial-update"}, {}),
    "keyed, small buffer": (["k", "p"], {"bucket": "3", "write-buffer-size": "100 kb"}, {}),
    "keyed, no spilling": (
        ["k", "p"], {"bucket": "3", "write-buffer-size": "100 kb", "write-buffer-spillable": "false"}, {}),
    "keyed, changelog": (["k", "p"], {"bucket": "3", "changelog-producer": "input"}, {}),
    "dynamic": (["k", "p"], {"bucket": "-1", "dynamic-bucket.target-row-num": "2000"}, {}),
}  # fmt: skip


def rows(count, seed=1):
    rng = np.random.default_rng(seed)
    return pa.table({
        "k": rng.integers(0, count, count), "p": pa.array(rng.integers(0, 2, count), pa.int32()),
        "v": rng.integers(0, 9, count),
    })  # fmt: skip


def table_of(kind, pool, store=None):
    keys, options, _ = KINDS[kind]
    partitions = [] if "row groups" in kind else ["p"]
    schema = schema_of(
        COLUMNS, primary_key=keys, partition_by=partitions, options={"write-only": "true", **options}
    )
    made = root_of(schema)
    if store is not None:
        store.store, made.store = made.store, store
    env = Env(FixedClock(), CountingIds(), pool, StoreSpill(MemoryStore()))
    return Table(TableRoot(made.store, TABLE, env), schema, "t")


def contents(table):
    store = table._root.store
    return {path: store.get(path) for path in data_files(table._root)}


def lane_threads():
    return [thread for thread in threading.enumerate() if thread.name == "paimon-lane"]


def written(kind, pool):
    """What writers hand over, and the bytes of their files."""
    table = table_of(kind, pool)
    data = rows(KINDS[kind][2].get("count", 6000))
    batches = data.to_batches(max_chunksize=max(700, data.num_rows // 9))
    found = []
    with table.writer() as writer:
        for part in (batches[:5], batches[5:]):
            writer.write_arrow(pa.Table.from_batches(part))
            found.append(bytes(writer.changes()))
    return found, contents(table)


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_are_those_of_one_thread(kind):
    expected, files = written(kind, SerialPool())
    assert len(files) >= 2
    for threads in (1, 2, 8):
        found, bytes_of = written(kind, ThreadPool(threads))
        assert found == expected and bytes_of == files
    assert not lane_threads()


class FailsToWrite:
    """A store that takes so many data files and no more."""

    def __init__(self, most):
        self.store = None
        self.most = most
        self.lock = threading.Lock()
        self.begun = 0

    def open_write(self, path, *, within=None):
        if "/bucket-" in path:
            with self.lock:
                self.begun += 1
                if self.begun > self.most:
                    raise StorageError("no more files", path=path, operation="open_write")
        return self.store.open_write(path, within=within)

    def __getattr__(self, name):
        return getattr(self.store, name)


@pytest.mark.parametrize("kind", ["append", "keyed", "keyed, small buffer"])
def test_an_error_in_one_bucket_leaves_no_file_and_no_thread(kind):
    table = table_of(kind, ThreadPool(4), FailsToWrite(3))
    with pytest.raises(StorageError, match="no more files"), table.writer() as writer:
        writer.write_arrow(rows(6000))
        writer.changes()
    assert data_files(table._root) == [] and not lane_threads()


def test_an_error_of_the_rows_ends_the_work():
    table = table_of("keyed", ThreadPool(4))

    def batches():
        yield from rows(6000).to_batches(max_chunksize=500)
        raise ValueError("no more rows")

    reader = pa.RecordBatchReader.from_batches(rows(1).schema, batches())
    with pytest.raises(ValueError, match="no more rows"), table.writer() as writer:
        writer.write_arrow(reader)
    assert data_files(table._root) == [] and not lane_threads()


def compacted(kind, pool):
    """The rows of every bucket after a compaction, and how many files there are."""
    table = table_of(kind, pool)
    for seed in range(3):
        table.write_arrow(rows(2000, seed))
    tasks = [task.files for task in plan_compaction(OpenTable(table._root, table._schema), full=True, chosen=None)]
    seen = []
    result = table.compact(full=True, progress=lambda *far: seen.append(far))
    splits = sorted(table.scan().splits(), key=lambda split: (split.partition, split.bucket))
    return (
        len(tasks), seen[-1], result.snapshot_id, [len(split.files) for split in splits],
        [table.scan().read(split).read_all() for split in splits],
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["keyed", "keyed, partial-update", "append"])
def test_compactions_are_those_of_one_thread(kind):
    expected = compacted(kind, SerialPool())
    assert expected[0] > 2
    for threads in (2, 8):
        assert compacted(kind, ThreadPool(threads)) == expected
    assert not lane_threads()


@pytest.mark.parametrize("most", [0, 2, 4])
def test_a_compaction_that_fails_leaves_no_file_and_no_thread(most):
    store = FailsToWrite(1 << 30)
    table = table_of("keyed", ThreadPool(4), store)
    for seed in range(3):
        table.write_arrow(rows(2000, seed))
    before = data_files(table._root)
    store.begun, store.most = 0, most
    with pytest.raises(StorageError, match="no more files"):
        table.compact(full=True)
    assert data_files(table._root) == before and not lane_threads()


def test_a_writer_compacts_buckets_at_the_same_time():
    def rows_after(pool):
        table = table_of("keyed", pool)
        table = Table(table._root, schema_of(
            COLUMNS, primary_key=["k", "p"], partition_by=["p"],
            options={"bucket": "3", "num-sorted-run.compaction-trigger": "2"},
        ), "t")  # fmt: skip
        for seed in range(4):
            table.write_arrow(rows(2000, seed))
        return table.snapshot().commit_kind, table.scan().to_arrow().sort_by([("p", "ascending"), ("k", "ascending")])

    expected = rows_after(SerialPool())
    assert rows_after(ThreadPool(4)) == expected
    assert not lane_threads()
