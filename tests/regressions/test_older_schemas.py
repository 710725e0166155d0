"""Who knows an older schema than others write under must not write their rows anew: values would be lost.

A table object from before an `AddColumn` compacted, and set the new column to NULL in every row; after a change from INT
to BIGINT it cut the values. Found by tests/model/test_table_machines.py and a look at what it left out.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

from paimon_py import AddColumn, CommitConflictError, SchemaError, UpdateColumnType

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int32())])
KINDS = {
    "keyed": {"primary_key": ["k"], "options": {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}},
    "keyed vectors": {"primary_key": ["k"], "options": {"bucket": "1", "deletion-vectors.enabled": "true"}},
    "append": {},
    "buckets": {"options": {"bucket": "1", "bucket-key": "k", "compaction.min.file-num": "2"}},
    "vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "clustered": {"options": {"clustering.incremental": "true", "clustering.columns": "k"}},
}
VERBS = {
    "compact": lambda table: table.compact(full=True),
    "tasks": lambda table: table.compaction_tasks(full=True),
    "delete": lambda table: table.delete("k = 3"),
    "update": lambda table: table.update("k = 3", {"n": 9}),
    "merge": lambda table: table.merge(rows([3]), ["k"], when_matched_update=True),
}
CHANGES = {
    "added": (AddColumn("z", "INT"), {"z": pa.array([7, 7], pa.int32())}),
    "widened": (UpdateColumnType("n", "BIGINT"), {"n": pa.array([1 << 40] * 2, pa.int64())}),
}


def rows(keys):
    return pa.table({"k": keys, "n": [1] * len(keys)}, schema=SCHEMA)


def later(table, change, start):
    """Rows under the new schema."""
    return pa.table({"k": pa.array([start, start + 1]), "n": pa.array([1, 1], pa.int32()), **CHANGES[change][1]}).cast(
        pa.schema([pa.field("k", pa.int64(), nullable=False), *list(pa.table(CHANGES[change][1]).schema)])
        if change == "widened"
        else SCHEMA.append(pa.field("z", pa.int32()))
    )


def two_states(path, kind, change):
    """A table object of the older schema, and one of the later under which rows were written."""
    older = new_catalog(path).create_table("d.t", SCHEMA, **KINDS[kind])
    older.write_arrow(rows([1, 2]))
    newer = reopened(older)
    newer.alter(CHANGES[change][0])
    newer.write_arrow(later(newer, change, 3))
    return older, newer


def content(table):
    return sorted(map(repr, reopened(table).scan().to_arrow().to_pylist()))


CASES = [
    (kind, verb, change) for kind in KINDS for verb in VERBS for change in CHANGES if change == "added" or verb == "compact"
]  # fmt: skip


@pytest.mark.parametrize(("kind", "verb", "change"), CASES)
def test_rows_of_a_later_schema_are_not_written_anew_under_an_older_one(tmp_path, kind, verb, change):
    older, newer = two_states(tmp_path / "w", kind, change)
    before, snapshot = content(newer), newer.snapshot()
    with pytest.raises(CommitConflictError, match=r"under schema 1, but only schema 0 is known here.*open the table again"):
        VERBS[verb](older)
    assert content(newer) == before
    assert newer.snapshot() == snapshot
    VERBS[verb](reopened(older))


@pytest.mark.parametrize("kind", ["keyed", "buckets"])
def test_writers_leave_buckets_with_rows_of_a_later_schema_to_others(tmp_path, kind):
    older, newer = two_states(tmp_path / "w", kind, "added")
    before = content(newer)
    for number in range(10, 16):
        older.write_arrow(rows([number]))
    found = reopened(newer).scan().to_arrow().to_pylist()
    assert [row for row in map(repr, found) if row in before] and len(found) == 10
    assert [row["z"] for row in found if row["k"] in (3, 4)] == [7, 7]


def test_waiting_rows_of_a_later_schema_are_published_by_those_who_know_it(tmp_path):
    older = new_catalog(tmp_path / "w").create_table("d.t", SCHEMA, primary_key=["k"], options={"bucket": "-2"})
    newer = reopened(older)
    newer.alter(CHANGES["added"][0])
    newer.write_arrow(later(newer, "added", 3))
    with pytest.raises(CommitConflictError, match="column z is missing there"):
        older.compact()
    newer.compact()
    assert newer.scan().to_arrow()["z"].to_pylist() == [7, 7]


def test_changes_of_two_schemas_in_one_commit_are_both_looked_at(tmp_path):
    """The newer schema passed, and with it rows whose column had become wider since."""
    older = new_catalog(tmp_path / "w").create_table("d.t", SCHEMA, **KINDS["keyed"])
    newer = reopened(older)
    newer.alter(CHANGES["widened"][0])
    changes = []
    for table, data in ((older, rows([1])), (newer, later(newer, "widened", 3))):
        with table.writer() as writer:
            writer.write_arrow(data)
            changes.append(writer.changes())
    with pytest.raises(CommitConflictError, match="the type of column n changed"):
        newer.commit(changes)
    assert newer.snapshot() is None


@pytest.mark.parametrize("kind", ["keyed", "append"])
def test_values_that_became_wider_are_not_cut_for_those_who_know_the_older_type(tmp_path, kind):
    """2^40 read as 0."""
    older, newer = two_states(tmp_path / "w", kind, "widened")
    with pytest.raises(SchemaError, match="column n is BIGINT since schema 1, but INT in schema 0.*open the table again"):
        older.scan().to_arrow()
    if kind == "keyed":
        with pytest.raises(SchemaError, match="column n is BIGINT since schema 1"):
            older.lookup([3])
    assert max(newer.scan().to_arrow()["n"].to_pylist()) == 1 << 40
    assert reopened(older).scan(snapshot_id=1).to_arrow()["n"].to_pylist() == [1, 1]
