"""Executors that are killed, attempts that run twice and drivers that die, on a cluster of real processes.

Each verb runs while executors die at a call of their stores; the rows must be those that were asked for, and what is left over
must be orphans that cleaning deletes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import paimon_py
from paimon_py import Catalog
from paimon_py.cdc import Event, Sink, SparkEvents, step_by_tasks
from paimon_py.errors import ResourceError
from paimon_py.executors import SparkExecutor

pyspark = pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.timeout(3600),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ROOT = Path(__file__).parents[2]

WATCHED = '''
"""Every Python of the executors begins with this: calls of stores are counted, and some kill the executor."""
import fcntl, json, os, signal, time
from paimon_py.storage.local_store import LocalStore

PLACE = os.environ["EXECUTOR_DEATHS"]

def fall():
    daemon = os.getppid()
    with open(f"/proc/{daemon}/stat") as stat:
        executor = int(stat.read().rpartition(")")[2].split()[1])
    for one in (executor, daemon, os.getpid()):
        os.kill(one, signal.SIGKILL)

def counted():
    with open(f"{PLACE}/calls", "ab") as calls:
        fcntl.flock(calls, fcntl.LOCK_EX)
        calls.write(b".")
        calls.flush()
        return os.fstat(calls.fileno()).st_size

def hold(task):
    """The first attempt of a task waits for the second one, then both go on."""
    if task.partitionId() != 0:
        return
    mark = f"{PLACE}/second"
    if task.attemptNumber():
        open(mark, "w").close()
    for _ in range(6000):
        if os.path.exists(mark):
            return
        time.sleep(0.05)
    raise RuntimeError("no second attempt began")

def watched(real):
    def call(*arguments, **more):
        from pyspark import TaskContext
        task = TaskContext.get()
        if task is None or not os.path.exists(f"{PLACE}/plan"):
            return real(*arguments, **more)
        with open(f"{PLACE}/plan") as file:
            plan = json.load(file)
        if plan["hold"]:
            hold(task)
        number = counted()
        if number in plan["at"] or (plan["always"] and number > min(plan["at"])):
            if plan["late"]:
                real(*arguments, **more)
            fall()
        return real(*arguments, **more)
    return call

for name in ("get", "put_new", "put", "list", "stat", "delete", "open_read", "open_write"):
    setattr(LocalStore, name, watched(getattr(LocalStore, name)))
'''

ROWS = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int64(), False), ("v", pa.string())])
KINDS = {
    "fixed": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "3"}},
    "vectors": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": "2", "deletion-vectors.enabled": "true"}},
    "looked up": {"primary_key": ["k"], "options": {"bucket": "2", "changelog-producer": "lookup"}},
    "dynamic": {"primary_key": ["p", "k"], "partition_by": ["p"]},
    "dynamic, vectors": {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"deletion-vectors.enabled": "true"}},
    "moving": {"primary_key": ["k"], "partition_by": ["p"]},
    "append": {"partition_by": ["p"]},
    "marked": {"partition_by": ["p"], "options": {"deletion-vectors.enabled": "true"}},
    "bucketed": {"options": {"bucket": "3", "bucket-key": "k"}},
    "postponed": {"primary_key": ["k"], "options": {"bucket": "-2"}},
}  # fmt: skip


class Deaths:
    """What the executors are told: at which call of a store to die."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def plan(self, *at: int, late: bool = False, always: bool = False, hold: bool = False) -> None:
        self.forget()
        (self.place / "made").write_text(json.dumps({"at": at, "late": late, "always": always, "hold": hold}))
        (self.place / "made").rename(self.place / "plan")

    def forget(self) -> None:
        for name in ("plan", "calls", "second"):
            (self.place / name).unlink(missing_ok=True)

    @property
    def calls(self) -> int:
        path = self.place / "calls"
        return path.stat().st_size if path.exists() else 0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("deaths")


