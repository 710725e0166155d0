"""The state before a commit, as its result gives it."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from paimon_py import Catalog, SnapshotExpiredError, SnapshotNotFoundError

COLUMNS = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.fixture
def table():
    catalog = Catalog.open("memory://before")
    catalog.drop_database("d", missing_ok=True, cascade=True)
    catalog.create_database("d")
    return catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1"})


def keys(scan):
    return sorted(scan.to_arrow()["k"].to_pylist())


def test_every_state_before_is_read_whatever_a_writer_compacts(table):
    known = []
    for number in range(12):
        done = table.write_arrow([{"k": number, "v": 0}])
        assert keys(table.scan(snapshot_id=done.before)) == known
        known = keys(table.scan())
    assert len(table.snapshots()) > 12


def test_the_state_before_the_first_commit_is_empty(table):
    done = table.write_arrow([{"k": 1, "v": 0}])
    scan = table.scan(snapshot_id=done.before)
    assert (scan.count(), scan.to_arrow().schema.names, list(scan.splits())) == (0, ["k", "v"], [])
    assert pickle.loads(pickle.dumps(scan)).count() == 0
    with pytest.raises(SnapshotNotFoundError):
        table.scan(snapshot_id=0).count()


def test_a_state_before_that_was_rolled_back_is_never_taken_for_another(table):
    table.write_arrow([{"k": 1, "v": 0}])
    table.write_arrow([{"k": 2, "v": 0}])
    done = table.write_arrow([{"k": 3, "v": 0}])
    assert done.before == 2
    table.rollback_to(1)
    with pytest.raises(SnapshotNotFoundError):
        table.scan(snapshot_id=done.before).count()
    table.write_arrow([{"k": 4, "v": 0}])
    assert keys(table.scan(snapshot_id=2)) == [1, 4]
    for before in (done.before, pickle.loads(pickle.dumps(done)).before):
        with pytest.raises(SnapshotNotFoundError, match="snapshot 2 of .* now has other contents"):
            table.scan(snapshot_id=before).count()


def test_a_state_before_that_has_expired_says_so(table):
    table.write_arrow([{"k": 1, "v": 0}])
    done = table.write_arrow([{"k": 2, "v": 0}])
    table.expire_snapshots(retain_min=1, retain_max=1)
    with pytest.raises(SnapshotExpiredError):
        table.scan(snapshot_id=done.before).count()
