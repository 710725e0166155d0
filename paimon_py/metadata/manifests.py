"""Manifest lists, manifests and index manifests of one table: reading with pruning, folding, writing, merging.

Source: format.md §5; Java `ManifestList`, `ManifestFile`, `AbstractFileStoreScan`, `ManifestFileMerger`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from paimon_py.codec.avro.container import MAGIC
from paimon_py.codec.manifest.columns import EntryColumns, compact, concat
from paimon_py.codec.manifest.entries import read_manifests, read_with_counts, write_manifest
from paimon_py.codec.manifest.lists import (
    read_index_manifest,
    read_manifest_list,
    write_index_manifest,
    write_manifest_list,
)
from paimon_py.codec.manifest.schemas import INDEX_MANIFEST, MANIFEST, MANIFEST_LIST
from paimon_py.env import Env
from paimon_py.errors import CorruptionError, StorageError
from paimon_py.metadata.entry_filter import EntryFilter, after_folding, before_folding, wanted_manifests
from paimon_py.metadata.fold import check_unique, fold, live
from paimon_py.metadata.manifest_cache import ManifestCache
from paimon_py.metadata.manifest_merge import ManifestSettings, minor_groups, must_change, wants_full
from paimon_py.metadata.manifest_stats import describe, may_contain
from paimon_py.metadata.missing import MissingStore, missing_error
from paimon_py.spec.data_file import FileKind, ManifestEntry
from paimon_py.spec.layout import manifest_path
from paimon_py.spec.manifest import IndexEntry, ManifestFile
from paimon_py.spec.packing import pack
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.types import DataType
from paimon_py.storage.store import FileMissingError, OpenWrite, new_file

CACHE_BYTES = 256 << 20
_OF_CACHE = 16
PART_ENTRIES = 65_536
"""The number of entries that are processed together if most of them may be skipped."""

ENTRY_BYTES = 700
"""The approximate memory of an entry, in bytes."""

_LISTS_MAX = 64
_INDEXES_MAX = 2
_DEFAULT = ManifestSettings()

PendingFiles = list[tuple[str, bytes]]
"""Names and bytes of files to write together."""

T = TypeVar("T")


class ManifestStore(MissingStore, OpenWrite, Protocol):
    """The store operations that this module uses."""


class Manifests:
    """The manifests of one table directory; branches share those of their table.

    Files below `manifest/` never change, so decoded files are cached, bounded in bytes.
    """

    def __init__(self, store: ManifestStore, path: str, env: Env, cache_bytes: int | None = None) -> None:
        self._store = store
        self._path = path
        self._env = env
        shared = env.memory.cap(CACHE_BYTES, _OF_CACHE)
        self._cache = ManifestCache(shared if cache_bytes is None else cache_bytes)
        self._lists: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self._indexes: OrderedDict[str, tuple[IndexEntry, ...]] = OrderedDict()

    def read_list(self, name: str, size_bytes: int | None = None) -> list[ManifestFile]:
        """The manifests named by a manifest list, in order.

        Args:
            size_bytes: the size of the list in the snapshot, if known: a truncated list may look complete.
        Raises:
            CorruptionError: the file is broken.
            FileMissingError: it does not exist.
        """
        files = self._lists.get(name)
        if files is None:
            path = manifest_path(self._path, name)
            data = self._store.get(path)
            if size_bytes is not None and len(data) != size_bytes:
                message = f"{path} has {len(data)} bytes, its snapshot says {size_bytes}"
                raise CorruptionError(message, path=path, offset=min(len(data), size_bytes))
            files = tuple(read_manifest_list(_as_avro(data, path, MANIFEST_LIST), path))
            _keep(self._lists, name, files, _LISTS_MAX)
        return list(files)

    def read_lists(self, names: Sequence[str]) -> list[ManifestFile]:
        """The manifests named by several manifest lists, in order. Cost, Raises: as `read_list`, all in parallel."""
        found = self._env.at_once(self._path, [partial(self.read_list, name) for name in names])
        return [file for files in found for file in files]

    def delta(self, snapshot: Snapshot) -> list[ManifestFile]:
        """The manifests of the changes of a snapshot. Cost, Raises: as `read_list`"""
        return self.read_list(snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)

    def base_and_delta(self, snapshot: Snapshot) -> list[ManifestFile]:
        """The manifests of a snapshot; their entries, folded, are its live files.

        Raises:
            SnapshotExpiredError: the snapshot has expired in the meantime.
        """
        try:
            base, delta = self._env.at_once(self._path, [
                partial(self.read_list, snapshot.base_manifest_list, snapshot.base_manifest_list_size),
                partial(self.delta, snapshot),
            ])  # fmt: skip
            return base + delta
        except FileMissingError as error:
            raise missing_error(self._store, self._path, Base.of(snapshot), error) from error

    def read_entries(
        self, files: Sequence[ManifestFile], entry_filter: EntryFilter | None = None, *, holds: bool = True
    ) -> EntryColumns:
        """The ADD and DELETE entries of manifests, unfolded, in order; `keep` of the filter is not applied.

        Args:
            holds: cache the entries; False for entries that are needed once.
        Cost: one get for every wanted manifest not read before.
        """
        wanted = wanted_manifests(files, entry_filter)
        return before_folding(self._load(wanted, holds=holds), entry_filter)

    def live_entries(self, snapshot: Snapshot, entry_filter: EntryFilter | None = None) -> EntryColumns:
        """The files of a snapshot, all of them ADDs.

        Cost: two gets for the lists and one per wanted manifest, minus what was read before; 4 µs per entry.
        Raises:
            SnapshotExpiredError: the snapshot has expired in the meantime.
            CorruptionError: a file is broken, or missing although the snapshot exists.
        """
        try:
            return self.live(self.base_and_delta(snapshot), entry_filter)
        except FileMissingError as error:
            raise missing_error(self._store, self._path, Base.of(snapshot), error) from error

    def live(self, files: Sequence[ManifestFile], entry_filter: EntryFilter | None = None) -> EntryColumns:
        """The folded entries of manifests: those ADDs that no DELETE cancels."""
        return _fold_files(self, wanted_manifests(files, entry_filter), entry_filter)

    def write_manifest(
        self,
        entries: Sequence[ManifestEntry],
        partition_types: Sequence[DataType],
        settings: ManifestSettings = _DEFAULT,
        pending: PendingFiles | None = None,
    ) -> ManifestFile:
        """Write a new manifest with `entries` (at least one), in order.

        Args:
            pending: collects the file for `put_all` instead of writing it to the store.
        Cost: one file; 15 µs per entry.
        """
        data = write_manifest(entries, settings.avro_compression)
        return self._write(read_manifests([("new manifest", data)]), data, partition_types, settings, pending)

    def write_list(
        self, files: Sequence[ManifestFile], settings: ManifestSettings = _DEFAULT, pending: PendingFiles | None = None
    ) -> tuple[str, int]:
        """Write a new manifest list; returns its name and size in bytes. `pending`: as for `write_manifest`."""
        name = f"manifest-list-{self._env.ids.uuid()}-0"
        data = write_manifest_list(files, settings.avro_compression)
        size_bytes = self._put(name, _to_stored(data, MANIFEST_LIST, settings), pending)
        _keep(self._lists, name, tuple(read_manifest_list(data, name)), _LISTS_MAX)
        return name, size_bytes

    def put_all(self, pending: PendingFiles) -> None:
        """Write the pending files, in parallel on distant stores.

        Raises: as the store; then some of the files may have been written.
        """
        self._env.at_once(self._path, [partial(self._put, name, data) for name, data in pending])
        pending.clear()

    def read_index(self, name: str) -> list[IndexEntry]:
        """The index files named by an index manifest, in order."""
        entries = self._indexes.get(name)
        if entries is None:
            path = manifest_path(self._path, name)
            entries = tuple(read_index_manifest(_as_avro(self._store.get(path), path, INDEX_MANIFEST), path))
            _keep(self._indexes, name, entries, _INDEXES_MAX)
        return list(entries)

    def write_index(
        self, entries: Sequence[IndexEntry], settings: ManifestSettings = _DEFAULT, pending: PendingFiles | None = None
    ) -> tuple[str, int]:
        """Write a new index manifest; returns its name and size in bytes. `pending`: as for `write_manifest`."""
        name = f"index-manifest-{self._env.ids.uuid()}-0"
        data = write_index_manifest(entries, settings.avro_compression)
        return name, self._put(name, _to_stored(data, INDEX_MANIFEST, settings), pending)

    def merge(
        self,
        files: Sequence[ManifestFile],
        partition_types: Sequence[DataType],
        settings: ManifestSettings = _DEFAULT,
    ) -> tuple[list[ManifestFile], list[str]]:
        """The manifests of the next base list, some of `files` merged, and the names of the newly written ones.

        Records are copied as bytes; ADDs and DELETEs that cancel each other are omitted. If an error is raised, the
        written files are deleted.

        Raises:
            CorruptionError: a manifest is broken, or a file is added twice.
        """
        merge = _Merge(self, partition_types, settings)
        try:
            merged = merge.full(files)
            return merge.minor(files) if merged is None else merged, merge.written
        except BaseException:
            self.delete(merge.written)
            raise

    def delete(self, names: Sequence[str]) -> None:
        """Delete files below `manifest/` that no snapshot references; files that cannot be deleted stay as orphans."""
        for name in names:
            self._lists.pop(name, None)
            self._cache.forget(name)
            try:
                self._store.delete(manifest_path(self._path, name))
            except StorageError:
                continue

    def _load(self, files: Sequence[ManifestFile], *, holds: bool = True) -> EntryColumns:
        by_name = {file.name: file for file in files}

        def fetch(names: Sequence[str]) -> tuple[EntryColumns, list[int]]:
            paths = [manifest_path(self._path, name) for name in names]
            # Distant stores read them in parallel, local disks one after the other
            data_of = self._env.at_once(self._path, [partial(self._store.get, path) for path in paths])
            files = zip(paths, data_of, strict=True)
            columns, counts = read_with_counts([(path, _as_avro(data, path, MANIFEST)) for path, data in files])
            _check_counts([by_name[name] for name in names], columns, counts, paths)
            return columns, counts

        return self._cache.load([file.name for file in files], fetch, holds=holds)

    def _write(
        self,
        columns: EntryColumns,
        data: bytes,
        partition_types: Sequence[DataType],
        settings: ManifestSettings,
        pending: PendingFiles | None = None,
    ) -> ManifestFile:
        name = f"manifest-{self._env.ids.uuid()}-0"
        size_bytes = self._put(name, _to_stored(data, MANIFEST, settings), pending)
        self._cache.hold(name, columns)
        return describe(columns, name, size_bytes, partition_types)

    def _put(self, name: str, data: bytes, pending: PendingFiles | None = None) -> int:
        """Write a new file, durable on return, or hold it; returns its size.

        Raises: FileMissingError if the directory of the table is gone.
        """
        if pending is not None:
            pending.append((name, data))
            return len(data)
        with new_file(self._store, manifest_path(self._path, name), within=self._path) as sink:
            sink.write(data)
        return len(data)

    def _blame(self, files: Sequence[ManifestFile], error: CorruptionError) -> CorruptionError:
        """The error with the path of the first manifest whose names cannot be read on their own."""
        for file in files:
            try:
                self._load([file]).names()
            except CorruptionError as found:
                path = manifest_path(self._path, file.name)
                return CorruptionError(f"{path}: {found}", path=path)
        return error

    def file_names(self, snapshot: Snapshot, entry_filter: EntryFilter | None = None) -> set[str]:
        """The names of the data files of a snapshot, of their extra files, and of its index files.

        Raises: SnapshotExpiredError, CorruptionError
        """
        live = self.live_entries(snapshot, entry_filter).entries()
        names = {name for entry in live for name in (entry.file.name, *entry.file.extra_files)}
        try:
            index = self.read_index(snapshot.index_manifest) if snapshot.index_manifest is not None else []
        except FileMissingError as error:
            raise missing_error(self._store, self._path, Base.of(snapshot), error) from error
        return names | {entry.name for entry in index}


def live_parts(
    manifests: Manifests, snapshot: Snapshot, entry_filter: EntryFilter | None = None, *, lazily: bool = False
) -> Iterator[EntryColumns]:
    """The files of a snapshot as `live_entries`, in its order, for callers that skip most of them.

    They are yielded in parts if they are more than the cache holds.

    Args:
        lazily: yield them in parts in any case, first those of one manifest, for callers that may stop early.

    Cost: the memory of one part, and of all DELETE entries; the cache does not grow beyond its limit.
    Raises: as `live_entries`
    """
    try:
        files = wanted_manifests(manifests.base_and_delta(snapshot), entry_filter)
        total = sum(file.added_files + file.deleted_files for file in files)
        deletes = sum(file.deleted_files for file in files)
        fits = total * ENTRY_BYTES <= manifests._cache.max_bytes
        if (fits and not lazily) or deletes > PART_ENTRIES:
            yield _fold_files(manifests, files, entry_filter)
            return
        deleting = manifests._load([file for file in files if file.deleted_files], holds=fits)
        deleted = compact(before_folding(deleting.take(deleting.kind == FileKind.DELETE), entry_filter))
        first = 1 if lazily else 0
        for part in [files[:first], *groups_of(files[first:], PART_ENTRIES)]:
            if part:
                yield _fold_files(manifests, part, entry_filter, deleted, holds=fits)
    except FileMissingError as error:
        raise missing_error(manifests._store, manifests._path, Base.of(snapshot), error) from error


def fits_in_memory(manifests: Manifests, snapshot: Snapshot, entry_filter: EntryFilter | None = None) -> bool:
    """Whether the entries of a snapshot's wanted manifests fit into the manifest cache.

    Raises: SnapshotExpiredError if the snapshot has expired in the meantime.
    """
    files = wanted_manifests(manifests.base_and_delta(snapshot), entry_filter)
    return sum(file.added_files + file.deleted_files for file in files) * ENTRY_BYTES <= manifests._cache.max_bytes


def entry_parts(
    manifests: Manifests, snapshot: Snapshot, entry_filter: EntryFilter | None = None
) -> Iterator[EntryColumns]:
    """The ADD and DELETE entries of a snapshot, unfolded, about 65,536 at a time.

    Raises: as `live_entries`
    """
    try:
        files = wanted_manifests(manifests.base_and_delta(snapshot), entry_filter)
        for part in groups_of(files, PART_ENTRIES):
            yield before_folding(manifests._load(part, holds=False), entry_filter)
    except FileMissingError as error:
        raise missing_error(manifests._store, manifests._path, Base.of(snapshot), error) from error


def _fold_files(
    manifests: Manifests,
    files: Sequence[ManifestFile],
    entry_filter: EntryFilter | None,
    deleted: EntryColumns | None = None,
    *,
    holds: bool = True,
) -> EntryColumns:
    """The live entries of wanted manifests; `deleted`: all DELETE entries, also those of other manifests."""
    try:
        found = before_folding(manifests._load(files, holds=holds), entry_filter)
        if deleted is not None:
            found = concat([found.additions(), deleted])
        return after_folding(live(found), entry_filter)
    except CorruptionError as error:
        raise error if error.path is not None else manifests._blame(files, error) from error


class _Merge:
    """One merge of manifests. `written`: the names of the new ones so far."""

    def __init__(self, manifests: Manifests, partition_types: Sequence[DataType], settings: ManifestSettings) -> None:
        self._manifests = manifests
        self._types = partition_types
        self._settings = settings
        self.written: list[str] = []

    def full(self, files: Sequence[ManifestFile]) -> list[ManifestFile] | None:
        """Fold all manifests that are small or contain DELETEs, and those they delete from; None if it is too early."""
        if not wants_full(files, self._settings):
            return None
        with_deletes = [file for file in files if file.deleted_files]
        entries = self._manifests._load(with_deletes)
        deletes = entries.take(entries.kind == FileKind.DELETE)
        untouched = np.array([not must_change(file, self._settings) for file in files])
        if len(deletes):
            untouched &= ~may_contain(files, deletes.distinct("partition").values, self._types)
        kept = [file for file, stays in zip(files, untouched.tolist(), strict=True) if stays]
        rest = [file for file, stays in zip(files, untouched.tolist(), strict=True) if not stays]
        if len(rest) <= 1:
            return None
        columns = self._manifests._load(rest)
        alive = fold(columns).alive
        changed = np.zeros(len(columns), np.bool_)
        start = 0
        for file in rest:
            stop = start + file.added_files + file.deleted_files
            if must_change(file, self._settings) or not bool(alive[start:stop].all()):
                changed[start:stop] = True
            else:
                kept.append(file)
            start = stop
        return kept + self._copy(columns.take(changed & alive))

    def minor(self, files: Sequence[ManifestFile]) -> list[ManifestFile]:
        """Join small neighbours."""
        merged: list[ManifestFile] = []
        for group in minor_groups(files, self._settings):
            if len(group) == 1:
                merged.extend(group)
                continue
            columns = self._manifests._load(group)
            folded = fold(columns)
            merged += self._copy(columns.take(folded.alive | folded.pending))
        return merged

    def _copy(self, columns: EntryColumns) -> list[ManifestFile]:
        from paimon_py.codec.manifest.copy import copy_manifests

        check_unique(columns)
        files = []
        settings = self._settings
        for data, part in copy_manifests(columns, settings.avro_compression, settings.target_file_size_bytes):
            files.append(self._manifests._write(part, data, self._types, settings))
            self.written.append(files[-1].name)
        return files


def _as_avro(data: bytes, path: str, schema: bytes) -> bytes:
    """Convert a file to Avro, regardless of its table's option, which may have been different when it was written."""
    if data.startswith(MAGIC):
        return data
    from paimon_py.metadata.orc_manifests import as_avro

    return as_avro(data, path, schema)


