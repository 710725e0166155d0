"""VECTOR columns: what goes in comes out, in every format that holds them, and what is not a vector is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, SchemaError, UsageError

ELEMENTS = {
    "BOOLEAN": [True, False, True],
    "TINYINT": [1, -1, 127],
    "SMALLINT": [1, -2, 300],
    "INT": [1, 2, -70000],
    "BIGINT": [1, 2, 5_000_000_000],
    "FLOAT": [0.5, -1.25, 3.0],
    "DOUBLE": [0.1, -2.5, 1e300],
}


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    return catalog


def made(catalog, columns, **options):
    return catalog.create_table("db.t", Schema(columns), options=options)


def rows_of(table):
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_vectors_of_every_element_come_back(catalog, file_format):
    table = made(catalog, {"id": "INT", **{name: f"VECTOR<{name}, 3>" for name in ELEMENTS}}, **{"file.format": file_format})
    rows = [{"id": at, **{name: values[at:] + values[:at] for name, values in ELEMENTS.items()}} for at in range(3)]
    rows.append({"id": 3, **dict.fromkeys(ELEMENTS)})
    table.write_arrow(rows)
    expected = [{**row, "FLOAT": row["FLOAT"]} for row in rows]
    assert rows_of(table) == expected
    found = table.scan(columns=["FLOAT"]).to_arrow()
    assert found.schema.field("FLOAT").type == pa.list_(pa.field("element", pa.float32(), nullable=False), 3)
    assert found.schema.field("FLOAT").type.list_size == 3


@pytest.mark.parametrize(
    "given",
    [
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32())),
        pa.array([[1, 2], None, [3, 4]], pa.large_list(pa.float64())),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float64(), 2)),
        pa.array([[9, 9], [1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)).slice(1),
        pa.array([[9], [1, 2], None, [3, 4], [7, 7, 7]], pa.list_(pa.int64())).slice(1, 3),
        pa.array([[1, 2], None, [3, 4]], pa.list_view(pa.float32())),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.field("x", pa.float32(), nullable=False), 2)),
        pa.ListArray.from_arrays([0, 2, 5, 7], pa.array([1, 2, 8, 8, 8, 3, 4], pa.float32()), mask=pa.array([False, True, False])),
    ],
    ids=str,
)
def test_lists_of_any_kind_are_vectors_where_they_fit(catalog, given):
    table = made(catalog, {"id": "INT", "e": "VECTOR<FLOAT, 2>"})
    table.write_arrow(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "e": given}))
    assert [row["e"] for row in rows_of(table)] == [[1, 2], None, [3, 4]]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([[1.0, 2.0], [1.0]], "row 1.*1 elements.*VECTOR<FLOAT, 2>"),
        ([[1.0, 2.0, 3.0]], "row 0.*3 elements"),
        ([[1.0, None]], "NULL"),
        ([["a", "b"]], "VECTOR<FLOAT, 2>"),
        ([1.0], "VECTOR<FLOAT, 2>"),
        ([[1e300, 1.0]], "e"),
    ],
)
def test_what_is_no_vector_of_the_column_is_refused(catalog, wrong, words):
    table = made(catalog, {"id": "INT", "e": "VECTOR<FLOAT, 2>"})
    for data in (pa.table({"e": wrong}), [{"e": value} for value in wrong]):
        with pytest.raises(SchemaError, match=words):
            table.write_arrow(data)
    assert table.snapshot() is None


def test_arrays_of_numpy_are_vectors(catalog):
    table = made(catalog, {"id": "INT", "e": "VECTOR<DOUBLE, 3>"})
    table.write_arrow([{"id": at, "e": np.arange(3) + at} for at in range(2)])
    assert [row["e"] for row in rows_of(table)] == [[0, 1, 2], [1, 2, 3]]


def test_a_table_made_of_the_schema_of_another_keeps_its_vectors(catalog):
    table = made(catalog, {"id": "INT", "e": "VECTOR<FLOAT, 2>"})
    copy = catalog.create_table("db.copy", table.to_arrow().schema)
    assert copy.schema.fields[1].type == table.schema.fields[1].type


def test_vectors_live_through_updates_compaction_and_deletes(catalog):
    table = catalog.create_table("db.k", Schema({"k": "INT", "e": "VECTOR<FLOAT, 2>", "v": "STRING"}), primary_key=["k"], options={"bucket": "1"})
    table.write_arrow([{"k": at, "e": [at, -at], "v": "a"} for at in range(5)])
    table.write_arrow([{"k": 1, "e": [9, 9], "v": "b"}, {"k": 2, "e": None, "v": "b"}])
    first = table.snapshot().id
    table.compact(full=True)
    table.delete("k = 3")
    table.update("k = 4", {"e": [7.0, 7.0]})
    found = {row["k"]: row["e"] for row in table.to_arrow().to_pylist()}
    assert found == {0: [0, 0], 1: [9, 9], 2: None, 4: [7, 7]}
    changes = table.changes(first, table.snapshot().id, mode="diff").to_arrow().to_pylist()
    assert {(row["k"], row["_row_kind"]) for row in changes} == {(3, "-D"), (4, "+U")}


def test_a_vector_inside_a_row_comes_back(catalog):
    table = made(catalog, {"id": "INT", "r": "ROW<e VECTOR<INT, 2>, n INT>"})
    rows = [{"id": 1, "r": {"e": [1, 2], "n": 3}}, {"id": 2, "r": None}, {"id": 3, "r": {"e": None, "n": 4}}]
    table.write_arrow(rows)
    assert rows_of(table) == rows
    assert table.scan(columns=["r.e"], where="id = 1").to_arrow().to_pylist() == [{"r.e": [1, 2]}]


def test_vectors_have_no_order_but_may_be_null(catalog):
    table = made(catalog, {"id": "INT", "e": "VECTOR<FLOAT, 2>"})
    table.write_arrow([{"id": 1, "e": [1, 2]}, {"id": 2, "e": None}])
    assert table.scan(where="e is null").to_arrow()["id"].to_pylist() == [2]
    assert table.scan(where="e is not null").count() == 1
    with pytest.raises(UsageError, match="VECTOR, which has no order"):
        table.scan(where="e = 1").to_arrow()
    with pytest.raises(UsageError):
        table.scan(order_by="e", limit=1).to_arrow()


def test_frames_take_vectors(catalog):
    polars = pytest.importorskip("polars")
    table = made(catalog, {"id": "INT", "e": "VECTOR<FLOAT, 2>"})
    frame = polars.DataFrame({"id": [1, 2], "e": [[1.0, 2.0], None]}, schema={"id": polars.Int32, "e": polars.Array(polars.Float32, 2)})
    table.write_arrow(frame)
    assert table.to_arrow().num_rows == 2
    assert polars.DataFrame(table.scan()).sort("id").equals(frame)
    assert [None if e is None else list(e) for e in table.scan().to_pandas().sort_values("id")["e"]] == [[1, 2], None]
