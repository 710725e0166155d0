"""Schema changes made with wrong arguments, as users of other libraries write them."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import uuid

import pyarrow as pa
import pytest

import paimon_py
from paimon_py import (
    AddColumn,
    After,
    Catalog,
    First,
    RenameColumn,
    SetOption,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UsageError,
)
from paimon_py.spec import schema_changes

CHANGES = [
    value for value in vars(schema_changes).values() if dataclasses.is_dataclass(value) and value.__module__ == schema_changes.__name__
]

CALLS = {
    "after": (lambda: AddColumn("x", "INT", after="k"), "write position=After('k')"),
    "first": (lambda: AddColumn("x", "INT", first=True), "write position=First()"),
    "name": (lambda: AddColumn(name="x", type="INT"), "write column='…'"),
    "path": (lambda: AddColumn(path="x", field_type="INT"), "write type='INT'"),
    "doc": (lambda: AddColumn("x", "INT", doc="why"), "write comment='…'"),
    "required": (lambda: AddColumn("x", "INT", required=True), "UpdateColumnNullability('…', False) in a later alter"),
    "default_value": (lambda: AddColumn("x", "INT", default_value="0"), "default="),
    "no type": (lambda: AddColumn("x"), "arguments: column, type, comment, position"),
    "too many": (lambda: AddColumn("x", "INT", "c", First(), True), "arguments: column, type, comment, position"),
    "new name": (lambda: RenameColumn("v", new_name="w"), "write name='…', the new name"),
    "new type": (lambda: UpdateColumnType("v", new_type="INT"), "write type='INT'"),
    "force": (lambda: UpdateColumnType("v", "INT", force=True), "write allow_narrowing=True"),
    "move": (lambda: UpdateColumnPosition("v", after="k"), "write position=After('k')"),
    "not null": (lambda: UpdateColumnNullability("v", not_null=True), "write nullable=False"),
    "new default": (lambda: UpdateColumnDefault("v", new_default="0"), "write default='…', a text"),
    "key": (lambda: SetOption(key="bucket", value="2"), "write name='…'"),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_other_libraries_are_answered_with_those_of_the_change(name):
    call, words = CALLS[name]
    with pytest.raises(TypeError) as caught:
        call()
    assert words in str(caught.value) and "arguments: " in str(caught.value) and "__init__" not in str(caught.value)


def test_no_advice_names_an_argument_that_the_change_lacks():
    with pytest.raises(TypeError) as caught:
        RenameColumn("v", "w", after="k")
    assert "position" not in str(caught.value)


def test_changes_stay_values():
    change = AddColumn("x", "INT", position=After("k"))
    assert change == pickle.loads(pickle.dumps(change)) and hash(change) == hash(AddColumn("x", "INT", None, After("k")))
    assert repr(change) == "AddColumn(column='x', type='INT', comment=None, position=After(name='k'), default=None)"
    assert "***" in repr(SetOption("s3.secret-key", "geheim"))
    assert list(inspect.signature(paimon_py.AddColumn).parameters) == ["column", "type", "comment", "position", "default"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        change.column = "y"
    assert len(CHANGES) == 15


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (AddColumn("x", "INT", position=0), "a position is First"),
        (AddColumn("x", "INT", position="after v"), "a position is First"),
        (AddColumn("x", "INT", position=First), "a position is First"),
        (AddColumn("x", "INT", position=After("w")), "column 'w' does not exist"),
        (AddColumn("x", "INT", position=After(None)), "names a top-level column, not None"),
        (UpdateColumnType("n", "SMALLINT", allow_narrowing="no"), "allow_narrowing is True or False, not 'no'"),
        (UpdateColumnType("n", "BIGINT", keep_nullability=None), "keep_nullability is True or False, not None"),
        (UpdateColumnNullability("n", "false"), "nullable is True or False"),
    ],
)
def test_invalid_values_of_options_are_refused(change, words):
    catalog = Catalog.open(f"memory://changes-{uuid.uuid4()}")
    catalog.create_database("d")
    table = catalog.create_table("d.t", pa.schema([("k", pa.int64()), ("v", pa.string()), ("n", pa.int32())]))
    with pytest.raises(UsageError) as caught:
        table.alter(change)
    assert words in str(caught.value) and table.refresh().schema.names == ("k", "v", "n")
