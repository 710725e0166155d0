"""Rows whose columns are stored in several files: selects the file of each column, and combines the files.

A column is read from the newest file that contains it (by field id); a column in no file is NULL. Rows of the files are
matched by position. BLOBs and vectors may be stored in separate files, which contain part of the rows.

Source: format.md §24; Java `DataEvolutionSplitRead`, `DataEvolutionFileReader`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.files.physical import ROW_ID_FIELD, TRACKED_IDS
from paimon_py.formats.base import empty_rows
from paimon_py.lazy import lazy_property
from paimon_py.spec.data_file import BLOB_SUFFIX, DataFile, anchor_of
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field

Pieces = Iterator[tuple[int, pa.RecordBatch]]
ReadFile = Callable[[DataFile, Sequence[Field], int], Pieces]
"""Reads columns of one file whose first row is at the given offset in the range; yields positions in the file."""

ReadBlobs = Callable[[Field, Sequence[DataFile]], Pieces]
"""Reads a column from `.blob` files, newest first."""

RANGE_BATCH_ROWS = 65_536


class ColumnFiles:
    """The files that contain columns of the same rows.

    Attributes:
        files: oldest first, except for files of separately stored columns.
        anchor: the file that the deletion vector of the rows refers to.
        schema_of: returns the schema that a file was written with.
    """

    def __init__(self, files: Sequence[DataFile], schema_of: Callable[[DataFile], TableSchema]) -> None:
        self.files = tuple(file for file in files if not file.is_apart)
        self._beside = tuple(file for file in files if file.is_apart)
        self.anchor = anchor_of(files)
        self.schema_of = schema_of

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.anchor.row_count

    @property
    def first_row_id(self) -> int:
        """The id of the first row."""
        first = self.anchor.first_row_id
        assert first is not None
        return first

    @lazy_property
    def _fields_by_file(self) -> tuple[frozenset[int], ...]:
        """The columns in each file, by field id."""
        return tuple(map(self._ids, self.files))

    def _ids(self, file: DataFile) -> frozenset[int]:
        names = file.write_columns
        return frozenset(
            field.id for field in self.schema_of(file).fields if names is None or field.name in names
        )

    def choose(self, fields: Sequence[Field]) -> tuple[tuple[DataFile, tuple[Field, ...]], ...]:
        """The file from which each column is read, oldest file first; row ids and sequence numbers are read from none.

        Columns in no file are assigned to the first one, which returns NULL or the partition value. Separately stored
        columns are omitted.
        """
        apart = self.apart(fields)
        wanted = [field for field in fields if field.id not in TRACKED_IDS and field.id not in apart]
        held = [self._newest(field) for field in wanted]
        used = sorted({place for place in held if place is not None}) or [0]
        places = [used[0] if place is None else place for place in held]
        own = [tuple(field for field, at in zip(wanted, places, strict=True) if at == place) for place in used]
        return tuple((self.files[place], fields) for place, fields in zip(used, own, strict=True) if fields)

    def apart(self, fields: Sequence[Field]) -> dict[int, tuple[DataFile, ...]]:
        """The files of separately stored columns, newest first, by field id."""
        if not self._beside:
            return {}
        newest_first = sorted(self._beside, key=lambda file: (-file.max_sequence, file.first_row_id or 0))
        held = [(file, self._ids(file)) for file in newest_first]
        found = {field.id: tuple(file for file, ids in held if field.id in ids) for field in fields}
        return {field_id: files for field_id, files in found.items() if files}

    def _newest(self, field: Field) -> int | None:
        holding = [place for place, ids in enumerate(self._fields_by_file) if field.id in ids]
        return holding[-1] if holding else None

    def is_inline(self, field: Field) -> bool:
        """Whether a file contains a column among others of its rows."""
        return self._newest(field) is not None

    def sequence_number(self, fields: Sequence[Field]) -> int:
        """The sequence number of the rows: the largest among the files with one of the columns, or among all files."""
        ids = {field.id for field in fields}
        holding = [file for file, held in zip(self.files, self._fields_by_file, strict=True) if held & ids]
        return max(file.max_sequence for file in holding or self.files)

    def rows(self, fields: Sequence[Field], read: ReadFile, read_blobs: ReadBlobs) -> Pieces:
        """The rows in batches, each with the position of its first row.

        Shapes: out — batches with the Arrow schema of `fields`; positions that any file skips are missing.
        Args:
            read: reads some columns of one file, as `FileReader.positions` does.
        """
        chosen, apart = self.choose(fields), self.apart(fields)
        if not apart and len(chosen) == 1 and chosen[0][1] == tuple(fields):
            yield from read(chosen[0][0], fields, 0)
            return
        schema, number = to_arrow_schema(fields), self.sequence_number(fields)
        beside = [field for field in fields if field.id in apart]
        places = {field.id: place for place, (_, own) in enumerate(chosen) for field in own}
        places |= {field.id: len(chosen) + place for place, field in enumerate(beside)}
        streams = [read(file, own, 0) for file, own in chosen]
        streams += [self._pieces_apart(field, apart[field.id], read, read_blobs) for field in beside]
        for position, batches in self._side_by_side(streams):
            columns = []
            for field in fields:
                place = places.get(field.id)
                columns.append(
                    self._known_values(field, number, position, batches[0].num_rows)
                    if place is None
                    else batches[place].column(field.name)
                )
            yield position, pa.RecordBatch.from_arrays(columns, schema=schema) if columns else batches[0]

    def _pieces_apart(
        self, field: Field, files: Sequence[DataFile], read: ReadFile, read_blobs: ReadBlobs
    ) -> Pieces:
        """A separately stored column: BLOBs, or vectors; the newest value of each row counts."""
        if files[0].name.endswith(BLOB_SUFFIX):
            yield from read_blobs(field, files)
            return
        beside = self._newest(field)
        known = [*files, *([] if beside is None else [self.files[beside]])]
        owners = np.full(self.row_count, -1, np.int64)
        for number in sorted(range(len(known)), key=lambda number: known[number].max_sequence):
            start = self._offset(known[number])
            owners[start : start + known[number].row_count] = number
        for start, stop in _runs(owners):
            owner = int(owners[start])
            if owner < 0:
                yield from _nulls(field, start, stop)
                continue
            file, offset = known[owner], self._offset(known[owner])
            for position, batch in read(file, [field], offset):
                low, high = max(start, offset + position), min(stop, offset + position + batch.num_rows)
                if low < high:
                    yield low, batch.slice(low - offset - position, high - low)

    def _offset(self, file: DataFile) -> int:
        """The position of a file's first row in the range."""
        assert file.first_row_id is not None
        return file.first_row_id - self.first_row_id

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


def _runs(owners: Ints) -> list[tuple[int, int]]:
    """The start and end of each run of rows with the same owner."""
    ends = [*(np.flatnonzero(np.diff(owners)) + 1).tolist(), len(owners)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _nulls(field: Field, start: int, stop: int) -> Pieces:
    schema = to_arrow_schema([field])
    for low in range(start, stop, RANGE_BATCH_ROWS):
        count = min(RANGE_BATCH_ROWS, stop - low)
        yield low, pa.RecordBatch.from_arrays([pa.nulls(count, schema.field(0).type)], schema=schema)


def behind(rows: BitMap | None, offset: int, file: DataFile) -> BitMap | None:
    """Positions in the range as positions in a file whose first row is at `offset`."""
    if rows is None or not offset:
        return rows
    return (rows & BitMap(range(offset, offset + file.row_count))).shift(-offset)


def side_by_side(streams: Sequence[Pieces]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Batches of several streams, cut to the same positions; positions missing in a stream are skipped.

    Cost: no data is copied.
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
