"""Views of Hive and JDBC catalogs: where Java keeps them, beside tables, and read through DuckDB."""

from __future__ import annotations

import json
import pickle

import duckdb
import pytest
from unit.catalogs.hive_stub import StubMetastore
from unit.catalogs.rest_stub import StubServer, catalog_of

from paimon_py import (
    AlreadyExistsError,
    Catalog,
    CorruptionError,
    NotFoundError,
    Schema,
    SetOption,
    TableNotFoundError,
    UnsupportedError,
    UpdateComment,
    UsageError,
)
from paimon_py.errors import CommitConflictError
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.hive_types import hive_type, paimon_type
from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.views_and_functions import AddDialect, DropDialect

sqlalchemy = pytest.importorskip("sqlalchemy")
COLUMNS = Schema([("id", "BIGINT"), ("m", "MAP<STRING, ROW<x INT>>", "said")])
ROWS = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}]


@pytest.fixture
def metastore():
    made = StubMetastore(version=4, databases=())
    yield made
    made.close()


@pytest.fixture(params=["hive", "jdbc", "rest"])
def catalog(request, metastore, tmp_path):
    if request.param == "rest":
        made = catalog_of(StubServer())
    else:
        uri = metastore.uri if request.param == "hive" else f"jdbc:sqlite:{tmp_path}/names.db"
        made = Catalog.open(tmp_path / "warehouse", options={"metastore": request.param, "uri": uri})
    for name in ("d", "e"):
        made.create_database(name)
    made.create_table("d.t", Schema([("id", "BIGINT"), ("city", "STRING")])).write_arrow(ROWS)
    return made


@pytest.fixture(params=["hive", "jdbc"])
def kept(request, metastore, tmp_path):
    """A catalog whose names of tables and views are one."""
    uri = metastore.uri if request.param == "hive" else f"jdbc:sqlite:{tmp_path}/names.db"
    made = Catalog.open(tmp_path / "warehouse", options={"metastore": request.param, "uri": uri})
    for name in ("d", "e"):
        made.create_database(name)
    made.create_table("d.t", Schema([("id", "BIGINT"), ("city", "STRING")])).write_arrow(ROWS)
    return made


def test_a_view_is_returned_as_it_was_created(catalog):
    catalog.create_view("d.v", COLUMNS, "SELECT id, NULL FROM d.t", comment="c", options={"a": "b"})
    assert (catalog.views("d"), catalog.views("e"), catalog.tables("d")) == (["v"], [], ["t"])
    view = catalog.view("d.v")
    assert (view.name, view.fields, view.query) == ("d.v", COLUMNS.fields, "SELECT id, NULL FROM d.t")
    assert (view.comment, view.options) == ("c", {"a": "b"})
    with pytest.raises(AlreadyExistsError):
        catalog.create_view("d.v", COLUMNS, "SELECT 1, 2")
    catalog.create_view("d.v", COLUMNS, "SELECT 1, 2", exist_ok=True)
    assert catalog.view("d.v") == view != catalog.sql("SELECT 1")


def test_a_view_is_renamed_and_dropped(catalog):
    catalog.create_view("d.v", COLUMNS, "SELECT 1, 2")
    catalog.create_view("d.w", COLUMNS, "SELECT 3, 4")
    with pytest.raises(AlreadyExistsError):
        catalog.rename_view("d.v", "d.w")
    catalog.rename_view("d.v", "e.moved")
    assert (catalog.views("d"), catalog.views("e")) == (["w"], ["moved"])
    assert catalog.view("e.moved").query == "SELECT 1, 2"
    with pytest.raises(NotFoundError):
        catalog.rename_view("d.v", "d.x")
    catalog.drop_view("e.moved")
    catalog.drop_view("e.moved", missing_ok=True)
    for call in (catalog.view, catalog.drop_view):
        with pytest.raises(NotFoundError):
            call("e.moved")


