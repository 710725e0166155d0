"""What others committed since a base, and which compactions still fit: invented files, values alone."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest
from unit.commit.support import PARTITIONED, bucket_changes, changes_of, data_file, do_commit, new_store, root_on, row

from paimon_py.commit import attempts
from paimon_py.commit.changes import Edit
from paimon_py.commit.compaction_fit import fit_compactions
from paimon_py.commit.concurrent_commits import ConcurrentCommits
from paimon_py.commit.entry_lists import entries_of
from paimon_py.commit.postponed_times import in_waiting_order
from paimon_py.commit.snapshot_delta import write_part
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.postponed import WaitingOrder


@pytest.fixture(autouse=True)
def as_other_writers(monkeypatch):
    """Commits leave the times of waiting files as they are."""
    monkeypatch.setattr(attempts, "in_waiting_order", lambda part, state, now: part)


def table_with(*buckets):
    """The latest snapshot and the live files of a new table."""
    root = root_on(new_store(PARTITIONED))
    do_commit(root, PARTITIONED, changes_of(*buckets))
    latest = root.snapshots.latest()
    return latest, root.manifests.live_entries(latest)


def state_of(number, *buckets):
    """The table at a snapshot that follows so many others that its live files are read."""
    latest, live = table_with(*buckets)
    return SimpleNamespace(latest=msgspec.structs.replace(latest, id=number), snapshot_log=None, live_columns=lambda _: live)


def written(partition, bucket, *sequences, total_buckets=2):
    files = [data_file(f"f-{low}-{high}", sequences=(low, high)) for low, high in sequences]
    return bucket_changes(*files, partition=row(partition), bucket=bucket, total_buckets=total_buckets)


@pytest.mark.parametrize("later", [(1, 10), (1, 90), (1, 91)])
def test_the_largest_sequence_number_of_a_bucket_is_kept_whatever_comes_later(later):
    seen = ConcurrentCommits(changes_of(), frozenset([row(1), row(2)]))
    seen.follow(state_of(100, written(1, 0, (50, 90), (5, 9)), written(1, 1, (3, 4)), written(2, 0, (7, 8), total_buckets=5)))
    assert seen.highest == {(row(1), 0): 90, (row(1), 1): 4, (row(2), 0): 8}
    assert seen.bucket_counts == {row(1): 2, row(2): 5}
    seen.follow(state_of(200, written(1, 0, later, total_buckets=4)))
    assert seen.highest == {(row(1), 0): max(90, later[1]), (row(1), 1): 4, (row(2), 0): 8}
    assert seen.bucket_counts == {row(1): 4, row(2): 5}


@pytest.mark.parametrize(("count", "reason"), [(2, None), (3, "the partition has 3; overwrite the partition"), (-1, None)])
def test_a_compaction_of_another_number_of_buckets_is_dropped(count, reason):
    """Another commit has rewritten the partition with another number of buckets; -1 is no number of buckets."""
    live = entries_of(bucket_changes(total_buckets=count), FileKind.ADD, [data_file("stays"), data_file("goes")])
    compacted = Edit(deleted=(data_file("goes"),), added=(data_file("new", level=5),))
    fit = fit_compactions([bucket_changes(total_buckets=2, compacted=compacted)], live, {})
    assert [reason in one.reason for one in fit.dropped.values()] == ([] if reason is None else [True])


@pytest.mark.parametrize(("known", "since"), [(None, -1), (-7, -1), (-1, -1), (0, 0), (500, 500)])
def test_waiting_files_come_after_those_of_other_writers_and_never_before_1970(known, since):
    waits = msgspec.structs.replace(data_file("waits"), creation_time_millis=3)
    part = write_part([bucket_changes(waits, bucket=-2, total_buckets=-2)])
    there = [] if known is None else [msgspec.structs.replace(data_file("there"), creation_time_millis=known)]
    _, live = table_with(bucket_changes(*there, partition=row(1), bucket=-2, total_buckets=-2), written(1, 0, (1, 2)))
    waiting = live.take(live.bucket == -2)
    state = SimpleNamespace(latest=None, live_columns=lambda _: waiting)
    after = in_waiting_order(part, state, 1_000)
    time = max(3, since + 1)
    assert after.waiting == WaitingOrder(since, time) and after.adds[0].file.creation_time_millis == time


def test_a_commit_without_waiting_files_passes_the_order_on():
    order = WaitingOrder(3, 9)
    state = SimpleNamespace(latest=SimpleNamespace(waiting=order))
    assert in_waiting_order(write_part([written(1, 0, (1, 2))]), state, 1_000).waiting == order
    assert in_waiting_order(write_part([written(1, 0, (1, 2))]), SimpleNamespace(latest=None), 1_000).waiting is None
