"""Minimum, maximum and null count of the columns of a file, computed while it is written.

Source: format.md §9; Java `SimpleColStats`, `ParquetSimpleStatsExtractor`, `OrcSimpleStatsExtractor`.
"""

from __future__ import annotations

import math
from collections.abc import Container

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import integer_array, numpy_values, scalar_array, validity_mask
from paimon_py.formats.base import ColumnBounds
from paimon_py.spec.types import Atomic, Field


class RunningBounds:
    """Bounds of one column, fed array by array.

    With `ordered` False only nulls are counted. Floating-point columns that contain NaN get no bounds: readers order
    NaN differently, and without bounds none of them skips matching rows.
    """

    def __init__(self, kind: pa.DataType, *, ordered: bool = True) -> None:
        self.kind = kind
        self.ordered = ordered
        self.null_count = 0
        self._ends: list[pa.Array] = []

    def add(self, array: pa.Array) -> None:
        """Add the values and nulls of `array`."""
        self.null_count += array.null_count
        self.add_values(array)

    def add_values(self, array: pa.Array) -> None:
        """Add the values, but not the nulls, of `array`."""
        if not self.ordered or array.null_count == len(array):
            return
        ends = _floats(array) if pa.types.is_floating(self.kind) else _min_max(array)
        if ends is None:
            self.ordered = False
        else:
            self.include(ends)

    def include(self, ends: pa.Array) -> None:
        """Widen the bounds to a least and a greatest value."""
        self._ends.append(ends)

    def result(self) -> ColumnBounds:
        """The bounds of everything added."""
        if not self.ordered or not self._ends:
            return ColumnBounds(None, self.null_count)
        if len(self._ends) == 1:
            return ColumnBounds(self._ends[0], self.null_count)
        lows, highs = (pa.concat_arrays([ends.slice(at, 1) for ends in self._ends]) for at in (0, 1))
        return ColumnBounds(scalar_array([pc.min(lows), pc.max(highs)], lows.type), self.null_count)


def running_bounds(field: Field, without: Container[str]) -> RunningBounds:
    """The bounds of a column of a new file; for nested columns, and those in `without`, only nulls are counted."""
    ordered = isinstance(field.type, Atomic) and field.name not in without
    return RunningBounds(to_arrow_type(field.type), ordered=ordered)


def _min_max(array: pa.Array) -> pa.Array:
    found = pc.min_max(array)
    return scalar_array([found["min"], found["max"]], array.type)


def _floats(array: pa.Array) -> pa.Array | None:
    """Bounds without NaN, zeros widened to both signs; None if there is a NaN."""
    values = numpy_values(array)
    if array.null_count:
        values = values[validity_mask(array)]
    low, high = float(values.min()), float(values.max())
    if math.isnan(low):
        return None
    return integer_array([low or -0.0, high or 0.0], array.type)
