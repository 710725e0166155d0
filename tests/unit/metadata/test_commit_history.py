"""History: what each commit did, in rows and files, on every kind of table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import UsageError

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


def test_an_update_says_its_name(catalog):
    table = catalog.create_table("d.t", PLAIN, options={"deletion-vectors.enabled": "true"})
    table.write_arrow(ROWS)
    table.update("a < 3", {"b": "new"})
    assert did(table, "operation", "added_rows", "deleted_rows")[1] == ("UPDATE", 2, 2)


def test_rows_of_a_keyed_table_come_and_go(catalog):
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
