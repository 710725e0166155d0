"""The result of a row operation."""

from __future__ import annotations

from paimon_py.commit.result import CommitResult, CommittedSnapshots


class RowsResult(CommittedSnapshots, frozen=True, kw_only=True):
    """What became of the rows of a table; `Table.changes` tells of it row by row.

    Attributes:
        snapshot_id: the newest snapshot that was committed, None if no row changed.
        snapshot_ids: all of them: the rows, then what their writer compacted.
        before: the state before the commit, for `scan(snapshot_id=result.before)`; 0 is the empty table. None if
            no row changed, or that state is not known any more.
        already_committed: the user had committed the number before; nothing was done now.
        deleted, updated, inserted: how many rows. An update counts however often the value was the same before.
        upserted: rows written under a primary key without looking whether it was there; `upsert` of data that lack
            columns looks, and counts keys as updated, inserted or deleted.
        files_added: data files that were written.
        files_removed: data files that were rewritten, or of which no row was left.
        rounds: how often the operation was evaluated because others changed what it had read.
        warnings: what those who follow the table could not do, such as writing Iceberg metadata; the commit stands.
    """

    deleted: int = 0
    updated: int = 0
    inserted: int = 0
    upserted: int = 0
    files_added: int = 0
    files_removed: int = 0
    rounds: int = 1


def of_earlier(done: CommitResult) -> RowsResult:
    """The result of a row operation whose user had committed its number before."""
    return RowsResult(
        snapshot_id=done.snapshot_id, snapshot_ids=done.snapshot_ids, before=done.before, already_committed=True
    )
