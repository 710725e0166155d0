"""Minimum, maximum and null count of the columns of a file, computed while it is written.

Source: format.md §9; Java `SimpleColStats`, `ParquetSimpleStatsExtractor`, `OrcSimpleStatsExtractor`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import integer_array, numpy_values, scalar_array, validity_mask
from paimon_py.formats.base import ColumnBounds


class RunningBounds:
    """Bounds of one column, fed array by array.

    With `ordered` False only nulls are counted. Floating-point columns that contain NaN get no bounds: readers order
    NaN differently, and without bounds none of them skips matching rows.
    """

    def __init__(self, kind: pa.DataType, *, ordered: bool = True) -> None:
        self.kind = kind
        self.ordered = ordered
        self.null_count = 0
        self._lows: list[pa.Scalar] = []
        self._highs: list[pa.Scalar] = []

    def add(self, array: pa.Array) -> None:
        """Add the values and nulls of `array`."""
        self.null_count += array.null_count
        self.add_values(array)

    def add_values(self, array: pa.Array) -> None:
        """Add the values, but not the nulls, of `array`."""
        if not self.ordered or array.null_count == len(array):
            return
        low, high = _floats(array) if pa.types.is_floating(self.kind) else _min_max(array)
        if low is None:
            self.ordered = False
        else:
            self.include(low, high)

    def include(self, low: pa.Scalar, high: pa.Scalar) -> None:
        """Widen the bounds to `low` and `high`."""
        self._lows.append(low)
        self._highs.append(high)

    def result(self) -> ColumnBounds:
        """The bounds of everything that was added."""
        if not self.ordered or not self._lows:
            return ColumnBounds(None, None, self.null_count)
        return ColumnBounds(least(self._lows), greatest(self._highs), self.null_count)


def least(scalars: Sequence[pa.Scalar]) -> pa.Scalar:
    """The minimum of scalars of one type (no NaN)."""
    return scalars[0] if len(scalars) == 1 else pc.min(scalar_array(scalars, scalars[0].type))


def greatest(scalars: Sequence[pa.Scalar]) -> pa.Scalar:
    """The maximum of scalars of one type (no NaN)."""
    return scalars[0] if len(scalars) == 1 else pc.max(scalar_array(scalars, scalars[0].type))


def _min_max(array: pa.Array) -> tuple[pa.Scalar, pa.Scalar]:
    found = pc.min_max(array)
    return found["min"], found["max"]


def _floats(array: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Bounds of values without NaN, with zeros widened to both signs; None, None if there is a NaN."""
    values = numpy_values(array)
    if array.null_count:
        values = values[validity_mask(array)]
    low, high = values.min(), values.max()
    if np.isnan(low):
        return None, None
    bounds = integer_array([float(low) or -0.0, float(high) or 0.0], array.type)
    return bounds[0], bounds[1]
