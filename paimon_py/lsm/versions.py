"""The versions of the keys that need merging: the part of a window that a combining engine processes.

Source: format.md §12; docs/decisions/0012; measurements in benchmarks/README.md.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import AnyArray, Ints, Mask, from_numpy, ranges, validity_mask
from paimon_py.lsm.groups import Groups
from paimon_py.lsm.sort_encoding import combine_chunks


class Versions:
    """All rows of the merging keys of a window, key by key, oldest first.

    `rows`: their row numbers in the window. `firsts`, `ends`: the range of each key. Positions are indexes into `rows`.
    """

    def __init__(self, groups: Groups) -> None:
        firsts, ends = groups.firsts[groups.multiple], groups.ends[groups.multiple]
        sizes = ends - firsts
        whole = len(groups.multiple) == len(groups)
        self._groups = groups
        self.rows: Ints = groups.order if whole else groups.order[ranges(firsts, sizes)]
        self.ends: Ints = np.cumsum(sizes)
        self.firsts: Ints = self.ends - sizes
        self._lasts = self.ends - 1
        self._numbers = np.arange(1, len(self.rows) + 1, dtype=np.int32)
        self.begins: Mask = np.zeros(len(self.rows), np.bool_)
        self.begins[self.firsts] = True

    def __len__(self) -> int:
        return len(self.rows)

    def valid(self, column: pa.ChunkedArray) -> Mask | None:
        """A mask of the versions with a value; None if all have one."""
        if not column.null_count:
            return None
        chunks = column.chunks
        masks = [validity_mask(chunk) for chunk in chunks]
        valid: Mask = (masks[0] if len(masks) == 1 else np.concatenate(masks))[self.rows]
        return None if valid.all() else valid

    def last(self, wanted: Mask) -> Ints:
        """The position of every key's newest version for which `wanted` is true; −1 if there is none."""
        found: Ints = np.maximum.accumulate(self._numbers * wanted)[self._lasts].astype(np.int64) - 1
        found[found < self.firsts] = -1
        return found

    def take(self, column: pa.ChunkedArray, positions: Ints | None = None) -> pa.Array:
        """The values of all versions, or of those at the given positions."""
        rows = self.rows if positions is None else self.rows[positions]
        return combine_chunks(column.take(from_numpy(rows, pa.int64())))

    def row_numbers(self, positions: Ints) -> Ints:
        """One window row per key of the window: the one at `positions` for merging keys, the only row of others."""
        if len(positions) == len(self._groups):
            return self.rows[positions]
        rows: Ints = self.spread_items(self._groups.newest_rows, self.rows[positions])
        return rows

    def pick(self, column: pa.ChunkedArray, rows: Ints, valid: Mask | None = None) -> pa.Array:
        """The column at window rows, one per key; null for the merging keys for which `valid` is false."""
        if valid is None or valid.all():
            return combine_chunks(column.take(from_numpy(rows, pa.int64())))
        chosen = self.spread_items(np.ones(len(rows), np.bool_), valid)
        return combine_chunks(column.take(from_numpy(rows, pa.int64(), chosen)))

    def spread_items(self, alone: AnyArray, merged: AnyArray) -> AnyArray:
        """One item per key of the window: `alone` has an item for each, which `merged` replaces for merging keys."""
        if len(merged) == len(alone):
            return merged
        out: AnyArray = alone.copy()
        out[self._groups.multiple] = merged
        return out

    def compute(self, column: pa.ChunkedArray, merged: pa.Array) -> pa.Array:
        """A column with one value per key of the window: `merged` for merging keys, the only one of others."""
        keys, multiple = len(self._groups), self._groups.multiple
        if len(multiple) == keys:
            return merged
        alone = np.ones(keys, np.bool_)
        alone[multiple] = False
        singles = combine_chunks(column.take(from_numpy(self._groups.newest_rows[alone], pa.int64())))
        places = np.empty(keys, np.int64)
        places[alone] = np.arange(len(singles))
        places[multiple] = np.arange(len(singles), keys)
        return pa.concat_arrays([singles, merged]).take(from_numpy(places, pa.int64()))
