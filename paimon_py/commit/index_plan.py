"""The effect of changes on a table's index files, and whether they still fit those of the latest snapshot. Pure.

Source: format.md §10.1, §15.4; Java `IndexManifestFileHandler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from paimon_py.commit.changes import Bucket, BucketChanges, Edit
from paimon_py.commit.conflicts import Conflict
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.manifest import HASH, IndexEntry

Index = tuple[IndexEntry, ...]


IndexChange = tuple[Bucket, Edit]
"""An edit of the index files of one bucket."""


def written_index(buckets: Iterable[BucketChanges]) -> list[IndexChange]:
    """The changes of deletion vectors by writing."""
    edits = ((bucket.place, index_part(bucket.written, hashes=False)) for bucket in buckets)
    return [(place, edit) for place, edit in edits if edit.changes_index]


def index_part(edit: Edit, *, hashes: bool) -> Edit:
    """The part of an edit for hash indexes, or for all other index files."""
    deleted, added = (
        tuple(entry for entry in entries if (entry.index_type == HASH) is hashes)
        for entries in (edit.deleted_index, edit.added_index)
    )
    return Edit(deleted_index=deleted, added_index=added)


def compacted_index(buckets: Iterable[BucketChanges]) -> list[IndexChange]:
    """The changes of index files by compaction."""
    return [(bucket.place, bucket.compacted) for bucket in buckets if bucket.compacted.changes_index]


def index_after(index: Sequence[IndexEntry], changes: Iterable[IndexChange], *, by_bucket: bool) -> Index:
    """The index files of a table after changes, in order; the others stay unchanged.

    Args:
        by_bucket: a bucket has one index file of a type, so a new one replaces any other; otherwise index
            files are replaced only by name.
    """
    known = list(index)
    for place, edit in changes:
        gone = {entry.name for entry in edit.deleted_index}
        types = {entry.index_type for entry in edit.added_index} if by_bucket else set()
        known = [
            entry
            for entry in known
            if (entry.partition, entry.bucket) != place or (entry.name not in gone and entry.index_type not in types)
        ]
        known += [msgspec.structs.replace(entry, kind=FileKind.ADD) for entry in edit.added_index]
    return tuple(known)


def missing_index(index: Iterable[IndexEntry], changes: Iterable[IndexChange]) -> Conflict | None:
    """A conflict if index files that changes delete no longer exist."""
    names = {entry.name for entry in index}
    gone = sorted(entry.name for _, edit in changes for entry in edit.deleted_index if entry.name not in names)
    return Conflict(f"others replaced index file {gone[0]} in the meantime") if gone else None


def base_conflict(known: Iterable[IndexEntry], bucket: BucketChanges, *, keyed: bool) -> Conflict | None:
    """A conflict if a compaction was based on other deletion vectors than the bucket has now.

    Rows that others have deleted in the meantime would reappear, or their deletion would be lost. A keyed bucket must
    have exactly the index files that the compaction started from. Otherwise these must still exist, and no other one
    may concern a compacted file.

    Args:
        known: the current index files with deletion vectors of the bucket.
    """
    base = {entry.name for entry in bucket.compacted.deleted_index}
    now = {entry.name: entry for entry in known}
    changed = base - now.keys()
    if keyed:
        changed |= now.keys() - base
    else:
        compacted = {file.name for file in bucket.compacted.deleted}
        for name in now.keys() - base:
            if any(part.data_file in compacted for part in now[name].deletion_vectors or ()):
                changed.add(name)
    if not changed:
        return None
    return Conflict(f"others changed the deletion vectors of bucket {bucket.bucket} (index file {min(changed)})")
