"""The deletion vectors of a bucket after an operation: the index files to delete and to add."""

from __future__ import annotations

from collections.abc import Mapping, Set

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import Bucket
from paimon_py.commit.deletion_index import BucketDeletions
from paimon_py.metadata.deletion_files import DeletionWriter, read_deletions
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.manifest import IndexEntry

IndexFiles = tuple[IndexEntry, ...]


def renewed_vectors(
    files: OpenTable,
    bucket: Bucket,
    gone: Set[str],
    marked: Mapping[str, DeletionVector],
    known: BucketDeletions,
    *,
    with_buckets: bool,
) -> tuple[IndexFiles, IndexFiles]:
    """The removed and added index files of a bucket; writes the added ones.

    Args:
        gone: data files that are removed with their deletion vectors.
        marked: additional dead rows by file.
        known: the current state of the bucket.
        with_buckets: the table has buckets, each with one index file.
    """
    touched = gone | marked.keys()
    old = [
        entry
        for entry in known.index
        if with_buckets or any(part.data_file in touched for part in entry.deletion_vectors or ())
    ]
    held = {part.data_file for entry in old for part in entry.deletion_vectors or ()}
    if not marked and not held & gone:
        return (), ()
    places = {name: place for name, place in known.places.items() if name in held - gone}
    vectors = dict(read_deletions(files.root.files, places))
    for name, vector in marked.items():
        vectors[name] = vectors[name].union(vector) if name in vectors else vector
    if not vectors:
        return tuple(old), ()
    writer = DeletionWriter(files.bucket(*bucket))
    new = [writer.write(vectors)] if with_buckets else writer.write_rolling(vectors)
    return tuple(old), tuple(new)
