"""Found in review by random nested values: a NULL row inside a row cost its neighbours' values in ORC files.

pyarrow's ORC writer stores what lies below the NULL row, and readers, Java's too, then take it for the next row's value.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema

INNER = {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "s", "type": "STRING"}]}
OUTER = {"type": "ROW", "fields": [{"name": "inner", "type": INNER}, {"name": "y", "type": "INT"}]}
VALUE = {"x": 5, "s": "five"}
ROWS = [{"inner": None, "y": 1}, {"inner": VALUE, "y": None}, None, {"inner": {"x": None, "s": "six"}, "y": 3}]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (OUTER, ROWS),
        (OUTER, [ROWS[0], ROWS[1]]),
        ({"type": "ARRAY", "element": OUTER}, [[ROWS[0], ROWS[1]], None, [], [None, ROWS[3]]]),
        ({"type": "MAP", "key": "STRING", "value": OUTER}, [[("a", ROWS[0]), ("b", ROWS[1])], None, [("c", None)]]),
        ({"type": "ROW", "fields": [{"name": "o", "type": OUTER}]}, [{"o": row} for row in ROWS] + [None]),
    ],
    ids=["row", "row without NULL", "array", "map", "row in row"],
)
def test_null_rows_inside_rows_leave_other_values_alone(kind, values, file_format):
    catalog = Catalog.open("memory://null-rows")
    catalog.create_database("db", exist_ok=True)
    catalog.drop_table("db.t", missing_ok=True)
    table = catalog.create_table("db.t", Schema([("a", kind)]), options={"file.format": file_format})
    table.write_arrow(pa.Table.from_pylist([{"a": value} for value in values], schema=table.scan().schema))
    assert table.scan().to_arrow()["a"].to_pylist() == values
