"""Reading with deletion vectors: dead rows never come, numbers stay exact, damage is noticed."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from unit.scan.build import opened, rows, table

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.errors import CorruptionError, SnapshotExpiredError
from paimon_py.metadata.deletion_files import DeletionWriter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.split import Split
from paimon_py.spec.layout import snapshot_path
from paimon_py.testing.snapshots import put_snapshot

FIELDS = [("p", "STRING"), ("k", "INT NOT NULL"), ("v", "BIGINT")]
MARKED = {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}


def batch(keys, value=None, kinds=None):
    columns = {
        "p": pa.array(["x"] * len(keys)),
        "k": pa.array(keys, pa.int32()),
        "v": pa.array([key if value is None else value for key in keys], pa.int64()),
    }
    if kinds is not None:
        columns["_row_kind"] = pa.array(kinds)
    return pa.table(columns)


def kill(made, dead: dict[int, list[int]], *, rolling: bool = False, **changes) -> list:
    """A further snapshot, in which rows of the files (by number, in order of writing) are dead. The index entries."""
    root, schema = made._root, made.schema
    latest = root.snapshots.latest()
    entries = root.manifests.live_entries(latest).entries()
    entries.sort(key=lambda entry: entry.file.min_sequence)
    vectors = {entries[at].file.name: DeletionVector.of(np.array(gone, np.int64)) for at, gone in dead.items()}
    place = entries[0]
    schema = msgspec.structs.replace(schema, options={**schema.options, **changes.pop("options", {})})
    writer = DeletionWriter(OpenTable(root, schema).bucket(place.partition, place.bucket))
    index = writer.write_rolling(vectors) if rolling else [writer.write(vectors)]
    described = [msgspec.structs.replace(entry, **changes) for entry in index]
    name, _ = root.manifests.write_index(described)
    put_snapshot(root, msgspec.structs.replace(latest, id=latest.id + 1, index_manifest=name))
    return index


@pytest.fixture
def plain():
    """An append table of three files, 0..9, 10..19, 20..29, with dead rows in the first and the last."""
    made = table(FIELDS)
    for start in (0, 10, 20):
        made.write_arrow(batch(list(range(start, start + 10))))
    kill(made, {0: [0, 3, 4], 2: list(range(10))})
    return made


ALIVE = [1, 2, 5, 6, 7, 8, 9, *range(10, 20)]


def keys(scan):
    return [row[0] for row in rows(scan)]


def test_dead_rows_do_not_come(plain):
    assert sorted(keys(plain.scan(columns=["k"]))) == sorted(ALIVE)
    assert sorted(keys(plain.scan(columns=["k"], where="k < 8"))) == [1, 2, 5, 6, 7]
    assert plain.scan(columns=["k"], where="v = 3").to_arrow().num_rows == 0
    assert plain.scan(limit=9).to_arrow().num_rows == 9
    assert plain.scan(columns=[]).to_arrow().num_rows == len(ALIVE)


def test_an_older_snapshot_has_them(plain):
    latest = plain.snapshot().id
    assert plain.scan(snapshot_id=latest - 1).count() == 30
    assert sorted(keys(plain.scan(columns=["k"], snapshot_id=latest))) == sorted(ALIVE)


def test_rows_are_counted_from_metadata(plain):
    scan = plain.scan()
    scan.splits()
    plain._root.store.reset()
    assert scan.count() == len(ALIVE)
    assert opened(plain) == []
    assert plain.scan(limit=3).count() == 3
    assert plain.scan(where="k >= 5").count() == 15


def test_unknown_cardinalities_are_read_from_the_vectors(plain):
    root = plain._root
    latest = root.snapshots.latest()
    (entry,) = root.manifests.read_index(latest.index_manifest)
    unknown = tuple(msgspec.structs.replace(part, cardinality=None) for part in entry.deletion_vectors)
    name, _ = root.manifests.write_index([msgspec.structs.replace(entry, deletion_vectors=unknown)])
    put_snapshot(root, msgspec.structs.replace(latest, id=latest.id + 1, index_manifest=name))
    assert plain.scan().count() == len(ALIVE)


def test_a_split_carries_its_deletion_vectors(plain):
    scan = plain.scan(columns=["k"])
    split, *more = scan.splits()
    assert not more and len(split.deletions) == 2
    again = Split.from_bytes(bytes(split))
    assert again == split
    assert sorted(scan.read(bytes(split)).read_all()["k"].to_pylist()) == sorted(ALIVE)
    assert "2 files have deletion vectors" in str(scan.explain())


def test_positions_count_in_the_file_even_where_row_groups_are_left_out():
    made = table(FIELDS, options={"file.block-size": "1 mb"})
    count = 400_000
    made.write_arrow(batch(list(range(count))))
    dead = [5, 131_071, 131_072, 262_150, count - 1]
    kill(made, {0: dead}, options={"deletion-vectors.bitmap64": "true"})
    for low, high in ((0, 10), (131_070, 131_074), (262_140, 262_160), (count - 3, count + 1), (0, count)):
        got = made.scan(columns=["k"], where=f"k >= {low} and k < {high}").to_arrow()["k"].to_pylist()
        assert got == [key for key in range(low, min(high, count)) if key not in dead]


@pytest.mark.parametrize("format_", ["orc", "avro"])
def test_positions_count_in_every_format(format_):
    made = table(FIELDS, options={"file.format": format_})
    made.write_arrow(batch(list(range(5000))))
    kill(made, {0: list(range(0, 5000, 2))})
    assert sorted(keys(made.scan(columns=["k"], where="k > 4000"))) == list(range(4001, 5000, 2))


def test_index_files_lie_where_the_table_says():
    made = table(FIELDS, options={"index-file-in-data-file-dir": "true"})
    made.write_arrow(batch([1, 2, 3]))
    (entry,) = kill(made, {0: [1]})
    path = OpenTable(made._root, made.schema).index_path(entry)
    assert path.endswith(f"/t/bucket-0/{entry.name}") and entry.name.startswith("index-") and made._root.store.stat(path)
    assert sorted(keys(made.scan(columns=["k"]))) == [1, 3]


def test_an_external_index_file_is_found():
    made = table(FIELDS)
    made.write_arrow(batch([1, 2, 3]))
    root = made._root
    kill(made, {0: [1]}, external_path=f"{root.path}/elsewhere/index-9")
    root.store.put(f"{root.path}/elsewhere/index-9", root.store.get(index_of(made)))
    root.store.delete(index_of(made))
    assert sorted(keys(made.scan(columns=["k"]))) == [1, 3]


def test_vectors_roll_over_several_index_files():
    made = table(FIELDS)
    for start in range(0, 50, 10):
        made.write_arrow(batch(list(range(start, start + 10))))
    options = {"deletion-vector.index-file.target-size": "40 b"}
    index = kill(made, {at: [at] for at in range(5)}, rolling=True, options=options)
    assert [entry.row_count for entry in index] == [2, 2, 1]
    assert made.scan().count() == 45
    assert sorted(keys(made.scan(columns=["k"]))) == [key for key in range(50) if key % 11]


# -- primary keys -------------------------------------------------------------------------------------------------------


def test_rows_that_no_compaction_has_seen_are_invisible_unless_asked_for():
    made = table(FIELDS, primary_key=["k"], options=MARKED)
    made.write_arrow(batch(list(range(2000))))
    made.compact(full=True)
    made.write_arrow(batch([1, 7, 3000], value=-1))
    assert made.scan().count() == 2000
    skipped = made.scan().explain()
    assert skipped.skipped.uncompacted == 1 and "not compacted 1" in str(skipped)
    merged = made.scan(options={"deletion-vectors.merge-on-read": "true"})
    assert merged.count() == 2001
    made.compact()
    assert made.scan().count() == 2001
    assert {file.level for split in made.scan().splits() for file in split.files} == {4, 5}
    assert sorted(row for row in rows(made.scan(columns=["v", "k"])) if row[0] < 0) == [(-1, 1), (-1, 7), (-1, 3000)]
    made.write_arrow(batch([7, 8], kinds=["-D", "+I"]))
    merged = made.scan(options={"deletion-vectors.merge-on-read": "true"})
    assert merged.count() == 2000 == merged.to_arrow().num_rows
    made.compact()
    assert made.scan().count() == 2000 == made.scan().to_arrow().num_rows
    assert rows(made.scan(where="k = 7")) == []


def test_files_are_left_out_one_by_one_by_statistics():
    made = table(FIELDS, primary_key=["k"], options=MARKED)
    made.write_arrow(batch(list(range(2000)), value=1))
    made.compact(full=True)
    made.write_arrow(batch([3, 4], value=2))
    made.compact()
    scan = made.scan(where="v = 2", columns=["k"])
    assert scan.explain().skipped.stats == 1
    assert keys(scan) == [3, 4]
    assert keys(made.scan(where="v = 1 and k < 6", columns=["k"])) == [0, 1, 2, 5]


# -- damage -------------------------------------------------------------------------------------------------------------


def index_of(made) -> str:
    (entry,) = made._root.manifests.read_index(made._root.latest().index_manifest)
    return f"{made._root.path}/index/{entry.name}"


def test_a_lost_index_file_is_told_from_an_expired_one(plain):
    scan = plain.scan()
    scan.splits()
    plain._root.store.delete(index_of(plain))
    with pytest.raises(CorruptionError, match="does not exist, but snapshot") as caught:
        scan.to_arrow()
    assert caught.value.path == index_of(plain)
    plain._root.store.delete(snapshot_path(plain._root.path, plain.snapshot().id))
    with pytest.raises(SnapshotExpiredError):
        scan.to_arrow()


@pytest.mark.parametrize("at", [0, 1, 6, 12, 20])
def test_damage_of_an_index_file_is_noticed(plain, at):
    path = index_of(plain)
    data = bytearray(plain._root.store.get(path))
    data[at] ^= 0x10
    plain._root.store.put(path, bytes(data))
    with pytest.raises(CorruptionError) as caught:
        plain.scan().to_arrow()
    assert caught.value.path == path and caught.value.offset is not None


def test_a_cut_index_file_is_noticed(plain):
    path = index_of(plain)
    plain._root.store.put(path, plain._root.store.get(path)[:-3])
    with pytest.raises(CorruptionError, match="are there"):
        plain.scan().to_arrow()


def test_a_vector_beyond_the_file_is_refused():
    made = table(FIELDS)
    made.write_arrow(batch([1, 2, 3]))
    kill(made, {0: [3]})
    with pytest.raises(CorruptionError, match="names row 3, the file has 3 rows"):
        made.scan().to_arrow()


def test_wrong_places_in_the_index_manifest_are_refused(plain):
    root = plain._root
    latest = root.snapshots.latest()
    (entry,) = root.manifests.read_index(latest.index_manifest)
    first, second = entry.deletion_vectors
    wrong = [
        (first, second, msgspec.structs.replace(first, offset=5)),
        (msgspec.structs.replace(first, offset=-4), second),
        (msgspec.structs.replace(first, length=-9), second),
        (msgspec.structs.replace(first, offset=3), second),
        (msgspec.structs.replace(first, offset=10**6), second),
        (msgspec.structs.replace(first, cardinality=2), second),
    ]
    for number, parts in enumerate(wrong, latest.id + 1):
        name, _ = root.manifests.write_index([msgspec.structs.replace(entry, deletion_vectors=parts)])
        put_snapshot(root, msgspec.structs.replace(latest, id=number, index_manifest=name))
        with pytest.raises(CorruptionError):
            plain.scan(snapshot_id=number).to_arrow()
