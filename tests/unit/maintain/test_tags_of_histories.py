"""Tags of several histories, as Java's rollbacks leave them: none loses a file to another one that goes."""

from __future__ import annotations

from datetime import timedelta

from unit.maintain.test_remove_orphans import PATH, World, rows

from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.table import Table
from paimon_py.testing.fault_store import FaultStore

ALL = {"retain_min": 1, "retain_max": 1}


def keys(table, tag):
    return sorted(table.scan(tag=tag).to_arrow()["k"].to_pylist())


def parted() -> World:
    """Tags 2 and 4 of a history of which Java took all but snapshot 1, and 3 of the one that came after."""
    world = World(**{"snapshot.num-retained.min": "9", "write-only": "true"})
    for number in range(1, 5):
        world.table.write_arrow(rows(number))
        if number in (2, 4):
            world.table.create_tag(f"old{number}")
    for name in ("snapshot-2", "snapshot-3", "snapshot-4", "LATEST"):
        world.store.delete(f"{PATH}/snapshot/{name}")
    world.table = world.catalog.table("d.t")
    world.table.write_arrow(rows(20), overwrite={})
    world.table.write_arrow(rows(30))
    world.table.create_tag("new3")
    for number in (40, 50):
        world.table.write_arrow(rows(number))
    world.table.expire_snapshots(**ALL)
    return world


def test_a_tag_that_goes_leaves_the_files_of_an_older_one_behind_another_history():
    world = parted()
    assert [one.id for one in world.table.snapshots()] == [5]
    world.table.delete_tag("old4")
    assert keys(world.table, "old2") == [1, 2] and keys(world.table, "new3") == [20, 30]
    world.table.delete_tag("new3")
    assert keys(world.table, "old2") == [1, 2]
    world.table.delete_tag("old2")
    world.pass_days(3)
    assert world.table.remove_orphans().files == 2, "nothing but the lists of snapshot 3, which Java took away"
    assert sorted(world.table.scan().to_arrow()["k"].to_pylist()) == [20, 30, 40, 50]


def test_tags_that_expire_together_read_each_manifest_once():
    world = World(**{"write-only": "true"})
    for number in range(1, 13):
        world.table.write_arrow(rows(number))
        world.table.create_tag(f"t{number}", retain=timedelta(days=1 if number % 2 else 9))
    world.table.expire_snapshots(**ALL)
    world.pass_days(2)
    store = FaultStore(world.store)
    root = TableRoot(store, PATH, Env(world.clock, None, SerialPool()))
    table = Table(root, root.schemas.latest(), "d.t")
    assert table.expire_tags() == sorted(f"t{number}" for number in range(1, 12, 2))
    gets = [path for verb, path in store.log if verb == "get" and "/manifest/" in path]
    assert gets and len(gets) == len(set(gets))
    assert all(keys(world.table, f"t{number}") == list(range(1, number + 1)) for number in range(2, 13, 2))
    world.pass_days(1)
    assert world.table.remove_orphans().files == 0
