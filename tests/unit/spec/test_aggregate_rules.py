"""What a schema may ask of aggregate functions."""

from __future__ import annotations

import pytest

from paimon_py.errors import OptionError, SchemaError, UsageError
from paimon_py.spec.aggregate_rules import FUNCTIONS, RETRACTABLE, aggregate_of, column_function
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.validation import validate

ROW = "ROW<i INT, s STRING, a ARRAY<INT>>"


def table(kind="INT", engine="aggregation", **options):
    columns = [("k", "INT"), ("s", "INT"), ("c", kind)]
    spec = TableSpec(primary_keys=("k",), options={"bucket": "1", "merge-engine": engine, **options})
    return new_table_schema(Schema(columns), spec, time_millis=1)


GOOD = {
    "TINYINT": {"sum", "product", "min", "max"},
    "BIGINT": {"sum", "product", "min", "max"},
    "FLOAT": {"sum", "product", "min", "max"},
    "DECIMAL(38, 3)": {"sum", "product", "min", "max"},
    "BOOLEAN": {"bool_and", "bool_or"},
    "STRING": {"min", "max", "listagg"},
    "VARCHAR(9)": {"min", "max"},
    "CHAR(3)": {"min", "max"},
    "BYTES": {"min", "max", "rbm32", "rbm64", "theta_sketch", "hll_sketch"},
    "VARBINARY(100)": {"min", "max", "rbm32", "rbm64", "theta_sketch", "hll_sketch"},
    "BINARY(4)": {"min", "max"},
    "DATE": {"min", "max"},
    "TIME(3)": {"min", "max"},
    "TIMESTAMP(9)": {"min", "max"},
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": {"min", "max"},
    "ARRAY<INT>": {"collect"},
    f"ARRAY<{ROW}>": {"collect", "nested_update", "nested_partial_update"},
    "MAP<INT, INT>": {"merge_map"},
    "MAP<INT, ROW<v INT, t STRING>>": {"merge_map", "merge_map_with_keytime"},
    ROW: set(),
}
ANYTHING = {name for name in FUNCTIONS if name.startswith(("first", "last", "primary"))}


@pytest.mark.parametrize("kind", GOOD)
def test_functions_go_with_the_types_that_java_gives_them(kind):
    for function in FUNCTIONS:
        options = {"fields.c.nested-key": "i"} if function == "nested_partial_update" else {}
        schema = table(kind, **{"fields.c.aggregate-function": function, **options})
        if function in GOOD[kind] | ANYTHING:
            validate(schema)
        else:
            with pytest.raises(SchemaError, match=rf"function {function} of column 'c' needs .*'fields.c.aggregate-function'") as caught:
                validate(schema)
            assert caught.value.fields == ("c",)


BAD = [
    ("count", "INT", {}, "not an aggregate function; use one of bool_and"),
    ("summ", "INT", {}, "'fields.c.aggregate-function' is 'summ'"),
    ("", "INT", {}, "not an aggregate function"),
    ("sum", "INT", {"fields.c.ignore-retract": "yes"}, "'fields.c.ignore-retract' is 'yes'"),
    ("collect", "ARRAY<INT>", {"fields.c.distinct": "1"}, "'fields.c.distinct' is '1'"),
    ("sum", "INT", {"fields.c.ignore-retract": "true", "aggregation.remove-record-on-delete": "true"}, "cannot be combined with"),
    ("nested_partial_update", f"ARRAY<{ROW}>", {}, "needs 'fields.c.nested-key'"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.nested-key": "i,zz"}, "'zz' is not one of them"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.nested-sequence-field": "i"}, "needs 'fields.c.nested-key'"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.nested-key-null-strategy": "error"}, "needs 'fields.c.nested-key'"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.nested-key": "i", "fields.c.nested-sequence-field": "a"}, "fields that have an order"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.nested-key": "i", "fields.c.nested-key-null-strategy": "drop"}, "'merge', 'ignore'"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.count-limit": "many"}, "whole number"),
    ("nested_update", f"ARRAY<{ROW}>", {"fields.c.count-limit": "3000000000"}, "whole number"),
    ("merge_map_with_keytime", "MAP<INT, ROW<t STRING>>", {}, "at least two fields"),
    ("merge_map_with_keytime", "MAP<INT, ROW<t STRING, v INT>>", {}, "compares times as texts"),
    ("merge_map_with_keytime", "MAP<INT, ROW<t STRING, v INT>>", {"fields.c.ts-field": "x"}, "a field of the ROW"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "kind", "options", "message"), BAD)
@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_what_java_fails_on_is_refused_with_its_reason(engine, function, kind, options, message):
    more = {"fields.s.sequence-group": "c"} if engine == "partial-update" else {}
    with pytest.raises(UsageError, match=message):
        validate(table(kind, engine, **{"fields.c.aggregate-function": function, **options, **more}))


def test_a_default_function_is_named_when_it_is_wrong():
    with pytest.raises(OptionError, match=r"'fields.default-aggregate-function' is 'average'"):
        validate(table(**{"fields.default-aggregate-function": "average"}))


def test_other_engines_do_not_look_at_functions():
    validate(table("STRING", "deduplicate", **{"fields.c.aggregate-function": "sum"}))


def test_columns_find_their_function_in_javas_order():
    schema = table(**{"sequence.field": "s", "fields.default-aggregate-function": "max"})
    assert [column_function(schema, name) for name in ("k", "s", "c")] == ["primary-key", "last_value", "max"]
    assert column_function(table(), "c") == "last_non_null_value"
    assert column_function(table(**{"fields.c.aggregate-function": "sum"}), "c") == "sum"


def test_sequence_fields_have_no_function():
    with pytest.raises(OptionError, match="have an aggregate function"):
        validate(table(**{"sequence.field": "s", "fields.s.aggregate-function": "sum"}))


def test_options_become_settings():
    options = {"nested-key": " i , s", "nested-sequence-field": "s", "nested-key-null-strategy": "IGNORE", "count-limit": "+7"}
    schema = table(f"ARRAY<{ROW}>", **{f"fields.c.{name}": value for name, value in options.items()})
    made = aggregate_of(schema, "c", "nested_update")
    assert (made.nested_key, made.nested_sequence, made.null_keys, made.count_limit) == (("i", "s"), ("s",), "ignore", 7)
    schema = table("STRING", **{"fields.c.list-agg-delimiter": "", "fields.c.distinct": "TRUE"})
    assert (aggregate_of(schema, "c", "listagg").delimiter, aggregate_of(schema, "c", "listagg").distinct) == ("", True)
    schema = table("MAP<INT, ROW<t STRING, v INT>>", **{"fields.c.ts-field": "t"})
    assert aggregate_of(schema, "c", "merge_map_with_keytime").time_field == 0


def test_the_older_name_means_the_same_function():
    assert aggregate_of(table(), "c", "first_not_null_value").function == "first_non_null_value"


def test_every_retractable_function_exists():
    assert set(FUNCTIONS) >= RETRACTABLE
