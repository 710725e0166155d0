from __future__ import annotations

import pytest

from paimon_py.errors import SchemaError
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.type_text import parse_field, parse_type, print_type, sql_type
from paimon_py.spec.types import MAX_LENGTH, ArrayType, Atomic, MapType, MultisetType, Root, RowType, VectorType

SPELLINGS = [
    ("BOOLEAN", "BOOLEAN"),
    ("tinyint not null", "TINYINT NOT NULL"),
    ("Integer", "INT"),
    ("INT NULL", "INT"),
    ("double precision", "DOUBLE"),
    ("CHAR", "CHAR(1)"),
    ("VARCHAR", "VARCHAR(1)"),
    ("VARCHAR(2147483647)", "STRING"),
    ("string", "STRING"),
    ("BINARY", "BINARY(1)"),
    ("VARBINARY(2147483647) NOT NULL", "BYTES NOT NULL"),
    ("BYTES", "BYTES"),
    ("DECIMAL", "DECIMAL(10, 0)"),
    ("numeric(5)", "DECIMAL(5, 0)"),
    ("DEC(38,38)", "DECIMAL(38, 38)"),
    ("TIME", "TIME(0)"),
    ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
    ("TIMESTAMP", "TIMESTAMP(6)"),
    ("timestamp ( 9 ) without time zone not null", "TIMESTAMP(9) NOT NULL"),
    ("TIMESTAMP(0) WITH LOCAL TIME ZONE", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
    ("TIMESTAMP_LTZ(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("VARIANT", "VARIANT"),
    ("BLOB", "BLOB"),
    ("GEOMETRY", "GEOMETRY(OGC:CRS84)"),
    ("GEOGRAPHY('EPSG:4326', vincenty) NOT NULL", "GEOGRAPHY(EPSG:4326, vincenty) NOT NULL"),
    ("GEOMETRY('4326')", "GEOMETRY('4326')"),
]


@pytest.mark.parametrize(("text", "printed"), SPELLINGS)
def test_atomic_types_are_read_in_any_spelling_and_printed_as_java_does(text, printed):
    assert print_type(parse_type(text)) == printed
    assert parse_type(printed) == parse_type(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "STRNG",
        "INT INT",
        "DECIMAL(39, 0)",
        "DECIMAL(5, 6)",
        "DECIMAL(0)",
        "TIMESTAMP(10)",
        "TIME(-1)",
        "CHAR(0)",
        "VARCHAR(99999999999999999999999)",
        "INT NOT",
        "TIMESTAMP WITH TIME ZONE",
        "ARRAY",
        "ARRAY<INT",
        "MAP<INT>",
        "ROW<a>",
        "INT;",
        "DECIMAL(5,",
        "NULL",
        "ARRAY<" * 5000 + "INT" + ">" * 5000,
    ],
)
def test_text_that_is_no_type_is_refused(text):
    with pytest.raises(SchemaError):
        parse_type(text)


def test_suffixes_make_arrays_and_multisets():
    assert parse_type("INT NOT NULL ARRAY") == ArrayType(Atomic(Root.INT, nullable=False))
    assert parse_type("INT ARRAY NOT NULL MULTISET") == MultisetType(ArrayType(Atomic(Root.INT), nullable=False))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"type": "ARRAY NOT NULL", "element": "INT"}, "ARRAY<INT> NOT NULL"),
        ({"type": "MULTISET", "element": "STRING NOT NULL"}, "MULTISET<STRING NOT NULL>"),
        ({"type": "MAP", "key": "INT", "value": {"type": "ARRAY", "element": "DATE"}}, "MAP<INT, ARRAY<DATE>>"),
        ({"type": "VECTOR", "element": "FLOAT", "length": 3}, "VECTOR<FLOAT, 3>"),
        (
            {
                "type": "ROW",
                "fields": [{"id": 3, "name": "a b", "type": "INT", "description": "d", "defaultValue": "1"}],
            },
            "ROW<`a b` INT>",
        ),
    ],
)
def test_constructed_types_are_objects_in_json_and_one_line_of_sql(value, text):
    assert print_type(parse_type(value)) == value
    assert sql_type(parse_type(value)) == text
    assert sql_type(parse_type(text)) == text


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"type": 1},
        {"type": "ARRAY"},
        {"type": "MAP", "key": "INT"},
        {"type": "ROW"},
        {"type": "ROW", "fields": [1]},
        {"type": "ROW", "fields": [{"name": "a"}]},
        {"type": "VECTOR", "element": "INT", "length": 0},
        {"type": "VECTOR", "element": "STRING", "length": 2},
        {"type": "VECTOR", "element": {"type": "ARRAY", "element": "INT"}, "length": 2},
        {"type": "INT"},
        7,
        {"type": "ROW", "fields": [{"id": "one", "name": "a", "type": "INT"}]},
        {"type": "ROW", "fields": [{"id": 1.5, "name": "a", "type": "INT"}]},
        {"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "INT", "description": []}]},
    ],
)
def test_objects_that_are_no_type_are_refused(value):
    with pytest.raises(SchemaError):
        parse_type(value)


