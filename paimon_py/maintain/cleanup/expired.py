"""Results of expiry, cleaning and rollbacks."""

from __future__ import annotations

import msgspec

from paimon_py.html import AsPage


class ExpiredSnapshots(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """What expiry did, or would do.

    Attributes:
        snapshot_ids: the snapshots that were deleted.
        earliest_id, latest_id: the snapshots that are left, None in an empty table.
        reason: what keeps the earliest one.
        data_files: data and changelog files that were deleted, with their extra files.
        index_files: deletion vectors and hash indexes that were deleted.
        metadata_files: manifests, manifest lists, index manifests and statistics that were deleted.
        spared_files: files that no snapshot needs any more but a tag or branch keeps.
        left_files: files that the store did not delete; they are orphans now.
        dry_run: nothing was deleted, all of this is what would happen.
        warnings: what observers failed to do; this stands.
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
        earliest_id, latest_id: the kept changelogs that are left, None if there are none.
        reason: what keeps the earliest one.
        data_files: files of changes that were deleted, with their extra files.
        metadata_files: manifests and manifest lists that were deleted.
        left_files: files that the store did not delete; they are orphans now.
        dry_run: nothing was deleted, all of this is what would happen.
        warnings: what observers failed to do; this stands.
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
        left: how many more have expired and wait for the next call (`partition.expiration-max-num`).
        undated: partitions that never expire by their values, which contain no time; `update-time` can expire them.
        dry_run: nothing was dropped, all of this is what would happen.
        warnings: what observers failed to do; this stands.
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
        snapshot_id: the latest snapshot from now on.
        gone_ids: the snapshots of main that were deleted.
        new_ids: the snapshots of the branch that were added; those that both had already are not among them.
        tags: the tags of main that named deleted snapshots, and were deleted with them.
        consumers: those that have read deleted snapshots; their streams are refused until `reset_consumer`.
        warnings: what those who follow the table could not do, such as writing Iceberg metadata; this stands.
    """

    snapshot_id: int
    gone_ids: tuple[int, ...] = ()
    new_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class RemovedEntries(AsPage, msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search for missing data files, whose entries were deleted or would be.

    Attributes:
        paths: where the files should be.
        rows: how many rows they held.
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
        files: files that nothing names and that are older than the limit.
        size_bytes: how many bytes they have.
        paths: the paths of the first thousand.
        young_files: files that nothing names and that are younger: a writer may still commit them.
        left_files: files that the store did not delete; they are among `files`.
        directories: how many directories were listed.
        users: those whose last number was deleted: idle for longer than `commit.user-retention`, and nothing names
            them. Their files are not among `files`.
        removed_directories: empty bucket and partition directories that were deleted; a dry run does not count them.
        shared_roots: external directories that were left alone, since other tables may have files there.
        older_than_millis: the limit, by the clock of the store.
        dry_run: nothing was deleted, all of this is what would happen.
        warnings: what observers failed to do; this stands.
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
        snapshot_id: the latest snapshot from now on.
        snapshot_ids: the snapshots that were deleted.
        tags: the tags of later snapshots, which were deleted with them.
        consumers: those that have read deleted snapshots; their streams are refused until `reset_consumer`.
        warnings: what those who follow the table could not do, such as writing Iceberg metadata; this stands.
    """

    snapshot_id: int
    snapshot_ids: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
