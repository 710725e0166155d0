"""Found in review of issue 5: quoted names, values that were cut, and options that lost a renamed column."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from paimon_py import (
    AddColumn,
    Catalog,
    DropColumn,
    OptionError,
    RemoveOption,
    RenameColumn,
    SchemaError,
    SetOption,
    UsageError,
)

_FIELDS = pa.schema(
    [
        ("id", pa.int64()),
        ("a.b", pa.string()),
        ("day", pa.date32()),
        ("small", pa.float32()),
        ("tags", pa.list_(pa.string())),
        ("pos", pa.struct([("x.y", pa.int32()), ("between", pa.int32())])),
    ]
)
_ROWS = pa.table(
    {
        "id": [1, 2],
        "a.b": ["p", "q"],
        "pos": pa.array([{"x.y": 1, "between": 2}, {"x.y": 3, "between": 4}], _FIELDS.field("pos").type),
    }
)


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    return catalog


@pytest.fixture
def table(catalog):
    table = catalog.create_table("db.t", _FIELDS)
    table.write_arrow(_ROWS)
    return table


@pytest.mark.parametrize("text", ["source.`a.b`", 'source."a.b"', "source.a.b"])
def test_a_value_of_a_merge_may_be_a_column_with_dots(table, text):
    source = pa.table({"id": [2], "a.b": ["new"]})
    table.merge(source, on=["id"], when_matched_update={"a.b": text})
    assert table.scan(where="`a.b` = 'new'").to_arrow()["id"].to_pylist() == [2]


def test_a_value_of_a_merge_may_be_a_quoted_field_in_a_row(table):
    source = pa.table({"id": pa.array([2]), "p": pa.array([{"a.b": "deep"}], pa.struct([("a.b", pa.string())]))})
    table.merge(source, on=["id"], when_matched_update={"a.b": "source.p.`a.b`"})
    assert table.scan(where="id = 2").to_arrow()["a.b"].to_pylist() == ["deep"]


def test_a_word_of_sql_as_a_name_is_refused_with_the_way_to_write_it(table):
    with pytest.raises(UsageError, match="write `between` if a column is called that"):
        table.scan(where="pos.between = 2")
    assert table.scan(where="pos.`between` = 2").count() == 1


def test_a_source_with_its_key_twice_is_refused_for_that(table):
    source = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    with pytest.raises(UsageError, match="'id' more than once; keep one"):
        table.merge(source, on=["id"], when_matched_delete=True)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("day", datetime.datetime(2024, 1, 1, 13, 30)),
        ("day", datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)),
        ("small", 1e300),
        ("small", 10**60),
        ("tags", "abc"),
        ("tags", b"abc"),
        ("pos", {"zz": 1}),
    ],
)
def test_a_literal_is_not_cut_torn_or_lost(table, column, value):
    with pytest.raises(SchemaError, match=f"{column}: .* given, .* needed"):
        table.update("id = 1", {column: value})
    assert len(table.snapshots()) == 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("day", datetime.datetime(2024, 1, 1)),
        ("small", 3.0e38),
        ("small", float("inf")),
        ("tags", ["abc", None]),
        ("pos", {"x.y": 9}),
    ],
)
def test_literals_that_fit_are_taken(table, column, value):
    assert table.update("id = 1", {column: value}).updated == 1


def test_indexes_and_clustering_follow_a_renamed_column(catalog):
    options = {
        "file-index.bloom-filter.columns": "page, user",
        "file-index.bloom-filter.page.fpp": "0.01",
        "file-index.bitmap.columns": "tags[k]",
        "file-index.bitmap.tags[k].version": "1",
        "clustering.columns": "user,page",
        "clustering.incremental": "true",
    }
    fields = pa.schema(
        [("page", pa.string()), ("user", pa.int64()), ("tags", pa.map_(pa.string(), pa.string()))],
    )
    table = catalog.create_table("db.visits", fields, options=options)
    table.write_arrow(pa.table({"page": ["a", "b"], "user": [1, 2]}))
    table.alter(RenameColumn("page", "url"), RenameColumn("tags", "labels"))
    assert table.options == {
        "file-index.bloom-filter.columns": "url,user",
        "file-index.bloom-filter.url.fpp": "0.01",
        "file-index.bitmap.columns": "labels[k]",
        "file-index.bitmap.labels[k].version": "1",
        "clustering.columns": "user,url",
        "clustering.incremental": "true",
    }
    table.write_arrow(pa.table({"url": ["c"], "user": [3]}))
    table.compact(full=True)
    assert table.scan(where="url = 'b'").to_arrow()["user"].to_pylist() == [2]


def test_a_clustering_column_is_dropped_together_with_its_name_in_the_option(catalog):
    options = {"clustering.columns": "day,id", "clustering.incremental": "true"}
    table = catalog.create_table("db.clustered", _FIELDS, options=options)
    table.write_arrow(_ROWS)
    with pytest.raises(OptionError, match="'clustering.columns' = 'day,id' names 'day', which is not a column"):
        table.alter(DropColumn("day"))
    table.alter(DropColumn("day"), SetOption("clustering.columns", "id"))
    table.compact(full=True)
    assert table.scan().count() == 2


def test_a_table_with_stale_clustering_columns_can_be_opened_read_and_altered(catalog):
    """Java accepts any names, and leaves the option as it is when a column is renamed."""
    created = catalog.create_table("db.stale", _FIELDS)
    created.write_arrow(_ROWS)
    stale = {"clustering.columns": "gone,id", "clustering.incremental": "true"}
    schemas = created._root.schemas
    assert schemas.add(msgspec.structs.replace(created.schema, id=1, options=stale))
    table = catalog.table("db.stale")
    assert table.scan().count() == 2
    table.write_arrow(_ROWS)
    table.alter(AddColumn("more", "INT"))
    for column in ("day", "idd"):
        changes = [DropColumn("id")] if column == "day" else [SetOption("clustering.columns", "idd")]
        with pytest.raises(OptionError, match="which is not a column"):
            table.alter(*changes)
    with pytest.raises(OptionError, match="names 'gone', which is not a column"):
        table.compact(full=True)
    table.alter(SetOption("clustering.columns", "id"))
    table.compact(full=True)
    assert table.scan().count() == 4


@pytest.mark.parametrize(
    ("keys", "options"),
    [
        ("pk", {"sequence.field": "smal"}),
        ("pk", {"rowkind.field": "Small"}),
        ("pk", {"bucket": "1", "bucket-key": "idd"}),
        ("", {"bucket": "1", "bucket-key": "idd"}),
        ("", {"file-index.bloom-filter.columns": "id,smal"}),
        ("", {"clustering.columns": "id,smal"}),
        ("", {"sink.clustering.by-columns": "id,smal"}),
        ("pk", {"merge-engine": "aggregation", "fields.smal.aggregate-function": "sum"}),
        ("pk", {"merge-engine": "partial-update", "fields.small.sequence-group": "dai"}),
        ("pk", {"record-level.time-field": "idd", "record-level.expire-time": "1 d"}),
        ("by", {"partition.timestamp-pattern": "$dai 00:00:00"}),
        ("by", {"manifest-sort.enabled": "true", "manifest-sort.partition-field": "dai"}),
    ],
)
def test_an_option_that_names_an_unknown_column_is_refused_with_the_column_that_was_meant(catalog, keys, options):
    given = {"primary_key": ["id"]} if keys == "pk" else {"partition_by": ["day"]} if keys == "by" else {}
    with pytest.raises((OptionError, SchemaError), match="did you mean '(small|id|day)'"):
        catalog.create_table("db.wrong", _FIELDS, options=options, **given)


@pytest.mark.parametrize("option", ["clustering.columns", "file-index.bitmap.columns", "partition.timestamp-pattern"])
def test_so_is_one_that_is_set_later(catalog, option):
    table = catalog.create_table("db.later", _FIELDS, partition_by=["day"])
    with pytest.raises(OptionError, match="did you mean '(id|day)'"):
        table.alter(SetOption(option, "$dai" if "pattern" in option else "idd"))
    assert table.options == {} == catalog.table("db.later").options
def test_an_indexed_column_is_dropped_together_with_its_index(catalog):
    options = {"file-index.bitmap.columns": "id,day"}
    table = catalog.create_table("db.indexed", _FIELDS, options=options)
    table.write_arrow(_ROWS)
    with pytest.raises(OptionError, match="dropped together with its name in this option, in one alter"):
        table.alter(DropColumn("day"))
    table.alter(DropColumn("day"), SetOption("file-index.bitmap.columns", "id"), AddColumn("day", "INT"))
    assert table.scan(where="id = 2 AND day IS NULL").count() == 1


def test_an_index_of_a_column_that_java_renamed_is_reported_with_the_way_out(catalog):
    """Java renames an indexed column and keeps its old name in the option."""
    option = "file-index.bitmap.columns"
    table = catalog.create_table("db.renamed", _FIELDS, options={option: "id"})
    table.write_arrow(_ROWS)
    schemas = Path(table.location) / "schema"
    schema = json.loads((schemas / "schema-0").read_text())
    schema["id"], schema["fields"][0]["name"] = 1, "number"
    (schemas / "schema-1").write_text(json.dumps(schema))
    table = catalog.table("db.renamed")
    way_out = rf"names 'id', which is not a column.*table.alter\(RemoveOption\('{option}'\)\) removes the index"
    with pytest.raises(OptionError, match=way_out):
        table.write_arrow(table.to_arrow())
    (finding,) = table.doctor()
    assert finding.option == option and finding.severity == "problem"
    eval(finding.mend, {"table": table, "RemoveOption": RemoveOption})
    assert table.doctor() == []
    table.write_arrow(table.to_arrow())


def test_an_option_that_is_nearly_one_of_the_table_cannot_be_removed(catalog):
    table = catalog.create_table("db.own", _FIELDS, options={"team.owner": "ann"})
    with pytest.raises(OptionError, match="the table has no option 'team.ovner'; did you mean 'team.owner'"):
        table.alter(RemoveOption("team.ovner"))
    assert table.options == {"team.owner": "ann"}


def test_a_write_after_the_bucket_count_changed_is_refused_with_the_way_out(catalog):
    table = catalog.create_table("db.b", _FIELDS, options={"bucket": "2", "bucket-key": "id"})
    table.write_arrow(_ROWS)
    table.alter(SetOption("bucket", "3"))
    with pytest.raises(UsageError, match=r"table\.rescale\(3\), or set the option back to '2'"):
        table.write_arrow(_ROWS)
    table.rescale(3)
    table.write_arrow(_ROWS)
    assert table.scan().count() == 4


def test_explain_counts_files_that_wait_in_postponed_buckets(catalog):
    fields = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
    table = catalog.create_table("db.p", fields, primary_key=["id"], options={"bucket": "-2"})
    table.write_arrow(pa.table({"id": [1, 2], "v": [1, 2]}))
    plan = table.scan().explain()
    assert (plan.file_count, plan.skipped.uncompacted, plan.skipped.all_files) == (0, 1, 1)
    assert "not compacted 1" in str(plan)
    table.compact()
    assert table.scan().explain().skipped.uncompacted == 0
