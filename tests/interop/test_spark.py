"""Scans become DataFrames and DataFrames become Arrow streams, on a real local Spark; one session for the whole run."""

from __future__ import annotations

import datetime
import decimal
import pickle
import shutil

import pyarrow as pa
import pytest

import paimon_py
from paimon_py import Catalog, Schema, UnsupportedError, UsageError, col

pyspark = pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

UTC = datetime.timezone.utc


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    import os
    import sys

    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "Asia/Shanghai")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


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
