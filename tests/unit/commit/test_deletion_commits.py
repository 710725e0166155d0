"""Deletion vectors through commits: nothing dangles, nothing comes back to life, losers leave nothing behind."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from unit.scan.build import table

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.errors import CommitConflictError
from paimon_py.metadata.deletion_files import DeletionWriter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.snapshot import Base

FIELDS = [("p", "INT NOT NULL"), ("k", "INT NOT NULL"), ("v", "BIGINT")]
OPTIONS = {"bucket": "1", "write-only": "true", "deletion-vectors.enabled": "true"}


def batch(rows, kinds=None):
    columns = {
        "p": pa.array([row[0] for row in rows], pa.int32()),
        "k": pa.array([row[1] for row in rows], pa.int32()),
        "v": pa.array([row[2] for row in rows], pa.int64()),
    }
    if kinds is not None:
        columns["_row_kind"] = pa.array(kinds)
    return pa.table(columns)


def keyed(**options):
    return table(FIELDS, primary_key=["p", "k"], partition_by=["p"], options={**OPTIONS, **options})


@pytest.fixture
def made():
    """Two partitions whose rows 0..499 lie on the top level, and rows 3 and 4 of partition 1 replaced."""
    made = keyed()
    made.write_arrow(batch([(p, k, k) for p in (1, 2) for k in range(500)]))
    made.compact(full=True)
    made.write_arrow(batch([(1, 3, -3), (1, 4, -4)]))
    made.compact()
    return made


def content(made) -> dict:
    read = made.scan().to_arrow().to_pylist()
    found = {(row["p"], row["k"]): row["v"] for row in read}
    assert len(found) == len(read) == made.scan().count(), "a key has two live rows"
    return found


def check(made) -> None:
    """Every deletion vector is of a live file, and index files that nobody names are gone."""
    root = made._root
    snapshot = root.snapshots.latest()
    files = {(e.partition, e.bucket, e.file.name) for e in root.manifests.live_entries(snapshot).entries()}
    entries = root.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []
    places = OpenTable(root, made.schema).deletion_places(entries)
    assert {(*key, name) for key, names in places.items() for name in names} <= files, "a deletion vector dangles"
    named = set()
    for number in root.snapshots.ids():
        name = root.snapshots.get(number).index_manifest
        named |= {entry.name for entry in root.manifests.read_index(name)} if name else set()
    assert {status.name for status in root.store.list(f"{root.path}/index")} == named


BEFORE = {(p, k): -k if p == 1 and k in (3, 4) else k for p in (1, 2) for k in range(500)}


def test_a_compaction_marks_the_rows_it_replaces(made):
    assert content(made) == BEFORE
    assert sum(len(split.deletions) for split in made.scan().splits()) == 1
    check(made)
    made.compact(full=True)
    assert content(made) == BEFORE
    assert sum(len(split.deletions) for split in made.scan().splits()) == 0
    check(made)


def test_of_two_compactors_one_wins(made):
    for value in (0, -5):
        made.write_arrow(batch([(1, 5, value), (2, 6, value)]))
    tasks = made.compaction_tasks()
    assert len(tasks) == 2
    ours, theirs = ([made.run_compaction(bytes(task)) for task in tasks] for _ in "ab")
    made.commit(theirs)
    with pytest.raises(CommitConflictError):
        made.commit(ours)
    assert content(made) == {**BEFORE, (1, 5): -5, (2, 6): -5}


def test_moving_the_same_file_twice_is_done_once(made):
    made.write_arrow(batch([(1, 5, -5)]))
    (task,) = made.compaction_tasks()
    ours, theirs = made.run_compaction(task), made.run_compaction(task)
    made.commit(theirs)
    assert made.commit(ours).already_committed
    assert content(made) == {**BEFORE, (1, 5): -5}


def test_a_compaction_is_dropped_for_unknown_deletion_vectors(made):
    upper = made.compaction_tasks(full=True)
    assert all(file.level for task in upper for file in task.files)
    late = [made.run_compaction(task) for task in upper]
    made.write_arrow(batch([(1, 10, 0)], ["-D"]))  # a smaller file than the one on level 4, which stays there
    made.compact()
    after = {key: value for key, value in BEFORE.items() if key != (1, 10)}
    assert content(made) == after
    with pytest.raises(CommitConflictError, match="deletion vectors"):
        made.commit(late)
    assert content(made) == after


def test_a_write_concurrent_with_a_compaction_succeeds_and_so_does_the_compaction(made):
    made.write_arrow(batch([(1, 5, -5)]))
    compacted = [made.run_compaction(task) for task in made.compaction_tasks()]
    made.write_arrow(batch([(1, 6, -6), (2, 6, -6)]))
    assert made.commit(compacted).dropped_compaction is None
    assert content(made) == {**BEFORE, (1, 5): -5}
    made.compact()
    assert content(made) == {**BEFORE, (1, 5): -5, (1, 6): -6, (2, 6): -6}
    check(made)


def test_compact_plans_buckets_again_that_others_changed(made, monkeypatch):
    made.write_arrow(batch([(1, 5, -5), (2, 6, -6)]))
    run = type(made).commit
    raced = []

    def overtaken(self, changes, **options):
        if not raced:
            raced.append(True)
            run(made, [made.run_compaction(task) for task in made.compaction_tasks(partitions=[{"p": 1}])])
        return run(self, changes, **options)

    monkeypatch.setattr(type(made), "commit", overtaken)
    made.compact()
    monkeypatch.undo()
    assert content(made) == {**BEFORE, (1, 5): -5, (2, 6): -6}
    check(made)


def test_overwriting_a_partition_removes_its_deletion_vectors(made):
    made.write_arrow(batch([(2, 1, -1)]))
    made.compact()
    assert sum(len(split.deletions) for split in made.scan().splits()) == 2
    made.write_arrow(batch([(1, 1, 1)]), overwrite={"p": 1})
    made.compact(full=True)
    assert content(made) == {**{key: v for key, v in BEFORE.items() if key[0] == 2}, (2, 1): -1, (1, 1): 1}
    check(made)
    made.truncate()
    assert content(made) == {}
    assert made._root.snapshots.latest().index_manifest is None
    check(made)


def test_changes_of_compactions_can_be_sent_as_bytes(made):
    made.write_arrow(batch([(1, 5, -5)]))
    changes = [made.run_compaction(bytes(task)) for task in made.compaction_tasks()]
    made.commit([Changes.from_bytes(bytes(part)) for part in changes])
    assert content(made) == {**BEFORE, (1, 5): -5}
    check(made)


LIVES = {
    "32 bit": {},
    "64 bit": {"deletion-vectors.bitmap64": "true"},
    "gentle": {"lookup-compact": "gentle"},
    "beside the data": {"index-file-in-data-file-dir": "true"},
    "sequence field": {"sequence.field": "v"},
    "small files": {"target-file-size": "8 kb"},
    "few levels": {"num-levels": "3", "num-sorted-run.compaction-trigger": "2"},
    "avro": {"file.format": "avro"},
}


_QUICK = ("32 bit", "sequence field", "few levels")


@pytest.mark.parametrize("name", [name if name in _QUICK else pytest.param(name, marks=pytest.mark.full) for name in LIVES])
def test_a_random_life_agrees_with_a_dict(name):
    random_ = random.Random(name)
    made = keyed(**LIVES[name])
    rows: dict = {}
    for step in range(14):
        width = 2000 if step == 0 else random_.choice([2, 10, 200])
        new = {(random_.randrange(2), random_.randrange(1500)): random_.randrange(10**6) for _ in range(width)}
        kinds = [random_.choice(["+I", "+U", "-D"]) for _ in new]
        if name == "sequence field":
            kinds = ["+I"] * len(new)
            rows |= {key: max(value, rows.get(key, value)) for key, value in new.items()}
        else:
            rows |= {key: value if kind != "-D" else None for (key, value), kind in zip(new.items(), kinds)}
        made.write_arrow(batch([(*key, value) for key, value in new.items()], kinds))
        if random_.random() < 0.7:
            made.compact(full=random_.random() < 0.15)
            if name != "gentle":
                assert content(made) == {key: value for key, value in rows.items() if value is not None}
            if name != "beside the data":
                check(made)
    made.compact(full=True)
    assert content(made) == {key: value for key, value in rows.items() if value is not None}


def test_index_files_of_a_write_are_committed_and_combined():
    made = table(FIELDS)
    for value in (1, 2, 3):
        made.write_arrow(batch([(value, k, value) for k in range(10)]))
    root = made._root
    entries = sorted(root.manifests.live_entries(root.snapshots.latest()).entries(), key=lambda e: e.file.min_sequence)
    place = entries[0]

    def killing(dead: dict[int, list[int]], old=()) -> Changes:
        vectors = {entries[at].file.name: DeletionVector.of(np.array(gone)) for at, gone in dead.items()}
        writer = DeletionWriter(OpenTable(root, made.schema).bucket(place.partition, 0))
        bucket = BucketChanges(
            partition=place.partition, bucket=0, total_buckets=-1, written=Edit(deleted_index=tuple(old), added_index=(writer.write(vectors),))
        )  # fmt: skip
        return Changes(schema_id=0, base=Base(made.snapshot().id), buckets=(bucket,))

    first, second = killing({0: [0, 1]}), killing({2: [5]})
    made.commit(first)
    assert made.snapshot().commit_kind == "OVERWRITE"
    made.commit(second)
    assert made.scan().count() == 27
    third = killing({0: [0, 1, 2]}, old=first.buckets[0].written.added_index)
    again = killing({0: [9]}, old=first.buckets[0].written.added_index)
    made.commit(third)
    assert made.scan().count() == 26
    with pytest.raises(CommitConflictError, match="index file"):
        made.commit(again)
    assert made.scan().count() == 26
