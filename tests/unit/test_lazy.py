"""Attributes that are computed when asked for: nobody waits for another object, and forked children go on."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog
from paimon_py.env import Env, SerialPool
from paimon_py.lazy import lazy_property
from paimon_py.storage.memory_store import MemoryStore

ROOT = Path(__file__).parents[2]
PATIENCE = 60


@dataclass(frozen=True)
class Square:
    side: int
    computed: list[int]

    @lazy_property
    def area(self) -> int:
        """Its area."""
        self.computed.append(self.side)
        return self.side**2


def test_the_value_is_kept_in_each_instance():
    computed: list[int] = []
    two, three = Square(2, computed), Square(3, computed)
    assert (two.area, three.area, two.area, three.area) == (4, 9, 4, 9)
    assert computed == [2, 3]
    assert Square.area.__doc__ == "Its area."


def test_an_error_is_not_kept():
    class Late:
        ready = False

        @lazy_property
        def value(self) -> int:
            if not self.ready:
                raise LookupError("not yet")
            return 1

    late = Late()
    with pytest.raises(LookupError):
        _ = late.value
    late.ready = True
    assert late.value == 1


def test_two_threads_may_compute_at_once_and_get_the_same_object():
    meeting = threading.Barrier(2, timeout=PATIENCE)

    class Met:
        @lazy_property
        def value(self) -> object:
            meeting.wait()
            return object()

    met, other = Met(), Met()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: met.value, range(2))
        assert first is second is met.value
        assert len(set(pool.map(lambda each: each.value, [Met(), other]))) == 2


class MeetingStore(MemoryStore):
    """Waits for somebody else before it gives the first manifest list."""

    meeting: threading.Barrier | None = None

    def get(self, path: str) -> bytes:
        if self.meeting is not None and "/manifest-list-" in path:
            meeting, self.meeting = self.meeting, None
            meeting.wait()
        return super().get(path)


def test_two_scans_are_planned_at_once():
    stores = [MeetingStore(), MeetingStore()]
    catalogs = [Catalog(store, "/wh", env=Env(pool=SerialPool())) for store in stores]
    for catalog in catalogs:
        catalog.create_database("d")
        catalog.create_table("d.t", pa.schema([("a", pa.int64())])).write_arrow(pa.table({"a": [1]}))
    scans = [catalog.table("d.t").scan() for catalog in catalogs]
    meeting = threading.Barrier(2, timeout=PATIENCE)
    for store in stores:
        store.meeting = meeting
    with ThreadPoolExecutor(2) as pool:
        assert [len(splits) for splits in pool.map(lambda scan: scan.splits(), scans)] == [1, 1]


FORKED = """
import os, signal, sys, threading, warnings
import pyarrow as pa
from paimon_py import Catalog
from paimon_py.env import Env, SerialPool
from paimon_py.storage.memory_store import MemoryStore

warnings.simplefilter("ignore")  # newer Pythons warn of a fork beside threads, which is what happens here
held, go_on = threading.Event(), threading.Event()

class Held(MemoryStore):
    closed = False

    def {verb}(self, path):
        if Held.closed and "{name}" in path and threading.current_thread() is not threading.main_thread():
            held.set()
            go_on.wait()
        return super().{verb}(path)

catalog = Catalog(Held(), "/wh", env=Env(pool=SerialPool()))
catalog.create_database("d")
table = catalog.create_table("d.t", pa.schema([("a", pa.int64())]), primary_key={key!r}, options={options!r})
for value in range(5):
    table.write_arrow(pa.table({{"a": [value, 7]}}))
if not {key!r}:
    table.delete("a = 7")

def read():
    return catalog.table("d.t").scan().to_arrow().num_rows

Held.closed = True
thread = threading.Thread(target=read)
thread.start()
assert held.wait({patience})
child = os.fork()
if child == 0:
    signal.alarm({patience})
    os._exit(read())
status = os.waitpid(child, 0)[1]
go_on.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""

VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.mark.parametrize(
    ("verb", "name", "key", "options"),
    [
        ("get", "/manifest-list-", ["a"], {"bucket": "1"}),
        ("get", "/manifest-", ["a"], {"bucket": "1", "merge-engine": "aggregation"}),
        ("open_read", "/index-", [], VECTORS),
        ("get", "/data-", ["a"], {"bucket": "1", "write-only": "true"}),
    ],
)
def test_a_child_that_is_forked_in_the_middle_of_a_scan_scans(verb, name, key, options):
    code = FORKED.format(verb=verb, name=name, key=key, options=options, patience=PATIENCE // 2)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == (6 if key else 5), done.stderr.decode()


CROWD = """
import os, signal, sys, threading, warnings
import pyarrow as pa
from paimon_py import Catalog, col

warnings.simplefilter("ignore")
catalog = Catalog.open(sys.argv[1])
catalog.create_database("d")
columns = pa.schema([("a", pa.int64()), ("b", pa.int64())])
for engine in ("deduplicate", "partial-update", "aggregation"):
    options = {"bucket": "2", "write-only": "true", "merge-engine": engine}
    table = catalog.create_table("d." + engine, columns, primary_key=["a"], options=options)
    for first in range(0, 3000, 500):
        table.write_arrow(pa.table({"a": range(first, first + 2000), "b": [first] * 2000}))
stop = threading.Event()
rounds = threading.Semaphore(0)

def read(name):
    return Catalog.open(sys.argv[1]).table(name).scan(where=col("b") >= 0).to_arrow().num_rows

def work(name):
    while not stop.is_set():
        assert read(name) == 4500
        rounds.release()

names = [table.name for table in map(catalog.table, ("d.deduplicate", "d.partial-update", "d.aggregation"))]
threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in (*names, names[0])]
for thread in threads:
    thread.start()
lost = 0
for turn in range(40):
    rounds.acquire()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if read(names[turn % 3]) == 4500 else 1)
    lost += os.waitpid(child, 0)[1] != 0
stop.set()
sys.exit(lost)
"""


@pytest.mark.full
def test_forty_children_forked_beside_reading_threads_read(tmp_path):
    command = [sys.executable, "-c", CROWD, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr.decode()
