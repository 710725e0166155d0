"""Every store call of writing rows whose keys move fails once: all of it happened or nothing, and no key lies twice."""

from __future__ import annotations

import functools

import msgspec
import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids, below

from paimon_py import Catalog, CommitUnknownError, PaimonError, Table
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, SimulatedCrash, for_each_fault
from paimon_py.testing.store_spill import StoreSpill

WAREHOUSE = "memory://moving"
SPILL = "memory://spill"
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("p", pa.string()), ("v", pa.int64())])
FIRST = {k: ("ab"[k % 2], k) for k in range(12)}
MOVED = {1: ("a", 100), 2: ("c", 200), 3: ("b", 300), 20: ("c", 2000)}
LAST = {1: ("c", 101), 21: ("a", 2100)}


def table_on(store, owner: str, *, spills: bool = False) -> Table:
    env = Env(Clock(), Ids(owner), SerialPool(), StoreSpill(store, f"{SPILL}/{owner}"))
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env)
    schema = root.schemas.latest()
    if spills:
        options = {**schema.options, "lookup.cache-max-memory-size": "8 b"}
        schema = msgspec.structs.replace(schema, options=options)
    return Table(root, schema, "db.t")


def rows(given):
    return pa.table({"k": list(given), "p": [p for p, _ in given.values()], "v": [v for _, v in given.values()]}, SCHEMA)


@functools.cache
def prepared(engine: str) -> MemoryStore:
    store = MemoryStore()
    catalog = Catalog(store, WAREHOUSE, env=Env(Clock(), Ids("setup"), SerialPool()))
    catalog.create_database("db")
    options = {"bucket": "-1", "merge-engine": engine, "file.format": "avro", "write-only": "true"}
    catalog.create_table("db.t", SCHEMA, primary_key=["k"], partition_by=["p"], options=options)
    table_on(store, "first").write_arrow(rows(FIRST))
    return store


def content(store) -> dict:
    read = table_on(store, "reader").scan().to_arrow().to_pylist()
    assert len({row["k"] for row in read}) == len(read), "a key lies twice"
    return {row["k"]: (row["p"], row["v"]) for row in read}


def after(engine: str, state: dict, given: dict) -> dict:
    if engine == "deduplicate":
        return {**state, **given}
    return {**state, **{k: (state[k][0] if k in state else p, v) for k, (p, v) in given.items()}}


def two_rounds(store) -> None:
    table = table_on(store, "writer", spills=True)
    with table.writer() as writer:
        for given in (MOVED, LAST):
            writer.write_arrow(rows(given))
            changes = writer.changes()
            try:
                table.commit(changes)
            except CommitUnknownError:
                raise
            except PaimonError:
                writer.discard(changes)
                raise


@pytest.mark.parametrize("mode", MODES)
def test_some_calls_of_two_rounds_may_fail(mode):
    run("deduplicate", mode, lambda call, _: call % 6 == MODES.index(mode))


@pytest.mark.full
@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
@pytest.mark.parametrize("mode", MODES)
def test_every_call_of_two_rounds_may_fail(engine, mode):
    run(engine, mode, None)


def run(engine, mode, share) -> None:
    states = [FIRST]
    for given in (MOVED, LAST):
        states.append(after(engine, states[-1], given))

    def check(store, outcome):
        known = content(store)
        assert known in states, known
        assert outcome.error is not None or known == states[-1]
        if not isinstance(outcome.error, SimulatedCrash) and outcome.fault.verb != "delete":
            assert below(store, SPILL) == [], "the index is gone from local disk"
        more = {5: ("c", 500), 20: ("a", 1)}
        table_on(store, "later").write_arrow(rows(more))
        assert content(store) == after(engine, known, more)

    assert for_each_fault(lambda: prepared(engine).copy(), two_rounds, check, modes=(mode,), share=share) > 1
