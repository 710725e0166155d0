"""The effects of commits: operation, user, rows and files added and deleted, from the deltas of snapshots.

Source: format.md §4, §5.4, §10.2, §23, §24.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.html import AsPage
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import distinct_ids, rows_of_files
from paimon_py.spec.manifest import DELETION_VECTORS
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError

_ADD, _DELETE = 0, 1
_DeadRows = Mapping[str, int]
"""The number of rows that deletion vectors delete, by data file."""


class HistoryEntry(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one snapshot on the table.

    Attributes:
        snapshot_id, time_millis: the snapshot, and its commit time in epoch milliseconds.
        operation: the verb if the snapshot contains it (`DELETE`, `UPDATE`, `MERGE`, `TRUNCATE`, …). Otherwise `UPDATE`
            for new columns of existing rows, `MERGE` if rows were added too, else the kind of the commit (`APPEND`,
            `OVERWRITE`, `COMPACT`, `ANALYZE`).
        commit_kind: the kind alone.
        user, identifier: the committing user, and the number of the commit; None if the commit has no number.
        added_rows: rows in new files, without those that delete. 0 if files were only merged. New columns of existing
            rows (data evolution) add no rows.
        deleted_rows: rows deleted with their files, by new rows that delete, or by deletion vectors. 0 if files were
            only merged. In a table with a primary key, new versions of keys are added rows.
        rewritten_rows: existing rows for which new files contain some columns (data evolution): an update of one row
            writes these columns for all rows of its file.
        added_files, deleted_files: the number of data files added and deleted.
        added_bytes, deleted_bytes: the size of these files in bytes.
        total_rows: rows in all files after the commit, also those that are deleted by deletion vectors or replaced by
            new versions; rows whose columns are in several files (data evolution) count once for each of them, as in
            Java. None if the snapshot does not contain it.
        is_known: False: the delta of the snapshot can no longer be read, and all numbers except `total_rows` are 0.
    """

    snapshot_id: int
    time_millis: int
    operation: str
    commit_kind: str
    user: str
    identifier: int | None = None
    added_rows: int = 0
    deleted_rows: int = 0
    rewritten_rows: int = 0
    added_files: int = 0
    deleted_files: int = 0
    added_bytes: int = 0
    deleted_bytes: int = 0
    total_rows: int | None = None
    is_known: bool = True


def commit_history(root: TableRoot, limit: int | None) -> list[HistoryEntry]:
    """The effects of the newest snapshots, newest first; `limit`: the maximum number, None for all that are left.

    Cost: a get for each snapshot that was not read before, and for its delta list and manifests; with data evolution
        one more if the snapshot before the oldest has expired.
    Raises: StorageError, CorruptionError
    """
    ids = root.check_listed(root.snapshots.ids())
    chosen = ids[-limit:] if limit is not None and limit < len(ids) else ids
    before = root.snapshots.find(chosen[0] - 1) if chosen and chosen[0] != ids[0] else None
    dead = _dead_rows(root, before)
    found: list[HistoryEntry] = []
    for number in chosen:
        snapshot = root.snapshots.find(number)
        if snapshot is None:  # expired in the meantime
            before = dead = None
            continue
        is_same = before is not None and snapshot.index_manifest == before.index_manifest
        now = dead if is_same else _dead_rows(root, snapshot)
        found.append(_entry(root, snapshot, before, (dead, now)))
        before, dead = snapshot, now
    return found[::-1]


def _entry(
    root: TableRoot, snapshot: Snapshot, before: Snapshot | None, dead: tuple[_DeadRows | None, _DeadRows | None]
) -> HistoryEntry:
    """The effect of a snapshot; `before`: the previous snapshot if known; `dead`: the dead rows before and after it."""
    known = HistoryEntry(
        snapshot_id=snapshot.id, time_millis=snapshot.time_millis,
        operation=snapshot.operation or snapshot.commit_kind.value, commit_kind=snapshot.commit_kind.value,
        user=snapshot.commit_user,
        identifier=None if snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER else snapshot.commit_identifier,
        total_rows=snapshot.total_record_count,
    )  # fmt: skip
    try:
        manifests = root.manifests.delta(snapshot)
        entries = root.manifests.read_entries(manifests)
        adds, deletes = entries.kind == _ADD, entries.kind == _DELETE
        rewritten = adds & (entries.first_row_id != ABSENT)
        if rewritten.any():
            rewritten &= entries.first_row_id < _first_new_id(root, snapshot, before)
    except FileMissingError:
        return msgspec.structs.replace(known, is_known=False)
    found = msgspec.structs.replace(
        known, added_files=int(adds.sum()), deleted_files=int(deletes.sum()),
        added_bytes=int(entries.size_bytes[adds].sum()), deleted_bytes=int(entries.size_bytes[deletes].sum()),
    )  # fmt: skip
    if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
        return found
    added, deleted = _rows(entries.take(adds & ~rewritten), entries.take(deletes))
    if snapshot.operation == "DELETE":  # a delete that rewrites files adds no rows
        added, deleted = 0, deleted - added
    operation = found.operation
    if snapshot.operation is None and rewritten.any():
        operation = "MERGE" if added else "UPDATE"
    return msgspec.structs.replace(
        found, operation=operation, added_rows=added, deleted_rows=deleted + _newly_dead(entries, *dead),
        rewritten_rows=distinct_ids(entries.take(rewritten)),
    )  # fmt: skip


def _first_new_id(root: TableRoot, snapshot: Snapshot, before: Snapshot | None) -> int:
    """The smallest row id that the rows added by a snapshot can have."""
    if snapshot.id == 1:
        return 0
    if before is not None:
        return before.next_row_id or 0
    earlier = root.manifests.read_list(snapshot.base_manifest_list, snapshot.base_manifest_list_size)
    return 1 + max((-1 if file.max_row_id is None else file.max_row_id for file in earlier), default=-1)


def _rows(adds: EntryColumns, deletes: EntryColumns) -> tuple[int, int]:
    """The rows added and deleted with files."""
    retracting = int(adds.delete_row_count.clip(min=0).sum())
    return int(rows_of_files(adds).sum()) - retracting, int(rows_of_files(deletes).sum()) + retracting


def _dead_rows(root: TableRoot, snapshot: Snapshot | None) -> _DeadRows | None:
    """The number of rows of each data file deleted by deletion vectors; None if unknown."""
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    try:
        entries = root.manifests.read_index(snapshot.index_manifest)
    except FileMissingError:
        return None
    vectors = [one for entry in entries if entry.index_type == DELETION_VECTORS for one in entry.deletion_vectors or ()]
    return {vector.data_file: vector.cardinality or 0 for vector in vectors}


def _newly_dead(entries: EntryColumns, before: _DeadRows | None, now: _DeadRows | None) -> int:
    """Rows newly deleted by deletion vectors, minus those that were deleted with their files."""
    if not before and not now:
        return 0
    if before is None or now is None:
        return 0
    gone: Iterable[str] = entries.take(entries.kind == _DELETE).names().to_pylist()
    already = sum(before.get(name, 0) for name in gone)
    grown = sum(count - before.get(name, 0) for name, count in now.items())
    return grown - already
