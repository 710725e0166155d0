"""Java's connector and our adapter in one Spark: a program that says in JSON lines what went well with each table.

usage: python spark_beside_java.py WAREHOUSE JAR SHAPE…
"""

from __future__ import annotations

import json
import pathlib
import sys
import traceback

import engine_tables
import pyarrow as pa
from engine_tables import SHAPES, copy_of_a_row, create, more, names, open_table
from pyspark.sql import SparkSession
from values import arrow_rows

import paimon_py
from paimon_py import Catalog, Schema


def session(warehouse, jar):
    made = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.extensions", "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions")
        .config("spark.sql.catalog.paimon", "org.apache.paimon.spark.SparkCatalog")
        .config("spark.sql.catalog.paimon.warehouse", f"file:{warehouse}")
        .config("spark.sql.catalog.paimon.cache-enabled", "false")
        .getOrCreate()
    )
    made.sparkContext.setLogLevel("OFF")
    made.sql("USE paimon.default")
    return made


def as_text(rows):
    return sorted(repr(tuple(row)) for row in rows)


def same(spark, table, columns, part):
    """Both read the same rows."""
    columns = ", ".join(columns)
    ours = as_text(paimon_py.convert_to_spark(table, spark).selectExpr(*columns.split(", ")).collect())
    theirs = as_text(spark.sql(f"SELECT {columns} FROM {table.location.rpartition('/')[2]}").collect())
    both = set(ours) & set(theirs)
    assert ours == theirs, f"{part}: ours {[r for r in ours if r not in both][:3]} theirs {[r for r in theirs if r not in both][:3]}"
    assert ours
    return ours


def shape_in_turns(spark, warehouse, shape):
    """We fill, Java reads, copies a row, we merge, delete and compact, Java reads again."""
    create(warehouse, shape)
    table, columns = open_table(warehouse, shape), names(shape)
    filled = same(spark, table, columns, "ours")
    spark.sql(copy_of_a_row(shape))
    table = open_table(warehouse, shape)
    copied = same(spark, table, columns, "theirs")
    assert copied != filled
    more(table, shape)
    same(spark, table, columns, "ours again")
    if shape.name != "moving":  # Java does not compact such tables on Spark
        spark.sql(f"CALL sys.compact(table => 'default.{shape.name}')")
    table = open_table(warehouse, shape)
    same(spark, table, columns, "compacted by Java")
    if table.options.get("merge-engine", "deduplicate") == "deduplicate":
        done = paimon_py.delete_spark(table, "k = 5", spark=spark)
        assert done.deleted, "nothing was deleted"
        same(spark, table, columns, "deleted by us")


PAIRS = [("k", "BIGINT NOT NULL"), ("v", "STRING")]


def pairs(spark, start, end, text):
    return spark.range(start, end, 1, 2).selectExpr("id k", f"concat('{text}', id) v")


def streams(spark, warehouse, catalog, keyed):
    """Java's stream follows both writers; ours too; and both see the same changes."""
    name = "followed_keyed" if keyed else "followed"
    options = {"primary_key": ["k"], "options": {"bucket": "2", "changelog-producer": "input"}} if keyed else {}
    table = catalog.create_table(f"default.{name}", Schema(PAIRS), **options)
    paimon_py.write_spark(table, pairs(spark, 0, 10, "ours"))
    source = spark.readStream.format("paimon").option("scan.mode", "from-snapshot").option("scan.snapshot-id", "1")
    source = source.option("read.changelog", "true").load(f"{warehouse}/default.db/{name}")
    check = f"{warehouse}/check-{name}"
    query = source.writeStream.format("memory").queryName(f"seen_{name}").option("checkpointLocation", check).start()
    try:
        for number in range(2):
            query.processAllAvailable()
            spark.sql(f"INSERT INTO {name} SELECT id + {5 + 10 * number}, concat('java{number}_', id) FROM range(10)")
            query.processAllAvailable()
            paimon_py.write_spark(table, pairs(spark, 10 * number, 10 * number + 12, f"again{number}_"))
        if keyed:
            gone = pairs(spark, 0, 3, "gone").selectExpr("*", "'-D' AS _row_kind")
            paimon_py.write_spark(table, gone)
            paimon_py.compact_spark(table, full=True, spark=spark)
        query.processAllAvailable()
        seen = as_text(spark.table(f"seen_{name}").selectExpr("rowkind", "k", "v").collect())
    finally:
        query.stop()
    steps = [paimon_py.convert_to_spark(step, spark).selectExpr("_row_kind", "k", "v").collect() for step in table.stream(from_=1, until="now")]
    assert seen == as_text(row for rows in steps for row in rows)
    same(spark, table, ["k", "v"], "in the end")
    return seen


