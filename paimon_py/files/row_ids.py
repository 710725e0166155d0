"""Row ids, and the snapshots that wrote the rows, in tables with `row-tracking.enabled`.

Rows of a new file have consecutive ids from the first one in its entry, and the number of the snapshot that added the
file. A rewritten file stores both as columns; NULL there stands for the value from the entry.

Source: format.md §23; Java `DataFileRecordReader`, `SpecialFields.rowTypeWithRowTracking`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import from_numpy
from paimon_py.errors import CorruptionError
from paimon_py.files.physical import ROW_ID_FIELD, TRACKED_IDS
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Field


class RowIds:
    """Fills the columns `_ROW_ID` and `_SEQUENCE_NUMBER` of the rows of one file."""

    def __init__(self, file: DataFile, path: str, fields: Sequence[Field]) -> None:
        """`fields`: the requested columns.

        Raises: CorruptionError if ids are requested and neither the file nor its entry has them.
        """
        self._file = file
        self._places = [place for place, field in enumerate(fields) if field.id in TRACKED_IDS]
        stored = file.write_columns or ()
        if ROW_ID_FIELD in fields and file.first_row_id is None and ROW_ID_FIELD.name not in stored:
            raise CorruptionError(f"{path} has no row ids, and its manifest entry names no first one", path=path)

    def fill(self, position: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, which begins at a position of the file, with NULLs in these columns filled."""
        for place in self._places:
            column = batch.column(place)
            if column.null_count:
                known = self._known_values(batch.schema.names[place], position, batch.num_rows)
                whole = known if column.null_count == len(column) else pc.coalesce(column, known)
                columns = [whole if at == place else other for at, other in enumerate(batch.columns)]
                batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        return batch

    def _known_values(self, name: str, position: int, count: int) -> pa.Array:
        first = self._file.first_row_id
        if name == ROW_ID_FIELD.name and first is not None:
            return from_numpy(np.arange(first + position, first + position + count, dtype=np.int64), pa.int64())
        return from_numpy(np.full(count, self._file.max_sequence, np.int64), pa.int64())
