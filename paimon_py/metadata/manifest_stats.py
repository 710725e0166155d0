"""The record of a manifest in a manifest list: counts, and ranges of partition, bucket, level, schema and row id.

Source: format.md §5.2; Java `ManifestFile.ManifestEntryWriter`, `SimpleStatsCollector`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode, encode
from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.spec.data_file import EMPTY_STATS, Stats
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.types import Atomic, DataType, Root

_SIGN = np.uint64(1 << 63)
_FLOATS = (Root.FLOAT, Root.DOUBLE)


def describe(columns: EntryColumns, name: str, size_bytes: int, partition_types: Sequence[DataType]) -> ManifestFile:
    """The record in a manifest list for a manifest with these entries (at least one)."""
    codes, values = columns.distinct("partition")
    deleted = int(np.count_nonzero(columns.kind))
    first = columns.first_row_id
    tracked = not bool((first == ABSENT).any())
    return ManifestFile(
        name=name,
        size_bytes=size_bytes,
        added_files=len(columns) - deleted,
        deleted_files=deleted,
        partition_stats=partition_stats(values, np.bincount(codes, minlength=len(values)), partition_types),
        schema_id=int(columns.schema_id.max()),
        min_bucket=int(columns.bucket.min()),
        max_bucket=int(columns.bucket.max()),
        min_level=int(columns.level.min()),
        max_level=int(columns.level.max()),
        min_row_id=int(first.min()) if tracked else None,
        max_row_id=int((first + columns.row_count).max()) - 1 if tracked else None,
    )


def partition_stats(partitions: pa.Array, counts: Ints, types: Sequence[DataType]) -> Stats:
    """Full statistics of distinct serialized partitions; `counts`: the number of occurrences of each."""
    if not types:
        return EMPTY_STATS
    columns = decode(partitions, types)
    null_counts = tuple(int(counts[~validity_mask(column)].sum()) for column in columns)
    if len(partitions) == 1:
        row = partitions[0].as_py()
        return Stats(row, row, null_counts)
    bounds = encode([_extremes(column, kind) for column, kind in zip(columns, types, strict=True)], types)
    return Stats(bounds[0].as_py(), bounds[1].as_py(), null_counts)


def may_contain(files: Sequence[ManifestFile], partitions: pa.Array, types: Sequence[DataType]) -> Mask:
    """A mask of the manifests that may contain one of the serialized partitions, by their partition statistics."""
    if not types:
        return np.ones(len(files), np.bool_)
    wanted = decode(partitions, types)
    lows = decode([file.partition_stats.min_values for file in files], types)
    highs = decode([file.partition_stats.max_values for file in files], types)
    found = np.zeros(len(files), np.bool_)
    for index, file in enumerate(files):
        inside = np.ones(len(partitions), np.bool_)
        counts = file.partition_stats.null_counts or ()
        if len(counts) != len(types):
            counts = (None,) * len(types)
        for column, low, high, count, kind in zip(wanted, lows, highs, counts, types, strict=True):
            inside &= _inside(column, low[index], high[index], count, kind)
        found[index] = bool(inside.any())
    return found


def _inside(column: pa.Array, low: pa.Scalar, high: pa.Scalar, null_count: int | None, kind: DataType) -> Mask:
    """A mask of the values that may be between bounds; null bounds mean that all values are null."""
    valid = validity_mask(column)
    nulls = ~valid if null_count is None or null_count > 0 else np.zeros(len(column), np.bool_)
    if isinstance(kind, Atomic) and kind.root in _FLOATS:
        return valid | nulls
    if not low.is_valid or not high.is_valid:
        return nulls
    between = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
    return nulls | (numpy_values(between) & valid)


def _extremes(column: pa.Array, kind: DataType) -> pa.Array:
    """The smallest and largest value as an array of two; two nulls if all are null."""
    if column.null_count == len(column):
        return pa.nulls(2, column.type)
    values = column.drop_null()
    if isinstance(kind, Atomic) and kind.root in _FLOATS:
        order = np.argsort(_float_order(numpy_values(values).astype(np.float64)))
        return values.take(from_numpy(order[[0, -1]], pa.int64()))
    sorted_at = pc.sort_indices(values)
    return values.take(pa.concat_arrays([sorted_at.slice(0, 1), sorted_at.slice(len(sorted_at) - 1)]))


def _float_order(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ints:
    """Keys that sort as Java compares: −0.0 before 0.0, NaN last."""
    bits = np.where(np.isnan(values), np.float64(np.nan), values).view(np.uint64)
    flipped = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    ordered: Ints = (flipped ^ _SIGN).view(np.int64)
    return ordered
