"""Whether other commits set columns of rows since the state from which new values were computed.

Source: format.md §24; Java `ConflictDetection.checkRowIdColumnConflicts`, `rowIdCheckConflict`.
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.errors import CommitConflictError
from paimon_py.metadata.history import HistoryGap, SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.row_ranges import holders
from paimon_py.rows.row_values import RowValues
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot


def require_same_cells(table: OpenTable, given: RowValues, read: Snapshot, latest: Snapshot | None) -> None:
    """Refuse values for columns of rows that other commits wrote after the snapshot `read`.

    Files store a column for a range of rows, so another commit's file counts for all rows of its range, as in Java.

    Cost: a get per snapshot in between, and two for its delta.
    Raises: CommitConflictError
    """
    history = SnapshotLog(table.root).after(Base.of(read), latest)
    if isinstance(history, HistoryGap):
        raise CommitConflictError(
            f"nothing was committed: snapshot {read.id}, from which the values were computed, or one after it is no"
            " longer in the history of the table; read the rows again",
            table=table.root.path,
        )
    for one in history.each():
        (snapshot,) = one.snapshots
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
            continue
        entries = one.entries()
        if isinstance(entries, HistoryGap):
            message = f"nothing was committed: snapshot {snapshot.id} has expired"
            raise CommitConflictError(message, table=table.root.path)
        name = _written_column(table, given, entries)
        if name is not None:
            raise CommitConflictError(
                f"nothing was committed: snapshot {snapshot.id} set column {name} of rows whose new values were"
                f" computed from snapshot {read.id}; read the rows again",
                table=table.root.path,
            )


def _written_column(table: OpenTable, given: RowValues, entries: EntryColumns) -> str | None:
    """A column that entries write, for ranges that overlap the given rows."""
    first, last = entries.first_row_id, entries.first_row_id + entries.row_count - 1
    touched = np.searchsorted(given.ids, first) < np.searchsorted(given.ids, last, side="right")
    rows = np.flatnonzero(touched & (first != ABSENT) & (entries.kind == FileKind.ADD))
    fields = {table.schema.field(name).id: name for name in given.names}
    held = holders(entries.take(rows), fields, table.root.schemas.get)
    return next((fields[field_id] for field_id, mask in held.items() if mask.any()), None)
