"""Expiry: which snapshots stay, and that everything which stays can be read, whatever fails on the way."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock
from unit.public import KEYED

from paimon_py import Catalog, PaimonError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.maintain.cleanup.retention import (
    FirstKept,
    RetainedChanges,
    Retention,
    first_kept,
    first_kept_changelog,
    retained_changes,
)
from paimon_py.metadata.consumers import Consumer
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault


def retention(**given):
    return Retention(**{"count_min": 1, "count_max": 2**31 - 1, "older_than_millis": 2**60, "limit": 2**31 - 1, **given})


@pytest.mark.parametrize(
    ("given", "consumers", "end"),
    [
        ({}, {}, 20),
        ({"count_min": 5}, {}, 16),
        ({"limit": 3}, {}, 14),
        ({}, {"a": 15, "b": 17}, 15),
        ({}, {"a": 3}, 11),
        ({"older_than_millis": 1300}, {}, 12),
        ({"older_than_millis": 1301}, {}, 13),
        ({"older_than_millis": 0}, {}, 11),
        ({"older_than_millis": 0, "count_max": 4}, {}, 17),
        ({"older_than_millis": 0, "count_max": 4, "limit": 2}, {}, 13),
        ({"older_than_millis": 1300, "count_max": 20, "count_min": 20}, {}, 11),
    ],
)
def test_the_first_that_stays(given, consumers, end):
    """Snapshots 11 to 20, each at its id times 100."""
    assert first_kept(11, 20, retention(**given), consumers, lambda number: number * 100).snapshot_id == end


@pytest.mark.parametrize(
    ("given", "consumers", "end"),
    [
        ({}, {}, 10),
        ({"count_min": 9}, {}, 6),
        ({"count_min": 14}, {}, 1),
        ({"limit": 3}, {}, 4),
        ({}, {"a": 5, "b": 7}, 5),
        ({}, {"a": 1}, 1),
        ({"older_than_millis": 300}, {}, 3),
        ({"older_than_millis": 301}, {}, 4),
        ({"older_than_millis": 0, "count_max": 8}, {}, 7),
        ({"older_than_millis": 0, "count_max": 8}, {"a": 5}, 5),
        ({"older_than_millis": 0, "count_max": 2}, {}, 10),
    ],
)
def test_the_first_changelog_that_stays(given, consumers, end):
    """Changelogs 1 to 10, each at its id times 100; the newest snapshot is 14."""
    found = first_kept_changelog(range(1, 11), 14, retention(**given), consumers, lambda number: number * 100)
    assert found.snapshot_id == end


@pytest.mark.parametrize(
    ("name", "same", "longer"),
    [("num-retained.min", "10", "11"), ("num-retained.max", "20", "21"), ("time-retained", "2 h", "7200001 ms")],
)
@pytest.mark.parametrize(("producer", "kept"), [("none", RetainedChanges.WRITTEN), ("input", RetainedChanges.CHANGELOG)])
def test_changelogs_that_are_retained_as_long_as_snapshots_go_with_them(name, same, longer, producer, kept):
    options = {"snapshot.num-retained.max": "20", "snapshot.time-retained": "2 h", "changelog-producer": producer}
    assert retained_changes({**options, f"changelog.{name}": same}) is RetainedChanges.NOTHING
    assert retained_changes({**options, f"changelog.{name}": longer}) is kept


def test_the_reason_is_named():
    assert "consumer 'c'" in first_kept(1, 9, retention(), {"c": 4}, lambda number: 0).reason
    assert "retain_min" in first_kept(1, 9, retention(count_min=3), {}, lambda number: 0).reason
    assert "time-retained" in first_kept(1, 9, retention(older_than_millis=0), {}, lambda number: 1).reason
    assert first_kept(1, 9, retention(), {}, lambda number: None) == FirstKept(9, "the newest 1 are kept (retain_min)")


def rows(*keys, v="x"):
    return pa.table({"p": pa.array([key % 2 for key in keys], pa.int32()), "k": list(keys), "v": [v] * len(keys)})


TABLES = {
    "keyed": (["p", "k"], {"bucket": "1"}),
    "vectors": (["p", "k"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "dynamic": (["p", "k"], {"bucket": "-1"}),
    "append": ([], {"deletion-vectors.enabled": "true", "file-index.bloom-filter.columns": "k",
                    "file-index.in-manifest-threshold": "1 b", "snapshot.clean-empty-directories": "true"}),
}  # fmt: skip
PATH = "/w/d.db/t"
EVERY_AGE = timedelta(milliseconds=-1)


def opened(store):
    root = TableRoot(store, PATH, Env(Clock(1_700_000_100_000), None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def lived(kind):
    """The store of a table with snapshots of every sort, a tag on the second."""
    store = MemoryStore()
    catalog = Catalog(store, "/w", env=Env(Clock(), None, SerialPool()))
    catalog.create_database("d")
    key, options = TABLES[kind]
    options = {**options, "bucket": options.get("bucket", "-1")}
    table = catalog.create_table("d.t", KEYED, primary_key=key, partition_by=["p"], options=options)
    for step in range(4):
        table.write_arrow(rows(*range(step, step + 6), v=f"v{step}"))
        if step == 1:
            table.create_tag("kept")
    table.delete("k = 3")
    table.compact(full=True)
    table.write_arrow(rows(40, 41), overwrite="dynamic")
    table.write_arrow(rows(50), overwrite={})
    table.write_arrow(rows(51, 52))
    return store


def states(table):
    """The rows of every snapshot and tag that is left, by id or name."""
    found = {snapshot.id: as_rows(table.scan(snapshot_id=snapshot.id)) for snapshot in table.snapshots()}
    return found | {tag.name: as_rows(table.scan(tag=tag.name)) for tag in table.tags()}


def as_rows(scan):
    return sorted(scan.to_arrow().to_pylist(), key=lambda row: row["k"])


def reachable(table):
    """Names of all files that snapshots and tags name."""
    root, names = table._root, set()
    left = [root.snapshots.get(number) for number in root.snapshots.ids()]
    for snapshot in [*left, *(tag.snapshot for tag in root.tags.list())]:
        names |= root.manifests.file_names(snapshot)
        for one in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            names |= {one, *(manifest.name for manifest in root.manifests.read_list(one))}
        names |= {snapshot.index_manifest, snapshot.statistics} - {None}
    return names


def files(store, directory=PATH):
    """Names of all data, index and manifest files."""
    names = set()
    for status in store.list(directory):
        if status.is_directory:
            names |= files(store, status.path)
        elif directory.rpartition("/")[2] not in ("snapshot", "schema", "tag", "consumer"):
            names.add(status.name)
    return names


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("least", [1, 3])
def test_what_stays_is_what_is_named(kind, least):
    store = lived(kind)
    table = opened(store)
    before = states(table)
    planned = table.expire_snapshots(retain_min=least, older_than=EVERY_AGE, dry_run=True)
    assert states(opened(store)) == before
    result = table.expire_snapshots(retain_min=least, older_than=EVERY_AGE)
    assert result.snapshot_ids == planned.snapshot_ids and result.data_files == planned.data_files > 0
    assert result.spared_files > 0
    left = opened(store)
    ids = [snapshot.id for snapshot in left.snapshots()]
    assert ids == list(range(result.earliest_id, result.latest_id + 1)) and len(ids) == least
    assert states(left) == {name: state for name, state in before.items() if name in [*ids, "kept"]}
    assert files(store) == reachable(left)
    again = left.expire_snapshots(retain_min=least, older_than=EVERY_AGE)
    assert again.snapshot_ids == () and "retain_min" in again.reason
    left.write_arrow(rows(60))
    left.delete_tag("kept")
    assert left.expire_snapshots(retain_min=1, older_than=EVERY_AGE).snapshot_ids == tuple(range(ids[0], left.snapshot().id))


def test_options_consumers_and_age_keep_snapshots():
    store = lived("keyed")
    table = opened(store)
    latest = table.snapshot().id
    assert table.expire_snapshots().snapshot_ids == ()
    assert table.expire_snapshots(retain_min=1).snapshot_ids == (), "all are younger than an hour"
    table._root.consumers.put(Consumer("c", 3))
    result = table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert result.snapshot_ids == (1, 2) and "consumer 'c'" in result.reason
    table._root.consumers.delete("c")
    assert table.expire_snapshots(retain_min=1, older_than=EVERY_AGE, max_deletes=2).snapshot_ids == (3, 4)
    assert table.expire_snapshots(retain_min=1, retain_max=2).snapshot_ids == tuple(range(5, latest - 1))


@pytest.mark.parametrize(
    ("given", "word"),
    [({"retain_min": 0}, "retain_min"), ({"retain_max": 2}, "retain_min = 10"), ({"max_deletes": True}, "max_deletes"),
     ({"older_than": "a day"}, "older_than"), ({"retain_max": 1.5}, "retain_max")],
)  # fmt: skip
def test_nonsense_is_refused(given, word):
    with pytest.raises(UsageError, match=word):
        opened(lived("keyed")).expire_snapshots(**given)


@pytest.mark.parametrize(
    ("kind", "every"), [("append", 12), *(pytest.param(kind, 1, marks=pytest.mark.full) for kind in TABLES)]
)
def test_whatever_fails_what_is_left_can_be_read(kind, every):
    original = lived(kind)
    before = states(opened(original))

    def operation(store):
        return opened(store).expire_snapshots(retain_min=2, older_than=EVERY_AGE)

    def check(store, outcome):
        left = opened(store)
        found = states(left)
        assert {name: before[name] for name in found} == found
        assert {left.snapshot().id, "kept"} <= found.keys()
        assert outcome.result is None or len(left.snapshots()) == 2
        left.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
        assert as_rows(left.scan()) == before[left.snapshot().id]

    share = lambda call, mode: (call + MODES.index(mode)) % every == 0  # noqa: E731
    assert for_each_fault(original.copy, operation, check, share=share) > 20


def test_a_damaged_tag_stops_expiry_before_anything_goes():
    store = lived("keyed")
    names = files(store)
    store.put(f"{PATH}/tag/tag-odd", b"{}")
    with pytest.raises(PaimonError, match="tag-odd"):
        opened(store).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert files(store) == names and len(opened(store).snapshots()) > 5


class Between(FaultStore):
    """Makes a tag when the first snapshot is deleted."""

    def delete(self, path):
        if path.endswith("/snapshot-1"):
            opened(self.store).create_tag("late", snapshot_id=3)
        super().delete(path)


def test_a_tag_that_is_made_meanwhile_keeps_its_files():
    store = lived("keyed")
    rows_of_three = as_rows(opened(store).scan(snapshot_id=3))
    opened(Between(store)).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert as_rows(opened(store).scan(tag="late")) == rows_of_three


class Expiring:
    """A store on which another process expires a changelog right before it is read."""

    def __init__(self, store, number):
        self.store = store
        self.number = number

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def get(self, path):
        if path.endswith(f"/changelog/changelog-{self.number}"):
            self.store.delete(path)
        return self.store.get(path)


@pytest.mark.parametrize("missing", range(2, 7))
def test_snapshots_can_be_read_if_others_expire_changelogs_at_the_same_time(missing):
    store = MemoryStore()
    catalog = Catalog(store, "/w", env=Env(Clock(), None, SerialPool()))
    catalog.create_database("d")
    longer = {"changelog.num-retained.min": "100", "changelog.num-retained.max": "100", "write-only": "true"}
    table = catalog.create_table("d.t", KEYED, partition_by=["p"], options=longer)
    for step in range(8):
        table.write_arrow(rows(step, step + 1, v=f"v{step}"))
    table.expire_snapshots(retain_min=2, retain_max=2, older_than=EVERY_AGE)
    before = states(table)
    assert table._root.changelogs.ids() == [1, 2, 3, 4, 5, 6] and len(before) == 2
    opened(Expiring(store, missing)).expire_changelogs(retain_min=1, retain_max=4, older_than=EVERY_AGE)
    assert states(opened(store)) == before and reachable(opened(store)) <= files(store)


def test_branches_keep_what_they_name():
    """As Java makes a branch from a tag: copies of the snapshot, the tag and the schemas."""
    store = lived("keyed")
    tag = store.get(f"{PATH}/tag/tag-kept")
    store.put(f"{PATH}/branch/branch-b/snapshot/snapshot-2", store.get(f"{PATH}/snapshot/snapshot-2"))
    store.put(f"{PATH}/branch/branch-b/schema/schema-0", store.get(f"{PATH}/schema/schema-0"))
    names = opened(store)._root.manifests.file_names(opened(store)._root.snapshots.get(2))
    opened(store).delete_tag("kept")
    opened(store).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    assert names <= files(store), tag


# -- directories ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cleans", [False, True])
def test_directories_that_become_empty_go_if_the_table_says_so(tmp_path, cleans):
    catalog = Catalog.open(tmp_path, {"fs.local.fsync": "false"})
    catalog.create_database("d")
    options = {"bucket": "1", "snapshot.clean-empty-directories": str(cleans).lower()}
    columns = pa.schema([pa.field("p", pa.int32(), False), pa.field("q", pa.int32(), False), pa.field("k", pa.int64(), False)])
    table = catalog.create_table("d.t", columns, primary_key=["p", "q", "k"], partition_by=["p", "q"], options=options)
    for p, q in ((1, 1), (1, 2), (2, 1)):
        table.write_arrow(pa.table({"p": [p], "q": [q], "k": [1]}, schema=columns))
    table.drop_partitions([{"p": 1, "q": 2}, {"p": 2}])
    (tmp_path / "d.db/t/p=2/kept").write_text("by others")
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    left = {str(path.relative_to(tmp_path / "d.db/t")) for path in (tmp_path / "d.db/t").glob("p=*/**/") if path.is_dir()}
    there = {"p=1", "p=1/q=1", "p=1/q=1/bucket-0", "p=2"}
    assert left == (there if cleans else there | {"p=1/q=2", "p=1/q=2/bucket-0", "p=2/q=1", "p=2/q=1/bucket-0"})
    table.write_arrow(pa.table({"p": [1], "q": [2], "k": [1]}, schema=columns))
    assert table.scan().to_arrow().num_rows == 2
