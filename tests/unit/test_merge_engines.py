"""Questions to tables with merge engines through the public verbs: written here, is what is read the merged rows?"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from unit.commit.support import Clock
from unit.public import new_catalog, refused

from paimon_py import Catalog, Schema, Table, UnsupportedError, UsageError, col
from paimon_py.env import Env, SerialPool

COLUMNS = [("k", "INT"), ("a", "INT"), ("b", "STRING"), ("g", "INT"), ("n", "BIGINT")]
ARROW = pa.schema([("k", pa.int32()), ("a", pa.int32()), ("b", pa.string()), ("g", pa.int32()), ("n", pa.int64())])


@pytest.fixture
def create(tmp_path):
    def make(engine, **options):
        catalog = new_catalog(str(tmp_path / "w"))
        given = {"bucket": "1", "write-only": "true", "merge-engine": engine, **options}
        return catalog.create_table("d.t", Schema(COLUMNS), primary_key=["k"], options=given)

    return make


def write(table, *rows):
    """One commit; a row is a dictionary, missing columns are null."""
    given = pa.Table.from_pylist(rows, schema=ARROW)
    if any("_row_kind" in row for row in rows):
        given = given.append_column("_row_kind", pa.array([row.get("_row_kind", "+I") for row in rows]))
    table.write_arrow(given)


def read(table, **scan):
    return sorted(map(tuple, (row.values() for row in table.scan(**scan).to_arrow().to_pylist())))


def test_partial_updates_of_several_commits_make_one_row(create):
    table = create("partial-update")
    write(table, {"k": 1, "a": 1}, {"k": 2, "b": "x"}, {"k": 1, "n": 9})
    write(table, {"k": 1, "b": "y"}, {"k": 2, "a": 5, "b": "z"})
    assert read(table) == [(1, 1, "y", None, 9), (2, 5, "z", None, None)]
    assert read(table, columns=["b"]) == [("y",), ("z",)]
    assert table.scan().count() == 2


def test_filters_find_values_that_no_file_holds_together(create):
    table = create("partial-update")
    write(table, {"k": 1, "a": 1}, {"k": 3, "a": 3})
    write(table, {"k": 1, "b": "x"}, {"k": 3, "b": "y"})
    assert read(table, where=(col("a") == 1) & (col("b") == "x")) == [(1, 1, "x", None, None)]
    assert read(table, where=(col("a") == 1) & (col("b") == "y")) == []
    assert read(table, where=col("a").is_not_null() & (col("b") == "y"), columns=["k"]) == [(3,)]


def test_filters_find_sums_that_no_statistics_know(create):
    options = {"fields.n.aggregate-function": "sum"}
    table = create("aggregation", **options)
    write(table, {"k": 1, "n": 3}, {"k": 2, "n": 1})
    write(table, {"k": 1, "n": 4}, {"k": 2, "n": 1})
    assert read(table, where=col("n") == 7, columns=["k"]) == [(1,)]


def test_a_projection_without_the_sequence_field_reads_the_right_version(create):
    table = create("partial-update", **{"fields.g.sequence-group": "b,n", "fields.n.aggregate-function": "sum"})
    write(table, {"k": 1, "a": 1, "b": "new", "g": 5, "n": 1})
    write(table, {"k": 1, "a": 2, "b": "late", "g": 3, "n": 10})
    assert read(table) == [(1, 2, "new", 5, 11)]
    assert read(table, columns=["b"]) == [("new",)]
    assert read(table, columns=["n"]) == [(11,)]


def test_a_removed_row_is_gone_whatever_columns_are_read(create):
    options = {"fields.g.sequence-group": "b", "partial-update.remove-record-on-sequence-group": "g"}
    table = create("partial-update", **options)
    write(table, {"k": 1, "a": 1, "g": 1}, {"k": 2, "a": 2, "g": 5})
    write(table, {"k": 1, "g": 2, "_row_kind": "-D"}, {"k": 2, "g": 3, "_row_kind": "-D"})
    assert read(table) == [(2, 2, None, 5, None)]
    assert read(table, columns=["a"]) == [(2,)]
    assert table.scan().count() == 1


def test_deletes_are_refused_by_the_engine_and_leave_the_table_as_it_is(create):
    table = create("partial-update")
    write(table, {"k": 1, "a": 1})
    with refused(table, UsageError, "ignore-delete", "sequence-group"):
        write(table, {"k": 1, "a": 1}, {"k": 1, "_row_kind": "-D"})


def test_rows_of_first_row_tables_are_seen_once_a_compaction_has_seen_them(create):
    table = create("first-row")
    write(table, {"k": 1, "a": 1}, {"k": 1, "a": 2})
    assert read(table) == []
    table.compact(full=True)
    write(table, {"k": 1, "a": 3}, {"k": 2, "a": 4})
    assert read(table, columns=["k", "a"]) == [(1, 1)]
    table.compact(full=True)
    assert read(table, columns=["k", "a"]) == [(1, 1), (2, 4)]


def test_the_snapshot_orders_rows_whoever_wrote_first(create):
    table = create("deduplicate", **{"sequence.snapshot-ordering": "true"})
    early, late = table.writer(), table.writer()
    for writer, value in ((late, 2), (early, 1)):
        writer.write_arrow(pa.Table.from_pylist([{"k": 1, "a": value}], schema=ARROW))
    table.commit(early.changes())
    table.commit(late.changes())
    assert read(table, columns=["a"]) == [(2,)]
    table.compact(full=True)
    write(table, {"k": 1, "a": 3})
    assert read(table, columns=["a"]) == [(3,)]
    assert read(table, columns=["a"], snapshot_id=1) == [(1,)]


def test_rows_that_ended_by_age_stay_until_a_compaction(create):
    table = create("deduplicate", **{"record-level.expire-time": "1 h", "record-level.time-field": "n"})
    write(table, {"k": 1, "n": 1}, {"k": 2}, {"k": 3, "n": 4_000_000_000})
    assert [row[0] for row in read(table)] == [1, 2, 3]
    table.compact(full=True)
    assert [row[0] for row in read(table)] == [2, 3]


def test_later_compactions_of_the_top_level_drop_what_ended_since(tmp_path):
    clock = Clock()
    catalog = Catalog.open(str(tmp_path / "w"), {"fs.local.fsync": "false"}, env=Env(clock, None, SerialPool()))
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true", "record-level.expire-time": "1 h", "record-level.time-field": "n"}
    table = catalog.create_table("d.t", Schema(COLUMNS), primary_key=["k"], options=options)
    now = clock.millis() // 1000
    write(table, {"k": 1, "n": now}, {"k": 2, "n": now + 7200})
    table.compact(full=True)
    assert [row[0] for row in read(table)] == [1, 2]
    clock.start += 2 * 3_600_000
    table.compact(full=True)
    assert [row[0] for row in read(table)] == [2]


def test_sequence_groups_with_common_columns_are_refused_by_name(create):
    table = create("partial-update")
    schema = Path(table.location) / "schema" / "schema-0"
    groups = '"fields.g.sequence-group" : "a", "fields.g,n.sequence-group" : "b", "bucket"'
    schema.write_text(schema.read_text().replace('"bucket"', groups))
    with pytest.raises(UnsupportedError, match="common columns"):
        Table.open(table.location).scan().to_arrow()
