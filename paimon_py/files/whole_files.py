"""Encodes many small files at once: keys, numbers and statistics of all of them are derived together.

What is done once for each file costs more than its rows if these are few. The result is what `RollingWriter` makes of
the rows of each file alone.

Source: format.md §8, §9, §12.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.arrays import Ints
from paimon_py.codec.binary_row import encode
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.files.physical import key_copy
from paimon_py.files.stats import StatsMode, needs_bounds, stats_of_slices
from paimon_py.files.writer import FileLayout
from paimon_py.formats.base import SlicesEncoder, encoding
from paimon_py.formats.slice_bounds import SliceBounds, slice_bounds
from paimon_py.spec.data_file import EMPTY_STATS, DataFile, Stats
from paimon_py.spec.schema import SEQUENCE_NUMBER, VALUE_KIND
from paimon_py.spec.types import Atomic, Field, Root


class WholeFile(NamedTuple):
    """The bytes of a file, and its manifest entry but for name, place and time."""

    data: bytes
    entry: DataFile


def encodes_whole_files(layout: FileLayout) -> bool:
    """Whether files of the layout can be encoded many at once: files of keyed rows without indexes."""
    if not layout.key_fields or layout.indexes or layout.apart or layout.is_part or layout.holds_row_ids:
        return False
    encoder = layout.encoder
    return isinstance(encoder, SlicesEncoder) and encoder.encodes_slices


def whole_files(layout: FileLayout, batch: pa.RecordBatch, cuts: Ints) -> Iterator[WholeFile]:
    """A file for the rows between each two `cuts`, of which none is equal to the next.

    Shapes: `batch` as `RollingWriter.write` takes it, sorted by key from cut to cut.
    Cost: 5-100 ns a row and column for the bounds, then the encoding of one file at a time.
    Raises:
        SchemaError: rows cannot be written.
    """
    encoder = layout.encoder
    assert isinstance(encoder, SlicesEncoder)
    entries = _entries(layout, encoder, batch, cuts)
    with encoding(layout.format_name):
        files = encoder.slices(layout.physical(batch), cuts.tolist())
        for data, entry in zip(files, entries, strict=True):
            yield WholeFile(data, entry)


def _entries(layout: FileLayout, encoder: SlicesEncoder, batch: pa.RecordBatch, cuts: Ints) -> list[DataFile]:
    count, starts = len(cuts) - 1, cuts[:-1]
    numbers = numpy_values(batch.column(SEQUENCE_NUMBER))
    deletes = np.add.reduceat(numpy_values(batch.column(VALUE_KIND)) & 1, starts, dtype=np.int64)
    bounds = _Bounds(layout, encoder, batch, cuts)
    key_types = [field.type for field in layout.key_fields]
    low_keys, high_keys = (
        encode([batch.column(field.name).take(rows) for field in layout.key_fields], key_types).to_pylist()
        for rows in (from_numpy(starts, pa.int64()), from_numpy(cuts[1:] - 1, pa.int64()))
    )
    found = zip(
        np.diff(cuts).tolist(), low_keys, high_keys, bounds.key_stats(count), bounds.value_stats(count),
        np.minimum.reduceat(numbers, starts).tolist(), np.maximum.reduceat(numbers, starts).tolist(), deletes.tolist(),
        strict=True,
    )  # fmt: skip
    return [
        DataFile(
            name="",
            size_bytes=0,
            row_count=rows,
            min_key=low_key,
            max_key=high_key,
            key_stats=key_stats,
            value_stats=value_stats,
            min_sequence=low_number,
            max_sequence=high_number,
            schema_id=layout.schema_id,
            level=layout.level,
            delete_row_count=deleted,
            source=layout.source,
        )
        for rows, low_key, high_key, key_stats, value_stats, low_number, high_number, deleted in found
    ]


class _Bounds:
    """The statistics of all slices; a column's bounds are computed once for itself and its copy among the keys."""

    def __init__(self, layout: FileLayout, encoder: SlicesEncoder, batch: pa.RecordBatch, cuts: Ints) -> None:
        self._layout = layout
        self._ordered = encoder.ordered_columns
        self._batch = batch
        self._cuts = cuts
        self._known: dict[tuple[str, bool], SliceBounds] = {}

    def key_stats(self, count: int) -> list[Stats]:
        keys = self._layout.key_fields
        if not keys:
            return [EMPTY_STATS] * count
        stored = [key_copy(field) if self._layout.repeats_keys else field for field in keys]
        return self._stats(keys, stored, [self._layout.key_mode] * len(keys), count)

    def value_stats(self, count: int) -> list[Stats]:
        fields = self._layout.fields
        return self._stats(fields, fields, self._layout.modes, count)

    def _stats(
        self, fields: Sequence[Field], stored: Sequence[Field], modes: Sequence[StatsMode], count: int
    ) -> list[Stats]:
        bounds = [
            self._of(field, ordered=file_field.name in self._ordered and needs_bounds(mode, field.type))
            for field, file_field, mode in zip(fields, stored, modes, strict=True)
        ]
        return stats_of_slices(bounds, [field.type for field in fields], modes, count)

    def _of(self, field: Field, *, ordered: bool) -> SliceBounds:
        if not isinstance(field.type, Atomic) or field.type.root is Root.VARIANT:
            return SliceBounds()
        known = self._known.get((field.name, ordered))
        if known is None:
            known = slice_bounds(self._batch.column(field.name), self._cuts, ordered=ordered)
            self._known[field.name, ordered] = known
        return known
