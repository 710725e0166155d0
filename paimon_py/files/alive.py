"""Rows of a data file without the dead ones, which a deletion vector names by their position in the file.

Source: format.md §17; Java `ApplyDeletionVectorReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.errors import CorruptionError
from paimon_py.formats.base import empty_rows
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Atomic, Field, Root

POSITION = "_POSITION"
"""Name of a column with positions in a file; never stored."""

POSITION_FIELD = Field(2_147_483_640, POSITION, Atomic(Root.BIGINT, nullable=False))


def alive(pieces: Iterable[tuple[int, pa.RecordBatch]], dead: DeletionVector | None) -> Iterator[pa.RecordBatch]:
    """Batches without their dead rows.

    Shapes: in — batches with the position of their first row; out — the same batches, empty ones left out.
    Cost: 4 µs a batch, and a copy of batches that lose rows.
    """
    for position, batch in pieces:
        if dead is not None:
            batch = _without(batch, dead.within(position, position + batch.num_rows) - position)
        if batch.num_rows:
            yield batch


def positioned(pieces: Iterable[tuple[int, pa.RecordBatch]], dead: DeletionVector | None) -> Iterator[pa.RecordBatch]:
    """Batches without their dead rows, and with a last column `_POSITION` (int64)."""
    for position, batch in pieces:
        numbers = from_numpy(np.arange(position, position + batch.num_rows, dtype=np.int64), pa.int64())
        batch = pa.RecordBatch.from_arrays([*batch.columns, numbers], names=[*batch.schema.names, POSITION])
        yield from alive([(position, batch)], dead)


def check_fits(file: DataFile, dead: DeletionVector, path: str) -> None:
    """Refuse a deletion vector that names rows which the file does not have.

    Raises: CorruptionError
    """
    if dead.last >= file.row_count:
        raise CorruptionError(
            f"the deletion vector of {file.name} names row {dead.last}, the file has {file.row_count} rows", path=path
        )


def _without(batch: pa.RecordBatch, rows: Ints) -> pa.RecordBatch:
    if not len(rows):
        return batch
    left = batch.num_rows - len(rows)
    if not left or not batch.num_columns:
        return batch.slice(0, 0) if not left else empty_rows(left)
    keep = np.ones(batch.num_rows, np.bool_)
    keep[rows] = False
    first = int(np.argmax(keep))
    if keep[first : first + left].all():
        return batch.slice(first, left)
    return batch.filter(from_numpy(keep, pa.bool_()))
