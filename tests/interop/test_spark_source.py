"""The data source of Spark 4, batch and streams, on a real local Spark; one session for the whole run.

On Spark 3.5 there are no data sources in Python; test_spark_versions.py runs this file on the others.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys

import pyarrow as pa
import pytest
from spark_sessions import MARKS, local_session

import paimon_py
from paimon_py import Catalog, Schema, Table

pytest.importorskip("pyspark.sql.datasource", reason="Spark has data sources in Python from 4.0 on")
pytestmark = [*MARKS, pytest.mark.full]


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone="Asia/Shanghai")


@pytest.fixture
def catalog(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db")
    return made


KEYED = {"primary_key": ["k"], "options": {"bucket": "2"}}


def keyed(catalog, name="db.t", **options):
    columns = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
    table = catalog.create_table(name, columns, primary_key=["k"], options={"bucket": "2", **options})
    table.write_arrow(pa.table({"k": range(10), "v": [f"a{k}" for k in range(10)]}))
    table.write_arrow(pa.table({"k": range(5, 15), "v": [f"b{k}" for k in range(5, 15)]}))
    return table


def loaded(spark, at=None, /, format="paimon", **options):
    reader = spark.read.format(format).options(**options)
    return reader.load() if at is None else reader.load(at.location)


def refused(call):
    """What Spark says about an error in the data source."""
    with pytest.raises(Exception) as error:  # noqa: B017, PT011
        call()
    return str(error.value)


# -- batch reads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["paimon", "paimon_py"])
def test_spark_finds_the_data_source_by_itself(spark, catalog, format):
    table = keyed(catalog)
    df = loaded(spark, table, format)
    assert dict(df.dtypes) == {"k": "bigint", "v": "string"}
    want = {k: f"{'b' if k >= 5 else 'a'}{k}" for k in range(15)}
    assert dict(map(tuple, df.collect())) == want
    assert df.rdd.getNumPartitions() == len(table.scan().splits())


def test_a_table_of_every_type_is_what_convert_to_spark_makes_of_it(spark, catalog):
    types = importlib.import_module("test_spark")
    table = catalog.create_table("db.t", Schema(types.COLUMNS), primary_key=["k"], options={"bucket": "3"})
    nothing = {"k": 100} | {name: None for name, _ in types.COLUMNS[1:]}
    rows = [*(types.row(key) for key in range(10)), nothing]
    table.write_arrow(pa.Table.from_pylist(rows, schema=table.scan().schema))
    converted, read = paimon_py.convert_to_spark(table, spark), loaded(spark, table)
    if dict(converted.dtypes)["t"] == "int":  # the process of a data source does not know whether TIME is allowed
        assert read.dtypes == converted.dtypes
    assert sorted(read.drop("t").collect(), key=str) == sorted(converted.drop("t").collect(), key=str)


def test_a_frame_keeps_its_snapshot_from_spark_4_1_on_and_a_new_one_sees_what_came(spark, catalog):
    table = keyed(catalog)
    df = loaded(spark, table)
    assert df.count() == 15
    table.write_arrow(pa.table({"k": [100], "v": ["c"]}))
    kept = not spark.version.startswith("4.0.")
    assert (df.count(), df.where("k >= 100").count(), df.count()) == ((15, 0, 15) if kept else (16, 1, 16))
    assert loaded(spark, table).count() == 16


def test_filters_of_spark_never_stay_with_a_frame(spark, catalog):
    df = loaded(spark, keyed(catalog))
    df.createOrReplaceTempView("t")
    assert [df.count(), df.where("k < 3").count(), df.count()] == [15, 3, 15]
    counts = [spark.sql(f"SELECT count(*) FROM t {where}").head()[0] for where in ("", "WHERE k < 3", "", "WHERE k > 8")]
    assert counts == [15, 3, 15, 6]


def test_javas_options_choose_the_state(spark, catalog):
    table = keyed(catalog)
    table.create_tag("one", snapshot_id=1)
    table.create_branch("b1", "one")
    between = table.snapshot().time_millis
    for options in (
        {"scan.snapshot-id": "1"}, {"scan.tag-name": "one"}, {"scan.version": "one"}, {"SCAN.VERSION": "1"},
        {"scan.mode": "from-snapshot", "scan.snapshot-id": "1"}, {"branch": "b1"},
    ):  # fmt: skip
        assert loaded(spark, table, **options).count() == 10, options
    for options in ({"scan.timestamp-millis": str(between)}, {"scan.mode": "latest"}, {"scan.creation-time-millis": "0"}):
        assert loaded(spark, table, **options).count() in (10, 15), options
    changes = loaded(spark, table, **{"incremental-between": "1,2"})
    assert changes.count() == 10
    assert changes.columns == ["k", "v", "_row_kind"]
    diff = loaded(spark, table, **{"incremental-between": "1,2", "incremental-between-scan-mode": "diff"})
    assert diff.count() == 10
    audit = loaded(spark, table, **{"read.changelog": "true", "incremental-between": "1,2"})
    assert {row.rowkind for row in audit.collect()} == {"+I"}
    times = {"incremental-between-timestamp": f"0,{between + 1}"}
    assert loaded(spark, table, **times).count() == 20


def test_columns_conditions_and_schemas_reach_the_scan(spark, catalog):
    table = keyed(catalog)
    assert loaded(spark, table, columns="v").columns == ["v"]
    assert loaded(spark, table, columns="v,k", where="k > 12").count() == 2
    reader = spark.read.format("paimon").schema("v string, k bigint")
    df = reader.option("filter", "v = 'b7'").load(table.location)
    assert df.collect() == [("b7", 7)]
    said = refused(spark.read.format("paimon").schema("k int, w string").load(table.location).collect)
    assert "column 'k' is bigint, not int" in said
    assert "column 'w' does not exist" in said


def test_tables_of_a_catalog_branches_and_system_tables(spark, catalog):
    table = keyed(catalog)
    table.create_branch("b1", from_=None)
    asked = {"warehouse": catalog.warehouse}
    assert loaded(spark, **asked, table="db.t").count() == 15
    assert loaded(spark, **asked, database="db", table="t").count() == 15
    assert loaded(spark, **asked, table="db.t$branch_b1").count() == 0
    assert [row.snapshot_id for row in loaded(spark, **asked, table="db.t$snapshots").collect()] == [1, 2]
    assert loaded(spark, **asked, table="db.t$files").count() == 4
    assert loaded(spark, **asked, table="db.t$audit_log").columns == ["rowkind", "k", "v"]


def test_an_empty_table_is_an_empty_frame(spark, catalog):
    empty = catalog.create_table("db.e", pa.schema([("a", pa.int64())]))
    df = loaded(spark, empty)
    assert (df.columns, df.count()) == (["a"], 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scan.snapshot-id": "9"}, "SnapshotNotFoundError: no snapshot 9"),
        ({"scan.snapshotid": "1"}, "did you mean 'scan.snapshot-id'"),
        ({"table": "db.x"}, "give either the path"),
        ({"columns": "k,x"}, "column 'x' does not exist"),
        ({"where": "k >"}, "UsageError"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_errors_say_what_to_do(spark, catalog, options, said):
    table = keyed(catalog)
    assert said in refused(lambda: loaded(spark, table, **options).collect())


def test_a_process_without_the_package_names_the_way_out(spark, monkeypatch):
    from pyspark.serializers import CloudPickleSerializer

    from paimon_py.spark.source.classes import source_class

    sent = CloudPickleSerializer().dumps(source_class("paimon"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "paimon_py"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    source = CloudPickleSerializer().loads(sent)({})
    with pytest.raises(RuntimeError, match=r"paimon_py.ship"):
        source.schema()


def test_the_data_source_can_be_registered_by_hand(spark, catalog):
    table = keyed(catalog)
    assert paimon_py.register(spark) is None
    paimon_py.ship(spark)
    assert loaded(spark, table).count() == 15


# -- batch writes -----------------------------------------------------------------------------------------------------


def saved(df, table, mode="append", format="paimon", **options):
    df.write.format(format).mode(mode).options(**options).save(table.location)
    return Catalog.open(os.path.dirname(os.path.dirname(table.location))).table(table.name)


def frame(spark, start, end, text="v"):
    return spark.range(start, end, 1, 3).selectExpr("id k", f"concat('{text}', id) v")


def content(table):
    rows = table.scan().to_arrow()
    return dict(zip(rows["k"].to_pylist(), rows["v"].to_pylist(), strict=True))


def numbered(start, end, text="v"):
    return {k: f"{text}{k}" for k in range(start, end)}


def no_orphans(table):
    return table.remove_orphans(older_than=0, dry_run=True).files == 0


COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
APPEND = {
    "none": {},
    "fixed": {"options": {"bucket": "2", "bucket-key": "k"}},
    "keyed": {"primary_key": ["k"], "options": {"bucket": "2"}},
    "keyed, compacting": {"primary_key": ["k"], "options": {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}},
    "keyed, changelog": {"primary_key": ["k"], "options": {"bucket": "2", "changelog-producer": "input"}},
    "postponed": {"primary_key": ["k"], "options": {"bucket": "-2"}},
}


@pytest.mark.parametrize("kind", APPEND)
def test_tasks_write_and_one_commit_publishes_them(spark, catalog, kind):
    table = catalog.create_table("db.t", COLUMNS, **APPEND[kind])
    saved(frame(spark, 0, 300, "a"), table)
    table = saved(frame(spark, 300, 400, "b"), table)
    if kind == "postponed":
        table.compact()
    assert content(table) == numbered(0, 300, "a") | numbered(300, 400, "b")
    if table.schema.primary_keys:
        table = saved(frame(spark, 100, 350, "c"), table)
        if kind == "postponed":
            table.compact()
        assert content(table) == numbered(0, 100, "a") | numbered(100, 350, "c") | numbered(350, 400, "b")
    assert no_orphans(table)


def test_rows_of_one_bucket_from_several_tasks_have_numbers_of_their_own(spark, catalog):
    table = catalog.create_table("db.t", COLUMNS, **KEYED)
    for text in "ab":
        table = saved(frame(spark, 0, 300, text), table)
    spans = {}
    for split in table.scan().splits():
        spans.setdefault(split.bucket, []).extend((file.min_sequence, file.max_sequence) for file in split.files)
    for found in spans.values():
        assert len(found) > 2
        assert all(before[1] < after[0] for before, after in zip(sorted(found), sorted(found)[1:], strict=False))


@pytest.mark.parametrize("options", [{"bucket": "-1"}, {}], ids=["dynamic", "moving"])
def test_keys_that_one_writer_places_come_from_several_tasks(spark, catalog, options):
    schema = Schema([("p", "INT NOT NULL"), ("k", "BIGINT NOT NULL"), ("v", "STRING")])
    keys = ["p", "k"] if options else ["k"]
    options = {**options, "dynamic-bucket.target-row-num": "7"}
    table = catalog.create_table("db.t", schema, primary_key=keys, partition_by=["p"], options=options)
    df = frame(spark, 0, 30).selectExpr("cast(k % 2 as int) p", "k", "v")
    for _ in range(2):  # the same keys keep their buckets
        table = saved(df.repartition(5), table)
        assert content(table) == numbered(0, 30)
        assert no_orphans(table)
    assert len({split.bucket for split in table.scan().splits()}) > 1
    removed = df.where("k < 10").selectExpr("p", "k", "v", "'-D' AS _row_kind").repartition(3)
    assert content(saved(removed, table)) == numbered(10, 30)
    if "bucket" not in options:  # a key that moves to another partition leaves the first one
        moved = saved(df.selectExpr("1 - p AS p", "k", "v").where("k >= 20").repartition(3), table)
        assert content(moved) == numbered(10, 30)
    assert content(saved(frame(spark, 40, 44).selectExpr("1 p", "k", "v"), table, "overwrite")) == numbered(40, 44)
    assert content(saved(df.where("k < 0"), table, "overwrite")) == {}
    assert no_orphans(table)


def test_small_splits_share_a_task(spark, catalog, tmp_path):
    table = catalog.create_table("db.t", Schema([("p", "INT"), ("k", "BIGINT")]), partition_by=["p"])
    table.write_arrow(pa.table({"p": pa.array(range(100), pa.int32()), "k": range(100)}))
    df = loaded(spark, table)
    assert len(table.scan().splits()) == 100
    assert df.rdd.getNumPartitions() < 30
    assert sorted(row.k for row in df.collect()) == list(range(100))
    target = catalog.create_table("db.into", Schema([("p", "INT"), ("k", "BIGINT")]))
    streamed(followed(spark, table), target, tmp_path / "check")
    assert sorted(target.refresh().to_arrow()["k"].to_pylist()) == list(range(100))
    assert target.system("files").scan().count() < 30


def test_what_sql_knows_no_type_of_is_written(spark, catalog):
    nested = [("k", "BIGINT"), ("a", {"type": "ARRAY", "element": "INT"}), ("m", {"type": "MAP", "key": "DATE NOT NULL", "value": "INT"})]
    table = catalog.create_table("db.t", Schema(nested))
    saved(spark.range(2).selectExpr("id AS K", "array() AS A", "map() AS m"), table)
    assert table.refresh().to_arrow().sort_by("k").to_pylist() == [{"k": k, "a": [], "m": []} for k in range(2)]


def test_a_condition_is_read_where_the_option_says_that_the_clocks_are(spark, catalog):
    table = catalog.create_table("db.t", Schema([("k", "INT"), ("ts", "TIMESTAMP(6) WITH LOCAL TIME ZONE")]))
    paimon_py.write_spark(table, spark.sql("SELECT CAST(id AS INT) k, timestamp_seconds(1719784800 + 3600 * id) ts FROM range(12)"))
    text = "ts < TIMESTAMP '2024-07-01 00:00:00'"
    assert "timeZone" in refused(lambda: loaded(spark, table, where=text).count())
    for zone, count in (("UTC", 2), ("America/New_York", 6), ("Asia/Shanghai", 0)):
        assert loaded(spark, table, where=text, timeZone=zone).count() == count
    assert loaded(spark, table, where="K < 3").count() == 3


def test_a_write_to_a_new_place_makes_the_table(spark, catalog, tmp_path):
    place = tmp_path / "new" / "t"
    df = spark.sql("SELECT id AS k, CAST(id % 2 AS INT) AS p, 'a' AS v, TIMESTAMP '2024-07-01 00:00:00' AS ts, array(1) AS xs FROM range(10)")
    options = {"primary-key": "p,k", "partition": "p", "bucket": "2"}
    for _ in range(2):  # the same job again
        df.write.format("paimon").mode("append").options(**options).save(str(place))
    table = Table.open(str(place))
    assert (table.schema.primary_keys, table.schema.partition_keys, table.options["bucket"]) == (("p", "k"), ("p",), "2")
    assert {field.name: str(field.type) for field in table.scan().schema} == {
        "k": "int64", "p": "int32", "v": "string", "ts": "timestamp[us, tz=UTC]", "xs": "list<element: int32>",
    }  # fmt: skip
    assert table.scan().count() == 10
    assert loaded(spark, table).where("k = 3").count() == 1
    said = refused(lambda: df.write.format("paimon").mode("append").option("primary-key", "k").save(str(place)))
    assert "keys never change" in said
    named = {"warehouse": catalog.warehouse, "table": "db.plain"}
    df.write.format("paimon").mode("overwrite").options(**named).save()
    assert catalog.table("db.plain").scan().count() == 10
    bad = refused(lambda: df.selectExpr("k", "null AS n").write.format("paimon").mode("append").save(str(tmp_path / "bad")))
    assert "void" in bad
    assert not (tmp_path / "bad").exists()
    stream = followed(spark, table).writeStream.format("paimon").option("checkpointLocation", str(tmp_path / "check"))
    stream.trigger(availableNow=True).start(str(tmp_path / "streamed")).awaitTermination()
    assert Table.open(str(tmp_path / "streamed")).scan().count() == 10


def test_a_frame_is_a_schema_for_a_new_table(spark, catalog):
    df = spark.sql("SELECT 1 AS k, 'a' AS v, CAST(1 AS DECIMAL(10, 2)) AS n, named_struct('x', map('a', DATE '2024-01-01')) AS r")
    table = catalog.create_table("db.t", df, primary_key=["k"])
    paimon_py.write_spark(table, df)
    assert table.to_arrow().to_pylist()[0]["v"] == "a"
    assert catalog.create_table("db.u", df.schema).schema.fields[1:] == table.schema.fields[1:]


def test_overwrites_replace_what_was_asked_for(spark, catalog):
    schema = Schema([("p", "INT"), ("k", "BIGINT"), ("v", "STRING")])
    table = catalog.create_table("db.t", schema, partition_by=["p"])
    df = frame(spark, 0, 10).selectExpr("cast(k % 2 as int) p", "k", "v")
    table = saved(df, table, "overwrite")
    assert content(table) == numbered(0, 10)
    some = df.where("k = 3")
    table = saved(some, table, "overwrite", partitionOverwriteMode="dynamic")
    assert sorted(content(table)) == [0, 2, 3, 4, 6, 8]
    table = saved(some, table, "overwrite", **{"overwrite-mode": "Dynamic"})
    assert sorted(content(table)) == [0, 2, 3, 4, 6, 8]
    table = saved(some, table, "overwrite")
    assert content(table) == numbered(3, 4)
    assert "static or dynamic" in refused(lambda: saved(some, table, "overwrite", **{"overwrite-mode": "all"}))
    assert "this write appends" in refused(lambda: saved(some, table, **{"overwrite-mode": "static"}))
    assert content(table) == numbered(3, 4)


def test_what_does_not_fit_is_refused_before_tasks_run_and_leaves_nothing(spark, catalog):
    table = catalog.create_table("db.t", COLUMNS, **KEYED)
    df = frame(spark, 0, 10)
    assert "string given, BIGINT NOT NULL needed" in refused(lambda: saved(df.selectExpr("v k", "v"), table))
    assert "no such column" in refused(lambda: saved(df.withColumn("z", df.k), table))
    assert "column k is NOT NULL" in refused(lambda: saved(df.selectExpr("if(k = 7, null, k) k", "v"), table))
    assert "boo" in refused(lambda: saved(df.selectExpr("k", "if(k = 9, raise_error('boo'), v) v"), table))
    assert "is for reads" in refused(lambda: saved(df, table, **{"scan.snapshot-id": "1"}))
    assert "not for batch writes" in refused(lambda: saved(df, table, columns="k"))
    assert table.snapshot() is None
    assert no_orphans(table)
    kinds = df.selectExpr("*", "if(k < 3, '-D', '+I') _row_kind")
    assert content(saved(kinds, table)) == numbered(3, 10)


def test_the_schema_follows_the_data_where_that_is_asked_for(spark, catalog):
    schema = Schema([("k", "INT"), ("r", {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]})])
    table = catalog.create_table("db.t", schema)
    df = spark.sql("SELECT 1 k, struct(2 x, 'new' y) r, DATE'2024-01-01' d")
    assert "no such column" in refused(lambda: saved(df.select("k", "d"), table))
    assert "give struct<x:int>" in refused(lambda: saved(df.select("k", "r"), table))
    on = {"write.merge-schema": "true"}
    table = saved(df, table, **on)
    assert table.schema.names == ("k", "r", "d")
    assert table.scan(columns=["r"]).to_arrow().to_pylist() == [{"r": {"x": 2, "y": "new"}}]
    wide = df.selectExpr("5000000000L k")
    assert "SchemaError" in refused(lambda: saved(wide, table, **on))
    on["write.merge-schema.type-widening"] = "true"
    table = saved(wide, table, **on)
    assert table.scan(columns=["k"]).to_arrow()["k"].to_pylist() == [1, 5_000_000_000]
    text = df.selectExpr("'7' k")
    assert "explicit-cast" in refused(lambda: saved(text, table, **on))
    table = saved(text, table, **on, **{"write.merge-schema.explicit-cast": "true"})
    assert sorted(table.scan(columns=["k"]).to_arrow()["k"].to_pylist()) == ["1", "5000000000", "7"]


def test_a_batch_that_is_repeated_commits_once(spark, catalog):
    table = catalog.create_table("db.t", COLUMNS, **KEYED)
    named = {"commit-user": "me", "commit-identifier": "7"}
    for text in "ab":
        table = saved(frame(spark, 0, 30, text), table, **named)
    assert content(table) == numbered(0, 30, "a")
    assert no_orphans(table)
    assert "give commit-user" in refused(lambda: saved(frame(spark, 0, 3), table, **{"commit-identifier": "8"}))


def test_rows_go_to_branches_and_with_options_of_the_table(spark, catalog):
    table = catalog.create_table("db.t", COLUMNS)
    table.create_branch("b1")
    saved(frame(spark, 0, 5), table, branch="b1", format="paimon_py", **{"file.format": "orc"})
    assert table.scan().count() == 0
    assert content(table.branch("b1")) == numbered(0, 5)
    assert {name.rpartition(".")[2] for name in data_files(table)} == {"orc"}


def data_files(table):
    found = os.walk(os.path.join(table.location, "bucket-0"))
    return [name for _, _, names in found for name in names]


# -- sinks ------------------------------------------------------------------------------------------------------------


def drop_files(spark, path, numbers):
    """One file of a streaming source for each number: ten keys."""
    for number in numbers:
        df = frame(spark, 10 * number, 10 * number + 10).repartition(2)
        df.coalesce(1).write.mode("append").parquet(str(path))


def source(spark, path):
    return spark.readStream.schema("k bigint, v string").option("maxFilesPerTrigger", 1).parquet(str(path))


def streamed(df, table, checkpoint, mode="append", **options):
    writing = df.writeStream.format("paimon").outputMode(mode).option("checkpointLocation", str(checkpoint))
    query = writing.options(**options).trigger(availableNow=True).start(table.location)
    try:
        query.awaitTermination()
    finally:
        query.stop()


def forget_the_last_batch(checkpoint):
    """As if Spark had died after the commit and before it noted that the batch is done."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    return last


