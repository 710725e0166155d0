"""Purging a table: deletes everything except its schemas and one empty snapshot.

Source: Java `FileStoreTable.purgeFiles`.
"""

from __future__ import annotations

from collections.abc import Callable

from paimon_py.commit.result import CommitResult
from paimon_py.errors import CommitConflictError, UsageError
from paimon_py.maintain.branches import delete_branch
from paimon_py.maintain.cleanup.expire_snapshots import expire_snapshots
from paimon_py.maintain.cleanup.expired import RemovedOrphans
from paimon_py.maintain.cleanup.remove_orphans import remove_orphans
from paimon_py.maintain.cleanup.retention import Retention
from paimon_py.metadata.branches import branch_directories
from paimon_py.metadata.catalog_entry import partition_catalog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import MAIN_BRANCH, changelog_directory, tag_path
from paimon_py.spec.snapshot import SnapshotId

_ALL = 2**31 - 1


def purge_files(table: OpenTable, truncate: Callable[[], CommitResult]) -> RemovedOrphans:
    """Delete branches, tags and consumers, truncate the table, and delete all files that its last snapshot does not
    reference.

    Snapshots, changelogs and files are deleted last, when no current state references them. An interrupted call can be
    repeated.

    Returns: the result of the last step.
    Raises:
        UsageError: this is a branch.
        TableNotFoundError: another table is at the path.
        CommitConflictError: the table was rolled back in the meantime; call again.
        CommitError: the table could not be truncated; branches, tags and consumers are deleted.
        StorageError, CorruptionError: see `remove_orphans`.
    """
    if table.root.branch != MAIN_BRANCH:
        raise UsageError(
            f"purge_files works on a table, not on its branch {table.root.branch!r}: delete_branch deletes that"
        )
    root = table.root
    _delete_references(root)
    emptied = truncate().snapshot_id
    _delete_references(root)  # what others created before the table was empty
    now = root.env.clock.millis()
    everything = Retention(count_min=1, count_max=1, older_than_millis=now, limit=_ALL)
    expire_snapshots(table, everything, dry_run=False)
    root.schemas.latest()
    latest = SnapshotId.of(root.snapshots.latest())
    if emptied is not None and (latest < emptied or (latest == emptied and not latest.is_same(emptied))):
        raise CommitConflictError(
            f"{root.path} was rolled back to snapshot {latest} in the meantime, and is not empty; call again",
            table=root.path,
        )
    root.schemas.latest()
    root.store.delete_tree(changelog_directory(root.path))
    return remove_orphans(root, root.env.clock.millis(), dry_run=False)


def _delete_references(root: TableRoot) -> None:
    """Delete branches, tags and consumers."""
    for name in branch_directories(root):
        delete_branch(root, name)
    keeper = partition_catalog(root)
    for name in root.each_of_same(root.tags.names()):
        root.store.delete(tag_path(root.path, name))
        if keeper is not None:
            keeper.tag_deleted(root, name)
    for consumer in root.each_of_same(root.consumers.all()):
        root.consumers.delete(consumer.name)
