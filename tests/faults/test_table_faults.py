"""Every store call of append, upsert, overwrite, create and alter fails once, in every way, through the public verbs.

Afterwards the table reads right: what was acknowledged is there once, what was refused is not, and an answer of
"unknown" is one or the other. A failed write leaves no data file behind unless the store kept it from cleaning up.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids, below

from paimon_py import AddColumn, Catalog, CommitUnknownError, PaimonError, Table, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, for_each_fault

WAREHOUSE = "memory://faults"
KEYED = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())]
)
FIRST = pa.table({"p": [1, 1, 2], "k": [1, 2, 3], "v": ["a", "b", "c"]}, schema=KEYED)
SECOND = pa.table({"p": [1, 2, 3], "k": [2, 3, 4], "v": ["B", None, "D"]}, schema=KEYED)


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def catalog(store, owner: str) -> Catalog:
    return Catalog(store, WAREHOUSE, env=env(owner))


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


OUTSIDE = {"data-file.external-paths": "memory://faults/outside", "data-file.external-paths.strategy": "round-robin"}


def build(keyed: bool, options: dict[str, str] | None = None):
    def fresh():
        store = MemoryStore()
        names = catalog(store, "setup")
        names.create_database("db")
        keys = {"primary_key": ["p", "k"], "options": {"bucket": "1", **(options or {})}} if keyed else {}
        names.create_table("db.t", KEYED, partition_by=["p"], **keys).write_arrow(FIRST)
        return store

    return fresh


def rows(table: Table) -> list[tuple]:
    read = table.scan().to_arrow()
    return sorted(zip(*(read[name].to_pylist() for name in ("p", "k", "v"))), key=str)


OLD = [(1, 1, "a"), (1, 2, "b"), (2, 3, "c")]
NEW = [(1, 2, "B"), (2, 3, None), (3, 4, "D")]
OPERATIONS = {
    "append": (False, lambda t: t.write_arrow(SECOND), sorted(OLD + NEW, key=str)),
    "upsert": (True, lambda t: t.write_arrow(SECOND), [(1, 1, "a"), *NEW]),
    "delete": (
        True,
        lambda t: t.write_arrow(SECOND.append_column("_row_kind", pa.array(["-D", "+U", "-D"]))),
        [(1, 1, "a"), (2, 3, None)],
    ),
    "static overwrite": (
        False,
        lambda t: t.write_arrow(SECOND.filter(pa.array([True, False, False])), overwrite={"p": 1}),
        [(1, 2, "B"), (2, 3, "c")],
    ),
    "dynamic overwrite": (True, lambda t: t.write_arrow(SECOND, overwrite="dynamic"), NEW),
    "truncate": (True, lambda t: t.truncate(), []),
    "drop partitions": (False, lambda t: t.drop_partitions([{"p": 1}]), [(2, 3, "c")]),
    "two phases": (
        True,
        lambda t: t.commit(phase_one(t), user="job", identifier=7),
        [(1, 1, "a"), *NEW],
    ),
}


def phase_one(table: Table):
    with table.writer() as writer:
        writer.write_arrow(SECOND)
        return writer.changes()


@pytest.mark.full
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_call_of_a_write_may_fail_or_be_the_last(name):
    fail_everywhere(name, MODES)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_call_of_a_write_may_fail(name):
    fail_everywhere(name, THREE, one_way)


THREE = ("before", "after", "lost")


def one_way(call, mode):
    """Every call fails, each in one of three ways."""
    return (call + THREE.index(mode)) % len(THREE) == 0


def fail_everywhere(name, modes, share=None):
    keyed, operation, after = OPERATIONS[name]

    def run(store):
        return operation(table_on(store, "writer"))

    def check(store, outcome):
        table = table_on(store, "checker")
        found = rows(table)
        if outcome.error is None:
            assert found == sorted(after, key=str)
        elif isinstance(outcome.error, CommitUnknownError) or outcome.crashed:
            assert found in (sorted(after, key=str), sorted(OLD, key=str))
        else:
            assert isinstance(outcome.error, PaimonError)
            assert found == sorted(OLD, key=str)
        ids = [snapshot.id for snapshot in table.snapshots()]
        assert ids == list(range(1, len(ids) + 1))
        assert rows(Table(table._root, table.schema, "db.t")) == found
        table.write_arrow(FIRST, overwrite={})
        assert rows(table) == sorted(OLD, key=str)

    assert for_each_fault(build(keyed), run, check, modes=modes, share=share) > 10


def test_every_call_of_a_write_outside_the_table_may_fail_and_leaves_nothing_there():
    def run(store):
        return OPERATIONS["upsert"][1](table_on(store, "writer"))

    def check(store, outcome):
        found = rows(table_on(store, "checker"))
        assert found in (OPERATIONS["upsert"][2], sorted(OLD, key=str))
        outside = len(below(store, "memory://faults/outside"))
        if outcome.error is None:
            assert found == OPERATIONS["upsert"][2] and outside == 5
        elif not outcome.crashed and not isinstance(outcome.error, CommitUnknownError):
            assert found == sorted(OLD, key=str)
            assert outside == 2 or outcome.fault.verb == "delete", "files of a failed write were left"

    assert for_each_fault(build(True, OUTSIDE), run, check, modes=THREE, share=one_way) > 10


def test_every_call_of_creating_a_table_may_fail():
    def fresh():
        store = MemoryStore()
        catalog(store, "setup").create_database("db")
        return store

    def run(store):
        return catalog(store, "creator").create_table("db.t", KEYED, primary_key=["p", "k"], options={"bucket": "1"})

    def check(store, outcome):
        names = catalog(store, "checker")
        if outcome.error is None:
            assert names.tables("db") == ["t"]
        else:
            assert outcome.crashed or isinstance(outcome.error, PaimonError)
        table = names.create_table("db.t", KEYED, primary_key=["p", "k"], options={"bucket": "1"}, exist_ok=True)
        table.write_arrow(FIRST)
        assert rows(table) == sorted(OLD, key=str)

    assert for_each_fault(fresh, run, check) >= 6


def test_every_call_of_altering_a_table_may_fail():
    def run(store):
        return table_on(store, "writer").alter(AddColumn("x", "INT"))

    def check(store, outcome):
        table = table_on(store, "checker")
        if outcome.error is None:
            assert table.schema.names == ("p", "k", "v", "x")
        else:
            assert outcome.crashed or isinstance(outcome.error, PaimonError)
            assert not isinstance(outcome.error, UsageError)
        assert rows(table) == sorted(OLD, key=str)

    assert for_each_fault(build(False), run, check) >= 6
