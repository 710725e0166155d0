"""How a snapshot is published: until when, and when it is taken back."""

from __future__ import annotations

from contextlib import contextmanager

import msgspec
import pytest
from unit.commit.support import Clock
from unit.maintain.test_after_commit import PATH, created, ids, opened, rows

from paimon_py import CommitConflictError, CommitUnknownError
from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.metadata.catalog_entry import LockedCommitter
from paimon_py.metadata.committer import Committed, LostRace
from paimon_py.storage.memory_store import MemoryStore


class Lock:
    """A lock that nobody else can have for some seconds."""

    def __init__(self, clock, seconds):
        self._clock = clock
        self._seconds = seconds

    @contextmanager
    def hold(self, branch):
        assert branch == "main"
        yield self._clock.elapsed() + self._seconds


@pytest.mark.parametrize(("commit", "lock", "expected"), [(9, 9, Committed), (-1, 9, LostRace), (9, -1, LostRace)])
def test_the_shorter_time_counts(commit, lock, expected):
    clock = Clock()
    table = created(MemoryStore(), clock)
    table.write_arrow(rows(1))
    root, parent = table._root, table._root.snapshots.latest()
    following = msgspec.structs.replace(parent, id=2, uuid=root.env.ids.uuid())
    found = LockedCommitter(root, Lock(clock, lock)).publish(following, parent, deadline=clock.elapsed() + commit)
    assert isinstance(found, expected) and (root.snapshots.latest().id == 2) is (expected is Committed)


class ActsAfterCreating:
    """A store on which others act right after a file was created."""

    def __init__(self, store, path, act):
        self._store = store
        self._path = path
        self._act = act

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    def put_new(self, path, data, **more):
        done = self._store.put_new(path, data, **more)
        if path == self._path:
            act, self._act = self._act, lambda: None
            act()
        return done


def test_a_snapshot_that_a_rollback_cut_off_stays_if_others_have_built_on_it():
    """The rollback had listed the snapshots before this one was created."""
    store, clock = MemoryStore(), Clock()
    created(store, clock, (), **{"write-only": "true"})
    other = opened(store, clock)
    for key in (1, 2):
        other.write_arrow(rows(key))

    def act():
        other.write_arrow(rows(4))
        store.delete(f"{PATH}/snapshot/snapshot-2")

    with pytest.raises(CommitUnknownError, match="others built on snapshot 3"):
        opened(ActsAfterCreating(store, f"{PATH}/snapshot/snapshot-3", act), clock).write_arrow(rows(3))
    assert ids(other) == [1, 3, 4]
    assert sorted(opened(store, clock).scan(snapshot_id=4).to_arrow()["k"].to_pylist()) == [1, 2, 3, 4]


def test_a_snapshot_that_was_taken_back_and_the_next_one_with_its_id_have_different_marks():
    """Others may have seen the first one, and remember its mark."""
    store, clock, seen = MemoryStore(), Clock(), []
    created(store, clock, (), **{"write-only": "true"})
    other = opened(store, clock)
    for key in (1, 2):
        other.write_arrow(rows(key))

    def act():
        seen.append(other._root.snapshots.get(3))
        store.delete(f"{PATH}/snapshot/snapshot-3")
        other.rollback_to(1)
        other.write_arrow(rows(4))
        store.put(f"{PATH}/snapshot/snapshot-3", snapshot_to_json(seen[0]))

    opened(ActsAfterCreating(store, f"{PATH}/snapshot/snapshot-3", act), clock).write_arrow(rows(3))
    table = opened(store, clock)
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [1, 3, 4]
    assert table._root.snapshots.get(3).mark != seen[0].mark


@pytest.mark.parametrize(
    ("lost", "wanted"), [(2, r"history of .* has a gap.*rollback_to\(1\) keeps"), (1, None), (4, None)]
)
def test_nothing_is_committed_on_a_history_with_a_gap(lost, wanted):
    """The oldest snapshots may have expired, and the newest ones may have been rolled back. LATEST is lost as well."""
    store, clock = MemoryStore(), Clock()
    table = created(store, clock, (), **{"write-only": "true"})
    for key in range(4):
        table.write_arrow(rows(key))
    store.delete(f"{PATH}/snapshot/snapshot-{lost}")
    store.delete(f"{PATH}/snapshot/LATEST")
    if wanted is None:
        assert opened(store, clock).write_arrow(rows(9)).snapshot_id == (4 if lost == 4 else 5)
        return
    with pytest.raises(CommitConflictError, match=wanted):
        opened(store, clock).write_arrow(rows(9))
    assert ids(table) == [1, 3, 4]


def test_nothing_is_committed_on_a_snapshot_that_does_not_follow_from_the_one_before():
    store, clock = MemoryStore(), Clock()
    table = created(store, clock, (), **{"write-only": "true"})
    for key in range(3):
        table.write_arrow(rows(key))
    stray = store.get(f"{PATH}/snapshot/snapshot-3")
    table.rollback_to(1)
    table.write_arrow(rows(8))
    store.put(f"{PATH}/snapshot/snapshot-3", stray)
    store.put(f"{PATH}/snapshot/LATEST", b"2")
    with pytest.raises(CommitConflictError, match=r"snapshot 3 of .* does not follow from snapshot 2.*rollback_to\(2\)"):
        opened(store, clock).write_arrow(rows(9))
    opened(store, clock).rollback_to(2)
    assert opened(store, clock).write_arrow(rows(9)).snapshot_id == 3
