"""Orphans: what nothing names and is old goes, everything else stays, whatever happens beside."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import msgspec
import pyarrow as pa
import pytest
from unit.commit.support import Clock
from unit.public import KEYED

from paimon_py import Catalog, CorruptionError, PaimonError, UnsupportedError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.maintain.cleanup.remove_orphans import remove_orphans
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault

PATH = "/w/d.db/t"
HOUR = 3_600_000
WEEK = timedelta(days=7)


def rows(*keys, v="x"):
    return pa.table({"p": pa.array([key % 2 for key in keys], pa.int32()), "k": list(keys), "v": [v] * len(keys)})


class World:
    """A catalog whose clock is also its store's."""

    def __init__(self, **options):
        self.clock = Clock(1_700_000_000_000)
        self.store = MemoryStore(clock=self.clock)
        self.catalog = Catalog(self.store, "/w", env=Env(self.clock, None, SerialPool()))
        self.catalog.create_database("d")
        self.table = self.make("t", **options)

    def make(self, name, key=("p", "k"), **options):
        options = {"bucket": "1", "snapshot.num-retained.min": "1", **options}
        return self.catalog.create_table(
            f"d.{name}", KEYED, primary_key=list(key), partition_by=["p"], options=options
        )

    def files(self, below="/w"):
        found = set()
        for status in self.store.list(below):
            found |= self.files(status.path) if status.is_directory else {status.path}
        return found

    def plant(self, *paths):
        for path in paths:
            self.store.put(path if path.startswith("/") else f"{PATH}/{path}", b"orphan")

    def pass_days(self, days):
        self.clock.start += days * 24 * HOUR


ORPHANS = (
    "manifest/manifest-x-0", "manifest/manifest-list-x-0", "manifest/index-manifest-x-0", "manifest/.a.tmp",
    "index/index-x-0", "statistics/stat-x-0", "p=0/bucket-0/data-x-0.parquet", "p=1/bucket-0/readme",
    "p=7/bucket-3/data-y-0.parquet", "p=7/bucket-postpone/data-z-0.parquet", "snapshot/.snapshot-9.x.tmp",
    "changelog/what", "schema/.schema-1.00000000-0000-4000-8000-000000000000.tmp",
)  # fmt: skip
OTHERS = (
    "readme", "p=0/_SUCCESS", "p=0/other/file", "q=0/bucket-0/file", "bucket-0/file", "p=0/bucket-x/file", "x/y",
    "snapshot/snapshot-x", "schema/readme", "tag/tag-success-file/a_SUCCESS", "p=1/bucket-0/a.managed.blob",
    "p=1/bucket-0/below/file", "consumer/readme",
)  # fmt: skip
"""Files that Java's cleaner leaves alone, too."""


def test_what_nothing_names_goes_and_the_rest_stays():
    world = World(**{"deletion-vectors.enabled": "true", "file-index.bloom-filter.columns": "v"})
    table = world.table
    for step in range(3):
        table.write_arrow(rows(*range(step, step + 5), v=f"v{step}"))
    table.create_tag("t")
    table.analyze()
    table.compact(full=True)
    before = world.files()
    world.plant(*ORPHANS, *OTHERS)
    world.pass_days(3)
    calls = []
    found = table.remove_orphans(progress=lambda *call: calls.append(call))
    assert (found.files, found.size_bytes, found.dry_run, found.young_files) == (len(ORPHANS), 6 * len(ORPHANS), True, 0)
    assert sorted(found.paths) == sorted(f"{PATH}/{name}" for name in ORPHANS)
    assert calls[-1] == (found.directories, found.directories, "directories")
    assert world.files() == before | {f"{PATH}/{name}" for name in (*ORPHANS, *OTHERS)}
    done = table.remove_orphans(dry_run=False)
    assert (done.files, done.left_files) == (len(ORPHANS), 0)
    assert world.files() == before | {f"{PATH}/{name}" for name in OTHERS}
    assert table.remove_orphans(dry_run=False).files == 0
    assert table.scan(tag="t").to_arrow().num_rows == 7 and table.scan().to_arrow().num_rows == 7


def test_young_files_stay():
    world = World()
    world.table.write_arrow(rows(1))
    world.plant("p=1/bucket-0/old")
    world.pass_days(1)
    world.plant("p=1/bucket-0/young")
    assert world.table.remove_orphans(dry_run=False).files == 0, "a day is not over a day"
    world.clock.start += 1
    found = world.table.remove_orphans(dry_run=False)
    assert (found.files, found.young_files) == (1, 1)
    assert f"{PATH}/p=1/bucket-0/young" in world.files()
    world.clock.start += 10 * HOUR
    moment = datetime.fromtimestamp((world.clock.millis() - HOUR) / 1000, timezone.utc)
    assert world.table.remove_orphans(older_than=moment).files == 1
    assert world.table.remove_orphans(older_than=timedelta(hours=11)).files == 0
    assert world.table.remove_orphans(older_than=world.clock.millis() - HOUR).files == 1


