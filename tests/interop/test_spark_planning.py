"""Reads that Spark's executors plan: the rows are those of a plan by the driver, which does not receive large plans."""

from __future__ import annotations

import random
import shutil

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa  # noqa: E402
from spark_sessions import MARKS, local_session  # noqa: E402

import paimon_py  # noqa: E402
from paimon_py import Catalog, col  # noqa: E402
from paimon_py.distributed import DistributedPlan  # noqa: E402
from paimon_py.errors import SnapshotExpiredError  # noqa: E402
from paimon_py.executors import SparkExecutor  # noqa: E402
from paimon_py.scan import plan_shares  # noqa: E402
from paimon_py.spark import planning  # noqa: E402
from paimon_py.spark.planning import LargePlan, plan_on_executors  # noqa: E402

pytestmark = MARKS

SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
ALWAYS = {"scan.plan.executor-manifests": "0"}
SHAPES = {
    "append": {"options": {"bucket": "-1", "deletion-vectors.enabled": "true"}},
    "keyed": {"primary_key": ["p", "k"], "options": {"bucket": "3", "write-only": "true"}},
    "evolving": {"options": {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}},
}
WHERE = [None, col("v") > 40, (col("p") == 2) & (col("k") < 60), col("p") == 99]


@pytest.fixture(scope="module")
def spark():
    yield from local_session(zone="UTC")


@pytest.fixture(scope="module", params=SHAPES)
def table(request, tmp_path_factory):
    rng = random.Random(request.param)
    catalog = Catalog.open(tmp_path_factory.mktemp("shares"))
    catalog.create_database("d")
    shape = SHAPES[request.param]
    options = {**shape["options"], "manifest.merge-min-count": "1000", "manifest.full-compaction-threshold-size": "1 gb"}
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], **{**shape, "options": options})
    for number in range(10):
        keys = rng.sample(range(number * 10, number * 10 + 40), 8)
        rows = {"p": [key % 5 for key in keys], "k": keys, "v": [rng.choice((None, key, 2 * key)) for key in keys]}
        table.write_arrow(pa.table(rows, SCHEMA))
        if number in (4, 8) and request.param != "evolving":
            table.compact(full=True)
            table.delete(col("k") % 5 == number % 5)
    return lambda: catalog.table("d.t")


def rows_of(found):
    return sorted((row["p"], row["k"], row["v"] is not None, row["v"]) for row in found.to_pylist())


def read(scan, spark):
    return rows_of(paimon_py.convert_from_spark(paimon_py.convert_to_spark(scan, spark)).read_all())


@pytest.mark.parametrize("returned", [1000, 0])
@pytest.mark.parametrize("where", WHERE)
def test_rows_are_those_of_the_plan_of_the_driver(spark, table, monkeypatch, where, returned):
    monkeypatch.setattr(plan_shares, "PART_ENTRIES", 20)
    monkeypatch.setattr(planning, "_RETURNED", returned)
    assert read(table().scan(where=where, options=ALWAYS), spark) == rows_of(table().scan(where=where).to_arrow())


def test_a_plan_that_is_large_stays_on_the_executors(spark, table, monkeypatch):
    monkeypatch.setattr(plan_shares, "PART_ENTRIES", 20)
    whole = sorted(file.name for split in table().scan().splits() for file in split.files)
    plan = DistributedPlan.of(table().scan(options=ALWAYS))
    assert plan is not None and plan.share_count > 1
    returned = plan_on_executors(spark, plan)
    assert sorted(file.name for split in returned for file in split.files) == whole
    monkeypatch.setattr(planning, "_RETURNED", 0)
    large = plan_on_executors(spark, plan)
    assert isinstance(large, LargePlan) and sum(large.sizes) > 0
    rules = large.rules._replace(size_max=sum(large.sizes) // 5)
    frame, _ = large._replace(rules=rules).send(spark, list)
    tasks = frame.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    assert len(tasks) in (5, 6) and len([each for each in tasks if each]) > 1
    monkeypatch.setattr(planning, "_TASKS_MAX", 2)
    frame, _ = large._replace(rules=rules).send(spark, list)
    assert frame.rdd.getNumPartitions() == 2


@pytest.mark.parametrize("returned", [1000, 0])
def test_limits_and_columns(spark, table, monkeypatch, returned):
    monkeypatch.setattr(planning, "_RETURNED", returned)
    total = table().count()
    for limit in (0, 1, 7, total + 5):
        frame = paimon_py.convert_to_spark(table().scan(columns=["k"], limit=limit, options=ALWAYS), spark)
        assert frame.columns == ["k"] and frame.count() == min(limit, total)


def test_below_the_option_the_driver_plans(spark, table, monkeypatch):
    def refuse(*_):
        raise AssertionError("executors planned")

    monkeypatch.setattr("paimon_py.spark.convert.plan_on_executors", refuse)
    assert read(table().scan(), spark) == rows_of(table().scan().to_arrow())
    with pytest.raises(AssertionError, match="executors planned"):
        read(table().scan(options=ALWAYS), spark)


def test_the_executor_plans_as_the_driver(spark, table):
    found = table().scan(options=ALWAYS).iter_splits(executor=SparkExecutor(spark))
    assert sorted(map(bytes, found)) == sorted(map(bytes, table().scan().splits()))


def test_errors_of_executors_are_those_of_the_driver(spark, tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", SCHEMA, options={"bucket": "-1"})
    for _ in range(2):
        table.write_arrow(pa.table({"p": [1], "k": [1], "v": [1]}, SCHEMA))
    scan = table.scan(options=ALWAYS)
    plan = DistributedPlan.of(scan)
    shutil.rmtree(tmp_path / "d.db" / "t" / "manifest")
    (tmp_path / "d.db" / "t" / "snapshot" / "snapshot-2").unlink()
    with pytest.raises(SnapshotExpiredError):
        plan_on_executors(spark, plan)
