"""Real metastores of Hive 3 and 4: the promises of every catalog, locks, and Java's catalog and ours in turns."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from catalogs.suite import CatalogSuite
from jars import SessionWithJars
from turns import SCHEMA, Turns

from paimon_py import AddColumn, Catalog, LockTimeoutError, StorageError
from paimon_py.env import Env

pytestmark = [pytest.mark.server, pytest.mark.full]

ROWS = pa.table({"k": pa.array([1, 2], pa.int64())})
OPENED = [f"java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "lang.reflect", "net", "nio", "time", "util", "util.concurrent")]
TESTING = ["-Dhive.in.test=true", "-Dmetastore.client.capability.check=false"]


def _launcher(*parts: str) -> Path:
    """A program of the workplace that starts a server; tests are passed over where there is none."""
    for base in Path(__file__).parents:
        if base.joinpath("shared", *parts).exists():
            return base.joinpath("shared", *parts)
    pytest.skip(f"there is no launcher {'/'.join(parts)}")


@contextlib.contextmanager
def _hive_4(place: Path):
    launcher = _launcher("servers", "hms")
    done = subprocess.run([launcher, "start", "--dir", place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the metastore does not start here: {done.stderr.strip()[-300:]}")
    try:
        yield done.stdout.strip().partition("=")[2]
    finally:
        subprocess.run([launcher, "stop", "--dir", place], check=False, capture_output=True)


def _jars_of_hive_3() -> list[str]:
    """Hive 3.1 and the Hadoop it needs."""
    if any(shutil.which(tool) is None for tool in ("java", "javac", "mvn")):
        pytest.skip("a metastore of Hive 3 needs java, javac and mvn")
    cache = _launcher("engines", "cache.py")
    done = subprocess.run([sys.executable, cache, "jars", "hive"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"Hive cannot be had here: {done.stderr.strip()[-300:]}")
    return sorted(str(path) for path in Path(done.stdout.strip()).glob("*.jar") if not path.name.startswith("paimon"))


@contextlib.contextmanager
def _hive_3(place: Path):
    """A metastore of Hive 3.1. A first one, in the mode of its own tests, makes the tables of locks."""
    jars = _jars_of_hive_3()
    with _started_3(place, jars, TESTING) as uri, contextlib.suppress(StorageError):
        catalog = opening(place / "first", uri, **{"lock.enabled": "true"})()
        catalog.create_database("first")
        catalog.create_table("first.t", ROWS.schema)
    with _started_3(place, jars, []) as uri:
        opening(place / "first", uri)().drop_database("first", cascade=True)
        yield uri


@contextlib.contextmanager
def _hive_2(place: Path):
    """The metastore of Hive 2.3 that comes with Spark 3.5."""
    cache = _launcher("engines", "cache.py")
    done = subprocess.run([sys.executable, cache, "python", "spark-3.5"], capture_output=True, text=True, check=False)
    if done.returncode or shutil.which("java") is None:
        pytest.skip(f"Spark cannot be had here: {done.stderr.strip()[-300:]}")
    found = sorted(Path(done.stdout.strip()).parents[1].glob("lib/python*/site-packages/pyspark/jars/*.jar"))
    jars = [str(path) for path in found]
    more = ["-Dhive.async.log.enabled=false", "-Ddatanucleus.connectionPoolingType=none"]
    with _started_3(place, jars, [*more, *TESTING]) as uri, contextlib.suppress(StorageError):
        catalog = opening(place / "first", uri, **{"lock.enabled": "true"})()
        catalog.create_database("first")
        catalog.create_table("first.t", ROWS.schema)
    with _started_3(place, jars, more) as uri:
        opening(place / "first", uri)().drop_database("first", cascade=True)
        yield uri


@contextlib.contextmanager
def _started_3(place: Path, jars: list[str], more: list[str]):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place}/db;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "datanucleus.schema.autoCreateAll": "true", "metastore.schema.verification": "false",
        "metastore.warehouse.dir": str(place / "warehouse"), "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
        "metastore.disallow.incompatible.col.type.changes": "false", "derby.stream.error.file": f"{place}/derby.log",
        "hive.metastore.warehouse.dir": str(place / "warehouse"), "hive.metastore.schema.verification": "false",
        "hive.metastore.disallow.incompatible.col.type.changes": "false",
        "metastore.txn.timeout": "30s", "hive.txn.timeout": "30s",
    }  # fmt: skip
    command = [
        "java", "-Xmx512m", *(word for name in OPENED for word in ("--add-opens", name)), *more,
        *(f"-D{name}={value}" for name, value in settings.items()),
        "-cp", os.pathsep.join(jars), "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port),
    ]  # fmt: skip
    with open(place / "log", "ab") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=place)
    uri = f"thrift://127.0.0.1:{port}"
    try:
        clock = Env().clock
        end = clock.elapsed() + 120
        while True:
            try:
                opening(place / "first", uri)()
                break
            except StorageError:
                if server.poll() is not None or clock.elapsed() > end:
                    pytest.skip(f"the metastore does not start here: {(place / 'log').read_text()[-300:]}")
        yield uri
    finally:
        server.kill()
        server.wait()


SERVERS = {"hive-2": ("PAIMON_TEST_HMS_2", _hive_2), "hive-3": ("PAIMON_TEST_HMS_3", _hive_3), "hive-4": ("PAIMON_TEST_HMS", _hive_4)}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Where a metastore of a version answers: the one that the environment names, or one that is started."""
    with contextlib.ExitStack() as running:
        known = {}

        def find(name):
            if name not in known:
                variable, start = SERVERS[name]
                told = os.environ.get(variable)
                known[name] = told or running.enter_context(start(tmp_path_factory.mktemp(name)))
            return known[name]

        yield find


