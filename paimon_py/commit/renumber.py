"""Give the files of a writer later sequence numbers: another writer of the bucket committed in between.

Source: docs/format.md §12.1 (two writers of one bucket may give equal numbers).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.commit.changes import BucketChanges
from paimon_py.errors import StorageError, UnsupportedError
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.files.writer import RollingWriter, file_layout
from paimon_py.lsm.writer import abort_all
from paimon_py.metadata.bucket_files import BucketFiles, TableFiles
from paimon_py.metadata.new_files import NewFiles
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import SEQUENCE_NUMBER

_NEVER = 2**62


def renumber(table: TableFiles, changes: BucketChanges, offset: int) -> tuple[DataFile, ...]:
    """New files with the rows of those that a writer added to a bucket, every sequence number larger by `offset`.

    Append tables have sequence numbers in metadata only: nothing is read. Files of primary-key tables are written anew,
    under names that tell whose place they take. The old ones stay: the commit deletes them once it is certain that it
    happened, until then the caller may have to commit them again.

    Raises:
        StorageError: the store failed; the new files are deleted.
        UnsupportedError: the changes hold a changelog.
    """
    files = changes.written.added
    if offset == 0 or not files:
        return files
    if changes.written.changelog:
        raise UnsupportedError("changes with a changelog cannot be renumbered", feature="renumbering changelogs")
    if not table.schema.primary_keys:
        return tuple(_shifted(file, offset) for file in files)
    begun: list[RollingWriter] = []
    try:
        return tuple(_rewritten(table.bucket(*changes.place), file, offset, begun) for file in files)
    except BaseException:
        with contextlib.suppress(StorageError):
            abort_all(begun)
        raise


def _shifted(file: DataFile, offset: int) -> DataFile:
    return msgspec.structs.replace(
        file, min_sequence=file.min_sequence + offset, max_sequence=file.max_sequence + offset
    )


def _rewritten(place: BucketFiles, file: DataFile, offset: int, begun: list[RollingWriter]) -> DataFile:
    layout = msgspec.structs.replace(
        file_layout(place.schema_of(file), level=file.level), target_size_bytes=_NEVER, target_rows=_NEVER
    )
    writer = NewFiles(place, again=file.name).begin(layout)
    begun.append(writer)
    for batch in _shifted_batches(place, file, offset):
        writer.write(batch)
    (new,) = writer.close()
    return new


def _shifted_batches(place: BucketFiles, file: DataFile, offset: int) -> Iterator[pa.RecordBatch]:
    fields = (SEQUENCE_FIELD, KIND_FIELD, *place.schema_of(file).fields)
    for _, batch in place.reader(file, fields).positions():
        numbers = numpy_values(batch.column(SEQUENCE_NUMBER)) + np.int64(offset)
        yield batch.set_column(
            batch.schema.get_field_index(SEQUENCE_NUMBER),
            pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False),
            from_numpy(numbers, pa.int64()),
        )
