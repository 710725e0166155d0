"""The deletion vectors of a bucket before and after a compaction.

Source: format.md §10, §13.5; Java `BucketedDvMaintainer`, `CompactDeletionFile`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import Bucket
from paimon_py.metadata.deletion_files import DeletionWriter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import DELETION_VECTORS, DeletionPlace, IndexEntry
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError

Index = tuple[IndexEntry, ...]


class BucketDeletions(msgspec.Struct, frozen=True):
    """The places of a bucket's deletion vectors, and their index entries."""

    places: Mapping[str, DeletionPlace] = {}
    index: Index = ()


def bucket_deletions(table: OpenTable, snapshot: Snapshot) -> dict[Bucket, BucketDeletions]:
    """The deletion vectors of a snapshot, per bucket; buckets without any are omitted.

    Cost: one get if the snapshot has an index manifest.
    Raises: SnapshotExpiredError, CorruptionError
    """
    index = index_entries(table.root, snapshot)
    places = table.deletion_places(index)
    found: dict[Bucket, list[IndexEntry]] = {}
    for entry in index:
        if entry.index_type == DELETION_VECTORS:
            found.setdefault((entry.partition, entry.bucket), []).append(entry)
    return {key: BucketDeletions(places.get(key, {}), tuple(entries)) for key, entries in found.items()}


def index_entries(root: TableRoot, snapshot: Snapshot | None) -> Index:
    """All entries of a snapshot's index manifest.

    Raises: SnapshotExpiredError, CorruptionError
    """
    if snapshot is None or snapshot.index_manifest is None:
        return ()
    try:
        return tuple(root.manifests.read_index(snapshot.index_manifest))
    except FileMissingError as error:
        raise root.missing(Base.of(snapshot), error) from error


def renew(
    index: Index,
    vectors: Mapping[str, DeletionVector],
    gone: Collection[str],
    found: Mapping[str, DeletionVector],
    writer: DeletionWriter,
    *,
    keyed: bool = True,
) -> Index:
    """The index of a bucket after a compaction.

    Unchanged if nothing changed; otherwise one new file, in tables with a key even without any vector, as in Java.

    Args:
        index, vectors: those on which the compaction was based.
        gone: names of files that the compaction rewrote.
        found: rows in other files that it made obsolete.
    """
    kept = {name: vector for name, vector in vectors.items() if name not in gone}
    if len(kept) == len(vectors) and not found:
        return index
    for name, vector in found.items():
        kept[name] = kept[name].union(vector) if name in kept else vector
    if not kept and not keyed:
        return ()
    return (writer.write(kept),)
