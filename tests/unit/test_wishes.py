"""What new users try first and used to be told to write otherwise: it works now."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from unit.public import ROWS, keyed_table, new_catalog

from paimon_py import AddColumn, First, SchemaError, UsageError


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path)


AGES = ["1d", "1 d", "24h", "24 h", "1440 min", "86400 s"]


@pytest.mark.parametrize("age", AGES)
def test_ages_are_texts_too(catalog, age):
    table = keyed_table(catalog)
    clock = catalog._env.clock
    clock.seconds += 86_000
    assert table.expire_snapshots(older_than=age, retain_min=1).snapshot_ids == ()
    clock.seconds += 1000
    assert table.expire_snapshots(older_than=age, retain_min=1).snapshot_ids == (1,)


def test_every_duration_may_be_a_text(catalog):
    table = keyed_table(catalog)
    table.create_tag("kept", retain="7d")
    table.replace_tag("kept", retain="1h")
    assert table.system("tags").to_arrow()["time_retained"].to_pylist()[-1] is not None
    assert table.remove_orphans(older_than="2d").files == 0 and catalog.remove_orphans(older_than="2d")
    assert table.expire_tags(older_than="1d") == [] and table.expire_consumers("1d") == []
    assert table.expire_changelogs(older_than="1d").snapshot_ids == ()
    days = catalog.create_table("d.days", pa.schema([("day", pa.string())]), partition_by=["day"])
    days.write_arrow(pa.table({"day": ["20200101"]}))
    assert len(days.expire_partitions(older_than="30d", timestamp_formatter="yyyyMMdd", dry_run=True).partitions) == 1


@pytest.mark.parametrize("wrong", ["soon", "d", "1 fortnight", "-1d"])
def test_texts_that_are_no_ages_are_refused(catalog, wrong):
    table = keyed_table(catalog)
    for verb in (table.expire_snapshots, table.remove_orphans, table.expire_consumers):
        with pytest.raises(UsageError, match="older_than"):
            verb(older_than=wrong)
    with pytest.raises(UsageError, match="'7d'"):
        table.create_tag("x", retain=wrong)


def test_times_as_texts_stay_times(catalog):
    table = keyed_table(catalog)
    assert table.expire_snapshots(older_than="2001-01-01", retain_min=1).snapshot_ids == ()
    assert table.expire_snapshots(older_than=timedelta(days=1), retain_min=1).snapshot_ids == ()


def test_a_column_is_added_with_its_default(catalog):
    table = catalog.create_table("d.t", pa.schema([("a", pa.int64())]))
    table.write_arrow(pa.table({"a": [1]}))
    table.alter(AddColumn("b", "INT", default="7", position=First()), AddColumn("c", pa.string(), default="x"))
    assert [(field.name, field.default) for field in table.schema.fields] == [("b", "7"), ("a", None), ("c", "x")]
    table.write_arrow(pa.table({"a": [2]}))
    assert sorted(table.to_arrow().to_pylist(), key=lambda row: row["a"]) == [
        {"b": None, "a": 1, "c": None}, {"b": 7, "a": 2, "c": "x"},
    ]  # fmt: skip
    with pytest.raises(SchemaError):
        table.alter(AddColumn("d", "INT", default="seven"))
    assert len(table.schema.fields) == 3


def test_system_tables_are_read_as_tables_are(catalog):
    table = keyed_table(catalog)
    for name in ("snapshots", "files", "audit_log", "tags"):
        found = table.system(name)
        frame, rows = found.to_pandas(), found.to_arrow()
        assert isinstance(frame, pd.DataFrame) and len(frame) == rows.num_rows == found.count() > 0
        assert isinstance(found.to_polars(), pl.DataFrame) and found.head(1).num_rows == 1
    assert catalog.table("sys.tables").to_pandas()["table_name"].tolist() == ["keyed"]


@pytest.mark.parametrize("frame", [pd.DataFrame({"a": [1], "b": ["x"]}), pl.DataFrame({"a": [1], "b": ["x"]}), pa.table({"a": [1], "b": ["x"]})])
def test_a_frame_makes_a_table_with_its_columns(catalog, frame):
    table = catalog.create_table("d.t", frame)
    assert table.schema.names == ("a", "b") or list(table.schema.names) == ["a", "b"]
    assert table.count() == 0
    table.write_arrow(frame)
    assert table.to_arrow().to_pylist() == [{"a": 1, "b": "x"}]


def test_all_tables_are_views_of_duckdb(catalog):
    duckdb = pytest.importorskip("duckdb")
    keyed_table(catalog)
    catalog.create_database("other")
    catalog.create_table("other.odd name", pa.schema([("k", pa.int64())])).write_arrow(pa.table({"k": [1, 5]}))
    with duckdb.connect() as connection:
        assert catalog.to_duckdb(connection) == ["d.keyed", "other.odd name"]
        query = 'SELECT v FROM d.keyed JOIN other."odd name" USING (k) WHERE k = 1'
        assert connection.execute(query).fetchall() == [("x",)]
        assert catalog.to_duckdb(connection, ["d"]) == ["d.keyed"], "a view that is there is replaced"
        catalog.table("d.keyed").write_arrow(ROWS.slice(0, 1).set_column(1, "k", pa.array([9])))
        catalog.to_duckdb(connection)
        assert connection.execute("SELECT count(*) FROM d.keyed").fetchone() == (3,)
        with pytest.raises(UsageError, match="a list of names"):
            catalog.to_duckdb(connection, "d")
    with pytest.raises(UsageError, match=r"duckdb\.connect\(\)"):
        catalog.to_duckdb("connection")
