"""The order of rows, value by value, as a reference."""

from __future__ import annotations

import functools
import math


def word(value):
    """What values compare by: NaN is the largest, −0.0 lies below 0.0."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return value.encode() if isinstance(value, str) else value


def ordered(rows, order):
    """Rows (dicts) sorted by names, each ascending or descending; nulls last."""

    def compare(left, right):
        for name, descending in order:
            first, second = left[name], right[name]
            if (first is None) != (second is None):
                return 1 if first is None else -1
            if first is not None and word(first) != word(second):
                return (-1 if word(first) < word(second) else 1) * (-1 if descending else 1)
        return 0

    return sorted(rows, key=functools.cmp_to_key(compare))
