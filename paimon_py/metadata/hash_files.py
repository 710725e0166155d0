"""Hash index files of a table: reading and writing them.

Source: format.md §7.4, §10.1; Java `HashIndexFile`, `IndexPathFactory`.
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.columns import Int32s
from paimon_py.codec.hash_index import decode_hashes, encode_hashes, name_for
from paimon_py.formats.base import decoding
from paimon_py.metadata.open_table import BucketFiles, OpenTable
from paimon_py.spec.data_file import DataFile, FileKind
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.storage.store import join, new_file


def read_hashes(files: OpenTable, entry: IndexEntry) -> Int32s:
    """The hashes in one file, in its order.

    Raises:
        FileMissingError: the file does not exist.
        CorruptionError: it contains another number of hashes than its entry.
    """
    path = files.index_path(entry)
    with decoding(path), files.store.open_read(path) as source:
        return decode_hashes(source.read(), entry.row_count, path)


def key_hashes(files: BucketFiles, file: DataFile) -> Int32s:
    """The hashes of the keys in a data file.

    Raises:
        FileMissingError: the file does not exist.
    """
    fields = files.table.schema.key_fields
    types = [field.type for field in fields]
    found = [hash_rows(batch.columns, types) for batch in files.stored_rows(file, fields)]
    return np.concatenate(found) if found else np.empty(0, np.int32)


def write_hashes(files: BucketFiles, hashes: Int32s) -> IndexEntry:
    """Write a new file with these hashes, durable on return.

    Raises: StorageError, and then the file does not exist unless the store prevented its deletion.
    """
    root, partition, bucket = files.table.root, files.partition, files.bucket
    data = encode_hashes(hashes)
    name = name_for(root.env.ids.uuid(), data)
    path = join(files.table.index_directory(partition, bucket), name)
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
