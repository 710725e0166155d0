"""Every store call of `Sink.write` fails once, in every way; the same step again makes all whole, and nothing twice.

The second half is docs/pipeline.py without servers and Spark: its process dies at random calls.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, PaimonError, Schema
from paimon_py.cdc import Event, Sink
from paimon_py.env import Env, SerialPool
from paimon_py.executors import LocalExecutor
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import MODES, FaultStore, SimulatedCrash, for_each_fault

WAREHOUSE = "memory://cdc"
ORDERS = {"bucket": "1", "changelog-producer": "lookup"}


def catalog(store, owner: str) -> Catalog:
    return Catalog(store, WAREHOUSE, env=Env(Clock(), Ids(owner), SerialPool()))


def sink(store, owner: str) -> Sink:
    return Sink(catalog(store, owner), "lake", user="job", options=ORDERS)


def event(table, op, before, after, **columns):
    """An event of a table with the key `id`; `columns` are those besides, with their types."""
    fields = [{"field": name, "type": kind} for name, kind in {"id": "int64", **columns}.items()]
    payload = {"op": op, "before": before, "after": after, "source": {"schema": "s", "table": table}}
    key = {"schema": {"fields": fields[:1]}, "payload": {"id": (after or before)["id"]}}
    value = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": payload}
    return Event(value=json.dumps(value).encode(), key=json.dumps(key).encode(), topic=table)


FIRST = [
    event("a", "c", None, {"id": 1, "v": 1}, v="int32"),
    event("b", "c", None, {"id": 1}),
    Event(value=b"{", position="first"),
]
SECOND = [
    event("a", "u", {"id": 1, "v": 1, "w": None}, {"id": 1, "v": 2**40, "w": "x"}, v="int64", w="string"),
    event("a", "c", None, {"id": 2, "v": 5, "w": None}, v="int64", w="string"),
    event("b", "d", {"id": 1}, None),
    event("c", "c", None, {"id": 7}),
    Event(value=b"[]", position="second"),
    event("a", "c", None, {"id": 3, "v": "text"}, v="string"),
]
AFTER = {
    "a": [{"id": 1, "v": 2**40, "w": "x"}, {"id": 2, "v": 5, "w": None}], "b": [], "c": [{"id": 7}],
}  # fmt: skip


def empty():
    return MemoryStore()


def begun():
    store = MemoryStore()
    sink(store, "setup").write(FIRST, identifier=1)
    return store


def rows(names, table):
    return names.table(f"lake.{table}").to_arrow().sort_by("id").to_pylist()


def published(names, table):
    """How many commits of data there are for each identifier."""
    snapshots = names.table(f"lake.{table}").snapshots()
    return Counter(one.commit_identifier for one in snapshots if one.commit_kind == "APPEND")


def swept(build, events, number, modes, share=None, executor=None):
    def run(store):
        return sink(store, "writer").write(events, identifier=number, executor=executor)

    def check(store, outcome):
        if outcome.error is not None:
            assert outcome.crashed or isinstance(outcome.error, PaimonError)
        for _ in range(2):
            sink(store, "again").write(events, identifier=number)
        if number == 1:
            sink(store, "next").write(SECOND, identifier=2)
        names = catalog(store, "checker")
        assert {table: rows(names, table) for table in AFTER} == AFTER
        letters = names.table("lake.cdc_dead_letters").to_arrow().to_pylist()
        assert sorted((row["identifier"], row["position"]) for row in letters) == [(1, "first"), (2, ""), (2, "second")]
        for table in ("a", "b", "cdc_dead_letters"):
            assert published(names, table) == {1: 1, 2: 1}, table
        names.table("lake.a").compact()
        told = names.table("lake.a").changes(0).to_arrow().to_pylist()
        assert sum(-1 if row["_row_kind"] in ("-U", "-D") else 1 for row in told) == 2

    assert for_each_fault(build, run, check, modes=modes, share=share) >= 5


STEPS = pytest.mark.parametrize(("build", "events", "number"), [(empty, FIRST, 1), (begun, SECOND, 2)], ids=["first", "second"])
SHARDS = 6


@pytest.mark.full
@STEPS
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_call_of_a_step_may_fail_or_be_the_last(build, events, number, shard):
    swept(build, events, number, MODES, lambda call, mode: (call + MODES.index(mode)) % SHARDS == shard)


@STEPS
def test_calls_of_a_step_may_fail_or_be_the_last(build, events, number):
    """A small share, spread over calls and modes."""
    swept(build, events, number, MODES, lambda call, mode: (call * len(MODES) + MODES.index(mode)) % 151 == 0)


@pytest.mark.full
@STEPS
def test_calls_of_a_step_by_tasks_may_fail_or_be_the_last(build, events, number):
    share = 29
    swept(build, events, number, MODES, lambda call, mode: (call * len(MODES) + MODES.index(mode)) % share == 0, LocalExecutor())


# -- the pipeline ----------------------------------------------------------------------------------------------------


def follow(names):
    """Sums by customer from the changelog of orders; see docs/pipeline.py."""
    if "orders" not in names.tables("lake"):
        return
    customers = names.create_table(
        "lake.customers", Schema([("customer", "BIGINT NOT NULL"), ("orders", "BIGINT"), ("total", "BIGINT")]),
        primary_key=["customer"], exist_ok=True,
        options={"bucket": "1", "merge-engine": "aggregation", "fields.default-aggregate-function": "sum"},
    )  # fmt: skip
    stream = names.table("lake.orders").stream(from_="earliest", columns=["customer", "total"], consumer_id="customers")
    while (step := stream.poll()) is not None:
        if customers.filter_committed(user="customers", identifiers=[step.snapshot_id]):
            told = step.to_arrow()
            sign = pc.if_else(pc.is_in(told["_row_kind"], pa.array(["-U", "-D"])), -1, 1)
            total = pc.multiply(sign, pc.cast(told["total"], pa.int64()))
            found = pa.table({"customer": told["customer"], "orders": sign, "total": total})
            summed = found.group_by("customer").aggregate([("orders", "sum"), ("total", "sum")])
            with customers.writer() as writer:
                writer.write_arrow(summed.rename_columns(["customer", "orders", "total"]))
                customers.commit(writer.changes(), user="customers", identifier=step.snapshot_id)
        step.acknowledge()


def life(rng, steps):
    """Steps of events of a table, and the rows that it ends with; columns are added and widened on the way."""
    model, told, columns = {}, [], {"customer": "int64", "total": "int16"}
    for number in range(steps):
        columns = columns | ({"total": "int32"} if number == 2 else {"note": "string"} if number == 4 else {})
        told.append([])
        for _ in range(rng.randrange(1, 9)):
            key = rng.randrange(5)
            old, new = model.get(key), dict.fromkeys(columns) | {"id": key, "customer": rng.randrange(3), "total": rng.randrange(100)}
            if old and rng.random() < 0.4:
                del model[key]
                told[-1].append(event("orders", "d", dict.fromkeys(new) | old, None, **columns))
                continue
            model[key] = new
            before = dict.fromkeys(new) | old if old and rng.random() < 0.5 else None
            told[-1].append(event("orders", "u" if old else "c", before, new, **columns))
    return told, model


@pytest.mark.parametrize("seed", range(3))
def test_a_pipeline_that_dies_at_random_calls_ends_equal_to_its_source(seed):
    rng, store = random.Random(seed), MemoryStore()
    steps, model = life(rng, 6)
    number = deaths = 0
    while number < len(steps):
        faults = FaultStore(store, rng.randrange(1, 200), rng.choice(("die", "die_after")))
        try:
            names = catalog(faults, f"run-{deaths}")
            if "lake" in names.databases() and "orders" in names.tables("lake"):
                names.table("lake.orders").compact()
            while number < len(steps):
                executor = LocalExecutor() if (seed + number) % 2 else None
                Sink(names, "lake", user="job", options=ORDERS).write(steps[number], identifier=number, executor=executor)
                follow(names)
                number += 1
        except (PaimonError, SimulatedCrash):
            deaths += 1
    names = catalog(store, "checker")
    names.table("lake.orders").compact()
    follow(names)
    assert deaths >= 2
    assert {row["id"]: row for row in rows_of_orders(names)} == {
        key: {name: row.get(name) for name in ("id", "customer", "total", "note")} for key, row in model.items()
    }
    wanted = {}
    for row in model.values():
        orders, total = wanted.get(row["customer"], (0, 0))
        wanted[row["customer"]] = orders + 1, total + row["total"]
    sums = names.table("lake.customers").to_arrow().to_pylist()
    assert {row["customer"]: (row["orders"], row["total"]) for row in sums if row["orders"]} == wanted


def rows_of_orders(names):
    return names.table("lake.orders").scan(columns=["id", "customer", "total", "note"]).to_arrow().to_pylist()
