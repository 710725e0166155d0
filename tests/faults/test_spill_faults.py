"""Every call to the local disk and to the store fails once while a spilling writer loads: nothing wrong is committed,
and nothing is left on the disk."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, PaimonError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import for_each_fault
from paimon_py.testing.store_spill import StoreSpill

WAREHOUSE = "memory://spills"
ROWS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
OPTIONS = {
    "bucket": "1", "write-buffer-size": "16 kb", "local-sort.max-num-file-handles": "2", "write-only": "true",
}  # fmt: skip
BATCHES = [
    pa.table({"k": [(n * 7 + part) % 500 for n in range(200)], "v": [f"{part}-{n}" * 5 for n in range(200)]}, schema=ROWS)
    for part in range(5)
]
EXPECTED = {}
for _batch in BATCHES:
    EXPECTED.update(zip(_batch["k"].to_pylist(), _batch["v"].to_pylist()))


def table_on(store, spill):
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", Env(Clock(), Ids("w"), SerialPool(), StoreSpill(spill)))
    return Table(root, root.schemas.latest(), "db.t")


def fresh():
    store = MemoryStore()
    catalog = Catalog(store, WAREHOUSE, env=Env(Clock(), Ids("setup"), SerialPool()))
    catalog.create_database("db")
    catalog.create_table("db.t", ROWS, primary_key=["k"], options=OPTIONS)
    return store


def load(table):
    with table.writer() as writer:
        for batch in BATCHES:
            writer.write_arrow(batch)
    return table.commit(writer.changes())


def files_below(store, directory):
    found = []
    for status in store.list(directory):
        found += files_below(store, status.path) if status.is_directory else [status.path]
    return found


def held(table):
    read = table.scan().to_arrow()
    return dict(zip(read["k"].to_pylist(), read["v"].to_pylist()))


def test_a_load_that_spills_writes_every_row_to_one_run():
    store, spill = fresh(), MemoryStore()
    result = load(table_on(store, spill))
    assert (result.file_count, result.row_count) == (1, len(EXPECTED))
    assert held(table_on(store, spill)) == EXPECTED
    assert files_below(spill, "/spill") == []


@pytest.mark.parametrize("mode", ["before", "after", "short", "die"])
def test_a_failing_call_to_the_local_disk_commits_and_leaves_nothing(mode):
    tables = []

    def operation(spill):
        tables.append(fresh())
        return load(table_on(tables[-1], spill))

    def check(spill, outcome):
        store = tables[-1]
        left = files_below(spill, "/spill")
        data = [path for path in files_below(store, WAREHOUSE) if "/bucket-" in path]
        if outcome.error is None:
            assert held(table_on(store, MemoryStore())) == EXPECTED
            return
        assert table_on(store, MemoryStore()).snapshot() is None
        if outcome.crashed:
            return
        assert isinstance(outcome.error, PaimonError)
        assert data == []
        if outcome.fault.verb != "delete":
            assert left == []

    assert for_each_fault(MemoryStore, operation, check, modes=(mode,)) > 10


def test_a_store_that_fails_leaves_nothing_on_the_local_disk():
    spills = []

    def operation(store):
        spills.append(MemoryStore())
        return load(table_on(store, spills[-1]))

    def check(store, outcome):
        assert files_below(spills[-1], "/spill") == []

    assert for_each_fault(fresh, operation, check, modes=("before",)) > 10


def test_ctrl_c_in_the_middle_of_a_load_leaves_nothing_on_the_local_disk():
    store, spill = fresh(), MemoryStore()

    def batches():
        yield from (batch for table in BATCHES[:3] for batch in table.to_batches())
        assert files_below(spill, "/spill") != []
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, pa.ArrowInvalid)), table_on(store, spill).writer() as writer:
        writer.write_arrow(_Interrupted(batches()))
    assert files_below(spill, "/spill") == []
    with pytest.raises(KeyboardInterrupt), table_on(store, spill).writer() as writer:
        for batch in BATCHES[:3]:
            writer.write_arrow(batch)
        assert files_below(spill, "/spill") != []
        raise KeyboardInterrupt
    assert files_below(spill, "/spill") == []


class _Interrupted:
    """A stream of batches. Arrow may turn what it raises into an error of its own."""

    def __init__(self, batches):
        self.batches = batches

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.RecordBatchReader.from_batches(ROWS, self.batches).__arrow_c_stream__()
