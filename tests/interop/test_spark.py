"""Scans become DataFrames and DataFrames become Arrow streams, on a real local Spark; one session for the whole run."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from spark_sessions import MARKS, local_session

import paimon_py
from paimon_py import Catalog, Schema, SchemaError, Table, UnsupportedError, UsageError, col
from paimon_py.errors import ResourceError

pyspark = pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = MARKS

UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone="Asia/Shanghai", master="local[2,2]")  # two attempts for each task


COLUMNS = [
    ("k", "INT NOT NULL"), ("bool", "BOOLEAN"), ("tiny", "TINYINT"), ("small", "SMALLINT"), ("big", "BIGINT"),
    ("f", "FLOAT"), ("d", "DOUBLE"), ("c", "CHAR(3)"), ("s", "STRING"), ("b", "BYTES"), ("dec", "DECIMAL(20, 3)"),
    ("day", "DATE"), ("t", "TIME(3)"), ("ts", "TIMESTAMP(6)"), ("ts3", "TIMESTAMP(3)"),
    ("ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("arr", {"type": "ARRAY", "element": "INT"}),
    ("m", {"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT"}),
    ("ms", {"type": "MULTISET", "element": "STRING NOT NULL"}),
    ("r", {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "at", "type": "TIMESTAMP(3)"}]}),
]  # fmt: skip


def row(key: int) -> dict:
    moment = datetime.datetime(2024, 3, 1, 12, 30, 15, 123456)
    return {
        "k": key, "bool": True, "tiny": -1, "small": 300, "big": 2**40, "f": 1.5, "d": -2.25, "c": "abc", "s": "中文",
        "b": b"\x00\xff", "dec": decimal.Decimal("12345.678"), "day": datetime.date(1969, 12, 31),
        "t": datetime.time(1, 2, 3, 4000), "ts": moment, "ts3": moment.replace(microsecond=123000),
        "ltz": moment.replace(tzinfo=UTC), "arr": [1, None, 3], "m": [("a", 1), ("b", None)], "ms": [("x", 2)],
        "r": {"x": 7, "at": moment.replace(microsecond=0)},
    }  # fmt: skip


@pytest.fixture
def table(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    made = catalog.create_table("db.t", Schema(COLUMNS), primary_key=["k"], options={"bucket": "3"})
    schema = made.scan().schema
    nothing = {"k": 100} | {name: None for name, _ in COLUMNS[1:]}
    made.write_arrow(pa.Table.from_pylist([*(row(key) for key in range(10)), nothing], schema=schema))
    made.write_arrow(pa.table({"k": pa.array([3, 4], pa.int32()), "s": ["new", None], "_row_kind": ["+U", "-D"]}))
    return made


def test_a_table_of_every_type_arrives_in_spark(spark, table):
    df = paimon_py.convert_to_spark(table, spark)
    assert df.rdd.getNumPartitions() == len(table.scan().splits())
    types = dict(df.dtypes)
    assert types["ts"] == "timestamp_ntz"
    assert types["ltz"] == "timestamp"
    assert types["dec"] == "decimal(20,3)"
    assert types["ms"] == "map<string,int>"
    rows = {r["k"]: r.asDict(recursive=True) for r in df.collect()}
    assert sorted(rows) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 100]
    want = row(1) | {"m": {"a": 1, "b": None}, "ms": {"x": 2}}
    got = rows[1]
    assert got.pop("t") == 3_723_004 or got
    want.pop("t")
    assert got.pop("ltz").astimezone(UTC) == want.pop("ltz")
    got["b"] = bytes(got["b"])
    assert got == want
    assert all(value is None for name, value in rows[100].items() if name != "k")
    assert rows[3]["s"] == "new"


def test_projection_filter_and_snapshot_of_a_scan_travel(spark, table):
    scan = table.scan(snapshot_id=1, columns=["s", "k"], where=(col("k") >= 3) & (col("k") < 5))
    df = paimon_py.convert_to_spark(scan, spark)
    assert df.columns == ["s", "k"]
    assert sorted(map(tuple, df.collect())) == [("中文", 3), ("中文", 4)]
    table.truncate()
    assert df.count() == 2


def test_an_empty_table_is_an_empty_frame(spark, tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    empty = catalog.create_table("db.e", pa.schema([("a", pa.int64())]))
    df = paimon_py.convert_to_spark(empty.scan(), spark)
    assert (df.columns, df.count()) == (["a"], 0)


def test_the_first_rows_of_a_scan_and_no_more_arrive(spark, tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.float64())])
    many = catalog.create_table("db.t", schema, primary_key=["k"], options={"bucket": "4"})
    many.write_arrow(pa.table({"k": range(40), "v": [float(-key) for key in range(40)]}))
    assert len(many.scan(where="v < 1", limit=6).splits()) > 1
    assert paimon_py.convert_to_spark(many.scan(where="v < 1", limit=6), spark).count() == 6
    first = many.scan(order_by="v", limit=3, columns=["k"])
    assert [row.k for row in paimon_py.convert_to_spark(first, spark).collect()] == [39, 38, 37]


def test_an_arrow_stream_arrives_in_spark(spark):
    data = pa.table({"a": pa.array(range(1000), pa.int64()), "b": pa.array(["x", "y"] * 500).dictionary_encode()})
    df = paimon_py.convert_to_spark(data, spark)
    assert df.groupBy("b").count().orderBy("b").collect() == [("x", 500), ("y", 500)]


def test_system_tables_arrive_in_spark(spark, table):
    ids = paimon_py.convert_to_spark(table.system("snapshots").scan(columns=["snapshot_id"]), spark)
    assert [row.snapshot_id for row in ids.collect()] == [snapshot.id for snapshot in table.snapshots()]
    for name in ("files", "table_indexes", "audit_log"):
        assert paimon_py.convert_to_spark(table.system(name), spark).count() == table.system(name).scan().count()


def test_a_frame_comes_back_as_an_arrow_stream_that_a_table_takes(spark, table):
    df = paimon_py.convert_to_spark(table.scan(columns=["k", "s", "ts", "ltz", "dec", "arr", "r"]), spark)
    reader = paimon_py.convert_from_spark(df.where("k < 3"))
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema.field("ltz").type == pa.timestamp("us", "UTC")
    back = reader.read_all().sort_by("k")
    want = table.scan(columns=["k", "s", "ts", "ltz", "dec", "arr"], where=col("k") < 3).to_arrow().sort_by("k")
    assert back.select(want.column_names).to_pylist() == want.to_pylist()
    result = table.write_arrow(paimon_py.convert_from_spark(df.where("k = 3").selectExpr("k", "'from spark' AS s")))
    assert result.row_count == 1
    assert table.scan(where=col("k") == 3, columns=["s"]).to_arrow()["s"].to_pylist() == ["from spark"]


def test_column_names_with_dots_and_quotes_travel_both_ways(spark):
    rows = pa.table({"a.b": [1, 2], "q`r": ["x", None]})
    df = paimon_py.convert_to_spark(rows, spark)
    assert paimon_py.convert_from_spark(df).read_all().to_pydict() == rows.to_pydict()


def test_an_empty_frame_keeps_its_schema(spark):
    reader = paimon_py.convert_from_spark(spark.createDataFrame([], "a int, b timestamp_ntz"))
    assert reader.schema.names == ["a", "b"]
    assert reader.read_all().num_rows == 0


def test_nanoseconds_are_never_cut_silently(spark):
    data = pa.table({"n": pa.array([1_000_000_001], pa.timestamp("ns"))})
    with pytest.raises(UsageError, match="truncate_nanos"):
        paimon_py.convert_to_spark(data, spark)
    cut = paimon_py.convert_to_spark(data, spark, truncate_nanos=True).collect()
    assert cut[0]["n"] == datetime.datetime(1970, 1, 1, 0, 0, 1)


def test_what_spark_has_no_type_for_is_refused_by_name(spark):
    with pytest.raises(UnsupportedError, match="month_interval|duration"):
        paimon_py.convert_to_spark(pa.table({"x": pa.array([1], pa.duration("s"))}), spark)
    with pytest.raises(UsageError, match="Arrow stream"):
        paimon_py.convert_to_spark([1, 2], spark)
    with pytest.raises(UnsupportedError, match="interval"):
        paimon_py.convert_from_spark(spark.sql("SELECT INTERVAL '1' DAY AS i"))


def test_a_scan_and_its_splits_travel_between_processes(table):
    scan = table.scan(columns=["k"])
    again = pickle.loads(pickle.dumps(scan))
    rows = [again.read(pickle.loads(pickle.dumps(split))).read_all().num_rows for split in scan.splits()]
    assert sum(rows) == scan.count() == 10


# -- writing --------------------------------------------------------------------------------------------------------

ROWS = pa.schema([
    pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), ("v", pa.string()), ("a.b", pa.timestamp("us")),
])  # fmt: skip
KINDS = {
    "fixed": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "3"}},
    "dynamic": {"primary_key": ["p", "k"], "partition_by": ["p"]},
    "moving": {"primary_key": ["k"], "partition_by": ["p"]},
    "append": {"partition_by": ["p"]},
    "bucketed": {"options": {"bucket": "3", "bucket-key": "k"}},
    "postponed": {"primary_key": ["k"], "options": {"bucket": "-2"}},
}
IN_FULL = ("append", "bucketed", "moving", "postponed")
BY_KIND = [pytest.param(kind, marks=pytest.mark.full if kind in IN_FULL else ()) for kind in KINDS]


@pytest.fixture
def db(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db", exist_ok=True)
    return catalog


def numbers(spark, start, end, text="v"):
    return spark.range(start, end, 1, 3).selectExpr(
        "cast(id % 2 as int) p", "id k", f"concat('{text}', id) v", "timestamp_ntz'2020-01-01 00:00:00' `a.b`"
    )


def content(table):
    return {(row["p"], row["k"]): row["v"] for row in table.scan(columns=["p", "k", "v"]).to_arrow().to_pylist()}


def expected(start, end, text="v"):
    return {(k % 2, k): f"{text}{k}" for k in range(start, end)}


@pytest.mark.parametrize("kind", BY_KIND)
def test_executors_write_and_the_driver_commits_once(spark, db, kind):
    table = db.create_table("db.t", ROWS, **KINDS[kind])
    done = paimon_py.write_spark(table, numbers(spark, 0, 60))
    assert (done.row_count, [one.id for one in table.snapshots()]) == (60, [1])
    table.write_arrow(pa.table({"p": pa.array([0, 1], pa.int32()), "k": [100, 101], "v": ["v100", "v101"]}))
    paimon_py.write_spark(table, numbers(spark, 60 if kind in ("append", "bucketed") else 30, 102, "new"), tasks=2)
    table.compact()
    want = expected(0, 60) | {(0, 100): "v100", (1, 101): "v101"}
    if kind in ("append", "bucketed"):
        assert table.count() == 60 + 2 + 42
        return
    assert content(table) == want | expected(30, 102, "new")
    assert table.count() == 102
    if kind == "fixed":
        names = [(row["partition"], row["bucket"]) for row in table.system("buckets").scan().to_arrow().to_pylist()]
        assert len(names) == len(set(names)) == 6


@pytest.mark.parametrize("options", [{}, pytest.param({"merge-engine": "partial-update"}, marks=pytest.mark.full)], ids=str)
def test_keys_move_between_partitions_by_several_tasks(spark, db, options):
    options = {"dynamic-bucket.target-row-num": "7", "source.split.target-size": "1 b", "source.split.open-file-cost": "1 b", **options}
    here, there = (db.create_table(f"db.{name}", ROWS, primary_key=["k"], partition_by=["p"], options=options) for name in ("here", "there"))
    for start, moves in ((0, 0), (20, 1), (10, 2)):
        source = numbers(spark, start, start + 40, f"{moves}-").selectExpr(f"cast((k + {moves}) % 3 as int) p", "k", "v")
        done = paimon_py.write_spark(there, source, tasks=3, user="job", identifier=moves)
        assert paimon_py.write_spark(there, source, tasks=2, user="job", identifier=moves).already_committed
        here.write_arrow(paimon_py.convert_from_spark(source).read_all())
        assert content(there) == content(here) and there.count() == here.count()
        assert len(done.snapshot_ids) >= 1
    assert data_files(there) == named_files(there)
    paimon_py.write_spark(there, source, "overwrite", tasks=3)
    assert content(there) == {(row["p"], row["k"]): row["v"] for row in source.collect()}
    with pytest.raises(UsageError, match="NULL|null"):
        paimon_py.write_spark(there, source.selectExpr("p", "if(k < 30, k, null) k", "v"), tasks=3)
    assert data_files(there) == named_files(there)


WAITING = [{"deletion-vectors.enabled": "true"}, pytest.param({"changelog-producer": "lookup"}, marks=pytest.mark.full)]


@pytest.mark.parametrize("options", WAITING, ids=str)
def test_a_dynamic_bucket_has_one_task_where_readers_wait_for_its_compaction(spark, db, options):
    options = {"dynamic-bucket.target-row-num": "7", **options}
    table = db.create_table("db.t", ROWS, primary_key=["p", "k"], partition_by=["p"], options=options)
    for tasks in (2, 3):
        done = paimon_py.write_spark(table, numbers(spark, 0, 40, f"{tasks}-"), tasks=tasks)
        assert done.dropped_compaction is None and content(table) == expected(0, 40, f"{tasks}-")
    assert data_files(table) >= named_files(table)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["append", "fixed"])
def test_a_python_that_always_dies_is_told_with_what_was_done(spark, db, kind):
    def die(batches):
        os._exit(1)
        yield from batches

    table = db.create_table("db.t", ROWS, **KINDS[kind])
    rows = numbers(spark, 0, 8).select("p", "k", "v")
    with pytest.raises(ResourceError, match="executors died, or their Python.* nothing of this job was committed"):
        paimon_py.write_spark(table, rows.mapInArrow(die, rows.schema))
    assert table.snapshot() is None


@pytest.mark.full
def test_rows_that_do_not_fit_an_assigned_bucket_fail_by_name_and_leave_nothing(spark, db):
    columns = [pa.field("k", pa.int64(), False), pa.field("v", pa.string(), False)]
    table = db.create_table("db.t", pa.schema(columns), primary_key=["k"], options=dict(WAITING[0]))
    rows = spark.range(0, 40, 1, 3).selectExpr("id k", "CASE WHEN id = 17 THEN NULL ELSE 'v' END v")
    with pytest.raises(SchemaError, match="v"):
        paimon_py.write_spark(table, rows, tasks=2)
    assert not data_files(table) and table.count() == 0


@pytest.mark.full
def test_what_is_overwritten_is_what_was_asked_for(spark, db):
    table = db.create_table("db.t", ROWS, partition_by=["p"])
    rows = numbers(spark, 0, 8)
    paimon_py.write_spark(table, rows)
    paimon_py.write_spark(table, rows.where("k = 2"), "dynamic")
    assert content(table) == {(0, 2): "v2", **{(1, k): f"v{k}" for k in (1, 3, 5, 7)}}
    paimon_py.write_spark(table, rows.where("k = 3"), {"p": 1})
    assert content(table) == {(0, 2): "v2", (1, 3): "v3"}
    with pytest.raises(UsageError, match="outside the partition to overwrite"):
        paimon_py.write_spark(table, rows, {"p": 1})
    other = paimon_py.write_spark(table, rows.where("false"), "overwrite")
    assert (other.snapshot_id, table.count()) == (4, 0)
    assert data_files(table) == named_files(table)


def test_a_replayed_batch_commits_once(spark, db):
    table = db.create_table("db.t", ROWS, partition_by=["p"])
    rows = numbers(spark, 0, 8)
    first = paimon_py.write_spark(table, rows.where("k < 2"), "overwrite", identifier=7, user="nightly")
    again = paimon_py.write_spark(table, rows, "overwrite", identifier=7, user="nightly")
    assert (first.already_committed, again.already_committed, again.snapshot_id) == (False, True, first.snapshot_id)
    assert content(table) == {(0, 0): "v0", (1, 1): "v1"}
    other = paimon_py.write_spark(table, rows.where("k = 2"), identifier=7, user="another")
    assert (other.already_committed, table.count()) == (False, 3)
    assert data_files(table) == named_files(table)


def data_files(table):
    return sorted(path.name for path in Path(table.location).rglob("data-*") if path.is_file())


def named_files(table):
    entries = [e for s in table.snapshots() for m in s.manifests() for e in m.entries()]
    return sorted({entry.file.name for entry in entries})


@pytest.mark.parametrize("keys", [pytest.param({}, marks=pytest.mark.full), {"primary_key": ["k"], "options": {"bucket": "2"}}])
def test_what_does_not_fit_is_refused_as_ours_and_leaves_no_file(spark, db, keys):
    table, rows = db.create_table("db.t", ROWS, **keys), numbers(spark, 0, 6)
    with pytest.raises(SchemaError, match="no such column") as caught:
        paimon_py.write_spark(table, rows.withColumn("zz", rows["p"]))
    assert caught.value.fields == ("zz",)
    with pytest.raises(SchemaError, match="column k is NOT NULL but 1 of"):
        paimon_py.write_spark(table, rows.selectExpr("p", "if(k = 5, null, k) k"))
    with pytest.raises(UsageError, match="mode is"):
        paimon_py.write_spark(table, rows, "error")
    with pytest.raises(UsageError, match="Table.write_arrow"):
        paimon_py.write_spark(table, pa.table({"k": [1]}))
    assert (table.snapshots(), data_files(table)) == ([], [])


@pytest.mark.full
def test_a_task_that_fails_is_run_again_and_its_files_are_gone(spark, db):
    table = db.create_table("db.t", ROWS)
    marks = Path(table.location).parent / "marks"
    marks.mkdir()
    rows = numbers(spark, 0, 30).select("p", "k", "v")

    def fails_once(batches):
        yield from batches
        try:
            (marks / "failed").touch(exist_ok=False)
        except FileExistsError:
            return
        raise ValueError("the executor stumbles")

    done = paimon_py.write_spark(table, rows.mapInArrow(fails_once, rows.schema))
    assert (done.row_count, content(table)) == (30, expected(0, 30))
    assert data_files(table) == named_files(table)

    def fails(batches):
        for batch in batches:
            yield batch
            raise ValueError("the executor falls")

    with pytest.raises(Exception, match="the executor falls"):
        paimon_py.write_spark(table, rows.mapInArrow(fails, rows.schema))
    assert [one.id for one in table.snapshots()] == [1]
    assert content(table) == expected(0, 30)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_an_executor_that_dies_leaves_only_orphans(spark, db, kind):
    table = db.create_table("db.t", ROWS, **KINDS[kind])
    mark = str(Path(table.location).parent / "died")

    def dies_once(batches):
        yield from batches
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os._exit(1)

    rows = numbers(spark, 0, 60).select("p", "k", "v")
    assert paimon_py.write_spark(table, rows.mapInArrow(dies_once, rows.schema)).row_count == 60
    assert table.count() == (0 if kind == "postponed" else 60)
    for path in Path(table.location).rglob("data-*"):
        os.utime(path, (0, 0))
    table.remove_orphans(dry_run=False)
    assert data_files(table) == named_files(table)
    assert table.compact(full=True) is not None
    assert content(table) == expected(0, 60)


def test_every_type_goes_through_spark_and_back_into_a_table(spark, table, db):
    copy = db.create_table("db.copy", Schema(COLUMNS), primary_key=["k"], options={"bucket": "2"})
    paimon_py.write_spark(copy, paimon_py.convert_to_spark(table, spark))
    assert copy.to_arrow().sort_by("k").equals(table.to_arrow().sort_by("k"))


def test_an_executor_without_the_package_names_the_way_out(monkeypatch):
    from pyspark import cloudpickle

    from paimon_py.spark.entry import wrap_for_executor

    entered = pickle.loads(cloudpickle.dumps(wrap_for_executor(iter)))
    assert list(entered([])) == []
    monkeypatch.setitem(sys.modules, "paimon_py", None)
    with pytest.raises(RuntimeError, match="lacks the module 'paimon_py'; install paimon_py there.*paimon_py.ship"):
        entered([])


@pytest.mark.full
def test_batches_of_a_stream_commit_once_and_their_query_is_the_user(spark, db, tmp_path):
    table = db.create_table("db.t", ROWS, primary_key=["k"], options={"bucket": "2"})
    source, results = str(tmp_path / "in"), []

    def each(df, number):
        results.append(paimon_py.write_spark(table, df, identifier=number))
        results.append(paimon_py.write_spark(table, df, identifier=number))

    for start in (0, 10):
        numbers(spark, start, start + 10).write.mode("append").parquet(source)
        stream = spark.readStream.schema(numbers(spark, 0, 1).schema).parquet(source).writeStream.foreachBatch(each)
        query = stream.option("checkpointLocation", str(tmp_path / "check")).trigger(availableNow=True).start()
        query.awaitTermination()
    assert [one.already_committed for one in results] == [False, True, False, True]
    assert content(table) == expected(0, 20)
    assert table.committed(f"write_spark-{query.id}") == 1


def streamed(spark, place, each):
    """Run what is there through a query, batch by batch, and return the query."""
    stream = spark.readStream.schema("p int, k bigint, v string").option("maxFilesPerTrigger", "1")
    stream = stream.parquet(str(place / "in")).writeStream.foreachBatch(each)
    query = stream.option("checkpointLocation", str(place / "check")).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def fed(spark, place, start, end):
    numbers(spark, start, end).select("p", "k", "v").coalesce(1).write.mode("append").parquet(str(place / "in"))


@pytest.mark.parametrize("verb", ["merge", "update", "delete"])
def test_a_batch_that_spark_runs_again_changes_rows_once(spark, db, tmp_path, verb):
    table = db.create_table("db.t", Schema([("k", "BIGINT NOT NULL"), ("n", "BIGINT")]), primary_key=["k"], options={"bucket": "1"})
    table.write_arrow(pa.table({"k": range(10), "n": [0] * 10}))
    fails = [True]

    def each(df, number):
        if verb == "merge":
            paimon_py.merge_spark(
                table, df.selectExpr("k", "1L AS w"), ["k"], identifier=number,
                when_matched_update={"n": paimon_py.sql("target.n + source.w")},
            )  # fmt: skip
        if verb == "update":
            paimon_py.update_spark(table, "k < 5", {"n": paimon_py.sql("n + 1")}, identifier=number, spark=spark)
        if verb == "delete":
            paimon_py.delete_spark(table, "k < 5", identifier=number, spark=spark)
            Table.open(table.location).write_arrow(pa.table({"k": [1], "n": [7]}))
        if fails.pop() if fails else False:
            raise RuntimeError("the driver fails after its commit")

    fed(spark, tmp_path, 0, 5)
    with pytest.raises(Exception, match="the driver fails"):
        streamed(spark, tmp_path, each)
    query = streamed(spark, tmp_path, each)
    rows = dict(zip(*table.refresh().to_arrow().sort_by("k").to_pydict().values(), strict=True))
    assert table.committed(f"{verb}_spark-{query.id}") == 0
    assert rows == ({1: 7} if verb == "delete" else dict.fromkeys(range(5), 1)) | dict.fromkeys(range(5, 10), 0)


def test_numbers_of_verbs_need_a_query_or_a_user_and_lost_checkpoints_are_noticed(spark, db, tmp_path):
    table = filled(db, "t", "fixed")
    source = numbers(spark, 0, 4, "m").select("p", "k", "v")
    verbs = {
        "delete": lambda **named: paimon_py.delete_spark(table, "k = 39", spark=spark, **named),
        "update": lambda **named: paimon_py.update_spark(table, "k = 38", {"v": "u"}, spark=spark, **named),
        "merge": lambda **named: paimon_py.merge_spark(table, source, ["p", "k"], when_matched_update=True, **named),
    }
    for name, verb in verbs.items():
        with pytest.raises(UsageError, match="give user="):
            verb(identifier=1)
        assert not verb(identifier=1, user=name).already_committed
        assert verb(identifier=1, user=name).already_committed

    def each(df, number):
        for name, verb in verbs.items():
            verb(identifier=number, user=f"{name} pipe")

    for start in (0, 10, 20):
        fed(spark, tmp_path, start, start + 10)
    paimon_py.write_spark(table, numbers(spark, 38, 40))
    streamed(spark, tmp_path, each)
    before = len(table.snapshots())
    shutil.rmtree(tmp_path / "check")
    with pytest.raises(Exception, match="committed batch [12], and now comes batch 0: the checkpoint"):
        streamed(spark, tmp_path, each)
    assert len(table.snapshots()) == before


# -- care -----------------------------------------------------------------------------------------------------------


def test_executors_compact_buckets_and_the_driver_commits_once(spark, db):
    table = db.create_table("db.t", ROWS, **KINDS["fixed"])
    for text in ("a", "b"):
        table.write_arrow(pa.table({"p": pa.array([0, 1], pa.int32()), "k": [0, 1], "v": [text, text]}))
    told = []
    done = paimon_py.compact_spark(table, full=True, progress=lambda *far: told.append(far), spark=spark)
    assert (len(done.snapshot_ids), told) == (1, [(2, 4, "rows"), (4, 4, "rows")])
    assert {row["level"] for row in table.system("files").scan(columns=["level"]).to_arrow().to_pylist()} == {5}
    assert content(table) == {(0, 0): "b", (1, 1): "b"}
    assert paimon_py.compact_spark(table, full=True, spark=spark).snapshot_id is None
    with pytest.raises(UsageError, match="append table"):
        paimon_py.compact_spark(table, order_by=["v"], spark=spark)


@pytest.mark.full
def test_executors_sort_append_tables(spark, db):
    table = db.create_table("db.t", ROWS, partition_by=["p"])
    paimon_py.write_spark(table, numbers(spark, 0, 40).orderBy("v"), tasks=2)
    done = paimon_py.compact_spark(table, order_by=["k"], strategy="zorder", spark=spark)
    assert (done.row_count, table.count()) == (40, 40)
    for number in (0, 1):
        keys = table.scan(where=f"p = {number}", columns=["k"]).to_arrow()["k"].to_pylist()
        assert keys == sorted(keys)


@pytest.mark.full
def test_executors_delete_what_expires_and_orphans_as_one_process_does(spark, db):
    here, there = filled(db, "here", "append"), filled(db, "there", "append")
    for table in (here, there):
        table.delete("k < 30")
        Path(table.location, "p=0", "bucket-0", "data-orphan.parquet").write_bytes(b"nobody")
        Path(table.location, "p=7", "bucket-0").mkdir(parents=True)
        for path in Path(table.location, "p=0").rglob("*orphan*"):
            os.utime(path, (0, 0))
    for dry_run in (True, False):
        one = here.expire_snapshots(retain_max=1, retain_min=1, dry_run=dry_run)
        two = paimon_py.expire_snapshots_spark(there, retain_max=1, retain_min=1, dry_run=dry_run, spark=spark)
        assert one == two
        assert one.data_files == 2 + 2
    for dry_run in (True, False):
        one = here.remove_orphans(dry_run=dry_run)
        two = paimon_py.remove_orphans_spark(there, dry_run=dry_run, spark=spark)
        assert (one.files, one.directories, one.young_files) == (two.files, two.directories, two.young_files)
        assert (two.files, [path.rpartition("/")[2] for path in two.paths]) == (1, ["data-orphan.parquet"])
    assert content(here) == content(there) == expected(30, 40)
    files = [sorted(path.name.partition("-")[0] for path in Path(one.location).rglob("*")) for one in (here, there)]
    assert files[0] == files[1]


@pytest.mark.full
def test_changes_and_steps_are_read_on_executors(spark, db):
    table = db.create_table("db.t", ROWS, primary_key=["k"], options={"bucket": "2"})
    for text in ("a", "b"):
        table.write_arrow(pa.table({"p": pa.array([0, 1], pa.int32()), "k": [0, 1], "v": [text, text]}))
    changes = paimon_py.convert_to_spark(table.changes(1, mode="diff"), spark)
    assert sorted(map(tuple, changes.select("k", "v", "_row_kind").collect())) == [(0, "b", "+U"), (1, "b", "+U")]
    for step, text in zip(table.stream(from_=1, until="now"), "ab", strict=True):
        rows = paimon_py.convert_to_spark(step, spark)
        assert sorted(map(tuple, rows.select("k", "v", "_row_kind").collect())) == [(0, text, "+I"), (1, text, "+I")]


@pytest.mark.full
def test_the_package_is_shipped_as_it_is(spark, table):
    paimon_py.ship(spark)

    def paths(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"path": [one for one in sys.path if "paimon_py-" in one]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(paths, "path string").collect()
    script = "import paimon_py, sys; print(paimon_py.__file__, paimon_py.Table.open(sys.argv[1]).count())"
    script = f"import sys; sys.path.insert(0, {row['path']!r}); {script}"
    done = subprocess.run([sys.executable, "-c", script, table.location], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{row['path']}/paimon_py/__init__.py", "10"]


# -- rows -----------------------------------------------------------------------------------------------------------

CHANGED = {
    **KINDS,
    "marked": {"partition_by": ["p"], "options": {"deletion-vectors.enabled": "true"}},
    "dynamic, vectors": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"dynamic-bucket.target-row-num": "7", "deletion-vectors.enabled": "true"}},
    "several keys": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "3", "deletion-vectors.enabled": "true"}},
}
BY_CHANGED = [
    pytest.param(kind, marks=() if kind == "fixed" else pytest.mark.full)
    for kind in CHANGED if kind != "postponed"
]  # fmt: skip


def filled(db, name, kind):
    """Two files in each bucket, and splits of one file each."""
    asked = {**CHANGED[kind]}
    asked["options"] = {**asked.get("options", {}), "source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}
    table = db.create_table(f"db.{name}", ROWS, **asked)
    for start in (0, 20):
        keys = range(start, start + 20)
        table.write_arrow(pa.table({"p": pa.array([k % 2 for k in keys], pa.int32()), "k": list(keys), "v": [f"v{k}" for k in keys]}))
    return table


@pytest.mark.parametrize("kind", BY_CHANGED)
def test_executors_delete_update_and_merge_as_one_process_does(spark, db, kind):
    here, there = filled(db, "here", kind), filled(db, "there", kind)
    for _ in range(1 if kind == "fixed" else 2):  # on fresh files, and on those that carry dead rows
        first = here.update(col("k").isin([3, 13, 23, 33]), {"v": "u"})
        second = paimon_py.update_spark(there, col("k").isin([3, 13, 23, 33]), {"v": "u"}, spark=spark)
        assert (first.updated, len(second.snapshot_ids) > 0) == (second.updated, True)
    assert here.delete("k > 5 and k < 25").deleted == paimon_py.delete_spark(there, "k > 5 and k < 25", spark=spark).deleted
    assert content(here) == content(there)
    source = numbers(spark, 2, 40, "m").where("k % 3 = 0").drop("`a.b`")
    rows = paimon_py.convert_from_spark(source).read_all()
    asked = {
        "when_matched_delete": "source.k = 27", "when_matched_update": ("target.v <> 'u'", {"v": "source.v"}),
        "when_not_matched_insert": True, "when_not_matched_by_source_update": ("target.k < 2", {"v": "apart"}),
    }  # fmt: skip
    one, two = here.merge(rows, ["p", "k"], **asked), paimon_py.merge_spark(there, source, ["p", "k"], **asked)
    assert (two.updated, two.deleted, two.inserted) == (one.updated, one.deleted, one.inserted)
    assert content(there) == content(here)
    assert there.count() == here.count()
    assert paimon_py.delete_spark(there, "k = 1000", spark=spark).snapshot_id is None


@pytest.mark.full
@pytest.mark.parametrize(("kind", "on"), [
    ("append", ["p", "k"]), ("append", ["v"]), ("marked", ["k"]), ("dynamic", ["p", "k"]), ("fixed", ["v"]), ("dynamic", ["v"]),
    ("dynamic, vectors", ["v"]),
])  # fmt: skip
def test_merges_on_any_columns_run_in_several_tasks(spark, db, kind, on):
    """Each task has the whole source; what no task knows is inserted by a second step, where the table allows it."""
    here, there = filled(db, "here", kind), filled(db, "there", kind)
    source = numbers(spark, 15, 60, "v").where("k % 2 = 0").selectExpr("p", "k", "v", "concat('m', k) AS w")
    asked = {
        "when_matched_delete": "source.k = 28", "when_matched_update": {"v": "source.w"},
        "when_not_matched_by_source_delete": "target.k < 5",
    }  # fmt: skip
    asked["when_not_matched_insert"] = {"p": "source.p", "k": "source.k", "v": "source.w"}
    rows = paimon_py.convert_from_spark(source).read_all()
    one = here.merge(rows, on, **asked)
    two = paimon_py.merge_spark(there, source, on, tasks=3, **asked)
    assert (two.updated, two.deleted, two.inserted) == (one.updated, one.deleted, one.inserted)
    assert content(there) == content(here) and there.count() == here.count()
    assert data_files(there) == named_files(there)
    with pytest.raises(UsageError, match="2 rows of the source want to change"):
        paimon_py.merge_spark(there, source.unionAll(source), ["k"], tasks=3, when_matched_update={"v": "source.w"})
    assert data_files(there) == named_files(there)


@pytest.mark.full
@pytest.mark.parametrize("options", [WAITING[0], {"changelog-producer": "lookup"}], ids=str)
def test_merges_insert_into_dynamic_buckets_by_one_task_each(spark, db, options):
    spec = {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"dynamic-bucket.target-row-num": "7", **options}}
    here, there = (db.create_table(f"db.{name}", ROWS, **spec) for name in ("here", "there"))
    for table in (here, there):
        table.write_arrow(pa.table({"p": pa.array([k % 2 for k in range(40)], pa.int32()), "k": range(40), "v": ["v"] * 40}))
    source = numbers(spark, 15, 70, "m").selectExpr("p pp", "k", "v")
    values = {"p": "source.pp", "k": "source.k", "v": "source.v"}
    asked = {"when_matched_update": {"v": "source.v"}, "when_not_matched_insert": values, "when_not_matched_by_source_delete": "target.k < 5"}
    one = here.merge(paimon_py.convert_from_spark(source).read_all(), {"p": "pp", "k": "k"}, **asked)
    two = paimon_py.merge_spark(there, source, {"p": "pp", "k": "k"}, tasks=3, **asked)
    assert (two.updated, two.deleted, two.inserted) == (one.updated, one.deleted, one.inserted) == (25, 5, 30)
    assert content(there) == content(here) and data_files(there) == named_files(there)
    with pytest.raises(UsageError, match="2 rows of the source want to change|the source has 2 rows"):
        paimon_py.merge_spark(there, source.unionAll(source), {"p": "pp", "k": "k"}, tasks=3, **asked)
    assert data_files(there) == named_files(there)


@pytest.mark.full
def test_a_merge_reaches_buckets_that_no_row_of_the_source_belongs_to(spark, db):
    table = filled(db, "t", "fixed")
    nothing = numbers(spark, 0, 1).where("false")
    done = paimon_py.merge_spark(table, nothing, ["p", "k"], when_not_matched_by_source_delete="target.k > 1")
    assert (done.deleted, content(table)) == (38, expected(0, 2))
    with pytest.raises(UsageError, match="2 rows of the source want to change|the source has 2 rows"):
        twice = numbers(spark, 0, 2).unionAll(numbers(spark, 0, 2))
        paimon_py.merge_spark(table, twice, ["p", "k"], when_matched_update=True, when_not_matched_insert=True)
    assert len(table.snapshots()) == 3


@pytest.mark.full
def test_a_merge_that_is_overtaken_is_done_anew_and_leaves_no_file(spark, db):
    table = filled(db, "t", "fixed")
    mark = Path(table.location).parent / "overtaken"

    def meanwhile(batches):
        yield from batches
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return
        Table.open(table.location).write_arrow(pa.table({"p": pa.array([0], pa.int32()), "k": [2], "v": ["late"]}))

    source = numbers(spark, 0, 4, "m").select("p", "k", "v")
    source = source.mapInArrow(meanwhile, source.schema)
    done = paimon_py.merge_spark(
        table, source, ["p", "k"], when_matched_update=("target.v <> 'late'", {"v": "source.v"})
    )
    assert (done.rounds, done.updated) == (2, 3)
    assert content(table) == expected(0, 40) | expected(0, 4, "m") | {(0, 2): "late"}
    assert data_files(table) == named_files(table)


@pytest.mark.full
@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}, {"changelog-producer": "lookup"}])
def test_executors_rescale_and_analyze_as_one_process_does(spark, db, options):
    keyed = {**KINDS["fixed"], "options": {"bucket": "4", **options}}
    here, there = (db.create_table(f"db.{name}", ROWS, **keyed) for name in ("here", "there"))
    for table in (here, there):
        for start in (0, 20):
            paimon_py.write_spark(table, numbers(spark, start, start + 40))
        table.compact(full=True)
    for buckets in (6, 3, 4):
        one, two = here.rescale(buckets), paimon_py.rescale_spark(there, buckets, spark=spark)
        assert (one.row_count, one.file_count) == (two.row_count, two.file_count)
        assert content(there) == content(here) == expected(0, 60)
        places = [table.system("files").scan(columns=["partition", "bucket", "level", "record_count"]) for table in (here, there)]
        one, two = (sorted(map(repr, place.to_arrow().to_pylist())) for place in places)
        assert one == two
    assert paimon_py.rescale_spark(there, 4, spark=spark).snapshot_id is None
    one = here.analyze(all_columns=True)
    two = paimon_py.analyze_spark(there, all_columns=True, spark=spark)
    assert (one.columns, one.merged_record_count) == (two.columns, two.merged_record_count)
    assert paimon_py.analyze_spark(there, spark=spark).merged_record_count == 60


@pytest.mark.full
def test_executors_look_keys_up(spark, db):
    table = filled(db, "t", "fixed")
    asked = spark.createDataFrame([(1, 33, "x"), (0, 1, "y"), (0, 2, "z"), (None, 2, "n"), (0, 2, "z")], "p int, id int, `a.x` string")
    found = paimon_py.lookup_spark(asked, table, on={"p": "p", "k": "id"}, columns=["v"])
    assert found.columns == ["p", "id", "a.x", "v"]
    rows = sorted((tuple(row) for row in found.collect()), key=repr)
    assert rows == [(0, 1, "y", None), (0, 2, "z", "v2"), (0, 2, "z", "v2"), (1, 33, "x", "v33"), (None, 2, "n", None)]
    with pytest.raises(UsageError, match="both the DataFrame and the table have a.b, v"):
        paimon_py.lookup_spark(numbers(spark, 0, 1), table)
    with pytest.raises(UsageError, match="whole primary key"):
        paimon_py.lookup_spark(asked, table)


# -- SQL ------------------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_tables_states_and_system_tables_are_queried_by_sql_and_procedures_have_their_names(spark, db):
    table = db.create_table("db.t", ROWS, primary_key=["k"], options={"bucket": "1"})
    for start in (0, 20):
        table.write_arrow(pa.table({"p": pa.array([0] * 20, pa.int32()), "k": range(start, start + 20)}))
    made = paimon_py.register(spark, db, ["db"])
    made.view("db.t", snapshot_id=1, as_="before")
    made.view("db.t$snapshots", columns=["snapshot_id"])
    query = "SELECT (SELECT count(*) FROM `db.t`), (SELECT count(*) FROM before), (SELECT max(snapshot_id) FROM `db.t$snapshots`)"
    assert spark.sql(query).collect() == [(40, 20, 2)]
    table.delete("k >= 30")
    assert (spark.table("`db.t`").count(), made.refresh(), spark.table("`db.t`").count()) == (40, ["db.t"], 30)
    with pytest.raises(UsageError, match="system table, which has no snapshot_id"):
        made.view("db.t$snapshots", snapshot_id=1)
    made.sys.create_tag("db.t", "t1")
    assert made.sys.compact("db.t").snapshot_id == 4
    made.sys.create_branch("db.t", "b1", "t1")
    made.sys.delete_branch("db.t", "b1")
    assert made.sys.rollback("db.t", "t1").snapshot_id == 3
    made.sys.delete_tag("db.t", "t1")
    assert made.sys.expire_snapshots("db.t", retain_max=1, retain_min=1).snapshot_ids == (1, 2)


# -- Java's connector -----------------------------------------------------------------------------------------------

CONNECTOR = Path(__file__).parents[2].parent / "shared" / "engines" / "spark_sql.py"


def by_connector(warehouse, statements):
    """The rows of each statement, by Java Paimon in a Spark of its own."""
    command = [sys.executable, str(CONNECTOR), "--spark", "3.5", "--released", "--warehouse", warehouse, "--keep-going"]
    done = subprocess.run([*command, *statements], capture_output=True, text=True, check=False, timeout=900)
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not answers:
        pytest.skip(f"the connector cannot be had here: {done.stderr[-300:]}")
    assert [answer for answer in answers if not answer["ok"]] == []
    return [answer["rows"] for answer in answers]


@pytest.mark.full
@pytest.mark.java
@pytest.mark.skipif(not CONNECTOR.exists(), reason="the launchers of other engines are not beside the project")
def test_javas_connector_reads_what_executors_wrote_and_both_write_in_turns(spark, tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("default", exist_ok=True)
    schema = pa.schema([field for field in ROWS if field.name != "a.b"])
    kinds = [kind for kind in KINDS if kind != "postponed"]
    tables = {kind: catalog.create_table(f"default.{kind}", schema, **KINDS[kind]) for kind in kinds}
    keyed = [kind for kind, table in tables.items() if table.schema.primary_keys]

    def write(start, end, text):
        for table in tables.values():
            paimon_py.write_spark(table, numbers(spark, start, end, text).select("p", "k", "v"))

    write(0, 60, "ours")
    writes = [f"INSERT INTO {kind} SELECT CAST(id % 2 AS INT), id, concat('java', id) FROM range(40, 80)" for kind in kinds if kind != "moving"]
    reads = [f"SELECT p, k, v FROM {kind} ORDER BY p, k, v" for kind in kinds]
    rows = dict(zip(kinds, by_connector(str(tmp_path), [*writes, *reads])[len(writes) :], strict=True))
    for kind in kinds:
        want = [(k % 2, k, f"ours{k}") for k in range(60 if kind not in keyed or kind == "moving" else 40)]
        want += [] if kind == "moving" else [(k % 2, k, f"java{k}") for k in range(40, 80)]
        assert [tuple(row) for row in rows[kind]] == sorted(want), kind
    write(70, 100, "again")
    for kind, theirs in zip(kinds, by_connector(str(tmp_path), reads), strict=True):
        mine = paimon_py.convert_to_spark(catalog.table(f"default.{kind}"), spark).orderBy("p", "k", "v").collect()
        assert [tuple(row) for row in theirs] == [tuple(row) for row in mine], kind
        assert len(theirs) == {"moving": 90}.get(kind, 100 if kind in keyed else 130), kind
