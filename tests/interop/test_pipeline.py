"""docs/pipeline.py on real parts: PostgreSQL, Debezium, files or Kafka, Spark; killed at random it ends as the database."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import oracle
import pytest
from change_source import launched, plain, source
from test_spark_versions import installed

from paimon_py import Catalog

pytest.importorskip("pyspark", reason="the pipeline needs pyspark")

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "docs" / "pipeline.py"
TABLES = {"orders": "id", "items": "a, b"}
KAFKA_JARS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7", "org.apache.spark:spark-token-provider-kafka-0-10_2.12:3.5.7",
    "org.apache.kafka:kafka-clients:3.4.1", "org.apache.commons:commons-pool2:2.11.1",
)  # fmt: skip

DYING = """
import os, runpy, signal, sys
from paimon_py.storage.local_store import LocalStore

left = int(sys.argv.pop(1))

def dying(real, late):
    def call(*arguments, **more):
        global left
        left -= 1
        if left == 0 and not late:
            os.killpg(0, signal.SIGKILL)
        done = real(*arguments, **more)
        if left == 0:
            os.killpg(0, signal.SIGKILL)
        return done
    return call

for number, name in enumerate(("get", "put_new", "put", "list", "stat", "delete", "open_read", "open_write")):
    setattr(LocalStore, name, dying(getattr(LocalStore, name), number % 2))
sys.argv[0] = sys.argv.pop(1)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""A program that is killed with all its processes at the n-th call of a store in its own process."""

FEED = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from paimon_py.cdc import of_lines

spark = SparkSession.builder.getOrCreate()
where, lines = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8").split("\\n")[:-1]
events = list(of_lines(lines))
java = spark._jvm
settings = java.java.util.Properties()
settings.put("bootstrap.servers", where)
admin = java.org.apache.kafka.clients.admin.AdminClient.create(settings)
known = admin.listTopics().names().get()
fresh = java.java.util.ArrayList()
for topic in {event.topic for event in events}:
    if not known.contains(topic):
        fresh.add(java.org.apache.kafka.clients.admin.NewTopic(topic, 3, 1))
admin.createTopics(fresh).all().get()
admin.close()
rows = [(event.topic, event.key, event.value) for event in events]
frame = spark.createDataFrame(rows, "topic string, key binary, value binary").coalesce(1)
frame.write.format("kafka").option("kafka.bootstrap.servers", where).save()
spark.stop()
"""
"""Lines into topics of three partitions each, in their order."""


@pytest.fixture
def changing():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    place = Path(tempfile.mkdtemp(prefix="pipeline-"))
    try:
        with source(place) as found:
            yield found
    finally:
        shutil.rmtree(place, ignore_errors=True)


CREATE = [
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, total numeric(8,2), n smallint, note varchar(20), at timestamp(3));",
    "CREATE TABLE items (a int, b text, v double precision, PRIMARY KEY (a, b));",
]
EVOLVE = [
    [],
    ["ALTER TABLE orders ADD COLUMN extra text; ALTER TABLE orders ALTER COLUMN n TYPE integer;"],
    ["ALTER TABLE orders ALTER COLUMN total TYPE numeric(12,3); ALTER TABLE items ADD COLUMN w date;"],
]


def life(rng, number, count=120):
    """Statements of one round: the source changes its columns in the middle."""
    said = [] if number else list(CREATE)
    for each in range(count):
        if each == count // 2:
            said += EVOLVE[number]
        key, n = rng.randrange(60), rng.randrange(-30000, 30000)
        said.append(
            rng.choice(
                [
                    f"INSERT INTO orders(id, customer, total, n, note, at) VALUES ({key}, {key % 5}, {n}.25, {n}, 'ä\u2028{n}', "
                    f"timestamp '2024-01-01' + interval '{n} hours') ON CONFLICT (id) DO UPDATE SET n = excluded.n, total = {n % 90}.5;",
                    f"DELETE FROM orders WHERE id = {key};",
                    f"UPDATE orders SET customer = {key % 4}, n = {n} WHERE id % 7 = {key % 7};",
                    f"UPDATE orders SET id = id + 1000 WHERE id = {key} AND NOT EXISTS (SELECT 1 FROM orders WHERE id = {key + 1000});",
                    f"UPDATE orders SET total = NULL, customer = NULLIF(customer, {key % 5}) WHERE id = {key};",
                    f"INSERT INTO items(a, b, v) VALUES ({key % 9}, 'b{n % 5}', {n} / 7.0) ON CONFLICT DO NOTHING;",
                    f"DELETE FROM items WHERE a = {key % 9};",
                    f"BEGIN; DELETE FROM orders WHERE id = {key}; INSERT INTO orders(id, customer, total) VALUES ({key}, 1, 7); COMMIT;",
                ]
            )
        )
    return said