@pytest.mark.parametrize("keys", [{}, KEYED], ids=["append", "keyed"])
def test_each_batch_of_a_stream_commits_once_also_when_it_is_run_again(spark, catalog, tmp_path, keys):
    table = catalog.create_table("db.t", COLUMNS, **keys)
    drop_files(spark, tmp_path / "in", [0, 1])
    df, checkpoint = source(spark, tmp_path / "in").repartition(2), tmp_path / "checkpoint"
    streamed(df, table, checkpoint)
    assert content(table) == numbered(0, 20)
    identifiers = [snapshot.commit_identifier for snapshot in table.snapshots()]
    assert identifiers == [0, 1]
    assert len({snapshot.commit_user for snapshot in table.snapshots()}) == 1
    assert forget_the_last_batch(checkpoint) == 1
    drop_files(spark, tmp_path / "in", [2])
    streamed(df, table, checkpoint)
    assert sorted({snapshot.commit_identifier for snapshot in table.snapshots()}) == [0, 1, 2]
    assert table.scan().count() == 30
    assert content(table) == numbered(0, 30)
    assert no_orphans(table)


def test_a_checkpoint_that_was_lost_loses_no_rows(spark, catalog, tmp_path):
    table = catalog.create_table("db.t", COLUMNS, **KEYED)
    drop_files(spark, tmp_path / "in", [0])
    streamed(source(spark, tmp_path / "in"), table, tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.rmtree(tmp_path / "in")
    drop_files(spark, tmp_path / "in", [1])
    streamed(source(spark, tmp_path / "in"), table, tmp_path / "checkpoint")
    assert content(table) == numbered(0, 20)


def test_a_user_that_is_given_counts_the_batches(spark, catalog, tmp_path):
    table = catalog.create_table("db.t", COLUMNS)
    drop_files(spark, tmp_path / "in", [0])
    for checkpoint in ("one", "two"):
        streamed(source(spark, tmp_path / "in"), table, tmp_path / checkpoint, **{"commit-user": "me"})
    assert content(table) == numbered(0, 10)
    assert [snapshot.commit_user for snapshot in table.snapshots()] == ["me"]


def test_complete_mode_replaces_the_table_with_each_batch(spark, catalog, tmp_path):
    table = catalog.create_table("db.t", Schema([("g", "BIGINT"), ("n", "BIGINT")]))
    drop_files(spark, tmp_path / "in", [0, 1])
    counted = source(spark, tmp_path / "in").selectExpr("k % 2 g").groupBy("g").count().withColumnRenamed("count", "n")
    streamed(counted, table, tmp_path / "checkpoint", "complete")
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == [{"g": 0, "n": 10}, {"g": 1, "n": 10}]
    forget_the_last_batch(tmp_path / "checkpoint")
    streamed(counted, table, tmp_path / "checkpoint", "complete")
    assert sorted(table.scan().to_arrow().to_pylist(), key=str) == [{"g": 0, "n": 10}, {"g": 1, "n": 10}]


def test_a_sink_merges_schemas_and_refuses_what_does_not_fit(spark, catalog, tmp_path):
    table = catalog.create_table("db.t", Schema([("k", "BIGINT")]))
    drop_files(spark, tmp_path / "in", [0])
    df = source(spark, tmp_path / "in")
    assert "no such column" in refused(lambda: streamed(df, table, tmp_path / "one"))
    streamed(df, table, tmp_path / "two", **{"write.merge-schema": "true"})
    assert content(catalog.table("db.t")) == numbered(0, 10)


# -- streams ----------------------------------------------------------------------------------------------------------


def followed(spark, table, columns=None, **options):
    reader = spark.readStream.format("paimon").options(**options)
    return (reader if columns is None else reader.schema(columns)).load(table.location)


def more(table, start, end, text="v"):
    table.write_arrow(pa.table({"k": range(start, end), "v": [f"{text}{k}" for k in range(start, end)]}))


def limits(spark):
    """Whether this Spark can limit a batch."""
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 2)


