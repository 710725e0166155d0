"""Files to delete with snapshots or changelogs: collected by name, spared if still referenced, deleted last.

Source: format.md §16.1, §16.2; Java `FileDeletionBase`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import from_numpy, numpy_values
from paimon_py.errors import StorageError
from paimon_py.executors.executor import Executor
from paimon_py.executors.job import Job
from paimon_py.maintain.file_tasks import DELETE, delete_files
from paimon_py.metadata.branches import other_branches
from paimon_py.metadata.id_runs import runs_of_ids
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.data_file import FileKind, FileSource, ManifestEntry
from paimon_py.spec.layout import MAIN_BRANCH, manifest_path, statistics_path
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import FileMissingError


class OtherReferences(NamedTuple):
    """Snapshots that reference files of the table and are not deleted by expiry, grouped by what keeps them.

    `branches`: snapshots of the other branches, and of their tags, that may name files of expiring snapshots.
    `changelogs`: changelogs that other branches keep and that may use files of expiring snapshots.
    """

    tags: tuple[Snapshot, ...]
    branches: tuple[Snapshot, ...]
    changelogs: tuple[Snapshot, ...]

    def near(self, begin: int, end: int) -> list[Snapshot]:
        """Snapshots that may reference files whose last snapshot is between `begin` and `end`.

        Consecutive snapshots reference a file: the newest tag before `begin` references all such files.
        """
        newest = max((snapshot.id for snapshot in self.tags if snapshot.id <= begin), default=0)
        tags = [one for one in self.tags if one.id < end and (one.id > begin or one.id == newest)]
        return [*tags, *self.branches]

    def without(self, others: OtherReferences) -> list[Snapshot]:
        """Snapshots that are not among the others."""
        known = {snapshot.mark for snapshot in (*others.tags, *others.branches)}
        return [snapshot for snapshot in (*self.tags, *self.branches) if snapshot.mark not in known]


def other_references(root: TableRoot, going: Sequence[Snapshot]) -> OtherReferences:
    """The references of tags and other branches. `going`: the expiring snapshots of this branch, ascending.

    Cost: a list for tags and one for branches, a get per tag; per branch three lists, its tags, one or more snapshots,
      and its kept changelogs up to the expiring snapshots.
    Raises: CommitConflictError if the history of this branch is being cut.
    """
    tags, is_cut = root.tags.beside_cut()
    if is_cut:
        root.cuts.refuse()
    branches: list[Snapshot] = []
    changelogs: list[Snapshot] = []
    for other in other_branches(root):
        branches += _sharing(other, going)
        branches += _snapshots_of_tags(other)
        changelogs += _changelogs_sharing(other, going)
    return OtherReferences(tuple(tag.snapshot for tag in tags), tuple(branches), tuple(changelogs))


def _snapshots_of_tags(other: TableRoot) -> list[Snapshot]:
    """The snapshots that the tags of another branch keep, and those of a rollback or fast-forward in progress on it."""
    tags, is_cut = other.tags.beside_cut()
    cut = other.cuts.find() if is_cut else None
    return [*(tag.snapshot for tag in tags), *(() if cut is None else cut.snapshots)]


def _sharing(other: TableRoot, going: Sequence[Snapshot]) -> list[Snapshot]:
    """The snapshots of another branch that may reference files that expire here.

    Two branches share their first snapshots, up to a fork, and consecutive snapshots reference a file. So a shared file
    that expires here is referenced in the branch by a snapshot that expires here; or by the oldest one there, if it is
    not older; or, if the fork is before all expiring snapshots, by an older one.
    """
    sharing = [one for run in runs_of_ids(other.snapshots.ids()) if going for one in _sharing_run(other, run, going)]
    latest = other.snapshots.latest() if going and other.branch == MAIN_BRANCH else None
    return sharing if latest is None or latest in sharing else [*sharing, latest]


def _sharing_run(other: TableRoot, ids: range, going: Sequence[Snapshot]) -> list[Snapshot]:
    """The shared snapshots among consecutive ids; after a gap, ids may belong to another history."""
    # Here 3, 4, 5 expire. The other branch has (' = not the snapshot of that id here):
    #   1 2 3 4 5' 6'   shares 3 4: up to where the branches part
    #   1 2 3' 4'       shares 1 2: they parted before 3, so what both name is named by one of these
    #   4 5 6           shares 4 5
    #   4' 5' or 7 8    shares 4' or 7: the oldest one may still name files that both had
    here = {snapshot.id: snapshot.mark for snapshot in going}
    begin, end = going[0].id, going[-1].id
    if ids[0] <= begin:
        first = other.snapshots.find(begin) if begin in ids else None
        if first is None or first.mark != here[begin]:
            return _find_snapshots(other, [number for number in ids if number < begin] or ids[:1])
    sharing: list[Snapshot] = []
    for number in ids:
        if number < begin or (number > end and sharing):
            continue
        found = _find_snapshots(other, [number])
        if sharing and any(here.get(one.id) != one.mark for one in found):
            break
        sharing += found
    return sharing


def _changelogs_sharing(other: TableRoot, going: Sequence[Snapshot]) -> list[Snapshot]:
    """The changelogs kept by another branch for snapshots that both branches had, as far as known."""
    here = {snapshot.id: snapshot.mark for snapshot in going}
    sharing: list[Snapshot] = []
    for number in other.changelogs.ids() if going else []:
        found = other.changelogs.find(number) if number <= going[-1].id else None
        if found is None:
            continue
        if here.get(number, found.mark) != found.mark:
            break
        sharing.append(found)
    return sharing


def _find_snapshots(other: TableRoot, numbers: Iterable[int]) -> list[Snapshot]:
    return [found for number in numbers if (found := other.snapshots.find(number)) is not None]


class Counts(NamedTuple):
    """Numbers of files. `spared_files`: only a tag or branch keeps them."""

    data_files: int
    index_files: int
    metadata_files: int
    spared_files: int


class DeletionPlan:
    """The files to delete: their paths by name."""

    def __init__(self, table: OpenTable) -> None:
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._data: dict[str, tuple[str, ...]] = {}
        self._ending: set[str] = set()  # manifests that delete data files
        self._index: dict[str, str] = {}
        self._metadata: dict[str, str] = {}
        self._spared = 0
        self._removes_directories = table.options.get_bool("snapshot.clean-empty-directories")
        self._partition_keys = len(table.schema.partition_keys)

    @property
    def has_data(self) -> bool:
        """Whether data files are to be deleted."""
        return bool(self._data)

    @property
    def counts(self) -> Counts:
        """The number of files to delete."""
        return Counts(sum(map(len, self._data.values())), len(self._index), len(self._metadata), self._spared)

    # -- collecting: files may be missing already, deleted by an interrupted expiry ------------------------------------

    def add_deleted(self, snapshot: Snapshot, *, written: bool = True) -> None:
        """Add the data files that a snapshot deleted, except those for which it changed only level or index.

        `written`: also files that writers created, not only compactions.
        """
        try:
            manifests = self._root.manifests.read_list(snapshot.delta_manifest_list)
            if not any(manifest.deleted_files for manifest in manifests):
                return
            entries = self._root.manifests.read_entries(manifests)
        except FileMissingError:
            return
        deletes = entries.kind == FileKind.DELETE
        if not bool(deletes.any()):
            return
        self._ending.update(manifest.name for manifest in manifests if manifest.deleted_files)
        names = entries.names()
        returned = numpy_values(pc.is_in(names, value_set=names.filter(from_numpy(~deletes, pa.bool_()))))
        for entry in entries.take(np.flatnonzero(deletes & ~returned)).entries():
            if written or entry.file.source is FileSource.COMPACT:
                self._add(entry)

    def add_live(self, snapshot: Snapshot) -> None:
        """Add all data files of a snapshot. Raises: as `spare`"""
        for entry in self._root.manifests.live_entries(snapshot).entries():
            self._add(entry)

    def add_changelog(self, snapshot: Snapshot) -> None:
        """Add the changelog files of a snapshot."""
        if snapshot.changelog_manifest_list is None:
            return
        try:
            manifests = self._root.manifests.read_list(snapshot.changelog_manifest_list)
            entries = self._root.manifests.read_entries(manifests)
        except FileMissingError:
            return
        for entry in entries.entries():
            self._add(entry)

    def add_lists(self, *lists: str | None) -> None:
        """Add manifest lists, and the manifests that they reference."""
        for name in self._manifest_names(lists, missing_ok=True):
            self._metadata[name] = manifest_path(self._root.path, name)

    def add_indexes(self, snapshot: Snapshot) -> None:
        """Add the index manifest of a snapshot, the index files that it references, and the statistics."""
        if snapshot.statistics is not None:
            self._metadata[snapshot.statistics] = statistics_path(self._root.path, snapshot.statistics)
        if snapshot.index_manifest is None:
            return
        try:
            entries = self._root.manifests.read_index(snapshot.index_manifest)
        except FileMissingError:
            return
        self._metadata[snapshot.index_manifest] = manifest_path(self._root.path, snapshot.index_manifest)
        for entry in entries:
            self._index[entry.name] = self._files.index_path(entry)

    # -- sparing ------------------------------------------------------------------------------------------------------

    def spare(self, kept: Iterable[Snapshot]) -> None:
        """Keep everything that these snapshots reference.

        Raises: StorageError, CorruptionError: the files they reference are unknown, so nothing may be deleted.
        """
        for snapshot in kept:
            if self._data:
                for name in self._root.manifests.live_entries(snapshot).names().to_pylist():
                    self._spared += len(self._data.pop(name, ()))
            self.spare_metadata(snapshot)

    def spare_later(self, later: Snapshot) -> None:
        """Keep everything that a snapshot references which should follow the ones that deleted data files.

        Manifests that delete these files are not kept, even if its lists reference them.

        Cost: its lists; all its manifests if some of these were merged, or it does not descend from those snapshots.
        Raises: as `spare`
        """
        lists = (later.base_manifest_list, later.delta_manifest_list)
        if self._ending <= set(self._manifest_names(lists, missing_ok=False)):
            self.spare_metadata(later)
        else:
            self.spare([later])

    def spare_changes(self, beside: OtherReferences) -> None:
        """Keep the changes of snapshots that other branches may share.

        Raises: as `spare`
        """
        for changelog in beside.changelogs:
            self.spare_written(changelog)
        for snapshot in (*beside.branches, *beside.changelogs):
            if snapshot.changelog_manifest_list not in self._metadata:
                continue
            try:
                manifests = self._root.manifests.read_list(snapshot.changelog_manifest_list)
                names = self._root.manifests.read_entries(manifests).names()
            except FileMissingError:
                continue  # the changes were deleted with the snapshot, from which a tag or branch was created
            for name in (snapshot.changelog_manifest_list, *(manifest.name for manifest in manifests)):
                self._metadata.pop(name, None)
            for name in names.to_pylist():
                self._spared += len(self._data.pop(name, ()))

    def spare_metadata(self, snapshot: Snapshot, *, missing_ok: bool = False) -> None:
        """Keep everything that a snapshot references except data files. `missing_ok`: its lists may be missing.

        Raises: as `spare`
        """
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        for name in (*self._manifest_names(lists, missing_ok=missing_ok), snapshot.statistics, snapshot.index_manifest):
            if name is not None:
                self._metadata.pop(name, None)
        if snapshot.index_manifest is not None and self._index:
            for entry in self._root.manifests.read_index(snapshot.index_manifest):
                self._index.pop(entry.name, None)

    def spare_written(self, changelog: Snapshot) -> None:
        """Keep the files of a kept changelog whose changes are the written files themselves.

        Changes that were already deleted, of a snapshot that a rollback restored from a tag, keep nothing. Changelogs
        need no indexes or statistics, which are deleted with the snapshot.

        Raises: as `spare`
        """
        if changelog.changelog_manifest_list is not None:
            return
        lists = (changelog.base_manifest_list, changelog.delta_manifest_list)
        for name in self._manifest_names(lists, missing_ok=True):
            self._metadata.pop(name, None)
        try:
            manifests = self._root.manifests.read_list(changelog.delta_manifest_list)
            names = self._root.manifests.read_entries(manifests).names()
        except FileMissingError:
            return
        for name in names.to_pylist():
            self._data.pop(name, None)

    # -- deleting -----------------------------------------------------------------------------------------------------

    def delete(self, executor: Executor | None = None, progress: Progress | None = None) -> int:
        """Delete manifests first, then the files that they reference. Files that cannot be deleted stay as orphans.

        `executor`: deletes the files; None: this process. `progress` reports files.

        With the option `snapshot.clean-empty-directories`, directories that become empty are deleted too.

        Returns: the number of remaining files.
        """
        data = [path for part in self._data.values() for path in part]
        paths = [*self._metadata.values(), *self._index.values(), *data]
        tally = None if progress is None else ProgressCounter(progress, len(paths), "files")
        remaining = delete_files(Job(DELETE, self._files, tally=tally), paths, executor, named=True)
        if self._removes_directories:
            below = self._root.path + "/"
            self._remove_directories({path.rpartition("/")[0] for path in data if path.startswith(below)})
        return remaining

    def _remove_directories(self, buckets: set[str]) -> None:
        """Remove empty directories of some buckets, and then those of partitions. Others may fill them again."""
        emptied = buckets
        for _ in range(1 + self._partition_keys):
            found = sorted(emptied)
            gone = self._root.env.pool.map(self._remove_directory, found)
            emptied = {path.rpartition("/")[0] for path, is_gone in zip(found, gone, strict=True) if is_gone}

    def _remove_directory(self, directory: str) -> bool:
        try:
            return self._root.files.remove_directory(directory)
        except StorageError:
            return False

    def _add(self, entry: ManifestEntry) -> None:
        self._data[entry.file.name] = self._files.bucket(entry.partition, entry.bucket).paths(entry.file)

    def _manifest_names(self, lists: Sequence[str | None], *, missing_ok: bool) -> list[str]:
        names: list[str] = []
        for one in lists:
            if one is None:
                continue
            names.append(one)
            try:
                names += [manifest.name for manifest in self._root.manifests.read_list(one)]
            except FileMissingError:
                if not missing_ok:
                    raise
        return names
