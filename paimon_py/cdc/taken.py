"""The changes for one target table, as a step collects them: rows by their columns, converted a few at a time. Pure."""

from __future__ import annotations

import msgspec

from paimon_py.cdc.event import Change, SourceColumn
from paimon_py.cdc.rows import ShapedRows

_ROWS = 1024
"""Rows that are converted together. The fewer, the less memory, and the fewer objects that Python's garbage collector
looks at again and again; the more, the less each of them costs."""


class SeenShape(msgspec.Struct, frozen=True):
    """Columns of changes for a target table, as the first of these changes has them.

    Attributes:
        target: the target table.
        number: the number of the first change's event.
        table: its source table.
        keys: the primary key that it declares.
        columns: the columns.
    """

    target: str
    number: int
    table: str
    keys: tuple[str, ...]
    columns: tuple[SourceColumn, ...]


class TakenChanges:
    """Changes for one target table, with the numbers of their events in the step.

    Attributes:
        shapes: the distinct columns of the changes, in the order in which they occur.
        parts: the rows; those with the same columns in their order.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._open: dict[tuple[SourceColumn, ...], ShapedRows] = {}
        self.shapes: list[SeenShape] = []
        self.parts: list[ShapedRows] = []

    def add(self, number: int, change: Change) -> None:
        """Add a change, after those with smaller numbers."""
        columns = change.columns
        rows = self._open.get(columns)
        if rows is None:
            self.shapes.append(SeenShape(self._target, number, change.table, change.keys, columns))
            rows = self._begin(columns)
        elif len(rows) >= _ROWS:
            rows.build()
            rows = self._begin(columns)
        rows.add(number, change)

    def _begin(self, columns: tuple[SourceColumn, ...]) -> ShapedRows:
        rows = self._open[columns] = ShapedRows(columns)
        self.parts.append(rows)
        return rows
