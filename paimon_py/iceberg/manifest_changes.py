"""Applies the changes of a Paimon snapshot to the manifests of the previous Iceberg snapshot.

Source: docs/format.md §25.5; Java `IcebergCommitCallback.createMetadataWithBase`, `compactMetadataIfNeeded`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.iceberg.bounds import may_hold
from paimon_py.iceberg.directory import IcebergDirectory, MetadataWriter
from paimon_py.iceberg.lineage import with_row_ids
from paimon_py.iceberg.metadata import plain_path
from paimon_py.iceberg.shown_files import RemovedFile, ShownChanges
from paimon_py.iceberg.values import DATA, EntryStatus, IcebergEntry, IcebergFile, IcebergManifest
from paimon_py.spec.iceberg import IcebergOptions
from paimon_py.spec.schema import TableSchema


class ChangedManifests(msgspec.Struct, frozen=True, kw_only=True):
    """The data manifests of a snapshot, the added and removed files, the number of changed partitions, and whether a
    manifest of the previous snapshot was rewritten.
    """

    manifests: list[IcebergManifest]
    added: list[IcebergFile]
    removed: list[RemovedFile]
    partition_count: int
    rewrote: bool


class ManifestChange:
    """Applies the changes of snapshot `number`."""

    def __init__(
        self, directory: IcebergDirectory, writer: MetadataWriter, schema: TableSchema, options: IcebergOptions,
        number: int,
    ) -> None:
        self._directory = directory
        self._writer = writer
        self._schema = schema
        self._options = options
        self._number = number

    def run(self, base: Sequence[IcebergManifest], changes: ShownChanges) -> ChangedManifests:
        """The data manifests after the changes: the previous ones in their order, the new one last, small ones merged.

        Cost: a get for each previous manifest that may contain a partition from which a file is removed, a put for each
            that contains such a file, and one put for the added files.
        Raises: FileMissingError, CorruptionError
        """
        added, removed = dict(changes.added), dict(changes.removed)
        named = {plain_path(path): path for path in added}
        gone = {plain_path(path) for path in removed}
        touched = {file.partition for files in (added, removed) for file in files.values()}
        made, rewrote = list(base), False
        if not changes.add_only:
            made = []
            for manifest in base:
                if not any(may_hold(manifest.partitions, self._schema, partition) for partition in touched):
                    made.append(manifest)
                    continue
                entries = self._directory.entries(manifest, self._schema)
                live = {plain_path(entry.file.path) for entry in entries if entry.is_live}
                for path in live & named.keys():
                    added.pop(named[path], None)
                if live & gone:
                    made += self._writer.manifests(self._without(manifest, entries, gone), DATA)
                    rewrote = True
                else:
                    made.append(manifest)
        new = [IcebergEntry.new(file, self._number) for file in added.values()]
        made += self._writer.manifests(new, DATA)
        merged = self._merge(made)
        return ChangedManifests(
            manifests=merged, added=list(added.values()), removed=list(removed.values()),
            partition_count=len(touched), rewrote=rewrote,
        )  # fmt: skip

    def _without(
        self, manifest: IcebergManifest, entries: Sequence[IcebergEntry], gone: set[str]
    ) -> list[IcebergEntry]:
        """The entries of a manifest after some files were removed; files removed earlier are left out."""
        kept = []
        for entry in with_row_ids(manifest, entries):
            if not entry.is_live:
                continue
            if plain_path(entry.file.path) in gone:
                kept.append(msgspec.structs.replace(entry, status=EntryStatus.DELETED, snapshot_id=self._number))
            else:
                kept.append(msgspec.structs.replace(entry, status=EntryStatus.EXISTING))
        return kept

    def _merge(self, manifests: list[IcebergManifest]) -> list[IcebergManifest]:
        """The same files in fewer manifests, if there are many small ones."""
        options = self._options
        small = [one for one in manifests if one.size_bytes < options.target_bytes * 2 // 3]
        is_full = sum(one.size_bytes for one in small) >= options.target_bytes
        if len(small) < options.merge_min or (len(small) < options.merge_max and not is_full):
            return manifests
        self._writer.flush()
        paths = {one.path for one in small}
        entries = [
            kept
            for manifest in small
            for entry in with_row_ids(manifest, self._directory.entries(manifest, self._schema))
            if (kept := self._carry_over(entry)) is not None
        ]
        own = [path for path in self._writer.written if path in paths]
        made = [one for one in manifests if one.path not in paths] + self._writer.manifests(entries, DATA)
        self._directory.delete(own)
        self._writer.written = [path for path in self._writer.written if path not in own]
        return made

    def _carry_over(self, entry: IcebergEntry) -> IcebergEntry | None:
        """An entry for a manifest of this snapshot; None for a file that was removed earlier."""
        if self._number in (entry.file_sequence_number, entry.snapshot_id):
            return entry
        return msgspec.structs.replace(entry, status=EntryStatus.EXISTING) if entry.is_live else None
