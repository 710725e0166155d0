"""Ids, bounds, row ids, names and expiry of Iceberg metadata, each with values that were invented."""

from __future__ import annotations

import io
import json
import struct
from decimal import Decimal

import fastavro
import msgspec
import pyarrow as pa
import pytest

from paimon_py.codec.binary_row import encode
from paimon_py.errors import CorruptionError
from paimon_py.iceberg.avro_files import read_list_bytes, read_manifest_bytes, write_list_bytes, write_manifest_bytes
from paimon_py.iceberg.avro_schemas import avro_name, list_schema, manifest_schema
from paimon_py.iceberg.bounds import encode_bound, file_bounds, may_hold, partition_ranges, partition_values
from paimon_py.iceberg.expiry import fallen_versions, find_expired, old_versions
from paimon_py.iceberg.fields import last_column_id, partition_fields, schema_value
from paimon_py.iceberg.lineage import assign_row_ids, with_row_ids
from paimon_py.iceberg.metadata import parse_version, plain_path
from paimon_py.iceberg.puffin import VectorBlob, puffin_bytes
from paimon_py.iceberg.values import DATA, DELETES, EntryStatus, IcebergEntry, IcebergFile, describe
from paimon_py.spec.data_file import DataFile, Stats
from paimon_py.spec.iceberg import iceberg_options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

ON = {"metadata.iceberg.storage": "table-location"}


def schema(*columns, partition_keys=(), primary_keys=(), **options):
    fields = tuple(Field(number, name, parse_type(kind)) for number, (name, kind) in enumerate(columns))
    return TableSchema(
        id=0, fields=fields, highest_field_id=len(fields), partition_keys=partition_keys, primary_keys=primary_keys,
        options={**ON, **options},
    )  # fmt: skip


def file(path="/t/a.parquet", rows=3, **more):
    return IcebergFile(path=path, format="parquet", row_count=rows, size_bytes=10, **more)


def test_elements_keys_and_values_have_computed_ids():
    nested = schema(("a", "INT"), ("m", {"type": "MAP", "key": "INT NOT NULL", "value": {"type": "ARRAY", "element": "BIGINT"}}))
    kind = schema_value(nested)["fields"][1]["type"]
    assert (kind["key-id"], kind["value-id"], kind["value"]["element-id"]) == (536870911 - 1025, 536870911 + 1025, 536870911 + 1026)
    assert last_column_id([nested]) == 536870911 + 1026
    assert last_column_id([schema(("k", "INT NOT NULL"), primary_keys=("k",))]) == 1_073_741_823


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("TINYINT", "int"), ("STRING", "string"), ("BYTES", "binary"), ("DECIMAL(9, 2)", "decimal(9, 2)"),
        ("TIMESTAMP(6)", "timestamp"), ("TIMESTAMP(9)", "timestamp_ns"), ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "timestamptz"),
        ("TIME(3)", "time"), ("DATE", "date"), ("DOUBLE NOT NULL", "double"),
    ],
)  # fmt: skip
def test_types_have_icebergs_names(kind, found):
    assert schema_value(schema(("a", kind)))["fields"][0]["type"] == found


def test_partition_fields_count_from_a_thousand():
    found = partition_fields(schema(("a", "INT"), ("b", "STRING"), partition_keys=("b", "a")))
    assert [(one["name"], one["source-id"], one["field-id"]) for one in found] == [("b", 1, 1000), ("a", 0, 1001)]


@pytest.mark.parametrize(
    ("kind", "value", "raw"),
    [
        ("BOOLEAN", True, b"\x01"), ("SMALLINT", -2, struct.pack("<i", -2)), ("BIGINT", 5, struct.pack("<q", 5)),
        ("STRING", "ü", "ü".encode()), ("DECIMAL(9, 2)", b"\xff\x00", b"\xff\x00"), ("TIME(3)", 7, struct.pack("<q", 7000)),
        ("TIMESTAMP(3)", 7, struct.pack("<q", 7000)), ("TIMESTAMP(6)", 7, struct.pack("<q", 7)), ("DATE", 3, struct.pack("<i", 3)),
    ],
)  # fmt: skip
def test_bounds_have_the_binary_form(kind, value, raw):
    assert encode_bound(parse_type(kind), value) == raw


