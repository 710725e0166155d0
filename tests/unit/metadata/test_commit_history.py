"""History: what each commit did, in rows and files, on every kind of table."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import Catalog, Schema, UsageError

PLAIN = pa.schema([("a", pa.int64()), ("b", pa.string())])
KEYED = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path)


def did(table, *names):
    return [tuple(getattr(entry, name) for name in names) for entry in reversed(table.history())]


ROWS = pa.table({"a": [1, 2, 3, 4], "b": ["x", "y", "z", "z"]})


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_rows_of_an_append_table_come_and_go(catalog, vectors):
    table = catalog.create_table("d.t", PLAIN, options={"deletion-vectors.enabled": vectors})
    table.write_arrow(ROWS, user="loader", identifier=7)
    table.delete("a = 1")
    table.delete("a = 2")
    table.write_arrow(ROWS.slice(0, 1))
    table.write_arrow(ROWS.slice(0, 2), overwrite={})
    table.truncate()
    found = did(table, "operation", "added_rows", "deleted_rows")
    assert found == [("APPEND", 4, 0), ("DELETE", 0, 1), ("DELETE", 0, 1), ("APPEND", 1, 0), ("OVERWRITE", 2, 3), ("TRUNCATE", 0, 2)]
    first = table.history()[-1]
    assert (first.user, first.identifier, first.added_files, first.total_rows) == ("loader", 7, 1, 4)
    assert table.history()[0].identifier is None and first.added_bytes > 0 and first.is_known


def test_an_update_records_its_operation(catalog):
    table = catalog.create_table("d.t", PLAIN, options={"deletion-vectors.enabled": "true"})
    table.write_arrow(ROWS)
    table.update("a < 3", {"b": "new"})
    assert did(table, "operation", "added_rows", "deleted_rows")[1] == ("UPDATE", 2, 2)


EVOLVES = {"bucket": "-1", **dict.fromkeys(("row-tracking.enabled", "data-evolution.enabled", "deletion-vectors.enabled"), "true")}


def test_new_columns_of_existing_rows_are_no_added_rows(catalog):
    table = catalog.create_table("d.t", Schema({"a": "INT", "b": "STRING", "image": "BLOB"}), options=EVOLVES)
    assert table.write_arrow([{"a": n, "b": "x", "image": b"y"} for n in range(5)]).row_count == 5
    assert table.write_arrow([{"a": n, "b": "x", "image": b"y"} for n in range(5, 8)]).row_count == 3
    table.update_rows(pa.table({"_ROW_ID": [0, 1], "b": ["new", "new"]}))
    table.update("a = 6", {"b": "z", "image": b"z"})
    table.delete("a = 2")
    table.merge([{"a": 7, "b": "m"}, {"a": 8, "b": "m"}], on=["a"], when_matched_update={"b": "source.b"}, when_not_matched_insert={"a": "source.a", "b": "source.b"})
    table.compact(full=True)
    table.write_arrow([{"a": 9, "b": "x", "image": None}], overwrite={})
    found = did(table, "operation", "added_rows", "deleted_rows", "rewritten_rows")
    assert found == [
        ("APPEND", 5, 0, 0), ("APPEND", 3, 0, 0), ("UPDATE", 0, 0, 5), ("UPDATE", 0, 0, 3), ("DELETE", 0, 1, 0), ("MERGE", 1, 0, 3),
        ("COMPACT", 0, 0, 0), ("OVERWRITE", 1, 8, 0),
    ]  # fmt: skip
    assert sum(table.levels()["record_count"].to_pylist()) == table.count() == 1


def test_new_columns_are_reported_after_the_previous_snapshot_expired(catalog):
    table = catalog.create_table("d.t", Schema({"a": "INT", "b": "STRING"}), options=EVOLVES)
    table.write_arrow(pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x"] * 3}))
    table.update_rows(pa.table({"_ROW_ID": [0], "b": ["new"]}))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert did(table, "operation", "added_rows", "rewritten_rows") == [("UPDATE", 0, 3)]
    assert table.levels()["record_count"].to_pylist() == [3] and table.levels()["file_count"].to_pylist() == [2]


def test_an_update_of_the_last_row_of_all_adds_none_after_the_snapshot_before_expired(catalog):
    table = catalog.create_table("d.t", Schema({"a": "INT", "b": "STRING"}), options=EVOLVES)
    table.write_arrow(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    table.update_rows(pa.table({"_ROW_ID": [0], "b": ["new"]}))
    table.expire_snapshots(retain_min=1, retain_max=1)
    assert did(table, "operation", "added_rows", "rewritten_rows") == [("UPDATE", 0, 1)]


def test_an_update_by_another_writer_is_recognised_by_its_files(catalog):
    table = catalog.create_table("d.t", Schema({"a": "INT", "b": "STRING"}), options=EVOLVES)
    table.write_arrow(pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x"] * 3}))
    table.update_rows(pa.table({"_ROW_ID": [0], "b": ["new"]}))
    path = f"{table.location}/snapshot/snapshot-2"
    text = json.loads(table._root.store.get(path))
    del text["operation"]
    table._root.store.put(path, json.dumps(text).encode())
    assert [entry.operation for entry in Catalog.open(str(catalog.warehouse)).table("d.t").history()] == ["UPDATE", "APPEND"]


def test_rows_of_a_keyed_table_are_added_and_deleted(catalog):
    table = catalog.create_table("d.t", KEYED, primary_key=["a"], options={"bucket": "1"})
    table.write_arrow(ROWS)
    table.delete("a <= 2")
    table.compact(full=True)
    found = did(table, "operation", "added_rows", "deleted_rows")
    assert found == [("APPEND", 4, 0), ("DELETE", 0, 2), ("COMPACT", 0, 0)]
    compaction = table.history(1)[0]
    assert (compaction.added_files, compaction.deleted_files) == (1, 2)


def test_the_newest_come_first_and_a_limit_counts(catalog):
    table = catalog.create_table("d.t", PLAIN, options={"deletion-vectors.enabled": "true"})
    table.write_arrow(ROWS)
    for number in (1, 2, 3):
        table.delete(f"a = {number}")
    assert [entry.snapshot_id for entry in table.history(2)] == [4, 3]
    assert [entry.deleted_rows for entry in table.history(2)] == [1, 1]
    for wrong in (0, True, "3"):
        with pytest.raises(UsageError, match="limit"):
            table.history(wrong)


def test_an_empty_table_has_no_history(catalog):
    assert catalog.create_table("d.t", PLAIN).history() == []


def test_what_expired_is_left_out_and_a_lost_delta_is_said(catalog):
    table = catalog.create_table("d.t", PLAIN, options={"deletion-vectors.enabled": "true"})
    for _ in range(4):
        table.write_arrow(ROWS)
    table.expire_snapshots(retain_min=2, retain_max=2)
    assert [entry.snapshot_id for entry in table.history()] == [4, 3]
    snapshot = table.snapshot(3).value
    table._root.store.delete(f"{table.location}/manifest/{snapshot.delta_manifest_list}")
    again = catalog.table("d.t").history()
    assert [entry.is_known for entry in again] == [True, False] and again[1].added_rows == 0


def test_the_command_line_shows_it(catalog, capsys):
    from paimon_py.cli.app import main

    table = catalog.create_table("d.t", PLAIN)
    table.write_arrow(ROWS)
    table.delete("a = 1")
    assert main(["history", table.location, "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("snapshot,time,operation,added_rows,deleted_rows,total_rows")
    assert lines[1].startswith("2,") and ",DELETE,0,1,3," in lines[1] and "Z," in lines[1]
