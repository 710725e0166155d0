"""The names of all files that a table's states reference: snapshots, tags, and kept changelogs.

Names are stored as 64-bit hashes, 8 bytes each. A hash collision makes an orphan look referenced, never the other way
round.

Source: format.md §16.6; docs/reliability.md §3 (e); Java `OrphanFilesClean`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import Mask, Words, combine, slices_of
from paimon_py.codec.file_index.xxhash import xxhash64
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.codec.snapshot_json import tag_from_json
from paimon_py.errors import CorruptionError, StorageError
from paimon_py.metadata.changelogs import Changelogs
from paimon_py.metadata.cuts import Cuts
from paimon_py.metadata.hints import read_hint
from paimon_py.metadata.manifests import Manifests, groups_of
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.schemas import Schemas
from paimon_py.metadata.snapshots import Snapshots
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.layout import (
    BRANCH_PREFIX,
    CHANGELOG_PREFIX,
    CUT,
    EARLIEST,
    LATEST,
    SNAPSHOT_PREFIX,
    TAG_PREFIX,
    branch_directory,
    changelog_directory,
    latest_hint_path,
    parse_number,
    snapshot_directory,
    snapshot_path,
    tag_directory,
)
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.users import users_of
from paimon_py.storage.store import FileMissingError, FileStatus

_ROUNDS = 10
_WAIT_SECONDS = 0.2
_GROUP_ENTRIES = 50_000
"""Number of entries per group of manifests that are read together, about a kilobyte of memory each."""

_AT_ONCE = 256
"""Number of states per group that are read together."""

_LOOSE_MAX = 1 << 20
"""The number of new hashes at which they are merged into the sorted ones."""


class BranchRoot(NamedTuple):
    """The directory of the main branch, which is the table's, or of another branch."""

    path: str
    schemas: Schemas


def branch_roots(root: TableRoot) -> list[BranchRoot]:
    """Main and all other branches.

    Cost: a list, and one for each branch.
    Raises: CorruptionError if a branch has no schema, so that its state is unknown.
    """
    listed = root.store.list(branch_directory(root.path))
    found = [BranchRoot(root.path, Schemas(root.store, root.path))]
    for status in listed:
        if status.is_directory and status.name.startswith(BRANCH_PREFIX):
            found.append(BranchRoot(status.path, Schemas(root.store, status.path)))
    for home in found[1:]:
        if not home.schemas.ids():
            name = home.path.rpartition("/")[2][len(BRANCH_PREFIX) :]
            raise CorruptionError(
                f"branch {name!r} of {root.path} has no schema: it was created or deleted only partly, so its"
                f" files may be in use; delete_branch({name!r}) removes the remains",
                path=home.path,
            )
    root.schemas.latest()
    return found


