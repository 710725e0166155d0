import pyarrow as pa
import pytest
from unit.files.build import fields

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.errors import SchemaError
from paimon_py.files.evolve import Evolution


def batch_of(file_fields, *rows):
    arrow = to_arrow_schema(file_fields)
    return pa.RecordBatch.from_pylist([dict(zip(arrow.names, row, strict=True)) for row in rows], schema=arrow)


def evolved(file_fields, read_fields, *rows):
    evolution = Evolution(file_fields, read_fields)
    result = evolution.apply(batch_of(file_fields, *rows).select(list(evolution.columns)))
    result.validate(full=True)
    assert result.schema.equals(to_arrow_schema(read_fields))
    return [list(row.values()) for row in result.to_pylist()]


def test_columns_match_by_id_in_the_order_that_is_read():
    stored = fields((0, "a", "INT"), (1, "b", "STRING"), (2, "c", "DATE"))
    wanted = fields((1, "text", "STRING"), (0, "a", "INT"))
    assert evolved(stored, wanted, [1, "x", None], [2, None, None]) == [["x", 1], [None, 2]]


def test_only_columns_that_are_needed_are_asked_of_the_file():
    stored = fields((0, "a", "INT"), (1, "b", "STRING"), (2, "c", "DATE"))
    assert Evolution(stored, fields((2, "day", "DATE"), (9, "new", "INT"))).columns == ("c",)


def test_a_column_that_was_dropped_and_added_again_is_null():
    stored = fields((0, "a", "INT"), (1, "s", "STRING"))
    wanted = fields((0, "a", "INT"), (2, "s", "STRING"))
    assert evolved(stored, wanted, [1, "old"]) == [[1, None]]


def test_swapped_names_follow_their_ids():
    stored = fields((0, "a", "INT"), (1, "b", "INT"))
    assert evolved(stored, fields((0, "b", "INT"), (1, "a", "INT")), [1, 2]) == [[1, 2]]


def test_changed_types_are_cast_and_the_column_of_today_is_named_in_errors():
    stored = fields((0, "a", "STRING"))
    assert evolved(stored, fields((0, "n", "INT")), ["12"], [None]) == [[12], [None]]
    with pytest.raises(SchemaError, match="column n: the stored STRING value 'x'"):
        evolved(stored, fields((0, "n", "INT")), ["x"])


def test_rows_evolve_inside_rows_arrays_and_maps():
    def row(*columns):
        return {"type": "ROW", "fields": [{"id": i, "name": n, "type": t} for i, n, t in columns]}

    old, new = row((5, "x", "INT"), (6, "y", "STRING")), row((7, "z", "DATE"), (6, "why", "STRING"), (5, "x", "BIGINT"))
    stored = fields(
        (0, "r", row((8, "in", old))),
        (1, "l", {"type": "ARRAY", "element": old}),
        (2, "m", {"type": "MAP", "key": "INT", "value": old}),
    )
    wanted = fields(
        (0, "r", row((8, "in", new))),
        (1, "l", {"type": "ARRAY", "element": new}),
        (2, "m", {"type": "MAP", "key": "INT", "value": new}),
    )
    value, seen = {"x": 1, "y": "q"}, {"z": None, "why": "q", "x": 1}
    rows = [[{"in": value}, [value, None], [(1, value)]], [None, None, None], [{"in": None}, [], []]]
    assert evolved(stored, wanted, *rows) == [
        [{"in": seen}, [seen, None], [(1, seen)]],
        [None, None, None],
        [{"in": None}, [], []],
    ]


def test_a_column_that_lost_not_null_inside_a_row_gets_the_new_arrow_type_without_a_cast():
    def row(kind):
        return {"type": "ROW", "fields": [{"id": 5, "name": "x", "type": kind}]}

    stored, wanted = fields((0, "r", row("INT NOT NULL"))), fields((0, "r", row("INT")))
    assert evolved(stored, wanted, [{"x": 1}]) == [[{"x": 1}]]


def test_an_unchanged_batch_comes_back_as_it_is():
    stored = fields((0, "a", "INT"), (1, "b", "STRING"))
    rows = batch_of(stored, [1, "x"])
    assert Evolution(stored, stored).apply(rows) is rows
