"""Spark as an executor: the promises of all executors, with work within the function and beside it; and its size."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa  # noqa: E402
from spark_sessions import MARKS, local_session  # noqa: E402

import paimon_py  # noqa: E402
from paimon_py import Catalog, Schema  # noqa: E402
from paimon_py.cdc import Bad, Change, Sink, SourceColumn  # noqa: E402
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


def test_change_events_of_a_dataframe_are_decoded_on_executors(spark, warehouse):
    """Spark's functions travel: the decoder is a closure here, and counts nothing on the driver but the sample."""
    here = []

    def decoder(event):
        here.append(event.offset)
        row = {"id": event.offset % 40, "v": event.value.decode()}
        if row["v"] == "v7":
            return Bad("seven")
        columns = (SourceColumn("id", Atomic(Root.BIGINT), "int64"), SourceColumn("v", STRING, "string"))
        return Change("", f"t{event.partition}", columns, ("id",), (("+I", row),))

    catalog, count = Catalog.open(warehouse), 6_000
    offsets = pa.array(range(count), pa.int64())
    rows = pa.table({"value": [f"v{number}" for number in range(count)], "partition": pa.array([n % 2 for n in range(count)], pa.int32()), "offset": offsets})
    frame = paimon_py.convert_to_spark(rows, spark)
    sink = Sink(catalog, "lake", user="u", format=decoder, options={"bucket": "2"})
    done = sink.write(paimon_py.convert_from_spark(frame), identifier=0, executor=SparkExecutor(spark))
    assert (done.rows, done.dead, len(here) < 200) == ({"t0": 3000, "t1": 2999}, 1, True)
    for part in range(2):
        found = catalog.table(f"lake.t{part}").to_arrow().sort_by("id").to_pylist()
        assert found == [{"id": n, "v": f"v{count - 40 + n}"} for n in range(part, 40, 2)]
    assert sink.write(rows, identifier=0).rows == {"t0": 0, "t1": 0}
