"""Schemas that we write and Java reads; changes and refusals that both must agree on."""

from __future__ import annotations

import json

import pytest

from paimon_py.catalog import Catalog
from paimon_py.codec.json import schema_from_json
from paimon_py.errors import UsageError
from paimon_py.metadata.schemas import alter
from paimon_py.spec.cast_rules import supports_cast
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.options import check_values
from paimon_py.spec.schema_changes import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    Last,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from paimon_py.spec.type_text import parse_type, print_type
from paimon_py.spec.validation import validate

pytestmark = pytest.mark.java

VERSIONS = ("0.9.0", "1.4.2", "2.0.0")
ATOMIC = [
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR(1)", "CHAR(7)", "VARCHAR(9)", "STRING",
    "BINARY(3)", "VARBINARY(5)", "BYTES", "DECIMAL(1, 0)", "DECIMAL(18, 3)", "DECIMAL(38, 38)", "DATE", "TIME(0)",
    "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(0) WITH LOCAL TIME ZONE",
    "TIMESTAMP(9) WITH LOCAL TIME ZONE",
]  # fmt: skip
NESTED = [
    "ARRAY<INT NOT NULL>", "ARRAY<ARRAY<STRING>> NOT NULL", "MAP<INT, STRING>", "MAP<STRING NOT NULL, ARRAY<DATE>>",
    "MULTISET<STRING>", "ROW<x INT, `y z` ROW<q STRING NOT NULL> NOT NULL>", "ARRAY<ROW<u INT, v MAP<INT, ROW<w INT>>>>",
]  # fmt: skip


def java_columns(columns):
    return [[name, print_type(parse_type(kind))] for name, kind, *_ in columns]


@pytest.mark.parametrize("version", VERSIONS)
def test_java_opens_our_tables_with_every_type(java, version, tmp_path):
    columns = [(f"c{index}", kind) for index, kind in enumerate([*ATOMIC, *NESTED])]
    columns += [(f"n{index}", f"{kind} NOT NULL") for index, kind in enumerate(ATOMIC)]
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", Schema(columns), partition_by=["n3"], options={"k": "é\n\x01"}, comment='a "c"'
    )
    outputs = java(version).run(
        str(tmp_path), [{"op": "schema", "table": "db.t"}, {"op": "read", "table": "db.t"}], check=True
    )
    theirs = outputs[0]["result"]
    theirs = json.loads(theirs) if isinstance(theirs, str) else theirs
    del theirs["options"]["path"]
    path = tmp_path / "db.db" / "t" / "schema" / "schema-0"
    assert theirs == json.loads(path.read_bytes())
    assert outputs[1]["result"] == []
    made = java(version).run(
        str(tmp_path), [{"op": "create", "table": "db.u", "columns": java_columns(columns)}], check=False
    )
    assert made[0]["ok"]
    again = catalog.table("db.u").schema
    assert again.fields == table.schema.fields
    assert again.highest_field_id == table.schema.highest_field_id


