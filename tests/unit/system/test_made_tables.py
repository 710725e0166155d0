"""System tables that tell of a table: columns, filters and what they spare, time travel, pickles, what is refused."""

from __future__ import annotations

import pickle
from datetime import timedelta

import duckdb
import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, SetOption, UnsupportedError, UsageError, col
from paimon_py.env import Env
from paimon_py.metadata.root import TableRoot
from paimon_py.system.kinds import MADE
from paimon_py.system.made_scan import MadeSplit
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


def test_a_filter_on_the_key_spares_reading_the_others(table):
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


@pytest.mark.parametrize(
    "retain, text",
    [
        (timedelta(days=30), "PT720H"), (timedelta(minutes=90), "PT1H30M"), (timedelta(seconds=1.5), "PT1.5S"),
        (timedelta(0), "PT0S"), (timedelta(minutes=1, seconds=2), "PT1M2S"),
    ],
)  # fmt: skip
def test_tags_tell_their_retention_as_java_does(retain, text):
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


def test_a_scan_and_its_split_travel(table):
    scan = table.system("snapshots").scan(columns=["snapshot_id"], where="snapshot_id < 3")
    again = pickle.loads(pickle.dumps(scan))
    assert again.to_arrow() == scan.to_arrow()
    assert repr(again) == repr(scan)
    (split,) = scan.splits()
    assert again.read(bytes(split)).read_all() == scan.to_arrow()
    assert MadeSplit.from_bytes(bytes(split)) == split
    with pytest.raises(UsageError, match="split is of"):
        table.system("schemas").scan().read(split)
    with pytest.raises(UsageError, match="not the bytes of a split"):
        scan.read(b"x")
    made = table.system("snapshots")
    assert pickle.loads(pickle.dumps(made)).scan().to_arrow() == made.scan().to_arrow()


def test_a_scan_explains_itself(table):
    told = table.system("snapshots").scan(where="snapshot_id > 2", limit=1).explain(analyze=True)
    assert (told.rows_made, told.rows_returned, told.limit) == (2, 1, 1)
    assert "predicate" in str(told) and "2 made, 1 returned" in str(told)
    assert table.system("statistics").scan().explain().snapshot_id == 4


def test_what_does_not_go_is_refused(table):
    with pytest.raises(UsageError, match="no earlier states"):
        table.system("snapshots").scan(snapshot_id=2)
    with pytest.raises(UsageError, match="shows states alone"):
        table.system("statistics").scan(options={"incremental-between": "1,2"})
    with pytest.raises(UsageError, match="commit_knd"):
        table.system("snapshots").scan(where=col("commit_knd") == "APPEND")
    with pytest.raises(UsageError, match="limit"):
        table.system("snapshots").scan(limit=-1)
    with pytest.raises(UsageError, match="did you mean \\$snapshots"):
        table.system("snapshot")
    with pytest.raises(UnsupportedError, match="row_tracking"):
        table.system("row_tracking")


@pytest.mark.parametrize("name", sorted(MADE))
def test_every_column_can_be_asked_for_alone_and_every_table_of_an_empty_table(catalog, table, name):
    whole = table.system(name).scan().to_arrow()
    assert whole.schema.names == list(table.system(name).schema.names)
    for column in whole.schema.names:
        assert table.system(name).scan(columns=[column]).to_arrow() == whole.select([column])
    empty = catalog.create_table("d.empty", Schema([("k", "INT")]))
    assert empty.system(name).scan().count() == (1 if name in ("schemas", "aggregation_fields") else 0)
