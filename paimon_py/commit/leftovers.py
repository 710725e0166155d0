"""Deleting data files and index files that were written in vain."""

from __future__ import annotations

from collections.abc import Iterable

from paimon_py.codec.partition_text import partition_directory
from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.index_plan import made_index
from paimon_py.commit.plan import compaction_files
from paimon_py.errors import StorageError
from paimon_py.files.places import file_paths
from paimon_py.metadata.deletion_files import index_file_path
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import IndexEntry
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


def delete_compaction(root: TableRoot, schema: TableSchema, bucket: BucketChanges) -> None:
    """Delete what compacting a bucket made, where no snapshot names any of it; what cannot be deleted stays."""
    delete_files(root, schema, bucket.partition, bucket.bucket, compaction_files(bucket))
    delete_index_files(root, schema, made_index(bucket))
