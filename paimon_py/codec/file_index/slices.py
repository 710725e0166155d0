"""Bit slices: the numbers of rows as one bitmap per binary digit.

Source: P. O'Neil and D. Quass, "Improved query performance with variant indexes"; Java `BitSliceIndexRoaringBitmap`,
`BitSliceIndexBitmap`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyroaring import BitMap

from paimon_py.codec.bitmaps import bitmap_of
from paimon_py.codec.columns import Ints


class BitSlices:
    """Non-negative numbers of the rows in `existing`; `slices[i]` contains the rows whose digit i is one."""

    __slots__ = ("existing", "slices")

    def __init__(self, existing: BitMap, slices: Sequence[BitMap]) -> None:
        """Raises: ValueError if a row has a digit but no number."""
        if not all(part.issubset(existing) for part in slices):
            raise ValueError("a slice has a row without a number")
        self.existing = existing
        self.slices = slices

    def compare(self, number: int) -> tuple[BitMap, BitMap, BitMap]:
        """The rows with a smaller, an equal, and a greater number."""
        if number < 0:
            return BitMap(), BitMap(), BitMap(self.existing)
        if number >> len(self.slices):
            return BitMap(self.existing), BitMap(), BitMap()
        less, same, greater = BitMap(), BitMap(self.existing), BitMap()
        for digit in range(len(self.slices) - 1, -1, -1):
            ones = self.slices[digit]
            if number >> digit & 1:
                less |= same - ones
                same &= ones
            else:
                greater |= same & ones
                same -= ones
        return less, same, greater


def bit_slices(rows: Ints, numbers: Ints, count: int) -> list[BitMap]:
    """Slices 0 … count − 1 of the numbers of some rows."""
    bits = numbers.astype(np.uint64)
    return [bitmap_of(rows[(bits >> np.uint64(digit)) & np.uint64(1) == 1]) for digit in range(count)]
