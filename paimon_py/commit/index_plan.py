"""What changes do to a table's index files, and whether they still fit those of the latest snapshot. Pure.

Source: format.md §10.1, §15.4; Java `IndexManifestFileHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.conflicts import Conflict
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import HASH, IndexEntry

Index = tuple[IndexEntry, ...]


class IndexChange(msgspec.Struct, frozen=True):
    """Index files of one bucket that go, and those that come."""

    partition: bytes
    bucket: int
    deleted: Index
    added: Index


def written_index(buckets: Iterable[BucketChanges]) -> list[IndexChange]:
    """What writing did to deletion vectors."""
    changes = (IndexChange(b.partition, b.bucket, _vectors(b.deleted_index), _vectors(b.new_index)) for b in buckets)
    return [change for change in changes if change.deleted or change.added]


def _vectors(entries: Index) -> Index:
    return tuple(entry for entry in entries if entry.index_type != HASH)


def compacted_index(buckets: Iterable[BucketChanges]) -> list[IndexChange]:
    """What compaction did."""
    changes = (IndexChange(b.partition, b.bucket, b.compact_deleted_index, b.compact_new_index) for b in buckets)
    return [change for change in changes if change.deleted or change.added]


def index_after(index: Sequence[IndexEntry], changes: Iterable[IndexChange], *, by_bucket: bool) -> Index:
    """The index files of a table after changes, in order; the others stay as they are.

    Args:
        by_bucket: a bucket has one index file of a type, so that a new one takes the place of any other; else index
            files only go by name.
    """
    known = list(index)
    for change in changes:
        gone = {entry.name for entry in change.deleted}
        types = {entry.index_type for entry in change.added} if by_bucket else set()
        known = [
            entry
            for entry in known
            if (entry.partition, entry.bucket) != (change.partition, change.bucket)
            or (entry.name not in gone and entry.index_type not in types)
        ]
        known += [msgspec.structs.replace(entry, kind=FileKind.ADD) for entry in change.added]
    return tuple(known)


def written_files(bucket: BucketChanges) -> Index:
    """The index files that writing to a bucket made."""
    before = {entry.name for entry in bucket.deleted_index}
    return tuple(entry for entry in bucket.new_index if entry.name not in before)


def made_index(bucket: BucketChanges) -> Index:
    """The index files that a bucket's compaction made."""
    before = {entry.name for entry in bucket.compact_deleted_index}
    return tuple(entry for entry in bucket.compact_new_index if entry.name not in before)


def missing_index(index: Iterable[IndexEntry], changes: Iterable[IndexChange]) -> Conflict | None:
    """Whether index files that changes take away are there no more."""
    names = {entry.name for entry in index}
    gone = sorted(entry.name for change in changes for entry in change.deleted if entry.name not in names)
    return Conflict(f"others replaced index file {gone[0]} meanwhile") if gone else None


def base_conflict(known: Iterable[IndexEntry], bucket: BucketChanges, *, keyed: bool) -> Conflict | None:
    """Whether a compaction saw other deletion vectors than the bucket has now.

    Rows that others have deleted meanwhile would come to life again, or their deletion be lost. A keyed bucket must
    have exactly the index files that the compaction started from. Elsewhere these must still be there, and no other one
    may concern a file that was compacted.

    Args:
        known: the index files with deletion vectors of the bucket now.
    """
    base = {entry.name for entry in bucket.compact_deleted_index}
    now = {entry.name: entry for entry in known}
    changed = base - now.keys()
    if keyed:
        changed |= now.keys() - base
    else:
        compacted = {file.name for file in bucket.compact_before}
        for name in now.keys() - base:
            if any(part.data_file in compacted for part in now[name].deletion_vectors or ()):
                changed.add(name)
    if not changed:
        return None
    return Conflict(f"others changed the deletion vectors of bucket {bucket.bucket} (index file {min(changed)})")
