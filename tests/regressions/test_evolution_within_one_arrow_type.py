"""Found in review, comparing with Java: a change that keeps the Arrow type was not applied to rows of older files.

Texts stayed longer than VARCHAR(n), CHAR(n) was not padded, and a nested field that was dropped and added again showed
the values of the dropped one.
"""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from paimon_py import AddColumn, Catalog, DropColumn, Schema, UpdateColumnType, col


@pytest.fixture
def catalog():
    catalog = Catalog.open("memory://evolution")
    catalog.create_database("db", exist_ok=True)
    catalog.drop_table("db.t", missing_ok=True)
    return catalog


def written(catalog, kind, value, file_format="parquet"):
    table = catalog.create_table("db.t", Schema([("a", kind)]), options={"file.format": file_format})
    table.write_arrow(pa.Table.from_pylist([{"a": value}], schema=table.scan().schema))
    return table


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(
    ("before", "value", "after", "expected"),
    [
        ("STRING", "abc", "VARCHAR(2)", "ab"),
        ("VARCHAR(5)", "abc", "CHAR(2)", "ab"),
        ("STRING", "ab", "CHAR(4)", "ab  "),
        ("BYTES", b"abc", "VARBINARY(2)", b"ab"),
        ("BYTES", b"ab", "BINARY(4)", b"ab\0\0"),
    ],
)
def test_rows_of_older_files_fit_the_new_length_as_in_java(catalog, file_format, before, value, after, expected):
    table = written(catalog, before, value, file_format)
    table.alter(UpdateColumnType("a", after, allow_narrowing=True))
    assert table.scan().to_arrow()["a"].to_pylist() == [expected]
    assert table.scan(where=col("a") == expected).count() == 1
    assert table.scan(where=col("a") == value).count() == 0


def test_times_of_older_files_are_cut_as_in_java(catalog):
    table = written(catalog, "TIMESTAMP(6)", datetime(2020, 1, 1, 0, 0, 0, 123456))
    table.alter(UpdateColumnType("a", "TIMESTAMP(4)", allow_narrowing=True))
    assert table.scan().to_arrow()["a"].to_pylist() == [datetime(2020, 1, 1, 0, 0, 0, 123400)]


def test_a_nested_field_added_again_does_not_show_the_values_of_the_dropped_one(catalog):
    fields = [{"name": "x", "type": "INT"}, {"name": "y", "type": "INT"}]
    table = written(catalog, {"type": "ROW", "fields": fields}, {"x": 1, "y": 2})
    table.alter(DropColumn(["a", "y"]), AddColumn(["a", "y"], "INT"))
    assert table.scan().to_arrow()["a"].to_pylist() == [{"x": 1, "y": None}]
    assert table.scan(where=col("a", "y").is_null()).count() == 1
