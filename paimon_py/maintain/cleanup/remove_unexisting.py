"""Removal of missing files: a commit deletes the entries of data files that no longer exist.

Source: Java `ListUnexistingFiles`, `RemoveUnexistingFilesAction`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.commit.commit import commit
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.rounds import ROUNDS, on_latest
from paimon_py.errors import SnapshotExpiredError, UnsupportedError
from paimon_py.files.physical import DATA_EVOLUTION, evolves_columns
from paimon_py.maintain.cleanup.expired import RemovedEntries
from paimon_py.maintain.observers import notify_commits
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.data_file import DataFile, ManifestEntry
from paimon_py.spec.snapshot import Base, Snapshot

_AT_ONCE = 1000


def remove_unexisting_files(table: OpenTable, *, dry_run: bool, progress: Progress | None = None) -> RemovedEntries:
    """Delete the entries of missing data files from the latest snapshot. Their rows are already lost.

    Deletion vectors of such files are kept, as in Java, without effect.

    Cost: a stat per data file of the latest snapshot, two for missing ones.
    Raises:
        CommitConflictError, CommitRetriesExhaustedError, CommitUnknownError: see `commit`.
        UnsupportedError: some rows would lose only part of their columns.
        StorageError, CorruptionError: the store failed, or metadata cannot be read; nothing was changed.
    """

    def work(latest: Snapshot | None, number: int) -> RemovedEntries:
        return _remove(table, latest, number, dry_run=dry_run, progress=progress)

    return on_latest(table.root, work, rounds=ROUNDS)


def _remove(
    table: OpenTable, latest: Snapshot | None, attempt: int, *, dry_run: bool,
    progress: Progress | None,
) -> RemovedEntries:  # fmt: skip
    if latest is None:
        return RemovedEntries(dry_run=dry_run)
    entries = table.root.manifests.live_entries(latest).entries()
    missing = _missing(table, entries, ProgressCounter(progress, len(entries), "files", attempt=attempt))
    if missing and table.root.snapshots.find(latest.id) != latest:
        raise SnapshotExpiredError(
            f"snapshot {latest.id} of {table.root.path} expired while its files were looked for", path=table.root.path,
            snapshot_id=latest.id,
        )  # fmt: skip
    paths = tuple(table.bucket(entry.partition, entry.bucket).path(entry.file) for entry in missing)
    rows = _row_count([entry.file for entry in missing])
    if dry_run or not missing:
        return RemovedEntries(paths=paths, rows=rows, dry_run=dry_run)
    if evolves_columns(table.schema):
        _require_whole_rows(entries, missing)
    changes = Changes(
        schema_id=table.schema.id, base=Base.of(latest), buckets=_without(missing), branch=table.root.branch
    )
    done = commit(table, changes, CommitRequest(is_new=True))
    notify_commits(table.newest(), done.snapshot_ids)
    return RemovedEntries(paths=paths, rows=rows, snapshot_id=done.snapshot_id, dry_run=False)


def _row_count(files: Sequence[DataFile]) -> int:
    """The number of rows in files; rows whose columns are in several files count once."""
    count, end = 0, 0
    for file in sorted(files, key=lambda one: one.first_row_id or 0):
        if file.first_row_id is None:
            count += file.row_count
        else:
            first, stop = _rows_of(file)
            count += max(0, stop - max(first, end))
            end = max(end, stop)
    return count


def _rows_of(file: DataFile) -> tuple[int, int]:
    """The id of the first row of a file, and the one after the last."""
    first = file.first_row_id or 0
    return first, first + file.row_count


def _shares_rows(entry: ManifestEntry, lost: Sequence[tuple[bytes, int, int]]) -> bool:
    first, end = _rows_of(entry.file)
    return any(entry.partition == partition and first < stop and start < end for partition, start, stop in lost)


def _require_whole_rows(entries: Sequence[ManifestEntry], missing: Sequence[ManifestEntry]) -> None:
    """Refuse to leave rows with only part of their columns.

    Raises: UnsupportedError
    """
    gone = {entry.file.name for entry in missing}
    lost = [(entry.partition, *_rows_of(entry.file)) for entry in missing]
    left = [one for one in entries if one.file.name not in gone and _shares_rows(one, lost)]
    if left:
        raise UnsupportedError(
            f"nothing was removed: file {left[0].file.name} holds other columns of rows whose files are missing, and"
            " their deletion vector may name one of these; roll back to a snapshot that has them, or drop the"
            " partition",
            feature=f"removing some columns of rows ({DATA_EVOLUTION})",
        )


def _missing(files: OpenTable, entries: Sequence[ManifestEntry], tally: ProgressCounter) -> list[ManifestEntry]:
    """The entries whose file is missing, checked twice."""

    def is_missing(entry: ManifestEntry) -> bool:
        place = files.bucket(entry.partition, entry.bucket)
        return place.stat(entry.file) is None and place.stat(entry.file) is None

    missing: list[ManifestEntry] = []
    for start in range(0, len(entries), _AT_ONCE):
        part = entries[start : start + _AT_ONCE]
        gone = files.root.env.pool.map(is_missing, part)
        missing += [entry for entry, is_gone in zip(part, gone, strict=True) if is_gone]
        tally.add(len(part))
    return missing


def _without(missing: Sequence[ManifestEntry]) -> tuple[BucketChanges, ...]:
    """The edits that delete entries."""
    buckets: dict[tuple[bytes, int, int], list[ManifestEntry]] = {}
    for entry in missing:
        buckets.setdefault((entry.partition, entry.bucket, entry.total_buckets), []).append(entry)
    return tuple(
        BucketChanges(
            partition=partition,
            bucket=bucket,
            total_buckets=total,
            written=Edit(deleted=tuple(entry.file for entry in entries)),
        )
        for (partition, bucket, total), entries in sorted(buckets.items())
    )
