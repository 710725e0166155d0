"""Tags that end, and rollbacks: what is left can be read, what went is gone, whatever fails on the way."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from unit.commit.support import Clock
from unit.maintain.test_after_commit import created as made
from unit.maintain.test_after_commit import rows as some_rows
from unit.maintain.test_expire_snapshots import (
    EVERY_AGE,
    PATH,
    TABLES,
    as_rows,
    files,
    lived,
    opened,
    reachable,
    rows,
    states,
)

from paimon_py import PaimonError, SnapshotExpiredError, SnapshotNotFoundError, TagNotFoundError, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.maintain.cutting import ancestors
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import for_each_fault


def at(store, seconds):
    """The table so many seconds after it was made."""
    root = TableRoot(store, PATH, Env(Clock(1_700_000_000_000 + seconds * 1000), None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


@pytest.mark.parametrize("kind", TABLES)
def test_deleting_a_tag_frees_what_only_the_tag_kept(kind):
    store = lived(kind)
    table = opened(store)
    for number in (3, 4):
        table.create_tag(f"t{number}", snapshot_id=number)
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    before = states(table)
    for name in ("t3", "kept", "t4"):
        table.delete_tag(name)
        del before[name]
        assert states(opened(store)) == before
        assert files(store) == reachable(opened(store))
    with pytest.raises(TagNotFoundError):
        table.delete_tag("t3")


def test_two_tags_of_one_snapshot_and_tags_of_snapshots_that_are_there():
    store = lived("keyed")
    table = opened(store)
    table.create_tag("twin", snapshot_id=2)
    everything = files(store)
    table.delete_tag("twin")
    assert files(store) == everything
    table.create_tag("twin", snapshot_id=2)
    table.expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    kept = as_rows(table.scan(tag="kept"))
    table.delete_tag("twin")
    assert as_rows(opened(store).scan(tag="kept")) == kept
    table.create_tag("again", snapshot_id=2)
    assert as_rows(opened(store).scan(tag="again")) == kept


def test_tags_end():
    store = lived("keyed")
    at(store, 0).create_tag("short", retain=timedelta(minutes=1))
    at(store, 0).create_tag("long", retain=timedelta(days=1))
    assert at(store, 60).expire_tags() == []
    assert at(store, 61).expire_tags() == ["short"]
    assert [tag.name for tag in at(store, 61).tags()] == ["kept", "long"]
    assert at(store, 61).expire_tags(older_than=timedelta(hours=1)) == []
    moment = datetime.fromtimestamp(1_700_000_050, timezone.utc)
    assert at(store, 61).expire_tags(older_than=moment) == ["long"], "the other tag's file was written today"
    for wrong in (timedelta(0), "0 d", "a week", -1):
        with pytest.raises(UsageError, match="retain"):
            at(store, 0).create_tag("odd", retain=wrong)


def test_a_table_says_how_long_its_tags_are_kept():
    store = lived("keyed")
    table = opened(store)
    table._schema.options["tag.default-time-retained"] = "1 min"
    table.create_tag("t")
    assert table.tags()[1].value.time_retained_seconds == 60


@pytest.mark.parametrize("kind", TABLES)
def test_rollbacks_to_snapshots_times_and_tags(kind):
    store = lived(kind)
    table = opened(store)
    table.create_tag("late")
    before, latest = states(table), table.snapshot().id
    result = table.rollback_to(5)
    assert (result.snapshot_id, result.snapshot_ids, result.tags) == (5, tuple(range(6, latest + 1)), ("late",))
    left = opened(store)
    assert states(left) == {name: state for name, state in before.items() if name in (1, 2, 3, 4, 5, "kept")}
    left.write_arrow(rows(70))
    assert left.snapshot().id > 5
    assert left.rollback_to(datetime.now(timezone.utc)).snapshot_ids == ()
    left.rollback_to("kept")
    assert opened(store).snapshot().id == table.tags()[0].snapshot_id
    assert as_rows(opened(store).scan()) == before["kept"]


def test_a_rollback_to_a_tag_whose_snapshot_expired():
    store = lived("keyed")
    before = states(opened(store))
    opened(store).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
    with pytest.raises(SnapshotExpiredError):
        opened(store).rollback_to(3)
    assert opened(store).rollback_to(2).snapshot_id == 2
    left = opened(store)
    assert [snapshot.id for snapshot in left.snapshots()] == [2]
    assert as_rows(left.scan()) == before["kept"]
    left.write_arrow(rows(80))
    assert opened(store).snapshot().id == 3


@pytest.mark.parametrize(("target", "error"), [(99, SnapshotNotFoundError), ("nix", TagNotFoundError), (1.5, UsageError)])
def test_no_such_state(target, error):
    store = lived("keyed")
    before = states(opened(store))
    with pytest.raises(error):
        opened(store).rollback_to(target)
    assert states(opened(store)) == before


@pytest.mark.parametrize("target", ["kept", 5])
def test_whatever_fails_a_rollback_can_be_repeated(target):
    original = lived("keyed")
    if target == "kept":
        opened(original).expire_snapshots(retain_min=3, older_than=EVERY_AGE)
    before = states(opened(original))
    goal = before[target]

    def check(store, outcome):
        left = opened(store)
        found = states(left)
        assert {name: before[name] for name in found if name in before} == {n: s for n, s in found.items() if n in before}
        assert left.snapshot() is not None and "kept" in found
        try:
            left.rollback_to(target)
        except PaimonError as error:
            raise AssertionError(f"cannot be repeated: {error}") from error
        assert as_rows(opened(store).scan()) == goal

    assert for_each_fault(original.copy, lambda store: opened(store).rollback_to(target), check) > 30


class ExpiringBeforeTags:
    """A store on which snapshots expire right before a tag is put."""

    def __init__(self, store):
        self.store = store

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def put_new(self, path, data, *, within=None):
        if "/tag/tag-" in path:
            opened(self.store).expire_snapshots(retain_min=1, older_than=EVERY_AGE)
        return self.store.put_new(path, data, within=within)


def test_a_tag_of_a_snapshot_that_expires_meanwhile_is_not_made():
    store = lived("keyed")
    with pytest.raises(SnapshotExpiredError, match="while the tag 'late' was made"):
        opened(ExpiringBeforeTags(store)).create_tag("late", snapshot_id=3)
    assert [tag.name for tag in opened(store).tags()] == ["kept"]
    twin = opened(ExpiringBeforeTags(lived("keyed"))).create_tag("twin", snapshot_id=2)
    assert twin.snapshot_id == 2, "another tag keeps the snapshot"


@pytest.mark.parametrize(("target", "left"), [("second", [1, 2]), (4, [1, 2, 3]), (5, [1, 2, 3])])
def test_a_rollback_keeps_the_changelogs_up_to_its_target(target, left):
    """Snapshots 1 to 3 have expired, and their changelogs are kept; 4 is the oldest that is left."""
    store, clock = MemoryStore(), Clock()
    kept = {"changelog-producer": "input", "changelog.num-retained.min": "99", "changelog.num-retained.max": "99"}
    table = made(store, clock, **kept, **{"write-only": "true"})
    for number in range(1, 7):
        table.write_arrow(some_rows(number))
    table.create_tag("second", snapshot_id=2)
    table.expire_snapshots(retain_min=3, retain_max=3)
    assert table._root.changelogs.ids() == [1, 2, 3]
    table.rollback_to(target)
    assert table._root.changelogs.ids() == left
    assert int(store.get(f"{PATH}/changelog/LATEST")) == left[-1]
    steps = iter(table.stream(from_="earliest").poll, None)
    assert [step.to_arrow()["k"].to_pylist() for step in steps] == [[n] for n in range(1, table.snapshot().id + 1)]


def test_ancestors_end_where_another_history_begins():
    """Snapshot 3 of a branch has come to the place of the parent of 4."""
    store = lived("keyed")
    branch = opened(store).create_branch("b", 2)
    branch.write_arrow(rows(90))
    root = opened(store)._root
    five = root.snapshots.get(5)
    assert [one.id for one in ancestors(root, five)] == [1, 2, 3, 4]
    store.put(f"{PATH}/snapshot/snapshot-3", store.get(f"{PATH}/branch/branch-b/snapshot/snapshot-3"))
    root = opened(store)._root
    assert [one.id for one in ancestors(root, five)] == [4]
    store.delete(f"{PATH}/snapshot/snapshot-4")
    assert ancestors(opened(store)._root, five) == []
