"""Found in review: arguments of the wrong kind raised AttributeError or TypeError, or were taken for broken files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, OptionError, UsageError, col


@pytest.fixture
def catalog():
    catalog = Catalog.open("memory://arguments")
    catalog.create_database("db", exist_ok=True)
    return catalog


@pytest.fixture
def table(catalog):
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]), exist_ok=True)
    table.write_arrow(pa.table({"a": [1, 2]}))
    return table


@pytest.mark.parametrize("where", [True, 3, [("a", "=", 1)], col("a"), lambda row: row])
def test_a_where_that_is_no_predicate_is_refused(table, where):
    with pytest.raises(UsageError, match="where takes a predicate"):
        table.scan(where=where)


def test_a_column_named_by_a_number_is_refused():
    with pytest.raises(UsageError, match="takes a column name"):
        col(3)


def test_an_option_named_by_a_number_is_refused(catalog):
    with pytest.raises(OptionError, match="an option's name is a string, not 1"):
        catalog.create_table("db.u", pa.schema([("a", pa.int64())]), options={1: "x"})


def test_options_that_are_no_mapping_are_refused(catalog):
    with pytest.raises(UsageError, match="options map names to strings"):
        catalog.create_table("db.u", pa.schema([("a", pa.int64())]), options=["bucket"])


def test_a_metastore_that_is_no_text_is_refused():
    with pytest.raises(OptionError, match="option 'metastore' needs a string, not 5"):
        Catalog.open("memory://arguments", {"metastore": 5})


def test_a_misspelled_option_of_a_scan_is_refused_with_the_right_name(table):
    with pytest.raises(OptionError, match=r"did you mean 'scan\.snapshot-id'"):
        table.scan(options={"scan.snapshotid": "1"})


def test_a_snapshot_id_given_as_text_is_refused_and_not_called_corrupt(table):
    with pytest.raises(UsageError, match="snapshot_id must be a whole number, not '1'"):
        table.snapshot("1")


def test_two_places_in_time_are_named_as_they_were_given(table):
    with pytest.raises(UsageError, match=r"only one of snapshot_id, the option scan\.snapshot-id"):
        table.scan(snapshot_id=1, options={"scan.snapshot-id": "1"})


def test_a_database_whose_tables_could_not_be_named_is_refused(catalog):
    with pytest.raises(UsageError, match="must not contain a dot"):
        catalog.create_database("a.b")


def test_a_plan_keeps_its_labels_apart_from_its_texts(table):
    assert "\n    stats      col" in str(table.scan(where="a = 1").explain())
