"""Dynamic buckets through the public verbs: every key stays in one bucket, whoever writes, and whatever happens."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.commit.support import Clock, Ids, below

from paimon_py import Catalog, CommitConflictError, Table, UsageError
from paimon_py.commit.deletion_index import index_entries
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.hash_files import read_hashes
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import HASH
from paimon_py.storage.memory_store import MemoryStore

WAREHOUSE = "memory://dynamic"
SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())]
)


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def rows(p, keys, v="v"):
    return pa.table({"p": [p] * len(keys), "k": list(keys), "v": [f"{v}{k}" for k in keys]}, schema=SCHEMA)


def store_with(target=4, **options) -> MemoryStore:
    store = MemoryStore()
    names = Catalog(store, WAREHOUSE, env=env("setup"))
    names.create_database("db")
    given = {"dynamic-bucket.target-row-num": str(target), **options}
    names.create_table("db.t", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options=given)
    return store


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def index_of(table: Table) -> dict[tuple[bytes, int], list[int]]:
    root = table._root
    entries = index_entries(root, root.snapshots.latest())
    assert all(entry.index_type == HASH for entry in entries)
    return {(e.partition, e.bucket): sorted(read_hashes(OpenTable(root, table.schema), e).tolist()) for e in entries}


def state(table: Table) -> dict[tuple[int, int], str]:
    """The rows; each key is there once, and in the index of its partition once."""
    read = table.scan().to_arrow()
    found = list(zip(read["p"].to_pylist(), read["k"].to_pylist(), read["v"].to_pylist(), strict=True))
    assert len(found) == len({key[:2] for key in found}), "a key lies in two buckets"
    hashes = [(partition, value) for (partition, _), own in index_of(table).items() for value in own]
    assert len(hashes) == len(set(hashes)), "a hash is in two buckets"
    return {(p, k): v for p, k, v in found}


def test_keys_fill_one_bucket_after_the_other_and_stay():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, range(10)))
    assert [len(own) for own in index_of(table).values()] == [4, 4, 2]
    before = index_of(table)
    table.write_arrow(rows(1, range(10), "again"))
    assert index_of(table) == before, "known keys change no index"
    assert state(table) == {(1, k): f"again{k}" for k in range(10)}


def test_an_unchanged_index_is_not_rewritten():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, range(3)))
    name = table._root.snapshots.latest().index_manifest
    table.write_arrow(rows(1, range(3)))
    assert table._root.snapshots.latest().index_manifest == name


def test_one_writer_commits_in_rounds():
    table = table_on(store_with(), "w")
    with table.writer() as writer:
        for start in range(0, 30, 3):
            writer.write_arrow(rows(1, range(start, start + 5)))
            table.commit(writer.changes())
    assert set(state(table)) == {(1, k) for k in range(32)}
    assert [len(own) for own in index_of(table).values()] == [4] * 8


def indexes_without_a_snapshot(table):
    """Index files that no snapshot names."""
    root = table._root
    named = {entry.name for number in root.snapshots.ids() for entry in index_entries(root, root.snapshots.get(number))}
    there = {path.rsplit("/", 1)[1] for path in below(root.store, f"{root.path}/index")}
    return there - named


def test_concurrent_writers_leave_no_index_behind_and_continue():
    """Round for round, both with new keys and old ones, in every order of handing over and committing."""
    for seed in range(4):
        draw, known = random.Random(seed), {}
        store = store_with(target=3)
        tables = [table_on(store, name) for name in "ab"]
        writers, handed = [table.writer(share=(at, 2)) for at, table in enumerate(tables)], [[], []]
        for step in range(24):
            at = draw.randrange(2)
            if len(handed[at]) < 2 and draw.random() < 0.6:
                data = rows(1, draw.sample(range(30), 5), f"s{step}-")
                own = data.filter(pc.equal(tables[0].writer_numbers(data, 2), at))
                writers[at].write_arrow(own)
                handed[at].append((writers[at].changes(), own))
            elif handed[at]:
                changes, own = handed[at].pop(0)
                tables[at].commit(changes)
                known |= {(1, k): v for k, v in zip(own["k"].to_pylist(), own["v"].to_pylist())}
                waiting = {e.name for h in handed for c, _ in h for b in c.buckets for e in b.written.added_index}
                assert indexes_without_a_snapshot(tables[0]) <= waiting
                assert state(table_on(store, "reader")) == known
        for at in (0, 1):
            for changes, _ in handed[at]:
                writers[at].discard(changes)
        assert indexes_without_a_snapshot(tables[0]) == set()


def test_rounds_may_be_committed_together():
    table = table_on(store_with(), "w")
    parts = []
    with table.writer() as writer:
        for start in (0, 3, 6):
            writer.write_arrow(rows(1, range(start, start + 3)))
            parts.append(writer.changes())
    table.commit(parts)
    assert [len(own) for own in index_of(table).values()] == [4, 4, 1]
    assert len(state(table)) == 9
    assert indexes_without_a_snapshot(table) == set()


def out_of_order(store):
    """Two rounds of one writer, of which the second, which relies on the first one's index, is committed first."""
    table = table_on(store, "w")
    writer = table.writer()
    rounds = []
    for value in "ab":
        writer.write_arrow(rows(1, [1, 2], value))
        rounds.append(writer.changes())
    table.commit(rounds[1])
    return table, writer, rounds[0]