@pytest.fixture(params=list(SERVERS))
def uri(request, servers):
    return servers(request.param)


def opening(warehouse, uri, **more):
    settings = {"metastore": "hive", "uri": uri, "fs.local.fsync": "false", **more}
    return lambda env=None, **others: Catalog.open(warehouse, {**settings, **others}, env=env)


class _WithoutDefault(Catalog):
    def databases(self):
        return [name for name in super().databases() if name != "default"]


def emptied(open_catalog):
    catalog = open_catalog()
    for name in catalog.databases():
        if name != "default":
            catalog.drop_database(name, cascade=True)
    return catalog


class TestRealMetastore(CatalogSuite):
    """The suite expects an empty catalog; the database `default` does not count.

    Hive 4 without locks: Derby below Hive 4 waits for its own locks, 20 s at a time, once several ask at once.
    """

    @pytest.fixture
    def opened(self, tmp_path, uri, request):
        has_locks = "hive-4" not in request.node.name
        open_catalog = opening(tmp_path / "warehouse", uri, **{"lock.enabled": str(has_locks).lower()})
        emptied(open_catalog)
        return lambda *given, **named: _WithoutDefault.of(open_catalog(*given, **named)._metastore)


def test_a_lock_keeps_others_out_until_it_is_given_back(tmp_path, uri):
    open_catalog = opening(tmp_path / "w", uri, **{"lock.enabled": "true", "lock-acquire-timeout": "1 s"})
    catalog = open_catalog()
    catalog.create_database("locks", exist_ok=True)
    table = catalog.create_table("locks.t", ROWS.schema)
    with table._root.registration.lock.hold("main"), pytest.raises(LockTimeoutError, match="holds lock"):
        open_catalog().table("locks.t").write_arrow(ROWS)
    open_catalog().table("locks.t").write_arrow(ROWS)
    assert table.scan().count() == 2
    catalog.drop_database("locks", cascade=True)


