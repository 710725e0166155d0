"""The keys that other commits wrote between two snapshots.

Rows with different keys are independent: an operation's results for all other keys remain valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.commit.changes import Bucket
from paimon_py.metadata.history import HistoryGap, SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile, FileKind
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError

_OF_SAME_ROWS = (CommitKind.COMPACT, CommitKind.ANALYZE)


def late_keys(
    table: OpenTable, before: Snapshot, after: Snapshot, limits: Mapping[Bucket, int]
) -> dict[Bucket, pa.Table]:
    """The keys that other commits wrote after one snapshot and up to a later one, possibly with repetitions.

    Shapes: out — the columns of the primary key, for every bucket of `limits` with at most that many new rows.
      Empty if the keys cannot be determined any more, or if other commits did more than add rows and compact.
    Cost: a get per snapshot in between and two for its delta, plus the key columns of the new files.
    Raises: CorruptionError, StorageError
    """
    try:
        files = _files(table.root, before, after, limits)
        if files is None:
            return {}
        few = {at: own for at, own in files.items() if sum(file.row_count for file in own) <= limits[at]}
        return {at: _keys(table, at, own) for at, own in few.items()}
    except FileMissingError:  # the file has expired since
        return {}


def _files(
    root: TableRoot, before: Snapshot, after: Snapshot, buckets: Mapping[Bucket, int]
) -> dict[Bucket, list[DataFile]] | None:
    """The files with new rows, by bucket."""
    found: dict[Bucket, list[DataFile]] = {bucket: [] for bucket in buckets}
    history = SnapshotLog(root).after(Base.of(before), after)
    if isinstance(history, HistoryGap):
        return None
    for step in history.each():
        kind, entries = step.snapshots[0].commit_kind, step.entries()
        if kind in _OF_SAME_ROWS:
            continue
        if kind is not CommitKind.APPEND or isinstance(entries, HistoryGap):
            return None
        if bool((entries.kind != FileKind.ADD).any()):
            return None
        for entry in entries.entries():
            own = found.get((entry.partition, entry.bucket))
            if own is not None:
                own.append(entry.file)
    return found


def _keys(table: OpenTable, bucket: Bucket, files: Sequence[DataFile]) -> pa.Table:
    fields = [table.schema.field(name) for name in table.schema.primary_keys]
    door = table.bucket(*bucket)
    batches = (batch for file in files for batch in door.stored_rows(file, fields))
    return pa.Table.from_batches(batches, to_arrow_schema(fields))
