"""The lock of a Hive catalog: who holds it, who waits, and what happens to those who die, sleep or are cut off."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from unit.catalogs.hive_stub import Refuse, StubMetastore
from unit.commit.support import Clock

from paimon_py import AddColumn, Catalog, LockTimeoutError, PaimonWarning, StorageError
from paimon_py.env import Env, SerialPool
from paimon_py.metastores.hive import thrift

ROWS = pa.table({"k": pa.array([1, 2], pa.int64())})


FOREVER = 1e12
"""When a holder is heard of who lives on and on."""


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def stub(clock):
    made = StubMetastore(now=clock.elapsed)
    yield made
    made.close()


@pytest.fixture
def table(stub, clock, tmp_path):
    settings = {"metastore": "hive", "uri": stub.uri, "fs.local.fsync": "false", "lock.enabled": "true"}
    catalog = Catalog.open(tmp_path / "w", settings, env=Env(clock, pool=SerialPool()))
    catalog.create_database("d")
    table = catalog.create_table("d.t", ROWS.schema)
    stub.calls.clear()
    return table


def others_lock(stub, name="t"):
    """A lock of somebody else, as Java asks for one."""
    component = {1: (thrift.I32, 3), 2: (thrift.I32, 2), 3: thrift.of_text("d"), 4: thrift.of_text(name)}
    request = {1: thrift.of_structs([component]), 3: thrift.of_text("ann"), 4: thrift.of_text("host-7")}
    return thrift.number(stub._lock({1: request})[1], 1)


def test_commits_and_schema_changes_hold_and_release_the_lock(table, stub):
    table.write_arrow(ROWS)
    assert stub.calls == ["lock", "unlock"]
    stub.calls.clear()
    table.alter(AddColumn("z", "INT"))
    assert [call for call in stub.calls if "lock" in call] == ["lock", "unlock"]
    assert stub.locks == {}


def test_a_branch_has_its_own_lock_as_in_java(table, stub):
    table.write_arrow(ROWS)
    table.create_branch("b1")
    others_lock(stub)
    table.branch("b1").write_arrow(ROWS)
    stub.locks[others_lock(stub, "t$branch_b1")]["heard"] = FOREVER
    with pytest.raises(LockTimeoutError, match="branch_b1"):
        table.branch("b1").write_arrow(ROWS)


def test_a_lock_held_by_others_is_awaited_and_its_holder_named(table, stub, clock):
    held = others_lock(stub)
    stub.locks[held]["heard"] = FOREVER
    with pytest.raises(LockTimeoutError, match=f"ann on host-7 holds lock {held}") as caught:
        table.write_arrow(ROWS)
    assert 480 <= clock.elapsed() < 500
    assert "nothing was done" in str(caught.value) and table.snapshot() is None
    assert list(stub.locks) == [held], "who gave up waits no longer"
    del stub.locks[held]
    table.write_arrow(ROWS)


def test_the_lock_of_a_killed_holder_expires(table, stub, clock):
    others_lock(stub)
    table.write_arrow(ROWS)
    assert 300 < clock.elapsed() < 400
    assert stub.locks == {} and table.scan().count() == 2


def test_stale_locks_are_released_if_the_metastore_does_not(table, stub, clock):
    stub.forgets = False
    others_lock(stub)
    clock.seconds += 200
    dead = others_lock(stub)
    table.write_arrow(ROWS)
    assert 500 < clock.elapsed() < 600, "the second one is of no use only when 300 s have gone since it was asked for"
    assert stub.locks == {} and dead not in stub.locks
    assert table.scan().count() == 2


def test_a_holder_that_sleeps_past_the_timeout_publishes_nothing(table, stub, clock, monkeypatch):
    asked = stub._lock

    def slow(values):
        answer = asked(values)
        monkeypatch.setattr(stub, "_lock", asked)
        clock.seconds += 1000  # the process stops, with the answer on its way
        stub._forget()
        others_lock(stub)
        return answer

    monkeypatch.setattr(stub, "_lock", slow)
    table.write_arrow(ROWS)
    assert stub.calls.count("lock") == 2, "the first one was of no use any more"
    assert [snapshot.id for snapshot in table.snapshots()] == [1]
    assert table.scan().count() == 2


def test_a_short_timeout_of_the_server_is_respected(table, stub, clock):
    stub.lock_timeout = 20.0
    lock = pickle.loads(pickle.dumps(table))._root.registration.lock
    lock._env = table._root.env
    with lock.hold("main") as until:
        assert until == clock.elapsed() + 10.0


def test_a_lost_answer_leaves_no_lock_behind(table, stub):
    stub.fail("lock", "lost")
    table.write_arrow(ROWS)
    assert stub.calls.count("lock") == 1 and "show_locks" in stub.calls
    assert stub.locks == {} and table.scan().count() == 2


@pytest.mark.parametrize("fault", ["reset", "garbage"])
def test_a_request_that_was_lost_does_nothing(table, stub, fault):
    stub.fail("lock", fault)
    with pytest.raises(StorageError, match="nothing was done"):
        table.write_arrow(ROWS)
    assert table.snapshot() is None and stub.locks == {}
    table.write_arrow(ROWS)


@pytest.mark.parametrize("fault", ["reset", "lost", "half"])
def test_a_failed_check_of_the_lock_is_repeated(table, stub, fault):
    others_lock(stub)
    stub.fail("check_lock", fault, fault)
    try:
        table.write_arrow(ROWS)
    except StorageError:
        table.write_arrow(ROWS)
    assert [snapshot.id for snapshot in table.snapshots()] == [1]


def test_a_request_that_was_queued_before_it_failed_is_awaited(table, stub, monkeypatch):
    """Seen of Hive 4 on Derby: the request is in the queue, where it keeps others waiting, and the call fails."""
    asked = stub._lock

    def queued(values):
        asked(values)
        monkeypatch.setattr(stub, "_lock", asked)
        raise Refuse("broken", "Failed to execute function: checkLock")

    monkeypatch.setattr(stub, "_lock", queued)
    stub.fail("check_lock", "broken", "broken")
    stub.fail("unlock", "broken")
    table.write_arrow(ROWS)
    assert stub.calls.count("lock") == 1 and stub.locks == {}
    assert [snapshot.id for snapshot in table.snapshots()] == [1]


def test_a_lock_that_cannot_be_released_is_a_warning(table, stub):
    stub.fail("unlock", *["reset"] * 6)
    with pytest.warns(PaimonWarning, match="others wait until the metastore releases"):
        table.write_arrow(ROWS)
    assert table.scan().count() == 2
    table.write_arrow(ROWS)
    assert table.scan().count() == 4


def test_a_metastore_without_locks_is_refused_by_name(table, stub):
    stub.fail("lock", "failed")
    with pytest.raises(StorageError, match="Internal error processing lock.*'lock.enabled' = 'false'"):
        table.write_arrow(ROWS)
    assert table.snapshot() is None


def test_a_pickled_table_uses_the_lock_too(table, stub):
    again = pickle.loads(pickle.dumps(table))
    again.write_arrow(ROWS)
    assert stub.calls.count("lock") == 1 and stub.locks == {}
