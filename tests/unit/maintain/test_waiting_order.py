"""Waiting rows of machines whose clocks differ: the later commit is the newer row, whoever made it and whatever has expired."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids

from paimon_py import Catalog, Changes, CorruptionError, Table
from paimon_py.commit import attempts
from paimon_py.commit.snapshot_delta import with_growing_times
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry
from paimon_py.spec.postponed import WaitingOrder
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.counting_store import CountingStore

WAREHOUSE = "memory://waiting-order"
SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string()),
     ("n", pa.int32())]
)  # fmt: skip
HOUR = 3_600_000
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "listagg", "fields.n.aggregate-function": "last_value"},
    "first-row": {"merge-engine": "first-row"},
    "sequence field": {"sequence.field": "n"},
}


class Machine(Clock):
    """A clock that is ahead of the others by a time, in a zone of its own."""

    def __init__(self, ahead=0, zone=0):
        super().__init__(1_700_000_000_000 + ahead)
        self.zone = zone

    def local_millis(self):
        return self.millis() + self.zone


def opened(store, owner, clock=None, name="t"):
    root = TableRoot(store, f"{WAREHOUSE}/d.db/{name}", Env(clock or Machine(), Ids(owner), SerialPool()))
    return Table(root, root.schemas.latest(), f"d.{name}")


def store_with(**options):
    store = MemoryStore()
    names = Catalog(store, WAREHOUSE, env=Env(Clock(), Ids("setup"), SerialPool()))
    names.create_database("d")
    for name, bucket in (("t", "-2"), ("model", "1")):
        given = {"snapshot.num-retained.min": "100", "snapshot.num-retained.max": "1000", "write-only": "true", **options}
        names.create_table(
            f"d.{name}", SCHEMA, primary_key=["p", "k"], partition_by=["p"], options={"bucket": bucket, **given}
        )
    return store


def rows(p, keys, v, n=1):
    columns = {"p": [p] * len(keys), "k": list(keys), "v": [v] * len(keys), "n": [n] * len(keys)}
    return pa.table(columns, schema=SCHEMA)


def state(table):
    return sorted(table.to_arrow().to_pylist(), key=lambda row: (row["p"], row["k"]))


def live(table):
    return table._root.manifests.live_entries(table._root.snapshots.latest()).entries()


def times(table):
    return sorted(entry.file.creation_time_millis for entry in live(table) if entry.bucket == -2)


def order(table):
    return table._root.snapshots.latest().waiting


def as_java(monkeypatch, commit):
    """A commit that takes no care of the order."""
    with monkeypatch.context() as patch:
        patch.setattr(attempts, "in_waiting_order", lambda part, state, now: part)
        return commit()


def forget(table):
    """All snapshots that added files expire."""
    table.analyze()
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert [snapshot.commit_kind for snapshot in table.snapshots()] == ["ANALYZE"]


class Backwards:
    """Manifests that give live files newest first, as merged manifests may."""

    def __init__(self, manifests):
        self._manifests = manifests

    def __getattr__(self, name):
        return getattr(self._manifests, name)

    def live_entries(self, *args, **more):
        return self._manifests.live_entries(*args, **more).take(slice(None, None, -1))


# -- who is newer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("clocks", [(60_000, 0), (0, 60_000), (0, 0), (48 * HOUR, -48 * HOUR)])
def test_the_later_commit_is_newer_whatever_the_clocks_say(clocks, expired):
    store = store_with()
    for number, ahead in enumerate(clocks):
        opened(store, f"m{number}", Machine(ahead)).write_arrow(rows(1, [1], f"v{number}"))
    table = opened(store, "compacts")
    if expired:
        forget(table)
    table._root._manifests = Backwards(table._root.manifests)
    table.compact()
    assert [row["v"] for row in state(table)] == ["v1"]


def test_files_as_old_as_the_last_one_of_other_writers_are_ordered_by_their_commits(monkeypatch):
    store = store_with()
    for owner, value in (("z", "v0"), ("y", "v1"), ("x", "v2")):
        as_java(monkeypatch, lambda o=owner, v=value: opened(store, o).write_arrow(rows(1, [1], v)))
    opened(store, "ours").write_arrow(rows(1, [2], "v3"))
    table = opened(store, "compacts")
    assert times(table).count(order(table).since_millis) == 3
    table.compact()
    assert [row["v"] for row in state(table)] == ["v2", "v3"]


@pytest.mark.parametrize("zones", [(9 * HOUR, 0), (0, -8 * HOUR), (2 * HOUR, HOUR)])
def test_zones_of_writers_do_not_count(zones):
    """Times of files are those of a clock on the wall; the last case is the end of summer."""
    store = store_with()
    for number, zone in enumerate(zones):
        opened(store, f"m{number}", Machine(zone=zone)).write_arrow(rows(1, [1], f"v{number}"))
    table = opened(store, "compacts")
    forget(table)
    table.compact()
    assert [row["v"] for row in state(table)] == ["v1"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("engine", ENGINES)
def test_random_lives_agree_with_a_table_that_one_machine_wrote(engine, seed, monkeypatch):
    """Machines with clocks of their own take turns, some as Java commits; one commit may be of several writers."""
    rng = random.Random(seed)
    store = store_with(**ENGINES[engine], **{"manifest.merge-min-count": rng.choice(["2", "30"])})
    machines = [Machine(rng.choice([-HOUR, -1000, 0, 5, 60_000]), rng.choice([0, HOUR])) for _ in range(4)]
    model, is_mixed, number = opened(store, "model", name="model"), rng.random() < 0.5, 0
    for _ in range(4):
        for _ in range(rng.randrange(2, 7)):
            parts, times_of_all = [], rng.randrange(1, 4)
            for _ in range(times_of_all):
                number += 1
                clock = rng.choice(machines)
                clock.seconds += rng.choice([0, 0, 0.001, 30])
                value = None if rng.random() < 0.3 else f"v{number}"
                given = rows(rng.randrange(2), rng.sample(range(6), 3), value, rng.randrange(3))
                with opened(store, f"w{number}", clock).writer() as writer:
                    writer.write_arrow(given)
                    parts.append(writer.changes())
                    writer.write_arrow(given.slice(0, 1).set_column(3, "n", pa.array([7], pa.int32())))
                    parts.append(writer.changes())
                model.write_arrow(given)
                model.write_arrow(given.slice(0, 1).set_column(3, "n", pa.array([7], pa.int32())))
            committer = opened(store, f"c{number}", rng.choice(machines))
            if is_mixed and rng.random() < 0.3 and times_of_all == 1:
                as_java(monkeypatch, lambda c=committer, p=parts: [c.commit(one) for one in p])
            else:
                committer.commit(Changes.concat(parts))
        table = opened(store, f"compacts{number}", rng.choice(machines))
        if not is_mixed and rng.random() < 0.5:
            forget(table)
            table.compact_manifests()
        table.compact(partitions=[{"p": 1}] if rng.random() < 0.3 else None)
    table = opened(store, "last")
    table.compact(full=True)
    model.compact(full=True)
    assert state(table) == state(model)


def test_of_changes_that_are_committed_as_one_the_later_in_the_list_are_newer():
    store = store_with()
    parts = []
    for number, ahead in enumerate((HOUR, 0, 60_000, -HOUR)):
        with opened(store, f"m{number}", Machine(ahead)).writer() as writer:
            writer.write_arrow(rows(1, [1], f"v{number}"))
            parts.append(writer.changes())
    table = opened(store, "commits")
    table.commit(Changes.concat([*parts[1:], parts[0]]))
    made = times(table)
    assert len(set(made)) == 4 and made[0] <= Clock().millis(), "no file is made after its commit"
    forget(table)
    table.compact()
    assert [row["v"] for row in state(table)] == ["v0"]


def test_files_of_one_writer_come_in_its_order():
    """More than ten in one millisecond, so that neither times nor names tell."""
    table = opened(store_with(), "w")
    with table.writer() as writer:
        parts = []
        for number in range(12):
            writer.write_arrow(rows(1, [1], f"v{number}"))
            parts.append(writer.changes())
    table.commit(Changes.concat(parts))
    forget(table)
    table.compact()
    assert [row["v"] for row in state(table)] == ["v11"]


def test_a_stream_that_begins_with_all_rows_tells_waiting_ones_in_their_order():
    store = store_with(**{"manifest.merge-min-count": "2"})
    for number, ahead in enumerate((HOUR, 0, 60_000, -HOUR, 0)):
        opened(store, f"m{number}", Machine(ahead)).write_arrow(rows(1, [1], f"v{number}"))
    table = opened(store, "reads")
    forget(table)
    table.compact_manifests()
    table._root._manifests = Backwards(table._root.manifests)
    assert table.stream(from_="full").poll().to_arrow()["v"].to_pylist() == [f"v{number}" for number in range(5)]


# -- beside writers that take no care of the order --------------------------------------------------------------------


def test_history_tells_the_order_of_files_of_other_writers(monkeypatch):
    store = store_with()
    ahead, behind = Machine(HOUR), Machine(-HOUR)
    opened(store, "a", ahead).write_arrow(rows(1, [1, 2, 3], "ours"))
    as_java(monkeypatch, lambda: opened(store, "b", behind).write_arrow(rows(1, [2, 3], "java")))
    as_java(monkeypatch, lambda: opened(store, "c", Machine()).write_arrow(rows(1, [3, 4], "java again")))
    as_java(monkeypatch, lambda: opened(store, "d", behind).write_arrow(rows(1, [4], "java at last")))
    table = opened(store, "compacts")
    assert order(table) is None
    table.compact()
    assert [row["v"] for row in state(table)] == ["ours", "java", "java again", "java at last"]


def test_what_comes_after_others_is_newer_though_all_that_is_older_has_expired(monkeypatch):
    store = store_with()
    as_java(monkeypatch, lambda: opened(store, "a", Machine(HOUR)).write_arrow(rows(1, [1, 2], "java")))
    opened(store, "b").write_arrow(rows(1, [1], "ours"))
    made = times(opened(store, "x"))
    assert made == [Clock().millis() + HOUR, Clock().millis() + HOUR + 1]
    assert order(opened(store, "x")) == WaitingOrder(made[0], made[1])
    opened(store, "c", Machine(-HOUR)).write_arrow(rows(1, [2], "ours again"))
    table = opened(store, "compacts")
    forget(table)
    table.compact()
    assert [row["v"] for row in state(table)] == ["ours", "ours again"]


def test_of_files_whose_snapshots_have_expired_only_times_tell(monkeypatch):
    """As in Java; but files of snapshots that are left are newer than all of them."""
    store = store_with()
    for name, ahead in (("first", 2000), ("second", 1000), ("third", 0)):
        as_java(monkeypatch, lambda n=name, a=ahead: opened(store, n, Machine(a)).write_arrow(rows(1, [1, 2], n)))
    as_java(monkeypatch, lambda: opened(store, "d", Machine(-HOUR)).write_arrow(rows(1, [2], "last")))
    table = opened(store, "compacts")
    table.expire_snapshots(retain_min=1, retain_max=1)
    table.compact()
    assert [row["v"] for row in state(table)] == ["first", "last"]


# -- commits ----------------------------------------------------------------------------------------------------------


def entry(name, millis, bucket=-2):
    file = DataFile(
        name=name, size_bytes=1, row_count=1, min_sequence=-1, max_sequence=-1, schema_id=0, level=0,
        creation_time_millis=millis,
    )  # fmt: skip
    return ManifestEntry(kind=FileKind.ADD, partition=b"", bucket=bucket, total_buckets=bucket, file=file)


@pytest.mark.parametrize(
    ("made", "after", "given"),
    [
        ([5, 6, 9], 0, [5, 6, 9]),
        ([5, 5, 5], 0, [5, 6, 7]),
        ([9, 2, 3], 0, [9, 10, 11]),
        ([5, 6], 20, [21, 22]),
        ([None, 3], -1, [0, 3]),
        ([99, 6], 3, [10, 11]),
        ([99, 6], 30, [31, 32]),
    ],
)
def test_times_grow_and_stay_near_those_of_the_files(made, after, given):
    adds = tuple(entry(f"f{at}", millis) for at, millis in enumerate(made))
    timed, last = with_growing_times((*adds, entry("other", 1, 0)), after, 10, lambda one: one.bucket == -2)
    assert [one.file.creation_time_millis for one in timed] == [*given, 1] and last == given[-1]


def test_every_commit_passes_on_how_far_the_order_goes():
    store = store_with(**{"write-only": "false"})
    table = opened(store, "w", Machine(HOUR))
    table.write_arrow(rows(1, [1], "a"))
    known = order(table)
    assert known == WaitingOrder(-1, Clock().millis() + HOUR)
    late = opened(store, "late")
    late.compact()
    late.write_arrow(rows(1, [2], "b"), overwrite={"p": 1})
    late.analyze()
    late.compact(full=True)
    assert order(late) == WaitingOrder(-1, known.until_millis + 1)
    late.commit(written(late, rows(1, [3], "c")), properties={"mine": "x"})
    assert late.snapshot().properties == {"mine": "x"}
    assert order(late) == WaitingOrder(-1, known.until_millis + 2)
    late.rollback_to(1)
    assert order(late) == known


def written(table, data):
    with table.writer() as writer:
        writer.write_arrow(data)
        return writer.changes()


def test_tables_without_waiting_rows_say_nothing():
    table = opened(store_with(), "w", name="model")
    table.write_arrow(rows(1, [1], "a"))
    assert table.snapshot().properties == {}


@pytest.mark.parametrize("text", ["7", "a", "{}", "[1, 2]", '{"since_millis": 1}'])
def test_a_damaged_property_is_named(text):
    table = opened(store_with(), "w")
    table.write_arrow(rows(1, [1], "a"))
    path = f"{table.location}/snapshot/snapshot-1"
    stored = json.loads(table._root.store.get(path))
    stored["properties"]["paimon-py.waiting"] = text
    table._root.store.put(path, json.dumps(stored).encode())
    with pytest.raises(CorruptionError, match="snapshot-1: property 'paimon-py.waiting' is damaged"):
        order(opened(table._root.store, "x"))


def test_a_commit_that_loses_a_race_comes_after_the_winner():
    store = store_with()

    class Racing:
        """A store in which a machine ahead publishes the next snapshot, once."""

        others = [lambda: opened(store, "wins", Machine(HOUR)).write_arrow(rows(1, [1], "won"))]

        def __getattr__(self, verb):
            return getattr(store, verb)

        def put_new(self, path, data, *, within=None):
            if "/snapshot-" in path and self.others:
                self.others.pop()()
            return store.put_new(path, data, within=within)

    result = opened(Racing(), "loses").write_arrow(rows(1, [1], "lost"))
    assert result.attempts == 2
    table = opened(store, "compacts")
    assert times(table) == [Clock().millis() + HOUR, Clock().millis() + HOUR + 1]
    forget(table)
    table.compact()
    assert [row["v"] for row in state(table)] == ["lost"]


def test_the_order_costs_no_call(monkeypatch):
    """Neither a commit nor a publication asks for more, unless others committed in between."""
    store = store_with()
    for number in range(5):
        opened(store, f"m{number}", Machine(number)).write_arrow(rows(1, [number], "v"))

    def calls(do, commit=lambda make: make()):
        counting = CountingStore(store.copy())
        table = opened(counting, "w")
        prepared = do(table)
        counting.reset()
        commit(prepared)
        return sorted(path.rpartition("/")[2] for _, path in counting.paths)

    def committing(table):
        changes = written(table, rows(1, [1], "v"))
        return lambda: table.commit(changes)

    assert len(calls(committing)) == len(calls(committing, lambda make: as_java(monkeypatch, make)))
    assert not {"snapshot-2", "snapshot-3", "snapshot-4"}.intersection(calls(lambda table: table.compact))


def test_sequence_numbers_of_snapshots_leave_the_order_of_one_commit_to_the_list():
    """`sequence.snapshot-ordering`: all files of a commit have one number."""
    store = store_with(**{"sequence.snapshot-ordering": "true"})
    parts = []
    for number, ahead in enumerate((HOUR, 0, -HOUR)):
        with opened(store, f"m{number}", Machine(ahead), name="model").writer() as writer:
            writer.write_arrow(rows(1, [1], f"v{number}"))
            parts.append(writer.changes())
    table = opened(store, "commits", name="model")
    table.commit(Changes.concat(parts))
    assert [row["v"] for row in state(table)] == ["v2"]
    table.compact(full=True)
    assert [row["v"] for row in state(table)] == ["v2"]
