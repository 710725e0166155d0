"""New BLOB values of existing rows: files in which all other rows are marked as stored elsewhere.

Source: format.md §26; Java `DataEvolutionPartialWriter`, `BlobPlaceholder`.
"""

from __future__ import annotations

import contextlib

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints
from paimon_py.errors import StorageError
from paimon_py.files.column_files import ColumnFiles
from paimon_py.files.layout import file_layout
from paimon_py.metadata.new_files import NewFiles
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field

_STEP_ROWS = 65_536


def write_blobs(
    files: BucketFiles, schema: TableSchema, field: Field, positions: Ints, values: pa.ChunkedArray, rows: ColumnFiles
) -> list[DataFile]:
    """Write new values of one column for some rows of a range.

    Args:
        positions: positions of the rows, ascending; `values` are in the same order.
    Raises: StorageError; written files are deleted first.
    """
    clock, target = files.table.root.env.clock, file_layout(schema).apart_target_bytes
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    writer = NewFiles(files).begin_blobs(field, schema_id=schema.id, target_bytes=target)
    try:
        for start in range(0, rows.row_count, _STEP_ROWS):
            count = min(_STEP_ROWS, rows.row_count - start)
            low, high = np.searchsorted(positions, [start, start + count]).tolist()
            changed = positions[low:high] - start
            elsewhere = np.ones(count, np.bool_)
            elsewhere[changed] = False
            places = np.zeros(count, np.int64)
            places[changed] = np.arange(low, high)
            spread = column.take(pa.array(places, pa.int64(), mask=elsewhere))
            writer.add(spread, clock.local_millis(), elsewhere)
        made = writer.close(clock.local_millis())
    except BaseException:
        with contextlib.suppress(StorageError):
            writer.abort()
        for path in writer.paths:
            with contextlib.suppress(StorageError):
                files.table.root.files.delete(path)
        raise
    found, first = [], rows.first_row_id
    for file in made:
        found.append(msgspec.structs.replace(file, first_row_id=first))
        first += file.row_count
    return found
