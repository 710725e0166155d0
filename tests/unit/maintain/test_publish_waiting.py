"""Postponed buckets: rows wait unseen until a compaction gives them their buckets, in the order in which they came."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids
from unit.maintain.test_rescale import Racing

from paimon_py import Catalog, OptionError, RemoveOption, Table, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore

WAREHOUSE = "memory://waiting"
SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string()),
     ("n", pa.int32())]
)  # fmt: skip


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def rows(p, keys, v="v", n=1, kinds=None):
    columns = {"p": [p] * len(keys), "k": list(keys), "v": [f"{v}{k}" for k in keys], "n": [n] * len(keys)}
    table = pa.table(columns, schema=SCHEMA)
    return table if kinds is None else table.append_column("_row_kind", pa.array(kinds))


def store_with(**options) -> MemoryStore:
    store = MemoryStore()
    names = Catalog(store, WAREHOUSE, env=env("setup"))
    names.create_database("db")
    given = {"bucket": "-2", "postpone.default-bucket-num": "2", **options}
    names.create_table("db.t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=given)
    return store


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def state(table: Table) -> dict[tuple[int, int], tuple]:
    read = table.scan().to_arrow()
    found = list(zip(*(read[name].to_pylist() for name in ("p", "k", "v", "n")), strict=True))
    assert len(found) == len({row[:2] for row in found})
    return {row[:2]: row[2:] for row in found}


def live(table: Table):
    root = table._root
    return root.manifests.live_entries(root.snapshots.latest()).entries()


def test_rows_are_seen_after_a_compaction_and_not_before():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, [3, 1, 2, 1], n=7))
    assert state(table) == {}
    (entry,) = live(table)
    assert (entry.bucket, entry.total_buckets, entry.file.level) == (-2, -2, 0)
    assert (entry.file.min_sequence, entry.file.max_sequence, entry.file.row_count) == (-1, -1, 4)
    assert entry.file.name.endswith(".avro") and "-s-" in entry.file.name and "-w-" in entry.file.name
    result = table.compact()
    assert result.snapshot_id == table.snapshot().id
    assert state(table) == {(1, k): (f"v{k}", 7) for k in (1, 2, 3)}
    assert {entry.total_buckets for entry in live(table)} == {2}
    assert table.compact().snapshot_id is None, "nothing waits"


def test_the_newest_of_several_commits_wins_and_deletes_are_kept():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, [1, 2, 3], "a"))
    table.compact()
    table.write_arrow(rows(1, [1], "b"))
    table.write_arrow(rows(1, [1, 2], "c", kinds=["+U", "-D"]))
    table.compact()
    assert state(table) == {(1, 1): ("c1", 1), (1, 3): ("a3", 1)}


def test_types_that_avro_cannot_hold_wait_in_the_tables_own_format():
    store = MemoryStore()
    names = Catalog(store, WAREHOUSE, env=env("setup"))
    names.create_database("db")
    schema = pa.schema([pa.field("k", pa.int32(), nullable=False), ("t", pa.timestamp("ns"))])
    names.create_table("db.t", schema, primary_key=["k"], options={"bucket": "-2"})
    table = table_on(store, "w")
    table.write_arrow(pa.table({"k": [1], "t": pa.array([123456789], pa.timestamp("ns"))}, schema=schema))
    (entry,) = live(table)
    assert entry.file.name.endswith(".parquet")
    table.compact()
    assert table.scan().to_arrow()["t"].cast(pa.int64()).to_pylist() == [123456789]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, 2),
        ({"postpone.default-bucket-num": "3"}, 3),
        ({"postpone.default-bucket-num": "", "postpone.target-row-num-per-bucket": "4"}, 3),
        ({"postpone.default-bucket-num": ""}, 1),
    ],
)
def test_new_partitions_get_the_buckets_that_options_ask_for(options, want):
    given = {name: text for name, text in options.items() if text}
    store = store_with(**given)
    if "" in options.values():
        table_on(store, "alter").alter(RemoveOption("postpone.default-bucket-num"))
    table = table_on(store, "w")
    table.write_arrow(rows(1, range(9)))
    table.compact()
    assert {entry.total_buckets for entry in live(table)} == {want}
    table.write_arrow(rows(1, range(20, 40)))
    table.compact()
    assert {entry.total_buckets for entry in live(table)} == {want}, "a partition keeps its number"
    assert len(state(table)) == 29


def test_options_that_count_nothing_are_refused():
    with pytest.raises(OptionError, match=r"postpone\.default-bucket-num"):
        store_with(**{"postpone.default-bucket-num": "0"})


def test_options_that_count_nothing_are_refused_in_tables_that_others_made():
    store = store_with(**{"postpone.default-bucket-num": "7"})
    path = f"{table_on(store, 'w').location}/schema/schema-0"
    store.put(path, store.get(path).replace(b'"7"', b'"0"'))
    table = table_on(store, "w")
    table.write_arrow(rows(1, [1]))
    with pytest.raises(OptionError, match=r"postpone\.default-bucket-num"):
        table.compact()


def test_kinds_that_the_engine_does_not_take_are_refused_while_writing():
    table = table_on(store_with(**{"merge-engine": "first-row"}), "w")
    with pytest.raises(UsageError, match="first-row"):
        table.write_arrow(rows(1, [1], kinds=["-D"]))
    assert table.snapshot() is None


def test_the_least_number_can_be_taken_back():
    table = table_on(store_with(**{"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}), "w")
    least = -(2**31)
    table.write_arrow(rows(1, [1, 2], n=least))
    table.write_arrow(rows(1, [1], n=least, kinds=["-D"]))
    table.compact()
    assert table.scan().to_arrow()["n"].to_pylist() == [0, least]


def test_what_is_not_seen_cannot_be_changed():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, [1]))
    for change in (
        lambda: table.delete("k = 1"),
        lambda: table.update("k = 1", {"v": "x"}),
        lambda: table.upsert(rows(1, [1]), on=["p", "k"]),
    ):
        with pytest.raises(UsageError, match="postponed buckets"):
            change()


def test_an_upsert_that_looks_at_no_old_row_waits_like_any_other():
    table = table_on(store_with(), "a")
    table.write_arrow(rows(1, [1, 2], "old"))
    assert table.upsert(rows(1, [2, 3], "new")).upserted == 2
    assert state(table) == {}
    table.compact()
    assert {key: row[0] for key, row in state(table).items()} == {(1, 1): "old1", (1, 2): "new2", (1, 3): "new3"}


def test_rescaling_leaves_waiting_rows_alone():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, range(6)))
    table.compact()
    table.write_arrow(rows(1, [100]))
    table.rescale(5)
    assert table.options["bucket"] == "-2"
    assert {entry.total_buckets for entry in live(table)} == {5, -2}
    assert len(state(table)) == 6
    table.compact()
    assert len(state(table)) == 7 and {entry.total_buckets for entry in live(table)} == {5}


def test_partitions_can_be_published_one_by_one():
    table = table_on(store_with(), "w")
    table.write_arrow(pa.concat_tables([rows(1, [1]), rows(2, [2])]))
    table.compact(partitions=[{"p": 2}])
    assert list(state(table)) == [(2, 2)]
    table.compact()
    assert sorted(state(table)) == [(1, 1), (2, 2)]


def test_of_two_publishers_one_wins_and_sums_count_once():
    store = store_with(**{"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"})
    table = table_on(store, "w")
    table.write_arrow(rows(1, [1, 2]))
    table.write_arrow(rows(1, [1]))
    late = table_on(store, "late")
    late._root.snapshots = Racing(late._root.snapshots, lambda: table_on(store, "early").compact())
    late.compact()
    assert state(table_on(store, "check")) == {(1, 1): ("v1", 2), (1, 2): ("v2", 1)}


@pytest.mark.parametrize(
    "options", [{}, {"deletion-vectors.enabled": "true"}, {"num-sorted-run.compaction-trigger": "2"}]
)
def test_a_random_life_agrees_with_a_dict(options):
    draw = random.Random(3)
    store = store_with(**options)
    known: dict = {}
    waiting: list = []
    for step in range(25):
        table = table_on(store, f"w{step}")
        if draw.randrange(3) == 0:
            table.compact(full=draw.random() < 0.3)
            for key, value in waiting:
                if value is None:
                    known.pop(key, None)
                else:
                    known[key] = value
            waiting = []
            assert state(table) == known
            continue
        p, keys = draw.randrange(2), draw.sample(range(30), 5)
        kinds = [draw.choice(["+I", "+U", "-D"]) for _ in keys]
        table.write_arrow(rows(p, keys, f"{step}-", kinds=kinds))
        waiting += [((p, k), None if kind == "-D" else (f"{step}-{k}", 1)) for k, kind in zip(keys, kinds, strict=True)]
        assert state(table) == known
