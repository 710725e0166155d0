"""Files that are broken, cut, gone, expired or too new: `CorruptionError` with the path, or the right answer.

ORC and Avro files of Paimon have no checksums, so a flipped bit in a value cannot be seen there. What can be asked of
them is that nothing but an error of ours comes out, and that a cut file is always noticed.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from unit.commit.support import Ids
from unit.public import KEYED, QUICK, ROWS, env, files, keyed_table, new_catalog, refused, reopened

from paimon_py import (
    AddColumn,
    CorruptionError,
    PaimonError,
    SnapshotExpiredError,
    SnapshotNotFoundError,
    Table,
    TableNotFoundError,
    UnsupportedError,
)
from paimon_py.scan import parcel

BOMBS = [b'{"a":' * 100_000, b"[" * 100_000, b'{"id":' + b"9" * 100_000 + b"}"]
JUNK = [b"", b"hello", b"\0" * 300, b"null", b"[]", b"{}", b'"text"', b"\xff\xfe" * 40, *BOMBS]


@pytest.fixture(scope="module", params=["parquet", "orc", "avro"])
def table(request, tmp_path_factory):
    catalog = new_catalog(tmp_path_factory.mktemp("files") / "w", Ids("d3b07384-d9a0-4c9b-8f0e-"))  # the same bytes in every run
    return keyed_table(catalog, **{"file.format": request.param})


@pytest.fixture
def broken(table, tmp_path):
    """A copy of the table that a test may break."""
    shutil.copytree(table.location, tmp_path / "t")
    return Table.open(tmp_path / "t", QUICK, env=env())


def answers(table):
    """What the public verbs say, read anew."""
    table = reopened(table)
    now = table.scan().to_arrow().sort_by("k").to_pylist()
    then = table.scan(tag="first").to_arrow().sort_by("k").to_pylist()
    names = [tag.name for tag in table.tags()]
    return now, then, names, [snapshot.id for snapshot in table.snapshots()]


def one_file(table, pattern):
    return sorted(Path(table.location).glob(pattern))[0]


def damaged(data, source, flips):
    """Cuts and flipped bits, the same in every run."""
    for size in sorted({0, 1, len(data) // 2, len(data) - 1, *(source.randrange(len(data)) for _ in range(4))}):
        yield "cut", data[:size]
    for place in (source.randrange(len(data)) for _ in range(flips)):
        yield "flip", data[:place] + bytes([data[place] ^ (1 << source.randrange(8))]) + data[place + 1 :]


def pages_end(parquet):
    """Where the pages of a Parquet file, which have checksums, end and its footer, which has none, begins."""
    return len(parquet) - 8 - int.from_bytes(parquet[-8:-4], "little")


METADATA = ["snapshot/snapshot-2", "snapshot/snapshot-1", "tag/tag-first", "manifest/manifest-list-*", "manifest/manifest-[0-9a-f]*"]


@pytest.mark.parametrize("pattern", METADATA)
def test_broken_metadata_is_corruption_or_makes_no_difference(broken, pattern):
    right = answers(broken)
    source = random.Random(pattern)
    for path in sorted(Path(broken.location).glob(pattern)):
        good = path.read_bytes()
        for what, data in [*damaged(good, source, 24), *(("junk", data) for data in JUNK)]:
            path.write_bytes(data)
            try:
                found = answers(broken)
            except CorruptionError as error:
                assert error.path and error.path.endswith(path.name) or what == "flip", error
                assert error.path and repr(error.path)[1:-1] in str(error), error
            except UnsupportedError as error:
                assert what == "flip" and "kind of commit" in str(error)
            except SnapshotExpiredError as error:  # another delta list is another snapshot of that id
                assert what == "flip" and path.name == "tag-first" and "was rolled back" in str(error)
            else:
                assert what == "flip", (path.name, what, data[:40])
                assert found == right
        path.write_bytes(good)


def test_broken_hints_make_no_difference(broken):
    right = answers(broken)
    for name in ("LATEST", "EARLIEST"):
        path = Path(broken.location) / "snapshot" / name
        for data in [*JUNK, b"-1", b"0", b"1", b"999", b"2\n", b"1.5", "²".encode(), b"9" * 30]:
            path.write_bytes(data)
            assert answers(broken) == right
        path.unlink()
        assert answers(broken) == right


def test_a_broken_schema_raises_errors_of_ours_only(broken):
    path = Path(broken.location) / "schema" / "schema-0"
    good = path.read_bytes()
    for what, data in [*damaged(good, random.Random(3), 40), *(("junk", data) for data in JUNK)]:
        path.write_bytes(data)
        try:
            answers(broken)
        except CorruptionError as error:
            assert error.path and repr(error.path)[1:-1] in str(error), error
        except PaimonError:
            assert what == "flip"
        else:
            assert what == "flip"


def test_a_cut_or_replaced_data_file_is_corruption(broken):
    right = answers(broken)
    paths = list(Path(broken.location).glob("p=*/bucket-*/data-*"))
    assert len(paths) == 3
    for path in paths:
        good = path.read_bytes()
        cuts = [data for what, data in damaged(good, random.Random(5), 0) if what == "cut"]
        for data in [*cuts, *JUNK, good + b"more"]:
            path.write_bytes(data)
            with refused(broken, CorruptionError, path.name) as caught:
                answers(broken)
            assert caught.value.path == str(path)
        path.write_bytes(good)
    assert answers(broken) == right


def test_a_flipped_bit_in_a_data_file_is_corruption_or_makes_no_difference(broken):
    if broken.options["file.format"] == "orc" and int(pa.__version__.partition(".")[0]) < 24:
        pytest.skip("before pyarrow 24 its ORC library ends the process when a block cannot be unpacked")
    has_checksums = broken.options["file.format"] == "parquet"
    right = answers(broken)
    for path in Path(broken.location).glob("p=*/bucket-*/data-*"):
        good = path.read_bytes()
        for what, data in damaged(good, random.Random(7), 60):
            path.write_bytes(data)
            try:
                found = answers(broken)
            except CorruptionError as error:
                assert error.path == str(path)
            except UnsupportedError:
                assert not has_checksums and what == "flip"
            else:
                assert what == "flip"
                assert found == right or not (has_checksums and good[: pages_end(good)] != data[: pages_end(good)])
        path.write_bytes(good)


@pytest.mark.parametrize("pattern", ["manifest/manifest-list-*", "manifest/manifest-[0-9a-f]*", "p=*/bucket-*/data-*"])
def test_a_missing_file_is_corruption(broken, pattern):
    for path in Path(broken.location).glob(pattern):
        good = path.read_bytes()
        path.unlink()
        with refused(broken, CorruptionError, path.name) as caught:
            answers(broken)
        assert caught.value.path == str(path)
        with refused(broken, CorruptionError, path.name) if "manifest" in pattern else refused(broken, CorruptionError):
            answers(broken)
        path.write_bytes(good)


def test_two_files_that_changed_places_are_noticed(broken):
    first, second = sorted(Path(broken.location).glob("snapshot/snapshot-?"))
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    with refused(broken, CorruptionError, "snapshot-1 contains snapshot 2"):
        reopened(broken).snapshots()
    first.write_bytes(one)
    schema = Path(broken.location) / "schema"
    reopened(broken).alter(AddColumn("x", "INT"))
    (schema / "schema-1").write_bytes((schema / "schema-0").read_bytes())
    with refused(broken, CorruptionError, "schema-1 contains schema 0"):
        reopened(broken)


def test_a_schema_that_a_snapshot_names_must_be_there(broken):
    table = reopened(broken)
    table.alter(AddColumn("x", "INT"))
    (Path(broken.location) / "schema" / "schema-0").unlink()
    with refused(broken, CorruptionError, "schema 0", "is missing"):
        reopened(broken).scan(snapshot_id=1).to_arrow()
    (Path(broken.location) / "schema" / "schema-1").unlink()
    with refused(broken, TableNotFoundError, "it has no schema"):
        reopened(broken)


def changed(path, **values):
    text = json.loads(path.read_text())
    text.update(values)
    path.write_text(json.dumps({key: value for key, value in text.items() if value is not None}))


@pytest.mark.parametrize(
    ("file", "values", "error", "words"),
    [
        ("schema/schema-0", {"version": 4}, UnsupportedError, ("schema version 4",)),
        ("schema/schema-0", {"id": "zero"}, CorruptionError, ("schema-0", "'id'")),
        ("schema/schema-0", {"fields": None}, CorruptionError, ("'fields' is missing",)),
        ("schema/schema-0", {"fields": [{"id": 0, "name": "a", "type": "NUMBER"}]}, UnsupportedError, ("NUMBER",)),
        ("schema/schema-0", {"primaryKeys": ["zz"]}, CorruptionError, ("'primaryKeys'", "zz")),
        ("schema/schema-0", {"options": []}, CorruptionError, ("'options'",)),
        ("snapshot/snapshot-2", {"version": 4}, UnsupportedError, ("snapshot version 4",)),
        ("snapshot/snapshot-2", {"version": "three"}, CorruptionError, ("'version'",)),
        ("snapshot/snapshot-2", {"commitKind": "MAGIC"}, UnsupportedError, ("'MAGIC'",)),
        ("snapshot/snapshot-2", {"schemaId": None}, CorruptionError, ("'schemaId' is missing",)),
        ("snapshot/snapshot-2", {"timeMillis": 1.5}, CorruptionError, ("'timeMillis'",)),
        ("snapshot/snapshot-2", {"watermark": "noon"}, CorruptionError, ("'watermark'", "'noon'")),
        ("snapshot/snapshot-2", {"deltaManifestList": "../../x"}, CorruptionError, ("../../x", "plain file name")),
        ("snapshot/snapshot-2", {"deltaManifestList": "/etc/passwd"}, CorruptionError, ("plain file name",)),
        ("snapshot/snapshot-2", {"deltaManifestList": "nope"}, CorruptionError, ("nope", "does not exist")),
    ],
    ids=lambda value: str(value)[:50],
)
def test_metadata_that_says_something_impossible(broken, file, values, error, words):
    changed(Path(broken.location) / file, **values)
    with refused(broken, error, *words) as caught:
        reopened(broken).scan().to_arrow()
    assert caught.value.path


def test_a_type_nested_without_end_is_corruption(broken):
    path = Path(broken.location) / "schema" / "schema-0"
    text = path.read_text()
    nested = '{"type":"ARRAY","element":' * 100_000 + '"INT"' + "}" * 100_000
    path.write_text(text.replace('"STRING"', nested))
    with refused(broken, CorruptionError, "deep") as caught:
        reopened(broken)
    assert caught.value.path == str(path)


def test_a_commit_on_a_broken_table_is_refused_and_leaves_no_file(broken):
    path = one_file(broken, "manifest/manifest-list-*")
    for data in (b"", b"hello"):
        for each in Path(broken.location).glob("manifest/manifest-list-*"):
            each.write_bytes(data)
        with refused(broken, CorruptionError, "manifest-list"):
            reopened(broken).write_arrow(ROWS)
    assert path.exists()


# -- expired ------------------------------------------------------------------------------------------------------------


def expire(table, snapshot_id):
    """Take away what an expiry of the oldest snapshot takes away, its data files with it."""
    root = Path(table.location)
    value = table.snapshot(snapshot_id)
    later = [snapshot for snapshot in table.snapshots() if snapshot.id > snapshot_id]
    splits = [split for snapshot in later for split in table.scan(snapshot_id=snapshot.id).splits()]
    kept = {file.name for split in splits for file in split.files}
    kept |= {manifest.name for snapshot in later for manifest in snapshot.manifests()}
    gone = {value.value.base_manifest_list, value.value.delta_manifest_list, f"snapshot-{snapshot_id}"}
    for manifest in value.manifests():
        gone |= {entry.file.name for entry in manifest.entries()} | {manifest.name}
    for path in list(root.rglob("*")):
        if path.name in gone - kept:
            path.unlink()
    (root / "snapshot" / "EARLIEST").write_text(str(snapshot_id + 1))


@pytest.fixture
def expiring(tmp_path):
    """Three snapshots, each of which replaces all rows of the one before."""
    catalog = new_catalog(tmp_path / "w")
    table = catalog.create_table("d.t", KEYED, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    for _ in range(3):
        table.write_arrow(ROWS, overwrite={})
    return table


def test_an_expired_snapshot_is_said_to_be_expired(expiring):
    time = expiring.snapshot(1).time_millis
    expire(expiring, 1)
    for call in (
        lambda t: t.scan(snapshot_id=1).to_arrow(),
        lambda t: t.snapshot(1),
        lambda t: t.create_tag("late", 1),
        lambda t: t.scan(timestamp=time - 1).to_arrow(),
    ):
        with refused(expiring, SnapshotExpiredError, "snapshot.num-retained.min", "create_tag"):
            call(reopened(expiring))
    with refused(expiring, SnapshotNotFoundError, "it has snapshots 2 to 3"):
        reopened(expiring).snapshot(4)
    assert [snapshot.id for snapshot in reopened(expiring).snapshots()] == [2, 3]


def test_a_snapshot_that_expires_while_it_is_planned_is_said_to_be_expired(expiring):
    scan = reopened(expiring).scan(snapshot_id=1)
    assert scan.schema.names == ["p", "k", "v"]  # the snapshot has been looked up now
    expire(expiring, 1)
    with refused(expiring, SnapshotExpiredError, "snapshot 1", "create_tag") as caught:
        scan.to_arrow()
    assert caught.value.snapshot_id == 1


def test_a_snapshot_that_expires_while_a_reader_is_open_is_said_to_be_expired(expiring, monkeypatch):
    monkeypatch.setattr(parcel, "is_small", lambda _file: False)  # or all rows are read at once
    scan = reopened(expiring).scan(snapshot_id=1)
    reader = scan.to_reader()
    splits = scan.splits()
    assert reader.read_next_batch().num_rows == 1
    expire(expiring, 1)
    for call in (lambda: reader.read_next_batch(), lambda: reopened(expiring).scan().read(splits[0]).read_all()):
        with refused(expiring, SnapshotExpiredError, "expired while it was read", "create_tag") as caught:
            call()
        assert caught.value.snapshot_id == 1


def test_manifests_of_a_snapshot_that_expired_are_said_to_be_expired(expiring):
    snapshot = reopened(expiring).snapshot(1)
    manifests = snapshot.manifests()
    later = reopened(expiring).snapshot(1)
    expire(expiring, 1)
    (Path(expiring.location) / "manifest" / manifests[0].name).unlink()
    for call in (manifests[0].entries, later.manifests):
        with refused(expiring, SnapshotExpiredError, "snapshot 1"):
            call()
    with refused(expiring, CorruptionError, "snapshot 3 references", manifests[0].name, "does not exist"):
        next(one for one in reopened(expiring).snapshot(3).manifests() if one.name == manifests[0].name).entries()


def test_a_tag_keeps_a_snapshot_that_expired(expiring):
    table = reopened(expiring)
    table.create_tag("kept", 1)
    (Path(expiring.location) / "snapshot" / "snapshot-1").unlink()
    assert reopened(expiring).scan(tag="kept").count() == 2
    assert reopened(expiring).tags()[0].snapshot_id == 1


def test_changes_whose_base_has_expired_can_be_committed(expiring):
    with expiring.writer() as writer:
        writer.write_arrow(ROWS)
        changes = writer.changes()
    for _ in range(2):
        expiring.write_arrow(ROWS)
    for number in (1, 2, 3):
        expire(reopened(expiring), number)
    result = reopened(expiring).commit(bytes(changes), user="u", identifier=1)
    assert result.snapshot_id == 6
    assert reopened(expiring).commit(bytes(changes), user="u", identifier=1).already_committed
    assert reopened(expiring).scan().count() == 2


def test_files_that_are_no_table_are_refused(tmp_path):
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "schema-x").write_bytes(b"{}")
    with refused(tmp_path, TableNotFoundError, "it has no schema"):
        Table.open(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PaimonError):
        Table.open(tmp_path / "file")
    assert set(files(tmp_path)) == {"schema/schema-x", "file"}


def test_an_empty_input_is_not_bad_input(tmp_path):
    table = keyed_table(new_catalog(tmp_path / "w"))
    before = files(table.location)
    assert table.write_arrow(ROWS.slice(0, 0)).snapshot_id is None
    assert table.write_arrow(iter([])).snapshot_id is None and table.write_arrow([]).snapshot_id is None
    assert files(table.location) == before
