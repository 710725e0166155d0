"""Rollback: later snapshots, changelogs and tags go, newest first; files that only they name become orphans.

Source: format.md §15.6; Java `RollbackHelper`.
"""

from __future__ import annotations

import msgspec

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.logs import COMMITS
from paimon_py.maintain.expired import RolledBack
from paimon_py.metadata.idle_warning import warn
from paimon_py.metadata.registration import keeper_of
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import earliest_hint_path, latest_hint_path, snapshot_directory, snapshot_path
from paimon_py.spec.snapshot import Snapshot


def rollback(root: TableRoot, target: Snapshot, *, tag: str | None = None) -> RolledBack:
    """Make a snapshot, which a tag may keep alone, the latest one.

    The hint is lowered first, and a snapshot that had expired is written first, so that whoever reads while the others
    go, newest first, always finds a state. A call that died may be repeated. Where a catalog keeps the history, it is
    the one that rolls back. A consumer is a number alone, and new snapshots get the old numbers: who has read what went
    is warned of.

    Args:
        tag: the name by which the snapshot was found, if there is one.

    Cost: three lists, the tags and consumers, a delete for each that goes, two puts.
    Raises:
        PaimonWarning where warnings are errors, once all is done.
        CorruptionError: a tag or consumer is damaged; nothing was done.
        StorageError: the store failed; some of the newest snapshots may be gone.
    """
    consumers = consumers_beyond(root, target.id + 1)
    done = msgspec.structs.replace(_rolled_back(root, target, tag), consumers=consumers)
    COMMITS.info("%s: went back to snapshot %d, %d later ones are gone", root.path, target.id, len(done.snapshot_ids))
    warn_of_consumers(root, consumers, target.id + 1)
    return done


def consumers_beyond(root: TableRoot, number: int) -> tuple[str, ...]:
    """Names of the consumers that have read a snapshot. Cost: one list, and one get per consumer."""
    return tuple(consumer.name for consumer in root.consumers.all() if consumer.next_snapshot_id > number)


def warn_of_consumers(root: TableRoot, consumers: tuple[str, ...], number: int) -> None:
    """Warn of consumers that have read snapshots which went, from a number on: others get these numbers.

    Raises: PaimonWarning where warnings are errors.
    """
    if consumers:
        named = ", ".join(map(repr, consumers))
        warn(
            f"{root.path}: snapshots from {number} on went, and consumers have read them: {named}."
            " Other snapshots get these numbers, and the consumers would pass over them: call"
            f" table.reset_consumer({consumers[0]!r}, {number}) before anybody commits"
        )


def _rolled_back(root: TableRoot, target: Snapshot, tag: str | None) -> RolledBack:
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
