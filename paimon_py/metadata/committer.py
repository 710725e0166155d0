"""Publishes one snapshot and determines the outcome.

A catalog can supply its own `Committer`: the one of the file system creates the file of the snapshot, which must not
exist. A creation that did not clearly succeed is never taken for a failure: the file is read back and compared. A
snapshot that was created unnoticed by an expiry or a rollback is deleted again: its parent must exist, with the same
mark.

Source: docs/reliability.md §3 (f), (h), (l); docs/format.md §2.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, Union

import msgspec

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.env import is_distant
from paimon_py.errors import CorruptionError, StorageError, StorageUnknownError, TableNotFoundError
from paimon_py.logs import warn
from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.hints import raise_hint
from paimon_py.metadata.user_files import number_of
from paimon_py.spec.layout import latest_hint_path, snapshot_directory, snapshot_path
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import FileMissingError

if TYPE_CHECKING:
    from paimon_py.metadata.root import TableRoot

_CREATE_ATTEMPTS = 3


class Committed(msgspec.Struct, frozen=True, tag=True):
    """The snapshot is part of the table's history."""

    snapshot: Snapshot


class LostRace(msgspec.Struct, frozen=True, tag=True):
    """The snapshot is certainly not part of the history: plan again on the current state.

    Attributes:
        was_visible: others may have read the snapshot before it was deleted again.
    """

    reason: str
    was_visible: bool = False


class Unknown(msgspec.Struct, frozen=True, tag=True):
    """The snapshot may or may not be part of the history; no file may be deleted."""

    reason: str
    snapshot_id: int


Publication = Union[Committed, LostRace, Unknown]


class Committer(Protocol):
    """Adds snapshots to a table's history, one after the other."""

    def publish(self, snapshot: Snapshot, parent: Snapshot | None, *, deadline: float) -> Publication:
        """Make a snapshot, which was planned on `parent`, the next one.

        Args:
            deadline: reading of the clock's `elapsed` after which `parent` is too old to build on.

        Raises:
            StorageError: the store refused, and the snapshot certainly does not exist.
            TableNotFoundError: the table no longer exists; nothing was published.
        """
        ...


class _Seen:
    """The results of the requests that ran together with reading a snapshot back.

    Attributes:
        parent: the snapshot with the parent's id, or the error when reading it; None if it was not read.
        hint: the id in the LATEST hint; None if it was not read or does not exist.
    """

    def __init__(self) -> None:
        self.parent: tuple[Snapshot | None] | StorageError | CorruptionError | None = None
        self.hint: int | None = None

    def parent_of(self, root: TableRoot, parent_id: int) -> Snapshot | None:
        """The snapshot with the parent's id. Raises: StorageError, CorruptionError if it could not be read."""
        if self.parent is None:
            return root.snapshots.find(parent_id)
        if isinstance(self.parent, tuple):
            return self.parent[0]
        raise self.parent


