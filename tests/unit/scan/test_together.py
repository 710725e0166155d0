"""Splits read by several threads: the same rows, closed and failing readers, nothing left."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from paimon_py import Catalog, OptionError, StorageError, col
from paimon_py.env import Env, SerialPool, ThreadPool
from paimon_py.scan import parallel_read
from paimon_py.scan.parallel_read import small_pieces
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.counting_store import CountingStore

KINDS = {
    "append": ([], {"bucket": "4", "bucket-key": "k"}),
    "unaware": ([], {"bucket": "-1"}),
    "deduplicate": (["k"], {"bucket": "4"}),
    "partial-update": (["k"], {"bucket": "4", "merge-engine": "partial-update"}),
    "aggregation": (["k"], {"bucket": "4", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}),
    "first-row": (["k"], {"bucket": "4", "merge-engine": "first-row"}),
    "deletion-vectors": (["k"], {"bucket": "4", "deletion-vectors.enabled": "true"}),
    "changelog": (["k"], {"bucket": "4", "changelog-producer": "input"}),
}
THREADS = [2, 8]


@pytest.fixture(autouse=True)
def no_split_is_tiny(monkeypatch):
    """The splits of these tables are so small that one thread would read all of them."""
    monkeypatch.setattr(parallel_read, "_TINY_BYTES", 0)


def rows(first, count=200):
    keys = [(first + 7 * number) % 1000 for number in range(count)]
    return pa.table({"k": keys, "p": [f"p{key % 3}" for key in keys], "v": [key + first for key in keys]})


def filled(store, kind):
    keys, options = KINDS[kind]
    catalog = Catalog(store, "/w", env=Env(pool=SerialPool()))
    catalog.create_database("db")
    keys = [*keys, "p"] if keys else []
    options = {"write-only": "true", "source.split.target-size": "1 kb", "source.split.open-file-cost": "1 b", **options}
    table = catalog.create_table("db.t", rows(0).schema, primary_key=keys, partition_by=["p"], options=options)
    for first in (0, 150, 300):
        table.write_arrow(rows(first))
    if kind in ("first-row", "deletion-vectors"):  # readers leave level 0 out
        table.compact()
    return table


@pytest.fixture(scope="module")
def tables():
    """A store with a table of each kind."""
    stores = {kind: CountingStore(MemoryStore()) for kind in KINDS}
    for kind, store in stores.items():
        filled(store, kind)
    return stores


def opened(store, pool):
    return Catalog(store, "/w", env=Env(pool=pool)).table("db.t")


def in_any_order(table):
    return sorted(map(str, table.to_pylist()))


def lane_threads():
    return [thread for thread in threading.enumerate() if thread.name == "paimon-lane"]


SCANS = {
    "all": {},
    "filtered": {"where": col("v") > 500},
    "columns": {"columns": ["v"]},
    "limited": {"limit": 77},
}


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_those_of_one_thread(tables, kind, threads):
    alone, together = opened(tables[kind], SerialPool()), opened(tables[kind], ThreadPool(threads))
    assert len(alone.scan().splits()) >= 3
    for asked in list(SCANS.values())[threads // 4 :: 2]:
        expected, scan = alone.scan(**asked).to_arrow(), together.scan(**asked)
        assert scan.to_arrow().equals(expected)
        assert scan.to_reader().read_all().equals(expected)
        assert scan.count() == alone.scan(**asked).count() == expected.num_rows
        if "limit" not in asked:
            assert in_any_order(scan.to_reader(in_order=False).read_all()) == in_any_order(expected)
    assert not lane_threads()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", ["append", "deduplicate", "changelog"])
def test_changes_are_those_of_one_thread(tables, kind, threads):
    alone, together = opened(tables[kind], SerialPool()), opened(tables[kind], ThreadPool(threads))
    for mode in ("delta", "diff") if KINDS[kind][0] else ("delta",):
        expected = alone.changes(1, 3, mode=mode).to_arrow()
        assert together.changes(1, 3, mode=mode).to_arrow().equals(expected)
        reader = together.changes(1, 3, mode=mode).to_reader(in_order=False)
        assert in_any_order(reader.read_all()) == in_any_order(expected)
    steps = [table.stream(from_="earliest").poll() for table in (alone, together)]
    assert steps[1].to_arrow().equals(steps[0].to_arrow())
    assert in_any_order(steps[1].to_reader(in_order=False).read_all()) == in_any_order(steps[0].to_arrow())


class Handles:
    """A store that knows which data files are open or were read whole, and fails from a number of them on."""

    def __init__(self, store, fails_at=None):
        self.store = store
        self.opened = []
        self.read = []
        self.fails_at = fails_at

    def open_read(self, path):
        self._fail_at_last(path)
        source = self.store.open_read(path)
        if "bucket-" in path:
            self.opened.append(source)
            self.read.append(path)
        return source

    def get(self, path):
        self._fail_at_last(path)
        if "bucket-" in path:
            self.read.append(path)
        return self.store.get(path)

    def _fail_at_last(self, path):
        if self.fails_at is not None and "bucket-" in path and len(self.read) >= self.fails_at:
            raise StorageError(f"{path} cannot be read", path=path, operation="open_read")

    def __getattr__(self, name):
        return getattr(self.store, name)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", ["unaware", "deduplicate"])
def test_a_reader_that_goes_early_leaves_no_thread_and_no_file(tables, kind, in_order):
    store = Handles(tables[kind])
    reader = opened(store, ThreadPool(4)).scan().to_reader(in_order=in_order)
    assert reader.read_next_batch().num_rows
    del reader
    assert store.read and all(source.closed for source in store.opened)
    assert not lane_threads()


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", ["unaware", "deduplicate"])
def test_an_error_in_the_middle_ends_everything(tables, kind, in_order):
    store = Handles(tables[kind], fails_at=3)
    scan = opened(store, ThreadPool(4)).scan()
    with pytest.raises(StorageError, match="cannot be read"):
        scan.to_reader(in_order=in_order).read_all()
    with pytest.raises(StorageError, match="cannot be read"):
        scan.to_arrow()
    assert len(store.read) < 3 * 10 and all(source.closed for source in store.opened)
    assert not lane_threads()


def test_the_table_may_ask_for_fewer_lanes(tables):
    def threads_of(options):
        used = set()

        class Watching(Handles):
            def _fail_at_last(self, path):
                if "bucket-" in path:
                    used.add(threading.current_thread())

        table = opened(Watching(tables["unaware"]), ThreadPool(8))
        table.scan(options=options).to_arrow()
        return used

    assert threads_of({"read.parallelism": "1"}) == {threading.current_thread()}
    assert threading.current_thread() not in threads_of({"read.parallelism": "2"})
    with pytest.raises(OptionError, match="from 1"):
        threads_of({"read.parallelism": "0"})


def test_a_small_limit_is_read_without_threads(tables):
    table = opened(tables["unaware"], ThreadPool(8))
    reader = table.scan(limit=5).to_reader()
    assert reader.read_next_batch().num_rows
    assert not lane_threads()


def test_large_splits_come_in_pieces(tables):
    split = opened(tables["unaware"], SerialPool()).scan().splits()[0]
    assert list(small_pieces([split, split])) == [split, split]