def test_bounds_of_a_file_omit_unknown_bounds_and_nan():
    table = schema(("a", "INT"), ("b", "DOUBLE"), ("c", "STRING"), ("d", "DECIMAL(9, 2)"))
    types = [field.type for field in table.fields]
    columns = [pa.int32(), pa.float64(), pa.string(), pa.decimal128(9, 2)]
    low = encode([pa.array([value], kind) for value, kind in zip([1, 1.0, None, Decimal("-1.00")], columns, strict=True)], types)
    high = encode([pa.array([value], kind) for value, kind in zip([9, float("nan"), "x", Decimal("300.00")], columns, strict=True)], types)
    stats = Stats(low[0].as_py(), high[0].as_py(), (0, None, 2, 0))
    found = file_bounds(DataFile(name="f", size_bytes=1, row_count=1, min_sequence=0, max_sequence=0, schema_id=0, level=0, value_stats=stats), table)
    assert found.null_counts == {0: 0, 2: 2, 3: 0}
    assert found.lower == {0: struct.pack("<i", 1), 3: b"\x9c"} and found.upper[3] == (30000).to_bytes(2, "big")


def test_a_manifest_that_cannot_hold_a_partition_is_left_alone():
    table = schema(("p", "STRING"), ("q", "DECIMAL(9, 2)"), partition_keys=("p", "q"))
    raw = encode([pa.array(["b"]), pa.array([Decimal("-1.00")], pa.decimal128(9, 2))], [field.type for field in table.fields])
    value = partition_values(table, raw[0].as_py())
    assert value == ("b", b"\x9c")
    ranges = partition_ranges(table, [value, ("d", b"\x01"), (None, b"\x02")])
    assert ranges[0].contains_null and (ranges[0].lower, ranges[0].upper) == (b"b", b"d")
    assert (ranges[1].lower, ranges[1].upper) == (b"\x9c", b"\x02")
    assert may_hold(ranges, table, ("c", b"\x00")) and may_hold(ranges, table, (None, b"\x00"))
    assert not may_hold(ranges, table, ("a", b"\x00")) and not may_hold(ranges, table, ("c", b"\x03"))
    assert may_hold(None, table, ("zz", b"\x09")) and partition_ranges(table, [(None, None)])[0].lower is None


def test_row_ids_go_on_from_manifest_to_manifest():
    entries = [IcebergEntry.new(file(rows=rows), 1) for rows in (3, 4)]
    data, deletes = (
        describe(entries, path="/m", size_bytes=1, content=content, number=1, partitions=()) for content in (DATA, DELETES)
    )
    made, free = assign_row_ids([data, deletes, data], 10)
    assert ([one.first_row_id for one in made], free) == ([10, None, 17], 24)
    assert assign_row_ids(made, 99) == (made, 99)
    gone = IcebergEntry(status=EntryStatus.DELETED, snapshot_id=1, sequence_number=1, file_sequence_number=1, file=file(rows=7))
    assert [one.file.first_row_id for one in with_row_ids(made[0], [entries[0], gone, entries[1]])] == [10, None, 13]
    known = IcebergEntry.new(file(rows=5, first_row_id=2), 1)
    found = with_row_ids(made[0], [entries[0], known, entries[1]])
    assert [one.file.first_row_id for one in found] == [10, 2, 13], "an id of its own counts"
    assert with_row_ids(deletes, entries) == entries


def test_files_round_trip_and_contain_what_iceberg_requires():
    table = schema(("p", "DATE"), ("größe", "INT NOT NULL"), partition_keys=("p", "größe"), **{"metadata.iceberg.format-version": "3", "metadata.iceberg.manifest-compression": "null"})
    options = iceberg_options(table)
    entries = [IcebergEntry.new(file(partition=(3, 1), null_counts={0: 1}, lower_bounds={0: b"a"}, upper_bounds={}), 5)]
    raw = write_manifest_bytes(entries, table, DATA, options)
    assert read_manifest_bytes(raw, "m", table) == entries
    manifest = describe(entries, path="/m", size_bytes=len(raw), content=DATA, number=5, partitions=partition_ranges(table, [(3, 1)]))
    listed = write_list_bytes([manifest], 5, 4, options)
    assert read_list_bytes(listed, "l") == [manifest]
    head = fastavro.reader(io.BytesIO(raw)).metadata
    assert (head["content"], head["format-version"], head["partition-spec-id"], head["schema-id"]) == ("data", "3", "0", "0")
    assert [one["source-id"] for one in json.loads(head["partition-spec"])] == [0, 1]
    head = fastavro.reader(io.BytesIO(listed)).metadata
    assert (head["snapshot-id"], head["parent-snapshot-id"], head["sequence-number"]) == ("5", "4", "5")
    with pytest.raises(CorruptionError):
        read_manifest_bytes(raw[:-20], "m", table)


