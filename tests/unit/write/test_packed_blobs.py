"""BLOBs of primary-key tables: in packs next to the files, which rows refer to; and views of columns of other tables."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from paimon_py import (
    BlobRef,
    BlobViewRef,
    Catalog,
    CorruptionError,
    OptionError,
    Schema,
    SchemaError,
    UnsupportedError,
    UsageError,
    col,
)
from paimon_py.codec.pack_references import Pack, decode_packs, encode_packs
from paimon_py.write import packed_blobs

COLUMNS = {"id": "INT NOT NULL", "a": "BLOB", "n": "STRING", "l": "ARRAY<BLOB>", "m": "MAP<STRING, BLOB>"}


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path / "wh"))
    catalog.create_database("db")
    return catalog


def made(catalog, columns=COLUMNS, name="db.t", **options):
    return catalog.create_table(name, Schema(columns), primary_key=["id"], options={"bucket": "1", **{key.replace("_", "."): value for key, value in options.items()}})


def names(table, end=".managed.blob"):
    return sorted(name for _, _, files in os.walk(table.location) for name in files if name.endswith(end))


def rows(table):
    return {row.pop("id"): tuple(row.values()) for row in table.to_arrow().to_pylist()}


def test_bytes_are_written_once_and_stay_where_they_are(catalog):
    table = made(catalog)
    table.write_arrow([{"id": 1, "a": b"one", "n": "x", "l": [b"1", None], "m": {"k": b"v"}}, {"id": 2, "a": None, "n": "y", "l": [], "m": None}])
    packs = names(table)
    assert len(packs) == 3
    table.update("id = 1", {"n": "z"})
    table.upsert([{"id": 1, "n": "again"}, {"id": 3, "n": "new"}])
    table.compact(full=True)
    assert names(table) == packs, "bytes of columns that a verb does not set are not written again"
    assert rows(table) == {1: (b"one", "again", [b"1", None], [("k", b"v")]), 2: (None, "y", [], None), 3: (None, "new", None, None)}
    table.update("id = 1", {"a": b"other"})
    table.delete("id = 2")
    assert len(names(table)) == 4 and rows(table)[1][0] == b"other"
    assert names(table, ".blobref") == [f"{name}.blobref" for name in names(table, ".parquet")]


def test_lists_of_packs_name_what_their_files_need(catalog):
    table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB"})
    table.write_arrow([{"id": key, "a": bytes([key])} for key in range(3)])
    table.write_arrow(pa.table({"id": pa.array([0, 1], pa.int32()), "a": pa.array([b"x", None], pa.large_binary()), "_row_kind": ["-D", "+U"]}))
    found = []
    for name in names(table, ".blobref"):
        with open(os.path.join(table.location, "bucket-0", name), "rb") as source:
            found.append([pack.name for pack in decode_packs(source.read(), "x")])
    assert sorted(found) == [[], names(table)], "rows that retract others, and NULL, need no pack"
    assert rows(table) == {1: (None,), 2: (b"\2",)}


def test_verbs_keep_bytes_and_set_bytes(catalog):
    table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB", "b": "BLOB", "n": "INT"})
    table.write_arrow([{"id": key, "a": b"a%d" % key, "b": b"b%d" % key, "n": key} for key in range(4)])
    table.update("id = 0", {"a": col("b")})
    source = pa.table({"id": pa.array([1, 9], pa.int32()), "a": pa.array([b"new", b"nine"], pa.large_binary())})
    table.merge(source, on=["id"], when_matched_update={"a": "source.a"}, when_not_matched_insert=True)
    assert rows(table) == {0: (b"b0", b"b0", 0), 1: (b"new", b"b1", 1), 2: (b"a2", b"b2", 2), 3: (b"a3", b"b3", 3), 9: (b"nine", None, None)}
    table.rescale(3)
    table = catalog.table("db.t")
    assert rows(table)[9] == (b"nine", None, None) and rows(table)[0] == (b"b0", b"b0", 0)


def test_sources_are_read_by_every_verb(catalog, tmp_path):
    table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB", "n": "INT"})
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")
    table.write_arrow([{"id": 1, "a": path}])
    table.upsert([{"id": 2, "a": BlobRef(str(path), 2, 3)}])
    table.upsert([{"id": 3, "a": path, "n": 1}], on=["id"])
    table.merge([{"id": 1, "a": BlobRef(str(path), 9)}], on=["id"], when_matched_update={"a": "source.a"})
    assert {key: values[0] for key, values in rows(table).items()} == {1: b"9", 2: b"234", 3: b"0123456789"}


def test_postponed_rows_and_engines(catalog):
    table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB"}, bucket="-2")
    table.write_arrow([{"id": 1, "a": b"one"}])
    table.compact()
    table.write_arrow([{"id": 1, "a": b"two"}, {"id": 2, "a": b"x"}])
    table.compact()
    assert rows(table) == {1: (b"two",), 2: (b"x",)}
    for engine, last in (("partial-update", (b"one", 5)), ("first-row", (b"one", None))):
        table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB", "n": "INT"}, f"db.{engine[:5]}", **{"merge-engine": engine})
        table.write_arrow([{"id": 1, "a": b"one"}])
        table.write_arrow([{"id": 1, "n": 5}])
        table.compact(full=True)
        assert rows(table) == {1: last}


def test_packs_of_many_buckets_are_few_open_files(catalog, monkeypatch):
    monkeypatch.setattr(packed_blobs, "_OPEN_MAX", 2)
    columns = {"p": "INT NOT NULL", "id": "INT NOT NULL", "a": "BLOB"}
    table = catalog.create_table("db.t", Schema(columns), primary_key=["p", "id"], partition_by=["p"], options={"bucket": "1"})
    table.write_arrow([{"p": key % 7, "id": key, "a": bytes([key]) * key} for key in range(50)])
    assert {row["id"]: row["a"] for row in table.to_arrow().to_pylist()} == {key: bytes([key]) * key for key in range(50)}
    assert len(names(table)) == 7


def test_packs_of_discarded_rows_are_deleted(catalog):
    table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB"}, **{"blob.target-file-size": "10 b"})
    with table.writer() as writer:
        writer.write_arrow([{"id": 1, "a": b"x" * 20}, {"id": 2, "a": b"y" * 20}])
        changes = writer.changes()
        assert len(names(table)) == 2
        writer.discard(type(changes).from_bytes(bytes(changes)))
        assert names(table) == names(table, ".blobref") == []
        writer.write_arrow([{"id": 3, "a": b"z"}])
        writer.abort()
    assert names(table) == []


def test_changes_name_no_file_elsewhere(catalog, tmp_path):
    import msgspec

    table = made(catalog, {"id": "INT NOT NULL", "a": "BLOB"})
    other = tmp_path / "wh" / "db.db" / "x.managed.blob"
    other.write_bytes(b"")
    with table.writer() as writer:
        writer.write_arrow([{"id": 1, "a": b"x"}])
        changes = writer.changes()
        for name in ("../../x.managed.blob", "x.parquet"):
            forged = msgspec.structs.replace(changes, buckets=[msgspec.structs.replace(changes.buckets[0], packs=(name,))])
            with pytest.raises(CorruptionError):
                table.commit(forged)
    assert other.exists()


def test_tables_of_packs_that_java_cannot_have_are_refused(catalog):
    for options, match in (
        ({"merge-engine": "aggregation"}, "merge-engine"),
        ({"changelog-producer": "input"}, "changelog-producer"),
        ({"sequence.field": "a"}, "sequence.field"),
        ({"data-file.external-paths": "file:/x", "data-file.external-paths.strategy": "round-robin"}, "external-paths"),
    ):
        with pytest.raises((OptionError, SchemaError), match=match):
            made(catalog, {"id": "INT NOT NULL", "a": "BLOB"}, **options)
    table = made(catalog)
    with pytest.raises(UnsupportedError, match="full paths"):
        catalog.rename_table("db.t", "db.other")
    with pytest.raises(UnsupportedError, match="full paths"):
        catalog.clone_table("db.t", "db.other")
    with pytest.raises(SchemaError, match="first at"):
        made(catalog, {"id": "INT NOT NULL", "v": "BLOB"}, "db.v", **{"blob-view-field": "v"}).write_arrow([{"id": 1, "v": b"x"}])
    with pytest.raises(UsageError, match="blob-view-field"):
        table.write_arrow([{"id": 1, "a": BlobViewRef("db.u", 1, 0)}])
    with pytest.raises(UsageError, match="row_id"):
        BlobViewRef("db.u", 1, -1)


def test_views_are_written_and_followed(catalog):
    evolves = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    source = catalog.create_table("db.u", Schema({"id": "INT", "a": "BLOB"}), options=evolves)
    source.write_arrow([{"id": 1, "a": b"one"}, {"id": 2, "a": b"two"}])
    number = source.schema.field("a").id
    for name, keys, options in (("db.v", [], evolves), ("db.w", ["id"], {"bucket": "1"})):
        table = catalog.create_table(name, Schema({"id": "INT NOT NULL", "v": "BLOB", "n": "INT"}), primary_key=keys, options={**options, "blob-view-field": "v"})
        table.write_arrow([{"id": 1, "v": BlobViewRef("db.u", number, 1)}, {"id": 2, "v": None}])
        table.update("id = 1", {"n": 5})
        table.upsert([{"id": 2, "v": BlobViewRef("db.u", number, 0), "n": 1}], on=["id"])
        table.compact(full=True)
        assert rows(table) == {1: (b"two", 5), 2: (b"one", 1)}
        refs = table.scan(where="id = 1").to_arrow(blobs="refs")["v"].to_pylist()
        assert [BlobViewRef.from_bytes(ref) for ref in refs] == [BlobViewRef("db.u", number, 1)]
        assert [row.read() for row in table.scan(where="id = 2").blobs("v")] == [b"one"]


@pytest.mark.parametrize("texts", [[], [("file:/wh/db.db/t/bucket-0", "data-1.managed.blob")], [("a", "z"), ("a", "é\0\U0001f600"), ("a", "z")]])
def test_lists_of_packs_travel(texts):
    data = encode_packs([Pack(*each) for each in texts])
    assert decode_packs(data, "x") == tuple(sorted({Pack(*each) for each in texts}, key=lambda pack: pack.name.encode("utf-16-be")))
    for at in range(len(data)):
        with pytest.raises(CorruptionError):
            decode_packs(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], "x")
        with pytest.raises(CorruptionError):
            decode_packs(data[:at], "x")
