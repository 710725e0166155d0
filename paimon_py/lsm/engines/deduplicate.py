"""The deduplicate merge engine: the newest version of a key wins, regardless of its kind.

Source: format.md §12.3; Java `DeduplicateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import numpy_values
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.schema import VALUE_KIND


class Deduplicate(msgspec.Struct, frozen=True):
    """Keep the newest row of every key.

    `ignore_delete`: rows of kind −U and −D are ignored (option `ignore-delete`); a key with only such rows keeps its
    newest row.
    """

    ignore_delete: bool = False

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """Only the wanted columns."""
        return wanted

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """The row number of the newest row per key.

        Cost: 1 ns a row; at most the kinds are read.
        """
        if not self.ignore_delete or VALUE_KIND not in columns or not len(groups.multiple):
            return Merged(groups.newest_rows)
        adds = ((numpy_values(combine_chunks(columns[VALUE_KIND])) & 1) == 0)[groups.order]
        positions = np.where(adds, np.arange(len(adds)), -1)
        newest_add = np.maximum.reduceat(positions, groups.firsts)
        return Merged(groups.order[np.where(newest_add >= 0, newest_add, groups.ends - 1)])
