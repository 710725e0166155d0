"""The promises of every catalog, kept by databases; locks, faults, and what the database says."""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from pathlib import Path

import pytest
from catalogs.suite import ROWS, CatalogSuite

from paimon_py import (
    AddColumn,
    AlreadyExistsError,
    Catalog,
    LockTimeoutError,
    OptionError,
    PaimonWarning,
    SetOption,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.env import Env, SerialPool
from paimon_py.metastores.jdbc import sql
from paimon_py.metastores.jdbc.names import _check_lengths
from paimon_py.metastores.jdbc.urls import database_url

sqlalchemy = pytest.importorskip("sqlalchemy")


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def millis(self):
        return 1_700_000_000_000 + int(self.now * 1000)

    local_millis = millis

    def elapsed(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def opening(warehouse, uri, **more):
    key = f"k{uuid.uuid4().hex[:8]}"
    options = {"metastore": "jdbc", "uri": uri, "catalog-key": key, "fs.local.fsync": "false", **more}
    return lambda env=None, **others: Catalog.open(warehouse, {**options, **others}, env=env)


@pytest.fixture
def uri(tmp_path):
    return f"jdbc:sqlite:{tmp_path}/names.db"


class TestSqlite(CatalogSuite):
    @pytest.fixture
    def opened(self, tmp_path, uri):
        return opening(tmp_path / "warehouse", uri, **{"jdbc.password": "sesame", "lock.enabled": "true"})


class TestSqliteWithoutLocks(CatalogSuite):
    @pytest.fixture
    def opened(self, tmp_path, uri):
        return opening(tmp_path / "warehouse", uri)


def server(name: str, place: Path) -> dict[str, str]:
    """What a launcher of `shared/servers` says of a server; the variable that it sets may be set already."""
    launcher = next(
        (path for base in Path(__file__).parents if (path := base / "shared" / "servers" / name).exists()), None
    )
    if launcher is None:
        pytest.skip(f"there is no launcher for {name}")
    done = subprocess.run([launcher, "start", "--dir", place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{name} does not start here: {done.stderr.strip()[-300:]}")
    return dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines())


@contextlib.contextmanager
def database(name: str, variable: str, tmp_path_factory):
    """The URL of a database server, started unless the variable says where one is."""
    if os.environ.get(variable):
        yield os.environ[variable]
        return
    place = tmp_path_factory.mktemp(name)
    for folder in (place, *place.parents):
        if folder.owner() == "root" and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    found = server(name, place)
    try:
        yield found[variable]
    finally:
        launcher = next(p for base in Path(__file__).parents if (p := base / "shared" / "servers" / name).exists())
        subprocess.run([launcher, "stop", "--dir", place], check=False, capture_output=True)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    with database("postgres", "PAIMON_TEST_POSTGRES", tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory):
    with database("mariadb", "PAIMON_TEST_MARIADB", tmp_path_factory) as url:
        made = sqlalchemy.create_engine(url)
        with made.begin() as connection:
            connection.execute(sqlalchemy.text("CREATE DATABASE IF NOT EXISTS names"))
        made.dispose()
        yield url.rpartition("/")[0] + "/names"


@pytest.mark.full
@pytest.mark.server
class TestPostgres(CatalogSuite):
    @pytest.fixture
    def opened(self, tmp_path, postgres):
        return opening(tmp_path / "warehouse", postgres, **{"lock.enabled": "true"})


@pytest.mark.full
@pytest.mark.server
class TestMariadb(CatalogSuite):
    @pytest.fixture
    def opened(self, tmp_path, mariadb):
        return opening(tmp_path / "warehouse", mariadb, **{"lock.enabled": "true"})


# -- what the database says ------------------------------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path, uri):
    return opening(tmp_path / "warehouse", uri, **{"lock.enabled": "true"})


def stored(catalog, table):
    return [row[1:] for row in catalog._metastore._names.sql_database.rows(f"SELECT * FROM {table}")]


def test_the_database_has_the_same_rows_as_javas(opened, tmp_path):
    catalog = opened()
    catalog.create_database("d", comment="hello", options={"owner": "me"})
    table = catalog.create_table("d.t", ROWS.schema, primary_key=["k"], options={"bucket": "2"})
    assert stored(catalog, sql.TABLES) == [("d", "t")]
    home = f"{tmp_path}/warehouse/d.db"
    assert set(stored(catalog, sql.DATABASE_PROPERTIES)) == {
        ("d", "exists", "true"), ("d", "location", home), ("d", "comment", "hello"), ("d", "owner", "me"),
    }  # fmt: skip
    of_table = {("d", "t", "bucket", "2"), ("d", "t", "primary-key", "k"), ("d", "t", "bucket-key", "k")}
    assert set(stored(catalog, sql.TABLE_PROPERTIES)) == of_table
    table.alter(SetOption("file.format", "orc"))
    assert set(stored(catalog, sql.TABLE_PROPERTIES)) == {*of_table, ("d", "t", "file.format", "orc")}
    catalog.drop_database("d", cascade=True)
    for name in (sql.TABLES, sql.DATABASE_PROPERTIES, sql.TABLE_PROPERTIES, sql.LOCKS):
        assert catalog._metastore._names.sql_database.rows(f"SELECT * FROM {name}") == []
    assert not (tmp_path / "warehouse" / "d.db").exists()


def test_catalog_keys_keep_catalogs_of_one_database_apart(tmp_path, uri):
    one, two = opening(tmp_path / "a", uri)(), opening(tmp_path / "b", uri)()
    one.create_database("d")
    assert two.databases() == []


def test_repair_registers_tables_without_a_row(opened, tmp_path):
    catalog = opened()
    plain = Catalog.open(tmp_path / "warehouse")
    plain.create_database("d")
    plain.create_table("d.t", ROWS.schema).write_arrow(ROWS)
    plain.create_database("empty")
    with pytest.raises(TableNotFoundError):
        catalog.repair("d.nope")
    assert catalog.databases() == []
    catalog.create_database("d")
    with pytest.raises(AlreadyExistsError, match=r"repair\('d.t'\) registers it"):
        catalog.create_table("d.t", ROWS.schema)
    catalog.repair("d.t")
    assert catalog.table("d.t").scan().to_arrow().num_rows == 3
    catalog.repair()
    catalog.repair()
    assert catalog.databases() == ["d", "empty"] and catalog.tables("d") == ["t"]


def test_values_too_long_for_the_database_are_refused_first(opened, tmp_path):
    catalog = opened()
    catalog.create_database("d")
    long = {"file.block-size": "1 mb", "my.note": "x" * 1001}
    with pytest.raises(OptionError, match=r"my\.note.*1001 characters"):
        catalog.create_table("d.t", ROWS.schema, options=long)
    assert not (tmp_path / "warehouse" / "d.db" / "t").exists()
    with pytest.raises(UnsupportedError, match="cannot have another location"):
        catalog.create_database("e", location="/x")
    opened(**{"sync-all-properties": "false"}).create_table("d.t", ROWS.schema, options=long)
    assert stored(catalog, sql.TABLE_PROPERTIES) == []


# -- locks -----------------------------------------------------------------------------------------------------------


def take(catalog, lock, since="CURRENT_TIMESTAMP", seconds=480):
    catalog._metastore._names.sql_database.write(
        (f"INSERT INTO {sql.LOCKS} VALUES (:lock, {since}, :seconds)", {"lock": lock, "seconds": seconds})
    )


def lock_of(catalog, rest):
    return f"{catalog._metastore._names.catalog_key}.{rest}"


def test_a_writer_without_the_lock_waits_and_does_nothing(opened):
    clock = Clock()
    catalog = opened()
    catalog.create_database("d")
    catalog.create_table("d.t", ROWS.schema)
    patient = Catalog.open(catalog.warehouse, catalog._metastore.options, env=Env(clock, pool=SerialPool())).table("d.t")
    take(catalog, lock_of(catalog, "d.t"))
    with pytest.raises(LockTimeoutError, match=r"d\.t.*lock-acquire-timeout"):
        patient.write_arrow(ROWS)
    assert clock.now >= 480 and clock.slept[:4] == [0.1, 0.2, 0.4, 0.8] and max(clock.slept) == 8.0
    assert patient.snapshot() is None
    assert stored(catalog, sql.LOCKS) != []


def test_a_stale_lock_is_deleted(opened):
    catalog = opened()
    catalog.create_database("d")
    take(catalog, lock_of(catalog, "d.t"), since="datetime('now', '-500 seconds')")
    catalog.create_table("d.t", ROWS.schema).write_arrow(ROWS)
    assert catalog._metastore._names.sql_database.rows(f"SELECT * FROM {sql.LOCKS}") == []


def test_locks_of_branches_are_named_as_in_java(opened):
    catalog = opened()
    catalog.create_database("d")
    table = catalog.create_table("d.t", ROWS.schema)
    table.create_branch("b")
    take(catalog, lock_of(catalog, "d.t"))
    table.branch("b").write_arrow(ROWS)
    lock = table._root.registration._lock
    with lock.hold("b"):
        assert (lock_of(catalog, "d.t$branch_b"),) in catalog._metastore._names.sql_database.rows(f"SELECT lock_id FROM {sql.LOCKS}")


def test_a_holder_past_its_time_does_not_release_the_lock_of_another(opened):
    catalog = opened()
    catalog.create_database("d")
    lock = catalog.create_table("d.t", ROWS.schema)._root.registration._lock
    connections = catalog._metastore._names.sql_database
    with lock.hold("main"):
        connections.write((f"UPDATE {sql.LOCKS} SET acquired_at = datetime('now', '+7 seconds')", {}))
    assert len(connections.rows(f"SELECT * FROM {sql.LOCKS}")) == 1


def test_a_lock_with_too_long_a_name_is_refused(opened):
    catalog = opened(**{"lock-key-max-length": "12"})
    catalog.create_database("d")
    with pytest.raises(OptionError, match="longer than lock-key-max-length = 12"):
        catalog.create_table("d.a_long_name", ROWS.schema)
    assert catalog.tables("d") == []


def test_a_stale_lock_in_postgres_is_deleted_in_any_zone_of_its_holder(monkeypatch):
    """The rule of `drop_stale_lock` as arithmetic: true ages from fresh to stale, seen from zones a quarter apart."""
    def is_stale(seen, seconds):
        return (seconds < 900 and seen % 900 > seconds) or seen > seconds + 26 * 3600

    for zone in range(-14 * 3600, 14 * 3600 + 1, 900):
        for age in range(0, 481, 60):
            assert not is_stale(age + zone, 480)
        assert any(is_stale(age + zone, 480) for age in range(481, 481 + 900, 60))
    assert "MOD(" in sql.drop_stale_lock("postgresql") and "> expire_time_seconds + 93600" in sql.drop_stale_lock("postgresql")


# -- faults ----------------------------------------------------------------------------------------------------------


class Failing:
    """Fails the n-th write to the database: before it is done, after it, or after it with an answer that is lost."""

    def __init__(self, connections, monkeypatch):
        self.real = type(connections).write
        self.left, self.how = -1, "before"
        monkeypatch.setattr(type(connections), "write", lambda *arguments: self.write(*arguments))

    def write(self, connections, *statements):
        self.left -= 1
        if self.left != 0:
            return self.real(connections, *statements)
        if self.how == "before":
            raise StorageError("the database is gone", operation="write", transient=False)
        if self.how == "done":
            self.real(connections, *statements)
        raise StorageUnknownError("the answer is lost", operation="commit", transient=True)


@pytest.mark.parametrize("how", ["before", "done", "not done"])
@pytest.mark.parametrize("verb", ["create", "rename", "drop", "alter", "commit"])
def test_a_failure_at_any_write_of_the_database_leaves_complete_tables(tmp_path, uri, monkeypatch, verb, how):
    for number in range(1, 12):
        catalog = opening(tmp_path / f"w{number}", uri, **{"lock.enabled": "true"})(Env(Clock(), pool=SerialPool()))
        catalog.create_database("d")
        table = catalog.create_table("d.t", ROWS.schema)
        table.write_arrow(ROWS)
        verbs = {
            "create": lambda catalog=catalog: catalog.create_table("d.u", ROWS.schema),
            "rename": lambda catalog=catalog: catalog.rename_table("d.t", "d.u"),
            "drop": lambda catalog=catalog: catalog.drop_table("d.t"),
            "alter": lambda table=table: table.alter(AddColumn("w", "INT")),
            "commit": lambda table=table: table.write_arrow(ROWS),
        }
        with monkeypatch.context() as patch:
            failing = Failing(catalog._metastore._names.sql_database, patch)
            failing.left, failing.how = number, how
            try:
                verbs[verb]()
                failed = None
            except (StorageError, LockTimeoutError, PaimonWarning) as error:
                failed = error
        reached = failing.left <= 0
        names = catalog.tables("d")
        for name in names:
            assert catalog.table(f"d.{name}").scan().to_arrow().num_rows in ((0,) if name == "u" and verb == "create" else (3, 6))
        if failed is None and verb == "create":
            assert names == ["t", "u"]
        if failed is None and verb == "rename":
            assert names == ["u"]
        if verb == "commit":
            assert catalog.table("d.t").scan().to_arrow().num_rows == (3 if isinstance(failed, (StorageError, LockTimeoutError)) else 6)
        if not reached:
            return
    raise AssertionError("the verb never ended without a fault")


# -- URLs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, options, meant",
    [
        ("jdbc:postgresql://h:1/d", {}, "postgresql+psycopg://h:1/d"),
        ("jdbc:postgresql://h/d?user=u&password=p", {}, "postgresql+psycopg://u:p@h/d"),
        ("jdbc:postgresql://h/d?currentSchema=s", {}, "postgresql+psycopg://h/d?options=-csearch_path%3Ds"),
        ("jdbc:mysql://h/d?useSSL=false&serverTimezone=UTC", {"jdbc.user": "u", "jdbc.password": "p"}, "mysql+pymysql://u:p@h/d"),
        ("jdbc:mariadb://h/d", {}, "mysql+pymysql://h/d"),
        ("jdbc:sqlite:/a/b.db", {}, "sqlite:////a/b.db"),
        ("jdbc:sqlite:file:/a/b.db", {}, "sqlite:////a/b.db"),
        ("postgresql://u@h/d", {"jdbc.password": "p"}, "postgresql+psycopg://u:p@h/d"),
        ("jdbc:postgresql://h/d", {"jdbc.sslmode": "require", "jdbc.ApplicationName": "x"}, "postgresql+psycopg://h/d?sslmode=require"),
        ("jdbc:postgresql://h/d?sslmode=allow", {"jdbc.sslmode": "require"}, "postgresql+psycopg://h/d?sslmode=require"),
        ("jdbc:sqlite:/x", {"jdbc.user": "u", "jdbc.password": "p"}, "sqlite:////x"),
        ("postgresql+pg8000://h/d", {}, "postgresql+pg8000://h/d"),
    ],
)
def test_urls_of_java_and_sqlalchemy_are_accepted(given, options, meant):
    assert database_url(given, options).render_as_string(hide_password=False) == meant


@pytest.mark.parametrize(
    "given, error, match",
    [
        (None, UsageError, "option 'uri'"),
        ("nonsense", UsageError, "not a URL of a database"),
        ("jdbc:oracle://h/d", UnsupportedError, "not in 'oracle'"),
        ("jdbc:sqlite::memory:", UsageError, "needs a file"),
        ("jdbc:mysql://h/d?sslMode=REQUIRED", OptionError, "'sslMode'"),
    ],
)
def test_invalid_urls_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        database_url(given, {})


@pytest.mark.parametrize("uri", ["jdbc:postgresql://h/d", "jdbc:mysql://h/d", "jdbc:sqlite:/x"])
@pytest.mark.parametrize("option", ["jdbc.sslrootcert", "jdbc.username", "jdbc.sslMode"])
def test_an_unsupported_driver_property_is_refused(uri, option):
    with pytest.raises(OptionError, match=f"option '{option}' is not supported") as caught:
        database_url(uri, {option: "sesame"})
    assert caught.value.option == option and "sesame" not in str(caught.value)


def test_an_unreachable_database_is_named_without_its_password(tmp_path):
    options = {"metastore": "jdbc", "uri": "jdbc:postgresql://u:sesame@127.0.0.1:1/d"}
    with pytest.raises(StorageError, match=r"postgresql\+psycopg://u:\*\*\*@127") as caught:
        Catalog.open(tmp_path / "w", options)
    assert "sesame" not in str(caught.value) and caught.value.__cause__ is None


def test_the_longest_value_that_the_database_stores_is_stored():
    _check_lengths({"a": "x" * sql.PROPERTY_LENGTH, "b": ""})
    with pytest.raises(OptionError, match=f"the value of 'a' has {sql.PROPERTY_LENGTH + 1} characters"):
        _check_lengths({"a": "x" * (sql.PROPERTY_LENGTH + 1)})
