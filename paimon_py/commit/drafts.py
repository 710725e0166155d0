"""The metadata files that a commit writes before it publishes, reused between attempts if they still fit.

All files have unique names and are invisible until a snapshot references them; a failed commit deletes its files by
name.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec

from paimon_py.commit.next_snapshot import ManifestLists
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.env import is_distant
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.manifests import PendingFiles
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.types import DataType

_ENTRIES_PER_MANIFEST = 16_384
"""About 8 MB of entries, compressed."""


class _Kept(msgspec.Struct, frozen=True):
    """A written list, its contents, and the names of all files created for it."""

    entries: Sequence[ManifestEntry]
    list: tuple[str, int]
    names: tuple[str, ...]


class _Merged(msgspec.Struct, frozen=True):
    """Manifests before and after merging, and the names of the new ones."""

    before: tuple[str, ...]
    after: tuple[ManifestFile, ...]
    names: tuple[str, ...]


class Drafts:
    """The manifests and lists of one commit in progress."""

    def __init__(self, root: TableRoot, partition_types: Sequence[DataType], settings: ManifestSettings) -> None:
        self._root = root
        self._types = partition_types
        self._settings = settings
        self._delta: _Kept | None = None
        self._changelog: _Kept | None = None
        self._merged: _Merged | None = None
        self._attempt: list[str] = []
        # the files of an attempt, on a distant store written in parallel
        self._pending: PendingFiles | None = [] if is_distant(root.path) else None

    def write(self, latest: Snapshot | None, part: SnapshotDelta) -> ManifestLists:
        """Write the files that an attempt needs and that do not exist yet.

        Cost: base list, delta list and delta manifest; on a further attempt with the same part only the base list.
        """
        self.forget_attempt()
        base = self._base(latest)
        kept, self._delta = self._delta, None
        self._delta = self._keep(kept, part.entries)
        changelog = None
        if part.changelog:
            kept, self._changelog = self._changelog, None
            self._changelog = self._keep(kept, part.changelog)
            changelog = self._changelog.list
        lists = ManifestLists(
            base=base, delta=self._delta.list, changelog=changelog, index_manifest=self._index(latest, part)
        )
        if self._pending:
            try:
                self._root.manifests.put_all(self._pending)
            except BaseException:
                self.discard()
                raise
        return lists

    def merges(self, latest: Snapshot | None) -> bool:
        """Whether the settings ask to merge the manifests of `latest`; if so, they are merged and kept for `write`."""
        if latest is not None:
            self._merge(self._root.manifests.base_and_delta(latest))
        return self._merged is not None

    def forget_attempt(self) -> None:
        """Delete the files that only the last attempt, which is known to have failed, could use."""
        names, self._attempt = self._attempt, []
        if self._pending:
            self._pending.clear()
        self._root.manifests.delete(names)

    def discard(self) -> None:
        """Delete everything; no attempt has succeeded."""
        self.forget_attempt()
        for kept in (self._delta, self._changelog, self._merged):
            if kept is not None:
                self._root.manifests.delete(kept.names)
        self._delta = self._changelog = self._merged = None

    def _base(self, latest: Snapshot | None) -> tuple[str, int]:
        files = self._root.manifests.base_and_delta(latest) if latest else []
        written = self._root.manifests.write_list(self._merge(files), self._settings, self._pending)
        self._attempt.append(written[0])
        return written

    def _index(self, latest: Snapshot | None, part: SnapshotDelta) -> str | None:
        if part.index is None:
            return latest.index_manifest if latest else None
        if not part.index:
            return None
        name, _ = self._root.manifests.write_index(part.index, self._settings, self._pending)
        self._attempt.append(name)
        return name

    def _merge(self, files: list[ManifestFile]) -> list[ManifestFile]:
        """The next base list. Manifests merged for an earlier attempt are reused unless others have merged since."""
        if self._merged is not None:
            before = self._merged.before
            if tuple(file.name for file in files[: len(before)]) == before:
                return [*self._merged.after, *files[len(before) :]]
            self._root.manifests.delete(self._merged.names)
            self._merged = None
        after, names = self._root.manifests.merge(files, self._types, self._settings)
        if names:
            self._merged = _Merged(tuple(file.name for file in files), tuple(after), tuple(names))
        return after

    def _keep(self, kept: _Kept | None, entries: Sequence[ManifestEntry]) -> _Kept:
        if kept is not None:
            if kept.entries is entries or kept.entries == entries:
                return kept
            self._root.manifests.delete(kept.names)
        names: list[str] = []
        try:
            files = []
            left = iter(entries)
            while block := tuple(itertools.islice(left, _ENTRIES_PER_MANIFEST)):
                files.append(self._root.manifests.write_manifest(block, self._types, self._settings, self._pending))
                names.append(files[-1].name)
            written = self._root.manifests.write_list(files, self._settings, self._pending)
        except BaseException:
            self._root.manifests.delete(names)
            raise
        return _Kept(entries, written, (*names, written[0]))
