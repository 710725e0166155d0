"""Manifests: lock step, record by record, and fastavro must agree; broken files must be noticed."""

import io
import json
import random

import fastavro
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from unit.codec.manifest.manifest_entries import added, by_fastavro, entry, row

from paimon_py.codec.avro import container as avro
from paimon_py.codec.avro.shape import shape_of
from paimon_py.codec.manifest import entries as manifest_avro
from paimon_py.codec.manifest import schemas as manifest_schemas
from paimon_py.codec.manifest.columns import EntryColumns, concat
from paimon_py.codec.manifest.entries import encode_entry, read_manifests, read_with_counts, write_manifest
from paimon_py.codec.manifest.lockstep import decode
from paimon_py.errors import CorruptionError, UnsupportedError
from paimon_py.spec.data_file import Stats


def both_ways(blobs, monkeypatch) -> EntryColumns:
    """Read in lock step and record by record; both must give the same table."""
    tables = []
    for few in (0, 10**9):
        monkeypatch.setattr(manifest_avro, "_FEW_ENTRIES", few)
        tables.append(read_manifests(blobs))
    assert np.array_equal(tables[0].table, tables[1].table)
    return tables[0]


def old_manifest(entries) -> bytes:
    """A manifest as Java 0.9 writes it: without the last four fields."""
    schema = json.loads(manifest_schemas.MANIFEST)
    del schema["fields"][-1]["type"]["fields"][16:]
    records = [encode_entry(one)[:-4] for one in entries]
    assert all(encode_entry(one)[-4:] == bytes(4) for one in entries)
    return manifest_avro.container(json.dumps(schema).encode(), records, "deflate")


def in_lock_step(data: bytes) -> bool:
    """Whether a manifest is decoded in lock step, not record after record."""
    files, raw = manifest_avro._join([("m", data)])
    return decode(np.frombuffer(raw, np.uint8), raw, files[0].runs, shape_of(files[0].schema, "m"), 0) is not None


def union_manifest(entries) -> bytes:
    """A manifest as pypaimon-rust 0.4 writes it: a union of null and the record."""
    schema = json.dumps(["null", json.loads(manifest_schemas.MANIFEST)]).encode()
    return manifest_avro.container(schema, [b"\x02" + encode_entry(one) for one in entries], "zstd")


def test_entries_may_be_a_union_with_null(monkeypatch):
    entries = [entry(number) for number in range(300)]
    data = union_manifest(entries)
    assert by_fastavro(data) == entries
    columns = both_ways(
        [("a", data), ("b", write_manifest(entries[:3])), ("c", union_manifest(entries[:1]))], monkeypatch
    )
    assert columns.entries() == entries + entries[:3] + entries[:1]
    assert in_lock_step(data)


def test_a_null_in_place_of_an_entry_is_corruption(monkeypatch):
    schema = json.dumps(["null", json.loads(manifest_schemas.MANIFEST)]).encode()
    records = [b"\x02" + encode_entry(entry(1)), b"\x00", b"\x02" + encode_entry(entry(2))]
    data = manifest_avro.container(schema, records, "zstd")
    for few in (0, 10**9):
        monkeypatch.setattr(manifest_avro, "_FEW_ENTRIES", few)
        with pytest.raises(CorruptionError):
            read_manifests([("m", data)])


@pytest.mark.parametrize("count", [1, 2, 47, 300])
@pytest.mark.parametrize("compression", ["zstd", "null", "snappy", "deflate"])
def test_written_entries_read_back(count, compression, monkeypatch):
    entries = [entry(number) for number in range(count)]
    data = write_manifest(entries, compression)
    assert both_ways([("m", data)], monkeypatch).entries() == entries
    if compression != "snappy":
        assert by_fastavro(data) == entries


def test_several_files_of_several_writers_read_as_one(monkeypatch):
    plain = {"value_stats_columns": None, "external_path": None, "first_row_id": None, "write_columns": None}
    parts = [
        [entry(number) for number in range(100)],
        [entry(number, **plain) for number in range(100, 180)],
        [],
        [entry(500)],
        [entry(number, **plain) for number in range(600, 601)],
    ]
    write = [write_manifest, old_manifest, write_manifest, write_manifest, old_manifest]
    blobs = [(f"m{at}", write(part)) for at, (write, part) in enumerate(zip(write, parts, strict=True))]
    columns = both_ways(blobs, monkeypatch)
    assert columns.entries() == [one for part in parts for one in part]
    assert read_with_counts(blobs)[1] == [len(part) for part in parts]
    assert len(columns.schemas) == 2