def test_answers_are_those_of_the_stand_in(tmp_path, uri):
    """What the server in the process promises, real ones do: what a table's record says, and partitions."""
    catalog = emptied(opening(tmp_path / "w", uri))
    catalog.create_database("d", comment="c", options={"a": "b"})
    found = catalog._metastore.database("d")
    assert (found.comment, found.options["a"], found.location) == ("c", "b", f"file:{tmp_path}/w/d.db")
    options = {"bucket": "1", "metastore.partitioned-table": "true"}
    columns = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
    table = catalog.create_table("d.t", columns, primary_key=["p", "k"], partition_by=["p"], options=options)
    table.write_arrow(pa.table({"p": ["a", "b/c"], "k": [1, 2], "v": ["x", "y"]}))
    verbs, name = table._root.registration._verbs, table._root.registration._name
    assert verbs.partition_names(name) == ["p=a", "p=b%2Fc"]
    table.drop_partitions([{"p": "a"}])
    assert verbs.partition_names(name) == ["p=b%2Fc"]
    tagged = catalog.create_table("d.tagged", columns, options={"metastore.tag-to-partition": "dt"})
    tagged.write_arrow(pa.table({"p": ["a"], "k": [1], "v": ["x"]}))
    tagged.create_tag("2024-05-14")
    assert verbs.partition_names(tagged._root.registration._name) == ["dt=2024-05-14"]
    tagged.delete_tag("2024-05-14")
    assert verbs.partition_names(tagged._root.registration._name) == []
    catalog.rename_table("d.t", "d.u")
    moved = catalog.table("d.u")
    assert moved.scan().count() == 1 and moved.location == f"{tmp_path}/w/d.db/u"
    catalog.drop_database("d", cascade=True)
    assert not (tmp_path / "w" / "d.db").exists()


# -- locks ----------------------------------------------------------------------------------------------------------


COMMITS = 50
COMMITTING = """
import sys
import pyarrow as pa
from paimon_py import Catalog
from paimon_py.env import Env
from paimon_py.storage import open as opening_of_stores
from paimon_py.storage.local_store import LocalStore

class Racing(LocalStore):
    def put_new(self, path, data, *, within=None):
        if self.stat(path) is not None:
            return False
        Env().clock.sleep(0.002)
        self.put(path, data, within=within)
        return True

opening_of_stores.LocalStore = Racing
warehouse, uri, worker, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
options = {"metastore": "hive", "uri": uri, "fs.local.fsync": "false", "lock.enabled": "true"}
table = Catalog.open(warehouse, options).table("races.t")
for number in range(count):
    print(table.write_arrow(pa.table({"k": pa.array([worker * 1000 + number], pa.int64())})).snapshot_id)
"""
"""Commits of one process, in a store whose creation of files is not a good: two may believe that they did it."""


def test_a_lock_makes_a_store_safe_that_is_not(tmp_path, servers):
    """With Hive 3: Derby below Hive 4 waits for its own locks, 20 s at a time, once several ask at once."""
    uri = servers("hive-3")
    catalog = emptied(opening(tmp_path / "w", uri, **{"lock.enabled": "true"}))
    catalog.create_database("races")
    options = {"bucket": "-1", "commit.max-retries": "1000", "commit.timeout": "10 min", "write-only": "true"}
    table = catalog.create_table("races.t", ROWS.schema, options=options)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", COMMITTING, str(tmp_path / "w"), uri, str(worker), str(COMMITS)], stdout=subprocess.PIPE, text=True
        )
        for worker in range(8)
    ]
    ids = [int(line) for worker in workers for line in worker.communicate(timeout=1500)[0].split()]
    assert [worker.returncode for worker in workers] == [0] * 8
    assert sorted(ids) == list(range(1, 8 * COMMITS + 1)), "every acknowledged commit once, and no gap"
    rows = table.scan().to_arrow()["k"].to_pylist()
    assert sorted(rows) == sorted(worker * 1000 + number for worker in range(8) for number in range(COMMITS))


