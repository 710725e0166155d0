"""Rollback: an older snapshot becomes the latest one. Files that only later snapshots reference become orphans.

Source: format.md §15.6; docs/reliability.md §3 (o); Java `RollbackHelper`.
"""

from __future__ import annotations

import msgspec

from paimon_py.errors import SnapshotExpiredError
from paimon_py.logs import COMMITS, fields, warn
from paimon_py.maintain.cleanup.expired import RolledBack
from paimon_py.maintain.cutting import HistoryCut, ancestors, check_no_expiry, delete_tags_beyond
from paimon_py.maintain.tags import is_kept
from paimon_py.metadata.cuts import ROLLBACK
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.snapshots import PINNING
from paimon_py.spec.events import RollbackEvent
from paimon_py.spec.snapshot import Base, Snapshot


def rollback(root: TableRoot, target: Snapshot, *, tag: str | None = None) -> RolledBack:
    """Make a snapshot, which may exist only as a tag, the latest one.

    Only its ancestors are kept: later snapshots, changelogs and tags are deleted, newest first. Readers always find a
    valid state. An interrupted call has to be repeated; other calls refuse until then. If a catalog manages the
    history, the catalog rolls back. A warning names consumers that have read deleted snapshots.

    Args:
        tag: the name of the tag through which the snapshot was found, if any.

    Cost: some lists, the tags and consumers, a get per ancestor, a get and a delete per deleted snapshot.
    Raises:
        PaimonWarning where warnings are errors, after everything is done.
        CommitConflictError: another rollback, a fast-forward or an expiry is in progress; nothing was done.
        SnapshotExpiredError: the snapshot expired in the meantime; nothing was done.
        CorruptionError: a tag or consumer is damaged; nothing was done.
        StorageError: the store failed; call again.
    """
    consumers = consumers_beyond(root, target.id + 1)
    done = _by_catalog(root, target, tag) if root.history is not None else _rolled_back(root, target)
    done = msgspec.structs.replace(done, consumers=consumers)
    COMMITS.info(
        "%s: rolled back to snapshot %d, deleted %d later ones", root.path, target.id, len(done.snapshot_ids),
        extra=fields(root, snapshot_id=target.id, deleted_snapshots=len(done.snapshot_ids)),
    )  # fmt: skip
    warn_of_consumers(root, consumers, target.id + 1)
    return done


def rollback_event(root: TableRoot, done: RolledBack) -> RollbackEvent:
    """The event of a rollback for observers."""
    return RollbackEvent(
        **root.event_place(), action="rollback", snapshot_id=done.snapshot_id, deleted_ids=done.snapshot_ids,
        deleted_tags=done.tags, consumers=done.consumers,
    )  # fmt: skip


def consumers_beyond(root: TableRoot, number: int) -> tuple[str, ...]:
    """Names of the consumers that have read a snapshot, which is to be deleted.

    Java moves consumers without a mark of what they have read. It is recorded now, so that their streams notice that
    the snapshot is gone when others have its number.

    Cost: one list, and one get per consumer; for each of these another one, and a get and a put if it has no mark.
    """
    found = [consumer for consumer in root.consumers.all() if consumer.next_snapshot_id > number]
    for consumer in found:
        if root.consumers.read_by(consumer) is None:
            read = root.snapshots.find(consumer.next_snapshot_id - 1) or root.snapshots.latest()
            if read is not None:
                root.schemas.latest()
                root.consumers.put_mark(consumer, Base.of(read))
    return tuple(consumer.name for consumer in found)


def warn_of_consumers(root: TableRoot, consumers: tuple[str, ...], number: int) -> None:
    """Warn of consumers that have read deleted snapshots, from `number` on.

    Raises: PaimonWarning where warnings are errors.
    """
    if consumers:
        named = ", ".join(map(repr, consumers))
        warn(
            f"{root.path}: snapshots from {number} are deleted, but consumers have read them: {named}. Their streams"
            f" are refused until table.reset_consumer({consumers[0]!r}, {number}); readers in Java skip what is"
            " committed under the old numbers"
        )


def _by_catalog(root: TableRoot, target: Snapshot, tag: str | None) -> RolledBack:
    assert root.history is not None
    ids = [number for number in root.snapshots.ids() if number > target.id]
    tags = [tag.name for tag in root.tags.list() if tag.snapshot.id > target.id]
    root.history.roll_back(target, tag)
    left, left_tags = set(root.snapshots.ids()), {tag.name for tag in root.tags.list()}
    gone = tuple(number for number in ids if number not in left)
    return RolledBack(snapshot_id=target.id, snapshot_ids=gone, tags=tuple(t for t in tags if t not in left_tags))


def _rolled_back(root: TableRoot, target: Snapshot) -> RolledBack:
    tags = [tag.name for tag in root.tags.list() if tag.snapshot.id > target.id]
    ids = [number for number in root.snapshots.ids() if number > target.id]
    cutting = HistoryCut(root, ROLLBACK, [target])
    cutting.begin(lambda: _check_available(root, target, cutting))
    before = ancestors(root, target)
    cutting.replace(frozenset(one.id for one in before), [target])
    _cut_changelogs(root, target, cutting, has_ancestors=bool(before))
    gone_tags = delete_tags_beyond(cutting, root, tags, target.id)
    cutting.forget_numbers(target)
    cutting.end()
    return RolledBack(snapshot_id=target.id, snapshot_ids=tuple(sorted({*ids, *cutting.gone})), tags=gone_tags)


def _check_available(root: TableRoot, target: Snapshot, cutting: HistoryCut) -> None:
    """Check that the files of a snapshot exist, because of itself, a tag, or an interrupted rollback, and that no
    expiry is processing it.

    Raises: SnapshotExpiredError, CommitConflictError
    """
    if not is_kept(root, target) and not cutting.holds(target):
        raise SnapshotExpiredError(
            f"snapshot {target.id} of {root.path} expired in the meantime{PINNING}",
            path=root.path, snapshot_id=target.id,
        )  # fmt: skip
    if not cutting.holds(target):
        check_no_expiry(root, target.id)


def _cut_changelogs(root: TableRoot, target: Snapshot, cutting: HistoryCut, *, has_ancestors: bool) -> None:
    """Delete the kept changelogs that the target does not descend from."""
    ids, kept = root.changelogs.ids(), target.id
    if not has_ancestors and ids:
        before = next((number for number in reversed(ids) if number <= target.id), 0)
        found = root.changelogs.find(before)
        is_ours = found is not None and (found.mark == target.mark or target.follows(found) in (True, None))
        kept = target.id if is_ours and before >= target.id - 1 else 0
    root.changelogs.cut([number for number in ids if number > kept], cutting.check)