def _to_stored(data: bytes, schema: bytes, settings: ManifestSettings) -> bytes:
    """Convert a file to the format that the table wants, which is usually Avro."""
    if settings.format == "avro":
        return data
    from paimon_py.metadata.orc_manifests import as_orc

    return as_orc(data, schema, settings.compression)


def _keep(held: OrderedDict[str, tuple[T, ...]], name: str, values: tuple[T, ...], most: int) -> None:
    """Cache a file, and at most the `most` latest files."""
    held[name] = values
    while len(held) > most:
        held.popitem(last=False)


def _check_counts(
    files: Sequence[ManifestFile], columns: EntryColumns, counts: Sequence[int], paths: Sequence[str]
) -> None:
    """Check the number of ADDs and DELETEs of manifests against their list: a truncated file may look complete."""
    ends = np.cumsum(counts)
    deletes = np.concatenate(([0], np.cumsum(columns.kind)))
    deleted = deletes[ends] - deletes[ends - counts]
    for file, count, gone, path in zip(files, counts, deleted.tolist(), paths, strict=True):
        if file.added_files != count - gone or file.deleted_files != gone:
            raise CorruptionError(
                f"{path} holds {count - gone} ADDs and {gone} DELETEs, its list says {file.added_files} and"
                f" {file.deleted_files}",
                path=path,
            )


def groups_of(files: Sequence[ManifestFile], entries_max: int) -> Iterator[list[ManifestFile]]:
    """Groups of neighbouring manifests with at most `entries_max` entries together, or one larger manifest."""
    return pack(files, lambda file: file.added_files + file.deleted_files, entries_max)
