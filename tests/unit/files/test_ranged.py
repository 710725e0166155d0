"""Large files at a distance: the same bytes and rows as from a whole file, by few requests."""

from __future__ import annotations

import bisect
import io
import itertools
import random
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon_py import Catalog, col
from paimon_py.env import Env, SerialPool, ThreadPool
from paimon_py.files.ranged import RangedFile, join_ranges
from paimon_py.formats.parquet import fetch as parquet_fetch
from paimon_py.formats.parquet.format import ParquetFormat
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.trips import TripPool, Trips, TripStore


class Asked:
    def __init__(self, data):
        self.data, self.calls = data, []

    def __call__(self, start, stop):
        assert 0 <= start < stop <= len(self.data)
        self.calls.append((start, stop))
        return self.data[start:stop]


def opened(data):
    asked = Asked(data)
    return RangedFile("memory://x/f", len(data), asked, Env(pool=SerialPool())), asked


@pytest.mark.parametrize("seed", range(20))
def test_reads_are_those_of_the_whole_file(seed):
    dice = random.Random(seed)
    data = dice.randbytes(dice.choice([0, 1, 65_535, 65_536, 70_000, 3 << 20]))
    (file, _), whole = opened(data), io.BytesIO(data)
    for _ in range(60):
        act = dice.randrange(5)
        if act == 0:
            file.fetch([(dice.randrange(len(data) + 1), dice.randrange(1, 200_000)) for _ in range(dice.randrange(4))])
        elif act == 1:
            place = (dice.randrange(-70_000, 70_000), dice.choice([0, 1, 2]))
            base = {0: 0, 1: whole.tell(), 2: len(data)}[place[1]]
            whole.seek(max(base + place[0], 0))
            assert file.seek(*place) == whole.tell() == file.tell()
        else:
            size = dice.choice([-1, 0, 1, 8, 1000, 100_000])
            assert file.read(size) == whole.read(size)
            assert file.tell() == whole.tell()


def test_ranges_are_joined_over_small_gaps_and_parted_where_they_are_long():
    mb = 1 << 20
    assert join_ranges([]) == []
    assert join_ranges([(10, 20), (0, 5)]) == [(0, 20)]
    assert join_ranges([(0, 10), (5, 8)]) == [(0, 10)]
    assert join_ranges([(0, mb), (3 * mb, 4 * mb)]) == [(0, mb), (3 * mb, 4 * mb)]
    assert join_ranges([(0, 20 * mb)]) == [(0, 8 * mb), (8 * mb, 16 * mb), (16 * mb, 20 * mb)]
    assert join_ranges([(0, 20 * mb), (19 * mb, 21 * mb)])[-1] == (16 * mb, 21 * mb)


def test_what_was_fetched_is_read_without_another_request():
    file, asked = opened(bytes(range(256)) * 40_000)
    file.fetch([(1000, 500), (5_000_000, 500)])
    file.seek(1100)
    file.read(300)
    file.seek(5_000_100)
    file.read(400)
    assert asked.calls == [(1000, 1500), (5_000_000, 5_000_500)]
    file.seek(-8, io.SEEK_END)
    file.read(8)
    file.seek(-60_000, io.SEEK_END)
    file.read(60_000)
    assert len(asked.calls) == 3


@pytest.mark.parametrize("pool", [SerialPool(), ThreadPool()], ids=["serial", "threads"])
def test_announced_ranges_are_fetched_once_and_others_as_usual(pool):
    data = bytes(range(256)) * 40_000
    asked = Asked(data)
    file = RangedFile("memory://x/f", len(data), asked, Env(pool=pool))
    file.announce([(1000, 500), (5_000_000, 500)])
    file.fetch([(1000, 500), (5_000_000, 500)])
    assert sorted(asked.calls) == [(1000, 1500), (5_000_000, 5_000_500)]
    file.seek(5_000_100)
    assert file.read(400) == data[5_000_100:5_000_500]
    file.announce([(0, 10)])
    file.fetch([(2000, 10)])
    file.seek(2000)
    assert file.read(10) == data[2000:2010]


@pytest.mark.parametrize("pool", [SerialPool(), ThreadPool()], ids=["serial", "threads"])
def test_what_fails_ahead_fails_when_it_is_wanted(pool):
    def failing(start, stop):
        raise OSError(f"no bytes {start} to {stop}")

    file = RangedFile("memory://x/f", 100, failing, Env(pool=pool))
    file.announce([(0, 10)])
    with pytest.raises(OSError, match="no bytes 0 to 10"):
        file.fetch([(0, 10)])
    file.announce([(0, 10)])
    file.close()


