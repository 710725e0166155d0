"""Joins files that contain columns of the same rows, and of consecutive row ids, into one file.

Source: format.md §24; Java `DataEvolutionCompactTask`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.compaction.range_picker import first_of, ranges_of
from paimon_py.files.column_files import ColumnFiles, Pieces
from paimon_py.files.writer import RollingWriter
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.progress import ProgressShare
from paimon_py.spec.blobs import fields_apart
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.spec.vector_files import vectors_apart


class JoinedColumns:
    """The rows of several files, by row id; deleted rows stay, so that no id changes."""

    def __init__(self, place: BucketFiles, files: Sequence[DataFile], schema: TableSchema) -> None:
        """`place`: the bucket of the files; `schema`: of the rows."""
        self._place = place
        self._files = files
        self._ranges = [ColumnFiles(files, place.schema_of) for files in ranges_of(files)]
        vectors = [field for field in vectors_apart(schema) if not any(one.is_inline(field) for one in self._ranges)]
        away = (*fields_apart(schema), *vectors)
        self._fields = tuple(field for field in schema.fields if field not in away)

    @property
    def names(self) -> frozenset[str]:
        """The columns of the joined file: vectors stay in separate files if no other file contains them."""
        return frozenset(field.name for field in self._fields)

    def write(
        self, writer: RollingWriter, dead: Mapping[str, DeletionVector], tally: ProgressShare
    ) -> tuple[DataFile, DeletionVector]:
        """Write a file with all rows; returns it and its deletion vector.

        Args:
            writer: writes files of any size.
            dead: deletion vectors, by the name of the oldest file of each row range.
        """
        first = first_of(self._files[0])
        positions = [np.empty(0, np.int64)]
        for part in self._ranges:
            for batch in self._rows(part):
                writer.write(batch)
                tally.add(batch.num_rows)
            if part.anchor.name in dead:
                positions.append(dead[part.anchor.name].positions + (part.first_row_id - first))
        (file,) = writer.close()
        low = min(file.min_sequence for file in self._files)
        high = max(file.max_sequence for file in self._files)
        file = msgspec.structs.replace(file, first_row_id=first, min_sequence=low, max_sequence=high)
        return file, DeletionVector.of(np.concatenate(positions))

    def _rows(self, part: ColumnFiles) -> Iterator[pa.RecordBatch]:
        def read(file: DataFile, own: Sequence[Field], _offset: int) -> Pieces:
            return self._place.reader(file, own).positions()

        def read_blobs(field: Field, files: Sequence[DataFile]) -> Pieces:
            return self._place.blob_column(field, files, part.first_row_id, part.row_count).pieces(None, as_refs=False)

        return (batch for _, batch in part.rows(self._fields, read, read_blobs))
