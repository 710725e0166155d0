"""System tables that tell of a table: columns, filters and what they spare, time travel, pickles, what is refused."""

from __future__ import annotations

import pickle
from datetime import timedelta

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, RenameColumn, Schema, SetOption, Table, UpdateColumnDefault, UsageError, col
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.system.kinds import MADE
from paimon_py.system.metadata_scan import MetadataSplit
from paimon_py.testing.counting_store import CountingStore


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path / "wh"))
    made.create_database("d")
    return made


@pytest.fixture
def table(catalog):
    columns = Schema([("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "BIGINT")])
    options = {"bucket": "2", "write-only": "true", "merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
    made = catalog.create_table("d.t", columns, primary_key=["k", "p"], partition_by=["p"], options=options)
    for number in range(4):
        made.write_arrow(pa.table({"k": pa.array([number, 9], pa.int32()), "p": ["x", "y"], "v": [number, 1]}))
    return made


def dicts(scan):
    found = scan.to_arrow().to_pylist()
    assert scan.count() == len(found)
    return found


def test_snapshots_have_javas_columns_and_are_scanned_like_rows(table, catalog):
    made = catalog.table("d.t$snapshots")
    assert made.name == "d.t$snapshots" and made.schema.primary_keys == ("snapshot_id",)
    assert made.schema.names[:4] == ("snapshot_id", "schema_id", "commit_user", "commit_identifier")
    scan = made.scan(columns=["snapshot_id", "total_record_count"], where="snapshot_id > 2 AND commit_kind = 'APPEND'")
    assert dicts(scan) == [{"snapshot_id": 3, "total_record_count": 6}, {"snapshot_id": 4, "total_record_count": 8}]
    assert scan.to_reader().read_all() == pa.table(scan) == scan.to_arrow()
    assert scan.to_pandas()["snapshot_id"].tolist() == scan.to_polars()["snapshot_id"].to_list() == [3, 4]
    assert scan.head(1).num_rows == 1
    assert made.scan(limit=3).count() == made.scan(limit=3).to_arrow().num_rows == 3
    assert made.scan(limit=0).to_arrow().num_rows == 0
    assert made.scan(columns=[]).to_arrow().num_rows == 4
    connection = duckdb.connect()
    scan.to_duckdb(connection, "s")
    assert connection.execute("select max(snapshot_id) from s").fetchall() == [(4,)]


def test_a_filter_on_the_key_skips_reading_other_rows(table):
    for name, where, gets in (("snapshots", "snapshot_id IN (2, 3)", 2), ("snapshots", "snapshot_id >= 4", 1)):
        store = CountingStore(table._root.store)
        counted = type(table)(TableRoot(store, table.location, Env()), table.schema, "t")
        scan = counted.system(name).scan(where=where)
        assert scan.to_arrow().num_rows == gets
        assert store.calls["get"] == gets


def test_schemas_options_and_aggregates(table, catalog):
    table.alter(SetOption("snapshot.time-retained", "2 h"))
    found = dicts(table.system("schemas").scan(columns=["schema_id", "fields", "primary_keys", "options"]))
    assert [row["schema_id"] for row in found] == [0, 1]
    assert found[0]["fields"].startswith('[{"id":0,"name":"k","type":"INT NOT NULL"},')
    assert found[0]["primary_keys"] == '["k","p"]'
    assert found[1]["options"].endswith('"snapshot.time-retained":"2 h"}')
    options = dicts(table.system("options").scan(where=col("key") == "bucket"))
    assert options == [{"key": "bucket", "value": "2"}]
    told = dicts(table.system("aggregation_fields").scan(columns=["field_name", "function", "function_options"]))
    assert told[0] == {"field_name": "k", "function": "[]", "function_options": "[]"}
    assert told[2] == {"field_name": "v", "function": "[sum]", "function_options": "[fields.v.aggregate-function]"}


def test_types_inside_rows_are_shown_as_in_java(catalog):
    row = "ROW<`a``b` INT NOT NULL 'it''s', c STRING> NOT NULL"
    made = catalog.create_table("d.nested", Schema([("k", "INT"), ("m", f"MAP<STRING NOT NULL, ARRAY<{row}>> NOT NULL")]))
    made.alter(UpdateColumnDefault(["m", "value", "element", "c"], "x'y"))
    told = dicts(made.system("aggregation_fields").scan(columns=["field_type"]))
    inside = "ROW<`a``b` INT NOT NULL COMMENT 'it''s', `c` STRING DEFAULT x'y> NOT NULL"
    assert [one["field_type"] for one in told] == ["INT", f"MAP<STRING NOT NULL, ARRAY<{inside}>> NOT NULL"]


@pytest.mark.parametrize(
    "retain, text",
    [
        (timedelta(days=30), "PT720H"), (timedelta(minutes=90), "PT1H30M"), (timedelta(seconds=1.5), "PT1.5S"),
        (timedelta(0), "PT0S"), (timedelta(minutes=1, seconds=2), "PT1M2S"),
    ],
)  # fmt: skip
def test_tags_show_their_retention_as_in_java(retain, text):
    from paimon_py.system.metadata_tables import _duration

    assert _duration(retain.total_seconds()) == text


def test_tags_and_consumers(table):
    table.create_tag("t1", snapshot_id=1)
    table.create_tag("t2", snapshot_id=2, retain=timedelta(days=1))
    found = dicts(table.system("tags").scan(where=col("tag_name") == "t2"))
    assert [(row["snapshot_id"], row["record_count"], row["time_retained"]) for row in found] == [(2, 4, "PT24H")]
    assert dicts(table.system("tags").scan(columns=["tag_name", "create_time"]))[0]["create_time"] is None
    table.stream(consumer_id="c", from_=2).poll().acknowledge()
    assert dicts(table.system("consumers").scan()) == [{"consumer_id": "c", "next_snapshot_id": 3}]
    assert dicts(table.system("branches").scan()) == []


def test_statistics_are_those_of_the_state(table):
    assert dicts(table.system("statistics").scan()) == []
    table.analyze(columns=["v"])
    assert [row["schema_id"] for row in dicts(table.system("statistics").scan())] == [0]
    assert dicts(table.system("statistics").scan(snapshot_id=1)) == []


def test_a_scan_and_its_split_can_be_sent_to_another_process(table):
    scan = table.system("snapshots").scan(columns=["snapshot_id"], where="snapshot_id < 3")
    again = pickle.loads(pickle.dumps(scan))
    assert again.to_arrow() == scan.to_arrow()
    assert repr(again) == repr(scan)
    (split,) = scan.splits()
    assert again.read(bytes(split)).read_all() == scan.to_arrow()
    assert MetadataSplit.from_bytes(bytes(split)) == split
    with pytest.raises(UsageError, match="split belongs to"):
        table.system("schemas").scan().read(split)
    with pytest.raises(UsageError, match="not the bytes of a split"):
        scan.read(b"x")
    made = table.system("snapshots")
    assert pickle.loads(pickle.dumps(made)).scan().to_arrow() == made.scan().to_arrow()


def test_a_scan_explains_itself(table):
    told = table.system("snapshots").scan(where="snapshot_id > 2", limit=1).explain(analyze=True)
    assert (told.rows_produced, told.rows_returned, told.limit) == (2, 1, 1)
    assert "predicate" in str(told) and "2 produced, 1 returned" in str(told)
    assert table.system("statistics").scan().explain().snapshot_id == 4


def test_unsupported_requests_to_metadata_tables_are_refused(table):
    with pytest.raises(UsageError, match="no earlier states"):
        table.system("snapshots").scan(snapshot_id=2)
    with pytest.raises(UsageError, match="has no changes, only states"):
        table.system("statistics").scan(options={"incremental-between": "1,2"})
    with pytest.raises(UsageError, match="commit_knd"):
        table.system("snapshots").scan(where=col("commit_knd") == "APPEND")
    with pytest.raises(UsageError, match="limit"):
        table.system("snapshots").scan(limit=-1)
    with pytest.raises(UsageError, match="did you mean \\$snapshots"):
        table.system("snapshot")
    with pytest.raises(UsageError, match="row-tracking.enabled"):
        table.system("row_tracking")


def test_files_lists_every_live_file(table):
    files = dicts(table.system("files").scan())
    assert len(files) == 8 and {row["partition"] for row in files} == {"{x}", "{y}"}
    first = next(row for row in files if row["partition"] == "{x}" and row["min_key"] == "[0]")
    assert first["max_key"] == "[0]" and first["level"] == 0 and first["file_format"] == "parquet"
    assert first["null_value_counts"] == "{k=0, p=0, v=0}" and first["min_value_stats"] == "{k=0, p=x, v=0}"
    assert first["file_path"].startswith(f"{table.location}/p=x/bucket-{first['bucket']}/data-")
    assert first["file_source"] == "APPEND" and first["write_cols"] is None
    ranges = table.system("file_key_ranges").scan().to_arrow()
    assert ranges == table.system("files").scan(columns=ranges.column_names).to_arrow()
    assert table.system("files").scan(snapshot_id=1).count() == 2


def test_buckets_and_partitions_count_live_files(table):
    table.drop_partitions([{"p": "y"}])
    counts = [row["file_count"] for row in dicts(table.system("buckets").scan(where="partition = '{x}'"))]
    assert counts == [2, 2]
    assert table.system("buckets").scan(where="partition = '{y}'").count() == 0
    (row,) = dicts(table.system("partitions").scan())
    assert (row["partition"], row["record_count"], row["file_count"]) == ("p=x", 4, 4)
    assert (row["total_buckets"], row["done"], row["deleted_record_count"]) == (2, False, 0)
    assert dicts(table.system("partitions").scan(tag=None, snapshot_id=1, columns=["partition"])) == [
        {"partition": "p=x"}, {"partition": "p=y"},
    ]  # fmt: skip


def test_waiting_files_are_listed_by_buckets_only(catalog):
    options = {"bucket": "-2", "postpone.default-bucket-num": "1"}
    made = catalog.create_table("d.w", Schema([("k", "INT NOT NULL")]), primary_key=["k"], options=options)
    made.write_arrow(pa.table({"k": pa.array([1, 2], pa.int32())}))
    assert [row["bucket"] for row in dicts(made.system("buckets").scan())] == [-2]
    assert [made.system(name).scan().count() for name in ("files", "file_key_ranges", "partitions")] == [0, 0, 0]
    made.compact()
    assert [made.system(name).scan().count() for name in ("files", "file_key_ranges", "partitions")] == [1, 1, 1]


def test_manifests_are_listed_with_their_counts(table):
    found = dicts(table.system("manifests").scan(columns=["num_added_files", "min_partition_stats", "max_partition_stats"]))
    assert found == [{"num_added_files": 2, "min_partition_stats": "{x}", "max_partition_stats": "{y}"}] * 4


def test_bounds_are_shown_by_the_schema_of_the_state(table):
    table.alter(RenameColumn("v", "w"), AddColumn("n", "STRING"))
    for row in dicts(table.system("files").scan(columns=["null_value_counts", "max_value_stats"], where="partition = '{y}'")):
        assert row == {"null_value_counts": "{k=0, n=1, p=0, w=0}", "max_value_stats": "{k=9, n=null, p=y, w=1}"}
    (row, *_) = dicts(table.system("files").scan(snapshot_id=1, columns=["max_value_stats"]))
    assert row["max_value_stats"].endswith("v=0}") or row["max_value_stats"].endswith("v=1}")


def test_deletion_vectors_are_counted(catalog):
    columns = Schema([("k", "INT NOT NULL"), ("v", "STRING")])
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    made = catalog.create_table("d.v", columns, primary_key=["k"], options=options)
    made.write_arrow(pa.table({"k": pa.array(range(9), pa.int32()), "v": list("abcdefghi")}))
    made.compact(full=True)
    made.write_arrow(pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["x", "y"]}))
    made.compact()
    (row,) = dicts(made.system("partitions").scan())
    indexes = dicts(made.system("table_indexes").scan())
    ranges = [each for one in indexes for each in one["dv_ranges"] or []]
    assert row["deleted_record_count"] == sum(each["_CARDINALITY"] for each in ranges)
    assert {one["index_type"] for one in indexes} == {"DELETION_VECTORS"}


@pytest.mark.parametrize("inside", ["1 b", "1 mb"])
def test_file_indexes_are_listed_by_column(catalog, inside):
    options = {"file-index.bloom-filter.columns": "a", "file-index.bitmap.columns": "b", "file-index.in-manifest-threshold": inside}
    made = catalog.create_table("d.i", Schema([("a", "INT"), ("b", "STRING")]), options=options)
    made.write_arrow(pa.table({"a": pa.array([1, 2], pa.int32()), "b": ["x", None]}))
    found = dicts(made.system("file_indexes").scan())
    assert sorted((row["column_name"], row["index_type"]) for row in found) == [("a", "bloom-filter"), ("b", "bitmap")]
    for row in found:
        assert 0 < row["index_size_in_bytes"] < row["index_container_size_in_bytes"] and not row["is_empty"]
        assert (row["storage_type"], row["index_file_path"] is None) == (("FILE", False) if inside == "1 b" else ("EMBEDDED", True))
        assert row["index_file_path"] is None or row["index_file_path"].startswith(made.location)
    assert made.system("file_indexes").scan(where="bucket = 7").count() == 0


FILTERS = (
    "bucket = 0", "bucket >= 1", "bucket IN (0, 5)", "partition = '{x}'", "partition <> '{x}'", "partition IS NULL",
    "partition > '{x}' OR bucket = 1",
)  # fmt: skip


@pytest.mark.parametrize("name", ["files", "file_key_ranges", "buckets"])
def test_a_pushed_filter_returns_the_same_rows_as_a_late_one(table, name):
    table.compact(partitions=[{"p": "x"}], full=True)
    whole = pl.from_arrow(table.system(name).scan().to_arrow())
    level = ("level = 5", "level > 0 AND partition LIKE '{y%'") if name != "buckets" else ()
    for where in (*FILTERS, *level):
        found = pl.from_arrow(table.system(name).scan(where=where).to_arrow())
        assert found.equals(whole.filter(pl.sql_expr(where))), where


def test_filters_on_files_skip_manifests(catalog):
    columns = Schema([("k", "INT"), ("p", "STRING")])
    made = catalog.create_table("d.a", columns, partition_by=["p"])
    for part in "abc":
        made.write_arrow(pa.table({"k": pa.array([1], pa.int32()), "p": [part]}))
    store = CountingStore(made._root.store)
    counted = Table(TableRoot(store, made.location, Env()), made.schema, "a")
    assert counted.system("files").scan(where="partition = '{b}'").count() == 1
    assert sum("/manifest/manifest-" in path and "list" not in path for verb, path in store.paths if verb == "get") == 1


def test_tables_of_all_tables(table, catalog):
    catalog.create_table("d.other", Schema([("a", "INT")]))
    scan = catalog.table("sys.tables").scan(columns=["table_name", "partitioned", "primary_key", "record_count"])
    assert dicts(scan) == [
        {"table_name": "other", "partitioned": False, "primary_key": False, "record_count": None},
        {"table_name": "t", "partitioned": True, "primary_key": True, "record_count": None},
    ]
    options = catalog.table("sys.all_table_options").scan(where="table_name = 'other'")
    assert dicts(options) == [
        {"database_name": "d", "table_name": "other", "key": "path", "value": f"{catalog.warehouse}/d.db/other"}
    ]
    parts = dicts(catalog.table("sys.partitions").scan(columns=["table_name", "partition_name", "record_count"]))
    assert parts == [{"table_name": "t", "partition_name": f"p={p}", "record_count": 4} for p in "xy"]
    assert catalog.table("sys.tables").name == "sys.tables"
    again = pickle.loads(pickle.dumps(catalog.table("sys.tables").scan()))
    assert again.count() == 2
    with pytest.raises(UsageError, match="table sys.nope does not exist"):
        catalog.table("sys.nope")


def test_catalog_options_hide_secrets(tmp_path):
    made = Catalog.open(str(tmp_path / "wh"), options={"s3.secret-key": "hush", "table-default.bucket": "3"})
    found = {row["key"]: row["value"] for row in dicts(made.table("sys.catalog_options").scan())}
    assert found == {"warehouse": made.warehouse, "s3.secret-key": "***", "table-default.bucket": "3"}


@pytest.mark.parametrize("name", sorted(MADE))
def test_every_column_can_be_read_alone_and_every_table_of_an_empty_table(catalog, table, name):
    whole = table.system(name).scan().to_arrow()
    assert whole.schema.names == list(table.system(name).schema.names)
    for column in whole.schema.names:
        assert table.system(name).scan(columns=[column]).to_arrow() == whole.select([column])
    empty = catalog.create_table("d.empty", Schema([("k", "INT")]))
    assert empty.system(name).scan().count() == (1 if name in ("schemas", "aggregation_fields") else 0)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_files_with_stored_row_ids_show_their_statistics(catalog, vectors):
    options = {"row-tracking.enabled": "true", "deletion-vectors.enabled": vectors, "compaction.min.file-num": "2"}
    table = catalog.create_table("d.tracked", pa.schema([("v", pa.int64()), ("s", pa.string())]), options=options)
    for number in range(3):
        table.write_arrow(pa.table({"v": [number], "s": [None]}))
    table.compact(full=True)
    (found,) = dicts(table.refresh().system("files").scan())
    assert found["write_cols"] == ["v", "s", "_ROW_ID", "_SEQUENCE_NUMBER"]
    assert found["min_value_stats"] == "{s=null, v=0}" and found["max_value_stats"] == "{s=null, v=2}"
    assert found["null_value_counts"] == "{s=3, v=0}"