def sink(spark, warehouse, catalog):
    """Java's stream writes what we wrote elsewhere into a table that we read and write, too."""
    here, there = (catalog.create_table(f"default.{name}", Schema(PAIRS), primary_key=["k"], options={"bucket": "2"}) for name in ("here", "there"))
    for number in range(2):
        paimon_py.write_spark(here, pairs(spark, 10 * number, 10 * number + 15, f"ours{number}_"))
        source = spark.readStream.table("paimon.default.here")
        written = source.writeStream.format("paimon").option("checkpointLocation", f"{warehouse}/check-sink")
        query = written.start(f"{warehouse}/default.db/there")
        query.processAllAvailable()
        query.stop()
        paimon_py.write_spark(there, pairs(spark, 100 + number, 103 + number, "own"))
    assert same(spark, there, ["k", "v"], "there") == as_text([*map(tuple, here.to_arrow().to_pandas().itertuples(index=False)), (100, "own100"), (101, "own101"), (102, "own102"), (103, "own103")])


def places(spark, warehouse, catalog):
    """Tags and branches of each are the other's."""
    table = catalog.create_table("default.placed", Schema(PAIRS), primary_key=["k"], options={"bucket": "2"})
    paimon_py.write_spark(table, pairs(spark, 0, 5, "one"))
    table.create_tag("t1", 1)
    spark.sql("CALL sys.create_branch('default.placed', 'b1', 't1')")
    branch = table.branch("b1") if hasattr(table, "branch") else catalog.table("default.placed$branch_b1")
    paimon_py.write_spark(branch, pairs(spark, 3, 8, "two"))
    spark.sql("CALL sys.create_tag(table => 'default.placed', tag => 't2', snapshot => 1)")
    theirs = as_text(spark.sql("SELECT k, v FROM `placed$branch_b1`").collect())
    assert theirs == as_text(paimon_py.convert_to_spark(branch, spark).collect())
    assert len(theirs) == 8
    for tag in ("t1", "t2"):
        ours = as_text(paimon_py.convert_to_spark(table.scan(tag=tag), spark).collect())
        assert ours == as_text(spark.sql(f"SELECT k, v FROM placed VERSION AS OF '{tag}'").collect())
        assert len(ours) == 5


def main(warehouse, jar, *asked):
    spark = session(warehouse, jar)
    catalog = Catalog.open(warehouse)
    catalog.create_database("default", exist_ok=True)

    def write(table, columns, made):
        rows: pa.Table = arrow_rows(table.schema, columns, made, kinds=bool(table.schema.primary_keys))
        paimon_py.write_spark(table, paimon_py.convert_to_spark(rows, spark))

    engine_tables.write = write
    works = {
        "streams": lambda: streams(spark, warehouse, catalog, False),
        "streams_keyed": lambda: streams(spark, warehouse, catalog, True),
        "sink": lambda: sink(spark, warehouse, catalog),
        "places": lambda: places(spark, warehouse, catalog),
    }
    for name in asked:
        said = found = None
        try:
            found = works[name]() if name in works else shape_in_turns(spark, pathlib.Path(warehouse), SHAPES[name])
        except Exception as error:  # noqa: BLE001 - any error is an answer
            said = f"{error}\n{traceback.format_exc()}"[:3000]
        print(json.dumps({"name": name, "error": said, "found": found}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