class Play:
    """Runs of the program on one warehouse, of which some are killed."""

    def __init__(self, place, rng, jars=(), spark=()):
        self.warehouse, self.checkpoint, self.rng, self.kills = place / "wh", place / "checkpoint", rng, 0
        more = f"--driver-class-path {os.pathsep.join(jars)}" if jars else ""
        self.environment = {
            **os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*spark, ROOT])), "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": f"--master local[2] --driver-memory 1g --conf spark.ui.enabled=false {more} "
            "--conf spark.sql.shuffle.partitions=2 --conf spark.log.level=ERROR pyspark-shell",
        }  # fmt: skip

    def python(self, code, *arguments):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)], env=self.environment, cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, timeout=900,
        )  # fmt: skip
        return done.returncode, done.stdout

    def round(self, where, kills=2):
        """Run the program until it comes to its end; its first runs are killed, where they get so far."""
        for number in range(kills + 1):
            at = self.rng.randrange(20, 250) if number < kills else 0
            code, said = self.python(DYING, at, PROGRAM, self.warehouse, self.checkpoint, where)
            if code == 0:
                return said
            assert code == -9 and at, said[-5000:]
            self.kills += 1
        raise AssertionError("unreachable")

    def check(self, changing):
        """The tables and the report are what the database says."""
        catalog = Catalog.open(str(self.warehouse))
        assert set(catalog.tables("shop")) - {"customers"} == {"orders", "items", "done"}, "dead letters"
        for name, key in TABLES.items():
            said = changing.sql(f"SELECT row_to_json({name}) FROM {name} ORDER BY {key};")
            expected = [json.loads(line) for line in said.split("\n")[:-1]]
            order = [(part, "ascending") for part in key.split(", ")]
            got = catalog.table(f"shop.{name}").to_arrow().sort_by(order).to_pylist()
            assert [plain(row) for row in got] == [plain(row) for row in expected]
            assert got, name
        sums = "SELECT customer, count(*), coalesce(sum(total), 0) FROM orders WHERE customer IS NOT NULL GROUP BY 1 ORDER BY 1;"
        expected = [line.split("|") for line in changing.sql(sums).split("\n")[:-1]]
        report = catalog.table("shop.customers").to_arrow().sort_by("customer").to_pylist()
        alive = [[row["customer"], row["orders"], float(row["total"])] for row in report if row["orders"]]
        assert alive == [[int(one), int(two), float(three)] for one, two, three in expected]
        assert all(not row["total"] for row in report if not row["orders"])


def parts(rng, lines, directory, begun):
    """Lines as new files in a directory that Spark follows: whole when they appear, later ones with later times."""
    directory.mkdir(exist_ok=True)
    start, number = 0, begun
    while start < len(lines):
        end, number = start + rng.randrange(1, 60), number + 1
        whole = directory.parent / "part"
        whole.write_text("".join(line + "\n" for line in lines[start:end]), encoding="utf-8")
        os.utime(whole, (1_700_000_000 + number,) * 2)
        whole.rename(directory / f"part-{number:06}.tsv")
        start = end
    return number


@pytest.mark.full
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("seed", "version"), [(0, None), (1, None), (2, None), (3, "4.1.4")])
def test_from_files_the_report_is_what_the_database_says_whatever_is_killed(changing, tmp_path, seed, version):
    rng = random.Random(seed)
    play, given, files = Play(tmp_path, rng, spark=[installed(version)] if version else ()), 0, 0
    for number in range(len(EVOLVE)):
        changing.change(life(rng, number))
        lines = changing.told()
        files = parts(rng, lines[given:], tmp_path / "lines", files)
        given = len(lines)
        play.round(tmp_path / "lines")
        play.check(changing)
    assert play.kills >= 3


@pytest.mark.full
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.timeout(3000)
def test_an_old_copy_of_the_checkpoint_is_refused_and_a_lost_one_loses_nothing(changing, tmp_path):
    rng = random.Random(5)
    play, copy, given, files = Play(tmp_path, rng), tmp_path / "copy", 0, 0
    for number in range(len(EVOLVE)):
        changing.change(life(rng, number, 40))
        files = parts(rng, changing.told()[given:], tmp_path / "lines", files)
        given = len(changing.told())
        play.round(tmp_path / "lines", kills=0)
        if number == 0:
            shutil.copytree(play.checkpoint, copy)
    shutil.rmtree(play.checkpoint)
    copy.rename(play.checkpoint)
    code, said = play.python(DYING, 0, PROGRAM, play.warehouse, play.checkpoint, tmp_path / "lines")
    assert code == 1 and "begin with a new checkpoint" in said, said[-3000:]
    shutil.rmtree(play.checkpoint)
    play.round(tmp_path / "lines")
    play.check(changing)


@pytest.mark.full
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", [10, 11])
def test_through_kafka_the_report_is_what_the_database_says_whatever_is_killed(changing, tmp_path, seed):
    try:
        jars = [oracle._jar(each) for each in KAFKA_JARS]
    except oracle.OracleError as error:
        pytest.skip(f"Spark's source for Kafka cannot be had here: {error}")
    rng = random.Random(seed)
    play, given = Play(tmp_path, rng, jars), 0
    with launched("kafka", tmp_path / "kafka", {}) as said:
        broker = said["PAIMON_TEST_KAFKA"]
        for number in range(len(EVOLVE)):
            changing.change(life(rng, number))
            lines = changing.told()
            (tmp_path / "fresh").write_text("".join(line + "\n" for line in lines[given:]), encoding="utf-8")
            given = len(lines)
            code, told = play.python(FEED, broker, tmp_path / "fresh")
            assert code == 0, told[-3000:]
            play.round(f"kafka://{broker}/pg.*")
            play.check(changing)
    assert play.kills >= 3
