"""The result of a row operation."""

from __future__ import annotations

from paimon_py.commit.result import CommitResult, CommittedSnapshots


class RowsResult(CommittedSnapshots, frozen=True, kw_only=True):
    """The result of a row operation; `Table.changes` returns the changes row by row.

    Attributes:
        snapshot_id: the latest snapshot that was committed; None if no row changed.
        snapshot_ids: all of them: the rows, then the writer's compaction.
        before: the state before the commit, for `scan(snapshot_id=result.before)`; 0 is the empty table. None if no row
            changed, or the state is unknown.
        already_committed: the user had already committed this number; nothing was done.
        deleted, updated, inserted: numbers of rows. Updates count even if the value did not change.
        upserted: rows written by primary key without checking whether the key existed; `upsert` of data that lack
            columns checks, and counts keys as updated, inserted or deleted.
        files_added: number of data files written.
        files_removed: number of data files that were rewritten, or that had no rows left.
        rounds: the number of evaluations; more than one if other commits changed the input.
        warnings: failures of follow-up work, such as writing Iceberg metadata; the commit stands.
    """

    deleted: int = 0
    updated: int = 0
    inserted: int = 0
    upserted: int = 0
    files_added: int = 0
    files_removed: int = 0
    rounds: int = 1


def of_earlier(done: CommitResult) -> RowsResult:
    """The result of an operation whose number its user had already committed."""
    return RowsResult(
        snapshot_id=done.snapshot_id, snapshot_ids=done.snapshot_ids, before=done.before, already_committed=True
    )
