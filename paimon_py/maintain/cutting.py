"""Cutting a history: the common part of rollback and fast-forward.

A cut replaces the end of a history. The snapshots to remove are deleted newest first, and their replacements are
written as soon as a reader may find them: the table has a snapshot at every moment. Before each deletion
the call makes sure that no other call has taken the cut over, so that a process that was thought dead does no harm.

Source: docs/reliability.md §3 (o).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.errors import CommitConflictError, CorruptionError, PaimonError
from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.catalog_entry import partition_catalog
from paimon_py.metadata.cuts import Cut
from paimon_py.metadata.hints import read_hint
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.id_runs import shown_ids
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import UserFile
from paimon_py.metadata.users import RolledBackNumber, UserHistory
from paimon_py.spec.layout import earliest_hint_path, latest_hint_path, snapshot_path, tag_path
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.users import UserCommit

_ROUNDS = 20


class NewerSnapshotsError(CommitConflictError):
    """New snapshots or schemas appeared that must not be deleted."""

    def __init__(self, path: str, ids: Sequence[int], what: str = "snapshot") -> None:
        super().__init__(f"others committed to {path} in the meantime: {shown_ids(what, ids)}", table=path)


class HistoryCut:
    """One call that cuts the history of a table.

    Attributes:
        over: the cut of an interrupted call that this one takes over; None if there is none.
        gone: ids of the snapshots that this call has deleted.
    """

    def __init__(self, root: TableRoot, verb: str, snapshots: Sequence[Snapshot], branch: str = "") -> None:
        """`snapshots`: the end of the history after the cut; see `Cut`."""
        self._root = root
        self._cut = Cut(owner=root.env.ids.uuid(), verb=verb, branch=branch, snapshots=tuple(snapshots))
        self.over: Cut | None = None
        self._takes_over = root.cuts.exists()
        self.gone: set[int] = set()
        self._known: frozenset[int] | None = None
        self._has_written = False
        self._wanted = frozenset[int]()
        if self._takes_over:
            with suppress(CorruptionError):  # a damaged file is taken over like any other
                self.over = root.cuts.find()

    def holds(self, snapshot: Snapshot) -> bool:
        """Whether the cut that is taken over has kept a snapshot."""
        return self.over is not None and any(one.mark == snapshot.mark for one in self.over.snapshots)

    def begin(self, check: Callable[[], None]) -> None:
        """Begin the cut. If this raises, nothing has changed.

        The cut of another call, which may still be working, is taken over only if `check` passes.

        Args:
            check: checks that everything the cut needs exists; called once more when the cut is recorded.

        Raises:
            CommitConflictError: another call is at work.
            TableNotFoundError: another table is at the path.
        """
        root = self._root
        if self._takes_over:
            root.schemas.latest()  # another table may have come to the path since the caller was checked
            check()
            self._takes_over = root.cuts.exists()  # the other call may have ended
        root.cuts.begin(self._cut, takes_over=self._takes_over)
        try:
            if not self._takes_over:
                root.schemas.latest()
            check()
        except PaimonError:
            self._step_back()
            raise
        root.store.delete(latest_hint_path(root.branch_path))

    def _step_back(self) -> None:
        """Leave the table as it was before the cut was recorded.

        With a LATEST hint, the call that was taken over has changed nothing yet, or has ended in the meantime.
        """
        cuts = self._root.cuts
        if self._takes_over and self.over is not None:
            cuts.begin(self.over, takes_over=True)
        if not self._takes_over or read_hint(self._root.store, latest_hint_path(self._root.branch_path)):
            cuts.end()

    def check(self) -> None:
        """Check that the cut is still that of this call, and the table that of the cut. Cost: a get.

        Raises: CommitConflictError
        """
        self._root.cuts.check(self._cut)

    def claim(self, latest: Snapshot | None, first: Snapshot) -> None:
        """Prevent further commits on the latest snapshot, if `first` will not get the id after it.

        Deletes the latest snapshot: a commit in progress withdraws what it published if its parent is gone. An earlier
        commit is detected, and the state is restored.

        Args:
            first: the oldest snapshot to be added.

        Cost: two lists, a delete, and a put if there is at most one snapshot.
        Raises: NewerSnapshotsError
        """
        root, newest = self._root, 0 if latest is None else latest.id
        if first.id == newest + 1:
            return
        path, there = snapshot_path(root.branch_path, first.id), root.snapshots.ids()
        self.check()
        if there[-1:] != ([newest] if newest else []):
            raise NewerSnapshotsError(root.path, [number for number in there if number > newest])
        if len(there) <= 1:
            root.store.put(path, snapshot_to_json(first), within=root.path)
        if latest is not None:
            root.store.delete(snapshot_path(root.branch_path, newest))
        new = [number for number in root.snapshots.ids() if number > newest and number != first.id]
        if not new:
            self.gone.update([newest] if newest else [])
            self._has_written = True
            return
        if latest is not None:
            root.store.put(snapshot_path(root.branch_path, newest), snapshot_to_json(latest), within=root.path)
        if len(there) <= 1:
            root.store.delete(path)
        raise NewerSnapshotsError(root.path, new)

    def replace(
        self,
        kept: frozenset[int],
        coming: Sequence[Snapshot],
        *,
        between: Callable[[], None] = lambda: None,
        known: frozenset[int] | None = None,
    ) -> None:
        """Replace the history by the kept snapshots, followed by the new ones, ascending.

        Args:
            kept: ids, lower than those of the new snapshots.
            between: called before a snapshot is written, and after possible deletions.
            known: ids of the snapshots that may be deleted, None: all. A concurrent commit is then not overwritten.

        Raises:
            NewerSnapshotsError: there is a snapshot that must not be deleted.
            CommitConflictError: another call took over; or other writers keep publishing snapshots.
        """
        wanted, deleted = {snapshot.id for snapshot in coming}, frozenset[int]()
        self._known, self._wanted = known, kept.union(wanted)
        for _ in range(_ROUNDS):
            ids = self._root.snapshots.ids()
            missing = [one for one in coming if not Base.of(one).is_of(self._root.snapshots.find(one.id))]
            extra = [number for number in ids if number not in kept and number not in wanted]
            if deleted or known is not None:
                extra = self._without_new(extra, coming[-1], deleted or frozenset([0]))
            self._check_known(extra)
            if not missing and not extra:
                return
            self._step(ids, missing, extra, between)
            deleted = deleted.union(extra, [0])
        raise CommitConflictError(
            f"other writers keep publishing snapshots of {self._root.path}; stop them, and call again",
            table=self._root.path,
        )

    def _without_new(self, ids: Sequence[int], last: Snapshot, deleted: frozenset[int]) -> list[int]:
        """Ids without those of snapshots that other writers have published on the new history.

        Ids that were deleted before, and ids beyond all others, belong to later snapshots.
        """
        new: list[int] = []
        before = last
        while before.id + 1 in ids and (before.id + 1 in deleted or before.id + 1 > max(deleted)):
            after = self._root.snapshots.find(before.id + 1)
            if after is None or not is_built_on(self._root.manifests, after, before):
                break
            new.append(after.id)
            before = after
        return [number for number in ids if number not in new]

    def _step(
        self, ids: Sequence[int], missing: Sequence[Snapshot], extra: Sequence[int], between: Callable[[], None]
    ) -> None:
        """Delete and write in an order in which the table always has a snapshot.

        The first new snapshot is written before the last old one is deleted.
        """
        leaving = sorted(extra, reverse=True)
        held = leaving.pop() if missing and leaving and len(leaving) == len(ids) else None
        for number in leaving:
            self._delete(number)
        if missing:
            between()
        for place, snapshot in enumerate(missing):
            self.check()
            self._put(snapshot)
            if not place and held is not None:
                self._delete(held)

    def _put(self, snapshot: Snapshot) -> None:
        """Write a snapshot, replacing one that may be deleted, if any: also that of a commit that came just now."""
        root, number = self._root, snapshot.id
        path, data = snapshot_path(root.branch_path, number), snapshot_to_json(snapshot)
        if not root.store.put_new(path, data, within=root.path):
            there = root.snapshots.find(number)
            if not Base.of(snapshot).is_of(there):
                if self._known is not None and number not in self._known:
                    raise NewerSnapshotsError(root.path, [number])
                self.check()
                root.store.put(path, data, within=root.path)
                self.gone.add(number)
        self._has_written = True

    def _check_known(self, extra: Sequence[int]) -> None:
        new = [] if self._known is None else [number for number in extra if number not in self._known]
        if new:
            raise NewerSnapshotsError(self._root.path, new)

    def withdraw(self) -> bool:
        """Revoke the cut if nothing was changed, neither by this call nor by the call that it took over.

        Returns: whether it was revoked; otherwise a later call has to finish it.
        """
        if self._has_written or self.gone or self.over is not None:
            return False
        ids, home = self._root.snapshots.ids(), self._root.branch_path
        self.check()
        if ids:
            self._root.store.put(latest_hint_path(home), str(ids[-1]).encode(), within=self._root.path)
        self._root.cuts.end()
        return True

    def _delete(self, number: int) -> None:
        self.check()
        self._root.store.delete(snapshot_path(self._root.branch_path, number))
        self.gone.add(number)

    def end(self) -> None:
        """Write the hints and mark the cut as finished."""
        ids, home, within = self._last_ids(), self._root.branch_path, self._root.path
        if (read_hint(self._root.store, earliest_hint_path(home)) or 1) != ids[0]:
            self._root.store.put(earliest_hint_path(home), str(ids[0]).encode(), within=within)
        self.check()
        self._root.store.put(latest_hint_path(home), str(ids[-1]).encode(), within=within)
        self._root.snapshots.ahead.seen = ids[-1]
        if self._root.cuts.exists():
            self.check()
            self._root.cuts.end()

    def _last_ids(self) -> list[int]:
        """The ids of the history. If another call was taken over, a snapshot that it has written since is deleted.

        Cost: a list; after a takeover a get per commit since.
        """
        ids = self._root.snapshots.ids()
        if not self._takes_over or not self._wanted.issubset(ids):
            return ids
        last = self._root.snapshots.get(max(self._wanted))
        new = self._without_new(ids, last, frozenset([0]))
        for number in reversed(new):
            if number not in self._wanted:
                self._delete(number)
        return self._root.snapshots.ids()

    def forget_numbers(self, last: Snapshot) -> None:
        """Update the files of users whose last commit is gone to what a snapshot and its ancestors record.

        If that is not known, the file says that the commit is gone, also when other snapshots with its id have expired.

        Cost: a list, and two gets and a put per user; a get per ancestor if other writers committed.
        """
        root = self._root
        numbers = UserHistory(SnapshotLog(root), root)
        for value in list(root.users.all()):
            if not self._is_gone(value, last):
                continue
            known = numbers.last(last, value.user)
            there = root.snapshots.find(known.snapshot_id) if isinstance(known, UserCommit) else None
            self.check()
            if known is None:
                root.users.delete(value.user)
            elif isinstance(known, RolledBackNumber):
                root.users.put(value.rolled_back())
            else:
                root.users.put(UserFile(value.user, known, "" if there is None else there.mark, Base.of(last)))

    def _is_gone(self, value: UserFile, last: Snapshot) -> bool:
        """Whether the last commit of a user is not among the ancestors of a snapshot, as far as these exist."""
        number = value.commit.snapshot_id
        there = self._root.snapshots.find(number) if number <= last.id else None
        return number > last.id or (number in self.gone if there is None else there.mark != value.mark)


def delete_tags_beyond(
    cutting: HistoryCut, root: TableRoot, names: Sequence[str], last: int, kept: Collection[str] = frozenset()
) -> tuple[str, ...]:
    """Delete tags of snapshots that left a history, including tags created or renamed concurrently.

    Args:
        names: the tags that are known to leave.
        last: the id beyond which tags are deleted, unless their snapshot exists.
        kept: marks of snapshots whose tags are kept.

    Cost: a get and a delete for each; a list, and a get per kept tag.
    Returns: the names of all deleted tags.
    """
    keeper, gone, leaving = partition_catalog(root), list[str](), list(names)
    while True:
        for name in reversed(leaving):
            cutting.check()
            root.store.delete(tag_path(root.branch_path, name))
            if keeper is not None:
                keeper.tag_deleted(root, name)
        gone += leaving
        later = [tag for tag in root.tags.list() if tag.snapshot.id > last and tag.snapshot.mark not in kept]
        leaving = [tag.name for tag in later if not Base.of(tag.snapshot).is_of(root.snapshots.find(tag.snapshot.id))]
        if not leaving:
            return tuple(gone)


def check_no_expiry(root: TableRoot, first: int) -> None:
    """Check that no expiry is processing a snapshot: it raises the EARLIEST hint before it deletes.

    Raises: CommitConflictError
    """
    hint = read_hint(root.store, earliest_hint_path(root.branch_path)) or 0
    ids = root.snapshots.ids()
    if ids and ids[0] <= first < hint:
        raise CommitConflictError(
            f"nothing was done: snapshots of {root.path} before {hint} are being expired, {first} among them. If no"
            " process works on that any more, table.expire_snapshots() finishes it",
            table=root.path,
            snapshot_id=first,
        )


def ancestors(root: TableRoot, snapshot: Snapshot) -> list[Snapshot]:
    """The existing snapshots from which a snapshot descends, each followed by its child, oldest first.

    Cost: a get per snapshot; for snapshots of other writers two lists.
    """
    found: list[Snapshot] = []
    child = snapshot
    while child.id > 1:
        parent = root.snapshots.find(child.id - 1)
        if parent is None or not is_built_on(root.manifests, child, parent):
            break
        found.append(parent)
        child = parent
    return found[::-1]
