"""References to BLOBs lead to permitted places alone, whatever they say."""

from __future__ import annotations

import itertools
import os
import random

import pyarrow as pa
import pytest

from paimon_py import Catalog, CorruptionError, NotFoundError, PaimonError, Schema, UnsupportedError, UsageError
from paimon_py.codec.blob_refs import BlobRef
from paimon_py.metadata.blob_access import BLOB_PATHS, BlobAccess
from paimon_py.scan.same_blobs import SameBlobs


@pytest.fixture
def places(tmp_path):
    """A table in a warehouse, a directory outside, and one that is permitted."""
    warehouse = tmp_path / "wh"
    catalog = Catalog.open(str(warehouse), options={BLOB_PATHS: f"file:{tmp_path}/shared"})
    catalog.create_database("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int32())]))
    for directory in ("outside", "shared", "shared2", "wh/db.db/other"):
        (tmp_path / directory).mkdir(parents=True, exist_ok=True)
        (tmp_path / directory / "x").write_bytes(directory.encode())
    (tmp_path / "wh/db.db/t/x").write_bytes(b"own")
    return tmp_path, table


def test_permitted_places(places):
    base, table = places
    access = BlobAccess(table._root)
    assert access.read(BlobRef(f"{base}/wh/db.db/t/x")) == b"own"
    assert access.read(BlobRef(f"file:{base}/wh/db.db/other/x", 3, 4)) == b"db.d"
    assert access.read(BlobRef(f"file://{base}/shared/x", 1)) == b"hared"
    assert access.size(BlobRef(f"file://{base}/shared/x", 1)) == 5
    with access.open(BlobRef(f"{base}/shared/x", 1, 3)) as source:
        assert (source.read(2), source.read(), source.seek(0), source.read()) == (b"ha", b"r", 0, b"har")
    for offset in (1, 6, 7, 100):
        with pytest.raises(CorruptionError, match="ends before"):
            access.read(BlobRef(f"{base}/shared/x", offset, 30))


@pytest.mark.parametrize("offset", [0, 1, 5, 6, 7, 100])
def test_references_to_the_rest_of_a_file_may_begin_at_its_end_or_behind_it(places, offset):
    base, table = places
    access, ref = BlobAccess(table._root), BlobRef(f"file:{base}/shared/x", offset)
    wanted = b"shared"[offset:]
    assert (access.read(ref), access.size(ref)) == (wanted, len(wanted))
    with access.open(ref) as source:
        assert (source.read(), source.seek(-2, os.SEEK_END), source.read()) == (wanted, max(len(wanted) - 2, 0), wanted[-2:])


def test_blobs_are_compared_by_their_bytes_wherever_these_are(places):
    base, table = places
    stored = {"x": b"own", "y": b"own", "z": b"not", "empty": b""}
    for name, data in stored.items():
        (base / "wh/db.db/t" / name).write_bytes(data)
    refs = {None: None, **{name: bytes(BlobRef(f"{base}/wh/db.db/t/{name}", 0, len(data))) for name, data in stored.items()}}
    lists = [None, *(list(names) for size in range(3) for names in itertools.product(refs, repeat=size))]
    both = list(itertools.product(lists, lists))

    def array(side):
        cells = [None if pair[side] is None else [refs[name] for name in pair[side]] for pair in both]
        return pa.array(cells, pa.list_(pa.large_binary()))

    def content(names):
        return None if names is None else [stored.get(name) for name in names]

    blobs = SameBlobs(table._root, frozenset(["b"]))
    wanted = [content(left) == content(right) for left, right in both]
    assert blobs.same(array(0), array(1)).tolist() == wanted
    lengths = zip(blobs.lengths(array(0)).to_pylist(), blobs.lengths(array(1)).to_pylist(), strict=True)
    assert all(one == other for (one, other), same in zip(lengths, wanted, strict=True) if same)


@pytest.mark.parametrize("uri", [
    "{base}/outside/x", "file:{base}/outside/x", "file://{base}/shared2/x", "{base}/shared/../outside/x", "{base}/wh/../outside/x",
    "file:{base}/wh/db.db/t/../../../outside/x", "http://localhost/x", "https://x/y", "s3://bucket/x", "/etc/passwd", "file:/etc/passwd", "etc/passwd", "",
    "file://host{base}/shared/x", "{base}/shared", "{base}/shared/", "FILE:{base}/outside/x", "{base}/shared//../outside/x", "{base}/shared/./x",
])  # fmt: skip
def test_other_places_are_refused(places, uri):
    base, table = places
    access = BlobAccess(table._root)
    for call in (access.read, access.size, access.open):
        ref = BlobRef(uri.format(base=base))
        with pytest.raises(UnsupportedError, match="not in a permitted directory.*blob-paths"):
            call(ref)


def test_options_of_the_table_permit_nothing(places):
    base, table = places
    from paimon_py import SetOption

    table.alter(SetOption(BLOB_PATHS, f"file:{base}/outside"))
    with pytest.raises(UnsupportedError, match="not in a permitted directory"):
        BlobAccess(table.refresh()._root).read(BlobRef(f"{base}/outside/x"))


def test_no_uri_leads_outside(places, monkeypatch):
    """Random URIs: whatever is opened lies below a permitted directory."""
    base, table = places
    access, opened = BlobAccess(table._root), []
    store = type(table._root.store)
    before = store.open_read
    monkeypatch.setattr(store, "open_read", lambda self, path, *rest: opened.append(path) or before(self, path, *rest))
    rng = random.Random(7)
    parts = ["wh", "db.db", "t", "x", "shared", "shared2", "outside", "..", ".", "", "%2e%2e", "\0", "etc", "passwd", "~", "C:", "file:", "\\..", "x?y", "x#y"]
    starts = [f"{base}/", f"file:{base}/", f"file://{base}/", f"file:///{base}/", "", "/", "file:", "s3://b/", "http://h/", f"{base}/wh/db.db/t/", f"file:{base}/shared/"]
    allowed = [os.path.realpath(f"{base}/wh") + "/", os.path.realpath(f"{base}/shared") + "/"]
    for _ in range(20_000):
        uri = rng.choice(starts) + "/".join(rng.choice(parts) for _ in range(rng.randrange(6)))
        try:
            access.read(BlobRef(uri))
        except PaimonError:
            continue
    assert opened
    for path in opened:
        assert any(os.path.realpath(path.replace("\0", "")).startswith(root) for root in allowed), path


def test_views_of_names_that_are_none(places):
    from paimon_py.codec.blob_refs import BlobViewRef
    from paimon_py.scan.blob_views import BlobViews

    _, table = places
    for name in ("db.nothing", "x", "", "../../x.y", "db.t/../t", ".db.t", "db.t$files", "db.\0"):
        with pytest.raises(PaimonError):
            BlobViews(table._root).values([BlobViewRef(name, 0, 0)])
    with pytest.raises(NotFoundError):
        BlobViews(table._root).values([BlobViewRef("db.nothing", 0, 0)])


def test_a_look_at_a_table_reads_no_blobs(tmp_path):
    """Damaged bytes are not noticed, since they are not read."""
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    switched_on = dict.fromkeys(("row-tracking.enabled", "data-evolution.enabled"), "true")
    table = catalog.create_table("d.t", Schema({"id": "INT", "image": "BLOB"}), options=switched_on)
    table.write_arrow([{"id": n, "image": bytes([n]) * 9} for n in range(8)])
    for file in tmp_path.rglob("*.blob"):
        data = file.read_bytes()
        file.write_bytes(data.replace(b"\1" * 9, b"\2" * 9))
    for found in (table.head(3, blobs="refs"), table.scan().head(3, blobs="refs"), table.scan(limit=3).head(blobs="refs")):
        assert [BlobRef.from_bytes(each).length for each in found["image"].to_pylist()] == [9, 9, 9]
    assert table.head(1)["image"].to_pylist() == table.head(1, blobs="bytes")["image"].to_pylist() == [bytes(9)]
    with pytest.raises(CorruptionError):
        table.head(2)
    with pytest.raises(UsageError, match="blobs must be 'bytes' or 'refs', not 'all'"):
        table.head(blobs="all")


def test_a_diff_compares_bytes_that_moved_to_another_file(tmp_path):
    """Java's compaction of blob files, for example, copies bytes: rows with references to the copies are the same rows."""
    options = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    catalog = Catalog.open(tmp_path)
    catalog.create_database("db")
    table = catalog.create_table("db.t", Schema({"id": "INT", "image": "BLOB", "list": "ARRAY<BLOB>"}), options=options)
    table.write_arrow([{"id": 1, "image": b"one", "list": [b"a", None]}, {"id": 2, "image": b"two", "list": None}, {"id": 3, "image": None, "list": []}])
    same = pa.table({"_ROW_ID": [0, 1], "image": pa.array([b"one", b"tow"], pa.large_binary()), "list": pa.array([[b"a", None], []], pa.list_(pa.large_binary()))})
    table.update_rows(same)
    table.update_rows(same)
    assert table.scan(snapshot_id=1).to_arrow(blobs="refs")["image"][0] != table.scan().to_arrow(blobs="refs")["image"][0]
    for blobs in ("bytes", "refs"):
        found = table.changes(1, 3, mode="diff").to_arrow(blobs=blobs)
        assert [(row["id"], row["_row_kind"]) for row in found.to_pylist()] == [(2, "-D"), (2, "+I")], blobs
        assert table.changes(2, 3, mode="diff").to_arrow(blobs=blobs).num_rows == 0
