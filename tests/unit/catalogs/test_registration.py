"""A catalog's lock is held while a snapshot or a schema is published, and no longer than nobody else can have it."""

from __future__ import annotations

import contextlib
import pickle

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, CommitRetriesExhaustedError, LockTimeoutError, SetOption
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.catalog_entry import LockedRegistration
from paimon_py.metastores.directories import DirectoryMetastore
from paimon_py.storage.memory_store import MemoryStore

ROWS = pa.table({"a": pa.array([1, 2], pa.int64())})


def paths(store, directory="/w"):
    found = set()
    for status in store.list(directory):
        found |= paths(store, status.path) if status.is_directory else {status.path}
    return found


class Told:
    """A lock that says when it was held; `free` says whether it can be had, `lasts` for how long."""

    def __init__(self, clock, store):
        self.clock, self.store, self.free, self.lasts, self.held_for = clock, store, True, 60.0, []

    @contextlib.contextmanager
    def hold(self, branch):
        assert branch == "main"
        if not self.free:
            raise LockTimeoutError("others hold it")
        before = paths(self.store)
        yield self.clock.elapsed() + self.lasts
        self.held_for.append(sorted(paths(self.store) - before))


class Locked(DirectoryMetastore):
    __slots__ = ("lock",)

    def find(self, name):
        root = super().find(name)
        root.registration = LockedRegistration(self.lock)
        return root


@pytest.fixture
def locked():
    env, store = Env(pool=SerialPool()), MemoryStore()
    metastore = Locked(store, "/w", env=env, options={})
    metastore.lock = Told(env.clock, store)
    catalog = Catalog.of(metastore, env=env)
    catalog.create_database("d")
    table = catalog.create_table("d.t", ROWS.schema)
    return table, metastore.lock


def test_a_commit_writes_its_manifests_before_it_takes_the_lock(locked):
    table, lock = locked
    table.write_arrow(ROWS)
    assert [[path.rsplit("/", 1)[-1] for path in held] for held in lock.held_for] == [["LATEST", "snapshot-1"]]
    assert table.scan().count() == 2


def test_a_schema_is_published_under_the_lock(locked):
    table, lock = locked
    table.alter(AddColumn("b", "INT"))
    assert [[path.rsplit("/", 1)[-1] for path in held] for held in lock.held_for] == [["schema-1"]]


def test_without_the_lock_nothing_is_done_and_no_file_is_left(locked):
    table, lock = locked
    table.write_arrow(ROWS)
    lock.free, before = False, paths(lock.store)
    with pytest.raises(LockTimeoutError):
        table.write_arrow(ROWS)
    with pytest.raises(LockTimeoutError):
        table.alter(AddColumn("b", "INT"))
    assert paths(lock.store) == before


def test_a_writer_whose_lock_may_have_expired_does_not_publish(locked):
    table, lock = locked
    table.alter(SetOption("commit.max-retries", "1"))
    lock.lasts = -1.0
    with pytest.raises(CommitRetriesExhaustedError, match="may have expired"):
        table.write_arrow(ROWS)
    assert table.snapshot() is None


def test_branches_and_pickles_keep_the_registration(locked):
    table, _ = locked
    assert table._root.on_branch("b").registration is table._root.registration
    table._root.registration = LockedRegistration(None)
    assert isinstance(pickle.loads(pickle.dumps(table))._root.registration, LockedRegistration)
