"""Every store call of a lookup and of scans fails once: the error says so, and the same table then answers right.

A failed read must leave nothing half in a cache: neither in what lookups remember of files and deletion vectors nor in
what the table remembers of manifests and schemas.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.compaction_support import WAREHOUSE, State, batch, built, table_on
from faults.operations import KINDS, NEW, OPERATIONS, prepared
from unit.commit.support import Clock, Ids, below

from paimon_py import AddColumn, Catalog, StorageError, Table
from paimon_py.env import Env, SerialPool
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import for_each_fault
from paimon_py.testing.store_spill import StoreSpill

KEYED = ("keyed", "eager", "keyed vectors", "sums", "dynamic", "dynamic vectors", "postponed sums", "moving", "moving vectors")
ASKED = ((1, 1), (1, 2), (1, 50), (2, 2), (2, 4), (3, 1), (9, 9))


def looked_up(table: Table) -> dict:
    """What lookups say of some keys, one by one and together."""
    keys = [{"p": p, "k": k} for p, k in ASKED]
    if "p" not in table.schema.primary_keys:
        keys = [{"k": k} for k in sorted({k for _, k in ASKED})]
    rows = [row for key in keys[:3] for row in table.lookup(key).to_pylist()] + table.lookup(keys).to_pylist()
    return {(row["p"], row["k"]): (row["v"], row["w"]) for row in rows}


def answers(kind: str, state: State) -> dict:
    """What lookups should say."""
    asked = {k for _, k in ASKED}
    return {key: row for key, row in state.items() if key in ASKED or (KINDS[kind].moving and key[1] in asked)}


def follows(table: Table) -> dict:
    """Look up, again when others have written, and again when they have compacted."""
    looked_up(table)
    store = getattr(table._root.store, "store", table._root.store)
    others = table_on(store, f"others{len(below(store, WAREHOUSE))}")
    if "x" not in others.schema.names:
        others.write_arrow(batch(NEW))
        looked_up(table)
        others.compact(full=True)
        others.alter(AddColumn("x", "INT"))
    return looked_up(table)


def first_rows(table: Table) -> list:
    return table.scan(order_by=[("v", "descending"), "k"], limit=3).to_arrow().to_pylist()


def some_rows(table: Table) -> list:
    return table.scan(where="v = 5 OR v > 9", columns=["k", "v"]).to_arrow().sort_by([("k", "ascending")]).to_pylist()


def few_rows(table: Table) -> int:
    return table.scan(limit=4).to_arrow().num_rows


def counted(table: Table) -> tuple:
    return table.scan().count(), table.scan(where="p = 1").count()


def explained(table: Table) -> str:
    return str(table.scan(where="v = 5").explain())


CHAINED = "/w/db.db/t"
READS = {"first rows": first_rows, "some rows": some_rows, "few rows": few_rows, "count": counted, "explain": explained}
FEWER = [pytest.param(37, id="few"), pytest.param(1, marks=pytest.mark.full, id="all")]
SHARES = [pytest.param(5, id="few"), pytest.param(1, marks=pytest.mark.full, id="all")]


def fail_everywhere(kind: str, read: Callable[[Table], object], wanted: object, every: int) -> int:
    """Carry out a read once per call; `wanted` is what it must say when asked again."""
    tables: list[Table] = []

    def run(store):
        tables[:] = []
        tables.append(table_on(store, "me"))
        return read(tables[0])

    def check(store, outcome):
        if outcome.error is None:
            assert outcome.result == wanted
        else:
            assert outcome.crashed or isinstance(outcome.error, StorageError), "another error than that of the store"
        before = below(store, WAREHOUSE)
        table = tables[0] if tables and not outcome.crashed else table_on(store, "again")
        assert read(table) == wanted, "another answer after the failure"
        assert read is follows or below(store, WAREHOUSE) == before

    share = lambda call, mode: (call + len(mode)) % every == 0  # noqa: E731
    return for_each_fault(lambda: built(KINDS[kind])[0], run, check, modes=("before", "lost", "die"), share=share)


@pytest.mark.parametrize("every", SHARES)
@pytest.mark.parametrize("kind", KEYED)
def test_a_lookup_that_fails_says_so_and_the_next_one_is_right(kind, every):
    assert fail_everywhere(kind, looked_up, answers(kind, prepared(kind).seen), every) > 5


@pytest.mark.parametrize("every", FEWER)
@pytest.mark.parametrize("kind", [kind for kind in KEYED if not kind.endswith("sums")])
def test_a_lookup_that_fails_while_the_table_changes_is_right_when_asked_again(kind, every):
    full = OPERATIONS["write"].effect(KINDS[kind], prepared(kind).full)
    assert fail_everywhere(kind, follows, answers(kind, full), every) > 2


@pytest.mark.parametrize("every", SHARES)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", ["files", "vectors in buckets", "clustered", *KEYED[:5:2]])
def test_a_scan_that_fails_says_so_and_the_next_one_is_right(kind, read, every):
    wanted = READS[read](table_on(built(KINDS[kind])[0], "me"))
    assert fail_everywhere(kind, READS[read], wanted, every) > 2


def chain() -> MemoryStore:
    """A chain table of Java."""
    store = MemoryStore()
    with tarfile.open(Path(__file__).parents[1] / "golden" / "corpus" / "chain-daily" / "warehouse.tar.gz") as archive:
        for member in archive:
            if member.isfile():
                store.put(f"{CHAINED}/{member.name.partition('/db.db/t/')[2]}", archive.extractfile(member).read())
    return store


@pytest.mark.parametrize("every", [pytest.param(13, id="few"), pytest.param(1, marks=pytest.mark.full, id="all")])
@pytest.mark.parametrize("read", ["rows", "one partition", "count", "first rows"])
def test_a_scan_of_a_chain_that_fails_says_so_and_the_next_one_is_right(read, every):
    asked = {
        "rows": lambda table: table.scan().to_arrow().sort_by([("dt", "ascending"), ("k", "ascending")]).to_pylist(),
        "one partition": lambda table: table.scan(where="dt = '20250811'").to_arrow().sort_by("k").to_pylist(),
        "count": lambda table: table.scan().count(),
        "first rows": lambda table: table.scan(order_by=["dt", "k"], limit=3).to_arrow().to_pylist(),
    }[read]

    def opened(store) -> Table:
        env = Env(Clock(), Ids("me"), SerialPool(), StoreSpill(MemoryStore()))
        return Catalog(store, CHAINED.rpartition("/db.db/")[0], env=env).table("db.t")

    wanted = asked(opened(chain()))
    assert wanted
    tables: list[Table] = []

    def run(store):
        tables[:] = []
        tables.append(opened(store))
        return asked(tables[0])

    def check(store, outcome):
        assert outcome.error is not None or outcome.result == wanted
        assert outcome.error is None or outcome.crashed or isinstance(outcome.error, StorageError)
        table = tables[0] if tables and not outcome.crashed else opened(store)
        assert asked(table) == wanted, "another answer after the failure"

    share = lambda call, mode: (call + len(mode)) % every == 0  # noqa: E731
    assert for_each_fault(chain, run, check, modes=("before", "lost", "die"), share=share) > 2
