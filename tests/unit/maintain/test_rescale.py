"""Other numbers of buckets: the same rows in other files, or nothing at all."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, CommitConflictError, Table, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore

WAREHOUSE = "memory://rescale"
SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())]
)


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool())


def rows(p, keys, v="v"):
    return pa.table({"p": [p] * len(keys), "k": list(keys), "v": [f"{v}{k}" for k in keys]}, schema=SCHEMA)


def store_with(keyed=True, **options) -> MemoryStore:
    store = MemoryStore()
    names = Catalog(store, WAREHOUSE, env=env("setup"))
    names.create_database("db")
    given = {"bucket": "2", **({} if keyed else {"bucket-key": "k"}), **options}
    key = {"primary_key": ["p", "k"]} if keyed else {}
    names.create_table("db.t", SCHEMA, partition_by=["p"], options=given, **key)
    table = table_on(store, "first")
    table.write_arrow(rows(1, range(8)))
    table.write_arrow(rows(2, range(8)))
    return store


def table_on(store, owner: str) -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def state(table: Table) -> list[tuple]:
    read = table.scan().to_arrow()
    return sorted(zip(*(read[name].to_pylist() for name in ("p", "k", "v")), strict=True))


def counts(table: Table) -> dict[bytes, set[int]]:
    root = table._root
    live = root.manifests.live_entries(root.snapshots.latest()).entries()
    return {e.partition: {o.total_buckets for o in live if o.partition == e.partition} for e in live}


class Racing:
    """Snapshots of a table on which something happens when the latest one is asked for the third time."""

    def __init__(self, snapshots, happens):
        self._snapshots = snapshots
        self._happens = happens
        self._asked = 0

    def latest(self):
        self._asked += 1
        if self._asked == 3:
            self._happens()
        return self._snapshots.latest()

    def __getattr__(self, name):
        return getattr(self._snapshots, name)


@pytest.mark.parametrize("keyed", [True, False])
def test_all_partitions_get_the_new_number_and_keep_their_rows(keyed):
    table = table_on(store_with(keyed), "w")
    before = state(table)
    table.rescale(5)
    assert state(table) == before
    assert list(counts(table).values()) == [{5}, {5}]
    assert table.options["bucket"] == "5"
    assert table.rescale(5).snapshot_id is None, "there is nothing to do"
    table.write_arrow(rows(1, [100]))
    assert len(state(table)) == len(before) + 1


def test_one_partition_alone_leaves_the_others_closed_to_plain_writes():
    table = table_on(store_with(), "w")
    before = state(table)
    table.rescale(3, partitions=[{"p": 1}])
    assert state(table) == before
    table.write_arrow(rows(1, [0], "new"))
    with pytest.raises(UsageError, match="has 2 buckets, but the option 'bucket' says 3"):
        table.write_arrow(rows(2, [0], "new"))
    table.rescale(3)
    table.write_arrow(rows(2, [0], "new"))


def test_rows_are_seen_at_once_though_level_0_is_hidden_and_options_ask_for_it():
    options = {
        "deletion-vectors.enabled": "true", "overwrite-upgrade": "false", "write-buffer-spillable": "false",
        "write-buffer-size": "1 mb", "page-size": "64 kb",
    }  # fmt: skip
    store = store_with(**options)
    table = table_on(store, "me")
    table.write_arrow(rows(1, range(60_000), "w" * 40))
    table.compact(full=True)
    before = state(table)
    table.rescale(1)
    assert state(table) == before
    root = table._root
    live = root.manifests.live_entries(root.snapshots.latest()).entries()
    assert {entry.file.level for entry in live} == {5}


def test_deleted_rows_stay_deleted():
    table = table_on(store_with(), "w")
    table.write_arrow(rows(1, range(8)).append_column("_row_kind", pa.array(["-D"] * 8)))
    table.rescale(3)
    assert {row[0] for row in state(table)} == {2}
    table.write_arrow(rows(1, [0], "new"))
    assert (1, 0, "new0") in state(table)


@pytest.mark.parametrize("buckets", [0, -1, -2, True, "3", 1.5])
def test_numbers_that_count_nothing_are_refused(buckets):
    table = table_on(store_with(), "w")
    with pytest.raises(UsageError, match="at least 1"):
        table.rescale(buckets)
    assert table.options["bucket"] == "2"


def test_tables_whose_buckets_are_not_counted_are_refused():
    for options in ({"bucket": "-1"},):
        store = MemoryStore()
        names = Catalog(store, WAREHOUSE, env=env("setup"))
        names.create_database("db")
        names.create_table("db.t", SCHEMA, primary_key=["p", "k"], options=options)
        with pytest.raises(UsageError, match="dynamic buckets"):
            table_on(store, "w").rescale(3)


def test_rows_that_are_committed_meanwhile_are_not_lost():
    store = store_with()
    other = table_on(store, "other")
    with other.writer() as writer:
        writer.write_arrow(rows(1, [50]))
        changes = writer.changes()

    table = table_on(store, "w")
    table._root.snapshots = Racing(table._root.snapshots, lambda: other.commit(changes))
    table.rescale(4)
    found = state(table_on(store, "check"))
    assert (1, 50, "v50") in found and len(found) == 17
    assert set.union(*counts(table).values()) == {4}


def test_a_write_that_was_prepared_before_is_refused_after():
    store = store_with()
    other = table_on(store, "other")
    with other.writer() as writer:
        writer.write_arrow(rows(1, [50]))
        changes = writer.changes()
        table_on(store, "w").rescale(4)
        with pytest.raises(CommitConflictError, match="buckets"):
            other.commit(changes)
        writer.discard(changes)
    assert len(state(table_on(store, "check"))) == 16


TELLING = {"lookup": {"changelog-producer": "lookup"}, "full": {"changelog-producer": "full-compaction"}}


def told(table: Table, since: int = 0) -> list[tuple]:
    """The changelog after a snapshot, as (key, kind)."""
    changes = table.changes(since, mode="changelog").to_arrow()
    return list(zip(*(changes[name].to_pylist() for name in ("p", "k", "_row_kind")), strict=True))


@pytest.mark.parametrize("options", TELLING.values(), ids=TELLING)
def test_a_changelog_tells_nothing_again_after_new_buckets(options):
    small = {"write-buffer-size": "1 mb", "write-buffer-spillable": "false"}
    store = store_with(**options, **small, **{"overwrite-upgrade": "false"})
    table = table_on(store, "me")
    before = table.snapshot().id
    assert len(told(table)) == 16
    table.rescale(3)
    table = table_on(store, "again")
    table.compact(full=True)
    assert told(table, before) == []
    table.write_arrow(rows(1, [3], "new"))
    assert told(table, before) == [(1, 3, "-U"), (1, 3, "+U")]


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("options", TELLING.values(), ids=TELLING)
def test_rows_that_the_changelog_has_yet_to_tell_are_not_written_anew(options, is_compacted):
    """Also if they are beside others that it has told."""
    table = table_on(store_with(**options, **{"write-only": "true"}), "me")
    if is_compacted:
        table.compact(full=True)
        table.write_arrow(rows(1, [3]))
    with pytest.raises(UsageError, match="compact\\(full=True\\), then rescale"):
        table.rescale(3)
    assert table.options["bucket"] == "2"
    table.compact(full=True)
    table.rescale(3)
    assert len(told(table)) == (18 if is_compacted else 16)