def test_a_round_may_be_discarded_after_a_later_one_was_committed():
    store = store_with()
    table, writer, first = out_of_order(store)
    writer.discard(first)
    assert [len(own) for own in index_of(table).values()] == [2]
    table_on(store, "next").write_arrow(rows(1, [2, 3], "c"))
    assert state(table) == {(1, 1): "b1", (1, 2): "c2", (1, 3): "c3"}


def test_discarding_asks_the_store_for_nothing_but_to_delete(monkeypatch):
    store = store_with()
    table_on(store, "before").write_arrow(rows(1, [9]))
    table = table_on(store, "w")
    with table.writer() as writer:
        writer.write_arrow(rows(1, [1, 2]))
        changes = writer.changes()
        before = set(below(store, WAREHOUSE))
        with monkeypatch.context() as away:
            for verb in ("get", "stat", "list", "open_read"):
                away.setattr(store, verb, lambda *_: pytest.fail("asked"))
            writer.discard(changes)
        assert before - set(below(store, WAREHOUSE)) == {
            path for path in before if any(file.name in path for b in changes.buckets for file in (*b.written.added, *b.written.added_index))
        }
        writer.write_arrow(rows(1, [2, 3]))
        table.commit(writer.changes())
    assert set(state(table)) == {(1, 9), (1, 2), (1, 3)}


def test_the_index_of_an_earlier_snapshot_is_kept_if_an_earlier_round_is_committed_late():
    store = store_with()
    table, _, first = out_of_order(store)
    before = index_of(table)
    table_on(store, "rival").write_arrow(rows(1, [3], "r"))
    table.commit(first)
    root = table._root
    assert index_of(table) != before
    for number in root.snapshots.ids():
        for entry in index_entries(root, root.snapshots.get(number)):
            assert read_hashes(OpenTable(root, table.schema), entry).size


def test_an_overwrite_rebuilds_the_index_of_its_partitions():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, range(9)))
    table.write_arrow(rows(2, range(3)))
    table.write_arrow(rows(1, [7, 8, 9]), overwrite={"p": 1})
    assert sorted(len(own) for own in index_of(table).values()) == [3, 3]
    assert set(state(table)) == {(1, 7), (1, 8), (1, 9), (2, 0), (2, 1), (2, 2)}
    table.truncate()
    assert index_of(table) == {}
    table.write_arrow(rows(1, [1]))
    assert state(table) == {(1, 1): "v1"}


