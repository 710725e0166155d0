"""Every store call of a verb on a table with Iceberg metadata fails in turn, before, after, with its answer lost, or by the
end of the process. Iceberg readers see the old or the new snapshot, and the next commit heals.
"""

from __future__ import annotations

import functools

import msgspec
import pytest
from faults.shares import one_in
from unit.iceberg.reader import metadata as read_metadata
from unit.iceberg.reader import rows, seen, version_of
from unit.iceberg.support import DIRECTORY, VECTORS, World, data, opened, stored

from paimon_py.testing.fault_store import for_each_fault

pytestmark = pytest.mark.filterwarnings("ignore::paimon_py.PaimonWarning")

FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}


class Scene(msgspec.Struct, frozen=True):
    """A table and what is done to it. `heals`: what makes the metadata good afterwards."""

    name: str
    options: dict
    key: tuple = ()

    def world(self):
        world = World(key=self.key, **self.options)
        world.table.write_arrow(data(1, 2, 3))
        if self.key:
            world.table.compact(full=True)
        world.table.write_arrow(data(4))
        if self.key:
            world.table.compact(full=True)
        return world


SCENES = {
    "append": Scene("append", {}),
    "expiring": Scene("expiring", FEW),
    "merging": Scene("merging", {"metadata.iceberg.compaction.min.file-num": "2", "metadata.iceberg.compaction.max.file-num": "2"}),
    "vectors": Scene("vectors", VECTORS),
    "keyed": Scene("keyed", {}, ("k",)),
    "keyed vectors": Scene("keyed vectors", {**VECTORS, **FEW}, ("k",)),
}
VERBS = {
    "write": lambda table: table.write_arrow(data(5)),
    "overwrite": lambda table: table.write_arrow(data(5), overwrite={}),
    "compact": lambda table: table.compact(full=True),
    "delete rows": lambda table: table.delete("k = 2"),
    "tag": lambda table: table.create_tag("t"),
    "roll back": lambda table: table.rollback_to(table.snapshot().id - 1),
    "publish": lambda table: table.publish_iceberg(),
}
CASES = [
    ("append", "write"), ("append", "overwrite"), ("append", "delete rows"), ("append", "tag"), ("append", "roll back"),
    ("append", "publish"), ("expiring", "write"), ("expiring", "overwrite"), ("merging", "write"),
    ("vectors", "delete rows"), ("vectors", "roll back"), ("keyed", "write"), ("keyed", "overwrite"),
    ("keyed", "roll back"), ("keyed", "publish"), ("keyed vectors", "overwrite"),
]  # fmt: skip


@functools.cache
def built(scene):
    return SCENES[scene].world().store


def states(store, keyed):
    """What readers may see, by snapshot: of tables with keys, what the last full compaction left is among them."""
    table = opened(store)
    found = [stored(table, snapshot_id=snapshot.id) for snapshot in table.snapshots()]
    return [*found, []] if keyed else found


@pytest.mark.parametrize("every", [pytest.param(3, id="some"), pytest.param(1, marks=pytest.mark.full, id="all")])
@pytest.mark.parametrize(("scene", "verb"), CASES, ids=lambda one: one)
def test_readers_see_the_old_or_the_new_snapshot_and_the_next_commit_heals(scene, verb, every):
    keyed = bool(SCENES[scene].key)
    before = built(scene)
    old = seen(before, DIRECTORY)
    allowed = states(before, keyed)

    def check(store, outcome):
        number, found = seen(store, DIRECTORY)
        known = allowed + states(store, keyed)
        assert found in known, f"readers see {found}, which the table never was"
        if found != old[1]:
            assert verb == "roll back" or number >= old[0]
        table = opened(store)
        if verb == "roll back":  # one that was left in the middle is repeated first
            table.rollback_to(int(list(opened(before).snapshots())[-1].id) - 1)
            table = opened(store)
        table.write_arrow(data(50))
        if keyed:
            table.compact(full=True)
        table = opened(store)
        number, found = seen(store, DIRECTORY)
        assert (number, found) == (table.snapshot().id, stored(table)), "the next commit does not heal"
        state = table.iceberg()
        assert (state.lag, state.problems, state.hidden_rows) == (0, (), 0)
        value = read_metadata(store, DIRECTORY)
        for snapshot in value["snapshots"]:
            rows(store, value, snapshot["snapshot-id"])
        assert version_of(store, DIRECTORY) == number

    share = one_in(every, CASES.index((scene, verb)))
    assert for_each_fault(before.copy, lambda store: VERBS[verb](opened(store)), check, share=share) > 20 / every


def test_files_left_by_a_crash_are_removed_as_orphans():
    world = World()
    world.table.write_arrow(data(1))
    for name in ("x-m0.avro", "snap-1-x.avro", "x-deletes.puffin"):
        world.store.put(f"{DIRECTORY}/{name}", b"orphan")
    world.store.put(f"{DIRECTORY}/readme", b"not ours")
    there = {status.name for status in world.store.list(DIRECTORY)}
    world.clock.start += 3 * 24 * 3_600_000
    found = world.table.remove_orphans(dry_run=False)
    assert found.files == 3
    left = {status.name for status in world.store.list(DIRECTORY)}
    assert there - left == {"x-m0.avro", "snap-1-x.avro", "x-deletes.puffin"}
    assert seen(world.store, DIRECTORY) == (1, [[1, "a"]])
