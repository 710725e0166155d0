"""A fast-forward beside a commit to main, the deletion of the branch and the branch's own expiry, at every call."""

from __future__ import annotations

import functools
import itertools
from contextlib import suppress

import pytest
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import (
    AddColumn,
    BranchNotFoundError,
    CommitConflictError,
    PaimonError,
    SnapshotExpiredError,
    TableNotFoundError,
)
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import cut_path
from paimon_py.table import Table
from paimon_py.testing.fault_store import FaultStore, SimulatedCrash

NEW = [1, 2, 3, 4]
OLD = [1, 2]


@functools.cache
def built(*, altered: bool) -> World:
    """Main at snapshot 2, and a branch that went on by two more, under one more schema if it was altered."""
    world = World(**{"snapshot.num-retained.min": "9", "write-only": "true"})
    for number in (1, 2):
        world.table.write_arrow(rows(number))
    branch = world.table.create_branch("b")
    if altered:
        branch.alter(AddColumn("x", "INT"))
        branch = world.table.branch("b")
    for number in (3, 4):
        branch.write_arrow(rows(number) if not altered else rows(number).append_column("x", [[number]]))
    return world


def opened(world: World, store) -> Table:
    root = TableRoot(store, PATH, Env(world.clock, None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def keys(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["k"].to_pylist())


def attempt(work) -> PaimonError | None:
    try:
        work()
    except PaimonError as error:
        return error
    return None


class Rival(FaultStore):
    """Before call `at` somebody else does all of something."""

    def __init__(self, store, at, work):
        super().__init__(store)
        self.at, self.work, self.error, self.came = at, work, None, False

    def _call(self, verb, path, action, *, shortened=None):
        if self.count + 1 == self.at and not self.came:
            self.came = True
            self.error = attempt(lambda: self.work(self.store))
        return super()._call(verb, path, action, shortened=shortened)


def each_call(world, work, moves):
    """A fast-forward with somebody else before each of its calls: the store, and how both ended."""
    calls = FaultStore(world.store.copy())
    moves(opened(world, calls))
    for at in range(4, calls.count + 1):
        store = world.store.copy()
        rival = Rival(store, at, work)
        table = opened(world, rival)
        error = attempt(functools.partial(moves, table))
        assert rival.came
        yield at, store, error, rival.error


def move(table):
    return table.fast_forward("b")


@pytest.mark.parametrize("altered", [False, True])
def test_a_concurrent_commit_to_main_is_never_lost(altered):
    world, seen = built(altered=altered), set()
    for at, store, lost, refused in each_call(world, lambda store: opened(world, store).write_arrow(rows(9)), move):
        found = keys(opened(world, store))
        assert lost is None or isinstance(lost, CommitConflictError), f"call {at}: {lost!r}"
        assert refused is None or isinstance(refused, CommitConflictError), f"call {at}: {refused!r}"
        seen.add((lost is None, refused is None))
        assert (9 in found) == (refused is None), f"call {at}: {found}, {lost!r}, {refused!r}"
        assert [key for key in found if key != 9] == (NEW if lost is None else OLD), f"call {at}: {found}"
        assert not opened(world, store)._root.cuts.exists(), f"call {at}"
        opened(world, store).write_arrow(rows(10).append_column("x", [[0]]) if altered and lost is None else rows(10))
        assert 10 in keys(opened(world, store))
        assert opened(world, store)._root.schemas.ids() == ([0, 1] if altered and lost is None else [0])
    assert seen >= {(True, False), (False, True)}


@pytest.mark.parametrize("altered", [False, True])
@pytest.mark.parametrize("what", ["delete", "expire"])
def test_a_branch_deleted_in_the_meantime_leaves_main_unchanged_or_moves_it(what, altered):
    def work(store):
        if what == "delete":
            opened(world, store).delete_branch("b")
        else:
            opened(world, store).branch("b").expire_snapshots(retain_min=1, retain_max=1)

    world, ends = built(altered=altered), set()
    for at, store, lost, _ in each_call(world, work, move):
        wanted = (CommitConflictError, SnapshotExpiredError, BranchNotFoundError)
        assert lost is None or isinstance(lost, wanted), f"call {at}: {lost!r}"
        table = opened(world, store)
        assert keys(table) == (NEW if lost is None else OLD), f"call {at}: {lost!r}"
        for snapshot in table.snapshots():
            table.scan(snapshot_id=snapshot.id).to_arrow()
        assert not table._root.cuts.exists()
        ends.add(lost is None)
    assert True in ends


@pytest.mark.parametrize("new", [False, True], ids=["nothing new", "two snapshots"])
def test_a_commit_that_a_discarded_schema_underlies_can_be_read(new):
    """A whole fast-forward runs before any call of a commit."""
    world = built(altered=False)
    store, ends = world.store.copy(), set()
    if not new:
        opened(world, store).delete_branch("b")
        opened(world, store).create_branch("b")
    opened(world, store).alter(AddColumn("x", "INT"))
    data = rows(9).append_column("x", [[9]])
    calls = FaultStore(store.copy())
    opened(world, calls).write_arrow(data)
    for at in range(4, calls.count + 1):
        rival = Rival(store.copy(), at, lambda store: opened(world, store).fast_forward("b", discard=True))
        table = opened(world, rival)
        error = attempt(functools.partial(table.write_arrow, data))
        refusals = (CommitConflictError, TableNotFoundError)
        assert rival.error is None and (error is None or isinstance(error, refusals)), f"call {at}: {error!r}"
        table = opened(world, rival.store)
        for snapshot in table.snapshots():
            table.scan(snapshot_id=snapshot.id).to_arrow()
        assert "x" not in table.scan().to_arrow().column_names, f"call {at}"
        ends.add(error is None)
    assert True in ends


def files_of(store, directory):
    found = {}
    for status in store.list(directory):
        found.update(files_of(store, status.path) if status.is_directory else {status.path: store.get(status.path)})
    return found


def commit_as_java(world, store) -> int | None:
    """Commit without a look at the cut of another process; returns the id. None: Java would find no snapshot to build on."""
    copy = store.copy()
    if (cut := cut_path(PATH)) in files_of(copy, f"{PATH}/tag"):
        copy.delete(cut)
    before = files_of(copy, PATH)
    table = opened(world, copy)
    number = table.write_arrow(rows(9)).snapshot_id
    for path, data in files_of(copy, PATH).items():
        if before.get(path) != data:
            store.put(path, data)
    return number


@pytest.mark.parametrize("target", [1, 2])
def test_a_rollback_keeps_what_other_writers_build_on_its_target_and_nothing_else(target):
    world, published, ends = World(**{"snapshot.num-retained.min": "9", "write-only": "true"}), [], set()
    for number in (1, 2, 3, 4):
        world.table.write_arrow(rows(number))

    def work(store):
        published.append(commit_as_java(world, store))

    for at, store, lost, error in each_call(world, work, lambda table: table.rollback_to(target)):
        assert lost is None and error is None, f"call {at}: {lost!r}, {error!r}"
        stays = published[-1] == target + 1
        found = keys(opened(world, store))
        assert found == [*range(1, target + 1), *([9] if stays else [])], f"call {at}: {found}, {published[-1]}"
        assert not opened(world, store)._root.cuts.exists()
        ends.add(stays)
    assert ends == {True, False}


class Overtaking:
    """A store on which somebody commits to main when a fast-forward has looked at it and begins."""

    def __init__(self, world):
        self.store = world.store.copy()
        self.commit = lambda: opened(world, self.store).write_arrow(rows(9))

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def delete(self, path):
        if path.endswith("/snapshot/LATEST") and self.commit is not None:
            commit, self.commit = self.commit, None
            commit()
        self.store.delete(path)


@pytest.mark.parametrize("altered", [False, True])
def test_a_fast_forward_that_a_commit_overtakes_is_withdrawn(altered):
    """Nothing of it stays, and the next one says what it would discard."""
    world = built(altered=altered)
    store = Overtaking(world)
    with pytest.raises(CommitConflictError, match="nothing was done: others committed.*snapshot 3"):
        move(opened(world, store))
    table = opened(world, store.store)
    assert store.commit is None and keys(table) == [*OLD, 9] and table._root.schemas.ids() == [0]
    assert not table._root.cuts.exists()
    with pytest.raises(CommitConflictError, match=r"snapshot 3, which the branch 'b' does not build on"):
        move(table)
    assert table.fast_forward("b", discard=True).gone_ids == (3,) and keys(opened(world, store.store)) == NEW


def test_a_cut_that_ends_while_another_call_takes_it_over_is_not_left_behind():
    """Another fast-forward, which seemed dead, ends before any call of this one."""
    world = built(altered=False)
    store = world.store.copy()
    opened(world, store).create_branch("c").write_arrow(rows(7))
    calls = FaultStore(store.copy())
    opened(world, calls).fast_forward("c", discard=True)
    begun = next(at for at, (verb, path) in enumerate(calls.log, 1) if verb == "delete" and path.endswith("/LATEST"))
    with suppress(SimulatedCrash):
        opened(world, FaultStore(store, begun, "die_after")).fast_forward("c", discard=True)
    assert opened(world, store)._root.cuts.exists()
    ends = set()
    for at in itertools.count(4):
        rival = Rival(store.copy(), at, lambda store: opened(world, store).fast_forward("c", discard=True))
        table = opened(world, rival)
        error = attempt(functools.partial(move, table))
        if not rival.came:
            break
        assert not opened(world, rival.store)._root.cuts.exists(), f"call {at}: {error!r}, {rival.error!r}"
        ends.add((error is None, rival.error is None))
    assert (False, True) in ends


@pytest.mark.parametrize(("altered", "discard"), [(False, False), (True, False), (False, True)])
def test_what_another_fast_forward_has_begun_is_finished(altered, discard):
    """Another process begins the same and is killed, at any of its calls, before any call of this one."""

    def moves(table):
        return table.fast_forward("b", discard=discard)

    def begin(store, stop):
        with suppress(SimulatedCrash):
            moves(opened(world, FaultStore(store, stop, "die")))

    world = built(altered=altered)
    calls = FaultStore(world.store.copy())
    moves(opened(world, calls))
    for stop in range(9, calls.count + 1, 8):
        for at, store, error, _ in each_call(world, functools.partial(begin, stop=stop), moves):
            where = f"the other one stops at {stop}, call {at}: {error!r}"
            assert error is None or "in progress" in str(error) or "of another process" in str(error), where
            table = opened(world, store)
            if table._root.cuts.exists():
                moves(table)
            assert keys(opened(world, store)) == NEW and not table._root.cuts.exists(), where
            opened(world, store).write_arrow(rows(10).append_column("x", [[0]]) if altered else rows(10))
