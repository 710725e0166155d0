"""Results of expiry, clean-up and rollbacks."""

from __future__ import annotations

import msgspec

from paimon_py.html import AsPage


class ExpiredSnapshots(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of snapshot expiry, or of its dry run.

    Attributes:
        snapshot_ids: the snapshots that were deleted.
        earliest_id, latest_id: the remaining snapshots, None in an empty table.
        reason: the reason why the earliest one is kept.
        data_files: data and changelog files that were deleted, with their extra files.
        index_files: deletion vectors and hash indexes that were deleted.
        metadata_files: manifests, manifest lists, index manifests and statistics that were deleted.
        spared_files: files that only a tag or branch still needs.
        left_files: files that the store did not delete; they are orphans now.
        dry_run: nothing was deleted, all of this is what would happen.
        warnings: failures of observers; the expiry stands.
    """

    snapshot_ids: tuple[int, ...] = ()
    earliest_id: int | None = None
    latest_id: int | None = None
    reason: str = ""
    data_files: int = 0
    index_files: int = 0
    metadata_files: int = 0
    spared_files: int = 0
    left_files: int = 0
    dry_run: bool = False
    warnings: tuple[str, ...] = ()


class ExpiredChangelogs(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of changelog expiry, or of its dry run.

    Attributes:
        snapshot_ids: the snapshots whose kept changelogs were deleted.
        earliest_id, latest_id: the remaining kept changelogs, None if there are none.
        reason: the reason why the earliest one is kept.
        data_files: files of changes that were deleted, with their extra files.
        metadata_files: manifests and manifest lists that were deleted.
        left_files: files that the store did not delete; they are orphans now.
        dry_run: nothing was deleted, all of this is what would happen.
        warnings: failures of observers; the expiry stands.
    """

    snapshot_ids: tuple[int, ...] = ()
    earliest_id: int | None = None
    latest_id: int | None = None
    reason: str = ""
    data_files: int = 0
    metadata_files: int = 0
    left_files: int = 0
    dry_run: bool = False
    warnings: tuple[str, ...] = ()


class ExpiredPartitions(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of partition expiry, or of its dry run.

    Attributes:
        partitions: the values by key of the dropped partitions, in their order.
        snapshot_ids: the snapshots that dropped them, one for each batch.
        left: the number of expired partitions that are left for the next call (`partition.expiration-max-num`).
        undated: partitions that never expire by their values, which contain no time; `update-time` can expire them.
        dry_run: nothing was dropped, all of this is what would happen.
        warnings: failures of observers; the drops stand.
    """

    partitions: tuple[dict[str, object], ...] = ()
    snapshot_ids: tuple[int, ...] = ()
    left: int = 0
    undated: tuple[dict[str, object], ...] = ()
    dry_run: bool = False
    warnings: tuple[str, ...] = ()


class FastForwarded(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of a fast-forward of main to a branch.

    Attributes:
        snapshot_id: the latest snapshot after the call.
        gone_ids: the snapshots of main that were deleted.
        new_ids: the snapshots of the branch that were added, without those that both had.
        tags: the tags of deleted snapshots of main, which were deleted too.
        consumers: those that have already read deleted snapshots, or still had to read some; their streams are refused
            until `reset_consumer`.
        warnings: failures of follow-up work, such as writing Iceberg metadata; the fast-forward stands.
    """

    snapshot_id: int
    gone_ids: tuple[int, ...] = ()
    new_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class RemovedEntries(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search for missing data files, whose entries were, or would be, deleted.

    Attributes:
        paths: the expected locations of the files.
        rows: the number of rows in them.
        snapshot_id: the snapshot without them, None if there is none.
        dry_run: nothing was changed.
    """

    paths: tuple[str, ...] = ()
    rows: int = 0
    snapshot_id: int | None = None
    dry_run: bool


class RemovedOrphans(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search for orphans, deleted or to be deleted.

    Attributes:
        files: unreferenced files that are older than the limit.
        size_bytes: the total size of these files.
        paths: the paths of the first thousand.
        young_files: unreferenced files that are younger: a writer may still commit them.
        left_files: files that the store did not delete; they are among `files`.
        directories: the number of listed directories.
        users: those whose last identifier was deleted: idle for longer than `commit.user-retention`, and unreferenced.
            Their files are not counted in `files`.
        removed_directories: empty bucket and partition directories that were deleted; a dry run does not count them.
        shared_roots: external directories that were skipped, since other tables may have files there.
        older_than_millis: the limit, by the clock of the store.
        dry_run: nothing was deleted, all of this is what would happen.
        warnings: failures of observers; the deletions stand.
    """

    files: int = 0
    size_bytes: int = 0
    paths: tuple[str, ...] = ()
    young_files: int = 0
    left_files: int = 0
    users: tuple[str, ...] = ()
    directories: int = 0
    removed_directories: int = 0
    shared_roots: tuple[str, ...] = ()
    older_than_millis: int
    dry_run: bool
    warnings: tuple[str, ...] = ()


class RolledBack(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of a rollback.

    Attributes:
        snapshot_id: the latest snapshot after the rollback.
        snapshot_ids: the snapshots that were deleted.
        tags: the tags of later snapshots, which were deleted with them.
        consumers: those that have already read deleted snapshots; their streams are refused until `reset_consumer`.
        warnings: failures of follow-up work, such as writing Iceberg metadata; the rollback stands.
    """

    snapshot_id: int
    snapshot_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
