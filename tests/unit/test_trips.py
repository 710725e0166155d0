"""How many round trips work at a distance waits for, one after the other, where every request takes its time."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from paimon_py import Catalog
from paimon_py.env import Env
from paimon_py.storage import local_store
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.trips import TripPool, Trips, TripStore

COLUMNS = pa.schema([("k", pa.int32()), ("v", pa.string())])
KINDS = {
    "append": ([], {"bucket": "-1"}),
    "keyed": (["k"], {"bucket": "1", "write-only": "true"}),
    "keyed, compacting": (["k"], {"bucket": "1", "num-sorted-run.compaction-trigger": "1000"}),
}


def rows(*keys):
    return pa.table({"k": pa.array(keys, pa.int32()), "v": ["x"] * len(keys)})


class Distant:
    """A warehouse at a distance: `trips` counts, `near` is the same warehouse without any."""

    def __init__(self, kind, more=None):
        self.trips = Trips()
        self.store = MemoryStore(name="trips")
        self.near = Catalog(self.store, "memory://trips")
        self.near.create_database("d")
        keys, options = KINDS[kind]
        self.near.create_table("d.t", COLUMNS, primary_key=keys, options={**options, **(more or {})})

    def catalog(self):
        env = Env(pool=TripPool(self.trips))
        return Catalog(TripStore(self.store, self.trips), "memory://trips", env=env)

    def trips_of(self, action):
        before = self.trips.now
        result = action()
        return self.trips.now - before, result

    def load(self, count):
        table = self.near.table("d.t")
        for number in range(count):
            table.write_arrow(rows(number))


@pytest.fixture(params=KINDS)
def distant(request):
    return Distant(request.param)


def test_a_small_commit_of_a_warm_table_waits_for_nine_trips_at_most(distant):
    table = distant.catalog().table("d.t")
    for number in range(4):
        table.write_arrow(rows(number))
    for number in range(4, 30):
        trips, done = distant.trips_of(lambda number=number: table.write_arrow(rows(number)))
        assert done.snapshot_id == number + 1
        assert trips <= (12 if number % 30 == 29 else 9), distant.trips.requests[-30:]


def test_a_commit_of_a_warm_writer_waits_for_nine_trips_at_most(distant):
    table = distant.catalog().table("d.t")
    writer = table.writer()
    for number in range(25):
        def commit(number=number):
            writer.write_arrow(rows(number))
            return table.commit(writer.changes(), user="u", identifier=number + 1)

        trips, done = distant.trips_of(commit)
        assert done.snapshot_id == number + 1
        first_look = number == 10  # for what may expire, once there are more snapshots than are kept in any case
        assert number < 3 or trips <= 9 + first_look, (number, trips, distant.trips.requests[-40:])


def test_opening_and_committing_waits_for_thirteen_trips_at_most():
    distant = Distant("append")
    distant.load(25)
    trips, _ = distant.trips_of(lambda: distant.catalog().table("d.t").write_arrow(rows(9)))
    assert trips <= 13, distant.trips.requests


@pytest.mark.parametrize("commits", [1, 7, 60])
def test_opening_and_planning_waits_for_six_trips_however_many_manifests_there_are(distant, commits):
    distant.load(commits)
    trips, splits = distant.trips_of(lambda: distant.catalog().table("d.t").scan().splits())
    assert trips <= 6 and sum(len(split.files) for split in splits) == commits


def test_reading_a_hundred_small_files_waits_for_fourteen_trips_at_most():
    distant = Distant("append")
    distant.load(100)
    trips, read = distant.trips_of(lambda: distant.catalog().table("d.t").scan().to_arrow())
    assert trips <= 14, trips
    assert sorted(read["k"].to_pylist()) == list(range(100))


def test_listing_tables_waits_for_as_many_trips_however_many_tables_there_are(distant):
    few, _ = distant.trips_of(lambda: distant.catalog().tables("d"))
    for number in range(30):
        distant.near.create_table(f"d.t{number}", COLUMNS)
    many, names = distant.trips_of(lambda: distant.catalog().tables("d"))
    assert (many, len(names)) == (few, 31)


def test_a_remembered_snapshot_is_no_truth(distant):
    """What others do to a table that a table object has seen: commit, roll back, and commit again."""
    distant.load(3)
    table = distant.catalog().table("d.t")
    assert table.snapshot().id == 3
    other = distant.near.table("d.t")
    other.write_arrow(rows(10))
    other.write_arrow(rows(11))
    assert table.snapshot().id == 5
    other.rollback_to(2)
    assert table.snapshot().id == 2
    for number in range(3, 6):
        other.write_arrow(rows(number))
    assert table.snapshot() == other.snapshot()
    distant.store.delete("memory://trips/d.db/t/snapshot/LATEST")
    other.write_arrow(rows(12))
    distant.store.put("memory://trips/d.db/t/snapshot/LATEST", b"2")
    assert table.snapshot().id == 6 and table.scan().count() == other.scan().count()
    distant.store.put("memory://trips/d.db/t/snapshot/LATEST", b"99")
    assert table.snapshot().id == 6


def test_a_hint_that_expired_long_ago_is_not_believed(distant):
    distant.load(3)
    table = distant.catalog().table("d.t")
    assert table.snapshot().id == 3
    distant.load(30)
    distant.near.table("d.t").expire_snapshots(retain_max=2, retain_min=1)
    distant.store.put("memory://trips/d.db/t/snapshot/LATEST", b"3")
    assert table.snapshot().id == 33


def test_a_compaction_reads_its_small_files_at_once():
    distant = Distant("keyed")
    distant.load(20)
    table = distant.catalog().table("d.t")
    trips, done = distant.trips_of(lambda: table.compact(full=True))
    assert trips <= 16, distant.trips.requests
    assert table.scan().count() == 20


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", KINDS)
def test_iceberg_metadata_cost_six_trips_more(kind, version):
    """The directory, the previous version and the new files at once; version; hint; look; deletion; look."""
    found = {}
    for storage in ("disabled", "table-location"):
        more = {"metadata.iceberg.storage": storage, "metadata.iceberg.format-version": version}
        distant = Distant(kind, more)
        table = distant.catalog().table("d.t")
        for number in range(4):
            found[storage], _ = distant.trips_of(lambda number=number: table.write_arrow(rows(number)))
    assert found["table-location"] <= found["disabled"] + 6


@pytest.mark.parametrize("kind", KINDS)
def test_iceberg_metadata_cost_no_more_trips_after_many_snapshots(kind):
    found = {}
    for storage in ("disabled", "table-location"):
        distant = Distant(kind, {"metadata.iceberg.storage": storage})
        table = distant.catalog().table("d.t")
        for number in range(40):
            table.write_arrow(rows(number))
        found[storage], _ = distant.trips_of(lambda table=table: table.write_arrow(rows(40)))
    assert found["table-location"] <= found["disabled"] + 6


def test_iceberg_metadata_ask_a_disk_for_no_more_files_after_many_snapshots(tmp_path, monkeypatch):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options={"metadata.iceberg.storage": "table-location"})
    asked, stat = [], os.stat

    def counting(path, *rest, **named):
        if "/metadata" in str(path):
            asked.append(path)
        return stat(path, *rest, **named)

    monkeypatch.setattr(local_store.os, "stat", counting)
    found = []
    for number in range(30):
        asked.clear()
        table.write_arrow(rows(number))
        found.append(len(asked))
    assert found[4] == found[29]
    assert len(list((tmp_path / "d.db/t/metadata").iterdir())) > 30
