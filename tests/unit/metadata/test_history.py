"""What happened after a base: the steps, each fetched once, or HistoryGap."""

import msgspec
import pytest
from unit.commit.support import APPEND, TABLE, changes_of, data_file, do_commit, new_store, root_on, unaware

from paimon_py.metadata.history import HistoryGap, SnapshotLog, SnapshotRange
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.snapshot import Base
from paimon_py.testing.counting_store import CountingStore

COUNT = 6


@pytest.fixture
def store():
    store = new_store(APPEND)
    for number in range(COUNT):
        do_commit(root_on(store, f"u{number}"), APPEND, changes_of(unaware(data_file(f"f{number}"))), is_new=True)
    return store


def base_of(root, number):
    return Base.of(root.snapshots.find(number))


def fetched(counting):
    return [path for verb, path in counting.paths if verb == "get" and "/snapshot-" in path]


def test_the_steps_after_a_base_are_in_order_and_say_what_they_added(store):
    root = root_on(store)
    found = SnapshotLog(root).after(base_of(root, 2), root.snapshots.latest())
    assert [snapshot.id for snapshot in found.snapshots] == [3, 4, 5, 6]
    assert found.added_names().to_pylist() == ["f2", "f3", "f4", "f5"]
    assert [one.added_names().to_pylist() for one in found.each()] == [["f2"], ["f3"], ["f4"], ["f5"]]
    assert found.index_names() == set()
    whole = SnapshotLog(root).after(Base(0), root.snapshots.latest())
    assert [snapshot.id for snapshot in whole.snapshots] == list(range(1, COUNT + 1))


def test_no_snapshot_is_fetched_twice_for_any_caller(store):
    root = root_on(store)
    base, latest = base_of(root, 2), root.snapshots.latest()
    counting = CountingStore(store)
    snapshot_log = SnapshotLog(root_on(counting))
    for start in (4, 2, 3):
        assert isinstance(snapshot_log.after(base_of(root, start), latest), SnapshotRange)
    assert snapshot_log.at(base, latest).id == 2
    assert len(list(snapshot_log.newest_first(latest))) == COUNT
    assert len(fetched(counting)) == len(set(fetched(counting))) == COUNT - 1


def test_after_a_lost_race_only_new_snapshots_are_fetched_and_the_last_one_checked(store):
    root = root_on(store)
    base = base_of(root, 2)
    counting = CountingStore(store)
    snapshot_log = SnapshotLog(root_on(counting))
    snapshot_log.after(base, root.snapshots.latest())
    for name in ("late", "later"):
        do_commit(root_on(store, name), APPEND, changes_of(unaware(data_file(name))), is_new=True)
    counting.paths.clear()
    found = snapshot_log.after(base, root.snapshots.latest())
    assert found.added_names().to_pylist()[-2:] == ["late", "later"]
    assert [path.rpartition("-")[2] for path in fetched(counting)] == [str(COUNT), str(COUNT + 1)]


def test_a_base_that_is_the_latest_costs_nothing(store):
    counting = CountingStore(store)
    root = root_on(counting)
    latest = root.snapshots.latest()
    counting.paths.clear()
    assert SnapshotLog(root).after(Base.of(latest), latest).snapshots == ()
    assert counting.paths == []


def test_what_came_after_an_expired_base_is_lost(store):
    root = root_on(store)
    base, latest = base_of(root, 2), root.snapshots.latest()
    store.delete(snapshot_path(TABLE, 2))
    assert SnapshotLog(root).after(base, latest) == HistoryGap(base)
    assert isinstance(SnapshotLog(root).after(Base(3), latest), SnapshotRange)
    store.delete(snapshot_path(TABLE, 4))
    assert SnapshotLog(root).after(Base(3), latest) == HistoryGap(Base(3))
    assert [snapshot.id for snapshot in SnapshotLog(root).newest_first(latest)] == [6, 5]


def test_another_snapshot_of_the_same_number_is_not_the_base(store):
    root = root_on(store)
    base = msgspec.structs.replace(base_of(root, 3), mark="another")
    assert SnapshotLog(root).after(base, root.snapshots.latest()) == HistoryGap(base)
    assert SnapshotLog(root).after(Base(99), root.snapshots.latest()) == HistoryGap(Base(99))
    assert SnapshotLog(root).after(Base(1), None) == HistoryGap(Base(1))


def test_a_rollback_resets_the_snapshot_log(store):
    root = root_on(store)
    snapshot_log, base = SnapshotLog(root), base_of(root, 2)
    snapshot_log.after(base, root.snapshots.latest())
    for number in (6, 5, 4):
        store.delete(snapshot_path(TABLE, number))
    for name in ("new4", "new5", "new6", "new7"):
        do_commit(root_on(store, name), APPEND, changes_of(unaware(data_file(name))), is_new=True)
    found = snapshot_log.after(base, root.snapshots.latest())
    assert found.added_names().to_pylist() == ["f2", "new4", "new5", "new6", "new7"]


def test_tags_are_among_all_that_is_left(store):
    root = root_on(store)
    root.tags.create("kept", root.snapshots.find(2))
    for number in (1, 2, 3, 4):
        store.delete(snapshot_path(TABLE, number))
    left = SnapshotLog(root).all_existing(root.snapshots.latest())
    assert [snapshot.id for snapshot in left.snapshots] == [2, 5, 6]
    assert left.added_names().to_pylist() == ["f1", "f4", "f5"]


def test_missing_manifests_make_the_history_lost_too(store):
    root = root_on(store)
    latest = root.snapshots.latest()
    found = SnapshotLog(root_on(store)).after(base_of(root, 4), latest)
    store.delete(f"{TABLE}/manifest/{latest.delta_manifest_list}")
    assert isinstance(found.entries(), HistoryGap) and isinstance(found.added_names(), HistoryGap)