def test_a_view_is_read_in_a_connection_of_ones_own(catalog):
    catalog.create_view("d.v", Schema([("n", "BIGINT"), ("c", "STRING")]), "SELECT id, city FROM t WHERE id > 1")
    catalog.create_view("e.sums", Schema([("total", "BIGINT")]), "SELECT sum(n) FROM d.v")
    connection = duckdb.connect()
    assert catalog.view("e.sums").to_duckdb(connection) == "e.sums"
    assert connection.sql("SELECT total FROM e.sums").fetchall() == [(2,)]
    assert connection.sql("SELECT * FROM d.v").fetchall() == [(2, "Rome")]
    assert connection.sql("SELECT current_schema()").fetchall() == [("main",)]
    assert catalog.sql("SELECT * FROM e.sums").to_pylist() == [{"total": 2}]


def test_a_view_that_duckdb_cannot_run_is_refused_by_name(catalog):
    catalog.create_view("d.bad", Schema([("n", "BIGINT")]), "SELECT unknown_function(id) FROM d.t")
    catalog.create_view("d.lost", Schema([("n", "BIGINT")]), "SELECT id FROM d.nothing")
    connection = duckdb.connect()
    with pytest.raises(UsageError, match=r"the query of view d.bad: .*unknown_function"):
        catalog.view("d.bad").to_duckdb(connection)
    with pytest.raises(TableNotFoundError, match="nothing"):
        catalog.view("d.lost").to_duckdb(connection)
    with pytest.raises(UsageError, match="takes a connection"):
        catalog.view("d.bad").to_duckdb("duckdb")
    assert connection.sql("SELECT current_schema()").fetchall() == [("main",)]


def test_a_view_and_a_table_never_share_a_name(kept):
    kept.create_view("d.v", COLUMNS, "SELECT 1, 2")
    for action in (
        lambda: kept.create_view("d.t", COLUMNS, "SELECT 1, 2"),
        lambda: kept.create_table("d.v", Schema([("id", "INT")])),
        lambda: kept.rename_table("d.t", "d.v"),
        lambda: kept.rename_view("d.v", "d.t"),
    ):
        with pytest.raises(AlreadyExistsError):
            action()
    with pytest.raises(NotFoundError):
        kept.view("d.t")
    with pytest.raises(TableNotFoundError):
        kept.table("d.v")
    with pytest.raises(NotFoundError):
        kept.drop_view("d.t")
    assert kept.table("d.t").scan().count() == 2


def test_a_database_with_views_is_dropped_only_with_them(kept):
    kept.create_view("e.v", COLUMNS, "SELECT 1, 2")
    with pytest.raises(UsageError, match=r"has views \(v\); cascade=True drops them too"):
        kept.drop_database("e")
    kept.drop_database("e", cascade=True)
    assert kept.databases() == ["d"]


def test_views_travel_with_their_catalog(kept):
    kept.create_view("d.v", Schema([("n", "BIGINT")]), "SELECT count(*) FROM d.t")
    view = pickle.loads(pickle.dumps(kept.view("d.v")))
    assert view == kept.view("d.v") and hash(view) == hash(kept.view("d.v"))
    assert (view == "d.v", "SELECT count" in repr(view)) == (False, True)


