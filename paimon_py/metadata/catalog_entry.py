"""The catalog's part in commits and schema changes of a table, and the lock that a catalog can provide.

A table that consists only of its directory has no `CatalogEntry`.

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


class SnapshotCatalog(Protocol):
    """Snapshots and branches of a table that a catalog manages, for one branch."""

    def newest(self) -> Snapshot | None:
        """The newest snapshot; None if the branch has none.

        Raises: TableNotFoundError, StorageError
        """
        ...

    def roll_back(self, target: Snapshot, tag: str | None) -> None:
        """Make a snapshot the newest one; `tag` names it if it may have expired.

        Raises: SnapshotNotFoundError, TagNotFoundError, TableNotFoundError, StorageError
        """
        ...

    def create_branch(self, name: str, tag: str | None) -> None:
        """Create a branch: empty, or at the snapshot of a tag.

        Raises: AlreadyExistsError, TagNotFoundError, TableNotFoundError, StorageError
        """
        ...

    def delete_branch(self, name: str) -> None:
        """Delete a branch.

        Raises: BranchNotFoundError, TableNotFoundError, StorageError
        """
        ...

    def fast_forward(self, name: str) -> None:
        """Move main to the current state of a branch.

        Raises: BranchNotFoundError, TableNotFoundError, StorageError
        """
        ...


class CatalogEntry(Protocol):
    """The entry of one table in its catalog. It can be pickled, without secrets."""

    def history(self, branch: str) -> SnapshotCatalog | None:
        """The catalog's snapshots and branches; None if the directory of the table determines them."""
        ...

    def committer(self, root: TableRoot) -> Committer:
        """The committer that publishes snapshots of a branch."""
        ...

    def alter(
        self, root: TableRoot, changes: Sequence[SchemaChange], publish: Callable[[], TableSchema], /
    ) -> TableSchema:
        """Change the schema of a branch: call `publish`, which writes the new version, and notify the catalog; or let
        the catalog apply the changes.

        Returns: the new version.

        Raises: as `metadata.schemas.alter`; StorageUnknownError if the outcome in the catalog is unknown.
        """
        ...


@runtime_checkable
class SupportsPartitions(Protocol):
    """A `CatalogEntry` in a catalog that also stores partitions, and can store tags as partitions (`metastore.…`).

    The committer reports partitions. A failed report is a `PaimonWarning`: the table itself is correct.
    """

    def tag_created(self, root: TableRoot, tag: str) -> None:
        """Report a tag to the catalog."""
        ...

    def tag_deleted(self, root: TableRoot, tag: str) -> None:
        """Report a deleted tag to the catalog."""
        ...


@runtime_checkable
class SupportsPartitionCounts(Protocol):
    """A `CatalogEntry` whose catalog collects partition statistics from commits (`metastore.partitioned-table`)."""

    @property
    def counts_partitions(self) -> bool:
        """Whether the catalog counts the partitions of this table."""
        ...


def partition_catalog(root: TableRoot) -> SupportsPartitions | None:
    """The catalog that also stores partitions and tags of a table; None for those of a branch."""
    entry = root.registration
    return entry if isinstance(entry, SupportsPartitions) and root.branch == MAIN_BRANCH else None


class Lock(Protocol):
    """Excludes all other callers that lock the same table."""

    def hold(self, branch: str) -> AbstractContextManager[float]:
        """Hold the lock of a branch for a block.

        Yields the reading of the clock's `elapsed` until which no other caller can have the lock.
        A lock that could not be released is a `PaimonWarning`: the work in the block is complete.

        Raises:
            LockTimeoutError: others held the lock for as long as this call may wait; nothing was done.
            StorageError: the catalog cannot be reached; nothing was done.
        """
        ...


class LockedCommitter:
    """Publishes snapshots like the store, under a lock that excludes writers which cannot create files exclusively."""

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
    """A table of a catalog that provides locks and stores only the table's name.

    Subclasses report new schemas to their catalog.
    """

    __slots__ = ("_lock",)

    def __init__(self, lock: Lock | None) -> None:
        self._lock = lock

    def history(self, branch: str) -> SnapshotCatalog | None:  # noqa: ARG002
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
