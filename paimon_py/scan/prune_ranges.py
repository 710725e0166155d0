"""Selects the row ranges of a table with `data-evolution.enabled` that may contain matching rows.

Statistics and indexes of a column count only if no newer file of the same rows contains the column.

Source: format.md §24; Java `DataEvolutionFileStoreScan`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Ints, Mask, from_numpy
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.expr.predicate import Predicate
from paimon_py.expr.prune import Bounds, may_match
from paimon_py.expr.references import columns_of
from paimon_py.files.file_index import matching
from paimon_py.files.physical import ROW_ID_FIELD, TRACKED_IDS
from paimon_py.metadata.row_ranges import RowRanges, SchemaOf, holders, newest
from paimon_py.scan.plan import data_files
from paimon_py.scan.prune_entries import bounds_of
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field
from paimon_py.storage.store import OpenRead


class RangePruner:
    """Prunes the row ranges of some entries."""

    def __init__(
        self, entries: EntryColumns, ranges: RowRanges, predicate: Predicate, schema: TableSchema, schema_of: SchemaOf
    ) -> None:
        """`schema`: the requested schema, to which the predicate is bound."""
        self._entries = entries
        self._ranges = ranges
        self._predicate = predicate
        self._schema_of = schema_of
        wanted = columns_of(predicate)
        self._fields = [field for field in schema.fields if field.name in wanted and field.id not in TRACKED_IDS]
        self._asks_ids = ROW_ID_FIELD.name in wanted and ROW_ID_FIELD in schema.fields
        held = holders(entries, [field.id for field in self._fields], schema_of)
        self._newest = {field_id: newest(entries, ranges, mask) for field_id, mask in held.items()}

    def by_statistics(self) -> Mask:
        """A mask of ranges that may match by statistics and row ids.

        Cost: one pass per distinct (schema, list of columns with statistics).
        """
        counts = self._entries.row_count[self._ranges.first_entries]
        bounds = {field.name: self._bounds(field, counts) for field in self._fields}
        if self._asks_ids:
            first = self._entries.first_row_id[self._ranges.first_entries]
            low, high = from_numpy(first, pa.int64()), from_numpy(first + counts - 1, pa.int64())
            bounds[ROW_ID_FIELD.name] = Bounds(min=low, max=high, null_count=pa.repeat(0, len(counts)))
        return may_match(self._predicate, bounds, from_numpy(counts, pa.int64()))

    def by_index(self, store: OpenRead) -> Mask:
        """A mask of ranges that may match by the indexes in manifest entries; no index files are read.

        Cost: about 100 µs per file with such an index.
        """
        keep: Mask = np.ones(len(self._ranges), np.bool_)
        rows = np.flatnonzero(self._entries.slices("embedded_index").lengths >= 0)
        if not len(rows):
            return keep
        place = np.zeros(len(self._entries), np.int64)
        place[self._ranges.order] = np.repeat(np.arange(len(self._ranges)), self._ranges.counts)
        for row, file in zip(rows.tolist(), data_files(self._entries.take(rows), indexed=True), strict=True):
            at = int(place[row])
            fields = tuple(self._newest_of(row, at, self._schema_of(file.schema_id)))
            found = matching(store, file.name, file, fields, self._predicate)
            keep[at] &= found is None or len(found) > 0
        return keep

    def _newest_of(self, row: int, at: int, written: TableSchema) -> Iterator[Field]:
        """The columns of a condition whose newest values are in a file."""
        for field in written.fields:
            found = self._newest.get(field.id)
            if found is not None and found[0][at] == row and not found[1][at]:
                yield field

    def _bounds(self, field: Field, counts: Ints) -> Bounds:
        """The bounds of a column, one slot per range."""
        entry, tied = self._newest[field.id]
        of_entries = bounds_of(self._entries, field, self._schema_of)
        known = (entry >= 0) & ~tied
        taken = from_numpy(np.where(known, entry, 0), pa.int64(), known)
        nulls = of_entries.null_count
        assert nulls is not None
        null_count = pc.coalesce(nulls.take(taken), from_numpy(counts, pa.int64(), entry < 0))
        return Bounds(min=of_entries.min.take(taken), max=of_entries.max.take(taken), null_count=null_count)
