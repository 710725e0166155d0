"""A writer that compacted its new rows commits after another one: its rows must not end up below older ones."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.commit.support import new_store, root_on, schema

from paimon_py import Catalog, Schema, SetOption, Table

COLUMNS = {"k": "INT NOT NULL", "v": "INT"}
MODES = [{"force-lookup": "true"}, {"deletion-vectors.enabled": "true"}]


def rows(*pairs):
    keys, values = zip(*pairs)
    return pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32())})


@pytest.mark.parametrize("options", MODES, ids=["lookup", "deletion vectors"])
def test_rows_of_a_late_writer_are_newer_though_its_sequence_numbers_leave_a_gap(options):
    """Found by `test_engine_machines` (partial, lookup; seed 1): the numbers of rows that a buffer merged are missing,
    so that the two writers' numbers did not meet."""
    table_schema = schema(primary_key=["k"], columns=COLUMNS, options={"bucket": "1", **options})
    root = root_on(new_store(table_schema))
    table = Table(root, table_schema, "t")
    table.write_arrow(rows(*((key, key) for key in range(1000, 2000))))
    late = table.writer()
    late.write_arrow(rows((2, 0), (2, 0), *((key, key) for key in range(3000, 9000)), (2, 20)))
    changes = late.changes()
    table.write_arrow(rows((2, 10)))
    result = table.commit(changes)
    assert result.dropped_compaction
    table.compact(full=True)
    assert table.scan(where="k < 1000").to_arrow().to_pydict() == {"k": [2], "v": [20]}


def test_a_writer_that_goes_on_compacts_over_its_own_commits():
    table_schema = schema(primary_key=["k"], columns=COLUMNS, options={"bucket": "1", "force-lookup": "true"})
    root = root_on(new_store(table_schema))
    table = Table(root, table_schema, "t")
    writer = table.writer()
    for value in (1, 2, 3):
        writer.write_arrow(rows((1, value), (value, value)))
        assert table.commit(writer.changes()).dropped_compaction is None
    assert table.scan().to_arrow().sort_by("k").to_pydict() == {"k": [1, 2, 3], "v": [3, 2, 3]}


KINDS = [
    {"merge-engine": "first-row"},
    {"deletion-vectors.enabled": "true"},
    {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "force-lookup": "true"},
]


@pytest.mark.parametrize("options", KINDS, ids=["first row", "deletion vectors", "sums"])
def test_a_late_writer_does_not_count_on_rows_that_an_overwrite_took_away(options):
    """Found by `test_engine_machines` (first row without deletes, tiny files; seed 1): the writer had looked up a key
    that was gone when it committed."""
    table_schema = schema(primary_key=["k"], columns=COLUMNS, options={"bucket": "1", **options})
    table = Table(root_on(new_store(table_schema)), table_schema, "t")
    table.write_arrow(rows((1, 10), (2, 20)))
    late = table.writer()
    late.write_arrow(rows((1, 11)))
    changes = late.changes()
    table.truncate()
    assert table.commit(changes).dropped_compaction
    table.compact(full=True)
    assert table.scan().to_arrow().to_pydict() == {"k": [1], "v": [11]}


def test_changes_of_more_levels_than_the_options_have_by_now_are_committed(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("levels")
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "5"}
    table = catalog.create_table("levels.t", Schema({"k": "INT NOT NULL"}), primary_key=["k"], options=options)
    table.write_arrow([{"k": 0}])
    table.write_arrow([{"k": 3}])
    table.compact(full=True)
    with table.writer() as writer:
        writer.write_arrow([{"k": 1}])
        changes = writer.changes()
    assert {file.level for bucket in changes.buckets for file in bucket.compacted.added} == {4}
    catalog.table("levels.t").alter(SetOption("num-sorted-run.compaction-trigger", "2"))
    catalog.table("levels.t").commit(changes)
    with catalog.table("levels.t").writer() as writer:  # the file on the highest level is still there
        writer.write_arrow([{"k": 2}])
        changes = writer.changes()
    catalog.table("levels.t").commit(changes)
    catalog.table("levels.t").compact(full=True)
    assert sorted(catalog.table("levels.t").to_arrow()["k"].to_pylist()) == [0, 1, 2, 3]
