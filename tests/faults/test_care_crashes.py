"""A crash at every call of every verb of care that changes something, followed by another verb and the call again.

Whatever came in between, the table, its tags and its branches can be read, the call ends as if it had never crashed, and
nothing that is needed goes by the expiry of everything and the removal of orphans.
"""

from __future__ import annotations

import functools
import itertools
from datetime import timedelta

import pytest
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import AlreadyExistsError, CommitConflictError, CorruptionError, NotFoundError, PaimonError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.branches import branch_directories
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import FaultStore, SimulatedCrash

pytestmark = pytest.mark.filterwarnings("ignore:.*consumers have read them")
EVERYTHING = {"retain_min": 1, "retain_max": 1}
READS = ("get", "list", "stat", "open_read")

VERBS = {
    "roll back to a snapshot": lambda table: table.rollback_to(4),
    "roll back to a tag": lambda table: table.rollback_to("old"),
    "restore a snapshot": lambda table: table.restore(4),
    "fast-forward": lambda table: table.fast_forward("b", discard=True),
    "create a branch": lambda table: table.create_branch("new", from_="kept"),
    "delete a branch": lambda table: table.delete_branch("b"),
    "create a tag": lambda table: table.create_tag("mine", 4),
    "delete a tag": lambda table: table.delete_tag("old"),
    "rename a tag": lambda table: table.rename_tag("kept", "renamed"),
    "replace a tag": lambda table: table.replace_tag("old"),
    "expire tags": lambda table: table.expire_tags(older_than=timedelta(minutes=1)),
    "expire snapshots": lambda table: table.expire_snapshots(**EVERYTHING),
    "remove orphans": lambda table: table.remove_orphans(dry_run=False),
    "truncate": lambda table: table.truncate(),
    "compact": lambda table: table.compact(full=True),
    "drop a partition": lambda table: table.drop_partitions([{"p": 1}]),
    "reset a consumer": lambda table: table.reset_consumer("job", 4),
    "delete a consumer": lambda table: table.delete_consumer("job"),
    "purge": lambda table: table.purge_files(),
}
NEXT = ("nothing", *VERBS)


@functools.cache
def built() -> World:
    """Snapshots 3 to 6, a tag of 2, which has expired, one of 5, a branch of 4 that went on, a consumer, and orphans."""
    world = World(**{"snapshot.num-retained.min": "9", "write-only": "true"})
    for number in range(1, 7):
        world.table.write_arrow(rows(number, number + 10))
        if number in (2, 5):
            world.table.create_tag("old" if number == 2 else "kept")
        if number == 4:
            world.table.create_branch("b").write_arrow(rows(70))
    world.table._root.consumers.put(Consumer("job", 7), Base.of(world.table._root.snapshots.latest()))
    world.table.expire_snapshots(retain_min=4, retain_max=4)
    world.table.delete_consumer("job")
    world.table.expire_snapshots(retain_min=4, retain_max=4)
    world.table._root.consumers.put(Consumer("job", 7), Base.of(world.table._root.snapshots.latest()))
    world.plant("p=1/bucket-0/data-orphan", "consumer/mark-gone")
    world.pass_days(3)
    assert [one.id for one in world.table.snapshots()] == [3, 4, 5, 6]
    return world


def opened(store) -> Table:
    root = TableRoot(store, PATH, Env(built().clock, None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def keys(table: Table, **how) -> list[int]:
    return sorted(table.scan(**how).to_arrow()["k"].to_pylist())


def state(store: MemoryStore) -> dict:
    """The rows of main, of all tags and of all branches; every snapshot can be read."""
    table, found = opened(store), {}
    for name in ["main", *table.branches()]:
        branch = table.branch(name)
        for snapshot in branch.snapshots():
            keys(branch, snapshot_id=snapshot.id)
        found[name] = keys(branch)
        found.update({(name, tag.name): keys(branch, tag=tag.name) for tag in branch.tags()})
    return found


def run(store, name: str) -> PaimonError | None:
    """What another process gets that does something."""
    try:
        VERBS[name](opened(store))
    except (AlreadyExistsError, CommitConflictError, NotFoundError) as error:
        return error
    except (CorruptionError, UsageError) as error:
        # the search for orphans stops at a branch that is half made; a consumer of what was rolled back
        assert any(text in str(error) for text in ("was created or deleted only partly", "does not exist yet")), error
        return error
    return None


def settle(store, name: str) -> None:
    """The call again; where another one has to be finished first, that one."""
    error = run(store, name)
    if isinstance(error, CommitConflictError):
        raise AssertionError(f"{name} cannot be repeated: {error}") from error


def clean(store) -> dict:
    """The state once everything has expired and orphans are gone; half-made branches as `doctor` says."""
    table = opened(store)
    for name in set(branch_directories(table._root)) - set(table.branches()):
        table.delete_branch(name)
    for branch in ("main", *opened(store).branches()):
        opened(store).branch(branch).expire_snapshots(**EVERYTHING)
    opened(store).remove_orphans(dry_run=False, older_than=timedelta(milliseconds=1))
    return state(store)


@functools.cache
def ended(*names: str) -> dict:
    """What the table is after some verbs that nobody disturbs, and everything has expired."""
    store = built().store.copy()
    for name in names:
        run(store, name)
    return clean(store)


@functools.cache
def places(name: str) -> list[int]:
    """The calls of a verb that change something."""
    calls = FaultStore(built().store.copy())
    VERBS[name](opened(calls))
    return [at for at, (verb, _) in enumerate(calls.log, 1) if verb not in READS]


def play(name: str, at: int, mode: str, then: str) -> None:
    """Crash at a call, do something else, call again, let everything expire."""
    store = built().store.copy()
    with pytest.raises(SimulatedCrash):
        VERBS[name](opened(FaultStore(store, at, mode)))
    state(store)
    if then == "nothing":
        settle(store, name)
        assert clean(store) == ended(name)
        return
    refused = run(store, then)
    state(store)
    error = run(store, name)
    if isinstance(refused, CommitConflictError):
        assert error is None, f"what refused others cannot be repeated: {error!r}"
        assert clean(store) == ended(name)
    else:
        assert not isinstance(error, CommitConflictError), f"cannot be repeated: {error!r}"
        found, orders = clean(store), [ended(name, then), ended(then, name), ended(name, then, name)]
        assert found in orders, f"{found} instead of one of {orders}"


CASES = list(itertools.product(VERBS, ("die", "die_after")))
_EVERY = 211


def everywhere(share) -> int:
    number = runs = 0
    for name, mode in CASES:
        for at, then in itertools.product(places(name), NEXT):
            number += 1
            if not share(number):
                continue
            try:
                play(name, at, mode, then)
            except (AssertionError, PaimonError) as wrong:
                raise AssertionError(f"{name}, call {at}, {mode}, then {then}: {wrong!r}") from wrong
            runs += 1
    return runs


def test_verbs_of_care_may_crash_at_some_calls():
    assert everywhere(lambda number: number % _EVERY == 7) > 20


PARTS = 50


@pytest.mark.full
@pytest.mark.parametrize("part", range(PARTS), ids="part{}".format)
def test_verbs_of_care_may_crash_at_every_call(part):
    assert everywhere(lambda number: number % PARTS == part) > 80
