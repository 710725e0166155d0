from __future__ import annotations

import json

import pytest

from paimon_py import AddColumn
from paimon_py.codec.json import pretty, schema_from_json, schema_to_json
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.changed_schema import apply
from paimon_py.spec.type_text import sql_type

JAVA_TEXT = """{
  "version" : 3,
  "id" : 0,
  "fields" : [ {
    "id" : 0,
    "name" : "a \\"q\\"",
    "type" : "INT NOT NULL",
    "description" : "é\\n\\u0001"
  }, {
    "id" : 1,
    "name" : "r",
    "type" : {
      "type" : "ROW",
      "fields" : [ {
        "id" : 2,
        "name" : "x",
        "type" : {
          "type" : "ARRAY",
          "element" : "STRING"
        },
        "defaultValue" : "1"
      } ]
    }
  } ],
  "highestFieldId" : 2,
  "partitionKeys" : [ ],
  "primaryKeys" : [ "a \\"q\\"" ],
  "options" : { },
  "comment" : "c",
  "timeMillis" : 1700000000000
}""".encode()


def changed(**changes):
    value = json.loads(JAVA_TEXT)
    value.update(changes)
    return json.dumps({key: item for key, item in value.items() if item is not ...}).encode()


def test_a_schema_is_written_byte_for_byte_as_java_lays_it_out():
    assert schema_to_json(schema_from_json(JAVA_TEXT, "p")) == JAVA_TEXT


def test_unknown_fields_are_kept_and_written_back():
    schema = schema_from_json(changed(future={"a": [1, None, 2.5]}), "p")
    assert json.loads(schema_to_json(schema))["future"] == {"a": [1, None, 2.5]}


def test_old_versions_get_the_defaults_of_their_time():
    assert schema_from_json(changed(version=...), "p").options == {"bucket": "1", "file.format": "orc"}
    assert schema_from_json(changed(version=2), "p").options == {"file.format": "orc"}
    assert schema_from_json(changed(version=1, options={"bucket": "-1"}), "p").options["bucket"] == "-1"


ROW = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "y", "type": "STRING"}]}
"""A ROW of pypaimon 1.4: its fields are counted from 0 again."""


LARGE = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 7, "name": "y", "type": "STRING"}]}


@pytest.mark.parametrize("kind", ["SOMETHING(5)", {"type": "TENSOR", "element": "INT"}, {"type": "ARRAY", "element": "FP8"}])
def test_types_of_later_releases_are_unsupported(kind):
    with pytest.raises(UnsupportedError) as caught:
        schema_from_json(changed(fields=[{"id": 0, "name": "a", "type": kind}]), "dir/schema-0")
    assert caught.value.path == "dir/schema-0"


def test_ids_inside_rows_may_begin_again_and_no_id_is_given_twice():
    fields = [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "r", "type": ROW}, {"id": 2, "name": "s", "type": LARGE}]
    schema = schema_from_json(changed(fields=fields, highestFieldId=2, primaryKeys=[], partitionKeys=[]), "p")
    assert schema.highest_field_id == 7
    later = apply(schema, [AddColumn("n", "INT")], has_snapshots=True, time_millis=1)
    assert later.fields[-1].id == later.highest_field_id == 8


@pytest.mark.parametrize(
    ("text", "nullable"), [("MAP<STRING NOT NULL, INT>", True), ("MAP<STRING NOT NULL, INT> NOT NULL", False), ("MAP NOT NULL", False)]
)
def test_old_sdks_spell_the_types_inside_a_map_too(text, nullable):
    fields = [{"id": 0, "name": "m", "type": {"type": text, "key": "STRING NOT NULL", "value": "INT"}}]
    schema = schema_from_json(changed(fields=fields, primaryKeys=[], partitionKeys=[]), "p")
    assert sql_type(schema.fields[0].type) == "MAP<STRING NOT NULL, INT>" + ("" if nullable else " NOT NULL")


def test_a_newer_version_is_refused_by_name():
    with pytest.raises(UnsupportedError) as caught:
        schema_from_json(changed(version=4), "dir/schema-0")
    assert caught.value.feature == "schema version 4"
    assert caught.value.path == "dir/schema-0"


def test_a_null_comment_is_none_and_options_of_other_kinds_become_text():
    schema = schema_from_json(changed(comment=None, options={"bucket": 4, "write-only": True, "x": None}), "p")
    assert schema.comment is None
    assert schema.options == {"bucket": "4", "write-only": "true"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"{}",
        b"[" * 100_000,
        changed(id="x"),
        changed(fields={}),
        changed(fields=[{"id": 0}]),
        changed(fields=[{"name": "a", "type": "INT"}]),
        changed(primaryKeys=["nope"]),
        changed(partitionKeys=[1]),
        changed(options=[]),
        changed(highestFieldId=...),
        changed(id=2**70),
        changed(timeMillis="now"),
        changed(fields=[{"id": 0, "name": "a", "type": "VARCHAR(x)"}]),
        changed(fields=[{"id": 0, "name": "a", "type": "INT"}, {"id": 0, "name": "b", "type": "INT"}]),
        changed(fields=[{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "a", "type": "INT"}]),
    ],
)
def test_bytes_that_are_not_a_schema_raise_corruption_with_the_path(data):
    with pytest.raises(CorruptionError) as caught:
        schema_from_json(data, "dir/schema-0")
    assert caught.value.path == "dir/schema-0"


def test_pretty_prints_empty_containers_as_jackson_does():
    assert (
        pretty({"a": [], "b": {}, "c": [1, {"d": None}]})
        == b'{\n  "a" : [ ],\n  "b" : { },\n  "c" : [ 1, {\n    "d" : null\n  } ]\n}'
    )
