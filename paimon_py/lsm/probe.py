"""Single keys of a batch as Python values that compare in key order, for the few comparisons between batches.

Bulk work uses `lsm.order`; `KeyProbe` is for the few keys that position the window of a merge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, cast

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import numpy_values
from paimon_py.lsm.sort_encoding import float_words

Key = tuple[tuple[object, ...], ...]


class KeyProbe:
    """Random access to the keys of some rows.

    Shapes: key columns of equal length; `key(row)` is a tuple that compares as the format orders keys.
    Cost: about 1 µs per column and call.
    """

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._cells = [_cells(column) for column in columns]
        self._count = len(columns[0])
        first = columns[0]
        self._plain = numpy_values(first) if len(columns) == 1 and _is_plain(first) else None

    def __len__(self) -> int:
        return self._count

    def key(self, row: int) -> Key:
        """The key of one row."""
        return tuple(cell(row) for cell in self._cells)

    def largest(self) -> Key:
        """The largest key of all rows."""
        if self._plain is not None:
            return self.key(int(np.argmax(self._plain)))
        return max(map(self.key, range(self._count)))

    def ascends(self, *, strictly: bool = True) -> bool | None:
        """Whether every key is larger than the previous one, or not smaller unless `strictly`.

        None if the answer costs more than one comparison a row.
        """
        if self._plain is None:
            return None
        later, earlier = self._plain[1:], self._plain[:-1]
        return bool((later > earlier if strictly else later >= earlier).all())

    def count_up_to(self, bound: Key, *, included: bool = True) -> int:
        """The number of leading rows whose key is at most `bound`, or below it unless `included`."""
        if self._plain is not None and bound and len(bound[0]) == 2:
            side: Literal["left", "right"] = "right" if included else "left"
            return int(np.searchsorted(self._plain, cast(int, bound[0][1]), side=side))
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            key = self.key(middle)
            if key <= bound if included else key < bound:
                low = middle + 1
            else:
                high = middle
        return low


def _is_plain(column: pa.Array) -> bool:
    """Whether keys compare as the stored integers."""
    kind = column.type
    return not column.null_count and bool(pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind))


def _cells(column: pa.Array) -> Callable[[int], tuple[object, ...]]:
    plain = _plain_cells(column)
    if not column.null_count:
        return lambda row: (1, plain(row))
    return lambda row: (1, plain(row)) if column[row].is_valid else (0,)


def _plain_cells(column: pa.Array) -> Callable[[int], object]:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda row: column[row].as_py().encode()
    if pa.types.is_decimal(kind):
        halves = numpy_values(column)
        return lambda row: (int(halves[row, 1].view(np.int64)), int(halves[row, 0]))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return lambda row: column[row].as_py()
    if pa.types.is_floating(kind):
        words = float_words(column)
        return lambda row: int(words[row])
    values = numpy_values(column)
    return lambda row: int(values[row])
