"""Users that number their commits: `remove_orphans` forgets those that have been idle for long and that nothing names."""

from __future__ import annotations

import json

import pytest
from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py import SetOption
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import UserFile, UserFiles, user_file_name
from paimon_py.spec.users import UserCommit
from paimon_py.table import Table


def file_of(user, home=PATH):
    return f"{home}/user/{user_file_name(user)}"


class Users(World):
    """A table with a user that a snapshot names, `job`, and one that Java's commits have left out since, `old`."""

    def __init__(self, **options):
        super().__init__(**options)
        self.table.write_arrow(rows(1), user="job", identifier=3)
        self.leave("old", 7)

    def leave(self, user, identifier, home=PATH):
        UserFiles(self.store, home).put(UserFile(user, UserCommit(identifier, 1), "gone"))


def test_a_user_is_forgotten_once_idle_for_longer_than_the_retention():
    world = Users()
    world.pass_days(30)
    assert world.table.remove_orphans(dry_run=False).users == (), "thirty days are not over thirty days"
    world.clock.start += 1
    told = world.table.remove_orphans()
    assert (told.users, told.files, told.dry_run) == (("old",), 0, True)
    assert file_of("old") in world.files(), "a dry run deletes nothing"
    assert world.table.remove_orphans(dry_run=False).users == ("old",)
    assert file_of("old") not in world.files()
    assert world.table.remove_orphans(dry_run=False).users == ()


def test_a_user_that_something_names_is_never_forgotten():
    world = Users()
    world.leave("tagged", 1)
    world.leave("branched", 2)
    world.table.write_arrow(rows(2), user="tagged", identifier=1)
    world.table.create_tag("t")
    branch = world.table.create_branch("b")
    branch.write_arrow(rows(3), user="branched", identifier=2)
    world.pass_days(400)
    strip_users(world)
    assert world.table.remove_orphans(dry_run=False).users == ("old",)
    files = world.files()
    assert {file_of("job"), file_of("tagged"), file_of("branched")} <= files
    assert branch.committed(user="branched") == 2


def strip_users(world):
    """The snapshots of main as Java writes them: without properties, and by another user."""
    for path in [path for path in world.files(PATH) if path.startswith(f"{PATH}/snapshot/snapshot-")]:
        found = json.loads(world.store.get(path))
        found["properties"] = None
        found["commitUser"] = "flink"
        world.store.put(path, json.dumps(found).encode())


def test_a_user_that_java_left_out_stays_known_for_the_retention_and_no_longer():
    world = Users()
    strip_users(world)
    for number in (2, 3):
        world.table.write_arrow(rows(number))
    world.pass_days(1)
    world.table.expire_snapshots(retain_min=1, retain_max=1)
    strip_users(world)
    fresh = world.catalog.table("d.t")
    assert world.table.remove_orphans(dry_run=False).users == ()
    assert fresh.committed(user="job") == 3
    world.pass_days(30)
    assert world.table.remove_orphans(dry_run=False).users == ("job", "old")
    assert world.catalog.table("d.t").committed(user="job") is None


def test_the_retention_of_each_branch_counts():
    world = Users(**{"commit.user-retention": "2 d"})
    branch = world.table.create_branch("b")
    branch.alter(SetOption("commit.user-retention", "90 d"))
    world.leave("old", 7, f"{PATH}/branch/branch-b")
    world.pass_days(3)
    assert world.table.remove_orphans(dry_run=False).users == ("old",)
    assert file_of("old", f"{PATH}/branch/branch-b") in world.files()
    world.pass_days(90)
    assert world.table.remove_orphans(dry_run=False).users == ("old",)
    assert file_of("old", f"{PATH}/branch/branch-b") not in world.files()


def test_a_clock_that_is_ahead_of_the_store_forgets_nobody_early():
    world = Users()
    world.pass_days(20)
    ahead = type(world.clock)(world.clock.millis() + 40 * 24 * 3_600_000)
    root = TableRoot(world.store, PATH, Env(ahead, None, SerialPool()))
    assert Table(root, root.schemas.latest(), "d.t").remove_orphans(dry_run=False).users == ()
    assert file_of("old") in world.files()


@pytest.mark.parametrize("how", ["commits", "is gone"])
def test_a_user_that_comes_back_or_goes_meanwhile(how):
    world = Users()
    world.pass_days(31)

    class Meanwhile:
        def __getattr__(self, name):
            return getattr(world.store, name)

        def stat(self, path):
            if path == file_of("old"):
                world.leave("old", 8) if how == "commits" else world.store.delete(path)
            return world.store.stat(path)

    root = TableRoot(Meanwhile(), PATH, Env(world.clock, None, SerialPool()))
    assert Table(root, root.schemas.latest(), "d.t").remove_orphans(dry_run=False).users == ()
    assert (file_of("old") in world.files()) == (how == "commits")


def test_a_damaged_file_of_a_user_is_named_by_its_file():
    world = Users()
    world.store.put(file_of("old"), b"{")
    world.pass_days(31)
    assert world.table.remove_orphans(dry_run=False).users == (user_file_name("old"),)
    assert file_of("old") not in world.files()
