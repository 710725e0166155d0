"""BLOBs written from bytes, paths, open files and references, and what verbs do to them."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import (
    BlobRef,
    Catalog,
    Schema,
    SchemaError,
    SnapshotExpiredError,
    StorageError,
    UnsupportedError,
    UsageError,
    col,
)
from paimon_py.codec.blob_refs import BlobRef as Ref

OPTIONS = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true"}


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(str(tmp_path / "wh"))
    catalog.create_database("db")
    return catalog


def made(catalog, columns=None, name="db.t", **options):
    columns = columns or {"id": "INT", "a": "BLOB", "n": "STRING"}
    return catalog.create_table(name, Schema(columns), options={**OPTIONS, **{key.replace("_", "."): value for key, value in options.items()}})


def files_of(table):
    rows = table.system("files").scan(columns=["file_path", "record_count", "first_row_id", "write_cols"]).to_arrow().to_pylist()
    return [(row["file_path"].rpartition(".")[2], row["record_count"], row["first_row_id"], row["write_cols"]) for row in rows]


def test_blob_files_are_stored_beside_the_rows_and_roll_separately(catalog):
    table = made(catalog, **{"blob.target-file-size": "300 b", "target-file-row-num": "7"})
    rows = [{"id": i, "a": None if i == 5 else bytes([i]) * (20 * i % 100), "n": "x"} for i in range(17)]
    result = table.write_arrow(rows)
    # sizes, rows and ids of golden case blob-rolled, which Java wrote with these options
    assert files_of(table) == [
        ("parquet", 7, 0, ["id", "n"]), ("blob", 7, 0, ["a"]), ("parquet", 7, 7, ["id", "n"]), ("blob", 6, 7, ["a"]),
        ("blob", 1, 13, ["a"]), ("parquet", 3, 14, ["id", "n"]), ("blob", 3, 14, ["a"]),
    ]  # fmt: skip
    sizes = [row["file_size_in_bytes"] for row in table.system("files").scan().to_arrow().to_pylist()]
    assert [sizes[at] for at in (1, 3, 4, 6)] == [329, 348, 83, 158]
    assert result.row_count == 17 and table.to_arrow().to_pylist() == rows and table.count() == 17


def test_sources_are_read_a_few_at_a_time(catalog, tmp_path, monkeypatch):
    from paimon_py.write import blob_sources

    monkeypatch.setattr(blob_sources, "_CHUNK_BYTES", 10)
    (tmp_path / "x").write_bytes(b"0123456789")
    table = made(catalog, {"id": "INT", "a": "BLOB", "l": "ARRAY<BLOB>", "m": "MAP<STRING, BLOB>"})
    opened = io.BytesIO(b"__file")
    opened.seek(2)
    table.write_arrow([
        {"id": 1, "a": tmp_path / "x"},
        {"id": 2, "a": BlobRef(str(tmp_path / "x"), offset=2, length=3), "l": [b"b", tmp_path / "x", None]},
        {"id": 3, "a": opened, "m": {"k": opened, "n": None}},
        {"id": 4, "a": b"bytes"},
        {"id": 5, "a": BlobRef(f"file:{tmp_path}/x", offset=8)},
        {"id": 6},
    ])  # fmt: skip
    rows = table.to_arrow().to_pylist()
    assert [row["a"] for row in rows] == [b"0123456789", b"234", b"file", b"bytes", b"89", None]
    assert rows[1]["l"] == [b"b", b"0123456789", None] and rows[2]["m"] == [("k", b"file"), ("n", None)]
    with pytest.raises(UsageError, match="mode 'rb'"):
        table.write_arrow([{"id": 1, "a": io.StringIO("x")}])
    with pytest.raises(UsageError, match="has no 30 bytes"):
        table.write_arrow([{"id": 1, "a": BlobRef(str(tmp_path / "x"), 1, 30)}])
    assert table.count() == 6


def test_values_are_opened_when_they_are_read(catalog):
    table = made(catalog)
    table.write_arrow([{"id": 1, "a": b"0123456789", "n": "x"}, {"id": 2, "a": None, "n": "y"}, {"id": 3, "a": b"", "n": "z"}])
    first, none, empty = table.scan(columns=["a", "n"]).blobs("a")
    assert first.values == {"n": "x"} and first.size() == 10 and first.read() == b"0123456789"
    with first.open() as source:
        assert (source.read(4), source.seek(8), source.read()) == (b"0123", 8, b"89")
    assert none.is_null and not empty.is_null and empty.read() == b""
    with pytest.raises(UsageError, match="is_null"):
        none.open()
    refs = table.scan().to_arrow(blobs="refs")["a"].to_pylist()
    assert Ref.from_bytes(refs[0]) == first.ref and refs[1] is None
    for wrong in ("n", "nothing", "id"):
        with pytest.raises(UsageError, match="BLOB column that the scan returns"):
            list(table.scan().blobs(wrong))
    with pytest.raises(UsageError, match="'bytes' or 'refs'"):
        table.scan().to_arrow(blobs="x")


def test_bytes_of_rows_that_do_not_match_are_not_read(catalog, monkeypatch):
    from paimon_py.files import blob_columns

    table = made(catalog)
    table.write_arrow([{"id": i, "a": bytes([i]) * 1000, "n": None} for i in range(100)])
    read = []
    before = blob_columns._EntryReader._read
    monkeypatch.setattr(blob_columns._EntryReader, "_read", lambda self, number, begin, end: read.append(end - begin) or before(self, number, begin, end))
    assert table.scan(where="id = 7").to_arrow()["a"].to_pylist() == [bytes([7]) * 1000]
    assert sum(read) == 1016
    read.clear()
    assert table.scan(where="a IS NULL").count() == 0 and table.scan(where="a IS NOT NULL", columns=["id"]).to_arrow().num_rows == 100
    assert table.scan(columns=["id"]).to_arrow().num_rows == 100 and not read
    assert table.scan(row_ids=[5, 3]).to_arrow()["a"].to_pylist() == [bytes([5]) * 1000, bytes([3]) * 1000]
    assert sum(read) == 2032


@pytest.mark.parametrize("seed", range(12))
def test_rows_equal_those_of_a_dict_after_random_operations(catalog, seed):
    rng = random.Random(seed)
    table = made(catalog, **{"blob.target-file-size": rng.choice(["1 mb", "60 b"]), "target-file-row-num": str(rng.choice([5, 1000])), "compaction.min.file-num": "2"})
    rows, number = {}, 0
    for _ in range(14):
        step = rng.choice(["write", "write", "update", "blob", "delete", "compact", "expire", "merge"])
        some = rng.sample(sorted(rows), rng.randrange(len(rows) + 1))
        blob = lambda: rng.choice([None, b"", rng.randbytes(rng.randrange(60))])  # noqa: E731
        if step == "write":
            new = [{"id": number + i, "a": blob(), "n": f"n{i}"} for i in range(rng.randrange(1, 14))]
            number += len(new)
            table.write_arrow(new)
            rows |= {row["id"]: (row["a"], row["n"]) for row in new}
        elif step == "update" and some:
            table.update(col("id").isin(some), {"n": "u"})
            rows |= {one: (rows[one][0], "u") for one in some}
        elif step == "blob" and some:
            ids = {row["id"]: row["_ROW_ID"] for row in table.scan(columns=["id", "_ROW_ID"]).to_arrow().to_pylist()}
            values = {one: blob() for one in some}
            table.update_rows([{"_ROW_ID": ids[one], "a": values[one]} for one in some])
            rows |= {one: (values[one], rows[one][1]) for one in some}
        elif step == "merge" and some:
            source = [{"id": one, "a": blob(), "n": "m"} for one in [*some, number]]
            number += 1
            table.upsert(pa.Table.from_pylist(source, pa.schema([("id", pa.int32()), ("a", pa.large_binary()), ("n", pa.string())])), on=["id"])
            rows |= {row["id"]: (row["a"], row["n"]) for row in source}
        elif step == "delete" and some:
            table.delete(col("id").isin(some[:3]))
            rows = {one: value for one, value in rows.items() if one not in some[:3]}
        elif step == "compact":
            table.compact(full=rng.random() < 0.5)
        elif step == "expire":
            table.expire_snapshots(retain_max=1, retain_min=1)
        found = {row["id"]: (row["a"], row["n"]) for row in table.to_arrow().to_pylist()}
        assert found == rows, step
        assert table.count() == len(rows)
    live = {row["file_path"] for row in table.system("files").scan().to_arrow().to_pylist()}
    table.expire_snapshots(retain_max=1, retain_min=1)
    directory = os.path.join(table.location, "bucket-0")
    assert live == {os.path.join(directory, name) for name in os.listdir(directory)} if os.path.isdir(directory) else not live


def test_unsupported_operations_are_refused(catalog):
    for columns, options, match in (
        ({"id": "INT", "a": "ROW<b BLOB>"}, {}, "a BLOB is a column by itself"),
        ({"id": "INT", "a": "MAP<DATE, BLOB>"}, {}, "a BLOB is a column by itself"),
        ({"a": "BLOB"}, {}, "at least one other column"),
    ):
        with pytest.raises(SchemaError, match=match):
            made(catalog, columns, **options)
    with pytest.raises(SchemaError, match="row-tracking.enabled"):
        catalog.create_table("db.plain", Schema({"id": "INT", "a": "BLOB"}))
    with pytest.raises(UnsupportedError, match="of lists of references"):
        made(catalog, {"id": "INT", "a": "ARRAY<BLOB>"}, **{"blob-descriptor-field": "a"})


def test_references_are_kept_as_they_are(catalog, tmp_path):
    (tmp_path / "wh" / "x").write_bytes(b"0123456789")
    table = made(catalog, {"id": "INT", "ref": "BLOB", "n": "STRING"}, **{"blob-descriptor-field": "ref"})
    ref = BlobRef(str(tmp_path / "wh" / "x"), 2, 3)
    table.write_arrow([{"id": 1, "ref": ref}, {"id": 2, "ref": None}, {"id": 3, "ref": BlobRef("s3://elsewhere/y")}])
    assert [file[0] for file in files_of(table)] == ["parquet"]
    assert table.scan(where="id < 3").to_arrow()["ref"].to_pylist() == [b"234", None]
    with pytest.raises(UnsupportedError, match="not in a permitted directory"):
        table.to_arrow()
    table.update_rows([{"_ROW_ID": 2, "ref": BlobRef(str(tmp_path / "wh" / "x"), 9)}])
    table.update("id = 1", {"n": "x"})
    table.compact(full=True)
    assert table.to_arrow()["ref"].to_pylist() == [b"234", None, b"9"]
    assert Ref.from_bytes(table.scan().to_arrow(blobs="refs")["ref"].to_pylist()[0]) == ref
    with pytest.raises(SchemaError, match="takes references"):
        table.write_arrow([{"id": 1, "ref": b"bytes"}])
    with pytest.raises(UsageError, match=r"takes BlobRef\(…\)"):
        table.write_arrow([{"id": 1, "ref": tmp_path / "wh" / "x"}])


@pytest.mark.parametrize("how", ["split", "row"])
def test_bytes_that_are_gone_with_their_snapshot_have_expired(catalog, how):
    """As the packs of primary-key tables, which no manifest names."""
    table = made(catalog, {"id": "INT", "ref": "BLOB"}, **{"blob-descriptor-field": "ref"})
    pack = Path(table.location, "bucket-0", "a.managed.blob")
    pack.parent.mkdir(exist_ok=True)
    pack.write_bytes(b"0123456789")
    table.write_arrow([{"id": 1, "ref": BlobRef(str(pack), 2, 3)}])
    scan = table.scan()
    (split,) = scan.splits()
    (row,) = scan.blobs("ref")

    def read():
        return scan.read(split).read_all() if how == "split" else row.open().read()

    pack.unlink()
    with pytest.raises(StorageError) as caught:
        read()
    assert not isinstance(caught.value, SnapshotExpiredError)
    table.write_arrow([{"id": 2, "ref": None}])
    table.create_tag("kept", snapshot_id=1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    with pytest.raises(StorageError):
        read()
    table.delete_tag("kept")
    with pytest.raises(SnapshotExpiredError, match=r"snapshot 1 of .* expired while it was read: .*a\.managed\.blob is gone"):
        read()


def test_a_write_that_fails_leaves_no_file(catalog):
    table = made(catalog)

    class Broken:
        def read(self):
            raise OSError("gone")

    with pytest.raises(OSError):
        table.write_arrow([{"id": 0, "a": b"x" * 100}, {"id": 1, "a": Broken()}])
    assert not os.path.isdir(os.path.join(table.location, "bucket-0")) or not os.listdir(os.path.join(table.location, "bucket-0"))


def test_changes_of_new_rows_have_their_bytes(catalog):
    table = made(catalog)
    table.write_arrow([{"id": 1, "a": b"one", "n": "x"}])
    table.write_arrow([{"id": 2, "a": b"two", "n": None}, {"id": 3, "a": None, "n": "z"}])
    found = table.changes(1, 2, mode="delta").to_arrow().to_pylist()
    assert found == [{"id": 2, "a": b"two", "n": None, "_row_kind": "+I"}, {"id": 3, "a": None, "n": "z", "_row_kind": "+I"}]
    stream = table.stream(from_=1, columns=["a"], where="id < 3")
    assert [row["a"] for _ in range(2) for row in stream.poll().to_arrow().to_pylist()] == [b"one", b"two"]
    table.update_rows([{"_ROW_ID": 0, "a": b"new"}])
    assert [tuple(row.values()) for row in stream.poll().to_arrow().to_pylist()] == [(b"one", "-U"), (b"new", "+U")]
    with pytest.raises(UnsupportedError, match="set columns"):
        table.scan(options={"incremental-between": "2,3", "incremental-between-scan-mode": "delta"}).to_arrow()
    assert [(row["a"], row["_row_kind"]) for row in table.changes(2, 3, mode="diff").to_arrow().to_pylist()] == [(b"one", "-D"), (b"new", "+I")]


def test_a_column_of_blobs_can_be_added(catalog):
    from paimon_py import AddColumn, RenameColumn

    table = made(catalog)
    table.write_arrow([{"id": i, "a": b"a", "n": "x"} for i in range(3)])
    table.alter(AddColumn("b", "BLOB"), RenameColumn("a", "c"))
    table.update_rows([{"_ROW_ID": 1, "b": b"B"}])
    table.write_arrow([{"id": 9, "b": b"new"}])
    assert [(row["c"], row["b"]) for row in table.to_arrow().to_pylist()] == [(b"a", None), (b"a", b"B"), (b"a", None), (None, b"new")]
    table.compact(full=True)
    assert [(row["c"], row["b"]) for row in table.to_arrow().to_pylist()] == [(b"a", None), (b"a", b"B"), (b"a", None), (None, b"new")]


def test_a_missing_file_does_not_turn_bytes_into_null(catalog):
    table = made(catalog, **{"blob.target-file-size": "1 b"})
    table.write_arrow([{"id": i, "a": b"a", "n": "x"} for i in range(3)])
    lost = sorted(row["file_path"] for row in table.system("files").scan().to_arrow().to_pylist() if row["file_path"].endswith(".blob"))[1]
    os.remove(lost)
    with pytest.raises(UnsupportedError, match="other columns of rows whose files are missing"):
        table.remove_unexisting_files(dry_run=False)


def test_parts_of_tables_and_overwrites(catalog):
    table = catalog.create_table("db.p", Schema({"id": "INT", "a": "BLOB", "p": "INT"}), partition_by=["p"], options=OPTIONS)
    rows = [{"id": i, "a": bytes([i]), "p": i % 3} for i in range(12)]
    table.write_arrow(rows)
    table.write_arrow([{"id": 50, "a": b"over", "p": 1}], overwrite={"p": 1})
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [row for row in rows if row["p"] != 1] + [{"id": 50, "a": b"over", "p": 1}]
    assert table.scan(where="p = 2 AND id > 5").to_arrow()["a"].to_pylist() == [bytes([8]), bytes([11])]
    table.drop_partitions([{"p": 2}])
    assert table.count() == 5
    with table.writer() as writer:
        writer.write_arrow([{"id": 60, "a": b"w", "p": 0}])
        changes = writer.changes()
    travelled = type(changes).from_bytes(bytes(changes))
    table.commit(travelled)
    assert table.scan(where="id = 60").to_arrow()["a"].to_pylist() == [b"w"]

