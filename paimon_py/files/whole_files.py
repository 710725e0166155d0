"""Encodes many small files at once: keys, numbers and statistics of all of them are derived together.

What is done once for each file costs more than its rows if these are few. The result is what `RollingWriter` makes of
the rows of each file alone.

Source: format.md §8, §9, §12.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.arrays import Ints
from paimon_py.codec.binary_row import encode
from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.files.layout import FileLayout
from paimon_py.files.physical import key_copy
from paimon_py.files.stats import StatsMode, needs_bounds, stats_of_slices
from paimon_py.formats.base import SlicesEncoder, encoding
from paimon_py.formats.slice_bounds import SliceBounds, slice_bounds
from paimon_py.spec.data_file import EMPTY_ROW, EMPTY_STATS, DataFile, Stats
from paimon_py.spec.schema import SEQUENCE_NUMBER, VALUE_KIND
from paimon_py.spec.types import Atomic, Field, Root

_SMALL_BYTES = 512 << 10
_STEPS_PER_FILE = 64
"""Rows that take so small a part of a file's target size are certainly written at one step, to one file."""


class WholeFile(NamedTuple):
    """The bytes of a file, and its manifest entry but for name, place and time, and without a key its numbers."""

    data: bytes
    entry: DataFile


def is_whole_file(layout: FileLayout, rows: int, size_bytes: int) -> bool:
    """Whether so many rows in so much memory may be a file of `whole_files`: one file, without indexes."""
    if not 0 < rows <= layout.target_rows:
        return False
    if size_bytes > min(_SMALL_BYTES, layout.target_size_bytes // _STEPS_PER_FILE):
        return False
    if layout.indexes or layout.apart or layout.packed or layout.is_part or layout.holds_row_ids:
        return False
    # asked of every small bucket, and comparing an encoder with a protocol takes 0.1 ms
    encodes_slices: bool = getattr(layout.encoder, "encodes_slices", False)
    return encodes_slices


def whole_files(layout: FileLayout, batch: pa.RecordBatch, cuts: Ints) -> Iterator[WholeFile]:
    """A file for the rows between consecutive `cuts`, which are distinct.

    Shapes: `batch` as `RollingWriter.write` takes it, with a key sorted by it from cut to cut.
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
    bounds = _Bounds(layout, encoder, batch, cuts)
    counts = np.diff(cuts).tolist()
    found = zip(counts, bounds.value_stats(len(counts)), _key_parts(layout, batch, cuts, bounds), strict=True)
    return [
        DataFile(
            name="",
            size_bytes=0,
            row_count=rows,
            min_key=keyed.low_key,
            max_key=keyed.high_key,
            key_stats=keyed.stats,
            value_stats=value_stats,
            min_sequence=keyed.low_number,
            max_sequence=keyed.high_number,
            schema_id=layout.schema_id,
            level=layout.level,
            delete_row_count=keyed.deletes,
            source=layout.source,
        )
        for rows, value_stats, keyed in found
    ]


class _Keyed(NamedTuple):
    """The bounds of keys and system columns in a manifest entry."""

    low_key: bytes = EMPTY_ROW
    high_key: bytes = EMPTY_ROW
    stats: Stats = EMPTY_STATS
    low_number: int = 0
    high_number: int = 0
    deletes: int = 0


def _key_parts(layout: FileLayout, batch: pa.RecordBatch, cuts: Ints, bounds: _Bounds) -> Iterable[_Keyed]:
    count, starts = len(cuts) - 1, cuts[:-1]
    if not layout.key_fields:
        return [_Keyed()] * count
    numbers = numpy_values(batch.column(SEQUENCE_NUMBER))
    deletes = np.add.reduceat(numpy_values(batch.column(VALUE_KIND)) & 1, starts, dtype=np.int64)
    key_types = [field.type for field in layout.key_fields]
    low_keys, high_keys = (
        encode([batch.column(field.name).take(rows) for field in layout.key_fields], key_types).to_pylist()
        for rows in (from_numpy(starts, pa.int64()), from_numpy(cuts[1:] - 1, pa.int64()))
    )
    return map(
        _Keyed, low_keys, high_keys, bounds.key_stats(count),
        np.minimum.reduceat(numbers, starts).tolist(), np.maximum.reduceat(numbers, starts).tolist(), deletes.tolist(),
    )  # fmt: skip


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