class TestJdbc:
    @pytest.fixture
    def catalog(self, tmp_path):
        made = Catalog.open(tmp_path / "w", options={"metastore": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/names.db"})
        made.create_database("d")
        return made

    @pytest.fixture
    def ask(self, tmp_path):
        def run(statement, **values):
            with sqlalchemy.create_engine(f"sqlite:///{tmp_path}/names.db").begin() as connection:
                done = connection.execute(sqlalchemy.text(statement), values)
                return done.fetchall() if done.returns_rows else None

        return run

    def test_a_view_is_stored_as_java_stores_it(self, catalog, ask):
        catalog.create_view("d.v", Schema([("n", "INT NOT NULL")]), "SELECT 1", dialects={"spark": "SELECT 2"})
        [(key, database, name, text)] = ask("SELECT * FROM paimon_views")
        assert (key, database, name) == ("jdbc", "d", "v")
        assert json.loads(text) == {
            "fields": [{"id": 0, "name": "n", "type": "INT NOT NULL"}], "query": "SELECT 1",
            "dialects": {"spark": "SELECT 2"}, "options": {},
        }  # fmt: skip

    def test_a_view_is_changed(self, catalog):
        catalog.create_view("d.v", COLUMNS, "SELECT 1, 2", dialects={"spark": "SELECT 2"})
        changes = (AddDialect("flink", "SELECT 3"), DropDialect("spark"), SetOption("a", "b"), UpdateComment("c"))
        changed = catalog.alter_view("d.v", *changes)
        assert changed == catalog.view("d.v")
        assert (changed.dialects, changed.options, changed.comment) == ({"flink": "SELECT 3"}, {"a": "b"}, "c")
        with pytest.raises(UsageError):
            catalog.alter_view("d.v", DropDialect("spark"))
        with pytest.raises(NotFoundError):
            catalog.alter_view("d.w", UpdateComment("c"))

    def test_two_changes_at_once_do_not_lose_each_other(self, catalog, ask, monkeypatch):
        from paimon_py.metastores.jdbc import views

        catalog.create_view("d.v", COLUMNS, "SELECT 1, 2")
        encode = views._encode

        def while_another_changes(view):
            ask("UPDATE paimon_views SET view_schema = view_schema || ' '")
            return encode(view)

        monkeypatch.setattr(views, "_encode", while_another_changes)
        with pytest.raises(CommitConflictError, match="changed by another process"):
            catalog.alter_view("d.v", UpdateComment("mine"))
        monkeypatch.undo()
        assert catalog.view("d.v").comment is None

    def test_a_broken_row_names_its_view(self, catalog, ask):
        catalog.create_view("d.v", COLUMNS, "SELECT 1, 2")
        ask("UPDATE paimon_views SET view_schema = :text", text='{"query": 1')
        with pytest.raises(CorruptionError, match="the view d.v in the catalog's database"):
            catalog.view("d.v")


class TestHive:
    @pytest.fixture
    def catalog(self, metastore, tmp_path):
        made = Catalog.open(tmp_path / "w", options={"metastore": "hive", "uri": metastore.uri})
        made.create_database("d")
        return made

    def test_a_view_is_stored_as_java_stores_it(self, catalog, metastore):
        catalog.create_view("d.v", COLUMNS, "SELECT 1, 2", comment="c", options={"a": "b"})
        record = metastore.table("d.v")
        assert [thrift.text(record, place) for place in (10, 11, 12)] == ["SELECT 1, 2", "SELECT 1, 2", "VIRTUAL_VIEW"]
        assert metastore.columns("d.v") == [("id", "bigint"), ("m", "map<string,struct<x:int>>")]
        assert metastore.parameters("d.v") == {"a": "b", "comment": "c"}

    def test_what_a_metastore_cannot_store_is_refused(self, catalog):
        with pytest.raises(UnsupportedError, match="one query per view"):
            catalog.create_view("d.v", COLUMNS, "SELECT 1, 2", dialects={"spark": "SELECT 2"})
        with pytest.raises(UsageError, match="write 'v'"):
            catalog.create_view("d.V", COLUMNS, "SELECT 1, 2")
        catalog.create_view("d.v", COLUMNS, "SELECT 1, 2")
        with pytest.raises(UnsupportedError, match="drop 'd.v' and create it again"):
            catalog.alter_view("d.v", UpdateComment("c"))

    @pytest.mark.parametrize("kind", [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "STRING", "BYTES", "DECIMAL(5, 2)",
        "CHAR(3)", "VARCHAR(9)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "ARRAY<INT>",
        "MAP<STRING, ARRAY<DECIMAL(5, 2)>>", "ROW<`a` INT, `b c` ROW<`d` DOUBLE>>",
    ])  # fmt: skip
    def test_types_return_from_hive(self, kind):
        wanted = parse_type(kind)
        assert sql_type(paimon_type(hive_type(wanted))) == sql_type(wanted)

    def test_types_that_are_none(self):
        for name in ("", "map<int>", "array<int"):
            with pytest.raises(CorruptionError, match="not one of Hive"):
                paimon_type(name)
        with pytest.raises(UnsupportedError, match="Hive type interval_day_time"):
            paimon_type("interval_day_time")
