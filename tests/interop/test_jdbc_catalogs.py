"""Java's JdbcCatalog and ours on one database at the same time, in turns and at once."""

from __future__ import annotations

import shutil
import threading
import uuid

import pytest

pytest.importorskip("sqlalchemy")

from catalogs.test_jdbc import mariadb, postgres  # noqa: E402, F401 - fixtures
from jars import MYSQL, POSTGRES, SQLITE, SessionWithJars  # noqa: E402
from turns import SCHEMA, Turns  # noqa: E402

from paimon_py import Catalog  # noqa: E402


@pytest.fixture(scope="module")
def java_with():
    """A session by version and jars."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"the oracle (real Java Paimon) needs {', '.join(missing)}")
    sessions: dict = {}

    def session(version: str, jars: tuple[str, ...]) -> SessionWithJars:
        if (version, jars) not in sessions:
            sessions[version, jars] = SessionWithJars(version, jars)
        return sessions[version, jars]

    yield session
    for each in sessions.values():
        each.close()


def parties(uri: str, warehouse, java_uri: str, **more):
    """Options for Java, and how we open the same catalog."""
    key = f"k{uuid.uuid4().hex[:8]}"
    options = {"metastore": "jdbc", "catalog-key": key, "lock.enabled": "true", **more}
    ours = {**options, "uri": uri, "fs.local.fsync": "false"}
    return {**options, "uri": java_uri}, lambda: Catalog.open(str(warehouse), ours)


def play(java, warehouse, java_options, opened, seed, count):
    opened().create_database("db", exist_ok=True)
    Turns(java, warehouse, java_options, opened, seed).take(count)


def of_sqlite(tmp_path):
    """Without locks: Java leaves a query open when it looks for the table of locks, which keeps SQLite's file locked."""
    uri = f"jdbc:sqlite:{tmp_path}/names.db"
    return parties(uri, tmp_path / "w", uri, **{"lock.enabled": "false"})


def test_both_change_the_tables_of_a_catalog_in_sqlite(java_with, tmp_path):
    options, opened = of_sqlite(tmp_path)
    play(java_with("2.0.0", SQLITE), tmp_path / "w", options, opened, 1, 12)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
def test_both_change_the_tables_of_a_catalog_in_sqlite_for_long(java_with, tmp_path, version, seed):
    options, opened = of_sqlite(tmp_path)
    play(java_with(version, SQLITE), tmp_path / "w", options, opened, 10 + seed, 30)


def of_server(name, url, tmp_path, **more):
    """Java knows no locks in what its URL calls MariaDB; with the driver of MySQL it does."""
    scheme, user = {"postgres": ("postgresql", "postgres"), "mariadb": ("mysql", "root")}[name]
    place = url.partition("@")[2]
    return parties(url, tmp_path / "w", f"jdbc:{scheme}://{place}?user={user}", **more)


@pytest.mark.full
@pytest.mark.server
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("version", ["2.0.0", "1.4.2", "0.9.0"])
@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_both_change_the_tables_of_a_catalog_in_a_database(java_with, tmp_path, request, name, version, seed):
    url, jars = request.getfixturevalue(name), {"postgres": POSTGRES, "mariadb": MYSQL}[name]
    has_locks = not (name == "postgres" and version == "0.9.0")
    options, opened = of_server(name, url, tmp_path, **{"lock.enabled": str(has_locks).lower()})
    play(java_with(version, jars), tmp_path / "w", options, opened, seed, 20)


@pytest.mark.full
@pytest.mark.server
@pytest.mark.parametrize("name", ["postgres", "mariadb"])
def test_both_commit_at_once_under_one_lock(java_with, tmp_path, request, name):
    url, jars = request.getfixturevalue(name), {"postgres": POSTGRES, "mariadb": MYSQL}[name]
    options, opened = of_server(name, url, tmp_path)
    java = java_with("2.0.0", jars)
    catalog = opened()
    catalog.create_database("db")
    catalog.create_table("db.t", SCHEMA, primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    failed = []

    def theirs():
        try:
            steps = [{"op": "write", "table": "db.t", "rows": [{"k": 1000 + n, "v": "j"}]} for n in range(40)]
            java.run(str(tmp_path / "w"), steps, catalog_options=options)
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            failed.append(error)

    thread = threading.Thread(target=theirs)
    thread.start()
    import pyarrow as pa

    table = catalog.table("db.t")
    for number in range(40):
        table.write_arrow(pa.Table.from_pylist([{"k": number, "v": "o"}], SCHEMA))
    thread.join()
    assert not failed, failed
    assert [snapshot.id for snapshot in table.snapshots()] == list(range(1, 81))
    assert table.scan().count() == 80
