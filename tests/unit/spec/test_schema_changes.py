from __future__ import annotations

import pytest

from paimon_py.errors import OptionError, SchemaError, UsageError
from paimon_py.spec.changed_schema import apply
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
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
from paimon_py.spec.type_text import sql_type

COLUMNS = [
    ("k", "INT"),
    ("p", "STRING"),
    ("v", "INT"),
    ("r", "ROW<x INT, y ROW<q INT>>"),
    ("l", "ARRAY<ROW<u INT>>"),
    ("m", "MAP<STRING, ARRAY<INT>>"),
    ("s", "INT"),
]


def table(**options):
    spec = TableSpec(primary_keys=("k", "p"), partition_keys=("p",), options={"bucket": "2", **options})
    return new_table_schema(Schema(COLUMNS), spec, time_millis=1)


def change(*changes, data=False, **options):
    return apply(table(**options), changes, has_snapshots=data, time_millis=7)


def shape(schema):
    return [f"{field.name} {sql_type(field.type)}" for field in schema.fields]


def test_several_changes_make_one_version_with_the_next_id():
    changed = change(AddColumn("a", "INT"), DropColumn("v"), UpdateComment("c"), SetOption("write-only", "true"))
    assert (changed.id, changed.time_millis, changed.comment) == (1, 7, "c")
    assert changed.names == ("k", "p", "r", "l", "m", "s", "a")
    assert changed.options["write-only"] == "true"


def test_new_columns_continue_the_ids_for_ever():
    assert table().highest_field_id == 10
    changed = change(DropColumn("s"), AddColumn("a", "ROW<x INT, y ROW<z INT>>", "c", First()))
    a = changed.fields[0]
    assert (a.name, a.id, a.description) == ("a", 11, "c")
    assert [field.id for field in a.type.fields] == [12, 14]
    assert changed.highest_field_id == 14


@pytest.mark.parametrize(
    ("position", "names"),
    [
        (None, "kpvrlmsa"),
        (First(), "akpvrlms"),
        (Last(), "kpvrlmsa"),
        (After("p"), "kpavrlms"),
        (Before("p"), "kapvrlms"),
    ],
)
def test_a_new_column_goes_where_it_is_told(position, names):
    assert "".join(change(AddColumn("a", "INT", None, position)).names) == names


def test_a_new_column_can_go_before_the_partition_keys():
    assert "".join(change(AddColumn("a", "INT"), **{"add-column-before-partition": "true"}).names) == "kapvrlms"


@pytest.mark.parametrize(
    ("position", "names"),
    [
        (First(), "mkpvrls"),
        (Last(), "kpvrlsm"),
        (After("k"), "kmpvrls"),
        (Before("v"), "kpmvrls"),
        (After("s"), "kpvrlsm"),
    ],
)
def test_a_column_moves_where_it_is_told(position, names):
    assert "".join(change(UpdateColumnPosition("m", position)).names) == names


def test_nested_columns_are_reached_by_path():
    changed = change(
        AddColumn(["r", "y", "n"], "INT", None, First()),
        RenameColumn(["r", "x"], "xx"),
        DropColumn(["r", "y", "q"]),
        UpdateColumnType(["l", "element", "u"], "BIGINT"),
        UpdateColumnType(["m", "value", "element"], "BIGINT"),
        AddColumn(["l", "element", "w"], "STRING"),
        UpdateColumnComment(["r", "y"], "inner"),
    )
    assert shape(changed)[3:6] == [
        "r ROW<xx INT, y ROW<n INT>>",
        "l ARRAY<ROW<u BIGINT, w STRING>>",
        "m MAP<STRING, ARRAY<BIGINT>>",
    ]
    assert changed.fields[3].type.fields[1].description == "inner"


def test_renaming_takes_keys_and_options_along():
    changed = change(
        RenameColumn("k", "key"),
        RenameColumn("s", "seq"),
        **{"bucket-key": "k", "sequence.field": "s", "fields.v.stats-mode": "none", "fields.s.stats-mode": "full"},
    )
    assert changed.primary_keys == ("key", "p")
    assert changed.options["bucket-key"] == "key"
    assert changed.options["sequence.field"] == "seq"
    assert changed.options["fields.seq.stats-mode"] == "full"
    assert "fields.s.stats-mode" not in changed.options


def test_a_column_renamed_twice_is_still_a_key():
    changed = change(RenameColumn("k", "a"), RenameColumn("a", "b"))
    assert changed.primary_keys == ("b", "p")
    with pytest.raises(SchemaError, match="primary key"):
        change(RenameColumn("k", "a"), DropColumn("a"))


def test_types_change_by_implicit_and_explicit_casts():
    assert shape(change(UpdateColumnType("v", "BIGINT")))[2] == "v BIGINT"
    assert shape(change(UpdateColumnType("v", "STRING")))[2] == "v STRING"
    assert shape(change(UpdateColumnType("v", "SMALLINT NOT NULL", True, True)))[2] == "v SMALLINT"
    with pytest.raises(SchemaError, match="without explicit"):
        change(UpdateColumnType("v", "SMALLINT"), **{"disable-explicit-type-casting": "true"})