@pytest.fixture(scope="module")
def cluster(place):
    """A master and two workers with addresses of their own: Spark starts no second attempt on the host of the first."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{free.getsockname()[1]}"
    started = []

    def start(kind, host, *more):
        command = [f"{os.environ['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{kind}", "--host", host, *more]
        environment = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_NO_DAEMONIZE": "1"}
        with open(place / f"{kind}-{host}.log", "w") as log:
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=place))

    try:
        start("master.Master", "127.0.0.1", "--port", url.rpartition(":")[2], "--webui-port", "0")
        for host in ("127.0.0.1", "127.0.0.2"):
            settings = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(place / f"work-{host}")]
            start("worker.Worker", host, *settings, url)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


@pytest.fixture(scope="module")
def spark(place, cluster):
    from pyspark.sql import SparkSession

    (place / "sitecustomize.py").write_text(WATCHED)
    session = (
        SparkSession.builder.master(cluster)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.executor.memory", "640m")
        .config("spark.executorEnv.PYTHONPATH", os.pathsep.join([str(place), str(ROOT)]))
        .config("spark.executorEnv.EXECUTOR_DEATHS", str(place))
        .config("spark.speculation", "true")
        .config("spark.speculation.multiplier", "3")
        .config("spark.speculation.quantile", "0.5")
        .config("spark.speculation.minTaskRuntime", "5s")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def deaths(spark, place):
    made = Deaths(place)
    yield made
    made.forget()


@pytest.fixture
def db(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db", exist_ok=True)
    return catalog


def numbers(spark, start, end, text="v"):
    return spark.range(start, end, 1, 3).selectExpr("cast(id % 2 as int) p", "id k", f"concat('{text}', id) v")


def expected(start, end, text="v"):
    return {(k % 2, k): f"{text}{k}" for k in range(start, end)}


def content(table):
    rows = [((row["p"], row["k"]), row["v"]) for row in table.to_arrow().to_pylist()]
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def on_disk(table):
    return sorted(path.name for path in Path(table.location).rglob("*") if path.name.startswith("data-") and path.is_file())


def named(table):
    entries = [e for s in table.snapshots() for m in s.manifests() for e in m.entries()]
    return sorted({entry.file.name for entry in entries})


def settle(spark):
    """Wait for attempts that Spark gave up, which may write until they are killed."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    while any(one.numRunningTasks() for one in tracker.getExecutorInfos()):
        time.sleep(0.1)


def only_orphans_are_left(spark, table):
    """Clean as a day later would, until attempts that Spark killed are gone; then files are what snapshots name."""
    settle(spark)
    for _ in range(50):
        for path in Path(table.location).rglob("*"):
            os.utime(path, (0, 0))
        table.remove_orphans(dry_run=False)
        if on_disk(table) == named(table):
            return
        time.sleep(0.1)
    assert on_disk(table) == named(table)


