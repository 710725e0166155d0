"""Every store call of a compaction with deletion vectors fails once: no row is lost or lives twice, no vector dangles."""

from __future__ import annotations

import functools

import pyarrow as pa
import pytest
from unit.write.commit_support import Clock, Ids

from paimon_py import Catalog, CommitUnknownError, PaimonError, Table
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.deletion_files import deletion_places
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, for_each_fault

WAREHOUSE = "memory://faults"
KEYED = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
BASE = {k: k for k in range(500)}
FIRST = {**BASE, 3: -3, 4: -4}
LAST = {**FIRST, 3: -33, 7: -7, 1000: 1}


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def rows(content: dict) -> pa.Table:
    return pa.table({"k": list(content), "v": list(content.values())}, schema=KEYED)


@functools.cache
def prepared() -> MemoryStore:
    """Rows on the top level, some of them dead, and two files of level 0."""
    store = MemoryStore()
    catalog = Catalog(store, WAREHOUSE, env=env("setup"))
    catalog.create_database("db")
    options = {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}
    table = catalog.create_table("db.t", KEYED, primary_key=["k"], options=options)
    table.write_arrow(rows(BASE))
    table.compact(full=True)
    table.write_arrow(rows({3: -3, 4: -4}))
    table.compact()
    table.write_arrow(rows({3: 0, 7: -7}))
    table.write_arrow(rows({3: -33, 1000: 1}))
    return store


def fresh() -> MemoryStore:
    return prepared().copy()


def content(table: Table) -> dict:
    read = table.scan().to_arrow().to_pydict()
    assert len(read["k"]) == len(set(read["k"])) == table.scan().count(), "a key lives twice"
    return dict(zip(read["k"], read["v"]))


def index_files(table: Table) -> tuple[set[str], set[str]]:
    """Names of the index files that are there, and of those that snapshots name."""
    root = table._root
    named = set()
    for number in root.snapshots.ids():
        snapshot = root.snapshots.get(number)
        entries = root.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []
        named |= {entry.name for entry in entries}
        files = {entry.file.name for entry in root.manifests.live_entries(snapshot).entries()}
        for places in deletion_places(root.path, table.schema, entries).values():
            assert set(places) <= files, "a deletion vector dangles"
    return {status.name for status in root.store.list(f"{root.path}/index")}, named


def check(store, outcome):
    table = table_on(store, "checker")
    found = content(table)
    if outcome.error is None:
        assert found == LAST
    else:
        unsure = isinstance(outcome.error, CommitUnknownError) or outcome.crashed
        assert unsure or isinstance(outcome.error, PaimonError)
        assert found == FIRST or (unsure and found == LAST)
    there, named = index_files(table)
    assert named <= there
    if outcome.error is None:
        assert there == named or outcome.fault.verb == "delete"
    table.compact(full=True)
    assert content(table) == LAST


def test_every_call_of_a_compaction_with_deletion_vectors_may_fail():
    assert for_each_fault(fresh, lambda store: table_on(store, "compactor").compact(), check, modes=("before",)) > 20


@pytest.mark.full
def test_every_call_of_a_compaction_with_deletion_vectors_may_fail_or_be_the_last():
    assert for_each_fault(fresh, lambda store: table_on(store, "compactor").compact(), check, modes=MODES) > 40
