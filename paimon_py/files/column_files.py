"""Rows whose columns lie in several files: which file a column is read from, and the files side by side.

A column comes from the newest file that holds it, found by field id; a column that no file holds is NULL. Rows of the
files are the same by their positions.

Source: format.md §24; Java `DataEvolutionSplitRead`, `DataEvolutionFileReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import from_numpy
from paimon_py.files.physical import ROW_ID_FIELD, TRACKED_IDS
from paimon_py.formats.base import empty_rows
from paimon_py.lazy import lazy_property
from paimon_py.spec.data_file import DataFile, anchor_of
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field

Pieces = Iterator[tuple[int, pa.RecordBatch]]
ReadFile = Callable[[DataFile, Sequence[Field]], Pieces]

RANGE_BATCH_ROWS = 65_536


class ColumnFiles:
    """The files that hold columns of the same rows.

    Attributes:
        files: oldest first.
        anchor: the file that the deletion vector of the rows names.
    """

    def __init__(self, files: Sequence[DataFile], schema_of: Callable[[DataFile], TableSchema]) -> None:
        """`schema_of`: the schema that a file was written with."""
        self.files = tuple(files)
        self.anchor = anchor_of(files)
        self._schema_of = schema_of

    @property
    def row_count(self) -> int:
        """How many rows the files hold columns of."""
        return self.anchor.row_count

    @property
    def first_row_id(self) -> int:
        """The id of the first row."""
        first = self.anchor.first_row_id
        assert first is not None
        return first

    @lazy_property
    def _fields_by_file(self) -> tuple[frozenset[int], ...]:
        """The columns that each file holds, by field id."""
        return tuple(map(self._ids, self.files))

    def _ids(self, file: DataFile) -> frozenset[int]:
        names = file.write_columns
        return frozenset(
            field.id for field in self._schema_of(file).fields if names is None or field.name in names
        )

    def choose(self, fields: Sequence[Field]) -> tuple[tuple[DataFile, tuple[Field, ...]], ...]:
        """Which file each column is read from, oldest file first; ids and numbers of rows are read from none.

        Columns that no file holds go to the first of them, which gives NULL or the value of the partition.
        """
        wanted = [field for field in fields if field.id not in TRACKED_IDS]
        held = [self._newest(field) for field in wanted]
        used = sorted({place for place in held if place is not None}) or [0]
        places = [used[0] if place is None else place for place in held]
        own = [tuple(field for field, at in zip(wanted, places, strict=True) if at == place) for place in used]
        return tuple((self.files[place], fields) for place, fields in zip(used, own, strict=True) if fields)

    def _newest(self, field: Field) -> int | None:
        holding = [place for place, ids in enumerate(self._fields_by_file) if field.id in ids]
        return holding[-1] if holding else None

    def sequence_number(self, fields: Sequence[Field]) -> int:
        """The number of the rows: of the files that hold one of the columns the largest, of all if none does."""
        ids = {field.id for field in fields}
        holding = [file for file, held in zip(self.files, self._fields_by_file, strict=True) if held & ids]
        return max(file.max_sequence for file in holding or self.files)

    def rows(self, fields: Sequence[Field], read: ReadFile) -> Pieces:
        """The rows, batch by batch, each with the position of its first row.

        Shapes: out — batches of the Arrow schema of `fields`; positions that any file leaves out are missing.
        Args:
            read: some columns of one file, as `FileReader.positions` gives them.
        """
        chosen = self.choose(fields)
        if len(chosen) == 1 and chosen[0][1] == tuple(fields):
            yield from read(chosen[0][0], fields)
            return
        schema, number = to_arrow_schema(fields), self.sequence_number(fields)
        places = {field.id: place for place, (_, own) in enumerate(chosen) for field in own}
        for position, batches in self._side_by_side([read(file, own) for file, own in chosen]):
            columns = []
            for field in fields:
                place = places.get(field.id)
                columns.append(
                    self._known_values(field, number, position, batches[0].num_rows)
                    if place is None
                    else batches[place].column(field.name)
                )
            yield position, pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batches[0]

    def _side_by_side(self, streams: Sequence[Pieces]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
        if not streams:
            for start in range(0, self.row_count, RANGE_BATCH_ROWS):
                yield start, [empty_rows(min(RANGE_BATCH_ROWS, self.row_count - start))]
            return
        yield from side_by_side(streams)

    def _known_values(self, field: Field, number: int, position: int, count: int) -> pa.Array:
        if field.id == ROW_ID_FIELD.id:
            first = self.first_row_id + position
            return from_numpy(np.arange(first, first + count, dtype=np.int64), pa.int64())
        return from_numpy(np.full(count, number, np.int64), pa.int64())


def side_by_side(streams: Sequence[Pieces]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Batches of several streams cut to the same positions; positions that one of them lacks are left out.

    Cost: nothing is copied.
    """
    heads = [next(stream, None) for stream in streams]
    while True:
        known = [head for head in heads if head is not None]
        if len(known) < len(heads):
            return
        start = max(position for position, _ in known)
        end = min(position + batch.num_rows for position, batch in known)
        if start < end:
            yield start, [batch.slice(start - position, end - start) for position, batch in known]
        for at, (position, batch) in enumerate(known):
            if position + batch.num_rows <= end:
                heads[at] = next(streams[at], None)