KEYED = {"primary_keys": ("k",), "bucket": "2"}
PLAIN = [("k", "INT"), ("p", "STRING"), ("v", "INT"), ("t", "TIMESTAMP(9)"), ("a", "ARRAY<INT>")]
SCHEMAS = [
    {},
    KEYED,
    {**KEYED, "bucket": "-1"},
    {**KEYED, "bucket": "-2"},
    {**KEYED, "bucket": "0"},
    {**KEYED, "bucket": "-3"},
    {"bucket": "2"},
    {"bucket": "2", "bucket-key": "k"},
    {"bucket": "2", "bucket-key": "k,v"},
    {"bucket": "2", "bucket-key": "k, v"},
    {"bucket": "2", "bucket-key": "zz"},
    {"bucket": "2", "bucket-key": "a"},
    {"bucket": "2", "bucket-key": "p", "partition_keys": ("p",)},
    {"bucket-key": "k"},
    {"bucket": "-2"},
    {"bucket": "x"},
    {**KEYED, "bucket-key": "v"},
    {**KEYED, "primary_keys": ("k", "p"), "bucket-key": "p"},
    {"primary_keys": ("zz",), "bucket": "1"},
    {"primary_keys": ("k", "k"), "bucket": "1"},
    {"primary_keys": ("a",), "bucket": "1"},
    {"primary_keys": ("p",), "partition_keys": ("p",), "bucket": "1"},
    {"primary_keys": ("k",), "partition_keys": ("p",), "bucket": "1"},
    {"primary_keys": ("k",), "partition_keys": ("p",), "bucket": "-1"},
    {"partition_keys": ("zz",)},
    {"partition_keys": ("p", "p")},
    {"partition_keys": ("a",)},
    {"columns": [("a", "INT"), ("a", "INT")]},
    {"columns": [("_KEY_a", "INT")]},
    {"columns": [("_SEQUENCE_NUMBER", "INT")]},
    {"columns": [("_VALUE_KIND", "INT")]},
    {"columns": [("_LEVEL", "INT")]},
    {"columns": [("rowkind", "INT")]},
    {"columns": [("_ROW_ID", "BIGINT")]},
    {"columns": [("x", "ROW<a INT, a INT>")]},
    {"columns": [("x y", "INT")]},
    {"columns": [("x", "TIMESTAMP(6)")], "file.format": "avro"},
    {"columns": [("x", "TIMESTAMP(9)")], "file.format": "avro"},
    {"columns": [("x", "ARRAY<TIMESTAMP(7) WITH LOCAL TIME ZONE>")], "file.format": "avro"},
    {"columns": [("x", "TIME(6)")], "file.format": "avro"},
    {"columns": [("x", "TIME(6)")], "file.format": "orc"},
    {"columns": [("x", "ROW<`y z` INT>")], "file.format": "avro"},
    {"columns": [("x", "ROW<`y z` INT>")], "file.format": "orc"},
    {"columns": [("x", "MULTISET<INT>")], "file.format": "avro"},
    {"file.format": "nonsense"},
    {"file.format": "ORC"},
    {**KEYED, "sequence.field": "v"},
    {**KEYED, "sequence.field": "v, t"},
    {**KEYED, "sequence.field": "zz"},
    {**KEYED, "sequence.field": "v,v"},
    {**KEYED, "sequence.field": "v", "partition_keys": ("p",)},
    {**KEYED, "sequence.field": "v", "merge-engine": "first-row"},
    {**KEYED, "rowkind.field": "p"},
    {**KEYED, "rowkind.field": "zz"},
    {**KEYED, "merge-engine": "nonsense"},
    {**KEYED, "merge-engine": "DEDUPLICATE"},
    {**KEYED, "fields.zz.aggregate-function": "sum"},
    {**KEYED, "changelog-producer": "nonsense"},
    {**KEYED, "changelog-producer": "input"},
    {**KEYED, "changelog-producer": "lookup"},
    {"changelog-producer": "input"},
    {**KEYED, "changelog-producer": "input", "merge-engine": "first-row"},
    {**KEYED, "changelog-producer": "lookup", "streaming-read-overwrite": "true"},
    {**KEYED, "changelog-producer": "full-compaction", "deletion-vectors.enabled": "true"},
    {**KEYED, "merge-engine": "first-row", "deletion-vectors.enabled": "true"},
    {"streaming-read-overwrite": "true"},
    {"snapshot.num-retained.min": "0"},
    {"snapshot.num-retained.min": "5", "snapshot.num-retained.max": "4"},
    {"changelog.num-retained.min": "5", "changelog.num-retained.max": "4"},
    {"scan.mode": "from-snapshot"},
    {"scan.mode": "latest", "scan.snapshot-id": "1"},
    {"scan.snapshot-id": "1"},
    {"scan.snapshot-id": "1", "scan.tag-name": "x"},
    {**KEYED, "row-tracking.enabled": "true"},
    {"row-tracking.enabled": "true", "bucket": "2", "bucket-key": "k"},
    {"data-evolution.enabled": "true"},
    {"record-level.time-field": "zz"},
    {**KEYED, "record-level.expire-time": "1 d", "record-level.time-field": "p"},
    {"sequence.snapshot-ordering": "true"},
]
LATER_THAN_2_0 = ("sequence.snapshot-ordering",)


