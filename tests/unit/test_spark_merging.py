"""What `write.merge-schema` asks of a table."""

from __future__ import annotations

import pytest

from paimon_py import AddColumn, SchemaError, UpdateColumnType
from paimon_py.distributed import SchemaMerging, merge_columns
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field


def fields(*columns):
    return [Field(number, name, parse_type(kind)) for number, (name, kind) in enumerate(columns)]


def named(*columns):
    return [(name, parse_type(kind)) for name, kind in columns]


ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}]}
WIDE_ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "BIGINT"}, {"id": 1, "name": "y", "type": "INT NOT NULL"}]}


def test_columns_are_added_as_they_may_be_null_and_types_stay():
    found = merge_columns(fields(("k", "INT NOT NULL"), ("r", ROW)), named(("n", "INT NOT NULL"), ("k", "BIGINT"), ("r", WIDE_ROW)), SchemaMerging())
    assert [(change.column, change.type.nullable) for change in found] == [(("n",), True), (("r", "y"), True)]
    assert all(isinstance(change, AddColumn) for change in found)


@pytest.mark.parametrize(
    ("old", "given", "wide"),
    [("INT NOT NULL", "BIGINT", "BIGINT NOT NULL"), ("BIGINT", "INT", None), ("FLOAT", "DOUBLE", "DOUBLE"), ("DECIMAL(5, 2)", "DECIMAL(6, 3)", "DECIMAL(6, 3)"), ("STRING", "STRING NOT NULL", None)],
    ids=lambda kind: str(kind),
)  # fmt: skip
def test_types_widen_where_that_is_asked_for(old, given, wide):
    found = merge_columns(fields(("k", old)), named(("k", given)), SchemaMerging(widens=True))
    assert found == ([] if wide is None else [UpdateColumnType(("k",), parse_type(wide), keep_nullability=True)])


def test_types_without_a_common_one_are_refused_together_unless_casts_are_allowed():
    table, data = fields(("a", "INT"), ("b", "DATE")), named(("a", "STRING"), ("b", "INT"))
    with pytest.raises(SchemaError, match="explicit-cast") as error:
        merge_columns(table, data, SchemaMerging(widens=True))
    assert error.value.fields == ("a", "b")
    found = merge_columns(table, data, SchemaMerging(widens=True, casts=True))
    assert [(change.column, change.allow_narrowing) for change in found] == [(("a",), True), (("b",), True)]
