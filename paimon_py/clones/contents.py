"""Determines which snapshots, tags and files of a table a clone contains.

Metadata reference files by name, so that copies below another directory are found in the same way.

Source: docs/format.md §1, §4, §5; docs/decisions/0033-clones.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from paimon_py.codec.snapshot_json import snapshot_to_json, tag_to_json
from paimon_py.errors import CommitConflictError, CorruptionError, UnsupportedError, UsageError
from paimon_py.metadata.ancestry import is_built_on
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.user_files import UserFile
from paimon_py.metadata.users import users_until
from paimon_py.scan.time_travel import snapshot_of
from paimon_py.spec.data_file import FileKind, ManifestEntry
from paimon_py.spec.external_paths import PATHS
from paimon_py.spec.layout import manifest_path, schema_path, snapshot_path, statistics_path, tag_path
from paimon_py.spec.referenced_paths import referenced_paths
from paimon_py.spec.snapshot import Base, Snapshot, TagValue


class CloneChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a table to clone; see `Catalog.clone_table`. `tags`: True for all, or names."""

    snapshot_id: int | None = None
    tag: str | None = None
    tags: bool | tuple[str, ...] = False
    history: bool = False


class CloneFile(msgspec.Struct, frozen=True):
    """A file to copy.

    Attributes:
        source: its path.
        below: its path below the directory of the table, the same in the clone.
        size_bytes: its size, None if metadata do not state it.
    """

    source: str
    below: str
    size_bytes: int | None = None


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a clone.

    Attributes:
        newest: its newest snapshot, None if the source is empty.
        schemas: id and JSON text of each schema, ascending.
        snapshots: ascending.
        tags: sorted by name.
        users: the last numbers of users up to `newest`.
        files: everything else: data files, index files, manifests, statistics; sorted by path.
    """

    newest: Snapshot | None
    schemas: tuple[tuple[int, bytes], ...]
    snapshots: tuple[Snapshot, ...]
    tags: tuple[TagValue, ...]
    users: tuple[UserFile, ...]
    files: tuple[CloneFile, ...]

    def states(self, table: str) -> Iterable[tuple[str, bytes]]:
        """Path and content of the files of tags and snapshots in a table, snapshots last and ascending."""
        for tag in self.tags:
            yield tag_path(table, tag.name), tag_to_json(tag)
        for snapshot in self.snapshots:
            yield snapshot_path(table, snapshot.id), snapshot_to_json(snapshot)

    def digest(self) -> str:
        """A text that differs between different contents."""
        digest = hashlib.sha256()
        for number, data in self.schemas:
            digest.update(b"%d %d\n" % (number, len(data)) + data)
        for path, data in self.states(""):
            digest.update(f"{path} {len(data)}\n".encode() + data)
        for file in self.files:
            digest.update(f"{file.below} {file.size_bytes}\n".encode())
        return digest.hexdigest()


def choose_contents(root: TableRoot, choice: CloneChoice) -> Contents:
    """The contents of a clone.

    Cost: the manifests of all chosen snapshots and tags, and a get for each schema.
    Raises:
        SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: a chosen state does not exist (any more).
        CommitConflictError: the table was rolled back in the meantime.
        UsageError: a chosen tag is newer than the chosen snapshot.
        UnsupportedError: data files in external paths.
        CorruptionError: a file that the snapshots reference is missing or broken.
    """
    newest, is_current = _newest(root, choice)
    schema_id = root.schemas.latest().id if newest is None or is_current else newest.schema_id
    ids = [number for number in root.schemas.ids() if number <= schema_id]
    table = OpenTable(root, root.schemas.get(schema_id))
    for number in ids:
        _refuse_external(PATHS in root.schemas.options(number), root.path)
    snapshots, tags = _history(root, newest, choice), _tags(root, newest, choice)
    collector = _Collector(table)
    for snapshot in snapshots:
        collector.add(snapshot, with_changes=root.snapshots.find(snapshot.id) == snapshot)
    for tag in tags:
        collector.add(tag.snapshot, with_changes=False)
    users = () if newest is None else tuple(users_until(root, newest))
    return Contents(
        newest=newest,
        schemas=tuple((number, root.store.get(schema_path(root.branch_path, number))) for number in ids),
        snapshots=snapshots, tags=tags, users=users, files=collector.files(),
    )  # fmt: skip


def _newest(root: TableRoot, choice: CloneChoice) -> tuple[Snapshot | None, bool]:
    """The newest snapshot of a clone, and whether the clone takes over the table as it is now."""
    if choice.snapshot_id is not None:
        return snapshot_of(root, choice.snapshot_id), False
    if choice.tag is not None:
        return root.tags.get(choice.tag).snapshot, False
    return root.latest(), True


def _history(root: TableRoot, newest: Snapshot | None, choice: CloneChoice) -> tuple[Snapshot, ...]:
    """The snapshots of a clone, which has no hints: behind a gap it would end at an earlier snapshot.

    They are those from which the newest one descends, as far back as there is no seam.

    Raises: CommitConflictError if the source was rolled back in the meantime.
    """
    if newest is None:
        return ()
    if not choice.history:
        return (newest,)
    if not Base.of(newest).is_of(root.snapshots.find(newest.id)):
        raise UsageError(f"history=True needs a snapshot that is in the history: snapshot {newest.id} has expired")
    earliest = root.snapshots.earliest_id() or newest.id
    kept: list[Snapshot] = []
    for number in range(earliest, newest.id):
        found = root.snapshots.find(number)
        if found is None:
            kept.clear()
        else:
            kept.append(found)
    if not Base.of(newest).is_of(root.snapshots.find(newest.id)):
        raise CommitConflictError(
            f"nothing was cloned: {root.path} was rolled back, or snapshot {newest.id} expired; call again",
            table=root.path,
            snapshot_id=newest.id,
        )
    chain = [newest]
    for before in reversed(kept):
        with root.reading(Base.of(before)):
            if not is_built_on(root.manifests, chain[-1], before):
                break
        chain.append(before)
    return tuple(reversed(chain))


def _tags(root: TableRoot, newest: Snapshot | None, choice: CloneChoice) -> tuple[TagValue, ...]:
    if choice.tags is True:
        return tuple(tag for tag in root.tags.list() if newest is not None and tag.snapshot.id <= newest.id)
    if choice.tags is False:
        return ()
    tags = tuple(root.tags.get(name) for name in sorted(set(choice.tags)))
    for tag in tags:
        if newest is None or tag.snapshot.id > newest.id:
            number = 0 if newest is None else newest.id
            raise UsageError(f"tag {tag.name!r} is of snapshot {tag.snapshot.id}, and the clone ends at {number}")
    return tags


def _refuse_external(is_external: bool, path: str) -> None:
    if is_external:
        raise UnsupportedError(
            f"{path} has data files in external paths ({PATHS}), which a clone would share; copy its rows instead",
            feature=f"clone of a table with {PATHS}",
        )


class _Collector:
    """Collects the files that snapshots reference."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._root = table.root
        self._referenced = referenced_paths(table.schema.options)
        self._found: dict[str, CloneFile] = {}

    def files(self) -> tuple[CloneFile, ...]:
        """All files, sorted by path."""
        return tuple(self._found[path] for path in sorted(self._found))

    def add(self, snapshot: Snapshot, *, with_changes: bool) -> None:
        """Add the files of a snapshot. `with_changes`: also its changelog, which expiry has deleted if only a tag keeps
        the snapshot."""
        manifests = self._root.manifests
        for manifest in manifests.base_and_delta(snapshot):
            self._add_manifest(manifest.name)
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            self._add_manifest(name)
        self._add_entries(manifests.live_entries(snapshot).entries())
        if with_changes and snapshot.changelog_manifest_list is not None:
            with self._root.reading(Base.of(snapshot)):
                self._add_changelog(snapshot.changelog_manifest_list)
        if snapshot.statistics is not None:
            self._add(statistics_path(self._root.path, snapshot.statistics))
        if snapshot.index_manifest is not None:
            with self._root.reading(Base.of(snapshot)):
                self._add_index(snapshot.index_manifest)

    def _add_index(self, name: str) -> None:
        entries = self._root.manifests.read_index(name)
        self._add_manifest(name)
        for entry in entries:
            _refuse_external(entry.external_path is not None, self._root.path)
            self._add(self._table.index_path(entry))

    def _add_changelog(self, name: str) -> None:
        files = self._root.manifests.read_list(name)
        entries = self._root.manifests.read_entries(files).entries()
        self._add_manifest(name)
        for manifest in files:
            self._add_manifest(manifest.name)
        self._add_entries(entry for entry in entries if entry.kind is FileKind.ADD)

    def _add_entries(self, entries: Iterable[ManifestEntry]) -> None:
        for entry in entries:
            bucket = self._table.bucket(entry.partition, entry.bucket)
            if entry.file.external_path is not None:
                _refuse_external(not entry.file.external_path.startswith(self._roots_of_others), self._root.path)
                continue
            first, *beside = bucket.paths(entry.file)
            self._add(first, entry.file.size_bytes)
            for path in beside:
                self._add(path)

    @property
    def _roots_of_others(self) -> tuple[str, ...]:
        """Beginnings of URLs that are only referenced, and that no table deletes."""
        return tuple(f"{url}/" for url in self._referenced)

    def _add_manifest(self, name: str) -> None:
        self._add(manifest_path(self._root.path, name))

    def _add(self, path: str, size_bytes: int | None = None) -> None:
        start = f"{self._root.path}/"
        if not path.startswith(start):
            raise CorruptionError(f"{path} is outside of the table {self._root.path}", path=path)
        if path not in self._found:
            self._found[path] = CloneFile(path, path[len(start) :], size_bytes)
