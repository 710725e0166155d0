"""Lookups by primary key in several processes, all in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import combine, from_numpy, validity_mask
from paimon_py.lookup.lookups import Lookups
from paimon_py.table.table import Table


class LookupPart:
    """Runs in another process: takes keys, returns columns of the rows with these keys. Can be pickled.

    All processes read the snapshot that was the latest when the part was created, and cache what they read of its
    files.
    """

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._schema = table.schema
        self._columns = list(columns)
        self._snapshot = table._root.latest()
        self._lookups = Lookups(table._root)

    def __call__(self, keys: pa.Table) -> pa.Table:
        """The columns for each key, in the order of `keys`; NULL if no row has the key, or if the key is NULL."""
        known = np.logical_and.reduce([validity_mask(combine(column)) for column in keys.columns])
        if self._snapshot is None:
            known = np.zeros(keys.num_rows, bool)
        rows = self._lookups.rows(
            self._schema, keys.filter(pa.array(known)), self._columns, "null", at=self._snapshot
        )
        return rows.take(from_numpy(np.cumsum(known) - 1, pa.int64(), known))
