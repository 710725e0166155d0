"""`table.changes(result)`: what one call did, whatever else happened to the table."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from paimon_py import Catalog, SnapshotExpiredError, SnapshotNotFoundError, UnsupportedError, UsageError, col

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.fixture
def catalog():
    found = Catalog.open("memory://results")
    found.drop_database("d", missing_ok=True, cascade=True)
    found.create_database("d")
    return found


def made(catalog, name="d.t", **options):
    return catalog.create_table(name, COLUMNS, primary_key=["k"], options={"bucket": "1", **options})


def row(k, v, kind=None):
    return {"k": k, "v": v} if kind is None else {"k": k, "v": v, "_row_kind": kind}


def told(scan):
    return sorted(tuple(each.values()) for each in scan.to_arrow().to_pylist())


def test_a_result_tells_what_its_verb_did_and_no_compaction(catalog):
    table = made(catalog, **{"num-sorted-run.compaction-trigger": "2"})
    table.write_arrow([row(k, 0) for k in range(6)])
    compacted = 0
    for number in range(1, 6):
        done = table.update(col("k") < 2, {"v": number})
        assert told(table.changes(done)) == [(0, number, "+U"), (1, number, "+U")]
        compacted += len(done.snapshot_ids) > 1
    assert compacted
    table.write_arrow([row(9, 9)])
    assert told(table.changes(done)) == [(0, 5, "+U"), (1, 5, "+U")]
    assert told(table.changes(table.delete(col("k") == 3))) == [(3, 0, "-D")]
    assert told(table.changes(table.compact(full=True))) == []
    assert told(table.changes(table.truncate(), columns=["k"], where="k > 4")) == [(5, "-D"), (9, "-D")]


def test_the_first_result_tells_all_its_rows(catalog):
    table = made(catalog)
    done = table.write_arrow([row(1, 1), row(2, 2)])
    table.delete("true")
    scan = table.changes(pickle.loads(pickle.dumps(done)))
    assert told(scan) == told(pickle.loads(pickle.dumps(scan))) == [(1, 1, "+I"), (2, 2, "+I")]
    assert (scan.count(), scan.explain().since, scan.explain().snapshot_id) == (2, 0, 1)


def test_a_result_without_a_commit_tells_nothing(catalog):
    table = made(catalog)
    assert told(table.changes(table.delete("true"))) == []
    table.write_arrow([row(1, 1)])
    scan = table.changes(table.update(col("k") == 7, {"v": 1}))
    assert (told(scan), scan.schema.names) == ([], ["k", "v", "_row_kind"])


def test_a_repeated_call_tells_what_it_did_the_first_time(catalog):
    table = made(catalog)
    table.write_arrow([row(1, 1)], user="u", identifier=1)
    table.upsert([row(1, 2)], user="u", identifier=2)
    table.write_arrow([row(5, 5)])
    again = table.upsert([row(1, 2)], user="u", identifier=2)
    assert again.already_committed
    assert told(table.changes(again)) == [(1, 2, "+U")]
    table.expire_snapshots(retain_min=1, retain_max=1)
    forgotten = table.upsert([row(1, 2)], user="u", identifier=2)
    assert (forgotten.already_committed, forgotten.snapshot_ids) == (True, ())
    with pytest.raises(UsageError, match="had happened before, and its snapshot"):
        table.changes(forgotten)


def test_what_others_commit_between_is_not_told(catalog):
    table = made(catalog)
    table.write_arrow([row(1, 1), row(2, 2)])
    first = table.delete(col("k") == 1)
    table.write_arrow([row(3, 3)])
    second = table.delete(col("k") == 2)
    assert told(table.changes(first)) == [(1, 1, "-D")]
    assert told(table.changes(second)) == [(2, 2, "-D")]


def test_other_modes_tell_what_the_snapshots_of_the_call_hold(catalog):
    table = made(catalog, **{"changelog-producer": "lookup"})
    table.write_arrow([row(1, 1)])
    done = table.write_arrow([row(1, 2, "+U")])
    table.write_arrow([row(1, 3, "+U")])
    assert len(done.snapshot_ids) == 2
    assert told(table.changes(done)) == told(table.changes(done, mode="delta")) == [(1, 2, "+U")]
    assert table.changes(done, mode="changelog").to_arrow()["_row_kind"].to_pylist() == ["-U", "+U"]


def test_rows_that_no_compaction_has_seen_are_told(catalog):
    table = made(catalog, **{"deletion-vectors.enabled": "true", "write-only": "true"})
    first = table.write_arrow([row(1, 1), row(2, 2)])
    assert table.count() == 0
    second = table.write_arrow([row(1, 5)])
    assert told(table.changes(first)) == [(1, 1, "+I"), (2, 2, "+I")]
    assert told(table.changes(second)) == [(1, 5, "+U")]


def test_rows_that_wait_for_their_bucket_are_told_when_they_are_published(catalog):
    table = catalog.create_table("d.w", COLUMNS, primary_key=["k"], options={"bucket": "-2"})
    done = table.write_arrow([row(1, 1)])
    with pytest.raises(UnsupportedError, match="in postponed buckets"):
        table.changes(done).count()
    assert told(table.changes(table.compact())) == [(1, 1, "+I")]


@pytest.mark.parametrize("mode", ["auto", "delta"])
def test_a_result_of_another_history_is_refused(catalog, mode):
    table, other = made(catalog), made(catalog, "d.other")
    first = table.write_arrow([row(1, 1)])
    second = table.write_arrow([row(2, 2)])
    for number in range(2):
        other.write_arrow([row(number, 0)])
    for done in (first, second):
        with pytest.raises(SnapshotNotFoundError, match="now has other contents.* to another table"):
            other.changes(done, mode=mode).count()
    table.rollback_to(1)
    with pytest.raises(SnapshotNotFoundError):
        table.changes(second, mode=mode).count()
    table.write_arrow([row(3, 3)])
    with pytest.raises(SnapshotNotFoundError, match="snapshot 2 of .* now has other contents"):
        table.changes(second, mode=mode).count()
    assert told(table.changes(first)) == [(1, 1, "+I")]


def test_a_result_whose_snapshots_have_expired_is_refused(catalog):
    table = made(catalog)
    for number in range(3):
        done = table.write_arrow([row(number, 0)])
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(SnapshotExpiredError):
        table.changes(done).count()


def test_a_result_stands_for_both_ends(catalog):
    table = made(catalog)
    done = table.write_arrow([row(1, 1)])
    with pytest.raises(UsageError, match="a result has a fixed end"):
        table.changes(done, 1)
    with pytest.raises(UsageError, match="write .snapshot_id of the CommitResult"):
        table.changes(0, done)
    with pytest.raises(UsageError, match="mode is one of"):
        table.changes(done, mode="some")
    assert told(table.system("audit_log").changes(done)) == [("+I", 1, 1)]
