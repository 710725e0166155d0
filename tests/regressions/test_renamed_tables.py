"""A table that is renamed or dropped beside a writer stays so: nobody makes its directory anew, nothing is lost."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest
from unit.public import KEYED, new_catalog, reopened

from paimon_py import (
    AddColumn,
    Catalog,
    CommitConflictError,
    CommitUnknownError,
    PaimonError,
    SnapshotExpiredError,
    UsageError,
)
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.local_store import LocalStore
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import FaultStore

KINDS = {
    "append": ({}, []),
    "keyed": ({"bucket": "1"}, ["a"]),
    "dynamic": ({"bucket": "-1"}, ["a"]),
    "vectors": ({"bucket": "1", "deletion-vectors.enabled": "true"}, ["a"]),
}


class Beside(FaultStore):
    """Lets something happen to the table right before call number `at` of a store."""

    def __init__(self, store, at, action):
        super().__init__(store)
        self.at, self.action = at, action

    def _call(self, verb, path, action, *, shortened=None):
        if self.count + 1 == self.at:
            self.action(self.store)
        return super()._call(verb, path, action, shortened=shortened)


def rows(*keys):
    return pa.table({"a": keys, "p": ["x"] * len(keys)})


def opened(store, path):
    root = TableRoot(store, path, Env(pool=SerialPool()))
    return Table(root, root.schemas.latest(), "db.t")


def write(table):
    table.write_arrow(rows(7, 8))
    return {7, 8}


def alter(table):
    table.alter(AddColumn("b", "INT"))
    return set()


def tag(table):
    table.create_tag("t")
    return set()


def rename(warehouse):
    return lambda store: Catalog(store, warehouse).rename_table("db.t", "db.u")


def drop(warehouse):
    return lambda store: Catalog(store, warehouse).drop_table("db.t")


def made(kind, store, warehouse, *, snapshots):
    options, key = KINDS[kind]
    catalog = Catalog(store, warehouse)
    catalog.create_database("db")
    schema = pa.schema([("a", pa.int64()), ("p", pa.string())])
    table = catalog.create_table("db.t", schema, primary_key=key and [*key, "p"], partition_by=["p"], options=options)
    for number in range(snapshots):
        table.write_arrow(rows(number))
    return f"{warehouse}/db.db/t"


def begun(kind, store, warehouse, snapshots):
    path = made(kind, store, warehouse, snapshots=snapshots)
    return path, opened(store, path)


@pytest.mark.parametrize(
    ("kind", "operation", "what", "snapshots"),
    [
        ("append", write, rename, 0),
        ("append", write, drop, 2),
        ("append", alter, rename, 2),
        ("append", alter, drop, 0),
        ("append", tag, rename, 2),
        ("append", tag, drop, 2),
        ("keyed", write, rename, 2),
        ("dynamic", write, rename, 2),
        ("vectors", write, rename, 2),
    ],
)
def test_whenever_it_happens(kind, operation, what, snapshots):
    original = MemoryStore()
    made(kind, original, "/wh", snapshots=snapshots)
    path, at = "/wh/db.db/t", 0
    while True:
        at += 1
        store = original.copy()
        beside = Beside(store, 0, what("/wh"))
        table = opened(beside, path)
        beside.at = first = beside.count + at
        try:
            acknowledged = operation(table)
            unknown = False
        except PaimonError as error:
            acknowledged, unknown = None, isinstance(error, CommitUnknownError)
        if beside.count < first:
            break
        assert store.stat(path) is None, f"call {at}, {beside.log[first - 1]}: {[s.path for s in store.list(path)]}"
        if what is rename:
            renamed = opened(store, "/wh/db.db/u")
            if kind == "vectors":
                renamed.compact()  # rows of level 0 are read when they are compacted
            left = set(renamed.scan().to_arrow()["a"].to_pylist())
            assert set(range(snapshots)) | (acknowledged or set()) <= left, f"call {at}, {beside.log[first - 1]}"
            if acknowledged is None and not unknown:
                assert left == set(range(snapshots)), f"call {at}, {beside.log[first - 1]}: failed, but it is there"
            if acknowledged is not None and operation is alter:
                assert renamed.schema.names == ("a", "p", "b")
            if acknowledged is not None and operation is tag:
                assert [one.name for one in renamed.tags()] == ["t"]
    assert at > 5


def test_on_a_local_disk(tmp_path):
    warehouse = str(tmp_path)
    path, table = begun("keyed", LocalStore(fsync=False), warehouse, 2)
    other = pickle.loads(pickle.dumps(table))
    writer = other.writer()
    writer.write_arrow(rows(9))
    rename(warehouse)(LocalStore())
    for operation in (write, alter, tag):
        with pytest.raises(PaimonError):
            operation(table)
    with pytest.raises(PaimonError):
        other.commit(writer.changes())
    assert not (tmp_path / "db.db" / "t").exists()
    assert set(Table.open(f"{warehouse}/db.db/u").scan().to_arrow()["a"].to_pylist()) == {0, 1}
    assert path.endswith("/t")


RENAMES = 200

WRITER = """
import itertools, sys
import pyarrow as pa
from paimon_py import Catalog, PaimonError

