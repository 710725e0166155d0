"""Determines which files of a Paimon table Iceberg readers see: those of a snapshot, and the changes of a commit.

Source: docs/format.md §25.5, §25.6; Java `IcebergCommitCallback`, `IcebergDataFileMeta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import numpy_values
from paimon_py.codec.deletion_vectors import decode
from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.iceberg.bounds import file_bounds, partition_values
from paimon_py.iceberg.puffin import VectorBlob
from paimon_py.iceberg.values import DELETES, IcebergFile, PartitionValues
from paimon_py.metadata.open_table import OpenTable
from paimon_py.scan.plan_snapshot import plan_snapshot
from paimon_py.scan.request import Request
from paimon_py.spec.data_file import DataFile, FileKind, ManifestEntry
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.manifest import DELETION_VECTORS, DeletionPlace
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.visibility import kills_older_rows
from paimon_py.storage.store import FileMissingError


class RemovedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A removed file, whether Iceberg readers have seen it or not."""

    path: str
    partition: PartitionValues
    row_count: int
    size_bytes: int


class ShownChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a Paimon snapshot for Iceberg readers, by path in the order of its entries.

    `add_only`: no file is removed, not even one that readers have not seen.
    """

    added: Mapping[str, IcebergFile]
    removed: Mapping[str, RemovedFile]
    add_only: bool


class ShownFiles:
    """Determines the files of a Paimon table that Iceberg readers see."""

    def __init__(self, table: OpenTable, options: IcebergOptions) -> None:
        self._root = table.root
        self._schema = table.schema
        self._options = options
        self._files = table
        self._partitions: dict[bytes, PartitionValues] = {}

    # -- data files ---------------------------------------------------------------------------------------------------

    def changes(self, snapshot: Snapshot, delta: Sequence[ManifestEntry] | None = None) -> ShownChanges:
        """The changes of a snapshot.

        Args:
            delta: the entries of its delta, if they are known; otherwise its delta list and manifests are read.

        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        entries = self._delta(snapshot) if delta is None else delta
        added: dict[str, IcebergFile] = {}
        removed: dict[str, RemovedFile] = {}
        for entry in entries:
            path = self._path(entry)
            if entry.kind is FileKind.DELETE:
                added.pop(path, None)
                removed[path] = self._removed_file(entry, path)
            elif self._is_shown(entry):
                added[path] = self._shown_file(entry, path)
                removed.pop(path, None)
        add_only = all(entry.kind is FileKind.ADD for entry in entries)
        return ShownChanges(added=added, removed=removed, add_only=add_only)

    def _delta(self, snapshot: Snapshot) -> Sequence[ManifestEntry]:
        root = self._root
        try:
            listed = root.manifests.delta(snapshot)
            return root.manifests.read_entries(listed).entries()
        except FileMissingError as error:
            raise root.missing(Base.of(snapshot), error) from error

    def whole(self, snapshot: Snapshot, *, top_levels: bool = False) -> list[IcebergFile]:
        """All files of a snapshot that readers may see without merging rows, in the order of the plan of a read.

        Args:
            top_levels: for a bucket that needs a merge, return at least the files of its top level, which are the
                result of the last full compaction.

        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        live = self._root.manifests.live_entries(snapshot)
        live = live.take(np.flatnonzero(live.bucket != POSTPONE_BUCKET))
        chosen = live if not self._schema.primary_keys else self._files_readable_alone(snapshot, live, top_levels)
        return [self._shown_file(entry, self._path(entry)) for entry in chosen.entries()]

    def _files_readable_alone(self, snapshot: Snapshot, live: EntryColumns, top_levels: bool) -> EntryColumns:
        """The files of a primary-key table that can be read without a merge."""
        request = Request(schema=self._schema, columns=self._schema.names, every_level=True)
        planned = plan_snapshot(self._root, request, snapshot)
        alone = {
            split.files[0].name
            for split in planned.splits
            if len(split.files) == 1 and not split.files[0].delete_row_count
        }
        keep = np.isin(np.arange(len(live)), self._settled_places(live))
        keep |= np.array([name in alone for name in live.names().to_pylist()], np.bool_)
        if top_levels:
            top = live.level > 0 if self._options.shows_vectors else live.level == self._options.top_level
            mixed = [places for places in live.by_bucket().values() if not keep[places].any()]
            for places in mixed:
                keep[places] = top[places]
        return live.take(np.flatnonzero(keep))

    def _settled_places(self, live: EntryColumns) -> Sequence[int]:
        """The positions of files in buckets where no key is in two files: none is on level 0 or contains deletes."""
        one_row = kills_older_rows(self._schema)
        found: list[int] = []
        for places in live.by_bucket().values():
            part = live.take(places)
            is_open = (part.level == 0) | (part.delete_row_count > 0)
            if not is_open.any() and (one_row or len(set(part.level.tolist())) == 1):
                found += places.tolist()
        return found

    def _is_shown(self, entry: ManifestEntry) -> bool:
        if not self._schema.primary_keys:
            return True
        if self._options.shows_vectors:
            return entry.file.level > 0
        return entry.file.level == self._options.top_level

    def _path(self, entry: ManifestEntry) -> str:
        return self._files.bucket(entry.partition, entry.bucket).path(entry.file)

    def _partition(self, partition: bytes) -> PartitionValues:
        found = self._partitions.get(partition)
        if found is None:
            found = self._partitions[partition] = partition_values(self._schema, partition)
        return found

    def _removed_file(self, entry: ManifestEntry, path: str) -> RemovedFile:
        file = entry.file
        return RemovedFile(
            path=path, partition=self._partition(entry.partition), row_count=file.row_count, size_bytes=file.size_bytes
        )

    def _shown_file(self, entry: ManifestEntry, path: str) -> IcebergFile:
        file = entry.file
        known = file_bounds(file, self._schema_of(file))
        return IcebergFile(
            path=path, format=path.rpartition(".")[2].lower(), partition=self._partition(entry.partition),
            row_count=file.row_count, size_bytes=file.size_bytes, null_counts=known.null_counts,
            lower_bounds=known.lower, upper_bounds=known.upper,
        )  # fmt: skip

    def _schema_of(self, file: DataFile) -> TableSchema:
        return self._root.schemas.get(file.schema_id)

    # -- deletion vectors ----------------------------------------------------------------------------------------------

    def vectors_changed(self, before: Snapshot | None, snapshot: Snapshot) -> bool:
        """Whether a snapshot has other deletion vectors than the previous one. Cost: the index manifests of both."""
        if not self._options.shows_vectors:
            return False
        return self._vector_entries(before) != self._vector_entries(snapshot)

    def vectors(self, snapshot: Snapshot, paths: Iterable[str] | None = None) -> list[tuple[VectorBlob, IcebergFile]]:
        """The deletion vectors of a snapshot, each with its entry, in which path and size are still missing.

        Args:
            paths: the data files that readers see; None: all files with vectors.

        Cost: a small read for each.
        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        if not self._options.shows_vectors or snapshot.index_manifest is None:
            return []
        root, seen = self._root, None if paths is None else set(paths)
        found = []
        try:
            places = self._files.deletion_places(root.manifests.read_index(snapshot.index_manifest))
            names = {name for by_name in places.values() for name in by_name}
            live = root.manifests.live_entries(snapshot)
            marked = live.take(numpy_values(pc.is_in(live.names(), value_set=pa.array(names, pa.string()))))
            for entry in marked.entries():
                place = places.get((entry.partition, entry.bucket), {}).get(entry.file.name)
                path = self._path(entry)
                if place is not None and (seen is None or path in seen):
                    found.append(self._vector(path, place, self._partition(entry.partition)))
        except FileMissingError as error:
            raise root.missing(Base.of(snapshot), error) from error
        return found

    def _vector_entries(self, snapshot: Snapshot | None) -> list[object]:
        if snapshot is None or snapshot.index_manifest is None:
            return []
        try:
            entries = self._root.manifests.read_index(snapshot.index_manifest)
        except FileMissingError as error:
            raise self._root.missing(Base.of(snapshot), error) from error
        return [entry for entry in entries if entry.index_type == DELETION_VECTORS]

    def _vector(
        self, data_file: str, place: DeletionPlace, partition: PartitionValues
    ) -> tuple[VectorBlob, IcebergFile]:
        with self._root.files.open_read(place.path) as source:
            source.seek(place.offset)
            data = source.read(place.length)
        count = len(decode(data, place.length, place.path, place.offset))
        file = IcebergFile(
            content=DELETES, path="", format="puffin", partition=partition, row_count=count, size_bytes=-1,
            referenced=data_file,
        )  # fmt: skip
        return VectorBlob(data_file, count, data), file
