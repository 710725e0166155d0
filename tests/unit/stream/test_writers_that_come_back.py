"""Writers that come back: what a user has committed, what is left to commit, and watermarks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.stream.build import again, expire, rows, table_of, write

from paimon_py import Changes, UsageError


def changes_of(table, key, **more):
    with table.writer() as writer:
        writer.write_arrow(pa.table({"k": pa.array([key], pa.int32()), "v": ["a"]}))
        return bytes(writer.changes(**more))


def test_a_user_that_never_committed():
    table = table_of()
    assert table.committed(user="job") is None
    write(table, (1, "a"))
    assert table.committed(user="job") is None
    assert table.committed("job") is None
    assert table.filter_committed(user="job", identifiers=[3, 1, 2, 2]) == [1, 2, 3]
    assert table.filter_committed(user="job", identifiers=[]) == []


def test_committed_identifiers_need_not_be_committed_again():
    table = table_of()
    pending = {number: changes_of(table, number) for number in (41, 42, 43)}
    for number in (41, 42):
        table.commit(pending[number], user="job", identifier=number)
    write(table, (1, "b"))
    table.commit(changes_of(table, 5), user="other", identifier=99)
    back = again(table)
    assert back.committed(user="job") == 42
    assert back.committed(user="other") == 99
    left = back.filter_committed(user="job", identifiers=pending)
    assert left == [43]
    assert back.filter_committed(user="job", identifiers=(40, 41, 44)) == [44]
    for number in left:
        back.commit(pending[number], user="job", identifier=number)
    assert back.filter_committed(user="job", identifiers=pending) == []
    assert sorted(back.scan().to_arrow()["k"].to_pylist()) == [1, 5, 41, 42, 43]


def test_committing_the_same_identifier_again_duplicates_no_rows():
    """The official SDK commits a second time: rows of an append table come twice, then three times."""
    table = table_of(keyed=False)
    changes = changes_of(table, 1)
    for _ in range(3):
        again(table).commit(Changes.from_bytes(changes), user="job", identifier=7)
    assert table.scan().count() == 1
    assert table.filter_committed(user="job", identifiers=[7]) == []
    assert len(list(table.stream(from_=1, until="now"))) == 1


def test_batch_commits_of_a_user_do_not_count():
    table = table_of()
    table.commit(changes_of(table, 1), user="job", identifier=5)
    table.commit(changes_of(table, 2), user="job")
    assert table.committed(user="job") == 5
    assert table.filter_committed(user="job", identifiers=[5, 6]) == [6]


def test_a_compaction_after_the_rows_has_the_same_identifier():
    table = table_of(**{"write-only": "false", "num-sorted-run.compaction-trigger": "1"})
    table.commit(changes_of(table, 1), user="job", identifier=5)
    table.commit(changes_of(table, 1), user="job", identifier=6)
    assert [snapshot.value.commit_kind.value for snapshot in table.snapshots()] == ["APPEND", "APPEND", "COMPACT"]
    assert table.committed(user="job") == 6


def test_identifiers_of_expired_snapshots_are_known():
    table = table_of()
    changes = changes_of(table, 1)
    table.commit(changes, user="job", identifier=5)
    write(table, (2, "a"))
    expire(table, 1)
    assert table.committed(user="job") == 5
    assert table.filter_committed(user="job", identifiers=[5, 6]) == [6]
    assert table.commit(changes, user="job", identifier=5).already_committed


@pytest.mark.parametrize("call", [
    lambda table: table.committed(user=""), lambda table: table.committed(user=None), lambda table: table.committed(user=3),
    lambda table: table.filter_committed(user="job", identifiers=5), lambda table: table.filter_committed(user="job", identifiers="5"),
    lambda table: table.filter_committed(user="job", identifiers=["5"]), lambda table: table.filter_committed(user="job", identifiers=[-1]),
    lambda table: table.filter_committed(user="job", identifiers=[2**63 - 1]), lambda table: table.filter_committed(user="job", identifiers=[True]),
    lambda table: table.filter_committed(user="job", identifiers=[1.5]), lambda table: table.filter_committed(user="", identifiers=[1]),
])  # fmt: skip
def test_bad_input_is_refused(call):
    with pytest.raises(UsageError):
        call(table_of())


def test_watermarks_are_carried_by_changes_and_never_fall():
    table = table_of()
    table.commit([changes_of(table, 1, watermark=30), changes_of(table, 2, watermark=20)], user="job", identifier=1)
    table.commit(changes_of(table, 3), user="job", identifier=2)
    table.commit(changes_of(table, 4, watermark=10), user="job", identifier=3)
    table.commit(changes_of(table, 5, watermark=40), user="job", identifier=4, watermark=50)
    assert [snapshot.watermark for snapshot in table.snapshots()] == [30, 30, 30, 50]
    assert [step.watermark for step in table.stream(from_=1, until="now")] == [30, 30, 30, 50]
    with pytest.raises(UsageError, match="watermark"):
        changes_of(table, 6, watermark="soon")
    assert len(rows(table.stream().poll())) == 5
