"""The short ways to read a table see what others did since the table object was opened."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, TableNotFoundError

ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int64()), "v": ["a", "b", "c"]})


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false"})
    made.create_database("d")
    made.create_table("d.t", ROWS.schema).write_arrow(ROWS)
    return made


def test_all_forms_give_the_same_rows(catalog):
    table = catalog.table("d.t")
    assert table.to_arrow().sort_by("k") == ROWS
    assert pa.Table.from_pandas(table.to_pandas(), ROWS.schema, preserve_index=False).sort_by("k").equals(ROWS)
    assert table.to_polars().sort("k").to_dicts() == ROWS.to_pylist()
    assert table.count() == 3 and table.head(2).num_rows == 2 and table.head().num_rows == 3


def test_what_others_changed_is_seen_and_refresh_moves_the_object(catalog):
    table, other = catalog.table("d.t"), catalog.table("d.t")
    other.alter(AddColumn("w", "INT"))
    other.write_arrow(ROWS.append_column("w", pa.array([7, 8, 9], pa.int32())))
    assert table.to_arrow().column_names == ["k", "v", "w"] and table.count() == 6
    assert table.schema.fields[-1].name == "v" and table.scan().to_arrow().column_names == ["k", "v"]
    assert table.refresh() is table and table.schema == other.schema
    assert table.scan().to_arrow().column_names == ["k", "v", "w"]
    assert pickle.loads(pickle.dumps(table)).count() == 6


def test_branches_read_their_own_rows(catalog):
    table = catalog.table("d.t")
    table.create_branch("b", from_=None).write_arrow(ROWS)
    assert table.branch("b").count() == 3 and table.branch("b").to_arrow().sort_by("k") == ROWS
    assert table.branch("b").refresh().name == "d.t$branch_b"


def test_a_table_that_is_gone_is_named(catalog):
    table = catalog.table("d.t")
    catalog.drop_table("d.t")
    for verb in (table.to_arrow, table.to_pandas, table.to_polars, table.head, table.count, table.refresh):
        with pytest.raises(TableNotFoundError):
            verb()