def filled(table, start=0, end=40):
    """Two commits of half the rows each."""
    for first in (start, (start + end) // 2):
        keys = range(first, first + (end - start) // 2)
        table.write_arrow(pa.table({"p": pa.array([k % 2 for k in keys], pa.int32()), "k": list(keys), "v": [f"v{k}" for k in keys]}))


def write(spark, table):
    assert paimon_py.write_spark(table, numbers(spark, 0, 60), identifier=5, user="job").row_count == 60
    assert paimon_py.write_spark(table, numbers(spark, 0, 60), identifier=5, user="job").already_committed
    assert [one.commit_kind.value for one in table.snapshots()].count("APPEND") == 1
    if table.options.get("bucket") == "-2":
        assert len(table.compact(full=True).snapshot_ids) == 2, "rows are published by one commit, and compacted by another"


def compact(spark, table):
    paimon_py.compact_spark(table, full=True, spark=spark)


def delete(spark, table):
    assert paimon_py.delete_spark(table, "k >= 10 and k < 30", spark=spark).deleted == 20


def update(spark, table):
    assert paimon_py.update_spark(table, "k < 40", {"v": "u"}, spark=spark).updated == 40


def merge(spark, table):
    done = paimon_py.merge_spark(
        table, numbers(spark, 20, 60, "m"), ["p", "k"], when_matched_update=True, when_not_matched_insert=True, tasks=3
    )
    assert (done.updated, done.inserted) == (20, 20)


def merge_apart(spark, table):
    """On a column that is not the key, with inserts."""
    source = numbers(spark, 20, 60).selectExpr("p", "k", "v", "concat('m', k) AS w")
    values = {"p": "source.p", "k": "source.k", "v": "source.w"}
    done = paimon_py.merge_spark(
        table, source, ["v"], when_matched_update={"v": "source.w"}, when_not_matched_insert=values, tasks=3
    )
    assert (done.updated, done.inserted) == (20, 20)


def rescale(spark, table):
    paimon_py.rescale_spark(table, 6, spark=spark)


def told_to(table):
    """A sink, and change events of rows that come, and change once more."""
    columns = [{"field": name, "type": kind} for name, kind in (("p", "int32"), ("k", "int64"), ("v", "string"))]
    keys = [column for column in columns if column["field"] in table.schema.primary_keys]
    told = []
    for k, v in [(k, "old") for k in range(20, 50)] + [(k, f"e{k}") for k in range(20, 60)]:
        row = {"p": k % 2, "k": k, "v": v}
        payload = {"op": "c", "before": None, "after": row, "source": {"table": "t"}}
        key = {"schema": {"fields": keys}, "payload": {column["field"]: row[column["field"]] for column in keys}}
        value = {"schema": {"fields": [{"field": "after", "fields": columns}]}, "payload": payload}
        told.append(Event(json.dumps(value).encode(), json.dumps(key).encode()))
    sink = Sink(Catalog.open(str(Path(table.location).parents[1])), "db", user="job")
    return sink, told


def events(spark, table):
    """Change events whose rows pass through the driver."""
    sink, told = told_to(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_by_tasks, "TASK_EVENTS", 20)
        assert sink.write(told, identifier=5, executor=SparkExecutor(spark)).rows == {"t": 70}
    assert sink.write(told, identifier=5).rows == {"t": 0}


def events_of_dataframe(spark, table):
    """Change events that stay on executors, and are divided at random."""
    sink, told = told_to(table)
    rows = {"value": [each.value for each in told], "key": [each.key for each in told], "offset": range(len(told))}
    frame = paimon_py.convert_to_spark(pa.table(rows), spark)
    assert sink.write(SparkEvents(frame.repartition(3, "key")), identifier=5).rows == {"t": 70}
    assert sink.write(told, identifier=5).rows == {"t": 0}


Verb = Callable[[object, object], None]
RESULTS: dict[Verb, dict] = {
    write: expected(0, 60),
    compact: expected(0, 40),
    delete: expected(0, 10) | expected(30, 40),
    update: dict.fromkeys(expected(0, 40), "u"),
    merge: expected(0, 20) | expected(20, 60, "m"),
    merge_apart: expected(0, 20) | expected(20, 60, "m"),
    rescale: expected(0, 40),
    events: expected(0, 20) | expected(20, 60, "e"),
    events_of_dataframe: expected(0, 20) | expected(20, 60, "e"),
}
CASES = [
    *((write, kind) for kind in KINDS),
    *((compact, kind) for kind in ("fixed", "vectors", "looked up", "append")),
    *((delete, kind) for kind in ("fixed", "append", "marked", "moving")),
    *((update, kind) for kind in ("vectors", "marked")),
    *((merge, kind) for kind in ("fixed", "looked up", "dynamic", "dynamic, vectors", "append", "marked")),
    (rescale, "fixed"),
    *((merge_apart, kind) for kind in ("fixed", "dynamic", "dynamic, vectors")),
    *((events, kind) for kind in ("fixed", "dynamic")),
    *((events_of_dataframe, kind) for kind in ("fixed", "dynamic", "looked up")),
]
IDS = [f"{verb.__name__}-{kind}" for verb, kind in CASES]


@pytest.mark.parametrize(("verb", "kind"), CASES, ids=IDS)
def test_executors_are_killed_in_the_middle(spark, deaths, db, verb, kind):
    """At one of the first calls of stores, before or after the call."""
    number = CASES.index((verb, kind))
    table = db.create_table("db.t", ROWS, **KINDS[kind])
    if verb is not write:
        filled(table)
    before = len(table.snapshots())
    at = 1 + 3 * number % 8
    deaths.plan(at, late=number % 2 == 1)
    verb(spark, table)
    assert deaths.calls >= at, "nobody died"
    deaths.forget()
    assert content(table) == RESULTS[verb]
    assert len(table.snapshots()) - before <= (3 if verb is write and kind == "postponed" else 2)
    only_orphans_are_left(spark, table)
    assert content(table) == RESULTS[verb]
    table.compact(full=True)
    assert content(table) == RESULTS[verb]


@pytest.mark.parametrize(
    ("verb", "kind"), [(write, "fixed"), (write, "append"), (write, "dynamic"), (compact, "fixed"), (delete, "append"), (merge, "fixed"), (merge, "append"), (events, "fixed")],
    ids=["write-fixed", "write-append", "write-dynamic", "compact-fixed", "delete-append", "merge-fixed", "merge-append", "events-fixed"],
)  # fmt: skip
def test_two_attempts_of_a_task_run_at_once(spark, deaths, db, verb, kind):
    table = db.create_table("db.t", ROWS, **KINDS[kind])
    if verb is not write:
        filled(table)
    deaths.plan(hold=True)
    verb(spark, table)
    assert (deaths.place / "second").exists()
    settle(spark)
    deaths.forget()
    assert content(table) == RESULTS[verb]
    only_orphans_are_left(spark, table)
    assert content(table) == RESULTS[verb]


@pytest.mark.parametrize(("verb", "kind"), [(write, "fixed"), (merge, "fixed")], ids=["write", "merge"])
def test_a_job_that_fails_for_good_leaves_no_snapshot(spark, deaths, db, verb, kind):
    table = db.create_table("db.t", ROWS, **KINDS[kind])
    if verb is not write:
        filled(table)
    before, was = [one.id for one in table.snapshots()], content(table)
    deaths.plan(3, late=True, always=True)
    with pytest.raises(ResourceError, match="executors died.* nothing of this job was committed"):
        verb(spark, table)
    settle(spark)
    deaths.forget()
    assert [one.id for one in table.snapshots()] == before
    assert content(table) == was
    only_orphans_are_left(spark, table)
    verb(spark, table)
    assert content(table) == RESULTS[verb]


# -- drivers --------------------------------------------------------------------------------------------------------

DRIVER = """
import os, signal, sys
from pyspark.sql import SparkSession
import paimon_py
from paimon_py.spark import write
from paimon_py.storage.local_store import LocalStore

place, start, identifier, when = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2").getOrCreate()
gather, put_new = write.gather, LocalStore.put_new

def die():
    os.killpg(0, signal.SIGKILL)

def dying_gather(*given):
    done = gather(*given)
    assert done
    die()

def dying_put_new(self, path, data, *, within=None):
    if "/snapshot/snapshot-" in path and when == "before":
        die()
    done = put_new(self, path, data, within=within)
    if "/snapshot/snapshot-" in path:
        die()
    return done

if when == "collected":
    write.gather = dying_gather
elif when in ("before", "after"):
    LocalStore.put_new = dying_put_new
df = spark.range(start, start + 20, 1, 3).selectExpr("cast(id % 2 as int) p", "id k", "concat('v', id) v")
done = [paimon_py.write_spark(paimon_py.Table.open(one), df, identifier=identifier, user="job") for one in place.split(",")]
print([one.already_committed for one in done])
spark.stop()
"""


def driver(tables, start, identifier, when):
    """What a driver in a process of its own says; None if it killed itself."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    place = ",".join(table.location for table in tables)
    command = [sys.executable, "-c", DRIVER, place, str(start), str(identifier), when]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, start_new_session=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return None if done.returncode else done.stdout.strip()


@pytest.mark.parametrize("kind", ["fixed", "append"])
def test_a_driver_that_dies_around_its_commit_comes_back_with_the_same_identifier(db, kind):
    table = db.create_table("db.t", ROWS, **KINDS[kind])
    assert driver([table], 0, 1, "collected") is None
    assert (table.snapshots(), len(on_disk(table)) > 0) == ([], True)
    assert driver([table], 0, 1, "before") is None
    assert table.snapshots() == []
    assert driver([table], 0, 1, "after") is None
    assert (content(table), table.committed("job")) == (expected(0, 20), 1)
    assert driver([table], 0, 1, "never") == "[True]"
    assert driver([table], 20, 2, "never") == "[False]"
    assert content(table) == expected(0, 40)
    for path in Path(table.location).rglob("*"):
        os.utime(path, (0, 0))
    assert table.remove_orphans(dry_run=False).files > 0
    assert on_disk(table) == named(table)
    assert content(table) == expected(0, 40)


# -- checkpoints ----------------------------------------------------------------------------------------------------


class Stream:
    """A query that writes files of rows to a table, batch by batch."""

    def __init__(self, spark, table, place, user=None):
        self.spark, self.table, self.place, self.user = spark, table, place, user

    def feed(self, start, end):
        numbers(self.spark, start, end).coalesce(1).write.mode("append").parquet(str(self.place / "in"))

    def run(self):
        """All that is there, a file in each batch."""

        def each(df, number):
            paimon_py.write_spark(self.table, df, identifier=number, user=self.user)

        source = self.spark.readStream.schema("p int, k bigint, v string").option("maxFilesPerTrigger", "1")
        stream = source.parquet(str(self.place / "in")).writeStream.foreachBatch(each)
        query = stream.option("checkpointLocation", str(self.place / "check")).trigger(availableNow=True).start()
        query.awaitTermination()

    def lose(self):
        shutil.rmtree(self.place / "check")


def test_a_table_with_a_key_takes_all_again_when_the_checkpoint_is_lost(spark, deaths, db, tmp_path):
    table = db.create_table("db.t", ROWS, **KINDS["fixed"])
    stream = Stream(spark, table, tmp_path)
    for start in (0, 10, 20):
        stream.feed(start, start + 10)
    stream.run()
    stream.lose()
    stream.feed(30, 40)
    stream.run()
    assert content(table) == expected(0, 40)


def test_a_lost_or_old_checkpoint_stops_the_query_of_a_named_user(spark, deaths, db, tmp_path):
    table = db.create_table("db.t", ROWS, **KINDS["append"])
    stream = Stream(spark, table, tmp_path, "pipe")
    stream.feed(0, 10)
    stream.run()
    shutil.copytree(tmp_path / "check", tmp_path / "old")
    for start in (10, 20, 30):
        stream.feed(start, start + 10)
    stream.run()
    assert (content(table), table.committed("pipe")) == (expected(0, 40), 3)
    newest = (tmp_path / "check").rename(tmp_path / "newest")
    stream.feed(40, 50)
    for old in (None, tmp_path / "old"):
        shutil.rmtree(tmp_path / "check", ignore_errors=True)
        if old is not None:
            shutil.copytree(old, tmp_path / "check")
        with pytest.raises(Exception, match="committed batch 3, and now comes batch [01]: the checkpoint"):
            stream.run()
        assert content(table) == expected(0, 40)
    shutil.rmtree(tmp_path / "check")
    newest.rename(tmp_path / "check")
    stream.run()
    assert content(table) == expected(0, 50)
    (newest,) = (tmp_path / "check" / "commits").glob("4")
    newest.unlink()
    (tmp_path / "check" / "commits" / ".4.crc").unlink(missing_ok=True)
    stream.feed(50, 60)
    stream.run()
    assert content(table) == expected(0, 60)
