"""Purging a table: deletes everything except its schemas and one empty snapshot.

Source: Java `FileStoreTable.purgeFiles`.
"""

from __future__ import annotations

from collections.abc import Callable

from paimon_py.errors import UsageError
from paimon_py.maintain.branches import delete_branch
from paimon_py.maintain.cleanup.expire_snapshots import expire_snapshots
from paimon_py.maintain.cleanup.expired import RemovedOrphans
from paimon_py.maintain.cleanup.remove_orphans import remove_orphans
from paimon_py.maintain.cleanup.retention import Retention
from paimon_py.metadata.branches import branch_directories
from paimon_py.metadata.catalog_entry import partition_catalog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.layout import MAIN_BRANCH, changelog_directory, tag_path

_ALL = 2**31 - 1


def purge_files(table: OpenTable, truncate: Callable[[], object]) -> RemovedOrphans:
    """Delete branches, tags and consumers, truncate the table, and delete all files that its last snapshot does not
    reference.

    Snapshots, changelogs and files are deleted last, when no current state references them. An interrupted call can be
    repeated.

    Returns: the result of the last step.
    Raises:
        UsageError: this is a branch.
        TableNotFoundError: another table is at the path.
        CommitError: the table could not be truncated; branches, tags and consumers are deleted.
        StorageError, CorruptionError: see `remove_orphans`.
    """
    if table.root.branch != MAIN_BRANCH:
        raise UsageError(
            f"purge_files works on a table, not on its branch {table.root.branch!r}: delete_branch deletes that"
        )
    for name in branch_directories(table.root):
        delete_branch(table.root, name)
    keeper = partition_catalog(table.root)
    for name in table.root.each_of_same(table.root.tags.names()):
        table.root.store.delete(tag_path(table.root.path, name))
        if keeper is not None:
            keeper.tag_deleted(table.root, name)
    for consumer in table.root.each_of_same(table.root.consumers.all()):
        table.root.consumers.delete(consumer.name)
    truncate()
    now = table.root.env.clock.millis()
    everything = Retention(count_min=1, count_max=1, older_than_millis=now, limit=_ALL)
    expire_snapshots(table, everything, dry_run=False)
    table.root.schemas.latest()
    table.root.store.delete_tree(changelog_directory(table.root.path))
    return remove_orphans(table.root, table.root.env.clock.millis(), dry_run=False)