catalog = Catalog.open(sys.argv[1])
first, acknowledged, names = int(sys.argv[2]), 0, itertools.cycle(["db.t", "db.u"])
for key in range(first, first + 10_000):
    try:
        catalog.table(next(names)).write_arrow(pa.table({"a": [key], "p": ["x"]}))
    except PaimonError:
        continue
    print(key, flush=True)
    acknowledged += 1
    if acknowledged == 40:
        break
"""


def test_beside_real_processes(tmp_path):
    warehouse = str(tmp_path)
    made("append", LocalStore(fsync=False), warehouse, snapshots=0)
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, warehouse, str(first)], stdout=subprocess.PIPE, text=True)
        for first in (0, 100_000)
    ]
    catalog, names = Catalog.open(warehouse), ["db.t", "db.u"]
    for _ in range(RENAMES):
        catalog.rename_table(*names)
        names.reverse()
    acknowledged = [int(line) for writer in writers for line in writer.communicate()[0].split()]
    assert catalog.tables("db") == [names[0].removeprefix("db.")]
    assert os.listdir(tmp_path / "db.db") == [names[0].removeprefix("db.")]
    found = catalog.table(names[0]).scan().to_arrow()["a"].to_pylist()
    assert len(acknowledged) == 80
    assert sorted(set(acknowledged) - set(found)) == []
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kept", [2, 4])
def test_a_clone_in_the_place_of_its_source_is_that_table_rolled_back(tmp_path, kept):
    """Its snapshots have the ids and marks of the source: what was read up to them goes on, what follows is refused."""
    catalog = new_catalog(tmp_path / "w")
    table = catalog.create_table("d.t", KEYED, primary_key=["p", "k"], options={"bucket": "1", "write-only": "true"})

    def write(to, key, **more):
        return to.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [key], "v": [str(key)]}), **more)

    for number in range(1, 5):
        write(table, number, user="u", identifier=number)
    reader, ahead = table.stream(from_=1), table.stream(from_=1)
    for _ in range(2):
        assert reader.poll() is not None
    for _ in range(4):
        assert ahead.poll() is not None
    with table.writer() as writer:
        writer.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [8], "v": ["8"]}))
        held = writer.changes()
    catalog.clone_table("d.t", "d.c", snapshot_id=kept)
    catalog.drop_table("d.t")
    catalog.rename_table("d.c", "d.t")
    again = reopened(table)
    for one in (table, again):
        with pytest.raises((UsageError, CommitConflictError), match="nothing was committed"):
            one.commit(held)
    assert again.filter_committed(user="u", identifiers=[1, 2, 3, 4]) == list(range(kept + 1, 5))
    for number in range(kept, 5):
        assert write(table, number, user="u", identifier=number).already_committed is (number == kept)
    write(again, 9)
    assert sorted(row["k"] for row in reopened(table).to_arrow().to_pylist()) == [1, 2, 3, 4, 9]
    there, lost = (ahead, reader) if kept == 4 else (reader, ahead)
    keys = [row["k"] for step in iter(there.poll, None) for row in step.to_arrow().to_pylist()]
    assert keys == ([9] if kept == 4 else [3, 4, 9])
    with pytest.raises(SnapshotExpiredError):
        lost.poll()