def test_quoted_names_and_comments_in_rows_are_read():
    parsed = parse_type("ROW<`x``y` INT 'it''s', z ROW<> NOT NULL>")
    assert isinstance(parsed, RowType)
    assert [(field.name, field.description) for field in parsed.fields] == [("x`y", "it's"), ("z", None)]


def test_string_is_the_longest_varchar():
    assert parse_type("STRING") == Atomic(Root.VARCHAR, length=MAX_LENGTH)


def test_a_column_takes_its_id_before_its_nested_fields_and_a_nested_field_after_its_own():
    schema = Schema([("a", "INT"), ("r", "ROW<x INT, y ROW<q STRING>, z INT>"), ("l", "ARRAY<ROW<u INT>>")])
    a, r, l_ = schema.fields
    assert (a.id, r.id, l_.id) == (0, 1, 6)
    assert isinstance(r.type, RowType)
    assert [(field.name, field.id) for field in r.type.fields] == [("x", 2), ("y", 4), ("z", 5)]
    inner = r.type.fields[1].type
    assert isinstance(inner, RowType)
    assert inner.fields[0].id == 3
    assert isinstance(l_.type, ArrayType)
    assert isinstance(l_.type.element, RowType)
    assert l_.type.element.fields[0].id == 7


def test_vector_and_map_types_are_values():
    assert parse_type("VECTOR<FLOAT, 8>") == VectorType(Atomic(Root.FLOAT), 8)
    assert parse_type("MAP<INT, INT>") == MapType(Atomic(Root.INT), Atomic(Root.INT))


def test_ids_and_notes_of_fields_are_taken_as_java_takes_them():
    field = parse_field({"id": "3", "name": "a", "type": "INT", "description": 5, "defaultValue": True})
    assert (field.id, field.description, field.default) == (3, "5", "true")
    assert parse_field({"id": 3.0, "name": "a", "type": "INT"}).id == 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("BIGNT", "BIGINT"), ("TEXT", "STRING"), ("int64", "BIGINT"), ("long", "BIGINT"), ("REAL NOT NULL", "FLOAT NOT NULL"),
        ("struct<a:int>", "ROW<a INT>"), ("array<struct<x:long,y:text>>", "ARRAY<ROW<x BIGINT, y STRING>>"),
        ("STRUCT<text TEXT>", "ROW<text STRING>"), ("list<int64>", "ARRAY<BIGINT>"),
        ("decimal128(10,2)", "DECIMAL(10, 2)"), ("varchar2(10)", "VARCHAR(10)"), ("timestamp[ms]", "TIMESTAMP(3)"),
        ("timestamp[us, tz=UTC]", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("timestamp(3) with time zone", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ],
)  # fmt: skip
def test_types_of_other_systems_are_refused_with_ours(text, meant):
    with pytest.raises(SchemaError) as caught:
        parse_type(text)
    assert str(caught.value).endswith(f"; did you mean {meant!r}?")
    parse_type(meant)


def test_what_stands_after_a_type_is_told():
    with pytest.raises(SchemaError, match="after a type there is NOT NULL or nothing"):
        parse_type("INT NOT NUL")
    with pytest.raises(SchemaError, match="unknown type 'object'$"):
        parse_type("object")


def test_a_colon_after_the_name_of_a_field_is_refused():
    """It became part of the name; in backticks it still is."""
    with pytest.raises(SchemaError, match="a field of a ROW has no colon: write a and its type"):
        parse_type("ARRAY<ROW<a: INT>>")
    assert parse_type("ROW<`a:` INT>").fields[0].name == "a:"
