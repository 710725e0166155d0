"""Rollback: later snapshots, changelogs and tags go, newest first; files that only they name become orphans.

Source: format.md §15.6; Java `RollbackHelper`.
"""

from __future__ import annotations

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.maintain.expired import RolledBack
from paimon_py.metadata.registration import keeper_of
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import earliest_hint_path, latest_hint_path, snapshot_directory, snapshot_path
from paimon_py.spec.snapshot import Snapshot


def rollback(root: TableRoot, target: Snapshot, *, tag: str | None = None) -> RolledBack:
    """Make a snapshot, which a tag may keep alone, the latest one.

    The hint is lowered first, and a snapshot that had expired is written first, so that whoever reads while the others
    go, newest first, always finds a state. A call that died may be repeated. Where a catalog keeps the history, it is
    the one that rolls back.

    Args:
        tag: the name by which the snapshot was found, if there is one.

    Cost: two lists and the tags, a delete for each that goes, two puts.
    Raises:
        StorageError: the store failed; some of the newest snapshots may be gone.
    """
    ids = [number for number in root.snapshots.ids() if number > target.id]
    tags = [tag.name for tag in root.tags.list() if tag.snapshot.id > target.id]
    if root.history is not None:
        root.history.roll_back(target, tag)
        left, left_tags = set(root.snapshots.ids()), {tag.name for tag in root.tags.list()}
        gone = tuple(number for number in ids if number not in left)
        return RolledBack(snapshot_id=target.id, snapshot_ids=gone, tags=tuple(t for t in tags if t not in left_tags))
    changelogs = [number for number in root.changelogs.ids() if number > target.id]
    within = snapshot_directory(root.branch_path)
    if root.snapshots.find(target.id) != target:
        root.store.put(snapshot_path(root.branch_path, target.id), snapshot_to_json(target), within=within)
        root.store.put(earliest_hint_path(root.branch_path), str(target.id).encode(), within=within)
    root.store.put(latest_hint_path(root.branch_path), str(target.id).encode(), within=within)
    for number in reversed(ids):
        root.store.delete(snapshot_path(root.branch_path, number))
    root.changelogs.cut(changelogs)
    keeper = keeper_of(root)
    for name in reversed(tags):
        root.tags.delete(name)
        if keeper is not None:
            keeper.tag_gone(root, name)
    return RolledBack(snapshot_id=target.id, snapshot_ids=tuple(ids), tags=tuple(tags))
