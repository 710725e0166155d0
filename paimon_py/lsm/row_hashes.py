"""Hashes of rows; rows that `same_values` calls equal have equal hashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Words, numpy_values, slices_of, validity_mask
from paimon_py.codec.file_index.xxhash import xxhash64
from paimon_py.lsm.same_values import as_list
from paimon_py.lsm.sort_encoding import combine_chunks

_NULL = np.uint64(0x5851F42D4C957F2D)
_STEP = np.uint64(0x9E3779B97F4A7C15)


_TEXTS = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


def row_hashes(columns: Sequence[pa.Array], count: int) -> Words:
    """The hashes of `count` rows.

    Cost: about 10 ns a value, more for long strings.
    """
    found: Words = np.zeros(count, np.uint64)
    for column in columns:
        found = _mix(found * _STEP + _hashes(column))
    return found


def _hashes(column: pa.Array) -> Words:
    kind, valid = column.type, validity_mask(column)
    if pa.types.is_struct(kind):
        found = row_hashes([pc.struct_field(column, [index]) for index in range(kind.num_fields)], len(column))
    elif pa.types.is_nested(kind):
        found = _of_lists(as_list(column))
    elif any(is_kind(kind) for is_kind in _TEXTS):
        found = xxhash64(slices_of(column))
    else:
        found = _of_numbers(column)
    return np.where(valid, found, _NULL)


def _of_lists(column: pa.Array) -> Words:
    sizes = numpy_values(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    items = _hashes(combine_chunks(column.flatten()))
    starts = np.cumsum(sizes) - sizes
    places = np.arange(len(items), dtype=np.int64) - np.repeat(starts, sizes)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(_mix(items + places.astype(np.uint64) * _STEP))])
    found: Words = sums[starts + sizes] - sums[starts] + sizes.astype(np.uint64)
    return found


def _of_numbers(column: pa.Array) -> Words:
    if pa.types.is_floating(column.type):
        column = column.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())
    values = numpy_values(column)
    if pa.types.is_decimal(column.type):
        return _mix(values[:, 0].view(np.uint64) + _mix(values[:, 1].view(np.uint64)))
    return _mix(values.astype(np.int64).view(np.uint64))


def _mix(words: Words) -> Words:
    """SplitMix64 of every word."""
    mixed = words + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Words = mixed ^ (mixed >> np.uint64(31))
    return found
