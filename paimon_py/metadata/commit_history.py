"""The effects of commits: operation, user, rows and files added and deleted, from the deltas of snapshots.

Source: format.md §4, §5.4, §10.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.html import AsPage
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import DELETION_VECTORS
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError

_ADD, _DELETE = 0, 1


class HistoryEntry(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one snapshot on the table.

    Attributes:
        snapshot_id, time_millis: the snapshot, and its commit time in epoch milliseconds.
        operation: the verb if the snapshot contains it (`DELETE`, `UPDATE`, `MERGE`, `TRUNCATE`, …), otherwise its kind
            (`APPEND`, `OVERWRITE`, `COMPACT`, `ANALYZE`).
        commit_kind: the kind alone.
        user, identifier: the committing user, and the number of the commit; None if the commit has no number.
        added_rows: rows in new files, without those that delete. 0 if files were only merged.
        deleted_rows: rows deleted with their files, by new rows that delete, or by deletion vectors. 0 if files were
            only merged. In a table with a primary key, new versions of keys are added rows.
        added_files, deleted_files: the number of data files added and deleted.
        added_bytes, deleted_bytes: the size of these files in bytes.
        total_rows: rows in all files after the commit; None if the snapshot does not contain it.
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
    added_files: int = 0
    deleted_files: int = 0
    added_bytes: int = 0
    deleted_bytes: int = 0
    total_rows: int | None = None
    is_known: bool = True


def commit_history(root: TableRoot, limit: int | None) -> list[HistoryEntry]:
    """The effects of the newest snapshots, newest first; `limit`: the maximum number, None for all that are left.

    Cost: a get for each snapshot that was not read before, and for its delta list and manifests.
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
            dead = None
            continue
        is_same = before is not None and snapshot.index_manifest == before.index_manifest
        now = dead if is_same else _dead_rows(root, snapshot)
        found.append(_entry(root, snapshot, dead, now))
        before, dead = snapshot, now
    return found[::-1]


def _entry(
    root: TableRoot, snapshot: Snapshot, dead_before: Mapping[str, int] | None, dead_now: Mapping[str, int] | None
) -> HistoryEntry:
    known = HistoryEntry(
        snapshot_id=snapshot.id, time_millis=snapshot.time_millis,
        operation=snapshot.operation or snapshot.commit_kind.value, commit_kind=snapshot.commit_kind.value,
        user=snapshot.commit_user,
        identifier=None if snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER else snapshot.commit_identifier,
        total_rows=snapshot.total_record_count,
    )  # fmt: skip
    try:
        manifests = root.manifests.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
        entries = root.manifests.read_entries(manifests)
    except FileMissingError:
        return msgspec.structs.replace(known, is_known=False)
    adds, deletes = entries.kind == _ADD, entries.kind == _DELETE
    added, deleted = _rows(entries, snapshot)
    if snapshot.commit_kind not in (CommitKind.COMPACT, CommitKind.ANALYZE):
        deleted += _newly_dead(entries, dead_before, dead_now)
    return msgspec.structs.replace(
        known, added_rows=added, deleted_rows=deleted, added_files=int(adds.sum()), deleted_files=int(deletes.sum()),
        added_bytes=int(entries.size_bytes[adds].sum()), deleted_bytes=int(entries.size_bytes[deletes].sum()),
    )  # fmt: skip


def _rows(entries: EntryColumns, snapshot: Snapshot) -> tuple[int, int]:
    """Rows added and deleted with files; a delete that rewrites files adds none."""
    if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
        return 0, 0
    adds, deletes = entries.kind == _ADD, entries.kind == _DELETE
    retracting = int(entries.delete_row_count[adds].clip(min=0).sum())
    added, deleted = int(entries.row_count[adds].sum()) - retracting, int(entries.row_count[deletes].sum()) + retracting
    if snapshot.operation == "DELETE":
        return 0, deleted - added
    return added, deleted


def _dead_rows(root: TableRoot, snapshot: Snapshot | None) -> Mapping[str, int] | None:
    """The number of rows of each data file deleted by deletion vectors; None if unknown."""
    if snapshot is None or snapshot.index_manifest is None:
        return {}
    try:
        entries = root.manifests.read_index(snapshot.index_manifest)
    except FileMissingError:
        return None
    vectors = [one for entry in entries if entry.index_type == DELETION_VECTORS for one in entry.deletion_vectors or ()]
    return {vector.data_file: vector.cardinality or 0 for vector in vectors}


def _newly_dead(
    entries: EntryColumns, before: Mapping[str, int] | None, now: Mapping[str, int] | None
) -> int:
    """Rows newly deleted by deletion vectors, minus those that were deleted with their files."""
    if not before and not now:
        return 0
    if before is None or now is None:
        return 0
    gone: Iterable[str] = entries.take(entries.kind == _DELETE).names().to_pylist()
    already = sum(before.get(name, 0) for name in gone)
    grown = sum(count - before.get(name, 0) for name, count in now.items())
    return grown - already