def ours_accepts(case):
    options = {key: value for key, value in case.items() if key not in ("columns", "primary_keys", "partition_keys")}
    spec = TableSpec(
        primary_keys=case.get("primary_keys", ()), partition_keys=case.get("partition_keys", ()), options=options
    )
    try:
        check_values(options)
        validate(new_table_schema(Schema(case.get("columns", PLAIN)), spec, time_millis=1))
    except UsageError as error:
        return str(error)
    return True


def test_java_refuses_the_schemas_that_we_refuse(java, tmp_path):
    steps = [
        {
            "op": "create",
            "table": f"db.t{index}",
            "columns": java_columns(case.get("columns", PLAIN)),
            "primaryKeys": list(case.get("primary_keys", ())),
            "partitionKeys": list(case.get("partition_keys", ())),
            "tableOptions": {
                key: value for key, value in case.items() if key not in ("columns", "primary_keys", "partition_keys")
            },
        }
        for index, case in enumerate(SCHEMAS)
    ]
    outputs = java("2.0.0").run(str(tmp_path), steps, check=False)
    different = []
    for case, output in zip(SCHEMAS, outputs, strict=True):
        ours = ours_accepts(case)
        if output["ok"] != (ours is True) and not set(LATER_THAN_2_0) & set(case):
            different.append((case, ours, output.get("error", "accepted")))
    assert different == []