def test_large_manifests_are_read_in_lockstep():
    entries = [entry(number) for number in range(400)]
    payload = b"".join(map(encode_entry, entries)) + bytes(64)
    runs = [manifest_avro.Records(0, len(payload) - 64, 400)]
    shape = shape_of(manifest_schemas.MANIFEST, "m")
    assert decode(np.frombuffer(payload, np.uint8), payload, runs, shape, 0) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"max_sequence": 2**63 - 1},
        {"value_stats": Stats(row(1), row(2), tuple(range(-5, 100)))},
        {"value_stats": Stats(row(1), row(2), (2**60,))},
        {"partition": row(*range(300))},
        {"partition": row(*range(57))},
        {"partition": row(*range(3000))},
        {"extra_files": tuple(f"{number}.index" for number in range(200))},
        {"value_stats_columns": tuple(f"column {number}" for number in range(1000))},
        {"embedded_index": b"\x04\x00\x18\x00\x00\x00\x00\x00" * 2000},
        {"name": "\x04\x00\x18\x00\x00\x00\x00\x00" * 20},
        {"min_key": b"", "max_key": b""},
    ],
    ids=lambda changes: " ".join(changes),
)
def test_awkward_entries_among_others_read_right(changes, monkeypatch):
    entries = [entry(number) if number % 3 else entry(number, **changes) for number in range(90)]
    assert both_ways([("m", write_manifest(entries))], monkeypatch).entries() == entries


def test_unknown_fields_of_newer_writers_are_passed_over(monkeypatch):
    schema = json.loads(manifest_schemas.MANIFEST)
    file = schema["fields"][-1]["type"]["fields"]
    file.append(
        {"name": "_WRITE_COLS_SEQUENCES", "type": ["null", {"type": "array", "items": "long"}], "default": None}
    )
    file.insert(1, {"name": "_NEW", "type": {"type": "map", "values": "double"}})
    schema["fields"].append({"name": "_LAST", "type": "boolean"})
    entries = [entry(number) for number in range(70)]
    old = list(fastavro.reader(io.BytesIO(write_manifest(entries))))
    for at, record in enumerate(old):
        record["_FILE"] |= {"_NEW": {"a": 1.5}, "_WRITE_COLS_SEQUENCES": [1, 2] if at % 2 else None}
        record["_LAST"] = True
    out = io.BytesIO()
    fastavro.writer(out, schema, old, codec="deflate")
    assert both_ways([("m", out.getvalue())], monkeypatch).entries() == entries


def test_concatenated_and_picked_columns_keep_their_entries():
    entries = [entry(number) for number in range(120)]
    first, second = (read_manifests([("m", write_manifest(part))]) for part in (entries[:70], entries[70:]))
    assert concat([first, EntryColumns.empty(), second]).entries() == entries
    picked = concat([second.take(np.array([3, 1])), first.take(slice(60, 70))])
    assert picked.entries() == [entries[73], entries[71], *entries[60:70]]
    assert len(picked.buffer) < len(first.buffer)
    assert concat([]).entries() == []


def test_columns_answer_without_making_entries():
    entries = [entry(number) for number in range(60)]
    columns = read_manifests([("m", write_manifest(entries))])
    assert columns.names().to_pylist() == [one.file.name for one in entries]
    assert columns.partitions().to_pylist() == [one.partition for one in entries]
    assert columns.level.tolist() == [one.file.level for one in entries]
    assert columns.bucket.tolist() == [one.bucket for one in entries]
    codes, values = columns.lists("value_stats_columns")
    assert [values[code] for code in codes] == [one.file.value_stats_columns for one in entries]
    counts = [one.file.value_stats.null_counts for one in entries]
    for slot in range(6):
        expected = [row[slot] if row is not None and slot < len(row) else None for row in counts]
        assert columns.null_counts("value_null_counts", slot).to_pylist() == expected
    buffer, starts = columns.rows("min_key")
    assert bytes(buffer[starts[7] : starts[7] + 20]) == entries[7].file.min_key


def test_number_that_does_not_fit_is_corruption():
    for changes in ({"bucket": -3}, {"bucket": 2**31}, {"level": -1}, {"size_bytes": -1}, {"row_count": -1}):
        with pytest.raises(CorruptionError, match="impossible"):
            read_manifests([("m", write_manifest([entry(1), entry(2, **changes)]))])