def raced(base, one, two):
    """Two writers that saw the same table; the first one commits before the second."""
    store = store_with()
    if base:
        table_on(store, "base").write_arrow(rows(1, base))
    first, second = table_on(store, "a"), table_on(store, "b")
    with first.writer() as a, second.writer() as b:
        a.write_arrow(rows(1, one, "a"))
        b.write_arrow(rows(1, two, "b"))
        changes = b.changes()
        first.commit(a.changes())
        return store, second, b, changes


def test_of_two_writers_with_new_keys_both_keep_their_hashes():
    store, second, _, changes = raced([0, 1], [5], [6])
    second.commit(changes)
    assert set(state(second)) == {(1, 0), (1, 1), (1, 5), (1, 6)}
    assert [len(own) for own in index_of(second).values()] == [4]
    assert len(below(store, f"{WAREHOUSE}/db.db/t/index")) == 3, "the base, the first one's, and the united one"
    second.write_arrow(rows(1, [6], "later"))
    assert state(second)[(1, 6)] == "later6"


def test_known_keys_may_be_written_together_with_new_keys():
    _, second, _, changes = raced([0, 1], [5, 6, 7], [0])
    second.commit(changes)
    assert state(second)[(1, 0)] == "b0"
    assert sorted(len(own) for own in index_of(second).values()) == [1, 4]


def test_a_key_that_two_writers_put_into_two_buckets_is_refused():
    store, second, writer, changes = raced([0, 1, 2], [5, 6], [6, 5])
    with pytest.raises(CommitConflictError, match="bucket"):
        second.commit(changes)
    writer.discard(changes)
    assert set(state(second)) == {(1, k) for k in (0, 1, 2, 5, 6)}
    writer_again = second.write_arrow(rows(1, [6, 5], "b"))
    assert writer_again.snapshot_id and state(second)[(1, 5)] == "b5"
    assert store


def test_rows_for_buckets_that_others_emptied_are_refused():
    store = store_with()
    first, second = table_on(store, "a"), table_on(store, "b")
    first.write_arrow(rows(1, range(6)))
    with second.writer() as writer:
        writer.write_arrow(rows(1, [5]))
        changes = writer.changes()
        first.write_arrow(rows(1, [5], "new"), overwrite={"p": 1})
        with pytest.raises(CommitConflictError, match="assigned bucket 0 to .*, and this one bucket 1; write the rows again"):
            second.commit(changes)
    assert state(first) == {(1, 5): "new5"}


def test_rows_may_be_written_to_a_bucket_that_others_emptied():
    store = store_with()
    first, second = table_on(store, "a"), table_on(store, "b")
    first.write_arrow(rows(1, range(6)))
    with second.writer() as writer:
        writer.write_arrow(rows(1, [5]))
        first.write_arrow(rows(1, [8], "new"), overwrite={"p": 1})
        second.commit(writer.changes())
        writer.write_arrow(rows(1, [5], "again"))
        second.commit(writer.changes())
    assert state(first) == {(1, 5): "again5", (1, 8): "new8"}


def test_a_missing_index_is_rebuilt_from_the_keys():
    store = store_with()
    table = table_on(store, "w")
    table.write_arrow(rows(1, range(10)))
    before = index_of(table)
    root = table._root
    path = f"{WAREHOUSE}/db.db/t/snapshot/snapshot-1"
    text = store.get(path).decode()
    parsed = json.loads(text)
    parsed["indexManifest"] = None
    store.put(path, json.dumps(parsed).encode())
    fresh = table_on(store, "x")
    assert index_of(fresh) == {}
    fresh.write_arrow(rows(1, [9], "new"))
    assert state(fresh)[(1, 9)] == "new9" and len(state(fresh)) == 10
    assert index_of(fresh) == before
    assert root


