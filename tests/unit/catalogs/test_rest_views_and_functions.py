"""Views and functions at a REST server: made, listed, changed, renamed, dropped, and looked for where an answer is lost."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from unit.catalogs.rest_stub import StubServer, catalog_of

from paimon_py import (
    AlreadyExistsError,
    Catalog,
    CorruptionError,
    DatabaseNotFoundError,
    NotFoundError,
    PaimonError,
    RemoveOption,
    Schema,
    SetOption,
    UnsupportedError,
    UpdateComment,
    UsageError,
)
from paimon_py.errors import StorageUnknownError
from paimon_py.spec.views_and_functions import (
    AddDefinition,
    AddDialect,
    DropDefinition,
    DropDialect,
    FileDefinition,
    FunctionResource,
    LambdaDefinition,
    SqlDefinition,
    UpdateDefinition,
    UpdateDialect,
)

COLUMNS = Schema([("k", "BIGINT NOT NULL"), ("m", "MAP<STRING, ROW<x INT>>", "said")])
LAMBDA = LambdaDefinition("(Integer n) -> n * 2", "JAVA")
FILE = FileDefinition((FunctionResource("jar", "s3://b/f.jar"),), "JAVA", "a.B", "f")


@pytest.fixture
def server():
    return StubServer()


@pytest.fixture
def catalog(server):
    made = catalog_of(server)
    made.create_database("d")
    return made


def with_view(catalog, name="d.v"):
    catalog.create_view(name, COLUMNS, "SELECT 1", dialects={"spark": "SELECT 2"}, comment="c", options={"a": "b"})


def with_function(catalog, name="d.f"):
    catalog.create_function(
        name, {"flink": LAMBDA, "spark": FILE}, parameters=Schema([("n", "INT")]), returns=pa.schema([("r", pa.int32())]),
        deterministic=True, comment="c", options={"a": "b"},
    )  # fmt: skip


def test_a_view_is_returned_as_it_was_created(catalog):
    with_view(catalog)
    catalog.create_view("d.plain", pa.schema([("a", pa.int32())]), "SELECT 3")
    assert catalog.views("d") == ["plain", "v"] and catalog.tables("d") == []
    view = catalog.view("d.v")
    assert (view.name, view.fields, view.query, view.dialects) == ("d.v", COLUMNS.fields, "SELECT 1", {"spark": "SELECT 2"})
    assert (view.comment, view.options) == ("c", {"a": "b"}) and pickle.loads(pickle.dumps(view)) == view
    with pytest.raises(AlreadyExistsError):
        with_view(catalog)
    catalog.create_view("d.v", COLUMNS, "other", exist_ok=True)
    assert catalog.view("d.v") == view


def test_a_view_can_be_changed_renamed_and_dropped(catalog):
    with_view(catalog)
    catalog.create_database("e")
    view = catalog.alter_view("d.v", AddDialect("flink", "F"), UpdateDialect("spark", "S"), SetOption("x", "y"), RemoveOption("a"), UpdateComment(None))
    assert (view.dialects, view.options, view.comment) == ({"spark": "S", "flink": "F"}, {"x": "y"}, None)
    assert catalog.alter_view("d.v", DropDialect("spark")).dialects == {"flink": "F"}
    for change in (DropDialect("spark"), UpdateDialect("spark", "S"), AddDialect("flink", "F"), AddDefinition("a", LAMBDA)):
        with pytest.raises(UsageError):
            catalog.alter_view("d.v", change)
    catalog.rename_view("d.v", "e.w")
    assert catalog.views("d") == [] and catalog.view("e.w").dialects == {"flink": "F"}
    with_view(catalog)
    with pytest.raises(AlreadyExistsError):
        catalog.rename_view("d.v", "e.w")
    catalog.drop_view("e.w")
    for verb in (catalog.drop_view, catalog.view, lambda name: catalog.alter_view(name, SetOption("a", "b")), lambda name: catalog.rename_view(name, "d.y")):
        with pytest.raises(NotFoundError, match="view 'e.w' does not exist"):
            verb("e.w")
    catalog.drop_view("e.w", missing_ok=True)


def test_a_function_is_returned_as_it_was_created(catalog):
    with_function(catalog)
    catalog.create_function("d.bare", {"sql": SqlDefinition("1")})
    assert catalog.functions("d") == ["bare", "f"]
    function = catalog.function("d.f")
    assert [field.name for field in (*function.parameters, *function.returns)] == ["n", "r"]
    assert function.definitions == {"flink": LAMBDA, "spark": FILE} and function.deterministic
    assert catalog.function("d.bare").parameters is None and catalog.function("d.bare").definitions == {"sql": SqlDefinition("1")}
    with pytest.raises(AlreadyExistsError):
        with_function(catalog)
    with pytest.raises(UsageError, match="letters, digits"):
        catalog.create_function("d.1", {})
    with pytest.raises(UsageError, match="letters, digits"):
        catalog.function("d.a b")


def test_a_function_can_be_changed_and_dropped(catalog):
    with_function(catalog)
    function = catalog.alter_function("d.f", AddDefinition("sql", SqlDefinition("n + 1")), UpdateDefinition("flink", FILE), DropDefinition("spark"), UpdateComment("new"))
    assert (function.definitions, function.comment) == ({"flink": FILE, "sql": SqlDefinition("n + 1")}, "new")
    with pytest.raises(UsageError, match="definition 'spark' does not exist"):
        catalog.alter_function("d.f", DropDefinition("spark"))
    catalog.drop_function("d.f")
    for verb in (catalog.drop_function, catalog.function, lambda name: catalog.alter_function(name, SetOption("a", "b"))):
        with pytest.raises(NotFoundError, match="function 'd.f' does not exist"):
            verb("d.f")
    catalog.drop_function("d.f", missing_ok=True)


def test_bad_input_is_refused(catalog, tmp_path):
    for verb in (catalog.views, catalog.functions):
        with pytest.raises(DatabaseNotFoundError):
            verb("nowhere")
    with pytest.raises(DatabaseNotFoundError):
        with_view(catalog, "nowhere.v")
    for given in ((COLUMNS, ""), (COLUMNS, None), (["k"], "SELECT 1")):
        with pytest.raises(UsageError):
            catalog.create_view("d.v", *given)
    with_view(catalog)
    with pytest.raises(UsageError, match="at least one change"):
        catalog.alter_view("d.v")
    with pytest.raises(UnsupportedError, match="stores no views; use a Hive, JDBC or REST catalog"):
        Catalog.open(tmp_path / "w").views("d")
    with pytest.raises(UnsupportedError, match="stores no functions, nor does Java's"):
        Catalog.open(tmp_path / "w").functions("d")


def test_the_repr_of_views_and_functions_hides_options(catalog):
    catalog.create_view("d.v", COLUMNS, "SELECT 1", options={"password": "sesame"})
    catalog.create_function("d.f", {}, options={"password": "sesame"})
    assert "sesame" not in repr(catalog.view("d.v")) + repr(catalog.function("d.f"))


def test_an_invalid_answer_about_views_is_a_paimon_error(catalog, server):
    with_function(catalog)
    server.functions["d.f"]["definitions"]["spark"] = {"type": "wasm"}
    with pytest.raises(CorruptionError, match="wasm"):
        catalog.function("d.f")
    server.functions["d.f"]["definitions"]["spark"] = {"type": "sql"}
    with pytest.raises(CorruptionError):
        catalog.function("d.f")


VERBS = {
    "create view": (lambda c: c.create_view("d.w", COLUMNS, "Q"), lambda s: "d.w" in s.views),
    "alter view": (lambda c: c.alter_view("d.v", AddDialect("flink", "F")), lambda s: "flink" in s.views["d.v"]["dialects"]),
    "rename view": (lambda c: c.rename_view("d.v", "d.w"), lambda s: set(s.views) == {"d.w"}),
    "drop view": (lambda c: c.drop_view("d.v"), lambda s: s.views == {}),
    "create function": (lambda c: c.create_function("d.g", {"sql": SqlDefinition("1")}), lambda s: "d.g" in s.functions),
    "alter function": (lambda c: c.alter_function("d.f", DropDefinition("spark")), lambda s: "spark" not in s.functions["d.f"]["definitions"]),
    "drop function": (lambda c: c.drop_function("d.f"), lambda s: s.functions == {}),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(VERBS))
def test_after_a_lost_answer_the_state_is_checked(name):
    act, is_done = VERBS[name]
    for number in range(6):
        for fault in ("before", "after", "500 before", "500 after", "503 before", "503 after"):
            server = StubServer()
            catalog = catalog_of(server)
            catalog.create_database("d")
            with_view(catalog)
            with_function(catalog)
            server.faults = [None] * number + [fault]
            try:
                act(catalog)
                assert is_done(server), (name, number, fault)
            except PaimonError as error:
                assert isinstance(error, StorageUnknownError) or not is_done(server), (name, number, fault, error)
