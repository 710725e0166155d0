"""Assigns larger sequence numbers to a writer's files after another writer of the bucket committed in between.

Source: docs/format.md §12.1 (two writers of one bucket may assign equal numbers).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.commit.changes import BucketChanges, Edit
from paimon_py.errors import StorageError
from paimon_py.files.layout import FileLayout, changelog_layout, file_layout
from paimon_py.files.physical import KIND_FIELD, SEQUENCE_FIELD
from paimon_py.files.writer import RollingWriter
from paimon_py.lsm.writer import abort_all
from paimon_py.metadata.new_files import NewFiles
from paimon_py.metadata.open_table import BucketFiles, OpenTable
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import SEQUENCE_NUMBER

_NEVER = 2**62


def renumber(table: OpenTable, changes: BucketChanges, offset: int) -> Edit:
    """The written part of a bucket's changes, with every sequence number increased by `offset`.

    Append tables have sequence numbers only in metadata: nothing is read. Files of primary-key tables are rewritten,
    under names that show which file they replace. So is the changelog of the input: a row has the same number in it as
    in level 0. The old files are kept: the commit deletes them once it has certainly succeeded; until then the caller
    may have to commit them again.

    Raises:
        StorageError: the store failed; the new files are deleted.
    """
    written = changes.written
    if offset == 0 or not written.added:
        return written
    if not table.schema.primary_keys:
        return msgspec.structs.replace(written, added=tuple(_shift(file, offset) for file in written.added))
    place, begun = table.bucket(*changes.place), list[RollingWriter]()
    try:
        return msgspec.structs.replace(
            written,
            added=tuple(_rewritten(place, file, offset, file_layout, begun) for file in written.added),
            changelog=tuple(_rewritten(place, file, offset, changelog_layout, begun) for file in written.changelog),
        )
    except BaseException:
        with contextlib.suppress(StorageError):
            abort_all(begun)
        raise


def _shift(file: DataFile, offset: int) -> DataFile:
    return msgspec.structs.replace(
        file, min_sequence=file.min_sequence + offset, max_sequence=file.max_sequence + offset
    )


def _rewritten(
    place: BucketFiles, file: DataFile, offset: int, layout_of: Callable[..., FileLayout], begun: list[RollingWriter]
) -> DataFile:
    layout = msgspec.structs.replace(
        layout_of(place.schema_of(file), level=file.level), target_size_bytes=_NEVER, target_rows=_NEVER
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