def test_limits_that_are_not_in_the_past_are_refused():
    world = World()
    for limit in (timedelta(0), timedelta(days=-1), world.clock.millis(), datetime(2100, 1, 1), "0 d", "a day"):
        with pytest.raises(UsageError, match="older_than"):
            world.table.remove_orphans(older_than=limit)
    with pytest.raises(UsageError, match="progress"):
        world.table.remove_orphans(progress=3)


def test_a_store_whose_clock_is_behind():
    """The files of this minute look two days old."""
    world = World()
    world.table.write_arrow(rows(1))
    world.plant("p=1/bucket-0/fresh")
    here = Clock(world.clock.millis() + 48 * HOUR)
    root = TableRoot(world.store, PATH, Env(here, None, SerialPool()))
    assert Table(root, root.schemas.latest(), "d.t").remove_orphans(dry_run=False).files == 0
    assert f"{PATH}/p=1/bucket-0/fresh" in world.files()


def test_a_store_that_tells_no_times():
    """It cannot be known what is old: not even where listings tell times that the store does not confirm."""
    world = World()
    world.plant("p=1/bucket-0/orphan")
    world.pass_days(9)

    class Timeless(Beside):
        def stat(self, path):
            status = self._store.stat(path)
            return status and msgspec.structs.replace(status, modified_millis=None)

    root = TableRoot(Timeless(world.store, "", "", None), PATH, Env(world.clock, None, SerialPool()))
    table = Table(root, root.schemas.latest(), "d.t")
    assert table.remove_orphans().files == 1 and table.remove_orphans(dry_run=False).files == 0


def test_kept_states_of_every_sort_keep_their_files():
    world = World(**{"changelog-producer": "input", "changelog.num-retained.min": "100"})
    table = world.table
    for step in range(6):
        table.write_arrow(rows(*range(step, step + 4), v=f"v{step}"))
        if step == 1:
            table.create_tag("t")
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(milliseconds=-1))
    wanted = table.changes(1, 5, mode="changelog").to_arrow()
    before = world.files()
    world.pass_days(9)
    assert table.remove_orphans(dry_run=False).files == 0
    assert world.files() == before
    assert table.changes(1, 5, mode="changelog").to_arrow() == wanted
    table.delete_tag("t")
    world.pass_days(9)
    table.remove_orphans(dry_run=False)
    assert table.changes(1, 5, mode="changelog").to_arrow() == wanted


def branched(world):
    """A branch with a snapshot that main does not have any more."""
    table, store = world.table, world.store
    table.write_arrow(rows(1, 2, 3))
    for path in ("schema/schema-0", "snapshot/snapshot-1"):
        store.put(f"{PATH}/branch/branch-b/{path}", store.get(f"{PATH}/{path}"))
    for _ in range(3):
        table.write_arrow(rows(1, 2, 3), overwrite={})


def test_branches_keep_their_files():
    world = World()
    branched(world)
    world.store.delete(f"{PATH}/snapshot/snapshot-1")
    before = world.files()
    world.plant("branch/branch-b/snapshot/.x.tmp")
    world.pass_days(9)
    assert world.table.remove_orphans(dry_run=False).files == 1
    assert world.files() == before
    world.store.delete_tree(f"{PATH}/branch/branch-b")
    assert world.table.remove_orphans(dry_run=False).files > 0


def test_a_branch_without_schema_stops_the_search():
    world = World()
    branched(world)
    world.store.delete(f"{PATH}/branch/branch-b/schema/schema-0")
    with pytest.raises(CorruptionError, match="delete_branch"):
        world.table.remove_orphans()


@pytest.mark.parametrize("name", ["snapshot", "delta_manifest_list", "base_manifest_list", "manifest", "index_manifest"])
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_what_cannot_be_read_stops_the_search(name, how):
    world = World(**{"bucket": "-1"})
    table = world.table
    table.write_arrow(rows(1, 2))
    table.write_arrow(rows(3))
    world.plant("p=0/bucket-0/orphan")
    snapshot = table._root.snapshots.latest()
    named = {"manifest": table.snapshot().manifests()[0].name}
    path = f"{PATH}/manifest/{named.get(name) or getattr(snapshot, name, '')}"
    if name == "snapshot":
        path = f"{PATH}/snapshot/snapshot-2"
        if how == "missing":
            world.store.delete(f"{PATH}/snapshot/snapshot-1")
    world.pass_days(9)
    if how == "missing":
        world.store.delete(path)
    else:
        world.store.put(path, b"{}")
    with pytest.raises(PaimonError):
        remove_orphans(table._root, world.clock.millis() - 1, dry_run=False)
    assert f"{PATH}/p=0/bucket-0/orphan" in world.files()


