"""The Spark tests on the other versions of PySpark, each in a directory of its own, and on Spark Connect."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ["4.0.5", "4.1.4", "4.3.0"]

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.timeout(3600)]


def installed(version):
    """A directory with this PySpark, installed once into the user's cache."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paimon-py-spark"
    found = cache / version
    if not found.exists():
        made = cache / f"{version}-{os.getpid()}"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(made), f"pyspark=={version}"]
        done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=1800)
        if done.returncode:
            shutil.rmtree(made, ignore_errors=True)
            pytest.skip(f"PySpark {version} cannot be installed here: {done.stderr[-300:]}")
        made.rename(found)
    return found


def run(version, *command):
    path = os.pathsep.join([str(installed(version)), str(ROOT), *map(str, (ROOT / "tests", ROOT / "tests" / "interop"))])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_holds_on_one_version_holds_on_the_others(version):
    said = run(version, "-c", "import pyspark; print(pyspark.__version__)")
    assert said.split() == [version]
    asked = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "full or not full", "-k", "not javas_connector"]
    assert " skipped" not in run(version, "-m", "pytest", "tests/interop/test_spark.py", *asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_data_source_works_on_each_version_that_has_data_sources(version):
    asked = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "full or not full"]
    assert " skipped" not in run(version, "-m", "pytest", "tests/interop/test_spark_source.py", *asked)


CONNECT = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession
import paimon_py
from paimon_py import Catalog, SchemaError

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
catalog = Catalog.open(sys.argv[1])
catalog.create_database("db")
schema = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), ("v", pa.string())])
table = catalog.create_table("db.t", schema, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2"})
paimon_py.ship(spark)
df = spark.range(0, 40).selectExpr("cast(id % 2 as int) p", "id k", "concat('v', id) v")
assert paimon_py.write_spark(table, df, identifier=3).row_count == 40
assert paimon_py.write_spark(table, df, identifier=3).already_committed
try:
    paimon_py.write_spark(table, df.selectExpr("p", "if(k = 3, null, k) k"))
except SchemaError as error:
    assert "column k is NOT NULL" in str(error)
else:
    raise AssertionError("NULL was taken")
assert paimon_py.convert_to_spark(table, spark).count() == 40
some = df.where("k < 5").selectExpr("p", "k", "'m' v")
assert paimon_py.merge_spark(table, some, ["p", "k"], when_matched_update=True).updated == 5
assert paimon_py.delete_spark(table, "k > 30", spark=spark).deleted == 9
assert paimon_py.compact_spark(table, full=True, spark=spark).snapshot_id == 4
assert paimon_py.lookup_spark(df.select("p", "k"), table).where("v = 'm'").count() == 5
paimon_py.register(spark, catalog)
assert spark.sql("SELECT count(*) FROM `db.t`").collect() == [(31,)]
assert paimon_py.convert_from_spark(df).read_all().num_rows == 40
paimon_py.register(spark)
assert spark.read.format("paimon").option("where", "k < 9").load(table.location).count() == 9
assert paimon_py.remove_orphans_spark(table, spark=spark).files == 0
assert paimon_py.expire_snapshots_spark(table, retain_max=1, retain_min=1, spark=spark).snapshot_ids == (1, 2, 3)
spark.stop()
print("done")
"""


def test_all_works_on_spark_connect(tmp_path):
    for module in ("grpc", "grpc_status"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"Spark Connect needs the module {module}")
    assert "done" in run("4.3.0", "-c", CONNECT, str(tmp_path))
