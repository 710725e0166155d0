"""Found in review: the same changes twice in one commit broke primary-key tables and doubled the rows of others.

The second copy was taken for a later writer of the bucket: its rows were renumbered, and the file that the snapshot
names was deleted. In append tables the file was named twice, which Java cannot read.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, CommitConflictError, UsageError

KEYED = {"primary_key": ["a"], "options": {"bucket": "2"}}
LAYOUTS = [KEYED, {}, {"options": {"bucket": "2", "bucket-key": "a"}}]


@pytest.fixture(params=LAYOUTS, ids=["keyed", "append", "append with buckets"])
def table(request):
    catalog = Catalog.open(f"memory://twice-{request.param_index}")
    catalog.create_database("db", exist_ok=True)
    catalog.drop_table("db.t", missing_ok=True)
    return catalog.create_table("db.t", pa.schema([pa.field("a", pa.int64(), nullable=False)]), **request.param)


def changes_of(table, *values):
    with table.writer() as writer:
        writer.write_arrow(pa.table({"a": list(values)}, schema=pa.schema([pa.field("a", pa.int64(), nullable=False)])))
    return writer.changes()


def test_changes_given_twice_in_one_commit_are_refused_and_can_then_be_committed_once(table):
    changes = changes_of(table, 1, 2)
    with pytest.raises(UsageError, match="given twice"):
        table.commit([changes, bytes(changes)])
    assert table.snapshot() is None
    table.commit(changes)
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2]


def test_changes_that_were_committed_are_not_committed_again_beside_others(table):
    first, second = changes_of(table, 1, 2), changes_of(table, 3)
    table.commit(first)
    with pytest.raises(CommitConflictError, match="in the table already"):
        table.commit([first, second])
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2]
    table.commit(second)
    assert table.commit([first]).already_committed
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == [1, 2, 3]


@pytest.mark.parametrize("who", [{}, {"user": "me"}, {"user": "me", "identifier": 9}], ids=["nobody", "user", "identifier"])
def test_a_compaction_that_is_committed_again_keeps_its_files(table, who):
    """Found by the simulator (seed 1000893): with an identifier the files that the snapshot names were deleted."""
    for value in range(5):
        table.commit(changes_of(table, value))
    merged = [bytes(table.run_compaction(task)) for task in table.compaction_tasks(full=True)]
    table.commit(merged, **who)
    assert table.commit(merged, **who).already_committed
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == list(range(5))
