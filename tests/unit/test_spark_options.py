"""Options of Spark's data source, sorted without Spark."""

from __future__ import annotations

import pytest

from paimon_py import Catalog, OptionError, Schema, Table, UnsupportedError, UsageError
from paimon_py.spark.source.opening import open_source, read_from, write_to
from paimon_py.spark.source.options import asked_of, place_of


def test_options_are_sorted_whatever_their_case():
    asked = asked_of({
        "PATH": "s3://b/t", "scan.snapshot-id": "3", "fs.oss.accesskeyid": "a", "fs.s3a.access.key": "b", "s3.endpoint": "e",
        "hadoop-conf-dir": "/etc", "parquet.block.size": "1", "Columns": "a, b", "table": "db.t", "METASTORE": "jdbc",
        "jdbc.user": "me", "header.user-agent": "us", "fields.c.aggregate-function": "sum",
    })  # fmt: skip
    assert asked.own == {"path": "s3://b/t", "columns": "a, b", "table": "db.t"}
    assert asked.store == {"fs.oss.accessKeyId": "a", "fs.s3a.access.key": "b", "s3.endpoint": "e"}
    assert asked.catalog == {
        "hadoop-conf-dir": "/etc", "metastore": "jdbc", "jdbc.user": "me", "header.User-Agent": "us"
    }  # fmt: skip
    assert asked.table == {"scan.snapshot-id": "3", "parquet.block.size": "1", "fields.c.aggregate-function": "sum"}
    assert asked.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scan.snapshotid": "1"}, "did you mean 'scan.snapshot-id'"),
        ({"colums": "a"}, "did you mean 'columns'"),
        ({"wharehouse": "a"}, "did you mean 'warehouse'"),
        ({"mergeSchema": "true"}, "the data source has no option 'mergeSchema'"),
        ({"catalog": "c"}, "give 'warehouse'"),
        ({"paths": "[]"}, "one table at a time"),
        ({"type": "table"}, "cannot change"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_that_nobody_acts_on_are_refused_by_name(options, said):
    with pytest.raises(OptionError) as error:
        asked_of({"path": "t", **options})
    assert said in str(error.value)
    assert error.value.option == next(iter(options))


def test_what_does_nothing_yet_is_refused_by_name():
    with pytest.raises(UnsupportedError, match=r"scan.ignore-corrupt-files"):
        asked_of({"scan.ignore-corrupt-files": "true"})
    assert asked_of({"scan.ignore-corrupt-files": "false"}).table


def test_columns_with_commas_are_a_json_list():
    assert asked_of({"columns": '["a,b", "c"]'}).columns == ["a,b", "c"]
    assert asked_of({}).columns is None
    for wrong in ('["a"', "[1]"):
        with pytest.raises(OptionError, match="columns"):
            _ = asked_of({"columns": wrong}).columns


def test_where_and_filter_are_one_option():
    assert asked_of({"filter": "a > 1"}).where == "a > 1"
    with pytest.raises(UsageError, match="same option"):
        _ = asked_of({"filter": "a > 1", "where": "b"}).where


def test_flags_are_true_or_false():
    assert asked_of({"read.changelog": " TRUE"}).flag("read.changelog")
    assert not asked_of({}).flag("read.changelog")
    with pytest.raises(OptionError, match="true or false"):
        asked_of({"read.changelog": "yes"}).flag("read.changelog")


@pytest.mark.parametrize(
    "options",
    [{}, {"table": "db.t"}, {"warehouse": "w"}, {"path": "p", "table": "db.t"}, {"path": "p", "warehouse": "w"}],
    ids=lambda options: "-".join(options) or "none",
)
def test_what_names_no_table_says_what_to_give(options):
    with pytest.raises(UsageError, match="table"):
        place_of(asked_of(options))


def test_a_table_is_found_by_path_and_by_catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema([("k", "BIGINT NOT NULL")]), primary_key=["k"], options={"bucket": "1"})
    table.create_branch("b1")
    assert open_source(asked_of({"path": table.location})).location == table.location
    by_catalog = {"warehouse": str(tmp_path), "table": "db.t"}
    assert open_source(asked_of(by_catalog)).name == "db.t"
    assert open_source(asked_of({"warehouse": str(tmp_path), "database": "db", "table": "t"})).name == "db.t"
    assert open_source(asked_of({**by_catalog, "branch": "b1"})).name == "db.t$branch_b1"
    assert open_source(asked_of({"path": table.location, "branch": "b1"})).name == "t$branch_b1"
    files = {"warehouse": str(tmp_path), "table": "db.t$files"}
    assert open_source(asked_of(files)).name == "db.t$files"
    assert read_from(asked_of({**by_catalog, "read.changelog": "true"})).name == "db.t$audit_log"
    for wrong in ({**files, "branch": "b1"}, {**files, "read.changelog": "true"}):
        with pytest.raises(UsageError, match="system table"):
            read_from(asked_of(wrong))
    with pytest.raises(UsageError, match="cannot be written"):
        write_to(asked_of(files))
    assert isinstance(write_to(asked_of(by_catalog)), Table)


def test_a_warehouse_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(LookupError):
        open_source(asked_of({"warehouse": str(tmp_path / "w"), "table": "db.t"}))
    assert not (tmp_path / "w").exists()
