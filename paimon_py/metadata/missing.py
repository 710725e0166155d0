"""Explains a missing file: the snapshot is gone, others replaced the file, or the table is damaged."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Protocol

from paimon_py.errors import CorruptionError, SnapshotExpiredError
from paimon_py.metadata.changelogs import Changelogs
from paimon_py.metadata.snapshots import PINNING, Snapshots
from paimon_py.metadata.tags import Tags
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import Delete, FileMissingError, Get, List, Put, PutNew, Stat


class MissingStore(Get, List, Put, PutNew, Stat, Delete, Protocol):
    """The store operations that this module uses."""


def missing_error(
    store: MissingStore,
    table: str,
    base: Base,
    error: FileMissingError,
    names_of: Callable[[Snapshot], Container[str]] | None = None,
) -> CorruptionError | SnapshotExpiredError:
    """The error for a missing file that a snapshot references.

    Args:
        base: the snapshot. If its mark is unknown, `names_of` decides whether the snapshot with its id references the
            file.
    Cost: a get for the snapshot, and the tags.
    """
    found = Snapshots(store, table).find(base.id)
    left = [one for one in (found, *(tag.snapshot for tag in Tags(store, table).list())) if base.is_of(one)]
    if base.mark is None and names_of is not None:
        name = _name(error)
        left = [one for one in left if one is not None and name in names_of(one)]
    if left:
        return _damage(base.id, error)
    what = "expired" if found is None else "was rolled back, and another one has its id now,"
    return SnapshotExpiredError(
        f"snapshot {base.id} of {table} {what} while it was read: {error.path} no longer exists{PINNING}",
        path=error.path,
        snapshot_id=base.id,
    )


def missing_change_error(
    store: MissingStore, table: str, since: int, last: int, error: FileMissingError
) -> CorruptionError | SnapshotExpiredError:
    """The error for a missing file of the changes after snapshot `since` up to and including `last`.

    Cost: a get for each of the snapshots, up to the first one that is gone.
    """
    snapshots = Snapshots(store, table)
    gone = next((number for number in range(since + 1, last + 1) if snapshots.find(number) is None), None)
    if gone is None:
        return _damage(last, error)
    return SnapshotExpiredError(
        f"snapshot {gone} of {table} expired while its changes were read: {error.path} no longer exists{PINNING}",
        path=error.path,
        snapshot_id=gone,
    )


def missing_bytes_error(
    store: MissingStore, table: str, snapshots: Sequence[int], error: FileMissingError
) -> FileMissingError | SnapshotExpiredError:
    """The error for a missing file that values of rows refer to, and no manifest names.

    Args:
        snapshots: ids of the snapshots whose rows were read.
    Cost: a get for each of the snapshots, and the tags if one is gone.
    """
    kept, longer = Snapshots(store, table), Changelogs(store, table)
    gone = [number for number in snapshots if kept.find(number) is None and longer.find(number) is None]
    tagged = {tag.snapshot.id for tag in Tags(store, table).list()} if gone else set()
    expired = next((number for number in gone if number not in tagged), None)
    if expired is None:
        return error
    return SnapshotExpiredError(
        f"snapshot {expired} of {table} expired while it was read: {error.path} is gone{PINNING}",
        path=error.path,
        snapshot_id=expired,
    )


def why_replaced(latest: Snapshot | None, names: Container[str], error: FileMissingError) -> str:
    """The reason why work on a bucket is pointless: others replaced a file of the bucket, and expiry has deleted it.

    Args:
        names: the names that the latest snapshot references in the bucket.
        Raises:
            CorruptionError: the file should exist.
    """
    if latest is not None and _name(error) in names:
        raise _damage(latest.id, error) from error
    return f"others replaced files of the bucket in the meantime: {error}"


def _name(error: FileMissingError) -> str:
    return str(error.path).rpartition("/")[2]


def _damage(number: int, error: FileMissingError) -> CorruptionError:
    message = f"{error.path} does not exist, but snapshot {number} references it"
    return CorruptionError(message, path=error.path)
