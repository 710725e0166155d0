"""Publishing one snapshot, and finding out what became of it.

A creation that did not plainly succeed is never taken for a failure: the target is read back and compared. A snapshot
that was created behind the back of expiry (its parent gone, newer ones there) is taken away again.

Source: notes on reliability, §3 (f), (h), (l) and §6; format.md §2.
"""

from __future__ import annotations

from typing import Union

import msgspec

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.commit.conflicts import Conflict
from paimon_py.errors import CorruptionError, StorageError, StorageUnknownError
from paimon_py.metadata.hints import raise_hint, read_hint
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import earliest_hint_path, latest_hint_path, snapshot_path
from paimon_py.spec.snapshot import Snapshot

_CREATE_ATTEMPTS = 3


class Committed(msgspec.Struct, frozen=True, tag=True):
    """The snapshot is part of the table's history."""

    snapshot: Snapshot


class LostRace(msgspec.Struct, frozen=True, tag=True):
    """The snapshot is certainly not part of the history: plan again on what is there now."""

    reason: str


class Conflicted(msgspec.Struct, frozen=True, tag=True):
    """Another commit changed what this one depends on; nothing was published."""

    conflict: Conflict


class Unknown(msgspec.Struct, frozen=True, tag=True):
    """The snapshot may or may not be part of the history; no file may be deleted."""

    reason: str
    snapshot_id: int


Outcome = Union[Committed, LostRace, Conflicted, Unknown]


def publish(
    root: TableRoot, snapshot: Snapshot, parent: Snapshot | None, *, deadline: float
) -> Committed | LostRace | Unknown:
    """Create the file of a snapshot that was planned on `parent`.

    Args:
        deadline: reading of the clock's `elapsed` after which `parent` is too old to build on.

    Raises:
        StorageError: the store refused, and the snapshot is certainly not there.
    """
    if root.env.clock.elapsed() > deadline:
        return LostRace("planning took so long that the snapshot it was based on may have expired")
    if not _is_alive(root, parent):
        return LostRace("the snapshot it was based on is gone")
    created = _create(root, snapshot)
    if isinstance(created, (LostRace, Unknown)):
        return created
    if _is_buried(root, snapshot, parent):
        return _taken_away(root, snapshot, certain=created)
    raise_hint(root.store, latest_hint_path(root.path), snapshot.id)
    return Committed(snapshot)


def _create(root: TableRoot, snapshot: Snapshot) -> bool | LostRace | Unknown:
    """Create the file. True if it certainly happened just now, False if in a call whose answer was lost."""
    path, data = snapshot_path(root.path, snapshot.id), snapshot_to_json(snapshot)
    unsure = False
    refused: StorageError | None = None
    for _ in range(_CREATE_ATTEMPTS):
        try:
            if root.store.put_new(path, data):
                return not unsure
            refused = None
        except StorageError as error:
            unsure = unsure or isinstance(error, StorageUnknownError)
            refused = error
        try:
            there = root.snapshots.find(snapshot.id)
        except (StorageError, CorruptionError) as unreadable:
            return Unknown(f"{path} could not be read back: {unreadable}", snapshot.id)
        if there is not None:
            return (
                False if there.uuid == snapshot.uuid else LostRace(f"snapshot {snapshot.id} is {there.commit_user}'s")
            )
        if refused is None:
            break
    if unsure:
        return Unknown(f"the store did not say whether {path} was created", snapshot.id)
    if refused is not None:
        raise refused
    return LostRace(f"snapshot {snapshot.id} was there and vanished")


def _is_alive(root: TableRoot, parent: Snapshot | None) -> bool:
    """Whether the snapshot that was planned on is still there, unchanged; for the first one: whether there is none."""
    if parent is None:
        return not root.snapshots.ids()
    return root.snapshots.find(parent.id) == parent


def _is_buried(root: TableRoot, snapshot: Snapshot, parent: Snapshot | None) -> bool:
    """Whether a snapshot just created lies below newer ones that do not follow from it.

    That takes a writer that slept while others committed and expiry went past its place. Expiry removes snapshots
    in ascending order, so a gap above one that still exists proves it.
    """
    try:
        if parent is not None and root.store.stat(snapshot_path(root.path, parent.id)) is not None:
            return False
        ids = root.snapshots.ids()
        if not ids or ids[-1] <= snapshot.id:
            return False
        successor = root.snapshots.find(snapshot.id + 1)
        if successor is not None and _follows(root, successor, snapshot):
            return False
        return root.snapshots.find(snapshot.id) == snapshot
    except (StorageError, CorruptionError):
        return False


def _follows(root: TableRoot, successor: Snapshot, snapshot: Snapshot) -> bool:
    """Whether a snapshot was built on another; in doubt yes."""
    earliest = read_hint(root.store, earliest_hint_path(root.path))
    if earliest is not None and earliest > snapshot.id:
        return False
    names = {file.name for file in root.manifests.read_list(successor.base_manifest_list)}
    delta = {file.name for file in root.manifests.read_list(snapshot.delta_manifest_list)}
    if delta and delta <= names:
        return True
    return (successor.total_record_count or 0) - (successor.delta_record_count or 0) == snapshot.total_record_count


def _taken_away(root: TableRoot, snapshot: Snapshot, *, certain: bool) -> LostRace | Unknown:
    """Remove a snapshot that is not part of the history."""
    try:
        root.store.delete(snapshot_path(root.path, snapshot.id))
    except StorageError as error:
        return Unknown(f"snapshot {snapshot.id} came too late and could not be removed: {error}", snapshot.id)
    if not certain:
        return Unknown(f"snapshot {snapshot.id} may have been published and expired meanwhile", snapshot.id)
    return LostRace("others committed and expired snapshots while this commit was waiting")
