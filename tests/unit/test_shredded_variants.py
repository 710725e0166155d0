"""VARIANT columns that are taken apart into columns of a Parquet file, and put together again."""

from __future__ import annotations

import json
import pathlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.codec.variant_values import json_text, json_value, value

from paimon_py import Catalog, CorruptionError, OptionError, Schema, Variant, variant
from paimon_py.codec.variant.unshred import unshred

ROW = {"type": "ROW", "fields": [
    {"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "b", "type": {"type": "ARRAY", "element": "STRING"}}, {"id": 4, "name": "key", "type": "DECIMAL(10, 2)"},
    {"id": 3, "name": "c", "type": {"type": "ROW", "fields": [{"id": 5, "name": "x", "type": "DOUBLE"}, {"id": 6, "name": "v", "type": "VARIANT"}]}},
]}  # fmt: skip


def option(kind) -> dict[str, str]:
    return {"variant.shreddingSchema": json.dumps({"type": "ROW", "fields": [{"id": 0, "name": "j", "type": kind}]})}


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    return catalog


def files_of(table) -> list[pathlib.Path]:
    return sorted(pathlib.Path(table.location.removeprefix("file:")).rglob("*.parquet"))


def jsons(table) -> dict:
    return {row["id"]: None if row["j"] is None else Variant(**row["j"]).to_json() for row in table.to_arrow().to_pylist()}


@pytest.mark.parametrize("kind", [ROW, "INT", "STRING", "VARIANT", {"type": "ARRAY", "element": ROW}, {"type": "ARRAY", "element": {"type": "ARRAY", "element": "BIGINT"}}], ids=str)
@pytest.mark.parametrize("options", [{}, {"bucket": "1"}], ids=["append", "pk"])
def test_what_is_taken_apart_is_the_same_afterwards(catalog, kind, options):
    rng = random.Random(str(kind))
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT", "w": "VARIANT"}), options={**option(kind), **options}, primary_key=["id"] if options else None)
    given = {at: None if at % 9 == 0 else variant([value(rng)]).get("$[0]") if at % 2 else variant(json_text({"a": at, "b": ["x", 1], "c": {"x": 1.5, "v": json_value(rng)}, "key": json_value(rng, 4), "z": at})) for at in range(120)}
    table.write_arrow([{"id": at, "j": one, "w": one} for at, one in given.items()])
    assert jsons(table) == {at: one and one.to_json() for at, one in given.items()}
    table.compact(full=True)
    assert jsons(table) == {at: one and one.to_json() for at, one in given.items()}


def test_the_columns_are_those_of_java(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT"}), options=option(ROW))
    table.write_arrow([{"id": 1, "j": '{"a": 1, "b": ["x", 2], "key": 1.5, "c": {"x": 1, "v": [], "w": null}, "z": 1}'}])
    (file,) = files_of(table)
    (row,) = pq.read_table(file).to_pylist()
    typed = row["j"]["typed_value"]
    assert typed["a"] == {"value": None, "typed_value": 1}
    assert typed["b"]["typed_value"] == [{"value": None, "typed_value": "x"}, {"value": b"\x0c\x02", "typed_value": None}]
    assert str(typed["key"]["typed_value"]) == "1.50"
    assert typed["c"]["value"] is not None and typed["c"]["typed_value"] == {"x": {"value": b"\x0c\x01", "typed_value": None}, "v": {"value": b"\x03\x00\x00"}}
    assert Variant(row["j"]["value"], row["j"]["metadata"]).to_json() == '{"z":1}'
    schema = pq.ParquetFile(file).schema_arrow
    group = schema.field("j")
    assert [(f.name, f.nullable, f.metadata[b"PARQUET:field_id"]) for f in group.type] == [("metadata", False, b"0"), ("value", True, b"1"), ("typed_value", True, b"2")]


BAD = ["{", "1", '"INT"', '{"type": "ARRAY", "element": "INT"}', *(json.dumps({"type": "ROW", "fields": [{"id": 0, "name": "j", "type": kind}]}) for kind in (
    "DATE", "BYTES", "TIMESTAMP(6)", "CHAR(3)", {"type": "MAP", "key": "STRING", "value": "INT"}, {"type": "ARRAY", "element": "TIME(0)"},
    {"type": "ROW", "fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "DATE"}]},
))]  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_a_schema_that_java_cannot_use_is_refused_when_the_table_is_made(catalog, text):
    with pytest.raises(OptionError, match="variant.shreddingSchema"):
        catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT"}), options={"variant.shreddingSchema": text})


def test_a_schema_that_names_other_columns_does_nothing(catalog):
    other = json.dumps({"type": "ROW", "fields": [{"id": 0, "name": "zz", "type": "INT"}, {"id": 1, "name": "id", "type": "INT"}]})
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT"}), options={"variant.shreddingSchema": other})
    table.write_arrow([{"id": 1, "j": "[1]"}])
    assert jsons(table) == {1: "[1]"} and "typed_value" not in str(pq.ParquetFile(files_of(table)[0]).schema)


BINARY = pa.binary()


def group(rows, typed) -> pa.Array:
    kind = pa.struct([pa.field("metadata", BINARY, False), pa.field("value", BINARY), pa.field("typed_value", typed)])
    return pa.array(rows, kind)


def test_parts_are_found_by_name_and_what_is_nowhere_is_null():
    kind = pa.struct([("typed_value", pa.int64()), ("metadata", BINARY)])
    array = pa.array([{"typed_value": 5, "metadata": b"\x01\x00\x00"}, {"typed_value": None, "metadata": b"\x01\x00\x00"}, None], kind)
    found = [row and Variant(**row).to_json() for row in unshred(array).to_pylist()]
    assert found == ["5", "null", None]


def test_types_of_the_encoding_that_java_does_not_write_are_read():
    import datetime

    moment = datetime.datetime(2024, 5, 1, 1, 2, 3, 4000)
    for typed, given, shown in [
        (pa.date32(), datetime.date(2024, 5, 1), '"2024-05-01"'), (pa.timestamp("us"), moment, '"2024-05-01 01:02:03.004"'), (pa.binary(), b"abc", '"YWJj"'),
        (pa.timestamp("us", "UTC"), moment.replace(tzinfo=datetime.timezone.utc), '"2024-05-01 01:02:03.004+00:00"'), (pa.float32(), 1.5, "1.5"),
        (pa.binary(16), bytes(range(16)), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'), (pa.dictionary(pa.int32(), pa.string()), "x", '"x"'),
    ]:  # fmt: skip
        array = pa.array([given], typed)
        parts = pa.StructArray.from_arrays([pa.array([b"\x01\x00\x00"]), pa.nulls(1, BINARY), array], ["metadata", "value", "typed_value"])
        assert Variant(**unshred(parts).to_pylist()[0]).to_json() == shown


@pytest.mark.parametrize(
    "array",
    [
        group([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x01", "typed_value": 1}], pa.int64()),
        group([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x01", "typed_value": {"a": {"value": None}}}], pa.struct([("a", pa.struct([("value", BINARY)]))])),
        group([{"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x01", "typed_value": {"a": {"value": b"\x00"}}}], pa.struct([("a", pa.struct([("value", BINARY)]))])),
        group([{"metadata": b"\x02\x00\x00", "value": None, "typed_value": 1}], pa.int64()),
        group([{"metadata": b"", "value": None, "typed_value": 1}], pa.int64()),
        group([{"metadata": b"\x01\x00\x00", "value": b"\x02\x01\x00\x00\x02\x0c\x01", "typed_value": {"a": {"value": b"\x00"}}}], pa.struct([("a", pa.struct([("value", BINARY)]))])),
        group([{"metadata": b"\x01\x00\x00", "value": None, "typed_value": 1}], pa.duration("s")),
    ],
)
def test_parts_that_do_not_go_together_are_damage(array):
    with pytest.raises(CorruptionError):
        unshred(array)


INFER = {"variant.inferShreddingSchema": "true"}


def typed_names(file) -> list[str]:
    """The columns that hold variants apart."""
    return sorted({name.removeprefix("j.typed_value.").replace(".typed_value", "") for name in (c.path for c in map(pq.ParquetFile(file).schema.column, range(len(pq.ParquetFile(file).schema)))) if name.startswith("j.typed_value.") and name.endswith("typed_value")})


def test_what_to_take_apart_is_found_out_of_the_first_rows(catalog):
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT"}), options=INFER)
    given = [json.dumps({"user": {"id": at, "name": f"n{at}"}, "x": at + 0.5, "tags": ["a"], "mixed": at if at % 2 else "text", "none": None, " ": 1, **({"rare": 1} if at == 3 else {})}) for at in range(40)]
    table.write_arrow([{"id": at, "j": text} for at, text in enumerate(given)])
    assert jsons(table) == {at: variant(text).to_json() for at, text in enumerate(given)}
    (file,) = files_of(table)
    group = pq.ParquetFile(file).schema_arrow.field("j").type.field("typed_value").type
    assert [field.name for field in group] == ["mixed", "none", "tags", "user", "x"]
    assert str(group.field("x").type.field("typed_value").type) == "decimal128(18, 1)"
    assert str(group.field("user").type.field("typed_value").type.field("id").type.field("typed_value").type) == "int64"
    assert "typed_value" not in [field.name for field in group.field("mixed").type]


def test_inference_is_bounded(catalog):
    options = {**INFER, "variant.shredding.maxSchemaWidth": "4", "variant.shredding.maxSchemaDepth": "2", "variant.shredding.minFieldCardinalityRatio": "0.5", "variant.shredding.maxInferBufferRow": "10"}
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT"}), options=options)
    given = [{f"k{number}": {"deep": {"deeper": 1}} for number in range(20)} | ({"late": 1} if at >= 10 else {}) for at in range(30)]
    table.write_arrow([{"id": at, "j": one} for at, one in enumerate(given)])
    table.compact(full=True)
    assert jsons(table) == {at: variant(one).to_json() for at, one in enumerate(given)}
    group = pq.ParquetFile(files_of(table)[0]).schema_arrow.field("j").type.field("typed_value").type
    assert 1 <= group.num_fields <= 4 and "late" not in [field.name for field in group]


@pytest.mark.parametrize("seed", range(6))
def test_inferred_files_hold_any_values(catalog, seed):
    rng = random.Random(seed)
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT", "w": "VARIANT"}), options={**INFER, "variant.shredding.maxInferBufferRow": str(rng.choice((1, 7, 4096)))})
    given = {at: None if rng.random() < 0.1 else variant([value(rng)]).get("$[0]") for at in range(80)}
    table.write_arrow([{"id": at, "j": one, "w": None} for at, one in given.items()])
    assert jsons(table) == {at: one and one.to_json() for at, one in given.items()}


def test_files_of_inference_roll_and_end_early(catalog, monkeypatch):
    table = catalog.create_table("db.t", Schema({"id": "INT", "j": "VARIANT"}), options={**INFER, "target-file-row-num": "7"})
    table.write_arrow([{"id": at, "j": {"a": at}} for at in range(30)])
    assert len(files_of(table)) == 5 and jsons(table) == {at: f'{{"a":{at}}}' for at in range(30)}
    with pytest.raises(RuntimeError), table.writer() as writer:
        writer.write_arrow([{"id": 1, "j": "1"}])
        raise RuntimeError
    assert len(files_of(table)) == 5
