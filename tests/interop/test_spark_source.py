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

import paimon_py
from paimon_py import Catalog, Schema

pytest.importorskip("pyspark.sql.datasource", reason="Spark has data sources in Python from 4.0 on")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
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
    assert "there is no column 'w'" in said


def test_tables_of_a_catalog_branches_and_system_tables(spark, catalog):
    table = keyed(catalog)
    table.create_branch("b1")
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
        ({"columns": "k,x"}, "there is no column 'x'"),
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
