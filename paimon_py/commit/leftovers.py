"""Deleting data files and index files that were written in vain."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from paimon_py.codec.partition_text import partition_directory
from paimon_py.commit.changes import BucketChanges, Changes
from paimon_py.commit.foreign import indexes_named
from paimon_py.commit.index_plan import made_index, written_files
from paimon_py.commit.plan import compaction_files
from paimon_py.errors import StorageError
from paimon_py.files.places import file_paths
from paimon_py.metadata.deletion_files import index_file_path
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.schema import TableSchema


def delete_files(
    root: TableRoot, schema: TableSchema, partition: bytes, bucket: int, files: Iterable[DataFile]
) -> None:
    """Delete files of a bucket that no snapshot names, with those beside them; what cannot be deleted stays."""
    directory = partition_directory(schema, partition)
    for file in files:
        for path in file_paths(root.path, schema, directory, bucket, file):
            try:
                root.files.delete(path)
            except StorageError:
                continue


def delete_index_files(root: TableRoot, schema: TableSchema, entries: Iterable[IndexEntry]) -> None:
    """Delete index files that no snapshot names; what cannot be deleted stays."""
    for entry in entries:
        try:
            root.files.delete(index_file_path(root.path, schema, entry))
        except StorageError:
            continue


def delete_unnamed_index_files(
    root: TableRoot, schema: TableSchema, changes: Changes, entries: Sequence[IndexEntry]
) -> None:
    """Delete those index files of changes that certainly no snapshot names.

    A writer's later rounds name the index files of its earlier ones, and may be committed before them.

    Cost: if there are any, a get per snapshot since the base, and its index manifest.
    """
    named = indexes_named(root, changes) if entries else None
    if named is not None:
        delete_index_files(root, schema, [entry for entry in entries if entry.name not in named])


def delete_handed_index_files(root: TableRoot, schema: TableSchema, changes: Changes, own: Container[str]) -> None:
    """Delete the index files of changes that will not be committed, but for hashes that a later round relies on.

    `own`: names of files that no later round knows.
    """
    made = [entry for bucket in changes.buckets for entry in (*written_files(bucket), *made_index(bucket))]
    shared = [entry for entry in made if entry.index_type == HASH and entry.name not in own]
    names = {entry.name for entry in shared}
    delete_index_files(root, schema, [entry for entry in made if entry.name not in names])
    delete_unnamed_index_files(root, schema, changes, shared)


def delete_compaction(root: TableRoot, schema: TableSchema, bucket: BucketChanges) -> None:
    """Delete what compacting a bucket made, where no snapshot names any of it; what cannot be deleted stays."""
    delete_files(root, schema, bucket.partition, bucket.bucket, compaction_files(bucket))
    delete_index_files(root, schema, made_index(bucket))
