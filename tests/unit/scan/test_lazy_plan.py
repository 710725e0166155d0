"""`iter_splits` plans in bounded memory and gives the files and rows that `splits` gives."""

from __future__ import annotations

import itertools
import random
import sys

import pyarrow as pa
import pytest

from paimon_py import Catalog, col
from paimon_py.env import Env
from paimon_py.errors import StorageError, UsageError
from paimon_py.metadata import manifests
from paimon_py.scan import bucket_parts, lazy_plan
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing import named_files
from paimon_py.testing.fault_store import FaultStore
from paimon_py.testing.named_files import name_files
from paimon_py.testing.store_spill import StoreSpill

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
SHAPES = {
    "append": {"options": {"bucket": "-1", "write-only": "true"}},
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "3", "write-only": "true"}},
    "vectors": {"primary_key": ["p", "k"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
    "evolving": {"options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
}


@pytest.fixture(scope="module", params=SHAPES)
def table(request, tmp_path_factory):
    catalog = Catalog.open(tmp_path_factory.mktemp("lazy"))
    catalog.create_database("d")
    rng = random.Random(request.param)
    shape = SHAPES[request.param]
    options = {**shape["options"], "manifest.merge-min-count": "1000", "manifest.full-compaction-threshold-size": "1 gb"}
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], **{**shape, "options": options})
    for number in range(12):
        keys = rng.sample(range(number * 10, number * 10 + 40), 8)
        rows = {"p": [key % 5 for key in keys], "k": keys, "v": [rng.choice((None, key, 2 * key)) for key in keys]}
        table.write_arrow(pa.table(rows, SCHEMA))
        if number in (4, 8) and request.param != "evolving":
            table.compact(full=True)
    return lambda: catalog.table("d.t")


def large(monkeypatch, entries=20):
    """Let no plan fit into memory."""
    for module in (manifests, bucket_parts):
        monkeypatch.setattr(module, "PART_ENTRIES", entries)
    monkeypatch.setattr(manifests, "ENTRY_BYTES", 1 << 40)


def files(splits):
    return sorted((split.partition, split.bucket, file.name) for split in splits for file in split.files)


def rows(scan, splits):
    found = [row for split in splits for row in scan.read(split).read_all().to_pylist()]
    return sorted(found, key=lambda row: (row["k"], repr(row)))


@pytest.mark.parametrize("entries", [1, 7, 1000])
@pytest.mark.parametrize("where", [None, col("v") > 40, col("p") == 2, (col("k") < 60) & col("v").is_null()])
def test_splits_one_by_one_are_the_splits(table, monkeypatch, entries, where):
    scan = table().scan(where=where)
    whole = scan.splits()
    expected, named, count = rows(scan, whole), files(whole), scan.count()
    large(monkeypatch, entries)
    found = list(table().scan(where=where).iter_splits())
    assert files(found) == named and rows(table().scan(where=where), found) == expected
    assert table().scan(where=where).count() == count
    assert table().scan(where=where).to_arrow().num_rows == count


def test_a_plan_that_was_made_is_kept(table, monkeypatch):
    scan = table().scan()
    whole = scan.splits()
    large(monkeypatch)
    assert list(scan.iter_splits()) == whole


@pytest.mark.parametrize(("library", "call"), [("torch", "to_torch"), ("ray", "to_ray")])
def test_a_library_that_is_absent_is_named(table, monkeypatch, library, call):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"paimon_py.scan.{library}_rows", raising=False)
    with pytest.raises(UsageError, match=rf"{library} is not installed: pip install 'paimon-py\[{library}\]'"):
        getattr(table().scan(), call)()


def test_small_tables_are_planned_as_a_whole(table):
    assert list(table().scan().iter_splits()) == table().scan().splits()


def test_limits_changes_and_orders(table, monkeypatch):
    large(monkeypatch)
    assert sum(split.row_count for split in table().scan(limit=3).iter_splits()) >= 3
    assert table().scan(limit=3).to_arrow().num_rows == 3
    changes = table().changes(2, 4)
    assert list(changes.iter_splits()) == changes.splits()
    with pytest.raises(UsageError, match="order_by"):
        table().scan(order_by="k", limit=3).iter_splits()


