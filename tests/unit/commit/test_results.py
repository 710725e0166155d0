"""What a call says that made several commits."""

from __future__ import annotations

from paimon_py.commit.result import CommitResult, join_results
from paimon_py.spec.snapshot import SnapshotId

NOTHING = CommitResult(attempts=1)


def result(*ids, before, **more):
    return CommitResult(snapshot_id=ids[-1], snapshot_ids=ids, before=SnapshotId(before), **more)


def test_two_commits_are_counted_together_and_what_the_second_one_made_up_for_is_no_longer_dropped():
    first = result(2, 3, before=1, row_count=1, file_count=20, attempts=300, dropped_compaction="lost", dropped_buckets=((b"", 0),))
    second = result(5, before=4, row_count=4, file_count=50, attempts=600)
    found = join_results(first, second)
    assert (found.snapshot_id, found.snapshot_ids, found.before) == (5, (2, 3, 5), 1)
    assert (found.row_count, found.file_count, found.attempts) == (5, 70, 900)
    assert (found.dropped_compaction, found.dropped_buckets) == (None, ())


def test_a_commit_beside_none_stands_for_both():
    one = result(2, 3, before=1, row_count=1)
    for found in (join_results(one, NOTHING), join_results(NOTHING, one)):
        assert (found.snapshot_id, found.snapshot_ids, found.before, found.row_count) == (3, (2, 3), 1, 1)
    assert join_results(NOTHING, NOTHING).snapshot_id is None
