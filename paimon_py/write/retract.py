"""Rows of kind −U and −D, which some merge engines cannot merge."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import numpy_values
from paimon_py.lsm.buffer import MergeBuffer
from paimon_py.lsm.engines import engine_of
from paimon_py.lsm.order import merge_order
from paimon_py.spec.schema import TableSchema


class RetractCheck:
    """Refuses kinds before they are in the table, where no reader and no compaction could merge them any more."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._taken: set[int] = set()

    def check(self, batch: pa.RecordBatch, kinds: pa.Array) -> None:
        """Merge the first row of each kind that takes something back with itself.

        Raises: UsageError or SchemaError if the merge engine does not take it.
        """
        given = numpy_values(kinds)
        for kind in (1, 3):
            if kind in self._taken or not (given == kind).any():
                continue
            at = int(np.argmax(given == kind))
            buffer = MergeBuffer(merge_order(self._schema), engine_of(self._schema), 0, None)
            for _ in range(2):
                buffer.add(batch.slice(at, 1), kinds.slice(at, 1))
            for _ in buffer.drain():
                pass
            self._taken.add(kind)
