"""History: the snapshots of a table as a chain, each built on the previous one.

This module answers which snapshots came after another, whether one descends from another, and whether the chain is
complete. The snapshots after a base are returned as a `SnapshotRange`, or as a `HistoryGap`, which is never taken for
an empty range: unseen changes may be anything.

Snapshots of paimon_py contain the mark of their parent; for those of other writers the manifests decide.

Source: docs/format.md §2, §4.1, §4.3; docs/reliability.md §3 (b), (c), (f), (l), (o).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.env import is_distant
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError

if TYPE_CHECKING:
    from paimon_py.metadata.manifests import Manifests

_AHEAD_MAX = 64
"""The number of snapshots that are fetched in parallel on distant stores."""


class HistoryGap(msgspec.Struct, frozen=True):
    """The changes after a base are unknown: the base, a later snapshot or a manifest expired or was rolled back."""

    base: Base


class SnapshotRange:
    """Consecutive snapshots of a table, each with the entries it added and deleted.

    Attributes:
        snapshots: the snapshots, oldest first.
    """

    __slots__ = ("_manifests", "snapshots")

    def __init__(self, manifests: Manifests, snapshots: Iterable[Snapshot]) -> None:
        self._manifests = manifests
        self.snapshots = tuple(snapshots)

    def entries(self, entry_filter: EntryFilter | None = None) -> EntryColumns | HistoryGap:
        """The entries of the deltas, oldest first. Cost: two gets for each snapshot, minus what was read before."""
        return self._entries([snapshot.delta_manifest_list for snapshot in self.snapshots], entry_filter)

    def changelog_entries(self, entry_filter: EntryFilter | None = None) -> EntryColumns | HistoryGap:
        """Changelog files, oldest first. Cost: two gets for each snapshot that has some."""
        lists = [snapshot.changelog_manifest_list for snapshot in self.snapshots]
        return self._entries([name for name in lists if name is not None], entry_filter)

    def added_names(self) -> pa.Array | HistoryGap:
        """The names of all added data files and changelog files."""
        data, changelog = self.entries(), self.changelog_entries()
        if isinstance(data, HistoryGap) or isinstance(changelog, HistoryGap):
            return self._gap()
        return pa.concat_arrays([data.names(), changelog.names()])

    def index_names(self) -> set[str] | HistoryGap:
        """The names of all index files that the snapshots reference."""
        names: set[str] = set()
        for name in dict.fromkeys(snapshot.index_manifest for snapshot in self.snapshots):
            try:
                names.update(entry.name for entry in self._index(name))
            except FileMissingError:
                return self._gap()
        return names

    def each(self) -> Iterator[SnapshotRange]:
        """The snapshots one by one, oldest first."""
        return (SnapshotRange(self._manifests, [snapshot]) for snapshot in self.snapshots)

    def _index(self, name: str | None) -> Sequence[IndexEntry]:
        return () if name is None else self._manifests.read_index(name)

    def _entries(self, lists: Sequence[str], entry_filter: EntryFilter | None) -> EntryColumns | HistoryGap:
        try:
            return self._manifests.read_entries(self._manifests.read_lists(lists), entry_filter)
        except FileMissingError:
            return self._gap()

    def _gap(self) -> HistoryGap:
        return HistoryGap(Base(self.snapshots[0].id - 1, ""))


def replaces_all(manifests: Manifests, snapshot: Snapshot) -> bool:
    """Whether a commit replaced all rows of its table: an overwrite after which no other files are left.

    Cost: none for other commits; otherwise the manifests of the snapshot.
    Raises: SnapshotExpiredError, CorruptionError
    """
    if snapshot.commit_kind is not CommitKind.OVERWRITE:
        return False
    added = manifests.read_entries(manifests.delta(snapshot)).additions()
    return set(added.names().to_pylist()).issuperset(manifests.live_entries(snapshot).names().to_pylist())


class SnapshotLog:
    """The known snapshots of a table for one commit, writer or stream: each is fetched once.

    Of the known snapshots only the newest one is read again, before later ones are added: a rollback may have removed
    it, which invalidates all of them.
    """

    def __init__(self, root: TableRoot) -> None:
        self._root = root
        self._known: dict[int, Snapshot | None] = {}
        self._newest: Snapshot | None = None

    def after(self, base: Base, latest: Snapshot | None) -> SnapshotRange | HistoryGap:
        """The snapshots after a base up to and including `latest`, which must be newer than in all earlier calls.

        Cost: none if `latest` is the base; otherwise a get for the base and for each snapshot in between, and one if
            others were already known.
        """
        if base.is_of(latest):
            return self._history([])
        if latest is None or base.id >= latest.id:
            return HistoryGap(base)
        self._join(latest)
        numbers = self._fetch(range(max(base.id, 1), latest.id + 1))
        if base.id and not base.is_of(self._find(base.id)):
            return HistoryGap(base)
        found = [self._find(number) for number in numbers if number > base.id]
        there = [snapshot for snapshot in found if snapshot is not None]
        return self._history(there) if len(there) == len(found) else HistoryGap(base)

    def until_now(self, base: Base) -> SnapshotRange | HistoryGap:
        """The snapshots after a base up to the current latest one. Cost: as `after`, and finding the latest one."""
        return self.after(base, self._root.snapshots.latest())

    def at(self, base: Base, latest: Snapshot | None) -> Snapshot | None:
        """The snapshot of a base; None if it no longer exists, or the base is the empty table."""
        if base.is_of(latest):
            return latest
        if latest is not None and base.id < latest.id:
            self._join(latest)
        found = self._find(base.id) if base.id else None
        return found if base.is_of(found) else None

    def newest_first(self, latest: Snapshot | None, *, below: int | None = None) -> Iterator[Snapshot]:
        """The snapshots from `latest` down to the oldest remaining one, which is snapshot 1 if none has expired.

        `below`: only those below this id.

        Cost: a get for each; distant stores are read ahead in growing chunks.
        """
        if latest is None:
            return
        self._join(latest)
        next_id, size = latest.id - 1, 1
        if below is None or below > latest.id:
            yield latest
        else:
            next_id = below - 1
        while next_id > 0:
            for number in self._fetch(range(next_id, max(next_id - size, 0), -1)):
                snapshot = self._find(number)
                if snapshot is None:
                    return
                yield snapshot
                next_id = number - 1
            size = min(2 * size, _AHEAD_MAX)

    def all_existing(self, latest: Snapshot | None) -> SnapshotRange:
        """All remaining snapshots, including those of tags, oldest first. Cost: a get for each, and one list."""
        found = {snapshot.mark: snapshot for snapshot in self.newest_first(latest)}
        found.update((tag.snapshot.mark, tag.snapshot) for tag in self._root.tags.list())
        return self._history(sorted(found.values(), key=lambda snapshot: snapshot.id))

    def existing_names(self) -> set[str] | HistoryGap:
        """The names of all files in remaining snapshots and tags: data files, their extra files, changelog files,
        index files.

        Names of files that were deleted since some snapshot may be included. The changelog of a snapshot that only a
        tag holds may be missing.

        Cost: as `all_existing`, two gets for each, and the files of the latest snapshot and of the tags.
        """
        latest = self._root.snapshots.latest()
        history = self.all_existing(latest)
        changed, index = history.entries(), history.index_names()
        if isinstance(changed, HistoryGap) or isinstance(index, HistoryGap):
            return HistoryGap(Base.of(latest))
        names = {name for entry in changed.entries() for name in (entry.file.name, *entry.file.extra_files)} | index
        for one in history.each():
            changelog = one.changelog_entries()
            names.update(() if isinstance(changelog, HistoryGap) else changelog.names().to_pylist())
        tagged = (tag.snapshot for tag in self._root.tags.list())
        for snapshot in (*tagged, *([] if latest is None else [latest])):
            names |= self._root.manifests.file_names(snapshot)
        return names

    def _history(self, snapshots: Iterable[Snapshot]) -> SnapshotRange:
        return SnapshotRange(self._root.manifests, snapshots)

    def _join(self, latest: Snapshot) -> None:
        """Add a newer snapshot to the known ones, or start over if it does not descend from them."""
        newest = self._newest
        if self._known.get(latest.id) == latest:
            return
        if newest is not None and (latest.id <= newest.id or self._root.snapshots.find(newest.id) != newest):
            self._known = {}
        self._known[latest.id] = self._newest = latest

    def _find(self, number: int) -> Snapshot | None:
        if number not in self._known:
            self._known[number] = self._root.snapshots.find(number)
        return self._known[number]

    def _fetch(self, numbers: Sequence[int]) -> Sequence[int]:
        """The same numbers, after fetching their snapshots in parallel on distant stores."""
        missing = [number for number in numbers if number not in self._known]
        if len(missing) > 1 and is_distant(self._root.path):
            found = self._root.env.io.map(self._root.snapshots.find, missing)
            self._known.update(zip(missing, found, strict=True))
        return numbers