@pytest.mark.parametrize("keys", [{}, KEYED], ids=["append", "keyed"])
def test_a_table_is_followed_into_another_one_and_nothing_is_lost_or_doubled(spark, catalog, tmp_path, keys):
    table = catalog.create_table("db.t", COLUMNS, **keys)
    copy = catalog.create_table("db.copy", COLUMNS)
    checkpoint = tmp_path / "checkpoint"

    def run():
        streamed(followed(spark, table), copy, checkpoint)
        return sorted(copy.scan().to_arrow()["k"].to_pylist())

    assert run() == []
    more(table, 0, 10)
    more(table, 10, 20)
    assert run() == list(range(20))
    assert run() == list(range(20))
    more(table, 20, 30)
    table.compact(full=True)
    assert run() == list(range(30))
    forget_the_last_batch(checkpoint)
    more(table, 30, 40)
    for _ in range(1 if limits(spark) else 2):  # before Spark 4.2 a run has one batch, here the one that is run again
        found = run()
    assert found == list(range(40))
    assert no_orphans(copy)


def test_a_query_that_never_finished_its_first_batch_reads_the_same_again(spark, catalog, tmp_path):
    table, copy = keyed(catalog), catalog.create_table("db.copy", COLUMNS)
    streamed(followed(spark, table), copy, tmp_path / "checkpoint")
    assert forget_the_last_batch(tmp_path / "checkpoint") == 0
    more(table, 100, 110)
    for _ in range(1 if limits(spark) else 2):
        streamed(followed(spark, table), copy, tmp_path / "checkpoint")
    assert sorted(copy.scan().to_arrow()["k"].to_pylist()) == [*range(15), *range(100, 110)]
    assert no_orphans(copy)


