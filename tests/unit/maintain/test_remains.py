"""What is left of branches, consumers and cuts: it is never taken for more than that, and goes once nothing needs it."""

from __future__ import annotations

import pytest
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import AddColumn, AlreadyExistsError, BranchNotFoundError, CommitConflictError
from paimon_py.metadata.cuts import ROLLBACK, Cut
from paimon_py.spec.layout import consumer_mark_path, cut_path
from paimon_py.storage.memory_store import MemoryStore

BRANCH = f"{PATH}/branch/branch-b"
TEMPORARY = ".x.00000000-0000-4000-8000-000000000000.tmp"


def lived() -> World:
    """A table with two schemas and a branch that went on by itself."""
    world = World(**{"snapshot.num-retained.min": "9"})
    world.table.write_arrow(rows(1))
    world.table.alter(AddColumn("x", "INT"))
    world.table = world.catalog.table("d.t")
    world.table.create_branch("b", from_=1).write_arrow(rows(2))
    return world


def left_of_branch(world, *parts):
    """All but some files of the branch are gone: its deletion ended in the middle."""
    for path in world.files(BRANCH):
        if not any(part in path for part in parts):
            world.store.delete(path)


@pytest.mark.parametrize("part", ["snapshot-2", "LATEST", "ORIGIN", "schema-1", "nothing"])
def test_a_purge_goes_on_after_a_deletion_of_a_branch_that_ended_in_the_middle(part):
    world = lived()
    left_of_branch(world, part)
    assert world.table.branches() == []
    world.table.purge_files()
    assert world.store.list(f"{PATH}/branch") == []
    assert world.table.scan().to_arrow().num_rows == 0
    with pytest.raises(BranchNotFoundError):
        world.table.delete_branch("b")


@pytest.mark.parametrize("part", ["snapshot-2", "LATEST", "user-"])
def test_a_branch_is_never_made_on_the_remains_of_another(part):
    world = lived()
    world.store.put(f"{BRANCH}/user/user-0", b"{}")
    left_of_branch(world, part)
    before = world.files(BRANCH)
    with pytest.raises(AlreadyExistsError, match=r"delete_branch\('b'\) removes the remains"):
        world.table.create_branch("b", from_=1)
    assert world.files(BRANCH) == before and world.table.branches() == []
    world.table.delete_branch("b")
    branch = world.table.create_branch("b", from_=1)
    assert [one.id for one in branch.snapshots()] == [1]


@pytest.mark.parametrize("part", ["ORIGIN", "snapshot-1", "schema-1", TEMPORARY])
def test_a_branch_can_be_made_again_after_the_call_ended_in_the_middle(part):
    world = lived()
    world.table.alter(AddColumn("y", "INT"))
    world.table = world.catalog.table("d.t")
    world.table.write_arrow(rows(3).append_column("x", [[1]]).append_column("y", [[1]]))
    last = world.table.snapshot().id
    world.table.delete_branch("b")
    world.table.create_branch("b", from_=last)
    kept = [part, "ORIGIN"] if part != "snapshot-1" else ["ORIGIN", f"snapshot-{last}"]
    world.plant(f"{BRANCH}/{TEMPORARY}")
    left_of_branch(world, *kept)
    assert world.table.branches() == []
    assert world.table.create_branch("b", from_=last).scan().to_arrow().num_rows == world.table.scan().to_arrow().num_rows


def test_marks_of_consumers_that_are_gone_and_files_that_never_became_complete_go():
    world = World()
    world.table.write_arrow(rows(1))
    world.table.create_branch("b")
    for _ in world.table.stream(from_=1, until="now", consumer_id="here"):
        pass
    world.plant("consumer/mark-gone", f"user/{TEMPORARY}", f"consumer/{TEMPORARY}", f"branch/branch-b/{TEMPORARY}")
    before = world.files()
    world.plant("user/readme", "branch/branch-b/readme")
    assert world.table.remove_orphans(dry_run=False).files == 0, "they are young"
    world.pass_days(2)
    told = world.table.remove_orphans()
    assert told.files == 4 and f"{PATH}/consumer/mark-gone" in told.paths
    assert world.table.remove_orphans(dry_run=False).files == 4
    gone = {f"{PATH}/consumer/mark-gone"} | {path for path in before if path.endswith(TEMPORARY)}
    assert world.files() == before - gone | {f"{PATH}/user/readme", f"{BRANCH}/readme"}
    assert consumer_mark_path(PATH, "here") in world.files() and f"{BRANCH}/ORIGIN" in world.files()


def test_a_consumer_that_is_made_again_meanwhile_keeps_its_mark():
    world = World()
    world.table.write_arrow(rows(1))
    world.plant("consumer/mark-gone")
    world.pass_days(2)
    seen = []

    def come_back(done, total, what):
        if what == "directories" and not seen:
            seen.append(world.store.put(f"{PATH}/consumer/mark-gone", b"{}"))

    assert world.table.remove_orphans(dry_run=False, progress=come_back).files == 0
    assert seen and f"{PATH}/consumer/mark-gone" in world.files()


def test_what_a_cut_of_a_branch_holds_is_no_orphan():
    """The rollback of a branch was left in the middle: its snapshot is named by the file of the cut alone."""
    world = lived()
    branch = world.table.branch("b")
    target = branch._root.snapshots.latest()
    branch._root.cuts.begin(Cut(owner="me", verb=ROLLBACK, snapshots=(target,)), takes_over=False)
    for name in ("snapshot-2", "LATEST"):
        world.store.delete(f"{BRANCH}/snapshot/{name}")
    world.pass_days(3)
    assert world.table.remove_orphans(dry_run=False).files == 0
    assert cut_path(BRANCH) in world.files()
    world.table.branch("b").rollback_to(target.id)
    assert sorted(world.table.branch("b").scan().to_arrow()["k"].to_pylist()) == [1, 2]


def test_a_cut_that_another_one_keeps_out_does_not_begin_though_that_one_ends_at_this_moment(monkeypatch):
    world = lived()
    cuts, target = world.table._root.cuts, world.table.snapshot().value
    theirs, mine = (Cut(owner=owner, verb=ROLLBACK, snapshots=(target,)) for owner in ("they", "me"))
    cuts.begin(theirs, takes_over=False)
    put_new = MemoryStore.put_new

    def and_they_end(store, path, data, **more):
        is_ours = put_new(store, path, data, **more)
        store.delete(path)
        return is_ours

    with monkeypatch.context() as patch, pytest.raises(CommitConflictError, match="rollback_to is in progress"):
        patch.setattr(MemoryStore, "put_new", and_they_end)
        cuts.begin(mine, takes_over=False)
    assert not cuts.exists()
    cuts.begin(mine, takes_over=False)
    cuts.check(mine)
