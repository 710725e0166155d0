"""Columns with one value for all rows of a data file, which are not read from it: level and snapshot.

Source: Java `KeyValueFileReaderFactory`, `KeyValueDataFileRecordReader` (`sequence.snapshot-ordering`), release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_field
from paimon_py.codec.columns import from_numpy
from paimon_py.errors import UnsupportedError
from paimon_py.files.physical import LEVEL_FIELD, SEQUENCE_FIELD
from paimon_py.spec.data_file import DataFile, FileSource
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field


class ConstantColumns(msgspec.Struct, frozen=True):
    """Columns whose values depend on the file.

    `_LEVEL` is the level of the file. With `by_snapshot` (option `sequence.snapshot-ordering`), appended rows have the
    id of their snapshot as sequence number, which the commit stores in the file's entry; compacted files store the
    numbers in a column.
    """

    by_snapshot: bool = False

    @classmethod
    def of(cls, schema: TableSchema) -> ConstantColumns:
        """The constant columns of a table's files."""
        return cls(Options(schema.options).get_bool("sequence.snapshot-ordering"))

    def stored_fields(self, file: DataFile, fields: Sequence[Field]) -> Sequence[Field]:
        """The fields to read from the file.

        Raises: UnsupportedError if a sequence number is requested and the entry does not record the file's source.
        """
        stamped = self._values(file, fields)
        return [field for field in fields if field.name not in stamped] if stamped else fields

    def complete(
        self, file: DataFile, fields: Sequence[Field], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """Batches of `fields`, in order, from batches of the stored fields."""
        stamped = self._values(file, fields)
        if not stamped:
            yield from batches
            return
        schema = pa.schema([to_arrow_field(field) for field in fields])
        for batch in batches:
            columns = [
                _constant(stamped[field.name], batch.num_rows, schema.field(field.name).type)
                if field.name in stamped
                else batch.column(field.name)
                for field in fields
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _values(self, file: DataFile, fields: Sequence[Field]) -> dict[str, int]:
        values = {}
        if LEVEL_FIELD in fields:
            values[LEVEL_FIELD.name] = file.level
        if self.by_snapshot and SEQUENCE_FIELD in fields:
            if file.source is None:
                raise UnsupportedError(
                    f"file {file.name} does not say whether a writer or a compaction made it: rows of such files, "
                    "which older versions wrote, cannot be ordered by snapshot",
                    feature="sequence.snapshot-ordering",
                )
            if file.source is FileSource.APPEND:
                values[SEQUENCE_FIELD.name] = file.min_sequence
        return values


def _constant(value: int, count: int, kind: pa.DataType) -> pa.Array:
    return from_numpy(np.full(count, value), kind)