def test_a_first_scan_and_snapshots_are_cut_into_batches(spark, catalog, tmp_path):
    table, copy = keyed(catalog), catalog.create_table("db.copy", COLUMNS)
    more(table, 100, 110)
    limit = {"read.stream.maxFilesPerTrigger": "1"}
    if not limits(spark):
        assert "from Spark 4.2 on" in refused(
            lambda: streamed(followed(spark, table, **limit), copy, tmp_path / "checkpoint")
        )
        return
    streamed(followed(spark, table, **limit), copy, tmp_path / "checkpoint")
    begun = len(list(copy.snapshots()))
    assert begun == len(table.scan().splits()) == 2
    forget_the_last_batch(tmp_path / "checkpoint")
    more(table, 200, 210)
    streamed(followed(spark, table, **limit), copy, tmp_path / "checkpoint")
    assert sorted(copy.scan().to_arrow()["k"].to_pylist()) == [*range(15), *range(100, 110), *range(200, 210)]
    assert len(list(copy.snapshots())) == begun + 2
    assert no_orphans(copy)


def test_kinds_are_shown_where_they_are_asked_for_and_deletes_are_never_taken_for_rows(spark, catalog, tmp_path):
    table = keyed(catalog)
    pair = pa.table({"k": [1, 2], "v": ["x", "y"], "_row_kind": ["-D", "+U"]})
    table.write_arrow(pair)
    first = {"scan.snapshot-id": "3"}
    shown = catalog.create_table("db.a", Schema([("k", "BIGINT"), ("v", "STRING"), ("kind", "STRING")]))
    df = followed(spark, table, **first, **{"read.row-kinds": "true"})
    assert df.columns == ["k", "v", "_row_kind"]
    streamed(df.withColumnRenamed("_row_kind", "kind"), shown, tmp_path / "a")
    want = [{"k": 1, "v": "x", "kind": "-D"}, {"k": 2, "v": "y", "kind": "+U"}]
    assert sorted(shown.scan().to_arrow().to_pylist(), key=str) == want
    audit = followed(spark, table, **first, **{"read.changelog": "true"})
    assert audit.columns == ["rowkind", "k", "v"]
    streamed(audit.withColumnRenamed("rowkind", "kind"), shown, tmp_path / "b")
    assert shown.scan().count() == 4
    into = catalog.create_table("db.c", COLUMNS, **KEYED)
    assert "rows were deleted" in refused(lambda: streamed(followed(spark, table, **first), into, tmp_path / "c"))
    df = followed(spark, table, "k bigint, v string, _row_kind string")
    streamed(df, into, tmp_path / "d")
    assert content(into) == content(table)


