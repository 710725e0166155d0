"""Reads sections whose files store columns of the same rows.

Only files from which a column is read are opened. Conditions on a file use only the columns whose newest values it
stores; rows that any of the files skips are skipped.

Source: format.md §24; Java `DataEvolutionSplitRead`, which pushes no conditions into such files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_of
from paimon_py.codec.columns import numpy_values
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.expr.arrow import prepare
from paimon_py.expr.references import columns_of, keeping_failing
from paimon_py.files.column_files import RANGE_BATCH_ROWS, ColumnFiles, Pieces, behind
from paimon_py.files.deletion_filter import alive, select_rows
from paimon_py.files.file_index import MAX_ROWS, has_index
from paimon_py.files.meter import Meter
from paimon_py.metadata.open_table import BucketFiles
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import Request
from paimon_py.scan.row_ids import rows_with_ids
from paimon_py.scan.split import Section
from paimon_py.spec.blobs import AS_DESCRIPTOR
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.types import Field

Dead = Mapping[str, DeletionVector]


class AlignedRows:
    """Reads the aligned sections of one bucket."""

    def __init__(self, files: BucketFiles, request: Request, meter: Meter | None) -> None:
        """`request`: what to read; rows that cannot match may be skipped."""
        self._files = files
        self._predicate = request.predicate
        self._meter = meter
        self._mask = None if request.predicate is None else prepare(keeping_failing(request.predicate))
        self._asks_indexes = request.asks_indexes
        self._ids = request.row_id_mask
        as_refs = Options(request.schema.options).get_bool(AS_DESCRIPTOR)
        self._first_rows = request.first_rows
        self._with_bytes = frozenset[str]() if as_refs else frozenset(request.columns)

    def files_to_open(self, section: Section, fields: Sequence[Field]) -> list[DataFile]:
        """The files from which columns are read."""
        return [file for file, _ in self._column_files(section).choose(fields)]

    def estimate(self, section: Section, fields: Sequence[Field], dead: Dead) -> ReadEstimate:
        """The files and row groups that `read` would read and skip."""
        rows = self._column_files(section)
        chosen, gone = rows.choose(fields), dead.get(rows.anchor.name)
        left = self._by_index(chosen, gone)
        spared = 0 if left is None else rows.row_count - len(gone or ()) - len(left)
        if left is not None and not left:
            return ReadEstimate(len(chosen), spared, ())
        parts = [self._files.reader(file, own).parts(self._predicate, left) for file, own in chosen]
        return ReadEstimate(0, spared, tuple(part for part in parts if part is not None))

    def read(
        self, section: Section, fields: Sequence[Field], dead: Dead, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The live rows of a section that may match.

        Shapes: out — non-empty batches with the Arrow schema of `fields`.
        """
        rows = self._column_files(section)
        wanted = self._wanted_rows(rows, fields, dead)
        if wanted is None or wanted:
            wanted = self._living_matches(rows, fields, wanted, dead, batch_rows)
        if wanted is not None and not wanted:
            return
        found = self._pieces(rows, fields, wanted, batch_rows)
        yield from alive(found, dead.get(rows.anchor.name)) if wanted is None else select_rows(found, wanted)

    def read_with_positions(self, section: Section, fields: Sequence[Field], dead: Dead) -> Pieces:
        """The rows of a section, each batch with the position of its first row; dead rows, and others that cannot
        match, may be included or missing.

        Shapes: out — batches with the Arrow schema of `fields`.
        """
        rows = self._column_files(section)
        wanted = self._wanted_rows(rows, fields, dead)
        if wanted is None or wanted:
            yield from self._pieces(rows, fields, wanted, RANGE_BATCH_ROWS)

    def _wanted_rows(self, rows: ColumnFiles, fields: Sequence[Field], dead: Dead) -> BitMap | None:
        """The live rows that may match; None for all."""
        chosen, gone = rows.choose(fields), dead.get(rows.anchor.name)
        left = self._by_index(chosen, gone)
        if left is not None and not left and self._meter is not None:
            self._meter.files_by_index += len(chosen)
        return self._by_id(rows, left, gone)

    def _living_matches(
        self, rows: ColumnFiles, fields: Sequence[Field], wanted: BitMap | None, dead: Dead, batch_rows: int
    ) -> BitMap | None:
        """The live rows that match, found by the columns of the condition, if that avoids reading bytes of other rows.
        """
        if self._mask is None or self._predicate is None or rows.row_count > MAX_ROWS:
            return wanted
        if not any(field.name in self._with_bytes and field.id in rows.apart(fields) for field in fields):
            return wanted
        gone, found = dead.get(rows.anchor.name), BitMap()
        narrow = [field for field in fields if field.name in columns_of(self._predicate)]
        pieces = self._pieces(rows, narrow, wanted, batch_rows, with_bytes=frozenset())
        for position, batch in pieces:
            matches = np.flatnonzero(numpy_values(self._mask(batch))) + position
            found |= bitmap_of(matches)
        if wanted is not None:
            return found & wanted
        return found if gone is None else found - gone.bitmap(0)

    def _pieces(
        self, rows: ColumnFiles, fields: Sequence[Field], wanted: BitMap | None, batch_rows: int,
        with_bytes: frozenset[str] | None = None,
    ) -> Pieces:  # fmt: skip
        """The columns of a section; BLOBs that are not returned are read as references, to see which ones exist."""
        returned = self._with_bytes if with_bytes is None else with_bytes

        def read(file: DataFile, own: Sequence[Field], offset: int) -> Pieces:
            return self._files.reader(file, own).positions(
                batch_rows=batch_rows, predicate=self._predicate, rows=behind(wanted, offset, file), meter=self._meter
            )

        def read_blobs(field: Field, files: Sequence[DataFile]) -> Pieces:
            column = self._files.blob_column(field, files, rows.first_row_id, rows.row_count)
            return column.pieces(wanted, as_refs=field.name not in returned, first_rows=self._first_rows)

        return rows.rows(fields, read, read_blobs)

    def _column_files(self, section: Section) -> ColumnFiles:
        return ColumnFiles(section.files, self._files.schema_of)

    def _by_index(
        self, chosen: Sequence[tuple[DataFile, Sequence[Field]]], gone: DeletionVector | None
    ) -> BitMap | None:
        """The live rows that may match according to file indexes; None if unknown."""
        found: BitMap | None = None
        if self._predicate is None or not self._asks_indexes:
            return None
        for file, own in chosen:
            rows = self._files.matching(file, self._predicate, own) if has_index(file) else None
            if rows is not None:
                found = rows if found is None else found & rows
        return found if found is None or gone is None else found - gone.bitmap(0)

    def _by_id(self, rows: ColumnFiles, left: BitMap | None, gone: DeletionVector | None) -> BitMap | None:
        """The live rows whose row ids may match; None for all."""
        if self._ids is None or rows.row_count > MAX_ROWS:
            return left
        found = rows_with_ids(self._ids, rows.first_row_id, rows.row_count)
        if left is not None:
            return found & left
        return found if gone is None else found - gone.bitmap(0)
