"""Spark as an executor: the promises of all executors, with work within the function and beside it; and its size."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa  # noqa: E402
from spark_sessions import MARKS, local_session  # noqa: E402

import paimon_py  # noqa: E402
from paimon_py import Catalog, Schema  # noqa: E402
from paimon_py.cdc import Change, InvalidEvent, Sink, SourceColumn, SparkEvents  # noqa: E402
from paimon_py.errors import StorageError, UsageError  # noqa: E402
from paimon_py.executors import SparkExecutor  # noqa: E402
from paimon_py.spark import jobs, task_rows  # noqa: E402
from paimon_py.spark.compression import decompress  # noqa: E402
from paimon_py.spec.types import STRING, Atomic, Root  # noqa: E402
from paimon_py.testing.executor_suite import ExecutorSuite  # noqa: E402

pytestmark = MARKS


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone="UTC")


@pytest.fixture
def warehouse(tmp_path):
    return str(tmp_path)


class TestSparkExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, spark):
        return SparkExecutor(spark)


class TestWorkBesideTheFunction(ExecutorSuite):
    @pytest.fixture
    def executor(self, spark, monkeypatch):
        monkeypatch.setattr(task_rows, "WITHIN_BYTES", 0)
        return SparkExecutor(spark)


def test_items_come_to_a_task_each_and_the_function_stays_small(spark):
    items = [random.Random(number).randbytes(6000) for number in range(13)]
    frame, _ = task_rows.send_work(spark, items, list)
    found = frame.rdd.mapPartitions(lambda rows: [[bytes(row.work) for row in rows]]).collect()
    assert [decompress(one) for (one,) in found] == items


@pytest.mark.parametrize("within", [0, 1 << 20])
def test_what_each_task_gets_does_not_grow_with_the_table(spark, warehouse, monkeypatch, within):
    monkeypatch.setattr(task_rows, "WITHIN_BYTES", within)
    catalog = Catalog.open(warehouse)
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema([("p", "INT"), ("v", "STRING")]), partition_by=["p"])
    table.write_arrow(pa.table({"p": pa.array(range(40), pa.int32()), "v": ["x"] * 40}))
    carried = []
    monkeypatch.setattr(
        "paimon_py.spark.convert.map_batches", lambda df, work, schema: carried.append(work) or jobs.map_batches(df, work, schema)
    )
    assert paimon_py.convert_to_spark(table, spark=spark).count() == 40
    paimon_py.convert_to_spark(table.scan(where="p < 4"), spark=spark)
    from pyspark import cloudpickle

    large, small = (len(cloudpickle.dumps(work)) for work in carried)
    assert (large - small < 200) is (within == 0)


def test_a_name_that_is_not_there_is_told():
    import paimon_py.executors

    assert "SparkExecutor" in dir(paimon_py.executors)
    with pytest.raises(AttributeError, match="no attribute 'FlinkExecutor'"):
        _ = paimon_py.executors.FlinkExecutor


def decoder_of(here):
    """A closure, as Spark's functions may be: it counts only what the driver decodes."""

    def decoder(event):
        here.append(event.offset)
        row = {"id": event.offset % 40, "v": event.value.decode()}
        if row["v"] == "v7":
            return InvalidEvent("seven")
        columns = (SourceColumn("id", Atomic(Root.BIGINT), "int64"), SourceColumn("v", STRING, "string"))
        keys = ("id",) if event.partition else ()
        return Change("", f"t{event.partition}", columns, keys, (("+I", row),))

    return decoder


def kafka_rows(count):
    partitions = pa.array([number % 2 for number in range(count)], pa.int32())
    return pa.table({"value": [f"v{number}" for number in range(count)], "partition": partitions, "offset": range(count)})


def check_tables(catalog, count):
    found = catalog.table("lake.t1").to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": n, "v": f"v{count - 40 + n}"} for n in range(1, 40, 2)]
    found = catalog.table("lake.t0").to_arrow().to_pylist()
    assert found == [{"id": n % 40, "v": f"v{n}"} for n in range(0, count, 2)]
    (letter,) = catalog.table("lake.cdc_dead_letters").to_arrow().to_pylist()
    assert (letter["position"], letter["reason"], letter["value"]) == ("1:7", "seven", b"v7")


def test_change_events_of_a_dataframe_are_decoded_on_executors(spark, warehouse):
    catalog, count, here = Catalog.open(warehouse), 6_000, []
    rows = kafka_rows(count)
    frame = paimon_py.convert_to_spark(rows, spark)
    sink = Sink(catalog, "lake", user="u", format=decoder_of(here), options={"bucket": "-1"})
    done = sink.write(paimon_py.convert_from_spark(frame), identifier=0, executor=SparkExecutor(spark))
    assert (done.rows, done.dead, len(here) < 200) == ({"t0": 3000, "t1": 2999}, 1, True)
    check_tables(catalog, count)
    assert sink.write(rows, identifier=0).rows == {"t0": 0, "t1": 0}


@pytest.mark.parametrize("order", ["as in Kafka", "at random"])
def test_change_events_stay_on_executors(spark, warehouse, order):
    catalog, count, here = Catalog.open(warehouse), 12_000, []
    rows = kafka_rows(count)
    frame = paimon_py.convert_to_spark(rows, spark)
    frame = frame.repartition(2, "partition").sortWithinPartitions("partition", "offset") if order == "as in Kafka" else frame.repartition(3, "value")
    sink = Sink(catalog, "lake", user="u", format=decoder_of(here), options={"bucket": "-1"})
    done = sink.write(SparkEvents(frame), identifier=0)
    assert (done.rows, done.dead, here) == ({"t0": 6000, "t1": 5999}, 1, [])
    check_tables(catalog, count)
    assert sink.write(SparkEvents(frame), identifier=0).rows == {"t0": 0, "t1": 0}
    assert sink.write(rows, identifier=0).rows == {"t0": 0, "t1": 0}
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_what_is_no_dataframe_of_events_is_refused(spark, warehouse):
    frame = spark.createDataFrame([(b"x", 1), (b"y", None)], "value binary, offset bigint")
    sink = Sink(Catalog.open(warehouse), "lake", user="u")
    for given, text in ((kafka_rows(1), "takes a DataFrame"), (frame.select("value"), "'offset'"), (frame.select("offset"), "'value'")):
        with pytest.raises(UsageError, match=text):
            SparkEvents(given)
    with pytest.raises(UsageError, match="no offset"):
        sink.write(SparkEvents(frame), identifier=0)


def test_errors_of_a_decoder_on_executors_arrive(spark, warehouse):
    def failing(event):
        raise StorageError("the registry does not respond", operation="get")

    sink = Sink(Catalog.open(warehouse), "lake", user="u", format=failing)
    frame = paimon_py.convert_to_spark(kafka_rows(3), spark)
    with pytest.raises(StorageError, match="registry"):
        sink.write(SparkEvents(frame), identifier=0)
    assert Catalog.open(warehouse).databases() == []
