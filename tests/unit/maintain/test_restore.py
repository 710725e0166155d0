"""Older states that are restored in a new commit: every kind of table, columns of today, others beside, and undone."""

from __future__ import annotations

import pytest

from paimon_py import AddColumn, Catalog, RenameColumn, Schema, SnapshotExpiredError, TagNotFoundError, UnsupportedError
from paimon_py.commit import commit as committing
from paimon_py.table import restoring

COLUMNS = Schema([("id", "INT NOT NULL"), ("p", "INT NOT NULL"), ("v", "INT")])
KINDS = {
    "append": ((), (), {}),
    "partitioned append": ((), ("p",), {}),
    "append with vectors": ((), ("p",), {"deletion-vectors.enabled": "true"}),
    "rows with ids": ((), (), {"row-tracking.enabled": "true"}),
    "keyed": (("id", "p"), ("p",), {"bucket": "2"}),
    "keys that move": (("id",), ("p",), {}),
    "sums": (("id",), (), {"bucket": "1", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}),
    "sequence": (("id",), (), {"bucket": "1", "sequence.field": "v"}),
    "keyed with vectors": (("id",), (), {"bucket": "1", "deletion-vectors.enabled": "true"}),
    "with a changelog": (("id",), (), {"bucket": "1", "changelog-producer": "lookup"}),
}


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(tmp_path, options={"fs.local.fsync": "false"})
    made.create_database("d")
    return made


def make(catalog, kind="partitioned append"):
    keys, parts, options = KINDS[kind]
    table = catalog.create_table("d.t", COLUMNS, primary_key=keys, partition_by=parts, options=options)
    table.write_arrow([{"id": n, "p": n % 3, "v": n} for n in range(9)])
    return table


def contents(table):
    return sorted(table.scan(columns=["id", "p", "v"]).to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_state_returns_and_leaves_again(catalog, kind):
    table = make(catalog, kind)
    old = contents(table)
    table.create_tag("good")
    if not KINDS[kind][0]:
        table.delete("id = 1")
    table.write_arrow([{"id": 1, "p": 1, "v": 70}, {"id": 10, "p": 4, "v": 1}])
    new = contents(table)
    done = table.restore("good")
    assert contents(table) == old != new
    assert table.history(1)[0].operation == "RESTORE"
    changed = {row["id"] for row in table.changes(done, mode="diff").to_arrow().to_pylist()}
    assert changed == {1, 10}
    undone = table.restore(done.before)
    assert contents(table) == new
    assert table.restore(undone.snapshot_id).snapshot_id is None
    emptied = table.restore(0)
    assert contents(table) == []
    table.restore(emptied.before)
    assert contents(table) == new and table.scan(tag="good").count() == 9


def test_rows_get_the_columns_of_today(catalog):
    table = make(catalog)
    table.alter(AddColumn("note", "STRING"), RenameColumn("v", "w"))
    table = catalog.table("d.t")
    table.truncate()
    table.restore(1)
    assert table.scan(where="id = 4").to_arrow().to_pylist() == [{"id": 4, "p": 1, "w": 4, "note": None}]


def test_partitions_that_are_the_same_are_not_written(catalog):
    table = make(catalog)
    table.write_arrow([{"id": 20, "p": 2, "v": 1}])
    done = table.restore(1)
    assert (done.row_count, done.file_count) == (3, 1)


def test_a_commit_in_another_partition_meanwhile_is_replaced_too(catalog, monkeypatch):
    table = make(catalog)
    old = contents(table)
    table.write_arrow([{"id": 20, "p": 2, "v": 1}])
    real, rounds = committing.commit, []

    def beside(*arguments):
        rounds.append(1)
        if len(rounds) == 1:
            catalog.table("d.t").write_arrow([{"id": 21, "p": 1, "v": 1}, {"id": 22, "p": 2, "v": 1}])
        return real(*arguments)

    monkeypatch.setattr(restoring, "commit", beside)
    done = table.restore(1)
    assert (contents(table), len(rounds), done.before) == (old, 2, 3)
    assert table.scan(snapshot_id=done.before).count() == 12


def test_a_restoration_with_a_number_is_made_once(catalog):
    table = make(catalog)
    table.write_arrow([{"id": 20, "p": 2, "v": 1}])
    assert not table.restore(1, user="night", identifier=4).already_committed
    table.write_arrow([{"id": 21, "p": 2, "v": 1}])
    assert table.restore(1, user="night", identifier=4).already_committed
    assert table.scan().count() == 10


def test_progress_counts_the_rows_that_are_read(catalog):
    table = make(catalog)
    table.truncate()
    seen = []
    table.restore(1, progress=lambda *step: seen.append(step))
    assert seen[-1][1:] == (9, "rows") and seen[-1][0] == 9


def test_what_cannot_be_restored_is_refused(catalog):
    table = make(catalog)
    for target, error in (("unknown", TagNotFoundError), (1, SnapshotExpiredError)):
        with pytest.raises(error):
            table.write_arrow([{"id": 30, "p": 0, "v": 0}])
            table.expire_snapshots(retain_max=1, retain_min=1)
            table.restore(target)
    blobs = catalog.create_table(
        "d.b", Schema([("id", "INT"), ("image", "BLOB")]),
        options={"row-tracking.enabled": "true", "data-evolution.enabled": "true"},
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="BLOBs of image.*rollback_to"):
        blobs.restore(0)
    waiting = catalog.create_table("d.w", COLUMNS, primary_key=["id"], options={"bucket": "-2"})
    with pytest.raises(UnsupportedError, match="wait for their bucket.*rollback_to"):
        waiting.restore(0)
