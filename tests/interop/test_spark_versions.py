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


CONNECT_NEEDS = ("grpcio", "grpcio-status", "googleapis-common-protos", "zstandard")


def installed(name, *packages):
    """A directory with these packages, installed once into the user's cache."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "paimon-py-spark"
    found = cache / name
    if not found.exists():
        made = cache / f"{name}-{os.getpid()}"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", str(made), *packages]
        done = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=1800)
        if done.returncode:
            shutil.rmtree(made, ignore_errors=True)
            pytest.skip(f"{packages} cannot be installed here: {done.stderr[-300:]}")
        made.rename(found)
    return found


def run(version, *command, connects=False):
    """What a command prints on a version of PySpark; `connects`: by Spark Connect, whose modules may have to be installed."""
    places = [installed(version, f"pyspark=={version}"), ROOT, ROOT / "tests", ROOT / "tests" / "interop"]
    if connects and any(importlib.util.find_spec(module) is None for module in ("grpc", "grpc_status")):
        places.append(installed("connect", *CONNECT_NEEDS))
    path = os.pathsep.join(map(str, places))
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_all_that_holds_on_one_version_holds_on_the_others(version):
    said = run(version, "-c", "import pyspark; print(pyspark.__version__)")
    assert said.split() == [version]
    asked = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "full or not full", "-k", "not javas_connector"]
    assert " skipped" not in run(version, "-m", "pytest", "tests/interop/test_spark.py", "tests/interop/test_spark_meaning.py", "tests/interop/test_spark_assignment.py", "tests/interop/test_spark_shapes.py", *asked)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_data_source_works_on_each_version_that_has_data_sources(version):
    asked = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "full or not full"]
    assert " skipped" not in run(version, "-m", "pytest", "tests/interop/test_spark_source.py", "tests/interop/test_spark_source_assignment.py", *asked)


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
assert paimon_py.write_spark(table, df, identifier=3, user='job').row_count == 40
assert paimon_py.write_spark(table, df, identifier=3, user='job').already_committed
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
    assert "done" in run("4.3.0", "-c", CONNECT, str(tmp_path), connects=True)


def test_executors_keep_their_promises_on_spark_connect():
    asked = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "full or not full"]
    assert " skipped" not in run("4.3.0", "-m", "pytest", "tests/interop/spark_connect_executor.py", *asked, connects=True)


LACKING = '''
import os, sys
place, remote = sys.argv[1], sys.argv[2] == "connect"
with open(f"{place}/sitecustomize.py", "w") as file:
    file.write("""
import os, sys

class Lacking:
    def find_spec(self, name, path=None, target=None):
        with open(os.path.join(os.environ["LACKING"], "lacking")) as file:
            if name.partition(".")[0] == file.read():
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Lacking())
""")
os.environ["LACKING"] = place
os.environ["PYTHONPATH"] = place + os.pathsep + os.environ["PYTHONPATH"]

def lack(name):
    with open(f"{place}/lacking", "w") as file:
        file.write(name)

lack("nothing")
import pyarrow as pa
from pyspark.sql import SparkSession
import paimon_py
from paimon_py import Catalog, UsageError

builder = SparkSession.builder.remote("local[2]") if remote else SparkSession.builder.master("local[2]")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.python.worker.reuse", "false")
spark = builder.config("spark.ui.enabled", "false").getOrCreate()
catalog = Catalog.open(place)
catalog.create_database("db")
schema = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), ("v", pa.string())])
keyed = catalog.create_table("db.t", schema, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2"})
plain = catalog.create_table("db.a", schema)
rows = pa.table({"p": pa.array([0, 1] * 20, pa.int32()), "k": range(40), "v": ["v"] * 40}, schema=schema)
for table in (keyed, plain):
    table.write_arrow(rows)
    table.write_arrow(rows)
df = spark.range(0, 40).selectExpr("cast(id % 2 as int) p", "id k", "concat('v', id) v")

OURS = {
    "write": lambda: paimon_py.write_spark(keyed, df),
    "append": lambda: paimon_py.write_spark(plain, df),
    "merge": lambda: paimon_py.merge_spark(keyed, df, ["p", "k"], when_matched_update=True),
    "delete": lambda: paimon_py.delete_spark(plain, "k > 30", spark=spark),
    "update": lambda: paimon_py.update_spark(keyed, "k > 30", {"v": "u"}, spark=spark),
    "compact": lambda: paimon_py.compact_spark(keyed, full=True, spark=spark),
    "rescale": lambda: paimon_py.rescale_spark(keyed, 4, spark=spark),
    "analyze": lambda: paimon_py.analyze_spark(plain, ["v"], spark=spark),
    "orphans": lambda: paimon_py.remove_orphans_spark(plain, spark=spark),
    "arrow": lambda: paimon_py.convert_from_spark(df).read_all(),
}
SPARKS = {
    "read": lambda: paimon_py.convert_to_spark(keyed, spark).collect(),
    "lookup": lambda: paimon_py.lookup_spark(df.select("p", "k"), keyed, columns=["v"]).collect(),
    "back": lambda: paimon_py.convert_from_spark(paimon_py.convert_to_spark(keyed, spark)).read_all(),  # the frame's own part may fail first
}
for missing, advice in (("paimon_py", "paimon_py.ship(spark)"), ("msgspec", "install there what paimon_py needs")):
    lack(missing)
    for kind, verbs in ((UsageError, OURS), (Exception, SPARKS)):
        for name, verb in verbs.items():
            try:
                verb()
            except kind as error:
                said = f"the Python of the executors lacks the module '{missing}'"
                assert said in str(error) and advice in str(error), (missing, name, str(error)[-3000:])
            else:
                raise AssertionError(f"{name} needs no {missing}")
lack("nothing")
assert paimon_py.write_spark(plain, df).row_count == 40
assert len(keyed.snapshots()) == 2 and len(plain.snapshots()) == 3
spark.stop()
print("done")
'''


@pytest.mark.parametrize(("version", "way"), [("4.3.0", "connect"), ("4.1.4", "classic")])
def test_executors_that_lack_a_module_name_the_way_out(version, way, tmp_path):
    assert "done" in run(version, "-c", LACKING, str(tmp_path), way, connects=way == "connect")
