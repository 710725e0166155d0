"""Filters the rows of a data file by position: drops dead rows, or keeps the rows selected by a file index.

Source: format.md §17; Java `ApplyDeletionVectorReader`, `ApplyBitmapIndexRecordReader`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.bitmaps import positions_of
from paimon_py.codec.columns import Ints, from_numpy, numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.errors import CorruptionError
from paimon_py.formats.base import empty_rows
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import DELETE, VALUE_KIND
from paimon_py.spec.types import Atomic, Field, Root

POSITION = "_POSITION"
"""Name of the column with positions in a file; never stored."""

POSITION_FIELD = Field(2_147_483_640, POSITION, Atomic(Root.BIGINT, nullable=False))


def select_rows(pieces: Iterable[tuple[int, pa.RecordBatch]], wanted: BitMap) -> Iterator[pa.RecordBatch]:
    """The rows at the requested positions.

    Shapes: in — batches with the position of their first row; out — batches, none empty.
    Cost: 4 µs per batch, and a copy of batches that lose rows in the middle.
    """
    for position, batch in pieces:
        end = position + batch.num_rows
        count = wanted.range_cardinality(position, end)
        if count == batch.num_rows:
            yield batch
        elif count and not batch.num_columns:
            yield empty_rows(count)
        elif count:
            rows = positions_of(wanted & BitMap(range(position, end))) - position
            first = int(rows[0])
            if int(rows[-1]) - first == count - 1:
                yield batch.slice(first, count)
            else:
                yield batch.take(from_numpy(rows, pa.int64()))


def alive(pieces: Iterable[tuple[int, pa.RecordBatch]], dead: DeletionVector | None) -> Iterator[pa.RecordBatch]:
    """Batches without their dead rows.

    Shapes: in — batches with the position of their first row; out — the filtered batches, without empty ones.
    Cost: 4 µs per batch, and a copy of batches that lose rows.
    """
    for position, batch in pieces:
        if dead is not None:
            batch = _without(batch, dead.within(position, position + batch.num_rows) - position)
        if batch.num_rows:
            yield batch


def dead_as_deletes(
    pieces: Iterable[tuple[int, pa.RecordBatch]], dead: DeletionVector
) -> Iterator[pa.RecordBatch]:
    """All rows, the dead ones with the kind −D. Shapes: batches with `_VALUE_KIND`."""
    for position, batch in pieces:
        rows = dead.within(position, position + batch.num_rows) - position
        if len(rows):
            at = batch.schema.get_field_index(VALUE_KIND)
            kinds = numpy_values(batch.column(at)).copy()
            kinds[rows] = DELETE
            batch = batch.set_column(at, batch.schema.field(at), from_numpy(kinds, pa.int8()))
        yield batch


def with_positions(
    pieces: Iterable[tuple[int, pa.RecordBatch]], dead: DeletionVector | None
) -> Iterator[pa.RecordBatch]:
    """Batches without their dead rows, with `_POSITION` (int64) as last column."""
    for position, batch in pieces:
        numbers = from_numpy(np.arange(position, position + batch.num_rows, dtype=np.int64), pa.int64())
        batch = pa.RecordBatch.from_arrays([*batch.columns, numbers], names=[*batch.schema.names, POSITION])
        yield from alive([(position, batch)], dead)


class LiveRows(msgspec.Struct, frozen=True):
    """The live rows of a file.

    `places`: their positions in the file; None: consecutive from `start`.
    """

    start: int
    places: Ints | None
    rows: pa.RecordBatch

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self.start + self.rows.num_rows if self.places is None else int(self.places[-1]) + 1

    def positions(self, rows: Ints) -> Ints:
        """The positions in the file of some rows in the batch."""
        return rows + self.start if self.places is None else self.places[rows]

    def find(self, wanted: DeletionVector) -> Ints:
        """The rows in the batch at some positions, none of which is dead."""
        if self.places is None:
            return wanted.within(self.start, self.start + self.rows.num_rows) - self.start
        found: Ints = np.searchsorted(self.places, wanted.within(self.start, int(self.places[-1]) + 1))
        return found


def living(pieces: Iterable[tuple[int, pa.RecordBatch]], dead: DeletionVector) -> Iterator[LiveRows]:
    """Non-empty batches without their dead rows, with the positions of the live ones.

    Cost: 4 µs per batch, and a copy of batches that lose rows.
    """
    for start, batch in pieces:
        gone = dead.within(start, start + batch.num_rows) - start
        places = np.delete(np.arange(start, start + batch.num_rows), gone) if len(gone) else None
        batch = _without(batch, gone)
        if batch.num_rows:
            yield LiveRows(start, places, batch)


def check_fits(file: DataFile, dead: DeletionVector, path: str) -> None:
    """Refuse a deletion vector with positions beyond the end of the file.

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
