"""Footer statistics as bounds of a table's types.

Source: format.md §9; parquet-format `Statistics`, `ColumnOrder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.codec.columns import binary_array, integer_array, text_array
from paimon_py.formats.reshape import as_leaf

Raw = Any


class GroupStatistics(msgspec.Struct, frozen=True):
    """The statistics of one column in one row group, in the types of the file; None if unknown."""

    low: Raw | None
    high: Raw | None
    null_count: int | None
    has_values: bool


def group_statistics(group: pq.RowGroupMetaData, column: int) -> GroupStatistics:
    """The footer's statistics of one column chunk."""
    statistics = group.column(column).statistics
    if statistics is None:
        return GroupStatistics(None, None, None, True)
    nulls = statistics.null_count
    has_values = nulls is None or nulls < group.num_rows
    if not statistics.has_min_max:
        return GroupStatistics(None, None, nulls, has_values)
    return GroupStatistics(statistics.min_raw, statistics.max_raw, nulls, has_values)


def bound_array(raws: Sequence[Raw | None], file_kind: pa.DataType, kind: pa.DataType) -> pa.Array:
    """Bounds from a footer in the Arrow type `kind`.

    `file_kind`: the Arrow type of the file's column.
    Raises: pa.ArrowInvalid, ValueError or OverflowError if they are invalid for the type.
    """
    if pa.types.is_decimal(file_kind):
        # without a precision check: sums of short decimals may exceed it
        array = integer_array([_to_unscaled(raw) for raw in raws], pa.decimal128(file_kind.precision, file_kind.scale))
    elif pa.types.is_string(file_kind):
        array = text_array([None if raw is None else raw.decode() for raw in raws])
    elif pa.types.is_primitive(file_kind):
        array = integer_array(raws, file_kind)
    else:
        array = binary_array(raws).cast(file_kind)
    return as_leaf(array, kind)


def _to_unscaled(raw: int | bytes | None) -> int | None:
    return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
