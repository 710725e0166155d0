"""Every store call of a delete, an update and a merge fails once: all of it happened or nothing, and nothing dangles."""

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
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
FIRST = {k: k for k in range(40)} | {3: None}
SOURCE = pa.table({"k": [5, 25, 100], "v": [-5, None, -100]})

KINDS = {
    "files": {},
    "vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "vectors in buckets": {"options": {"deletion-vectors.enabled": "true", "bucket": "2", "bucket-key": "k"}},
    "keyed": {"primary_key": ["k"], "options": {"bucket": "1", "write-only": "true"}},
}
VERBS = {
    "delete": (lambda t: t.delete("k IN (1, 21, 22)"), lambda rows: {k: v for k, v in rows.items() if k not in (1, 21, 22)}),
    "update": (lambda t: t.update("k > 37 OR v IS NULL", {"v": 7}), lambda rows: {k: 7 if k > 37 or v is None else v for k, v in rows.items()}),
    "merge": (
        lambda t: t.merge(SOURCE, ["k"], when_matched_delete="source.v IS NULL", when_matched_update=True, when_not_matched_insert=True),
        lambda rows: {k: -5 if k == 5 else v for k, v in rows.items() if k != 25} | {100: -100},
    ),
}  # fmt: skip


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


@functools.cache
def prepared(kind: str) -> MemoryStore:
    store = MemoryStore()
    catalog = Catalog(store, WAREHOUSE, env=env("setup"))
    catalog.create_database("db")
    table = catalog.create_table("db.t", SCHEMA, **KINDS[kind])
    table.write_arrow(pa.table({"k": range(20), "v": range(20)}))
    table.write_arrow(pa.table({"k": range(20, 41), "v": range(20, 41)}))
    table.delete("k = 40")
    table.update("k = 3", {"v": None})
    assert content(table) == FIRST
    return store


def content(table: Table) -> dict:
    read = table.scan().to_arrow().to_pydict()
    assert len(read["k"]) == len(set(read["k"])) == table.scan().count(), "a row lives twice"
    return dict(zip(read["k"], read["v"]))


def made_files(table: Table) -> tuple[set[str], set[str]]:
    """Names of the data and index files that are there, and of those that snapshots name."""
    root, named = table._root, set()
    for number in root.snapshots.ids():
        snapshot = root.snapshots.get(number)
        entries = root.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []
        files = {entry.file.name for entry in root.manifests.live_entries(snapshot).entries()}
        for places in deletion_places(root.path, table.schema, entries).values():
            assert set(places) <= files, "a deletion vector dangles"
        named |= {entry.name for entry in entries} | files
    names = {
        name for children in root.store._directories.values() for name, file in children.items() if file is not None
    }
    return {
        name for name in names if name.startswith(("data-", "index-")) and not name.startswith("index-manifest")
    }, named


@pytest.mark.parametrize(
    ("verb", "kind"), [("delete", "vectors"), ("update", "files"), ("merge", "vectors"), ("merge", "keyed")]
)
def test_every_call_of_an_operation_may_fail(kind, verb):
    run(kind, verb, ("before",))


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_call_of_an_operation_may_fail_or_be_the_last(kind, verb):
    run(kind, verb, MODES)


def run(kind, verb, modes):
    operate, model = VERBS[verb]
    last = model(FIRST)

    def check(store, outcome):
        table = table_on(store, "checker")
        found = content(table)
        unsure = isinstance(outcome.error, CommitUnknownError) or outcome.crashed
        if outcome.error is None:
            assert found == last
        else:
            assert unsure or isinstance(outcome.error, PaimonError)
            assert found == FIRST or (unsure and found == last)
        there, named = made_files(table)
        assert named <= there
        if not unsure and outcome.fault.verb != "delete":
            assert there == named, "a file is left behind"
        if found == FIRST:
            operate(table)
        assert content(table) == last
        table.compact(full=True)
        assert content(table) == last

    calls = for_each_fault(
        lambda: prepared(kind).copy(), lambda store: operate(table_on(store, "worker")), check, modes=modes
    )
    assert calls > 15
