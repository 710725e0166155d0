"""Merging by copying bytes keeps every entry and every field, known or not."""

import io
import json

import fastavro
import numpy as np
import pytest
from unit.codec.manifest.manifest_entries import by_fastavro, entry

from paimon_py.codec.avro.container import read_header
from paimon_py.codec.manifest import schemas as manifest_schemas
from paimon_py.codec.manifest.copy import copy_manifests
from paimon_py.codec.manifest.entries import container, encode_entry, read_manifests, write_manifest

PLAIN = {"value_stats_columns": None, "external_path": None, "first_row_id": None, "write_columns": None}


def old_manifest(entries) -> bytes:
    schema = json.loads(manifest_schemas.MANIFEST)
    del schema["fields"][-1]["type"]["fields"][16:]
    return container(json.dumps(schema).encode(), [encode_entry(one)[:-4] for one in entries], "zstd")


def newer_manifest(entries, name="_WRITE_COLS_SEQUENCES") -> bytes:
    """As a later Java writes it: with one more nullable field."""
    schema = json.loads(manifest_schemas.MANIFEST)
    schema["fields"][-1]["type"]["fields"].append(
        {"name": name, "type": ["null", {"type": "array", "items": "long"}], "default": None}
    )
    records = [encode_entry(one) + b"\x02\x02\x0e\x00" for one in entries]
    return container(json.dumps(schema).encode(), records, "zstd")


def test_copied_entries_are_the_same():
    entries = [entry(number) for number in range(300)]
    columns = read_manifests([("m", write_manifest(entries))])
    (copied,) = copy_manifests(columns.take(np.arange(0, 300, 3)), "zstd", 8 << 20)
    assert by_fastavro(copied.data) == entries[::3]
    assert copied.columns.entries() == entries[::3]
    assert read_header(copied.data, "m").schema == manifest_schemas.MANIFEST


def test_entries_of_an_old_writer_get_the_fields_they_lack():
    old, new = [entry(number, **PLAIN) for number in range(60)], [entry(number) for number in range(60, 100)]
    columns = read_manifests([("a", old_manifest(old)), ("b", write_manifest(new))])
    (copied,) = copy_manifests(columns, "null", 8 << 20)
    assert by_fastavro(copied.data) == old + new
    (only_old,) = copy_manifests(read_manifests([("a", old_manifest(old))]), "zstd", 8 << 20)
    assert read_header(only_old.data, "m").schema == manifest_schemas.MANIFEST
    assert by_fastavro(only_old.data) == old


def test_unknown_fields_survive():
    old = [entry(number, **PLAIN) for number in range(10)]
    known, newer = [entry(number) for number in range(20, 80)], [entry(number) for number in range(100, 180)]
    columns = read_manifests([("o", old_manifest(old)), ("n", newer_manifest(newer)), ("k", write_manifest(known))])
    (copied,) = copy_manifests(columns, "zstd", 8 << 20)
    assert by_fastavro(copied.data) == old + newer + known
    records = list(fastavro.reader(io.BytesIO(copied.data)))
    assert [record["_FILE"]["_WRITE_COLS_SEQUENCES"] for record in records] == [None] * 10 + [[7]] * 80 + [None] * 60


def test_incompatible_schemas_are_written_to_separate_files():
    first, second = [entry(number) for number in range(60)], [entry(number) for number in range(100, 160)]
    columns = read_manifests([("a", newer_manifest(first, "_ONE")), ("b", newer_manifest(second, "_OTHER"))])
    copied = copy_manifests(columns, "zstd", 8 << 20)
    assert sorted(len(by_fastavro(one.data)) for one in copied) == [60, 60]
    assert [by_fastavro(one.data) for one in copied] == [one.columns.entries() for one in copied]


@pytest.mark.parametrize("target_bytes", [1, 20_000])
def test_new_file_begins_at_the_target_size(target_bytes):
    entries = [entry(number) for number in range(1000)]
    copied = copy_manifests(read_manifests([("m", write_manifest(entries))]), "zstd", target_bytes)
    assert len(copied) > 2
    assert [one for part in copied for one in by_fastavro(part.data)] == entries
    assert all(part.columns.entries() == by_fastavro(part.data) for part in copied)


def test_without_entries_no_file_is_written():
    columns = read_manifests([("m", write_manifest([entry(1)]))])
    assert copy_manifests(columns.take(np.arange(0)), "zstd", 1) == []


def test_entries_of_a_union_with_null_keep_their_schema():
    entries = [entry(number) for number in range(40)]
    schema = json.dumps(["null", json.loads(manifest_schemas.MANIFEST)]).encode()
    data = container(schema, [b"\x02" + encode_entry(one) for one in entries[:20]], "zstd")
    columns = read_manifests([("a", data), ("b", write_manifest(entries[20:]))])
    copied = copy_manifests(columns, "zstd", 8 << 20)
    assert sorted(one.file.name for part in copied for one in by_fastavro(part.data)) == sorted(
        one.file.name for one in entries
    )
    assert [read_header(part.data, "m").schema == schema for part in copied].count(True) == 1