HOLDING = """
import sys
from paimon_py import Catalog

options = {"metastore": "hive", "uri": sys.argv[2], "lock.enabled": "true"}
with Catalog.open(sys.argv[1], options).table("killed.t")._root.registration.lock.hold("main"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("name", ["hive-2", "hive-3"])
def test_the_lock_of_a_process_that_was_killed_ends(tmp_path, servers, name):
    """The metastores here wait 30 s for a sign of life, and their housekeeping is off."""
    open_catalog = opening(tmp_path / "w", servers(name), **{"lock.enabled": "true"})
    emptied(open_catalog).create_database("killed")
    table = open_catalog().create_table("killed.t", ROWS.schema)
    command = [sys.executable, "-c", HOLDING, str(tmp_path / "w"), servers(name)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    holder.kill()
    holder.communicate()
    clock = Env().clock
    began = clock.elapsed()
    table.write_arrow(ROWS)
    assert 10 < clock.elapsed() - began < 120
    assert table.scan().count() == 2


def test_hive_reads_and_writes_our_tables(tmp_path, servers):
    uri = servers("hive-3")
    catalog = emptied(opening(tmp_path / "w", uri))
    catalog.create_database("h")
    columns = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
    options = {"bucket": "1", "metastore.partitioned-table": "true"}
    parted = catalog.create_table("h.parted", columns, primary_key=["p", "k"], partition_by=["p"], options=options)
    parted.write_arrow(pa.table({"p": ["a", "b"], "k": [1, 2], "v": ["x", "y"]}))
    plain = catalog.create_table("h.plain", SCHEMA, primary_key=["k"], options={"bucket": "1"})
    plain.write_arrow(pa.Table.from_pylist([{"k": 1, "v": "ours"}], SCHEMA))
    statements = [
        "SHOW PARTITIONS h.parted", "SELECT * FROM h.parted", "INSERT INTO h.plain VALUES (2L, 'theirs')", "SELECT * FROM h.plain",
    ]  # fmt: skip
    command = [sys.executable, _launcher("engines", "hive_sql.py"), "--metastore", uri, *statements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    answers = [sorted(json.loads(line)["rows"]) for line in done.stdout.splitlines()]
    assert answers == [[["p=a"], ["p=b"]], [["1", "x", "a"], ["2", "y", "b"]], [], [["1", "ours"], ["2", "theirs"]]]
    assert catalog.table("h.plain").scan().to_arrow().sort_by("k").to_pylist() == [
        {"k": 1, "v": "ours"}, {"k": 2, "v": "theirs"},
    ]  # fmt: skip


def sql_of(program, catalog, statements):
    """What an engine answers to statements: the rows of each."""
    command = [sys.executable, _launcher("engines", program), *catalog, *statements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [json.loads(line).get("rows") for line in done.stdout.splitlines()]


def test_spark_and_ours_share_a_metastore(tmp_path, servers):
    """Each lists, describes, reads, changes, renames and drops what the other made."""
    uri = servers("hive-3")
    warehouse = tmp_path / "w"
    catalog = emptied(opening(warehouse, uri))
    catalog.create_database("s")
    columns = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
    options = {"bucket": "1", "metastore.partitioned-table": "true"}
    parted = catalog.create_table("s.ours", columns, primary_key=["p", "k"], partition_by=["p"], options=options)
    parted.write_arrow(pa.table({"p": ["a", "b"], "k": [1, 2], "v": ["x", "y"]}))
    catalog.create_table("s.renamed", SCHEMA, primary_key=["k"], options={"bucket": "1"})
    catalog.create_table("s.dropped", SCHEMA)
    through = ["--warehouse", str(warehouse), "--catalog", "metastore=hive", "--catalog", f"uri={uri}"]
    answers = sql_of("spark_sql.py", through, [
        "USE s", "SHOW TABLES", "SELECT * FROM ours ORDER BY k", "SHOW PARTITIONS ours",
        "INSERT INTO ours VALUES ('b', 2, 'new'), ('c', 3, 'z')", "ALTER TABLE ours ADD COLUMNS (w INT)",
        "INSERT INTO ours VALUES ('c', 4, 'zz', 7)", "SELECT * FROM ours ORDER BY k",
        "ALTER TABLE renamed RENAME TO named", "DROP TABLE dropped",
        "CREATE TABLE theirs (k BIGINT NOT NULL, v STRING, p STRING) PARTITIONED BY (p)"
        " TBLPROPERTIES ('primary-key'='p,k','bucket'='1','metastore.partitioned-table'='true')",
        "INSERT INTO theirs VALUES (1, 'a', 'x'), (2, 'b', 'y')",
    ])  # fmt: skip
    assert sorted(row[1] for row in answers[1]) == ["dropped", "ours", "renamed"]
    assert answers[2] == [["a", 1, "x"], ["b", 2, "y"]]
    assert sorted(row[0] for row in answers[3]) == ["p=a", "p=b"]
    rows = [["a", 1, "x", None], ["b", 2, "new", None], ["c", 3, "z", None], ["c", 4, "zz", 7]]
    assert answers[7] == rows
    assert sorted(catalog.tables("s")) == ["named", "ours", "theirs"]
    ours = catalog.table("s.ours")
    assert [list(row.values()) for row in ours.scan().to_arrow().sort_by("k").to_pylist()] == rows
    theirs = catalog.table("s.theirs")
    assert theirs.scan().to_arrow().sort_by("k").to_pylist() == [{"k": 1, "v": "a", "p": "x"}, {"k": 2, "v": "b", "p": "y"}]
    theirs.upsert(pa.table({"k": [2, 3], "v": ["B", "c"], "p": ["y", "z"]}))
    theirs.alter(AddColumn("n", "INT"))
    catalog.rename_table("s.theirs", "s.taken")
    answers = sql_of("spark_sql.py", through, [
        "USE s", "SELECT * FROM taken ORDER BY k", "SHOW PARTITIONS taken", "DESCRIBE taken", "DROP TABLE taken", "SHOW TABLES",
    ])  # fmt: skip
    assert answers[1] == [[1, "a", "x", None], [2, "B", "y", None], [3, "c", "z", None]]
    assert sorted(row[0] for row in answers[2]) == ["p=x", "p=y", "p=z"]
    assert [row[:2] for row in answers[3]][:4] == [["k", "bigint"], ["v", "string"], ["p", "string"], ["n", "int"]]
    assert sorted(row[1] for row in answers[5]) == ["named", "ours"]


def test_flink_and_ours_share_a_metastore(tmp_path, servers):
    """Flink 2.0 with Paimon 2.0, and a client of Hive 3 on its class path."""
    uri = servers("hive-3")
    warehouse, jars = tmp_path / "w", tmp_path / "jars"
    jars.mkdir()
    for path in map(Path, _jars_of_hive_3()):
        if not path.name.startswith(("log4j", "hadoop-client")):
            (jars / path.name).symlink_to(path)
    catalog = emptied(opening(warehouse, uri))
    catalog.create_database("f")
    columns = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
    options = {"bucket": "1", "metastore.partitioned-table": "true", "changelog-producer": "input"}
    table = catalog.create_table("f.ours", columns, primary_key=["p", "k"], partition_by=["p"], options=options)
    table.write_arrow(pa.table({"p": ["a", "b"], "k": [1, 2], "v": ["x", "y"]}))
    catalog.create_table("f.dropped", SCHEMA)
    through = ["--warehouse", str(warehouse), "--jars", str(jars), "--catalog", "metastore=hive", "--catalog", f"uri={uri}"]
    answers = sql_of("flink_sql.py", through, [
        "SHOW TABLES IN f", "SELECT * FROM f.ours", "INSERT INTO f.ours VALUES ('b', 2, 'new'), ('c', 3, 'z')",
        "ALTER TABLE f.ours ADD (w INT)", "DELETE FROM f.ours WHERE p = 'a' AND k = 1", "SELECT * FROM f.ours", "DROP TABLE f.dropped",
        "CREATE TABLE f.theirs (k BIGINT NOT NULL, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH ('bucket'='2')",
        "INSERT INTO f.theirs VALUES (1, 'a'), (2, 'b')",
    ])  # fmt: skip
    assert sorted(row[0] for row in answers[0]) == ["dropped", "ours"]
    assert sorted(answers[1]) == [["a", 1, "x"], ["b", 2, "y"]]
    assert sorted(answers[5]) == [["b", 2, "new", None], ["c", 3, "z", None]]
    assert sorted(catalog.tables("f")) == ["ours", "theirs"]
    rows = catalog.table("f.ours").scan().to_arrow().sort_by("k").to_pylist()
    assert [list(row.values()) for row in rows] == [["b", 2, "new", None], ["c", 3, "z", None]]
    theirs = catalog.table("f.theirs")
    theirs.upsert(pa.table({"k": [2, 3], "v": ["B", "c"]}))
    catalog.rename_table("f.theirs", "f.named")
    answers = sql_of("flink_sql.py", through, ["SELECT * FROM f.named", "SHOW TABLES IN f"])
    assert sorted(answers[0]) == [[1, "a"], [2, "B"], [3, "c"]]
    assert sorted(row[0] for row in answers[1]) == ["named", "ours"]


# -- Java -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def java_with():
    """A session of a version of Paimon that has a client of Hive 3, which knows no metastore of Hive 4."""
    sessions: dict = {}

    def session(version: str) -> SessionWithJars:
        if version not in sessions:
            sessions[version] = SessionWithJars(version, (), files=tuple(_jars_of_hive_3()))
        return sessions[version]

    yield session
    for each in sessions.values():
        each.close()


def parties(tmp_path, uri, **more):
    """Options for Java, and how we open the same catalog, which is empty."""
    options = {"metastore": "hive", "uri": uri, "lock.enabled": "true", **more}
    opened = opening(str(tmp_path / "w"), **options)
    emptied(opened)
    return options, opened


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
def test_both_change_the_tables_of_a_metastore(java_with, tmp_path, servers, version, seed):
    options, opened = parties(tmp_path, servers("hive-3"))
    opened().create_database("db")
    Turns(java_with(version), tmp_path / "w", options, opened, seed).take(20)


def test_both_keep_locations_in_properties(java_with, tmp_path, servers):
    options, opened = parties(tmp_path, servers("hive-3"), **{"location-in-properties": "true"})
    opened().create_database("db")
    Turns(java_with("2.0.0"), tmp_path / "w", options, opened, 7).take(12)


def test_both_write_the_same_records(java_with, tmp_path, servers):
    options, opened = parties(tmp_path, servers("hive-3"))
    catalog = opened()
    catalog.create_database("db")
    columns = [
        ["p", "STRING NOT NULL"], ["k", "BIGINT NOT NULL"], ["dec", "DECIMAL(12, 3)"], ["c", "CHAR(300)"], ["c2", "CHAR(7)"],
        ["vc", "VARCHAR(70000)"], ["vc2", "VARCHAR(9)"], ["b", "BINARY(4)"], ["vb", "BYTES"], ["tm", "TIME(3)"],
        ["ts", "TIMESTAMP(6)"], ["tz", "TIMESTAMP(3) WITH LOCAL TIME ZONE"], ["r", "ROW<x INT, y ARRAY<MAP<STRING, TINYINT>>>"],
        ["ms", "MULTISET<DOUBLE>"], ["s", "SMALLINT", "a comment"], ["f", "FLOAT"], ["bo", "BOOLEAN"], ["d", "DATE"],
    ]  # fmt: skip
    from paimon_py import Schema

    given = {"bucket": "2", "metastore.partitioned-table": "true", "partition.expiration-time": "100 d"}
    nested = {"type": "ARRAY", "element": {"type": "MAP", "key": "STRING", "value": "TINYINT"}}
    in_json = {
        "r": {"type": "ROW", "fields": [{"id": 100, "name": "x", "type": "INT"}, {"id": 101, "name": "y", "type": nested}]},
        "ms": {"type": "MULTISET", "element": "DOUBLE"},
    }
    told = [[column[0], in_json.get(column[0], column[1]), *column[2:]] for column in columns]
    step = {"op": "create", "table": "db.theirs", "columns": told, "primaryKeys": ["p", "k"], "partitionKeys": ["p"],
            "tableOptions": given, "comment": "c"}  # fmt: skip
    java_with("2.0.0").run(str(tmp_path / "w"), [step], catalog_options=options)
    catalog.create_table(
        "db.ours", Schema([tuple(column) for column in columns]), primary_key=["p", "k"], partition_by=["p"], options=given,
        comment="c",
    )  # fmt: skip
    ours, theirs = (dict(catalog.table(f"db.{name}")._root.registration._record()) for name in ("ours", "theirs"))
    for record in (ours, theirs):
        for field in (1, 4, 5):  # name and times
            record.pop(field, None)
        record[7][1].pop(2)
        record[9] = {key: value for key, value in record[9][1].pairs if key not in (b"transient_lastDdlTime", b"totalSize")}
    assert ours == theirs


def test_both_tell_the_metastore_of_partitions(java_with, tmp_path, servers):
    options, opened = parties(tmp_path, servers("hive-3"))
    catalog = opened()
    catalog.create_database("db")
    columns = pa.schema([("p", pa.string()), ("k", pa.int64()), ("v", pa.string())])
    given = {"bucket": "1", "metastore.partitioned-table": "true"}
    table = catalog.create_table("db.t", columns, primary_key=["p", "k"], partition_by=["p"], options=given)
    table.write_arrow(pa.table({"p": ["a b", "ü/="], "k": [1, 2], "v": ["x", "y"]}))
    rows = [{"p": value, "k": 3, "v": "z"} for value in ("a b", "ü/=", "{new}")]
    java = java_with("2.0.0")
    java.run(str(tmp_path / "w"), [{"op": "write", "table": "db.t", "rows": rows}], catalog_options=options)
    verbs, name = table._root.registration._verbs, table._root.registration._name
    from paimon_py.metastores.hive import thrift

    found = verbs.partitions(name)
    assert sorted(thrift.texts(one, 1) for one in found) == [["a b"], ["{new}"], ["ü/="]]
    places = {thrift.texts(one, 1)[0]: thrift.text(thrift.inner(one, 6), 2) for one in found}
    assert all(Path(place.removeprefix("file:")).is_dir() for place in places.values()), places


def test_both_commit_at_once_under_one_lock(java_with, tmp_path, servers):
    options, opened = parties(tmp_path, servers("hive-3"))
    java, catalog = java_with("2.0.0"), opened()
    catalog.create_database("db")
    table = catalog.create_table("db.t", SCHEMA, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    failed = []

    def theirs():
        try:
            steps = [{"op": "write", "table": "db.t", "rows": [{"k": 1000 + n, "v": "j"}]} for n in range(40)]
            java.run(str(tmp_path / "w"), steps, catalog_options=options)
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            failed.append(error)

    thread = threading.Thread(target=theirs)
    thread.start()
    for number in range(40):
        table.write_arrow(pa.Table.from_pylist([{"k": number, "v": "o"}], SCHEMA))
    thread.join()
    assert not failed, failed
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 81))
    assert table.scan().count() == 80
