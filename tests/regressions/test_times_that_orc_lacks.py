"""Rows whose times no ORC file holds, in tables of ORC: whatever writes them once more writes Parquet files."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from unit.public import new_catalog

from paimon_py import Schema, SetOption, UnsupportedError, col

LATE = [-1001, -1, 5, None, -(10**6) + 1]
ROWED = {"row-tracking.enabled": "true", "compaction.min.file-num": "2"}
KINDS = {
    "append": (None, {}), "with row ids": (None, ROWED), "evolution": (None, {**ROWED, "data-evolution.enabled": "true"}),
    "keyed": (["k"], {"bucket": "1", "write-only": "true"}),
    "changelog": (["k"], {"bucket": "1", "write-only": "true", "changelog-producer": "full-compaction"}),
    "vectors": (["k"], {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}),
}  # fmt: skip


def table_of(catalog, kind):
    keys, options = KINDS[kind]
    columns = Schema([("k", "INT NOT NULL"), ("t", "TIMESTAMP(6)"), ("s", "TIMESTAMP(3)"), ("x", "INT")])
    table = catalog.create_table("d.t", columns, primary_key=keys, options=options)
    for key, value in enumerate(LATE):
        late = pa.array([value], pa.timestamp("us"))
        far = pa.array([2**63 - 1 if key == 2 else None], pa.timestamp("ms"))
        table.write_arrow(pa.table({"k": pa.array([key], pa.int32()), "t": late, "s": far}))
    return table


def stored(table):
    rows = table.refresh().to_arrow().sort_by("k")
    return rows["k"].to_pylist(), [rows[name].combine_chunks().view(pa.int64()).to_pylist() for name in ("t", "s")]


@pytest.mark.parametrize("compression", ["zstd", "zlib"])
@pytest.mark.parametrize("level", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_compaction_keeps_rows_that_orc_lacks(tmp_path, kind, level, compression):
    table = table_of(new_catalog(tmp_path / "w"), kind)
    before = [*range(len(LATE))], [LATE, [None, None, 2**63 - 1, None, None]]
    if level:
        table.alter(SetOption("file.format.per.level", "0:orc,5:orc"))
    else:
        table.alter(SetOption("file.format", "orc"), SetOption("file.compression", compression))
    table.compact(full=True)
    assert stored(table) == before
    files = table.refresh().system("files").to_arrow().to_pylist()
    assert len(files) == 1 and files[0]["file_path"].endswith(".parquet")
    table.compact(full=True)
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0
    with pytest.raises(UnsupportedError, match="ORC timestamps"):
        table.write_arrow(pa.table({"k": pa.array([9], pa.int32()), "t": pa.array([-1], pa.timestamp("us"))}))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("evolution", "vectors")])
def test_rows_are_deleted_beside_rows_that_orc_lacks(tmp_path, kind):
    table = table_of(new_catalog(tmp_path / "w"), kind)
    table.compact(full=True)
    table.alter(SetOption("file.format", "orc"))
    assert table.delete(col("k").isin([1, 3])).deleted == 2
    assert stored(table) == ([0, 2, 4], [[LATE[0], LATE[2], LATE[4]], [None, 2**63 - 1, None]])
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0


@pytest.mark.parametrize("kind", KINDS)
def test_other_columns_are_updated_of_rows_that_orc_lacks(tmp_path, kind):
    table = table_of(new_catalog(tmp_path / "w"), kind)
    table.compact(full=True)
    table.alter(SetOption("file.format", "orc"))
    assert table.update("k IN (0, 1)", {"x": 7}).updated == 2
    table.compact(full=True)
    assert stored(table) == ([*range(len(LATE))], [LATE, [None, None, 2**63 - 1, None, None]])
    assert table.refresh().to_arrow().sort_by("k")["x"].to_pylist() == [7, 7, None, None, None]
    with pytest.raises(UnsupportedError, match="ORC timestamps"):
        table.update("k = 3", {"t": datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)})
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0


def test_postponed_rows_that_orc_lacks_are_published(tmp_path):
    """They were taken, since they wait in Avro files, and could then never be published."""
    columns = Schema([("k", "INT NOT NULL"), ("t", "TIMESTAMP(6)")])
    options = {"bucket": "-2", "file.format": "orc"}
    table = new_catalog(tmp_path / "w").create_table("d.t", columns, primary_key=["k"], options=options)
    table.write_arrow(pa.table({"k": pa.array([0, 1, 2, 3, 4], pa.int32()), "t": pa.array(LATE, pa.timestamp("us"))}))
    table.compact(full=True)
    rows = table.refresh().to_arrow().sort_by("k")
    assert rows["t"].combine_chunks().view(pa.int64()).to_pylist() == LATE
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0


def test_rows_that_orc_lacks_move_to_other_buckets(tmp_path):
    table = table_of(new_catalog(tmp_path / "w"), "keyed")
    before = stored(table)
    table.alter(SetOption("file.format", "orc"))
    table.rescale(3)
    assert stored(table) == before
    assert table.remove_orphans(older_than=0, dry_run=True).files == 0


def test_other_rows_are_compacted_to_orc(tmp_path):
    table = table_of(new_catalog(tmp_path / "w"), "append")
    table.delete(col("k").isin([0, 1, 2, 4]))
    table.write_arrow(pa.table({"k": pa.array([7], pa.int32()), "t": pa.array([-(10**6)], pa.timestamp("us"))}))
    table.alter(SetOption("file.format", "orc"))
    table.compact(full=True)
    assert [row["file_path"].endswith(".orc") for row in table.refresh().system("files").to_arrow().to_pylist()] == [True]