def test_manifests_and_lists_of_several_blocks_are_read_whole():
    table = schema(("k", "INT NOT NULL"), **{"metadata.iceberg.manifest-compression": "null"})
    options = iceberg_options(table)
    entries = [IcebergEntry.new(file(f"/t/{number:0900}.parquet", rows=number + 1), 5) for number in range(200)]
    raw = write_manifest_bytes(entries, table, DATA, options)
    manifests = [
        describe([entry], path=entry.file.path, size_bytes=1, content=DATA, number=5, partitions=()) for entry in entries
    ]
    listed = write_list_bytes(manifests, 5, 4, options)
    for data in (raw, listed):
        assert len(list(fastavro.block_reader(io.BytesIO(data)))) > 1
    assert read_manifest_bytes(raw, "m", table) == entries
    assert read_list_bytes(listed, "l") == manifests


def test_names_that_avro_does_not_know_are_escaped_as_iceberg_does():
    assert [avro_name(name) for name in ("a_1", "1a", "a-b", "ü")] == ["a_1", "_1a", "a_x2Db", "_xFC"]
    assert b'"a_x2Db"' in manifest_schema((Field(0, "a-b", parse_type("INT")),), 2)
    assert b"added_data_files_count" in list_schema(2, True) and b"first_row_id" not in list_schema(2, False)


def test_paths_are_compared_without_their_scheme():
    assert plain_path("s3a://b/x") == plain_path("s3://b/x")
    assert plain_path("file:/w/x") == plain_path("file:///w/x") == plain_path("/w/x") == "/w/x"
    assert plain_path("/w/a:b/x") == "/w/a:b/x"


def test_snapshots_expire_by_number_and_age_from_the_oldest_on():
    options = iceberg_options(schema(("a", "INT"), **{"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "4", "snapshot.time-retained": "10 s"}))
    snapshots = [{"snapshot-id": number, "timestamp-ms": number * 1000} for number in range(1, 8)]
    assert [one["snapshot-id"] for one in find_expired(snapshots, 8, 9_000, options)] == [1, 2, 3, 4]
    assert [one["snapshot-id"] for one in find_expired(snapshots, 8, 99_000, options)] == [1, 2, 3, 4, 5, 6]
    for millis, expired in ((14_999, [1, 2, 3, 4]), (15_000, [1, 2, 3, 4]), (15_001, [1, 2, 3, 4, 5])):
        assert [one["snapshot-id"] for one in find_expired(snapshots, 8, millis, options)] == expired
    assert old_versions([5, 6, 7], 8, options) == [5, 6, 7]
    for number, old in ((14, [2, 3]), (15, [2, 3, 4])):
        kept = msgspec.structs.replace(options, previous_max=10)
        assert old_versions([2, 3, 4, 5], number, kept) == fallen_versions([2, 3, 4, 5], number, kept) == old
        assert fallen_versions([2, 3, 4, 5], number, msgspec.structs.replace(kept, deletes_old=False)) == old[-1:]


def test_vectors_are_stored_in_a_puffin_file():
    data, offsets = puffin_bytes([VectorBlob("/a", 2, b"xyz"), VectorBlob("/b", 1, b"q")])
    assert offsets == [4, 7] and data[:4] == data[-4:] == b"PFA1"
    size = int.from_bytes(data[-12:-8], "little")
    footer = json.loads(data[-12 - size : -12])
    assert [(one["offset"], one["length"], one["properties"]["cardinality"]) for one in footer["blobs"]] == [(4, 3, "2"), (7, 1, "1")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"snapshots": [{}]}', '{"format-version": 2, "table-uuid": "u", "schemas": [], "snapshots": [{"snapshot-id": 1, "timestamp-ms": 1, "manifest-list": "/l"}], "current-snapshot-id": 5}'])
def test_metadata_that_make_no_sense_are_corrupt(text):
    with pytest.raises(CorruptionError):
        parse_version(text.encode(), "v1", 1)
