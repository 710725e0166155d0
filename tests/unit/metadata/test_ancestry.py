"""Whether a snapshot comes from another, where its writer says so and where only manifests tell."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from paimon_py import Catalog, Table
from paimon_py.env import Env
from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore

COLUMNS = pa.schema([("k", pa.int64())])
PLACE = "/w/d.db/t"


def forget_parents(store):
    """Let all snapshots look as Java writes them."""
    for status in store.list(f"{PLACE}/snapshot"):
        if status.name.startswith("snapshot-"):
            value = json.loads(store.get(status.path))
            value.pop("properties")
            store.put(status.path, json.dumps(value).encode())


def opened(store):
    root = TableRoot(store, PLACE, Env())
    return Table(root, root.schemas.latest(), "d.t")


@pytest.fixture
def store():
    found = MemoryStore()
    catalog = Catalog(found, "/w", env=Env())
    catalog.create_database("d")
    table = catalog.create_table("d.t", COLUMNS, options={"bucket": "-1"})
    for number in range(3):
        table.write_arrow([{"k": number}])
    return found


def answers(store, *, others):
    """Whether snapshot 3 comes from snapshot 2; and from another snapshot 2, which has as many files."""
    first = opened(store)
    real = first._root.snapshots.get(2)
    fork = store.copy()
    table = opened(fork)
    table.rollback_to(1)
    table.write_arrow([{"k": 9}])
    if others:
        forget_parents(store)
        forget_parents(fork)
    child = opened(store)._root.snapshots.get(3)
    other = opened(fork)._root.snapshots.get(2)
    manifests = opened(store)._root.manifests
    for status in fork.list(f"{PLACE}/manifest"):
        store.put(status.path, fork.get(status.path))
    return is_built_on(manifests, child, real), is_built_on(manifests, child, other)


@pytest.mark.parametrize("others", [False, True], ids=["paimon_py", "other writers"])
def test_a_snapshot_descends_only_from_its_parent(store, others):
    assert answers(store, others=others) == (True, False)


@pytest.mark.parametrize("others", [False, True], ids=["paimon_py", "other writers"])
def test_merged_manifests_do_not_hide_the_parent(store, others):
    table = opened(store)
    parent = table.compact_manifests().snapshot_id
    table.write_arrow([{"k": 4}])
    if others:
        forget_parents(store)
    root = opened(store)._root
    assert is_built_on(root.manifests, root.snapshots.get(parent + 1), root.snapshots.get(parent))
    assert is_built_on(root.manifests, root.snapshots.get(parent), root.snapshots.get(parent - 1))


def test_the_id_must_follow(store):
    root = opened(store)._root
    assert not is_built_on(root.manifests, root.snapshots.get(3), root.snapshots.get(1))