def test_a_call_ahead_is_made_by_whoever_asks_where_threads_cannot_begin(monkeypatch):
    def refused(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert ThreadPool().ahead(lambda: 7)() == 7


@pytest.fixture(scope="module")
def wide():
    """A warehouse with a file of 9 MB: 40 columns, 8 row groups; and its rows."""
    dice = random.Random(7)
    count = 30_000
    columns = {f"c{n}": pa.array([dice.randrange(1 << 60) for _ in range(count)], pa.int64()) for n in range(40)}
    rows = pa.table({"k": pa.array(range(count), pa.int32()), **columns})
    store = MemoryStore(name="wide")
    catalog = Catalog(store, "memory://wide", env=Env(pool=SerialPool()))
    catalog.create_database("d")
    options = {"bucket": "-1", "parquet.block.size": "1000000", "file.compression": "none", "target-file-size": "1 gb"}
    table = catalog.create_table("d.t", rows.schema, options=options)
    table.write_arrow(rows)
    return store, rows


def distant(store):
    trips = Trips()
    table = Catalog(TripStore(store, trips), "memory://wide", env=Env(pool=TripPool(trips))).table("d.t")
    trips.requests.clear()
    return table, trips


def requests_of_data(trips):
    return [request for request in trips.requests if "/bucket-0/" in request]


def test_a_large_file_is_read_by_few_requests_that_are_large(wide):
    store, rows = wide
    table, trips = distant(store)
    assert table.scan().to_arrow().sort_by("k") == rows
    found = requests_of_data(trips)
    assert len(found) <= 6, found


class Eager(SerialPool):
    """Does at once what may be done ahead."""

    def ahead(self, function):
        found = function()
        return lambda: found


def test_row_groups_are_fetched_while_those_before_are_decoded(wide, monkeypatch):
    monkeypatch.setattr(parquet_fetch, "_FETCH_BYTES", 1 << 20)
    store, rows = wide
    data = store.get(next(s.path for s in store.list("memory://wide/d.db/t/bucket-0")))
    asked = Asked(data)
    file = RangedFile("memory://x/f", len(data), asked, Env(pool=Eager()))
    kinds = {"k": "INT"}
    fields = [Field(at, name, parse_type(kinds.get(name, "BIGINT"))) for at, name in enumerate(rows.column_names)]
    reader = ParquetFormat().open(file, "f", fields, len(data))
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    ends = list(itertools.accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))
    opened, seen = len(asked.calls), {}
    for position, _ in reader.positioned_batches(rows.column_names, batch_rows=500):
        seen.setdefault(bisect.bisect_right(ends, position), []).append(len(asked.calls) - opened)
    for group, calls in seen.items():
        first, *others = calls
        assert first == group + 1
        assert set(others) == {min(group + 2, len(ends))}, "the row group after it is fetched meanwhile"


def test_whoever_takes_the_first_rows_alone_fetches_no_others(wide, monkeypatch):
    monkeypatch.setattr(parquet_fetch, "_FETCH_BYTES", 1 << 20)
    store, rows = wide
    table, trips = distant(store)
    assert table.head(5) == rows.slice(0, 5)
    assert len(requests_of_data(trips)) <= 3, trips.requests


def test_only_the_wanted_columns_are_fetched(wide):
    store, rows = wide
    table, trips = distant(store)
    assert table.scan(columns=["k", "c7"]).to_arrow().sort_by("k") == rows.select(["k", "c7"])
    found = requests_of_data(trips)
    fetched = sum(int(request.split()[2]) for request in found if " of " in request)
    assert fetched < 5_000_000 and len(found) <= 20, found


def test_filters_take_row_groups_of_a_large_file(wide):
    store, rows = wide
    table, trips = distant(store)
    assert table.scan(where=col("k") == 29_999).to_arrow() == rows.slice(29_999, 1)
    fetched = sum(int(request.split()[2]) for request in requests_of_data(trips))
    assert fetched < 4_000_000


def test_the_file_of_the_tests_is_what_it_is_meant_to_be(wide):
    store, _ = wide
    path = next(s.path for s in store.list("memory://wide/d.db/t/bucket-0"))
    metadata = pq.ParquetFile(io.BytesIO(store.get(path))).metadata
    assert metadata.num_row_groups > 3 and len(store.get(path)) > 4 << 20
