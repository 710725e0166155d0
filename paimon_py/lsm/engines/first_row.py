"""The first-row merge engine: the oldest version of a key wins.

Source: format.md §12.6; Java `FirstRowMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Mask, numpy_values
from paimon_py.errors import UsageError
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.sort_encoding import combine_chunks
from paimon_py.spec.engine_rules import NO_RETRACTS
from paimon_py.spec.schema import VALUE_KIND


class FirstRow(msgspec.Struct, frozen=True):
    """Keep the oldest row of every key.

    `ignore_delete`: rows of kind −U and −D are ignored (option `ignore-delete`); a key with only such rows keeps its
    newest row. Without it they are refused if the key has another version.
    """

    ignore_delete: bool = False

    def inputs(self, wanted: frozenset[str]) -> frozenset[str]:
        """Only the wanted columns."""
        return wanted

    def __call__(self, groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
        """The row number of the oldest row per key.

        Cost: 1 ns a row; at most the kinds are read.
        Raises: UsageError for −U and −D.
        """
        if VALUE_KIND not in columns or not len(groups.multiple):
            return Merged(groups.oldest_rows)
        adds: Mask = ((numpy_values(combine_chunks(columns[VALUE_KIND])) & 1) == 0)[groups.order]
        if adds.all():
            return Merged(groups.oldest_rows)
        found = np.minimum.reduceat(np.where(adds, np.arange(len(adds)), len(adds)), groups.firsts)
        if not self.ignore_delete:
            refused = np.add.reduceat(~adds, groups.firsts, dtype=np.int64)[groups.multiple]
            if refused.any():
                raise UsageError(NO_RETRACTS["first-row"])
        return Merged(groups.order[np.where(found < len(adds), found, groups.ends - 1)])
