"""The result of a commit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.html import AsPage
from paimon_py.spec.snapshot import Snapshot, SnapshotId


class CommittedSnapshots(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The snapshots that a call committed, and their parent; the ids include their marks.

    Attributes:
        snapshot_id: the newest snapshot; None if nothing was committed.
        snapshot_ids: all of them: first the written, then the compacted one.
        before: the state before them; 0 is the empty table. None if nothing was committed, or it is no longer known.
        already_committed: the same had been committed before; nothing was published now.
        warnings: failures of followers of the table, such as writing Iceberg metadata; the commit itself succeeded.
    """

    snapshot_id: int | None = None
    snapshot_ids: tuple[int, ...] = ()
    before: SnapshotId | None = None
    already_committed: bool = False
    warnings: tuple[str, ...] = ()


class CommitResult(CommittedSnapshots, frozen=True, kw_only=True):
    """The result of a commit; `Table.changes` returns its changes row by row.

    Attributes:
        snapshot_id: the newest snapshot of the commit; None if there was nothing to commit.
        snapshot_ids: all of them: first the written, then the compacted one.
        before: the state before the commit, for `scan(snapshot_id=result.before)`; 0 is the empty table. None if
            nothing was committed, or that state is no longer known.
        already_committed: the same commit had happened before; nothing was published now.
        row_count: the number of rows in the added files, without files that contain BLOBs or vectors of these rows.
        file_count: the number of added files.
        attempts: the number of attempts to publish.
        dropped_compaction: the reason why the compaction of some buckets was dropped while everything else was kept.
        dropped_buckets: the partitions, serialized, and numbers of these buckets.
        warnings: failures of followers of the table, such as writing Iceberg metadata; the commit itself succeeded.
    """

    row_count: int = 0
    file_count: int = 0
    attempts: int = 0
    dropped_compaction: str | None = None
    dropped_buckets: tuple[tuple[bytes, int], ...] = ()

    @classmethod
    def of_earlier(cls, snapshots: Sequence[Snapshot], attempts: int = 0) -> CommitResult:
        """The result of a commit that had happened before, from the remaining ones of its snapshots."""
        ids = tuple(SnapshotId.of(snapshot) for snapshot in snapshots)
        return cls(
            snapshot_id=ids[-1] if ids else None,
            snapshot_ids=ids,
            before=SnapshotId.before(snapshots[0]) if snapshots else None,
            already_committed=True,
            attempts=attempts,
        )


def join_results(first: CommitResult, second: CommitResult) -> CommitResult:
    """The combined result of two commits, the second of which resumed what the first one dropped."""
    ids = first.snapshot_ids + second.snapshot_ids
    return msgspec.structs.replace(
        second,
        snapshot_id=ids[-1] if ids else None,
        snapshot_ids=ids,
        before=first.before if first.snapshot_ids else second.before,
        row_count=first.row_count + second.row_count,
        file_count=first.file_count + second.file_count,
        attempts=first.attempts + second.attempts,
    )
