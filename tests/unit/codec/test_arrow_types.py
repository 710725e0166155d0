from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py.codec.arrow_types import from_arrow_schema, from_arrow_type, to_arrow_schema, to_arrow_type
from paimon_py.errors import SchemaError, UnsupportedError
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.type_text import parse_type, sql_type
from paimon_py.spec.types import ArrayType

PAIRS = [
    ("BOOLEAN", pa.bool_()),
    ("TINYINT", pa.int8()),
    ("SMALLINT", pa.int16()),
    ("INT", pa.int32()),
    ("BIGINT", pa.int64()),
    ("FLOAT", pa.float32()),
    ("DOUBLE", pa.float64()),
    ("DECIMAL(38, 5)", pa.decimal128(38, 5)),
    ("STRING", pa.string()),
    ("BYTES", pa.binary()),
    ("DATE", pa.date32()),
    ("TIME(3)", pa.time32("ms")),
    ("TIMESTAMP(0)", pa.timestamp("s")),
    ("TIMESTAMP(3)", pa.timestamp("ms")),
    ("TIMESTAMP(6)", pa.timestamp("us")),
    ("TIMESTAMP(9)", pa.timestamp("ns")),
    ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", "UTC")),
    ("ARRAY<INT NOT NULL>", pa.list_(pa.field("element", pa.int32(), nullable=False))),
    ("MAP<STRING NOT NULL, INT>", pa.map_(pa.string(), pa.int32())),
    (
        "ROW<a INT, b STRING NOT NULL>",
        pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string(), nullable=False)]),
    ),
]


@pytest.mark.parametrize(("text", "arrow_type"), PAIRS)
def test_types_go_to_arrow_and_back(text, arrow_type):
    assert to_arrow_type(parse_type(text)) == arrow_type
    assert sql_type(from_arrow_type(arrow_type)) == text


@pytest.mark.parametrize(
    ("text", "arrow_type"),
    [
        ("CHAR(3)", pa.string()),
        ("VARBINARY(3)", pa.binary()),
        ("TIME(0)", pa.time32("ms")),
        ("TIMESTAMP(1)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("MULTISET<STRING>", pa.map_(pa.string(), pa.int32())),
    ],
)
def test_types_with_a_wider_arrow_form_use_it(text, arrow_type):
    assert to_arrow_type(parse_type(text)) == arrow_type


def test_list_children_are_called_element():
    assert to_arrow_type(parse_type("ARRAY<INT>")).value_field.name == "element"


@pytest.mark.parametrize(
    ("arrow_type", "text"),
    [
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.large_binary(), "BYTES"),
        (pa.binary(4), "BINARY(4)"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.large_list(pa.int8()), "ARRAY<TINYINT>"),
        (pa.list_(pa.int8(), 2), "ARRAY<TINYINT>"),
        (pa.decimal256(38, 2), "DECIMAL(38, 2)"),
        (pa.timestamp("ns", "Europe/Berlin"), "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        (pa.time32("s"), "TIME(0)"),
    ],
)
def test_other_arrow_forms_of_a_type_are_understood(arrow_type, text):
    assert sql_type(from_arrow_type(arrow_type)) == text


def test_arrow_types_without_a_paimon_type_are_all_named_with_their_fix():
    schema = pa.schema(
        [("a", pa.uint8()), ("b", pa.int8()), ("c", pa.null()), ("d", pa.time64("us")), ("e", pa.decimal256(76, 1))]
    )
    with pytest.raises(SchemaError, match=r"'a'.*int16.*'c'.*'d'.*time32") as caught:
        from_arrow_schema(schema)
    assert caught.value.fields == ("a", "c", "d", "e")


def test_columns_keep_nullability_and_comments():
    schema = pa.schema(
        [pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string(), metadata={"comment": "é"})]
    )
    assert [(name, sql_type(type_), comment) for name, type_, comment in from_arrow_schema(schema)] == [
        ("a", "INT NOT NULL", None),
        ("b", "STRING", "é"),
    ]
    assert to_arrow_schema(Schema(from_arrow_schema(schema)).fields).equals(schema)


@pytest.mark.parametrize("text", ["GEOGRAPHY", "GEOMETRY"])
def test_types_that_are_not_handled_yet_are_refused_by_name(text):
    with pytest.raises(UnsupportedError) as caught:
        to_arrow_type(parse_type(text))
    assert caught.value.feature == f"{text} type"


@pytest.mark.parametrize("element", ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"])
def test_a_vector_is_a_list_of_fixed_size_whose_elements_are_never_null(element):
    kind = to_arrow_type(parse_type(f"VECTOR<{element}, 3>"))
    assert kind.list_size == 3 and not kind.value_field.nullable
    assert from_arrow_type(kind) == parse_type(f"VECTOR<{element}, 3>")
    assert isinstance(from_arrow_type(pa.list_(kind.value_type, 3)), ArrayType)  # NULL may be in it


def test_lists_of_fixed_size_that_are_not_vectors_are_arrays():
    for kind in (pa.list_(pa.field("element", pa.string(), nullable=False), 2), pa.list_(pa.field("element", pa.int8(), nullable=False), 0)):
        assert isinstance(from_arrow_type(kind), ArrayType)
