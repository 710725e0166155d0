"""Hash index files of a table: reading and writing them.

Source: format.md §7.4, §10.1; Java `HashIndexFile`, `IndexPathFactory`.
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.columns import Int32s
from paimon_py.codec.hash_index import decode_hashes, encode_hashes
from paimon_py.metadata.deletion_files import index_directory, index_file_path
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.stored_rows import stored_rows
from paimon_py.spec.data_file import DataFile, FileKind
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.schema import TableSchema
from paimon_py.storage.store import join, new_file


def read_hashes(root: TableRoot, schema: TableSchema, entry: IndexEntry) -> Int32s:
    """The hashes in one file, in its order.

    Raises:
        FileMissingError: there is no such file.
        CorruptionError: it holds another number of hashes than its entry says.
    """
    path = index_file_path(root.path, schema, entry)
    with root.files.open_read(path) as source:
        return decode_hashes(source.read(), entry.row_count, path)


def key_hashes(root: TableRoot, schema: TableSchema, place: tuple[bytes, int], file: DataFile) -> Int32s:
    """The hashes of the keys in a data file. `place`: its partition and bucket.

    Raises:
        FileMissingError: there is no such file.
    """
    types = [field.type for field in schema.key_fields]
    found = [hash_rows(batch.columns, types) for batch in stored_rows(root, schema, place, file, schema.key_fields)]
    return np.concatenate(found) if found else np.empty(0, np.int32)


def write_hashes(root: TableRoot, schema: TableSchema, partition: bytes, bucket: int, hashes: Int32s) -> IndexEntry:
    """A new file with these hashes, durable when this returns.

    Raises: StorageError, and then there is no such file unless the store kept it from being deleted.
    """
    name = f"index-{root.env.ids.uuid()}-0"
    path = join(index_directory(root.path, schema, partition, bucket), name)
    data = encode_hashes(hashes)
    with new_file(root.files, path) as sink:
        sink.write(data)
    return IndexEntry(
        kind=FileKind.ADD,
        partition=partition,
        bucket=bucket,
        index_type=HASH,
        name=name,
        size_bytes=len(data),
        row_count=len(hashes),
    )
