"""A rollback gives the numbers of snapshots to others: whoever was in the middle of something must notice."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids, below, reachable

from paimon_py import Catalog, CommitConflictError, SnapshotExpiredError, Table
from paimon_py.commit.deletion_index import index_entries
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import latest_hint_path, snapshot_path
from paimon_py.storage.memory_store import MemoryStore

PATH = "/warehouse/db.db/t"
KEYED = {"bucket": "1", "num-sorted-run.compaction-trigger": "20"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}
LOOKUP = {"bucket": "1", "force-lookup": "true"}


def env(owner):
    return Env(Clock(), Ids(owner), SerialPool())


def store_with(options, *, key=("k",), partition_by=()):
    store = MemoryStore()
    names = Catalog(store, "/warehouse", env=env("setup"))
    names.create_database("db")
    columns = pa.schema([pa.field("p", pa.int32()), pa.field("k", pa.int32()), pa.field("v", pa.int32())])
    names.create_table("db.t", columns, primary_key=key, partition_by=partition_by, options=options)
    return store


def opened(store, owner):
    root = TableRoot(store, PATH, env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def rows(keys, value, p=1):
    return pa.table({name: pa.array(values, pa.int32()) for name, values in _columns(keys, value, p)})


def _columns(keys, value, p):
    return ("p", [p] * len(keys)), ("k", list(keys)), ("v", [value] * len(keys))


def values(store):
    found = opened(store, "reader").scan().to_arrow().to_pylist()
    assert len({row["k"] for row in found}) == len(found), "a key is there twice"
    return {row["k"]: row["v"] for row in found}


def roll_back(store, number, *, cleans=False):
    """As Java 2.0 does it: later snapshots go, their files stay; earlier releases also delete (`cleans`) these."""
    root = TableRoot(store, PATH, env("rollback"))
    before = named(root)
    store.put(latest_hint_path(PATH), str(number).encode())
    for later in reversed([known for known in root.snapshots.ids() if known > number]):
        store.delete(snapshot_path(PATH, later))
    if cleans:
        gone = before - named(root)
        for path in below(store, PATH):
            if path.rsplit("/", 1)[1] in gone:
                store.delete(path)


def named(root):
    """Names of all files that snapshots need."""
    snapshots = map(root.snapshots.get, root.snapshots.ids())
    return reachable(root) | {entry.name for snapshot in snapshots for entry in index_entries(root, snapshot)}


def with_two_snapshots(options, **more):
    store = store_with(options, **more)
    opened(store, "a").write_arrow(rows([1, 2, 3], 1))
    opened(store, "b").write_arrow(rows([4], 1))
    return store


def test_rows_of_a_late_writer_are_newer_than_those_that_took_the_place_of_its_base():
    store = with_two_snapshots(KEYED)
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([1], 100))
        roll_back(store, 1)
        opened(store, "other").write_arrow(pa.concat_tables([rows([1], value) for value in range(60)]))
        table.commit(writer.changes())
    assert values(store) == {1: 100, 2: 1, 3: 1}


@pytest.mark.parametrize("first", [0, 1])
def test_it_is_enough_that_one_of_several_writers_began_on_what_was_rolled_back(first):
    store = with_two_snapshots(KEYED)
    early = opened(store, "early").writer()
    early.write_arrow(rows([2], 100))
    roll_back(store, 1)
    opened(store, "other").write_arrow(pa.concat_tables([rows([2], value) for value in range(60)]))
    table = opened(store, "late")
    late = table.writer()
    late.write_arrow(rows([6], 100))
    handed = [early.changes(), late.changes()]
    table.commit([handed[first], handed[1 - first]])
    assert values(store) == {1: 1, 2: 100, 3: 1, 6: 100}


def test_a_key_that_others_gave_a_bucket_in_the_place_of_a_writers_base_is_refused():
    store = with_two_snapshots(DYNAMIC)
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([9], 100))
        changes = writer.changes()
        assert [bucket.bucket for bucket in changes.buckets] == [1], "bucket 0 is full"
        roll_back(store, 1)
        opened(store, "other").write_arrow(rows([9], 2))
        with pytest.raises(CommitConflictError, match="assigned bucket 0 to .*, and this one bucket 1; write the rows again"):
            table.commit(changes)
        writer.discard(changes)
    assert values(store) == {1: 1, 2: 1, 3: 1, 9: 2}


@pytest.mark.parametrize("cleans", [False, True])
def test_keys_of_dynamic_buckets_that_were_rolled_back_may_be_written_again(cleans):
    store = with_two_snapshots(DYNAMIC)
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([4, 9], 100))
        roll_back(store, 1, cleans=cleans)
        opened(store, "other").write_arrow(rows([1], 2))
        table.commit(writer.changes())
        writer.write_arrow(rows([4, 9, 1], 200))
        table.commit(writer.changes())
    assert values(store) == {1: 200, 2: 1, 3: 1, 4: 200, 9: 200}


def test_a_writer_of_moving_keys_is_refused_after_a_rollback():
    store = with_two_snapshots(DYNAMIC, partition_by=("p",))
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([9], 100))
        roll_back(store, 1)
        opened(store, "other").write_arrow(rows([9], 2, p=2))
        with pytest.raises(CommitConflictError, match="new writer"):
            table.commit(writer.changes())
    assert values(store) == {1: 1, 2: 1, 3: 1, 9: 2}


@pytest.mark.parametrize("options", [{"deletion-vectors.enabled": "true"}, {}])
def test_an_update_sees_the_rows_that_came_after_a_rollback(options):
    store = with_two_snapshots(options, key=())
    before = []

    def added(batch):
        if not before:
            before.append(True)
            roll_back(store, 1)
            opened(store, "other").write_arrow(rows([5], 1))
        return pa.array([value + 10 for value in batch["v"].to_pylist()], pa.int32())

    assert opened(store, "late").update("v = 1", {"v": added}).updated == 4
    assert values(store) == {1: 11, 2: 11, 3: 11, 5: 11}


def test_repeating_a_commit_after_a_rollback_deletes_nothing():
    store = with_two_snapshots({}, key=())
    opened(store, "c").write_arrow(rows([5], 1))
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([9], 100))
        changes = writer.changes()
    roll_back(store, 1)
    assert table.commit(changes, user="me", identifier=1).snapshot_id == 2
    opened(store, "other").write_arrow(rows([6], 1))
    assert table.commit(changes, user="me", identifier=1).already_committed
    assert values(store) == {1: 1, 2: 1, 3: 1, 6: 1, 9: 100}


@pytest.mark.parametrize("options", [LOOKUP, {"bucket": "1", "deletion-vectors.enabled": "true"}])
def test_a_writer_does_not_compact_past_rows_that_took_the_place_of_its_base(options):
    store = with_two_snapshots(options)
    late = opened(store, "late").writer()
    late.write_arrow(rows([1], 100))
    changes = late.changes()
    assert changes.buckets[0].compacted.deleted
    roll_back(store, 1)
    opened(store, "other").write_arrow(rows([1, 7], 2))
    table = opened(store, "committer")
    assert table.commit(changes).dropped_compaction
    table.compact(full=True)
    assert values(store) == {1: 100, 2: 1, 3: 1, 7: 2}


def test_a_scan_says_that_its_snapshot_was_rolled_back():
    store = with_two_snapshots({}, key=())
    table = opened(store, "reader")
    scan = table.scan()
    splits = scan.splits()
    roll_back(store, 1, cleans=True)
    opened(store, "other").write_arrow(rows([9], 1))
    with pytest.raises(SnapshotExpiredError, match="rolled back"):
        for split in splits:
            scan.read(split).read_all()


def test_lookups_and_scans_of_an_open_table_follow_a_rollback():
    store = with_two_snapshots(KEYED)
    table = opened(store, "reader")
    assert table.lookup([4, 1]).to_pydict() == {"p": [1, 1], "k": [4, 1], "v": [1, 1]}
    roll_back(store, 1)
    opened(store, "other").write_arrow(rows([1, 9], 7))
    assert table.lookup([4, 1, 9]).to_pydict() == {"p": [1, 1], "k": [1, 9], "v": [7, 7]}
    assert table.scan().count() == 4


LIVES = {
    "fixed": {"bucket": "1", "num-sorted-run.compaction-trigger": "3"},
    "lookup": {**LOOKUP, "num-sorted-run.compaction-trigger": "3"},
    "dynamic": {**DYNAMIC, "num-sorted-run.compaction-trigger": "3"},
    "moving": DYNAMIC,
}


class Life:
    """A table and its rows by snapshot."""

    def __init__(self, kind, seed):
        self.draw = random.Random(f"{kind} {seed}")
        self.store = store_with(LIVES[kind], partition_by=("p",) if kind == "moving" else ())
        self.reader = opened(self.store, "reader")
        self.rows, self.saved, self.steps = {}, {}, 0

    def some(self):
        """Rows for a few keys, each perhaps many times, and what they leave."""
        self.steps += 1
        keys, times = self.draw.sample(range(12), self.draw.randrange(1, 5)), self.draw.choice([1, 1, 9])
        p = self.draw.randrange(3)
        return pa.concat_tables([rows(keys, self.steps, p=p)] * times), dict.fromkeys(keys, self.steps)

    def note(self):
        latest = self.reader.snapshot()
        if latest is not None:
            self.saved[latest.id] = dict(self.rows)

    def roll_back(self):
        if len(self.saved) > 2:
            target = self.draw.choice(sorted(self.saved)[-4:])
            roll_back(self.store, target, cleans=self.draw.random() < 0.3)
            self.rows = dict(self.saved[target])
            self.saved = {number: content for number, content in self.saved.items() if number <= target}

    def others(self):
        """What somebody else does, once or several times."""
        for _ in range(self.draw.randrange(4)):
            data, found = self.some()
            opened(self.store, f"other{self.steps}-").write_arrow(data)
            self.rows |= found
            self.note()

    def check(self):
        assert values(self.store) == self.rows
        found = self.reader.lookup(list(range(12))).to_pylist()
        assert {row["k"]: row["v"] for row in found} == self.rows


@pytest.mark.parametrize("kind", LIVES)
def test_writers_that_stay_open_over_rollbacks_agree_with_a_dict(kind):
    """A writer, others, and a reader with caches; now and then somebody goes back by a few snapshots."""
    live(kind, 0)


@pytest.mark.full
@pytest.mark.parametrize("kind", LIVES)
def test_so_they_do_in_other_lives(kind):
    for seed in range(1, 25):
        live(kind, seed)


def live(kind, seed):
    life = Life(kind, seed)
    table, refused = opened(life.store, "one"), 0
    writer = table.writer()
    for turn in range(20):
        data, found = life.some()
        writer.write_arrow(data)
        changes = None
        if life.draw.random() < 0.5:
            if life.draw.random() < 0.5:
                changes = writer.changes()
            if changes is None or not changes.keys:
                life.roll_back()
            life.others()
        if life.draw.random() < 0.1:
            opened(life.store, f"compactor{turn}-").compact(full=True)
            life.note()
        changes = changes or writer.changes()
        try:
            table.commit(changes)
            life.rows |= found
        except CommitConflictError as error:
            assert "new writer" in str(error) and kind in ("dynamic", "moving")
            refused += 1
            writer.discard(changes)
            writer = table.writer()
        life.note()
        life.check()
    assert refused < 15
