"""Index files through commits: what replaces what, and which compactions no longer fit."""

from __future__ import annotations

from unit.commit.support import data_file

from paimon_py.commit.changes import BucketChanges, Edit
from paimon_py.commit.index_plan import base_conflict, compacted_index, index_after, written_index
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import DeletionVectorRange, IndexEntry


def entry(name, partition=b"p", bucket=0, kind="DELETION_VECTORS", files=()):
    ranges = tuple(DeletionVectorRange(data_file=file, offset=1, length=9, cardinality=1) for file in files)
    return IndexEntry(
        kind=FileKind.ADD, partition=partition, bucket=bucket, index_type=kind, name=name, size_bytes=9,
        row_count=len(ranges), deletion_vectors=ranges if kind == "DELETION_VECTORS" else None,
    )  # fmt: skip


def changes(old=(), new=(), partition=b"p", bucket=0, before=()):
    return BucketChanges(partition=partition, bucket=bucket, total_buckets=1, compacted=Edit(deleted=tuple(before), deleted_index=tuple(old), added_index=tuple(new)))  # fmt: skip


def names(index):
    return [entry.name for entry in index]


HASH = entry("hash", kind="HASH")
BASE = (HASH, entry("a"), entry("b", bucket=1), entry("c", partition=b"q"))


def test_a_new_file_takes_the_place_of_the_one_of_its_bucket_and_type():
    after = index_after(BASE, compacted_index([changes([entry("a")], [entry("d")])]), by_bucket=True)
    assert names(after) == ["hash", "b", "c", "d"]
    after = index_after(BASE, compacted_index([changes([], [entry("d", bucket=2)], bucket=2)]), by_bucket=True)
    assert names(after) == ["hash", "a", "b", "c", "d"]


def test_an_unchanged_index_is_kept():
    assert index_after(BASE, [], by_bucket=True) == BASE
    same = compacted_index([changes([entry("c", b"q")], [entry("c", b"q")], partition=b"q")])
    assert index_after(BASE, same, by_bucket=True) == BASE
    assert compacted_index([changes()]) == []


def test_without_buckets_index_files_go_by_name():
    after = index_after(BASE, compacted_index([changes([entry("a")], [entry("d"), entry("e")])]), by_bucket=False)
    assert names(after) == ["hash", "b", "c", "d", "e"]
    after = index_after(BASE, compacted_index([changes([], [entry("d")])]), by_bucket=False)
    assert names(after) == ["hash", "a", "b", "c", "d"]


def test_what_writing_did_counts_apart_from_compaction():
    both = BucketChanges(partition=b"p", bucket=0, total_buckets=1, written=Edit(added_index=(HASH, entry("w"))), compacted=Edit(added_index=(entry("a"), entry("x")), deleted_index=(entry("a"),)))  # fmt: skip
    assert [names(edit.added_index) for _, edit in written_index([both])] == [["w"]]
    assert names(both.compacted.made_index) == ["x"]


def test_a_compaction_fits_only_the_deletion_vectors_it_started_from():
    moved = changes([entry("a")], [entry("d")])
    assert base_conflict([entry("a")], moved, keyed=True) is None
    assert base_conflict([entry("z")], moved, keyed=True) is not None
    assert base_conflict([], moved, keyed=True) is not None
    assert base_conflict([entry("a")], changes(), keyed=True) is not None
    assert base_conflict([], changes(), keyed=True) is None


def test_without_keys_only_vectors_of_compacted_files_matter():
    compacted = changes(before=[data_file("data-1")])
    assert base_conflict([entry("a", files=["data-2"])], compacted, keyed=False) is None
    assert base_conflict([entry("a", files=["data-1"])], compacted, keyed=False) is not None
    assert base_conflict([], changes([entry("a")]), keyed=False) is not None
