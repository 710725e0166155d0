"""VARIANT columns: what goes in comes out, in tables of every kind, and what is not a variant is refused."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.codec.variant_values import value

from paimon_py import Catalog, OptionError, Schema, SchemaError, UnsupportedError, UsageError, Variant, variant

ARROW = pa.struct([pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)])


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    return catalog


def made(catalog, columns=None, **options):
    return catalog.create_table("db.t", Schema(columns or {"id": "INT", "j": "VARIANT"}), options=options)


def jsons(table, **scan):
    rows = table.scan(**scan).to_arrow().to_pylist()
    return {row["id"]: None if row["j"] is None else Variant(**row["j"]).to_json() for row in rows}


def test_values_of_every_kind_come_back_byte_for_byte(catalog):
    table, rng = made(catalog), random.Random(7)
    values = [variant([value(rng)]) for _ in range(200)]
    table.write_arrow([{"id": at, "j": one} for at, one in enumerate(values)])
    table.write_arrow([{"id": 999, "j": None}])
    found = {row["id"]: row["j"] and Variant(**row["j"]) for row in table.to_arrow().to_pylist()}
    assert found == {**dict(enumerate(values)), 999: None}


def test_the_arrow_form_is_a_struct_that_names_the_extension_type(catalog):
    table = made(catalog, {"id": "INT", "j": "VARIANT NOT NULL", "a": "ARRAY<VARIANT>"})
    schema = table.to_arrow().schema
    field = schema.field("j")
    assert field.type == ARROW and not field.nullable
    assert field.metadata == {b"ARROW:extension:name": b"parquet.variant", b"ARROW:extension:metadata": b""}
    assert schema.field("a").type.value_field.metadata == field.metadata
    copy = catalog.create_table("db.copy", schema)
    assert [one.type for one in copy.schema.fields] == [one.type for one in table.schema.fields]
    plain = catalog.create_table("db.plain", pa.schema([("j", ARROW)]))  # nothing says that it holds variants
    assert "ROW" in str(plain.schema.fields[0].type) or type(plain.schema.fields[0].type).__name__ == "RowType"


@pytest.mark.parametrize(
    "given",
    [
        pa.array(['{"a": 1}', None, "[2]"]),
        pa.array(['{"a": 1}', None, "[2]"], pa.large_string()),
        pa.array(['{"a": 1}', None, "[2]"], pa.string_view()),
        pa.array(['{"a": 1}', None, "[2]"]).dictionary_encode(),
        pa.array(["x", '{"a": 1}', None, "[2]"]).slice(1),
        pa.array([{"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x01"}, None, {"metadata": b"\x01\x00\x00", "value": b"\x03\x01\x00\x02\x0c\x02"}]),
    ],
    ids=lambda array: str(array.type),
)
def test_texts_of_json_and_structs_of_the_two_parts_are_taken(catalog, given):
    table = made(catalog)
    table.write_arrow(pa.table({"id": pa.array([1, 2, 3], pa.int32()), "j": given}))
    assert jsons(table) == {1: '{"a":1}', 2: None, 3: "[2]"}


def test_values_of_python_are_taken_in_rows(catalog):
    table = made(catalog)
    rows = [{"a": [1, None]}, [True, "x"], 5, 1.5, '{"json": "text"}', variant("2"), None, {"value": b"\x00", "metadata": b"\x01\x00\x00"}]
    table.write_arrow([{"id": at, "j": one} for at, one in enumerate(rows)])
    assert list(jsons(table).values()) == ['{"a":[1,null]}', '[true,"x"]', "5", "1.5", '{"json":"text"}', "2", None, "null"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (pa.array(["1", "{"]), "row 1.*JSON"),
        (pa.array([1, 2]), "pass JSON strings"),
        (pa.array([{"a": 1}, {"a": 2}]), "pass JSON strings"),
        (pa.array([{"value": b"", "metadata": b"\x01\x00\x00"}]), "row 0.*no bytes"),
        (pa.array([{"value": b"\x00", "metadata": b"\x01\x00\x00"}, {"value": b"\x00", "metadata": b"\x02\x00\x00"}]), "row 1.*version 1"),
        (pa.array([{"value": None, "metadata": b"\x01\x00\x00"}], pa.struct([("value", pa.binary()), ("metadata", pa.binary())])), "row 0"),
    ],
)
def test_what_is_no_variant_is_refused(catalog, wrong, words):
    table = made(catalog)
    with pytest.raises(SchemaError, match=words):
        table.write_arrow(pa.table({"j": wrong}))
    assert table.snapshot() is None


@pytest.mark.parametrize("wrong", ["{", "no json", object(), {1: 2}])
def test_rows_with_what_no_variant_holds_are_refused(catalog, wrong):
    table = made(catalog)
    with pytest.raises(SchemaError, match="row 1"):
        table.write_arrow([{"id": 1, "j": "1"}, {"id": 2, "j": wrong}])
    assert table.snapshot() is None


def test_variants_live_through_updates_merges_and_compaction(catalog):
    table = catalog.create_table(
        "db.k", Schema({"id": "INT", "j": "VARIANT", "n": "INT"}), primary_key=["id"], options={"bucket": "1", "merge-engine": "partial-update"}
    )
    table.write_arrow([{"id": at, "j": f'{{"a": {at}}}'} for at in range(4)])
    table.write_arrow([{"id": 1, "n": 5}, {"id": 2, "j": "[]"}])
    assert jsons(table) == {0: '{"a":0}', 1: '{"a":1}', 2: "[]", 3: '{"a":3}'}
    table.compact(full=True)
    assert jsons(table) == {0: '{"a":0}', 1: '{"a":1}', 2: "[]", 3: '{"a":3}'}


def test_rows_with_variants_are_changed_and_compared(catalog):
    table = catalog.create_table("db.k", Schema({"id": "INT", "j": "VARIANT"}), primary_key=["id"], options={"bucket": "1"})
    table.write_arrow([{"id": at, "j": f"[{at}]"} for at in range(4)])
    first = table.snapshot().id
    table.update("id = 1", {"j": '{"new": true}'})
    table.update("id = 2", {"j": variant({"new": 2})})
    table.delete("id = 3")
    table.upsert([{"id": 0, "j": "[0]"}], on=["id"])
    assert jsons(table) == {0: "[0]", 1: '{"new":true}', 2: '{"new":2}'}
    changes = table.changes(first, table.snapshot().id, mode="diff").to_arrow().to_pylist()
    assert {(row["id"], row["_row_kind"]) for row in changes} == {(1, "+U"), (2, "+U"), (3, "-D")}
    assert table.changes(first, table.snapshot().id).count() > 0


def test_variants_inside_other_types_come_back(catalog):
    table = made(catalog, {"id": "INT", "a": "ARRAY<VARIANT>", "m": "MAP<STRING, VARIANT>", "r": "ROW<v VARIANT, n INT>"})
    one, two = variant('{"x": 1}'), variant("[2]")
    table.write_arrow([
        {"id": 1, "a": [one, None, two], "m": [("k", one), ("l", None)], "r": {"v": two, "n": 1}},
        {"id": 2, "a": None, "m": None, "r": None}, {"id": 3, "a": [], "m": [], "r": {"v": None, "n": 2}},
    ])  # fmt: skip
    rows = table.to_arrow().to_pylist()
    assert [v and Variant(**v) for v in rows[0]["a"]] == [one, None, two]
    assert [(k, v and Variant(**v)) for k, v in rows[0]["m"]] == [("k", one), ("l", None)]
    assert Variant(**rows[0]["r"]["v"]) == two and rows[2]["r"] == {"v": None, "n": 2}
    assert rows[1]["a"] is None and rows[1]["m"] is None and rows[1]["r"] is None and rows[2]["a"] == []


REFUSED = [
    ({"columns": {"id": "INT", "j": "VARIANT"}, "primary_key": ["j"]}, {"bucket": "1"}, SchemaError),
    ({"columns": {"id": "INT", "j": "VARIANT"}, "partition_by": ["j"]}, {}, SchemaError),
    ({"columns": {"id": "INT", "j": "VARIANT"}}, {"file.format": "orc"}, SchemaError),
    ({"columns": {"id": "INT", "j": "VARIANT"}}, {"file.format": "avro"}, SchemaError),
    ({"columns": {"id": "INT", "j": "ARRAY<VARIANT>"}}, {"file.format": "avro"}, SchemaError),
    ({"columns": {"id": "INT", "j": "VARIANT"}, "primary_key": ["id"]}, {"bucket": "1", "sequence.field": "j"}, UnsupportedError),
    ({"columns": {"id": "INT", "j": "VARIANT"}}, {"bucket": "2", "bucket-key": "j"}, UnsupportedError),
    ({"columns": {"id": "INT", "j": "VARIANT"}}, {"file-index.bloom-filter.columns": "j"}, OptionError),
]


@pytest.mark.parametrize(("given", "options", "error"), REFUSED)
def test_what_variants_cannot_be_is_refused_when_the_table_is_made(catalog, given, options, error):
    with pytest.raises(error):
        catalog.create_table("db.t", Schema(given.pop("columns")), options=options, **given)


def test_variants_have_no_order_but_may_be_null(catalog):
    table = made(catalog)
    table.write_arrow([{"id": 1, "j": "1"}, {"id": 2, "j": "null"}, {"id": 3}])
    assert table.scan(where="j is null").to_arrow()["id"].to_pylist() == [3]
    assert table.scan(where="j is not null").count() == 2
    with pytest.raises(UsageError, match="VARIANT, which has no order"):
        table.scan(where="j = 1").to_arrow()
    with pytest.raises(UsageError):
        table.scan(order_by="j", limit=1).to_arrow()


def test_frames_show_variants_as_structs(catalog):
    table = made(catalog)
    table.write_arrow([{"id": 1, "j": '{"a": 1}'}])
    frame = table.to_pandas()
    assert Variant(**frame["j"][0]).to_json() == '{"a":1}'
    frame["j"] = ['{"b": 2}']
    table.write_arrow(frame)
    frame["j"] = [variant({"c": 3})]
    table.write_arrow(frame)
    assert sorted(row["j"]["value"] for row in table.to_arrow().to_pylist()) == [b"\x02\x01\x00\x00\x02\x0c\x01", b"\x02\x01\x00\x00\x02\x0c\x02", b"\x02\x01\x00\x00\x02\x0c\x03"]


def test_other_libraries_get_structs_and_json(catalog):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    from paimon_py import col

    table = made(catalog)
    table.write_arrow([{"id": 1, "j": '{"a": 1}'}, {"id": 2, "j": None}])
    frame = polars.DataFrame(table.scan())
    assert frame["j"].to_list()[0] == {"value": b"\x02\x01\x00\x00\x02\x0c\x01", "metadata": b"\x01\x01\x00\x01a"}
    assert frame["j"].null_count() == 1
    table.write_arrow(frame.with_columns(id=polars.lit(3, polars.Int32)))
    text = table.scan(columns=["id", col("j").variant("$", "STRING")])
    assert sorted(polars.DataFrame(text)["j"].drop_nulls().to_list()) == ['{"a":1}', '{"a":1}']
    connection = duckdb.connect()
    connection.register("rows", text.to_arrow())
    assert connection.sql("SELECT count(*) FROM rows WHERE j = '{\"a\":1}'").fetchall() == [(2,)]
    connection.register("whole", table.scan().to_arrow())
    assert connection.sql("SELECT count(*) FROM whole WHERE j IS NULL").fetchall() == [(2,)]