class ReferencedNames:
    """The names that the states of a table reference, as far as they have been read.

    Attributes:
        users: the users that the states mention, with or without identifiers.
    """

    def __init__(self, root: TableRoot, settled_before: int) -> None:
        """`settled_before`: state files last written before this time, in epoch milliseconds, are read once; a rollback
        may replace younger ones."""
        self._root = root
        self._manifests = Manifests(root.store, root.path, root.env, cache_bytes=0)
        self._settled_before = settled_before
        self._settled: dict[str, tuple[int, int]] = {}
        self.users: set[str] = set()
        self._done = _Done(set(), set())
        self._hashes: Words = np.zeros(0, np.uint64)
        self._loose: list[Words] = []
        self._loose_count = 0

    def read(self, progress: Progress | None = None) -> None:
        """Read the names in all existing states; states that were read before cost nothing.

        If states vanish during the read, by expiry or a rollback, start again: their successors are then read.

        `progress` is called with states that were not read before: snapshots, tags, and kept changelogs.

        Cost: three lists per branch; a get per state, list, manifest and index manifest not read before, and per young
          state.
        Raises:
            CorruptionError: a file that may reference others cannot be read, or is missing; or a table or branch has
                lost all its snapshots.
            StorageError: the store failed to return such a file.
        """
        missing: StorageError | CorruptionError | None = None
        for attempt in range(_ROUNDS):
            missing = self._round(progress, attempt + 1)
            if missing is None:
                self._sort()
                return
            self._done.lists.clear()
            if attempt < _ROUNDS - 1:
                self._root.env.clock.sleep(_WAIT_SECONDS)
        raise CorruptionError(
            f"it is unknown which files are orphans, so nothing more is deleted: {missing}", path=self._root.path
        ) from missing

    def lack(self, names: Sequence[str]) -> Mask:
        """The names that no state references, as far as `read` has seen. Safe to call from several threads."""
        if not len(self._hashes) or not names:
            return np.ones(len(names), np.bool_)
        hashes = xxhash64(slices_of(pa.array(names, pa.string())))
        places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        lacking: Mask = self._hashes[places] != hashes
        return lacking

    # -- states -------------------------------------------------------------------------------------------------------

    def _round(self, progress: Progress | None, attempt: int) -> StorageError | CorruptionError | None:
        """Read all states once. Returns the error for a missing file: another state may have replaced its state."""
        read: list[FileStatus] = []
        for home in branch_roots(self._root):
            listed = list(_states(self._root, home.path))
            lost = self._find_gap(home.path, listed)
            if lost is not None:
                return lost
            read += [status for status in listed if self._settled.get(status.path) != _stamp(status)]
        missing: StorageError | None = None
        tally = ProgressCounter(progress, len(read), "states", attempt=attempt)
        for start in range(0, len(read), _AT_ONCE):
            states = read[start : start + _AT_ONCE]
            part = [_Reader(self._root, self._manifests, self._done, status) for status in states]
            for found in self._root.env.pool.map(_Reader.read, part):
                missing = missing or found
                tally.add(1)
            self._add([hashes for reader in part for hashes in reader.hashes])
            self.users.update(*(reader.users for reader in part))
        if missing is not None:
            return missing
        for status in read:
            if status.modified_millis is not None and status.modified_millis < self._settled_before:
                self._settled[status.path] = _stamp(status)
        return None

    def _find_gap(self, home: str, listed: Sequence[FileStatus]) -> CorruptionError | None:
        """Whether a listing lacks snapshots that must exist."""
        store, path = self._root.store, snapshot_directory(home)
        numbers = {parse_number(SNAPSHOT_PREFIX, status.name) for status in listed} - {None}
        for number in {1, read_hint(store, latest_hint_path(home))} - numbers:
            if number is not None and store.stat(snapshot_path(home, number)) is not None:
                return CorruptionError(f"the list of {path} lacks snapshot {number}, which is there", path=path)
        if not numbers and any(status.name in (LATEST, EARLIEST) for status in store.list(path)):
            return CorruptionError(f"{path} has hints, but no snapshots", path=path)
        return None

    def _add(self, hashes: Sequence[Words]) -> None:
        self._loose += hashes
        self._loose_count += sum(map(len, hashes))
        if self._loose_count > _LOOSE_MAX:
            self._sort()

    def _sort(self) -> None:
        if self._loose:
            loose, self._loose, self._loose_count = self._loose, [], 0
            self._hashes = np.unique(np.concatenate([self._hashes, *loose]))


class _Done(NamedTuple):
    """Manifest lists with index manifests, and manifests, that were read, or that some thread is about to read."""

    lists: set[str]
    manifests: set[str]


