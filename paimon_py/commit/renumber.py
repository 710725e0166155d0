"""Give the files of a writer later sequence numbers: another writer of the bucket committed in between.

Source: format.md §12.1 (two writers of one bucket may give equal numbers).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.codec.partition_text import partition_directory
from paimon_py.commit.changes import BucketChanges
from paimon_py.errors import StorageError, UnsupportedError
from paimon_py.files.naming import DataFileNames
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.files.places import bucket_place, file_path
from paimon_py.files.reader import read_file
from paimon_py.files.writer import RollingWriter, file_layout
from paimon_py.lsm.writer import abort_all
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import SEQUENCE_NUMBER, TableSchema

_NEVER = 2**62


def renumber(root: TableRoot, schema: TableSchema, changes: BucketChanges, offset: int) -> BucketChanges:
    """The same new rows with `offset` added to every sequence number.

    Append tables have sequence numbers in metadata only: nothing is read. Files of primary-key tables are written
    anew. The old ones stay: the commit deletes them once it is certain that it happened, until then the caller may have
    to commit them again.

    Raises:
        StorageError: the store failed; the new files are deleted.
        UnsupportedError: the changes hold more than new files.
    """
    if offset == 0 or not changes.new_files:
        return changes
    if msgspec.structs.replace(changes, new_files=()).is_empty is False:
        raise UnsupportedError("changes with compaction or changelog cannot be renumbered", feature="renumbering")
    if not schema.primary_keys:
        return msgspec.structs.replace(changes, new_files=tuple(_shifted(file, offset) for file in changes.new_files))
    directory = partition_directory(schema, changes.partition)
    job = _Job(directory, changes.bucket, offset, DataFileNames(schema.options, root.env.ids))
    begun: list[RollingWriter] = []
    try:
        files = tuple(
            _rewrite(root, root.schemas.of_file(file.schema_id, schema), file, begun, job) for file in changes.new_files
        )
    except BaseException:
        with contextlib.suppress(StorageError):
            abort_all(begun)
        raise
    return msgspec.structs.replace(changes, new_files=files)


class _Job(msgspec.Struct, frozen=True):
    directory: str
    bucket: int
    offset: int
    names: DataFileNames


def _shifted(file: DataFile, offset: int) -> DataFile:
    return msgspec.structs.replace(
        file, min_sequence=file.min_sequence + offset, max_sequence=file.max_sequence + offset
    )


def _rewrite(root: TableRoot, schema: TableSchema, file: DataFile, begun: list[RollingWriter], job: _Job) -> DataFile:
    layout = msgspec.structs.replace(
        file_layout(schema, level=file.level), target_size_bytes=_NEVER, target_rows=_NEVER
    )
    writer = RollingWriter(
        root.files,
        bucket_place(root.path, schema, job.directory, job.bucket, root.env.ids),
        job.names,
        layout,
        root.env.clock,
    )
    begun.append(writer)
    path = file_path(root.path, schema, job.directory, job.bucket, file)
    for batch in _shifted_batches(root, schema, path, file, job.offset):
        writer.write(batch)
    (new,) = writer.close()
    return new


def _shifted_batches(
    root: TableRoot, schema: TableSchema, path: str, file: DataFile, offset: int
) -> Iterator[pa.RecordBatch]:
    fields = (SEQUENCE_FIELD, KIND_FIELD, *schema.fields)
    for batch in read_file(root.files, path, file, schema, fields):
        numbers = numpy_values(batch.column(SEQUENCE_NUMBER)) + np.int64(offset)
        yield batch.set_column(
            batch.schema.get_field_index(SEQUENCE_NUMBER),
            pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False),
            from_numpy(numbers, pa.int64()),
        )