def test_columns_and_conditions_reach_the_stream(spark, catalog, tmp_path):
    table = keyed(catalog)
    into = catalog.create_table("db.c", Schema([("v", "STRING")]))
    streamed(followed(spark, table, "v string", where="k >= 13"), into, tmp_path / "checkpoint")
    assert sorted(into.scan().to_arrow()["v"].to_pylist()) == ["b13", "b14"]


def test_a_checkpoint_older_than_the_table_says_what_to_do_and_a_consumer_prevents_that(spark, catalog, tmp_path):
    table, copy = keyed(catalog, **{"write-only": "true"}), catalog.create_table("db.copy", COLUMNS)
    named = {"consumer-id": "c", "scan.mode": "latest"}
    streamed(followed(spark, table), copy, tmp_path / "one")
    streamed(followed(spark, table, **named), copy, tmp_path / "two")
    for number in range(20, 24):
        more(table, number, number + 1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert [snapshot.id for snapshot in table.snapshots()] == [3, 4, 5, 6]
    streamed(followed(spark, table, **named), copy, tmp_path / "two")
    assert sorted(copy.scan().to_arrow()["k"].to_pylist()) == list(range(15)) + [20, 21, 22, 23]
    table.delete_consumer("c")
    table.expire_snapshots(retain_max=1, retain_min=1)
    said = refused(lambda: streamed(followed(spark, table), copy, tmp_path / "one"))
    assert "new checkpointLocation" in said
    assert "consumer-id" in said


def test_a_stream_that_waits_sees_what_comes(spark, catalog, tmp_path):
    table, copy = keyed(catalog), catalog.create_table("db.copy", COLUMNS)
    df = followed(spark, table, **{"scan.mode": "latest"})
    writing = df.writeStream.format("paimon").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writing.trigger(processingTime="0 seconds").start(copy.location)
    try:
        query.processAllAvailable()
        for number in (20, 30):
            more(table, number, number + 5)
            query.processAllAvailable()
            assert copy.scan().count() == number // 2 - 5
    finally:
        query.stop()


def test_options_of_streams_are_refused_elsewhere(spark, catalog):
    table = keyed(catalog)
    said = refused(loaded(spark, table, **{"read.stream.maxRowsPerTrigger": "3"}).collect)
    assert "is for streaming reads, not for batch reads" in said