class _Reader:
    """Reads one state, in one thread. `hashes`: of the names found. `users`: those that it mentions."""

    def __init__(self, root: TableRoot, manifests: Manifests, done: _Done, status: FileStatus) -> None:
        self._root = root
        self._manifests = manifests
        self._done = done
        self._status = status
        self.hashes: list[Words] = []
        self.users: set[str] = set()

    def read(self) -> StorageError | None:
        """The missing file, if any.

        Expiry deletes changes that a tag references, so they may also be missing for a snapshot or branch created from
        the tag, as may everything that readers of a kept changelog do not need.
        """
        try:
            snapshots, is_changelog = self._state()
            for snapshot in snapshots:
                self._take(snapshot, is_changelog=is_changelog)
        except FileMissingError as error:
            return error
        return None

    def _take(self, snapshot: Snapshot, *, is_changelog: bool) -> None:
        """Add everything that a snapshot references."""
        self.users.update((snapshot.commit_user, *users_of(snapshot).commits))
        self._add(pa.array([name for name in (snapshot.statistics, snapshot.index_manifest) if name], pa.string()))
        if snapshot.changelog_manifest_list is not None:
            self._take_list(snapshot.changelog_manifest_list, missing_ok=True)
        for name in (snapshot.delta_manifest_list, snapshot.base_manifest_list):
            self._take_list(name, missing_ok=is_changelog)
        if snapshot.index_manifest is not None:
            self._take_index(snapshot.index_manifest, missing_ok=is_changelog)

    def _state(self) -> tuple[tuple[Snapshot, ...], bool]:
        """The snapshots in a state file, and whether it is a kept changelog. Raises: FileMissingError"""
        root, path, file_name = self._root, self._status.path, self._status.name
        home = path.rpartition("/")[0].rpartition("/")[0]
        if file_name == CUT:
            cut = Cuts(root.store, home).find()
            return (() if cut is None else cut.snapshots), False
        if file_name.startswith(TAG_PREFIX):
            return (tag_from_json(root.store.get(path), file_name[len(TAG_PREFIX) :], path).snapshot,), False
        number = parse_number(SNAPSHOT_PREFIX, file_name)
        if number is not None:
            found = Snapshots(root.store, home, root.env).find(number)
        else:
            found = Changelogs(root.store, home).find(parse_number(CHANGELOG_PREFIX, file_name) or 0)
        if found is None:
            raise FileMissingError(f"{path} was deleted while it was read", path=path, operation="get")
        return (found,), number is None

    def _take_list(self, name: str, *, missing_ok: bool) -> None:
        """Add a manifest list, its manifests, and the files that they reference."""
        if name in self._done.lists:
            return
        self._done.lists.add(name)
        try:
            files = self._manifests.read_list(name)
        except FileMissingError:
            if missing_ok:
                return
            raise
        self._add(pa.array([name, *(file.name for file in files)], pa.string()))
        unread = [file for file in files if file.name not in self._done.manifests]
        for group in groups_of(unread, 0 if missing_ok else _GROUP_ENTRIES):
            names = [file.name for file in group]
            self._done.manifests.update(names)
            try:
                for found in _names_of(self._manifests.read_entries(group)):
                    self._add(found)
            except FileMissingError:
                self._done.manifests.difference_update(names)
                if not missing_ok:
                    raise

    def _take_index(self, name: str, *, missing_ok: bool) -> None:
        """Add an index manifest, and the files that it references."""
        if name in self._done.lists:
            return
        self._done.lists.add(name)
        try:
            entries = self._manifests.read_index(name)
        except FileMissingError:
            if missing_ok:
                return
            raise
        self._add(pa.array([entry.name for entry in entries], pa.string()))

    def _add(self, names: pa.Array) -> None:
        if len(names):
            self.hashes.append(xxhash64(slices_of(names)))


def _states(root: TableRoot, home: str) -> Iterator[FileStatus]:
    """The state files of a branch: snapshots first, since they may become changelogs or tags concurrently.

    A rollback or fast-forward in progress also contains states.
    """
    numbered = ((snapshot_directory(home), SNAPSHOT_PREFIX), (changelog_directory(home), CHANGELOG_PREFIX))
    for directory, prefix in numbered:
        for status in root.store.list(directory):
            if not status.is_directory and parse_number(prefix, status.name) is not None:
                yield status
    for status in root.store.list(tag_directory(home)):
        is_tag = status.name.startswith(TAG_PREFIX) and status.name != TAG_PREFIX
        if not status.is_directory and (is_tag or status.name == CUT):
            yield status


def _stamp(status: FileStatus) -> tuple[int, int]:
    return (-1 if status.modified_millis is None else status.modified_millis, status.size_bytes)


def _names_of(entries: EntryColumns) -> list[pa.Array]:
    """The names of data files, of their extra files, and of those outside the table."""
    arrays = [entries.names()]
    _, extra = entries.lists("extra_files")
    arrays.append(pa.array([name for names in extra for name in names or ()], pa.string()))
    external = entries.array("external_path", pa.string()).drop_null()
    if len(external):
        parts = pc.split_pattern(external, "/", max_splits=1, reverse=True)
        arrays.append(combine(pc.list_element(parts, 1)))
    return arrays