def test_several_writers_share_partitions_by_key():
    store = store_with(target=3)
    table = table_on(store, "w")
    data = pa.concat_tables([rows(p, range(20)) for p in (1, 2)])
    for turn in ("x", "y"):
        named = data.set_column(2, "v", pa.array([f"{turn}{k}" for k in data["k"].to_pylist()]))
        numbers = table.writer_numbers(named, 3)
        parts = []
        for number in range(3):
            with table_on(store, f"{turn}{number}").writer(share=(number, 3)) as writer:
                writer.write_arrow(named.filter(pc.equal(numbers, number)))
                changes = writer.changes()
                assert all(b.bucket % 3 == number for b in changes.buckets)
                parts.append(bytes(changes))
        table.commit(parts)
    assert state(table) == {(p, k): f"y{k}" for p in (1, 2) for k in range(20)}
    with table.writer(share=(0, 3)) as writer, pytest.raises(UsageError, match="writer_numbers"):
        writer.write_arrow(data)
    with pytest.raises(UsageError, match="writer 3 of"):
        table.writer(share=(3, 3))


def write_by_shares(table, data, count):
    numbers = table.writer_numbers(data, count)
    parts = []
    for number in range(count):
        with table.writer(share=(number, count)) as writer:
            writer.write_arrow(data.filter(pc.equal(numbers, number)))
            parts.append(writer.changes())
    return table.commit(parts), parts


WAITING = [{"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}, {"merge-engine": "first-row"}]


@pytest.mark.parametrize("options", WAITING, ids=str)
def test_other_shares_are_refused_where_readers_wait_for_the_compaction_of_a_bucket(options):
    store = store_with(**options)
    table = table_on(store, "w")
    for count in (2, 2):
        assert write_by_shares(table, rows(1, range(20)), count)[0].dropped_compaction is None
    before, files = state(table), below(store, WAREHOUSE)
    with pytest.raises(UsageError, match=r"several of the 3 writers would write bucket \d of p=1"):
        write_by_shares(table, rows(1, range(20), "w"), 3)
    assert below(store, WAREHOUSE) == files and state(table) == before
    table.write_arrow(rows(1, range(20), "w"))
    write_by_shares(table, rows(2, range(20), "w"), 3)  # of a partition without buckets
    assert len(state(table)) == 40


def test_other_share_counts_are_accepted_if_readers_merge_rows():
    for options in ({}, {"deletion-vectors.enabled": "true", "write-only": "true"}):
        table = table_on(store_with(**options), "w")
        for count in (2, 3, 2):
            write_by_shares(table, rows(1, range(20), f"{count}-"), count)
            if options:
                table.compact(full=True)
            assert state(table) == {(1, k): f"{count}-{k}" for k in range(20)}


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_few_assigners_of_a_partition_fill_different_buckets(count):
    store = store_with(**{"dynamic-bucket.initial-buckets": "2", "deletion-vectors.enabled": "true"})
    table = table_on(store, "w")
    data = pa.concat_tables([rows(p, range(12)) for p in range(8)])
    for _ in range(2):
        done, parts = write_by_shares(table, data, count)
        assert done.dropped_compaction is None and len(state(table)) == 96
        places = [bucket.place for part in parts for bucket in part.buckets]
        assert len(places) == len(set(places))


def test_a_random_life_agrees_with_a_dict():
    draw = random.Random(5)
    store = store_with(target=5, **{"num-sorted-run.compaction-trigger": "3"})
    known: dict[tuple[int, int], str] = {}
    for step in range(25):
        table = table_on(store, f"w{step}")
        p, keys = draw.randrange(2), draw.sample(range(60), draw.randrange(1, 9))
        act = draw.randrange(10)
        if act == 0:
            table.write_arrow(rows(p, keys, f"o{step}-"), overwrite={"p": p})
            known = {key: v for key, v in known.items() if key[0] != p}
        elif act == 1:
            table.compact(full=True)
            keys = []
        elif act == 2:
            table.write_arrow(rows(p, keys).append_column("_row_kind", pa.array(["-D"] * len(keys))))
            for k in keys:
                known.pop((p, k), None)
            keys = []
        else:
            table.write_arrow(rows(p, keys, f"o{step}-"))
        known |= {(p, k): f"o{step}-{k}" for k in keys}
        assert state(table) == known