class StoreCommitter:
    """Publishes by creating the file of the snapshot with the store's exclusive create."""

    __slots__ = ("_root",)

    def __init__(self, root: TableRoot) -> None:
        self._root = root

    def publish(self, snapshot: Snapshot, parent: Snapshot | None, *, deadline: float) -> Publication:
        """See `Committer.publish`.

        Cost: three gets, one create, and the hint; for the first snapshot, a list in place of two gets.
        """
        if self._root.env.clock.elapsed() > deadline:
            return LostRace("planning took so long that the snapshot it was based on may have expired")
        if parent is not None and self._root.snapshots.find(parent.id) != parent:
            return LostRace("the snapshot it was based on no longer exists")
        home = self._root.branch_path
        created, seen = self._create(snapshot, parent, snapshot_directory(home) if parent else home)
        if not isinstance(created, bool):
            return created
        try:
            found = self._check_place(snapshot, parent, seen, certain=created)
        except (StorageError, CorruptionError) as error:
            return Unknown(f"snapshot {snapshot.id} was created, but its parent could not be checked: {error}",
            snapshot.id)
        if isinstance(found, Committed):
            self._root.snapshots.ahead.seen = snapshot.id
            cuts = self._root.cuts
            may_begin = None if parent is None else lambda: not cuts.exists()
            hint = partial(
                raise_hint, self._root.store, latest_hint_path(home), snapshot.id, seen.hint, may_begin=may_begin
            )
            self._root.env.at_once(self._root.path, [partial(keep_number, self._root, snapshot), hint])
        return found

    def _create(
        self, snapshot: Snapshot, parent: Snapshot | None, within: str
    ) -> tuple[bool | LostRace | Unknown, _Seen]:
        """Create the file, below a directory that must exist.

        Returns: True if it was certainly created just now, False if by a call whose answer was lost; and the results of
            the requests afterwards.
        """
        root, data = self._root, snapshot_to_json(snapshot)
        path = snapshot_path(root.branch_path, snapshot.id)
        unsure = False
        refused: StorageError | None = None
        for _ in range(_CREATE_ATTEMPTS):
            created = False
            try:
                created = root.store.put_new(path, data, within=within)
                refused = None
            except StorageError as error:
                unsure = unsure or isinstance(error, StorageUnknownError)
                if isinstance(error, FileMissingError) and refused is not None:
                    unsure = True  # the first call may have created the file in a table that was renamed since
                refused = error
            found, seen = self._look_back(snapshot, parent)
            if isinstance(found, (LostRace, Unknown)):
                return found, seen
            if created or found is not None:
                return created and not unsure, seen
            if refused is None or isinstance(refused, FileMissingError):
                break
        if unsure:
            return Unknown(f"the store did not say whether {path} was created", snapshot.id), _Seen()
        if isinstance(refused, FileMissingError):
            raise _no_table(root.branch_path) from refused
        if refused is not None:
            raise refused
        return LostRace(f"snapshot {snapshot.id} existed and then disappeared", was_visible=True), _Seen()

    def _look_back(
        self, snapshot: Snapshot, parent: Snapshot | None
    ) -> tuple[Snapshot | LostRace | Unknown | None, _Seen]:
        """Read the file back; on distant stores, read the parent and the hint at the same time."""
        root, seen = self._root, _Seen()
        if parent is None or not is_distant(root.path):
            return self._read_back(snapshot), seen
        found: list[Snapshot | LostRace | Unknown | None] = []

        def see_parent() -> None:
            try:
                seen.parent = (root.snapshots.find(parent.id),)
            except (StorageError, CorruptionError) as error:
                seen.parent = error

        def see_hint() -> None:
            seen.hint = root.snapshots.ahead.hint()

        root.env.at_once(root.path, [lambda: found.append(self._read_back(snapshot)), see_parent, see_hint])
        return found[0], seen

    def _read_back(self, snapshot: Snapshot) -> Snapshot | LostRace | Unknown | None:
        """The snapshot if its file contains it; None if there is no file.

        A Java writer on a local disk may have renamed its own file over this one.
        """
        try:
            there = self._root.snapshots.find(snapshot.id)
        except (StorageError, CorruptionError) as error:
            path = snapshot_path(self._root.branch_path, snapshot.id)
            return Unknown(f"{path} could not be read back: {error}", snapshot.id)
        if there is not None and there.uuid != snapshot.uuid:
            return LostRace(f"snapshot {snapshot.id} is {there.commit_user}'s")
        return there

    def _check_place(
        self, snapshot: Snapshot, parent: Snapshot | None, seen: _Seen, *, certain: bool
    ) -> Publication:
        """Check that the parent of a newly created snapshot exists, and that no later snapshots took its place.

        A missing parent has expired, because this writer was suspended or others were fast, or was rolled back. Expiry
        removes snapshots in ascending order, a rollback keeps older ones. `certain`: the file was created just now.
        """
        there = None if parent is None else seen.parent_of(self._root, parent.id)
        if parent is not None and there == parent:
            return Committed(snapshot)
        ids = self._root.snapshots.ids()
        if snapshot.id not in ids:
            return self._explain_absence(snapshot)
        if (parent is not None and ids[0] < snapshot.id) or (there is None and self._is_gone()):
            return self._withdrawn(snapshot, "others rolled the table back in the meantime", certain=certain)
        if ids[-1] == snapshot.id or self._is_built_on(snapshot):
            return Committed(snapshot)
        return self._withdrawn(
            snapshot, "others committed and expired snapshots while this commit waited", certain=certain
        )

    def _explain_absence(self, snapshot: Snapshot) -> Publication:
        """The outcome for a snapshot whose file existed and is gone: it expired, or was removed with its table."""
        return self._carried_away(snapshot) if self._is_gone() else Committed(snapshot)

    def _is_gone(self) -> bool:
        """Whether the table was renamed or dropped, with or without another one at its path now. Cost: a list."""
        try:
            self._root.schemas.latest()
        except TableNotFoundError:
            return True
        return False

    def _carried_away(self, snapshot: Snapshot) -> Unknown:
        return Unknown("the table was renamed or dropped while the snapshot was published", snapshot.id)

    def _is_built_on(self, snapshot: Snapshot) -> bool:
        """Whether the next snapshot was built on this one."""
        successor = self._root.snapshots.find(snapshot.id + 1)
        return successor is not None and is_built_on(self._root.manifests, successor, snapshot)

    def _withdrawn(self, snapshot: Snapshot, reason: str, *, certain: bool) -> Publication:
        """Delete a snapshot that is not part of the history, unless others have built on it.

        The existence of the table is checked first: a later rename may move the snapshot as well.
        """
        root = self._root
        was_gone = self._is_gone()
        if root.snapshots.find(snapshot.id + 1) is not None and self._is_built_on(snapshot):
            return Unknown(f"{reason}, and others built on snapshot {snapshot.id}", snapshot.id)
        is_here = root.snapshots.find(snapshot.id) == snapshot
        if is_here:
            root.store.delete(snapshot_path(root.branch_path, snapshot.id))
        if was_gone and is_here:
            raise _no_table(root.branch_path)
        if was_gone or self._is_gone():
            return self._carried_away(snapshot)
        if not certain:
            return Unknown(f"snapshot {snapshot.id} may have been published and then expired", snapshot.id)
        return LostRace(reason, was_visible=True)


def keep_number(root: TableRoot, snapshot: Snapshot) -> None:
    """Store the number of a commit in the user's file, since its snapshot may expire. Cost: a put, if it has a number.

    Raises: PaimonWarning where warnings are errors, if the store fails.
    """
    try:
        value = number_of(snapshot, root.manifests)
        if value is not None:
            root.users.put(value)
    except StorageError as error:
        warn(
            f"{root.path}: snapshot {snapshot.id} was committed, but its number was not stored: {error}; a"
            " later commit tries again"
        )


def _no_table(path: str) -> TableNotFoundError:
    return TableNotFoundError(
        f"nothing was committed: the table at {path} was renamed or dropped; open it again", path=path
    )
