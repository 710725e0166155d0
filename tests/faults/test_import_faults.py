"""Every store call of `Catalog.import_files` fails once, in every way: each file is brought once, and the source stays."""

from __future__ import annotations

import contextlib
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, PaimonError
from paimon_py.env import Env, SerialPool
from paimon_py.imports import source_files
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault
from paimon_py.write import loaded_files

WAREHOUSE, SOURCE = "memory://lake/wh", "memory://lake/src"


def catalog(store, owner):
    return Catalog(store, WAREHOUSE, env=Env(Clock(), Ids(owner), SerialPool()))


def put(store, path, *numbers):
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(numbers, pa.int64())}), sink)
    store.put_new(f"{SOURCE}/{path}", sink.getvalue())


def empty():
    store = MemoryStore()
    catalog(store, "setup").create_database("d")
    put(store, "dt=1/a.parquet", 1, 2)
    put(store, "dt=2/a.parquet", 3)
    return store


def begun(monkeypatch, copy):
    def build():
        store = empty()
        brought(monkeypatch, store, "setup", copy)
        put(store, "dt=2/b.parquet", 4)
        return store

    return build


def brought(monkeypatch, store, owner, copy):
    """An import whose source lies in the same failing store."""
    for module in (source_files, loaded_files):
        monkeypatch.setattr(module, "open_store", lambda url, options: (store, url))
    return catalog(store, owner).import_files("d.t", SOURCE, copy=copy)


def ids(store):
    return sorted(catalog(store, "checker").table("d.t").to_arrow()["id"].to_pylist())


def sources(store):
    found = []
    for directory in ("dt=1", "dt=2"):
        found += [(status.path, store.get(status.path)) for status in store.list(f"{SOURCE}/{directory}")]
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("is_begun", [False, True])
def test_each_file_is_brought_once(monkeypatch, is_begun, copy, mode):
    build = begun(monkeypatch, copy) if is_begun else empty
    before, expected = sources(build()), [1, 2, 3, 4] if is_begun else [1, 2, 3]

    def check(store, outcome):
        if outcome.error is not None:
            assert outcome.crashed or isinstance(outcome.error, PaimonError)
        brought(monkeypatch, store, "again", copy)
        assert ids(store) == expected
        assert brought(monkeypatch, store, "third", copy).files == 0
        assert ids(store) == expected
        assert sources(store) == before

    assert for_each_fault(build, lambda store: brought(monkeypatch, store, "writer", copy), check, modes=(mode,)) > 5


@pytest.mark.parametrize("mode", MODES)
def test_files_that_were_compacted_after_a_crash_are_not_brought_again(monkeypatch, mode):
    def check(store, outcome):
        names = catalog(store, "care")
        if "t" in names.tables("d"):
            table = names.table("d.t")
            table.compact(full=True)
            table.write_arrow(pa.table({"id": [9], "dt": ["3"]}))
        brought(monkeypatch, store, "again", False)
        assert [each for each in ids(store) if each != 9] == [1, 2, 3]

    for_each_fault(empty, lambda store: brought(monkeypatch, store, "writer", False), check, modes=(mode,))


class InterruptedStore(FaultStore):
    """Ctrl-C comes before or after the effect of a call; later calls work."""

    def _call(self, verb, path, action, *, shortened=None):
        self.count += 1
        if self.count != self.fail_at:
            return action()
        if self.mode == "after":
            with contextlib.suppress(Exception):
                action()
        raise KeyboardInterrupt


@pytest.mark.parametrize("mode", ["before", "after"])
@pytest.mark.parametrize("copy", [False, True])
def test_ctrl_c_leaves_no_half_import_and_a_repeated_call_goes_on(monkeypatch, copy, mode):
    store = InterruptedStore(empty(), 0, mode)
    brought(monkeypatch, store, "user", copy)
    total = store.count
    assert total > 20
    for at in range(1, total + 1):
        inner = empty()
        with pytest.raises(KeyboardInterrupt):
            brought(monkeypatch, InterruptedStore(inner, at, mode), "user", copy)
        if "t" in catalog(inner, "checker").tables("d"):  # the interrupt came while the table was made, or after the commit
            assert ids(inner) in ([], [1, 2, 3])
        brought(monkeypatch, inner, "again", copy)
        assert ids(inner) == [1, 2, 3] and len(sources(inner)) == 2