@pytest.mark.parametrize("where", [None, col("v") > 40, col("p") == 2])
@pytest.mark.parametrize("entries", [1, 7, 30])
def test_limits_of_large_plans(table, monkeypatch, entries, where):
    whole = rows(table().scan(where=where), table().scan(where=where).splits())
    large(monkeypatch, entries)
    monkeypatch.setattr(lazy_plan, "PART_ENTRIES", entries)
    for limit in (1, 5, 20, 1000):
        scan = table().scan(where=where, limit=limit)
        some = scan.to_arrow().to_pylist()
        assert len(some) == min(limit, len(whole)) == scan.count()
        assert all(row in whole for row in some)


class CountingStore:
    """Counts the manifests that are read."""

    def __init__(self, store):
        self._store = store
        self.manifests = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    def get(self, path):
        if "/manifest/manifest-" in path and "manifest-list" not in path:
            self.manifests.append(path)
        return self._store.get(path)


@pytest.mark.parametrize("deleted", [0, 30])
def test_a_limit_reads_the_manifests_that_it_needs(tmp_path, monkeypatch, deleted):
    monkeypatch.setattr(named_files, "FILES_PER_MANIFEST", 50)
    store = CountingStore(MemoryStore())
    catalog = Catalog(store, "/w", env=Env(spill=StoreSpill(MemoryStore())))
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options={"bucket": "-1"})
    table.write_arrow(pa.table({"p": [0, 1], "k": [1, 2], "v": [4, 5]}, SCHEMA))
    name_files(table, 400, deleted=deleted)
    for module in (manifests, lazy_plan):
        monkeypatch.setattr(module, "PART_ENTRIES", 100)

    def taken(**asked):
        table, store.manifests = catalog.table("d.t"), []
        found = files(table.scan(**asked).iter_splits())
        return len(found), len(store.manifests)

    of_deletes = 1 if deleted else 0
    assert taken(limit=10) == (10, 1 + of_deletes)
    assert taken(limit=60) == (60, 3 + of_deletes)
    assert taken(limit=10, where=col("k") > 0)[0] == 400
    for limit, least in ((10, 1), (150, 3)):
        table, store.manifests = catalog.table("d.t"), []
        assert sum(1 for _ in itertools.islice(table.scan(where=col("k") > 0, limit=limit).iter_splits(), 1)) == 1
        assert len(store.manifests) == 1 + of_deletes
        assert table.scan(limit=limit).count() == limit


@pytest.fixture
def warehouse(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options={"bucket": "-1"})
    table.write_arrow(pa.table({"p": [0, 1], "k": [1, 2], "v": [4, 5]}, SCHEMA))
    name_files(table, 400, deleted=30)
    return tmp_path


def opened(warehouse, store):
    """The table, and the temporary files of its plans, which are in a store of their own."""
    spill = StoreSpill(store)
    return Catalog.open(warehouse, env=Env(spill=spill)).table("d.t"), spill


def test_temporary_files_go_whenever_the_plan_ends(warehouse, monkeypatch):
    table, spill = opened(warehouse, MemoryStore())
    large(monkeypatch)
    plan = table.scan().iter_splits()
    assert len(list(itertools.islice(plan, 2))) == 2 and spill.paths()
    plan.close()
    assert spill.paths() == []
    assert len(files(table.scan().iter_splits())) == 400
    assert spill.paths() == []


def test_a_full_disk_is_an_error_that_names_the_way_out(warehouse, monkeypatch):
    large(monkeypatch, 200)
    failed = 0
    for call in itertools.count(1, 23):
        table, spill = opened(warehouse, FaultStore(MemoryStore(), fail_at=call))
        try:
            found = files(table.scan().iter_splits())
        except StorageError as error:
            assert "TMPDIR" in str(error)
            failed += 1
        else:
            assert len(found) == 400
            break
    assert failed > 5


CUTS = {
    "after a manifest": lambda data: 8 + int.from_bytes(data[:8], "big"),
    "in a manifest": lambda data: len(data) - 1,
    "in a length": lambda data: 3,
    "at the start": lambda data: 0,
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_temporary_file_that_was_cut_is_noticed(warehouse, monkeypatch, cut):
    large(monkeypatch, 50)
    store = MemoryStore()
    table, spill = opened(warehouse, store)
    plan = table.scan().iter_splits()
    next(plan)
    for path in spill.paths():
        data = store.get(path)
        store.put(path, data[: CUTS[cut](data)])
    with pytest.raises(StorageError, match="plan the scan again"):
        list(plan)
    assert spill.paths() == []
