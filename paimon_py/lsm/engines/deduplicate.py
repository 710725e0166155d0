"""The deduplicate merge engine: the newest version of a key wins, whatever its kind.

Source: format.md §12.3; Java `DeduplicateMergeFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import numpy_values
from paimon_py.lsm.groups import Groups, Merged
from paimon_py.lsm.words import Mask, combined
from paimon_py.spec.schema import VALUE_KIND


def deduplicate(groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:  # noqa: ARG001
    """Keep the newest row of every key.

    Shapes: groups of a window → one row number per key, in key order; no column is read.
    Cost: 1 ns a row.
    """
    return Merged(groups.newest_rows)


def deduplicate_ignoring_deletes(groups: Groups, columns: Mapping[str, pa.ChunkedArray]) -> Merged:
    """Keep the newest row that is not −U or −D (option `ignore-delete`).

    A key of nothing but those keeps its newest row.
    """
    if VALUE_KIND not in columns or not len(groups.multiple):
        return Merged(groups.newest_rows)
    adds = _adds(columns[VALUE_KIND])[groups.order]
    positions = np.where(adds, np.arange(len(adds)), -1)
    newest_add = np.maximum.reduceat(positions, groups.firsts)
    return Merged(groups.order[np.where(newest_add >= 0, newest_add, groups.ends - 1)])


def _adds(kinds: pa.ChunkedArray) -> Mask:
    adds: Mask = (numpy_values(combined(kinds)) & 1) == 0
    return adds
