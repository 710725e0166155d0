"""Sorts more rows than fit into memory: takes batches, returns the same rows in the order of a clustering.

Rows are collected up to the size of a run, and sorted runs are written to local disk; finally they are merged in
windows. Every row's number is the last part of its key, so rows that are equal in all columns keep their order of
arrival, and a window never holds more than its share even if all rows are equal.

Source: Java `Sorter`, `BinaryExternalSortBuffer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, combine, from_numpy
from paimon_py.codec.row_size import pieces_of, row_bytes
from paimon_py.lsm.curves import hilbert, z_order
from paimon_py.lsm.merge import MergeWindow, Plan
from paimon_py.lsm.order import MergeOrder, sort_batch
from paimon_py.lsm.spill import EveryRow, SpilledRuns
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.schema import TableSchema, unused_name
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

_BATCH_ROWS = 65_536
_LONG = parse_type("BIGINT NOT NULL")


class ExternalSort:
    """One sort. The caller must always call `clear` at the end.

    Shapes: batches with the columns of the table.
    """

    def __init__(
        self, schema: TableSchema, clustering: Clustering, spilled: SpilledRuns, window: MergeWindow
    ) -> None:
        self._schema = schema
        self._clustering = clustering
        self._spilled = spilled
        self._window = window
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._rows = 0
        self._row_name, self._place_name = unused_name("_ROW", schema.names), unused_name("_PLACE", schema.names)
        self._compared = tuple(schema.field(name) for name in clustering.columns)
        self._keys: tuple[Field, ...] = ()

    def sort(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sort all rows.

        Cost: `run_bytes` of rows in memory and their sorted copy, then one merge window and a block of every run. Rows
            that fit into one run are never written to disk.
        Raises: StorageError: the local disk failed.
        """
        for batch in batches:
            for piece in pieces_of(batch, self._spilled.settings.run_bytes):
                self._batches.append(piece)
                self._bytes += row_bytes(piece)
                if self._bytes >= self._spilled.settings.run_bytes:
                    self._spilled.add(self._run())
        names = list(self._schema.names)
        if not len(self._spilled):
            yield from (batch.select(names) for batch in self._run())
            return
        if self._batches:
            self._spilled.add(self._run())
        plan = Plan(
            order=MergeOrder(keys=self._keys), engine=EveryRow(), drop_deletes=False,
            window_rows=self._window.rows, window_bytes=self._window.size_bytes,
        )  # fmt: skip
        yield from (batch.select(names) for batch in self._spilled.merge(plan))

    def clear(self) -> None:
        """Delete the spilled runs.

        Raises:
            StorageError: a run could not be deleted.
        """
        self._batches = []
        self._spilled.clear()

    def _run(self) -> Iterator[pa.RecordBatch]:
        """The collected rows in order, with the columns that order them; releases the rows."""
        if not self._batches:
            return
        table = pa.Table.from_batches(self._batches)
        self._batches, self._bytes = [], 0
        columns = {name: combine(table.column(name)) for name in table.column_names}
        del table
        count = len(columns[self._schema.names[0]])
        places = self._places(columns)
        keys = tuple(Field(-1, name, _LONG) for name in places) or self._compared
        columns |= places
        columns[self._row_name] = from_numpy(np.arange(self._rows, self._rows + count), pa.int64())
        self._rows += count
        self._keys = (*keys, Field(-1, self._row_name, _LONG))
        order, _ = sort_batch(MergeOrder(keys=keys), columns, runs_sorted=False)
        yield from _take(columns, order)

    def _places(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The positions of rows on the curve; empty if columns are compared directly."""
        wanted = [columns[name] for name in self._clustering.columns]
        if self._clustering.strategy == "order":
            return {}
        if self._clustering.strategy == "hilbert":
            found = hilbert(wanted)
        else:
            found = z_order(wanted, text_bytes=self._clustering.text_bytes)
        return {f"{self._place_name}{number}": column for number, column in enumerate(found)}


def _take(columns: dict[str, pa.Array], order: Ints) -> Iterator[pa.RecordBatch]:
    """The rows in the given order, `_BATCH_ROWS` at a time."""
    schema = pa.schema([pa.field(name, column.type) for name, column in columns.items()])
    for start in range(0, len(order), _BATCH_ROWS):
        index = from_numpy(order[start : start + _BATCH_ROWS], pa.int64())
        yield pa.RecordBatch.from_arrays([column.take(index) for column in columns.values()], schema=schema)
