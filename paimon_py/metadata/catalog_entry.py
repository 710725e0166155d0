"""The catalog's part in commits and schema changes of a table, and the lock that a catalog can provide.

A table that is its directory and no more has no `CatalogEntry`.

Source: Java `CatalogEnvironment`, `SnapshotCommit`, `RenamingSnapshotCommit`, `CatalogLock`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from paimon_py.metadata.committer import Committer, Publication, StoreCommitter
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SchemaChange
from paimon_py.spec.snapshot import Snapshot

if TYPE_CHECKING:
    from paimon_py.metadata.root import TableRoot


class HistoryKeeper(Protocol):
    """The snapshots and branches of a table as a catalog keeps them that is asked for them, seen from one branch."""

    def newest(self) -> Snapshot | None:
        """The newest snapshot, None if the branch has none.

        Raises: TableNotFoundError, StorageError
        """
        ...

    def roll_back(self, target: Snapshot, tag: str | None) -> None:
        """Make a snapshot the newest one; `tag` names it where it may have expired.

        Raises: SnapshotNotFoundError, TagNotFoundError, TableNotFoundError, StorageError
        """
        ...

    def create_branch(self, name: str, tag: str | None) -> None:
        """Make a branch: empty, or at the snapshot of a tag.

        Raises: AlreadyExistsError, TagNotFoundError, TableNotFoundError, StorageError
        """
        ...

    def delete_branch(self, name: str) -> None:
        """Delete a branch.

        Raises: BranchNotFoundError, TableNotFoundError, StorageError
        """
        ...

    def fast_forward(self, name: str) -> None:
        """Make main what a branch is now.

        Raises: BranchNotFoundError, TableNotFoundError, StorageError
        """
        ...


class CatalogEntry(Protocol):
    """The entry of one table in its catalog. Can be pickled, without secrets."""

    def history(self, branch: str) -> HistoryKeeper | None:
        """Who is asked for the snapshots and branches; None: the directory of the table says what there is."""
        ...

    def committer(self, root: TableRoot) -> Committer:
        """Who makes snapshots of a branch part of its history."""
        ...

    def alter(
        self, root: TableRoot, changes: Sequence[SchemaChange], publish: Callable[[], TableSchema], /
    ) -> TableSchema:
        """Change the schema of a branch: call `publish`, which writes the new version, and tell the catalog; or have
        the catalog apply the changes.

        Returns: the new version.

        Raises: as `metadata.schemas.alter`; StorageUnknownError where nobody can tell what the catalog did.
        """
        ...


@runtime_checkable
class KeepsPartitions(Protocol):
    """A `CatalogEntry` in a catalog that keeps partitions too, and shows tags as such (`metastore.…`).

    Partitions are told by the committer. What cannot be told is a `PaimonWarning`: the table is as it should be.
    """

    def tag_made(self, root: TableRoot, tag: str) -> None:
        """Tell the catalog of a tag."""
        ...

    def tag_gone(self, root: TableRoot, tag: str) -> None:
        """Tell the catalog that a tag is gone."""
        ...


@runtime_checkable
class CountsPartitions(Protocol):
    """A `CatalogEntry` whose catalog counts partitions from what commits tell (`metastore.partitioned-table`)."""

    @property
    def counts_partitions(self) -> bool:
        """Whether the catalog does so for this table."""
        ...


def keeper_of(root: TableRoot) -> KeepsPartitions | None:
    """Who keeps partitions and tags of a table besides the table itself; nobody does for those of a branch."""
    entry = root.registration
    return entry if isinstance(entry, KeepsPartitions) and root.branch == MAIN_BRANCH else None


class Lock(Protocol):
    """Keeps all others who ask for the same table out."""

    def hold(self, branch: str) -> AbstractContextManager[float]:
        """Hold the lock of a branch for a block.

        Gives the reading of the clock's `elapsed` until which nobody else can have the lock.
        A lock that could not be given back is a `PaimonWarning`: what was done in the block is done.

        Raises:
            LockTimeoutError: others held it for as long as this call may wait; nothing was done.
            StorageError: the catalog cannot be reached; nothing was done.
        """
        ...


class LockedCommitter:
    """Publishes snapshots as the store does, while a lock keeps others out: those who cannot create exclusively."""

    __slots__ = ("_branch", "_lock", "_store")

    def __init__(self, root: TableRoot, lock: Lock) -> None:
        self._branch = root.branch
        self._lock = lock
        self._store = StoreCommitter(root)

    def publish(self, snapshot: Snapshot, parent: Snapshot | None, *, deadline: float) -> Publication:
        """See `Committer.publish`. Cost: the lock, and what publishing costs in the store."""
        with self._lock.hold(self._branch) as until:
            return self._store.publish(snapshot, parent, deadline=min(deadline, until))


class LockedRegistration:
    """A table of a catalog that gives locks, and keeps nothing but its name.

    Subclasses tell their catalog of new schemas.
    """

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock | None) -> None:
        self._lock = lock

    def history(self, branch: str) -> HistoryKeeper | None:  # noqa: ARG002
        """See `CatalogEntry.history`."""
        return None

    def committer(self, root: TableRoot) -> Committer:
        """See `CatalogEntry.committer`."""
        return StoreCommitter(root) if self._lock is None else LockedCommitter(root, self._lock)

    def alter(
        self, root: TableRoot, _changes: Sequence[SchemaChange], publish: Callable[[], TableSchema]
    ) -> TableSchema:
        """See `CatalogEntry.alter`."""
        if self._lock is None:
            return publish()
        with self._lock.hold(root.branch):
            return publish()