COLUMNS = [
    ("k", "INT NOT NULL"), ("p", "STRING"), ("v", "INT"), ("r", "ROW<x INT, y ROW<q INT>>"), ("l", "ARRAY<ROW<u INT>>"),
    ("m", "MAP<STRING, ARRAY<INT>>"), ("s", "INT"), ("d", "DECIMAL(5, 2)"), ("b", "BYTES"),
]  # fmt: skip
CHANGES = [
    ([AddColumn("a", "INT")], [["add", "a", "INT"]]),
    ([AddColumn("a", "INT NOT NULL")], [["add", "a", "INT NOT NULL"]]),
    ([AddColumn("a", "INT", "c", First())], [["add", "a", "INT", "c", ["first", "a"]]]),
    ([AddColumn("a", "INT", None, After("p"))], [["add", "a", "INT", None, ["after", "a", "p"]]]),
    ([AddColumn("v", "INT")], [["add", "v", "INT"]]),
    ([AddColumn("a", "ROW<x INT, y ROW<z INT>>")], [["add", "a", print_type(parse_type("ROW<x INT, y ROW<z INT>>"))]]),
    ([AddColumn(["r", "n"], "INT")], [["add", ["r", "n"], "INT"]]),
    ([AddColumn(["r", "y", "n"], "INT")], [["add", ["r", "y", "n"], "INT"]]),
    ([AddColumn(["l", "element", "n"], "INT")], [["add", ["l", "element", "n"], "INT"]]),
    ([AddColumn("_KEY_a", "INT")], [["add", "_KEY_a", "INT"]]),
    ([RenameColumn("v", "w")], [["rename", "v", "w"]]),
    ([RenameColumn("k", "key")], [["rename", "k", "key"]]),
    ([RenameColumn("p", "w")], [["rename", "p", "w"]]),
    ([RenameColumn("v", "s")], [["rename", "v", "s"]]),
    ([RenameColumn("zz", "w")], [["rename", "zz", "w"]]),
    ([RenameColumn(["r", "x"], "w")], [["rename", ["r", "x"], "w"]]),
    ([RenameColumn("s", "seq")], [["rename", "s", "seq"]]),
    ([DropColumn("v")], [["drop", "v"]]),
    ([DropColumn("k")], [["drop", "k"]]),
    ([DropColumn("p")], [["drop", "p"]]),
    ([DropColumn("s")], [["drop", "s"]]),
    ([DropColumn(["r", "x"])], [["drop", ["r", "x"]]]),
    ([DropColumn(["l", "element", "u"])], [["drop", ["l", "element", "u"]]]),
    ([UpdateColumnType("v", "BIGINT")], [["type", "v", "BIGINT"]]),
    ([UpdateColumnType("v", "SMALLINT", allow_narrowing=True)], [["type", "v", "SMALLINT"]]),
    ([UpdateColumnType("v", "DATE")], [["type", "v", "DATE"]]),
    ([UpdateColumnType("k", "BIGINT NOT NULL")], [["type", "k", "BIGINT NOT NULL"]]),
    ([UpdateColumnType("p", "VARCHAR(3)")], [["type", "p", "VARCHAR(3)"]]),
    ([UpdateColumnType(["r", "y", "q"], "BIGINT")], [["type", ["r", "y", "q"], "BIGINT"]]),
    ([UpdateColumnType(["l", "element", "u"], "BIGINT")], [["type", ["l", "element", "u"], "BIGINT"]]),
    ([UpdateColumnType(["m", "value", "element"], "BIGINT")], [["type", ["m", "value", "element"], "BIGINT"]]),
    ([UpdateColumnType("l", "STRING")], [["type", "l", "STRING"]]),
    ([UpdateColumnNullability("v", False)], [["nullability", "v", False]]),
    ([UpdateColumnNullability("k", True)], [["nullability", "k", True]]),
    ([UpdateColumnPosition("m", First())], [["position", ["first", "m"]]]),
    ([UpdateColumnPosition("m", Last())], [["position", ["last", "m"]]]),
    ([UpdateColumnPosition("m", After("k"))], [["position", ["after", "m", "k"]]]),
    ([UpdateColumnPosition("k", After("m"))], [["position", ["after", "k", "m"]]]),
    ([UpdateColumnPosition("k", Before("m"))], [["position", ["before", "k", "m"]]]),
    ([UpdateColumnPosition("m", Before("k"))], [["position", ["before", "m", "k"]]]),
    ([UpdateColumnPosition("m", After("m"))], [["position", ["after", "m", "m"]]]),
    ([UpdateColumnComment("v", "c")], [["comment", "v", "c"]]),
    ([UpdateColumnComment(["r", "x"], "c")], [["comment", ["r", "x"], "c"]]),
    ([UpdateColumnDefault("v", "5")], [["default", "v", "5"]]),
    ([UpdateColumnDefault("v", "five")], [["default", "v", "five"]]),
    ([UpdateColumnDefault("d", "1.005")], [["default", "d", "1.005"]]),
    ([SetOption("write-only", "true")], [["set", "write-only", "true"]]),
    ([SetOption("bucket", "4")], [["set", "bucket", "4"]]),
    ([SetOption("bucket", "-1")], [["set", "bucket", "-1"]]),
    ([SetOption("bucket", "0")], [["set", "bucket", "0"]]),
    ([SetOption("merge-engine", "deduplicate")], [["set", "merge-engine", "deduplicate"]]),
    ([SetOption("sequence.field", "zz")], [["set", "sequence.field", "zz"]]),
    ([SetOption("sequence.field", "v")], [["set", "sequence.field", "v"]]),
    ([SetOption("bucket-key", "k")], [["set", "bucket-key", "k"]]),
    ([SetOption("ignore-delete", "true")], [["set", "ignore-delete", "true"]]),
    ([RemoveOption("bucket")], [["reset", "bucket"]]),
    ([RemoveOption("sequence.field")], [["reset", "sequence.field"]]),
    ([RemoveOption("zz")], [["reset", "zz"]]),
    ([UpdateComment("hello")], [["tableComment", "hello"]]),
    ([AddColumn("a", "INT"), DropColumn("v"), RenameColumn("a", "v")], [["add", "a", "INT"], ["drop", "v"], ["rename", "a", "v"]]),
]  # fmt: skip