def test_newer_entry_version_is_refused_by_name():
    data = manifest_avro.container(manifest_schemas.MANIFEST, [b"\x06" + encode_entry(entry(1))[1:]], "null")
    with pytest.raises(UnsupportedError, match="version 3"):
        read_manifests([("m", data)])


def test_missing_field_is_corruption_that_names_it():
    schema = json.loads(manifest_schemas.MANIFEST)
    del schema["fields"][-1]["type"]["fields"][10]
    data = manifest_avro.container(json.dumps(schema).encode(), [encode_entry(entry(1))], "null")
    with pytest.raises(CorruptionError, match="_LEVEL"):
        read_manifests([("dir/m", data)])


def test_error_names_file_and_block():
    entries = [encode_entry(added(number)) for number in range(100)]
    blocks = [(50, b"".join(entries[:50])), (50, b"".join(entries[50:])[:-1] + b"\x09")]
    broken = avro.write_container(avro.header_bytes(manifest_schemas.MANIFEST, "null"), blocks)
    offset = len(avro.header_bytes(manifest_schemas.MANIFEST, "null")) + 16 + 1 + 3 + len(blocks[0][1]) + 16
    with pytest.raises(CorruptionError) as caught:
        read_manifests([("good", write_manifest([entry(1)])), ("bad", broken), ("good2", write_manifest([entry(2)]))])
    assert (caught.value.path, caught.value.offset) == ("bad", offset)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(seed=5861989, count=1)
@given(seed=st.integers(0, 2**32), count=st.sampled_from([1, 3, 60]))
def test_a_damaged_payload_raises_corruption_or_reads_as_an_independent_reader_reads_it(seed, count, monkeypatch):
    draw = random.Random(seed)
    payload = bytearray(b"".join(encode_entry(entry(draw.randrange(10**6))) for _ in range(count)))
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(payload))
        payload[at] = draw.choice([payload[at] ^ 1 << draw.randrange(8), 0, 0xFF, draw.randrange(256)])
    count += draw.choice([0, 0, 0, 1, -1])
    data = avro.write_container(avro.header_bytes(manifest_schemas.MANIFEST, "null"), [(max(count, 0), bytes(payload))])
    seen = []
    for few in (0, 10**9):
        monkeypatch.setattr(manifest_avro, "_FEW_ENTRIES", few)
        try:
            seen.append(read_manifests([("m", data)]).entries())
        except (CorruptionError, UnsupportedError) as error:
            seen.append(type(error))
    assert seen[0] == seen[1]
    if isinstance(seen[0], list):
        assert seen[0] == by_fastavro(data)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), compression=st.sampled_from(["zstd", "null", "snappy", "deflate"]))
def test_damaged_file_is_corruption_or_reads(seed, compression):
    draw = random.Random(seed)
    data = bytearray(write_manifest([entry(draw.randrange(10**6)) for _ in range(draw.choice([1, 60]))], compression))
    at = draw.randrange(len(data))
    match draw.randrange(4):
        case 0:
            del data[at:]
        case 1:
            data[at] ^= 1 << draw.randrange(8)
        case 2:
            data[at:at] = draw.randbytes(draw.randrange(1, 9))
        case _:
            del data[at : at + draw.randrange(1, 9)]
    try:
        columns = read_manifests([("m", bytes(data))])
        assert len(columns.entries()) == len(columns)
    except CorruptionError as error:
        assert error.kind == "corruption"
    except UnsupportedError as error:
        assert "version" in error.feature


@pytest.mark.parametrize("count", [1, 100])
def test_names_that_may_be_null_by_the_schema_are_read(count):
    """Avro allows `["null", "string"]` in the lists; a name that is NULL is damage."""
    schema = json.loads(manifest_schemas.MANIFEST)
    (file,) = [field["type"] for field in schema["fields"] if field["name"] == "_FILE"]
    (extra,) = [field for field in file["fields"] if field["name"] == "_EXTRA_FILES"]
    known = [entry(number) for number in range(count)]
    records = list(fastavro.reader(io.BytesIO(write_manifest(known))))
    extra["type"] = {"type": "array", "items": ["null", "string"]}
    for names in (["a.index", "b.index"], []):
        for record in records:
            record["_FILE"]["_EXTRA_FILES"] = names
        out = io.BytesIO()
        fastavro.writer(out, schema, records)
        assert [one.file.extra_files for one in read_manifests([("m", out.getvalue())]).entries()] == [tuple(names)] * count
    records[0]["_FILE"]["_EXTRA_FILES"] = [None]
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    with pytest.raises(CorruptionError, match="m"):
        read_manifests([("m", out.getvalue())])
