"""What a commit did, for whoever asked for it."""

from __future__ import annotations

import msgspec

from paimon_py.pages import AsPage


class CommitResult(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """What was committed.

    Attributes:
        snapshot_id: the newest snapshot of the commit, None if there was nothing to commit.
        snapshot_ids: all of them: what was written, then what was compacted.
        already_committed: the same commit had happened before; nothing was published now.
        row_count: rows in the files that were added.
        file_count: number of files that were added.
        attempts: how often publishing was tried.
        dropped_compaction: why the compaction of some buckets was given up while everything else was kept.
        dropped_buckets: the partitions, serialized, and numbers of these buckets.
    """

    snapshot_id: int | None = None
    snapshot_ids: tuple[int, ...] = ()
    already_committed: bool = False
    row_count: int = 0
    file_count: int = 0
    attempts: int = 0
    dropped_compaction: str | None = None
    dropped_buckets: tuple[tuple[bytes, int], ...] = ()


def joined(first: CommitResult, second: CommitResult) -> CommitResult:
    """The result of two commits, the second of which took up what the first one dropped."""
    ids = first.snapshot_ids + second.snapshot_ids
    return msgspec.structs.replace(
        second,
        snapshot_id=ids[-1] if ids else None,
        snapshot_ids=ids,
        row_count=first.row_count + second.row_count,
        file_count=first.file_count + second.file_count,
        attempts=first.attempts + second.attempts,
    )