class NoClock:
    def millis(self):
        return 0

    def sleep(self, seconds):
        raise AssertionError("nobody else changes these tables")


@pytest.mark.parametrize("data", [False, True], ids=["empty", "with data"])
def test_changes_give_the_same_schema_as_in_java(java, data, tmp_path):
    options = {"bucket": "2", "sequence.field": "s"}
    steps = []
    for index, (_, change) in enumerate(CHANGES):
        for who in ("ours", "java"):
            steps.append(
                {
                    "op": "create",
                    "table": f"{who}.t{index}",
                    "columns": java_columns(COLUMNS),
                    "primaryKeys": ["k", "p"],
                    "partitionKeys": ["p"],
                    "tableOptions": options,
                }
            )
            if data:
                steps.append({"op": "write", "table": f"{who}.t{index}", "rows": [{"k": 1, "p": "x", "v": 2, "s": 1}]})
    made = java("2.0.0").run(str(tmp_path), steps, check=False)
    assert all(output["ok"] for output in made), made[0]
    outputs = java("2.0.0").run(
        str(tmp_path),
        [{"op": "alter", "table": f"java.t{i}", "changes": c} for i, (_, c) in enumerate(CHANGES)],
        check=False,
    )
    catalog = Catalog.open(tmp_path)
    different = []
    for index, ((changes, _), output) in enumerate(zip(CHANGES, outputs, strict=True)):
        root = catalog.table(f"ours.t{index}")._root
        try:
            mine = alter(
                root.schemas, changes, has_snapshots=lambda root=root: bool(root.snapshots.ids()), clock=NoClock()
            )
        except UsageError as error:
            mine = str(error)
        theirs = output.get("error", "?")
        if output["ok"]:
            path = tmp_path / "java.db" / f"t{index}" / "schema" / "schema-1"
            theirs = schema_from_json(path.read_bytes(), str(path))
        if isinstance(mine, str) or isinstance(theirs, str):
            same = isinstance(mine, str) and isinstance(theirs, str)
        else:
            same = (mine.fields, mine.highest_field_id, mine.primary_keys, mine.options, mine.comment) == (
                theirs.fields, theirs.highest_field_id, theirs.primary_keys, theirs.options, theirs.comment,
            )  # fmt: skip
        if not same:
            different.append((changes, mine, theirs))
    assert different == []


CASTS = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "CHAR(3)", "VARCHAR(3)",
         "STRING", "BINARY(3)", "VARBINARY(3)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)",
         "TIMESTAMP(6) WITH LOCAL TIME ZONE", "ARRAY<INT>", "MAP<INT, INT>", "ROW<x INT>", "MULTISET<INT>"]  # fmt: skip


@pytest.mark.parametrize("explicit", [True, False], ids=["explicit", "implicit"])
def test_java_allows_the_type_changes_that_we_allow(java, explicit, tmp_path):
    pairs = [(source, target) for source in CASTS for target in CASTS if source != target]
    steps = []
    for index, (source, target) in enumerate(pairs):
        options = {} if explicit else {"disable-explicit-type-casting": "true"}
        columns = java_columns([("a", source)])
        steps.append({"op": "create", "table": f"db.t{index}", "columns": columns, "tableOptions": options})
        changes = [["type", "a", print_type(parse_type(target))]]
        steps.append({"op": "alter", "table": f"db.t{index}", "changes": changes})
    outputs = java("2.0.0").run(str(tmp_path), steps, check=False)[1::2]
    different = [
        (source, target, output["ok"])
        for (source, target), output in zip(pairs, outputs, strict=True)
        if supports_cast(parse_type(source), parse_type(target), explicit) != output["ok"]
    ]
    assert different == []
