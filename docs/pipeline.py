"""Orders of a shop, from the log of its database to a report, with Spark Structured Streaming.

    python docs/pipeline.py WAREHOUSE CHECKPOINT DIRECTORY
    python docs/pipeline.py WAREHOUSE CHECKPOINT kafka://HOST:PORT/PATTERN

PostgreSQL changes, and Debezium says how: as files of lines `topic TAB key TAB value` in a directory, or in topics of
Kafka whose names match a pattern. `shop.orders` becomes what the table `orders` of the database is, columns and types
too; the changelog of `shop.orders` keeps `shop.customers`, orders and money by customer, up to date; the report is
read from there. The program takes what there is and ends: call it again for what has come since, from `cron` for
instance, and after a crash at any point.

Spark 3.5 and later; Kafka needs the package `org.apache.spark:spark-sql-kafka-0-10_2.12` of Spark's version. Columns
of `orders` that the sums need: customer, total.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, input_file_name

import paimon_py
from paimon_py import Catalog, Schema
from paimon_py.cdc import Event, Sink, SinkResult, of_lines

ORDERS = {"bucket": "2", "changelog-producer": "lookup"}
CUSTOMERS = {"bucket": "2", "merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}
PER_BATCH = {"maxFilesPerTrigger": "5", "maxOffsetsPerTrigger": "100000"}


def source(spark: SparkSession, place: str) -> DataFrame:
    """The stream of events: records of Kafka, or whole files with their names."""
    stream = spark.readStream.options(**PER_BATCH)
    if place.startswith("kafka://"):
        url = urlsplit(place)
        asked = {"kafka.bootstrap.servers": url.netloc, "subscribePattern": url.path[1:], "startingOffsets": "earliest"}
        return stream.format("kafka").options(**asked).load().select("key", "value", "topic", "partition", "offset")
    return stream.format("text").option("wholetext", "true").load(place).withColumn("file", input_file_name())


def events(df: DataFrame) -> pa.RecordBatchReader | Iterator[Event]:
    """The events of a batch in their order: that of offsets, or of the names of files and the lines in them."""
    if "offset" in df.columns:
        return paimon_py.convert_from_spark(df)
    files = sorted((row["file"], row["value"]) for row in df.collect())
    return of_lines(line for _, text in files for line in text.removesuffix("\n").split("\n"))


def user_of(df: DataFrame) -> str:
    """The user of the commits: the streaming query, by the id in its checkpoint.

    With a new checkpoint all events come again under another name, and end in the same rows.
    """
    return f"shop-{df.sparkSession.sparkContext.getLocalProperty('sql.streaming.queryId')}"


def check_checkpoint(catalog: Catalog, user: str, number: int) -> None:
    """Refuse an old copy of the checkpoint: its numbers stand for other events than those that were committed.

    One batch behind is what a crash leaves.
    """
    tables = [catalog.table(f"shop.{name}") for name in catalog.tables("shop")]
    newest = max((table.committed(user=user) or 0 for table in tables), default=0)
    if newest > number:
        raise RuntimeError(f"the checkpoint begins with {number}, tables have {newest}: begin with a new checkpoint")


def take(catalog: Catalog, df: DataFrame, number: int) -> SinkResult:
    """Bring a batch into the tables. A batch that comes again, whole or in part, changes nothing more."""
    return Sink(catalog, "shop", user=user_of(df), options=ORDERS).write(events(df), identifier=number)


def follow(catalog: Catalog, spark: SparkSession) -> int:
    """Bring what changed in orders into the sums: an old row takes away what it had added.

    The identifier of a commit is that of the step that it stands for. A step that was committed and not acknowledged
    comes again, and is not committed again.
    """
    if "orders" not in catalog.tables("shop"):
        return 0
    orders = catalog.table("shop.orders")
    customers = catalog.create_table(
        "shop.customers",
        Schema([("customer", "BIGINT NOT NULL"), ("orders", "BIGINT"), ("total", "DECIMAL(38, 4)")]),
        primary_key=["customer"], options=CUSTOMERS, exist_ok=True,
    )  # fmt: skip
    steps = 0
    stream = orders.stream(from_="earliest", columns=["customer", "total"], consumer_id="customers")
    while (step := stream.poll()) is not None:
        rows = paimon_py.convert_to_spark(step, spark).selectExpr("*", "if(_row_kind IN ('-U', '-D'), -1, 1) AS sign")
        sums = rows.groupBy("customer").agg(
            expr("sum(sign) AS orders"), expr("CAST(sum(sign * coalesce(total, 0)) AS DECIMAL(38, 4)) AS total")
        )
        sums = sums.where("customer IS NOT NULL").withColumn("customer", expr("CAST(customer AS BIGINT)"))
        paimon_py.write_spark(customers, sums, user="customers", identifier=step.identifier)
        step.acknowledge()
        steps += 1
    return steps


def report(catalog: Catalog) -> pa.Table:
    """Orders and money by customer, of those who have orders."""
    rows = catalog.table("shop.customers").scan().to_arrow()
    return rows.filter(pc.greater(rows["orders"], 0)).sort_by("customer")


def main(warehouse: str, checkpoint: str, place: str) -> None:
    """Take in what there is, and report."""
    spark = SparkSession.builder.appName("shop").getOrCreate()
    catalog = Catalog.open(warehouse)
    catalog.create_database("shop", exist_ok=True)
    if "orders" in catalog.tables("shop"):
        catalog.table("shop.orders").compact()  # what a crash left between rows and their changelog

    begun: list[int] = []

    def step(df: DataFrame, number: int) -> None:
        if not begun:
            check_checkpoint(catalog, user_of(df), number)
            begun.append(number)
        print(number, take(catalog, df, number), follow(catalog, spark), flush=True)

    written = source(spark, place).writeStream.foreachBatch(step).option("checkpointLocation", checkpoint)
    written.trigger(availableNow=True).start().awaitTermination()
    follow(catalog, spark)
    for row in report(catalog).to_pylist():
        print("customer {customer}: {orders} orders, {total}".format(**row))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