class Beside:
    """A store beside whose calls something happens once."""

    def __init__(self, store, verb, part, action):
        self._store, self._verb, self._part, self._action = store, verb, part, action

    def __getattr__(self, name):
        method = getattr(self._store, name)
        if name != self._verb:
            return method

        def call(path, *args, **more):
            found = method(path, *args, **more)
            if self._action is not None and self._part in path:
                action, self._action = self._action, None
                action()
            return found

        return call


def beside(world, verb, part, action):
    store = Beside(world.store, verb, part, action)
    root = TableRoot(store, PATH, Env(world.clock, None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


@pytest.mark.parametrize(("verb", "part"), [("list", "/snapshot"), ("get", "snapshot-"), ("get", "manifest-list"),
                                            ("list", "/manifest"), ("list", "bucket-0")])  # fmt: skip
def test_the_only_snapshot_expires_while_names_are_read(verb, part):
    """As in apache/paimon issue 7710, where Java deletes all files that are older than a day."""
    world = World(**{"deletion-vectors.enabled": "true"})
    table = world.table
    table.write_arrow(rows(1, 2, 3, 4))
    world.plant("p=0/bucket-0/orphan")
    world.pass_days(9)

    def others():
        table.write_arrow(rows(5))
        table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(milliseconds=-1))

    done = beside(world, verb, part, others).remove_orphans(dry_run=False)
    assert (done.files, table.scan().to_arrow().num_rows, len(table.snapshots())) == (1, 5, 1)


@pytest.mark.parametrize(("verb", "part"), [("list", "/snapshot"), ("get", "snapshot-"), ("list", "/manifest"),
                                            ("list", "p=0/bucket-0"), ("list", "p=1/bucket-0")])  # fmt: skip
def test_files_that_are_old_already_when_they_are_committed(verb, part):
    """They are found as candidates, and committed before they are deleted."""
    world = World()
    table = world.table
    table.write_arrow(rows(1, 2))
    with table.writer() as writer:
        writer.write_arrow(rows(3, 4))
        changes = writer.changes()
    world.pass_days(9)
    done = beside(world, verb, part, lambda: table.commit(changes)).remove_orphans(dry_run=False)
    assert done.files == 0 and table.scan().to_arrow().num_rows == 4


def test_a_rollback_while_the_search_goes_on():
    """Others take the number of a snapshot that was read before."""
    world = World()
    table = world.table
    for step in range(3):
        table.write_arrow(rows(step))
    with table.writer() as writer:
        writer.write_arrow(rows(7))
        changes = writer.changes()
    world.pass_days(9)

    def others():
        table.rollback_to(2)
        table.commit(changes)

    done = beside(world, "list", "p=1/bucket-0", others).remove_orphans(dry_run=False)
    assert table.scan().to_arrow().num_rows == 3 and done.files == 0, "what is an orphan now was named when the search began"
    assert table.remove_orphans(dry_run=False).files > 3
    assert table.scan().to_arrow().num_rows == 3


def test_snapshots_that_a_listing_does_not_show():
    """A store may answer with an old listing, or an empty one."""
    world = World()
    world.table.write_arrow(rows(1, 2))
    world.plant("p=0/bucket-0/orphan")
    world.pass_days(9)

    class Blind(Beside):
        def list(self, directory):
            found = self._store.list(directory)
            return [one for one in found if not one.name.startswith("snapshot-")]

    root = TableRoot(Blind(world.store, "", "", None), PATH, Env(world.clock, None, SerialPool()))
    table = Table(root, root.schemas.latest(), "d.t")
    with pytest.raises(CorruptionError, match="nothing more is deleted"):
        table.remove_orphans(dry_run=False)
    world.store.delete(f"{PATH}/snapshot/LATEST")
    with pytest.raises(CorruptionError, match="nothing more is deleted"):
        table.remove_orphans(dry_run=False)
    assert f"{PATH}/p=0/bucket-0/orphan" in world.files()


def test_a_table_without_snapshots():
    """A first write that failed leaves files that nothing will ever name."""
    world = World()
    world.plant("p=0/bucket-0/data", "manifest/manifest-1")
    world.pass_days(9)
    assert world.table.remove_orphans(dry_run=False).files == 2


def test_files_that_the_store_keeps_are_counted():
    world = World()
    world.table.write_arrow(rows(1))
    world.plant("p=0/bucket-0/a", "p=0/bucket-0/b")
    world.pass_days(9)
    faults = FaultStore(world.store)
    root = TableRoot(faults, PATH, Env(world.clock, None, SerialPool()))
    table = Table(root, root.schemas.latest(), "d.t")
    table.remove_orphans()
    faults.fail_at = faults.count + 1 + next(
        at for at, call in enumerate(logged(world)) if call[0] == "delete" and call[1].endswith("/a")
    )
    done = table.remove_orphans(dry_run=False)
    assert (done.files, done.left_files) == (2, 1)


def logged(world):
    """The calls of a search."""
    faults = FaultStore(world.store.copy())
    root = TableRoot(faults, PATH, Env(world.clock, None, SerialPool()))
    table = Table(root, root.schemas.latest(), "d.t")
    faults.log.clear()
    table.remove_orphans(dry_run=False)
    return faults.log


def fail(every, first=0):
    """Every so-manieth call fails in every mode."""
    world = World(**{"deletion-vectors.enabled": "true"})
    table = world.table
    table.write_arrow(rows(1, 2, 3, 4))
    table.write_arrow(rows(2, 3))
    table.create_tag("t")
    branched(world)
    world.plant(*ORPHANS)
    world.pass_days(9)
    kept = {"t": table.scan(tag="t").to_arrow().num_rows, "latest": table.scan().to_arrow().num_rows}

    def opened(store):
        root = TableRoot(store, PATH, Env(world.clock, None, SerialPool()))
        return Table(root, root.schemas.latest(), "d.t")

    def check(store, _):
        again = opened(store)
        again.remove_orphans(dry_run=False)
        assert {"t": again.scan(tag="t").to_arrow().num_rows, "latest": again.scan().to_arrow().num_rows} == kept
        assert again.remove_orphans().files == 0

    def share(call, mode):
        return (call + MODES.index(mode)) % every == first

    return for_each_fault(world.store.copy, lambda store: opened(store).remove_orphans(dry_run=False), check, share=share)


def test_some_calls_fail_once():
    assert fail(40) > 5


@pytest.mark.full
@pytest.mark.parametrize("shard", range(4))
def test_every_call_fails_once(shard):
    assert fail(4, shard) > 60


def test_all_tables_of_a_catalog():
    world = World()
    world.catalog.create_database("e")
    world.table.write_arrow(rows(1))
    other = world.make("u")
    other.write_arrow(rows(1))
    world.plant("p=0/bucket-0/a", "/w/d.db/u/p=0/bucket-0/b")
    world.pass_days(2)
    calls = []
    found = world.catalog.remove_orphans(progress=lambda *call: calls.append(call))
    assert {name: one.files for name, one in found.items()} == {"d.t": 1, "d.u": 1}
    assert [call for call in calls if call[2] == "tables"] == [(1, 2, "tables"), (2, 2, "tables")]
    assert {what for _, _, what in calls} == {"tables", *(f"{of} of {t}" for of in ("states", "directories") for t in ("d.t", "d.u"))}
    world.store.put(f"{PATH}/snapshot/snapshot-1", b"{}")
    with pytest.raises(CorruptionError, match="snapshot-1"):
        world.catalog.remove_orphans("d", dry_run=False)
    assert "/w/d.db/u/p=0/bucket-0/b" not in world.files() and f"{PATH}/p=0/bucket-0/a" in world.files()
    assert world.catalog.remove_orphans("e") == {}
    for name in (None, "d.t"):
        with pytest.raises(UnsupportedError, match="metastore"):
            world.catalog.repair(name)



def test_the_changes_of_a_tag_have_expired():
    """Expiry keeps the rows of a tag and not its changelog; a rollback or a branch may make it a snapshot again."""
    world = World(**{"changelog-producer": "input"})
    table = world.table
    for step in range(4):
        table.write_arrow(rows(step, step + 1))
    table.create_tag("t", snapshot_id=2)
    table.expire_snapshots(retain_min=1, retain_max=1, older_than=timedelta(milliseconds=-1))
    table.create_branch("b", from_="t")
    for _ in range(2):
        world.pass_days(2)
        table.remove_orphans(dry_run=False)
        assert table.scan(tag="t").to_arrow().num_rows == table.branch("b").scan().to_arrow().num_rows == 3
        table.rollback_to("t")
    assert table.scan().to_arrow().num_rows == 3
