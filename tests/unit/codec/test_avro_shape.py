"""Avro schemas as shapes, and generic values."""

import io
import json

import fastavro
import pytest

from paimon_py.codec.avro.shape import encode, read_records, shape_of, tail_nulls
from paimon_py.codec.manifest import schemas as manifest_schemas
from paimon_py.errors import CorruptionError

EVERYTHING = {
    "type": "record",
    "name": "r",
    "namespace": "n",
    "fields": [
        {"name": "n", "type": "null"},
        {"name": "b", "type": "boolean"},
        {"name": "i", "type": "int"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "y", "type": "bytes"},
        {"name": "s", "type": "string"},
        {"name": "x", "type": {"type": "fixed", "name": "six", "size": 6}},
        {"name": "x2", "type": "n.six"},
        {"name": "m", "type": {"type": "map", "values": "long"}},
        {"name": "a", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "u", "type": ["string", "long", "null"]},
    ],
}
VALUE = {
    "n": None, "b": True, "i": -5, "f": 1.5, "d": -2.25, "y": b"\x00\xff", "s": "ä", "x": b"abcdef", "x2": b"ghijkl",
    "m": {"k": 3, "l": 4}, "a": ["p", None], "u": 7,
}  # fmt: skip


def test_every_type_reads_as_fastavro_wrote_it():
    out = io.BytesIO()
    fastavro.schemaless_writer(out, EVERYTHING, VALUE)
    records = read_records(out.getvalue() * 2, 2, shape_of(json.dumps(EVERYTHING).encode(), "f"))
    expected = VALUE | {"m": [3, 4]}
    assert records == [expected, expected]


def test_array_in_blocks_with_sizes_reads():
    shape = shape_of(b'{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"array","items":"int"}}]}', "f")
    assert read_records(b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00", 1, shape) == [{"a": [1, 2, 3]}]


def test_array_that_claims_more_items_than_bytes_is_refused():
    for items in ("boolean", "string", "double"):
        field = {"name": "a", "type": {"type": "array", "items": items}}
        text = json.dumps({"type": "record", "name": "r", "fields": [field]})
        with pytest.raises(IndexError):
            read_records(b"\xfe\xff\xff\xff\xff\xff\x01\x00", 1, shape_of(text.encode(), "f"))


@pytest.mark.parametrize("text", [manifest_schemas.MANIFEST_LIST, manifest_schemas.INDEX_MANIFEST])
def test_fastavro_reads_what_is_encoded(text):
    shape = shape_of(text, "f")
    fields = json.loads(text)["fields"]
    plain = {"int": 3, "long": 2**40, "string": "ö", "bytes": b"\x01"}
    value = {field["name"]: plain.get(field["type"]) for field in fields if isinstance(field["type"], str)}
    value["_PARTITION_STATS"] = {"_MIN_VALUES": b"a", "_MAX_VALUES": b"", "_NULL_COUNTS": [None, 3]}
    value["_DELETIONS_VECTORS_RANGES"] = [None, {"f0": "f", "f1": 1, "f2": 2, "_CARDINALITY": None}]
    read = fastavro.schemaless_reader(io.BytesIO(encode(shape, value)), json.loads(text))
    assert {name: read[name] for name in read if name in value} == {name: value[name] for name in value if name in read}
    assert read_records(encode(shape, value), 1, shape) == [read]


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"3", b'"long"', b'{"type":"record","name":"r"}', b'{"type":"record","name":"r","fields":[3]}',
        b'{"type":"record","name":"r","fields":[{"name":"a","type":"r"}]}',
        b'{"type":"record","name":"r","fields":[{"name":"a","type":"what"}]}',
        b'{"type":"record","name":"r","fields":[{"name":"a","type":[]}]}',
        b'{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        b'{"type":"record","name":"r","fields":[{"name":"a","type":{"type":"fixed","name":"f","size":-1}}]}',
        b'{"type":' * 500 + b'"int"' + b"}" * 500, b"[" * 100_000, b"\xff\xfe",
    ],
)  # fmt: skip
def test_broken_schema_is_corruption(text):
    with pytest.raises(CorruptionError) as caught:
        shape_of(text, "the/file")
    assert caught.value.path == "the/file"


def test_older_records_get_nulls_for_newer_fields():
    newer = shape_of(manifest_schemas.MANIFEST, "f")
    schema = json.loads(manifest_schemas.MANIFEST)
    del schema["fields"][-1]["type"]["fields"][16:]
    older = shape_of(json.dumps(schema).encode(), "f")
    assert tail_nulls(newer, older) == 4
    assert tail_nulls(older, newer) is None
    assert tail_nulls(newer, newer) == 0
    schema["fields"][0]["type"] = "string"
    assert tail_nulls(newer, shape_of(json.dumps(schema).encode(), "f")) is None


def test_new_field_that_must_not_be_null_cannot_be_appended():
    schema = json.loads(manifest_schemas.MANIFEST)
    schema["fields"].append({"name": "_NEW", "type": "int"})
    longer = shape_of(json.dumps(schema).encode(), "f")
    assert tail_nulls(longer, shape_of(manifest_schemas.MANIFEST, "f")) is None