def test_not_null_needs_an_option():
    with pytest.raises(SchemaError, match="alter-column-null-to-not-null"):
        change(UpdateColumnNullability("v", False))
    allowed = {"alter-column-null-to-not-null.disabled": "false"}
    changed = change(UpdateColumnNullability("v", False), UpdateColumnNullability(["m", "value"], False), **allowed)
    assert shape(changed)[2] == "v INT NOT NULL"
    assert shape(changed)[5] == "m MAP<STRING, ARRAY<INT> NOT NULL>"


def test_defaults_and_comments_are_set_and_removed():
    changed = change(UpdateColumnDefault("v", "5"), UpdateColumnComment("v", "c"))
    assert (changed.field("v").default, changed.field("v").description) == ("5", "c")
    changed = apply(
        changed, [UpdateColumnDefault("v", None), UpdateColumnComment("v", None)], has_snapshots=True, time_millis=8
    )
    assert (changed.field("v").default, changed.field("v").description) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (AddColumn("a", "INT NOT NULL"), "NOT NULL"),
        (AddColumn("v", "INT"), "already"),
        (AddColumn(["r", "x"], "INT"), "already"),
        (AddColumn(["v", "x"], "INT"), "not a ROW"),
        (AddColumn("a", "INTT"), "INTT"),
        (AddColumn("_KEY_a", "INT"), "_KEY_"),
        (AddColumn("a\n", "INT"), "control"),
        (AddColumn("a", "INT", None, After("zz")), "zz"),
        (AddColumn("a", "BYTES", "__BLOB_FIELD"), "BLOB"),
        (RenameColumn("p", "q"), "partition"),
        (RenameColumn("v", "k"), "already"),
        (RenameColumn("zz", "k"), "zz"),
        (RenameColumn("v", "_ROW_ID"), "_ROW_ID"),
        (DropColumn("k"), "primary key"),
        (DropColumn("p"), "partition"),
        (DropColumn("zz"), "zz"),
        (DropColumn(["l", "element", "u"]), "no column would be left"),
        (DropColumn(["l", "x", "u"]), "not a ROW"),
        (UpdateColumnType("k", "BIGINT"), "primary-key"),
        (UpdateColumnType("p", "INT"), "partition"),
        (UpdateColumnType("v", "DATE"), "DATE"),
        (UpdateColumnType("v", "BIGINT NOT NULL"), "NOT NULL"),
        (UpdateColumnType("l", "ARRAY<BIGINT>"), "no such cast"),
        (UpdateColumnNullability("k", True), "primary-key"),
        (UpdateColumnDefault("v", "five"), "five"),
        (UpdateColumnDefault("r", "{}"), "ROW"),
        (UpdateColumnPosition("v", After("v")), "itself"),
        (UpdateColumnPosition("v", After("zz")), "zz"),
        (SetOption("bukcet", "4"), "bucket"),
        (SetOption("bucket", "many"), "bucket"),
        (SetOption("type", "format-table"), "type"),
        (SetOption("sequence.field", "zz"), "zz"),
        (SetOption("bucket", "0"), "bucket"),
        (RemoveOption("type"), "type"),
        ("DROP TABLE", "not a schema change"),
    ],
)
def test_a_change_that_breaks_a_rule_is_refused_by_its_name(wrong, rule):
    with pytest.raises(UsageError, match=rule):
        change(wrong)


def test_no_change_at_all_is_refused():
    with pytest.raises(UsageError):
        change()


@pytest.mark.parametrize(
    "wrong",
    [
        SetOption("bucket-key", "k"),
        SetOption("merge-engine", "first-row"),
        SetOption("rowkind.field", "p"),
        SetOption("bucket", "-1"),
        SetOption("deletion-vectors.enabled", "true"),
        SetOption("ignore-delete", "false"),
        RemoveOption("merge-engine"),
        RemoveOption("bucket"),
        RemoveOption("ignore-delete"),
        SetOption("primary-key", "k"),
    ],
)
def test_some_options_cannot_change_once_there_is_data(wrong):
    with pytest.raises(OptionError):
        change(wrong, data=True, **{"ignore-delete": "true"})


@pytest.mark.parametrize("name", ["ignore-delete", "ignore-update-before"])
def test_rows_of_some_kinds_may_be_ignored_from_now_on_but_not_only_until_now(name):
    assert change(SetOption(name, "true"), data=True).options[name] == "true"
    for back in (SetOption(name, "false"), RemoveOption(name)):
        with pytest.raises(OptionError, match="from true to false"):
            change(back, data=True, **{name: "true"})


def test_options_can_be_set_to_what_they_are_and_buckets_can_grow():
    changed = change(
        SetOption("bucket", "4"),
        SetOption("primary-key", "k, p"),
        SetOption("type", "TABLE"),
        RemoveOption("x"),
        data=True,
    )
    assert changed.options == {"bucket": "4"}
    assert change(SetOption("bucket", "-1")).options["bucket"] == "-1"


def test_a_version_written_by_an_old_release_becomes_a_current_one():
    import msgspec

    old = msgspec.structs.replace(table(), version=1, extra={"future": 1})
    changed = apply(old, [UpdateComment("c")], has_snapshots=False, time_millis=1)
    assert (changed.version, changed.extra) == (3, {"future": 1})
