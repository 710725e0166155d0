"""Changes of single snapshots: which files are read, and every stored row with its kind, in file order."""

from __future__ import annotations

import pathlib

import pyarrow as pa
import pytest

from paimon_py import Catalog, SnapshotExpiredError, col
from paimon_py.errors import CorruptionError
from paimon_py.expr.bind import bind
from paimon_py.scan.change_plan import ChangeSource, plan_span, plan_step
from paimon_py.scan.read import count_split, read_split
from paimon_py.scan.request import Request
from paimon_py.scan.row_kinds import kind_texts
from paimon_py.scan.split import Split


def catalog_of(tmp_path):
    catalog = Catalog.open(str(tmp_path / "wh"))
    catalog.create_database("db")
    return catalog


def table_of(tmp_path, **options):
    schema = pa.schema([("p", pa.int32()), ("k", pa.int32()), ("v", pa.string())])
    return catalog_of(tmp_path).create_table(
        "db.t", schema, primary_key=["p", "k"], partition_by=["p"],
        options={"bucket": "2", "bucket-key": "k", "write-only": "true", **options},
    )  # fmt: skip


def write(table, *rows):
    types = [pa.int32(), pa.int32(), pa.string(), pa.string()]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows), types)]
    table.write_arrow(pa.table(columns, ["p", "k", "v", "_row_kind"]))


def request(table, columns=None, where=None):
    predicate = None if where is None else bind(where, table.schema.fields)
    return Request(schema=table.schema, columns=tuple(columns or table.schema.names), predicate=predicate)


def rows(table, asked, planned):
    splits = [Split.from_bytes(bytes(split)) for split in planned.splits]
    found = [row for split in splits for batch in read_split(table._root, asked, split) for row in batch.to_pylist()]
    assert sum(count_split(table._root, asked, split) for split in splits) == len(found)
    return [tuple(row.values()) for row in found]


@pytest.fixture
def life(tmp_path):
    table = table_of(tmp_path)
    write(table, (1, 1, "a", "+I"), (1, 2, "a", "+I"), (2, 1, "a", "+I"), (2, 3, "a", "+I"))
    write(table, (1, 1, "b", "+U"), (1, 2, None, "-D"))
    write(table, (1, 2, "c", "+I"), (3, 9, "c", "-D"))
    return table


def step(table, number, **asked):
    planned = plan_step(table._root, request(table, **asked), table._root.snapshots.get(number), ChangeSource.DELTA)
    return rows(table, request(table, **asked), planned)


def test_rows_come_as_they_are_stored(life):
    assert sorted(step(life, 2)) == [(1, 1, "b", "+U"), (1, 2, None, "-D")]
    assert sorted(step(life, 3)) == [(1, 2, "c", "+I"), (3, 9, "c", "-D")]


def test_changes_of_a_key_come_in_the_order_in_which_they_happened(life):
    snapshots = [life._root.snapshots.get(number) for number in (1, 2, 3)]
    planned = plan_span(life._root, request(life), [(one, ChangeSource.DELTA) for one in snapshots], since=0)
    found = rows(life, request(life), planned)
    assert [row[2:] for row in found if row[:2] == (1, 2)] == [("a", "+I"), (None, "-D"), ("c", "+I")]
    assert [row[2:] for row in found if row[:2] == (1, 1)] == [("a", "+I"), ("b", "+U")]
    assert {split.snapshot_id for split in planned.splits} == {3}
    assert {split.since for split in planned.splits} == {0}


def test_columns_may_be_left_out_and_the_kind_stays(life):
    assert set(step(life, 2, columns=["v"])) == {("b", "+U"), (None, "-D")}
    planned = plan_step(life._root, request(life), life._root.snapshots.get(2), ChangeSource.DELTA)
    bare = Request(schema=life.schema, columns=())
    found = pa.Table.from_batches([b for split in planned.splits for b in read_split(life._root, bare, split)])
    assert found.column_names == ["_row_kind"]
    assert sorted(found["_row_kind"].to_pylist()) == ["+U", "-D"]


@pytest.mark.parametrize(
    "where, reason",
    [(col("p") == 2, "partition"), (col("k") > 5, "key"), (col("v") == "zzz", "stats"), (col("k") == 2, "bucket")],
    ids=["partition", "key", "value", "bucket"],
)
def test_files_without_a_match_are_left_out_and_rows_are_exact(life, where, reason):
    everything = [row for number in (1, 2, 3) for row in step(life, number)]
    names = ("p", "k", "v")
    matches = {
        "partition": lambda row: row["p"] == 2, "key": lambda row: row["k"] > 5,
        "stats": lambda row: row["v"] == "zzz", "bucket": lambda row: row["k"] == 2,
    }[reason]  # fmt: skip
    wanted = [row for row in everything if matches(dict(zip(names, row)))]
    assert sorted(map(str, (row for n in (1, 2, 3) for row in step(life, n, where=where)))) == sorted(map(str, wanted))
    asked = request(life, where=where)
    planned = plan_step(life._root, asked, life._root.snapshots.get(1), ChangeSource.DELTA)
    assert getattr(planned.skipped, reason) > 0
    assert planned.skipped.files + sum(len(split.files) for split in planned.splits) == planned.skipped.all_files


def test_append_tables_have_only_additions(tmp_path):
    table = catalog_of(tmp_path).create_table("db.t", pa.schema([("a", pa.int64())]))
    table.write_arrow(pa.table({"a": [3, 1, 2]}))
    planned = plan_step(table._root, request(table), table._root.snapshots.get(1), ChangeSource.DELTA)
    assert rows(table, request(table), planned) == [(3, "+I"), (1, "+I"), (2, "+I")]


def test_a_snapshot_without_changelog_has_none(life):
    planned = plan_step(life._root, request(life), life._root.snapshots.get(1), ChangeSource.CHANGELOG)
    assert planned.splits == ()


def test_a_missing_file_is_damage_while_the_snapshots_stand_and_expiry_when_they_are_gone(life):
    asked, snapshots = request(life), [life._root.snapshots.get(number) for number in (1, 2)]
    planned = plan_span(life._root, asked, [(one, ChangeSource.DELTA) for one in snapshots], since=0)
    for path in pathlib.Path(life.location).rglob("data-*.parquet"):
        path.unlink()
    with pytest.raises(CorruptionError, match="missing"):
        rows(life, asked, planned)
    pathlib.Path(life.location, "snapshot", "snapshot-1").unlink()
    with pytest.raises(SnapshotExpiredError, match=r"snapshot 1 of .*snapshot\.time-retained"):
        rows(life, asked, planned)


def test_a_number_that_is_no_kind_is_damage():
    assert kind_texts(pa.array([0, 3, 1, 2], pa.int8())).to_pylist() == ["+I", "-D", "-U", "+U"]
    for wrong in (4, -1):
        with pytest.raises(CorruptionError, match=f"kind {wrong}"):
            kind_texts(pa.array([0, wrong], pa.int8()))
