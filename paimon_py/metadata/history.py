"""History: the snapshots of a table as a chain, each built on the one before.

Every question of the form "what came since", "does this come from that" and "is the chain whole" is asked here. What
came since a base is answered by the steps in between or by `Lost`, which is never taken for an empty history: what was
not seen may be anything.

Snapshots of paimon_py name the one they were built on; of those of other writers the manifests tell.

Source: docs/format.md §2, §4.1, §4.3; docs/reliability.md §3 (b), (c), (f), (l), (o).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.env import is_distant
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.manifests import Manifests
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError

_AHEAD_MAX = 64
"""Snapshots that are fetched at once, where requests take their time."""


class Lost(msgspec.Struct, frozen=True):
    """What came after a base cannot be told: the base, a snapshot after it or a manifest expired or was rolled back."""

    base: Base


class History:
    """Some snapshots of a table in their order, each with what it added and took away.

    Attributes:
        snapshots: the snapshots, oldest first.
    """

    __slots__ = ("_manifests", "snapshots")

    def __init__(self, manifests: Manifests, snapshots: Iterable[Snapshot]) -> None:
        self._manifests = manifests
        self.snapshots = tuple(snapshots)

    def entries(self, entry_filter: EntryFilter | None = None) -> EntryColumns | Lost:
        """What the deltas add and delete, oldest first. Cost: two gets for each snapshot, less what was read before."""
        return self._entries([snapshot.delta_manifest_list for snapshot in self.snapshots], entry_filter)

    def changelog_entries(self, entry_filter: EntryFilter | None = None) -> EntryColumns | Lost:
        """Changelog files, oldest first. Cost: two gets for each snapshot that has some."""
        lists = [snapshot.changelog_manifest_list for snapshot in self.snapshots]
        return self._entries([name for name in lists if name is not None], entry_filter)

    def added_names(self) -> pa.Array | Lost:
        """Names of all data files and changelog files that were added."""
        data, changelog = self.entries(), self.changelog_entries()
        if isinstance(data, Lost) or isinstance(changelog, Lost):
            return self._gap()
        return pa.concat_arrays([data.names(), changelog.names()])

    def index_names(self) -> set[str] | Lost:
        """Names of all index files that the snapshots name."""
        names: set[str] = set()
        for name in dict.fromkeys(snapshot.index_manifest for snapshot in self.snapshots):
            try:
                names.update(entry.name for entry in self._index(name))
            except FileMissingError:
                return self._gap()
        return names

    def each(self) -> Iterator[History]:
        """The snapshots one by one, oldest first."""
        return (History(self._manifests, [snapshot]) for snapshot in self.snapshots)

    def _index(self, name: str | None) -> Sequence[IndexEntry]:
        return () if name is None else self._manifests.read_index(name)

    def _entries(self, lists: Sequence[str], entry_filter: EntryFilter | None) -> EntryColumns | Lost:
        try:
            return self._manifests.read_entries(self._manifests.read_lists(lists), entry_filter)
        except FileMissingError:
            return self._gap()

    def _gap(self) -> Lost:
        return Lost(Base(self.snapshots[0].id - 1, ""))


class SnapshotLog:
    """The snapshots of a table as one commit, writer or stream gets to know them: each is fetched once.

    Of what is known only the newest snapshot is looked at again, before later ones are joined to it: a rollback may
    have taken it away, and then nothing known counts.
    """

    def __init__(self, root: TableRoot) -> None:
        self._root = root
        self._known: dict[int, Snapshot | None] = {}
        self._newest: Snapshot | None = None

    def after(self, base: Base, latest: Snapshot | None) -> History | Lost:
        """The snapshots after a base up to and with `latest`, which was seen later than all that were given before.

        Cost: none if `latest` is the base; else a get for the base and for each snapshot in between, and one if others
            were known already.
        """
        if base.is_of(latest):
            return self._history([])
        if latest is None or base.id >= latest.id:
            return Lost(base)
        self._join(latest)
        numbers = self._fetch(range(max(base.id, 1), latest.id + 1))
        if base.id and not base.is_of(self._find(base.id)):
            return Lost(base)
        found = [self._find(number) for number in numbers if number > base.id]
        there = [snapshot for snapshot in found if snapshot is not None]
        return self._history(there) if len(there) == len(found) else Lost(base)

    def until_now(self, base: Base) -> History | Lost:
        """The snapshots after a base up to the latest one there is. Cost: as `after`, and finding the latest one."""
        return self.after(base, self._root.snapshots.latest())

    def at(self, base: Base, latest: Snapshot | None) -> Snapshot | None:
        """The snapshot of a base; None if there is none any more, or the base is the empty table."""
        if base.is_of(latest):
            return latest
        if latest is not None and base.id < latest.id:
            self._join(latest)
        found = self._find(base.id) if base.id else None
        return found if base.is_of(found) else None

    def newest_first(self, latest: Snapshot | None, *, below: int | None = None) -> Iterator[Snapshot]:
        """The snapshots from `latest` down to the oldest that is left; the last one is snapshot 1 if none has expired.

        `below`: those below this id alone.

        Cost: a get for each; read ahead in growing chunks where requests take their time.
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

    def all_left(self, latest: Snapshot | None) -> History:
        """All snapshots that are left, those of tags included, oldest first. Cost: a get for each, and one list."""
        found = {snapshot.mark: snapshot for snapshot in self.newest_first(latest)}
        found.update((tag.snapshot.mark, tag.snapshot) for tag in self._root.tags.list())
        return self._history(sorted(found.values(), key=lambda snapshot: snapshot.id))

    def names_left(self) -> set[str] | Lost:
        """Names of all files that a snapshot or tag that is left has: data files, those beside them, changelog files,
        index files.

        Names of files that were deleted since some snapshot may be among them. The changelog of a snapshot that only a
        tag holds may be gone.

        Cost: as `all_left`, two gets for each, and the files of the latest snapshot and of the tags.
        """
        latest = self._root.snapshots.latest()
        history = self.all_left(latest)
        changed, index = history.entries(), history.index_names()
        if isinstance(changed, Lost) or isinstance(index, Lost):
            return Lost(Base.of(latest))
        names = {name for entry in changed.entries() for name in (entry.file.name, *entry.file.extra_files)} | index
        for one in history.each():
            told = one.changelog_entries()
            names.update(() if isinstance(told, Lost) else told.names().to_pylist())
        tagged = (tag.snapshot for tag in self._root.tags.list())
        for snapshot in (*tagged, *([] if latest is None else [latest])):
            names |= self._root.manifests.file_names(snapshot)
        return names

    def _history(self, snapshots: Iterable[Snapshot]) -> History:
        return History(self._root.manifests, snapshots)

    def _join(self, latest: Snapshot) -> None:
        """Put a newer snapshot on top of those known, or begin anew if they are not what it came from."""
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
        """The same numbers; where requests take their time their snapshots are fetched at once."""
        missing = [number for number in numbers if number not in self._known]
        if len(missing) > 1 and is_distant(self._root.path):
            found = self._root.env.io.map(self._root.snapshots.find, missing)
            self._known.update(zip(missing, found, strict=True))
        return numbers
