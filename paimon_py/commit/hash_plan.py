"""The hash indexes of dynamic buckets through a commit: what to publish if others committed keys meanwhile.

A writer assigns keys by the index it found. Hashes that others added since are united with its own; only if a key was
given two buckets the commit is refused: no hash is ever lost, no key lies twice. The writer's own file is of no use
then, and deleted. A writer that goes on may name it once more: what it would say is read from the keys of the rows that
rely on it.

Source: format.md §7.4, §10.1; Java `IndexManifestFileHandler` (which keeps the last index alone).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from paimon_py.codec.columns import Int32s
from paimon_py.codec.partition_text import partition_directory
from paimon_py.commit.changes import BucketChanges
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.index_plan import Index, IndexChange, index_after
from paimon_py.commit.leftovers import delete_index_files
from paimon_py.commit.plan import Bucket
from paimon_py.errors import SnapshotExpiredError
from paimon_py.metadata.hash_files import key_hashes, read_hashes, write_hashes
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError

Change = tuple[IndexChange, tuple[DataFile, ...]]
"""What writing did to the index of a bucket, and the new files that rely on it."""

_NONE = np.empty(0, np.int32)


class HashIndexes:
    """What one commit does to the hash indexes of its table."""

    def __init__(self, root: TableRoot, schema: TableSchema, base: Base) -> None:
        """`base`: the snapshot that the writers found."""
        self._root = root
        self._schema = schema
        self._base = base
        self._made: list[IndexEntry] = []

    def after(self, index: Index, latest: Snapshot | None, buckets: Iterable[BucketChanges]) -> Index | Conflict:
        """The index files of the table after the changes; united files are written anew.

        Cost: reads hashes only of partitions whose index others changed, and keys of new files only where a writer's
            index file is gone.
        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        self.discard()
        changes = hash_changes(buckets)
        if not changes:
            return index
        stale = stale_partitions(index, self._found(latest), [change for change, _ in changes])
        united: list[IndexChange] = []
        for partition in sorted(stale):
            found = self._united(partition, index, latest, [one for one in changes if one[0].partition == partition])
            if isinstance(found, Conflict):
                return found
            united += found
        fresh = [one for one, _ in changes if one.partition not in stale and one.deleted != one.added]
        return index_after(index, [*fresh, *united], by_bucket=True)

    def discard(self) -> None:
        """Delete the files that were made; no snapshot names them."""
        made, self._made = self._made, []
        delete_index_files(self._root, self._schema, made)

    def _found(self, latest: Snapshot | None) -> Index | None:
        """The index that the writers found; None if it can no longer be read."""
        if self._base.is_of(None):
            return ()
        if self._base.is_of(latest):
            return index_entries(self._root, latest)
        snapshot = self._root.snapshots.find(self._base.id)
        if snapshot is None or not self._base.is_of(snapshot):
            return None
        try:
            return index_entries(self._root, snapshot)
        except SnapshotExpiredError:
            return None

    def _united(
        self, partition: bytes, index: Index, latest: Snapshot | None, changes: Sequence[Change]
    ) -> list[IndexChange] | Conflict:
        entries = {e.bucket: e for e in index if e.index_type == HASH and e.partition == partition}
        now = {bucket: np.unique(self._read_latest(entry, latest)) for bucket, entry in entries.items()}
        place = partition_directory(self._schema, partition) or "the table"
        result: dict[int, IndexChange] = {}
        for change, files in changes:
            bucket = change.bucket
            own, hashes = self._own(change, files)
            current = now.get(bucket, _NONE)
            added = np.setdiff1d(hashes, current)
            for other, known in now.items():
                if other != bucket and len(np.intersect1d(added, known)):
                    return Conflict(
                        f"others gave a key of {place} bucket {other} meanwhile, we gave it {bucket}; write the rows "
                        "again with a new writer"
                    )
            if len(added):
                now[bucket] = np.union1d(current, added)
                old = (entries[bucket],) if bucket in entries else ()
                result[bucket] = IndexChange(partition, bucket, old, own)
        return [self._written(change, now[bucket]) for bucket, change in result.items()]

    def _written(self, change: IndexChange, hashes: Int32s) -> IndexChange:
        """With the writer's own file where that holds all."""
        if change.added and change.added[0].row_count == len(hashes):
            return change
        entry = write_hashes(self._root, self._schema, change.partition, change.bucket, hashes)
        self._made.append(entry)
        return IndexChange(change.partition, change.bucket, change.deleted, (entry,))

    def _own(self, change: IndexChange, files: Sequence[DataFile]) -> tuple[Index, Int32s]:
        """A writer's index file and the hashes that it gave this bucket; without the file, those of its new rows."""
        try:
            found = [read_hashes(self._root, self._schema, entry) for entry in change.added]
        except FileMissingError:
            place = (change.partition, change.bucket)
            found = [key_hashes(self._root, self._schema, place, file) for file in files]
            return (), np.unique(np.concatenate([_NONE, *found]))
        return change.added, np.unique(np.concatenate([_NONE, *found]))

    def _read_latest(self, entry: IndexEntry, latest: Snapshot | None) -> Int32s:
        try:
            return read_hashes(self._root, self._schema, entry)
        except FileMissingError as error:
            assert latest is not None
            raise self._root.manifests.gone(latest, error) from error


def hash_changes(buckets: Iterable[BucketChanges]) -> list[Change]:
    """What writing did to hash indexes, or relied on, with the new files."""
    changes = (
        (IndexChange(b.partition, b.bucket, _hashed(b.deleted_index), _hashed(b.new_index)), b.new_files)
        for b in buckets
    )
    return [change for change in changes if change[0].deleted or change[0].added]


def replaced_hashes(index: Index, buckets: Iterable[BucketChanges]) -> Index:
    """The index files of a table of which an overwrite left `index`, with those of the new rows."""
    changes = [IndexChange(one.partition, one.bucket, (), one.added) for one, _ in hash_changes(buckets)]
    return index_after(index, changes, by_bucket=True)


def stale_partitions(index: Index, base: Index | None, changes: Sequence[IndexChange]) -> set[bytes]:
    """The partitions whose index is not the one that the changes were made on.

    Args:
        index: the index files now. base: those that the writers found, None for unknown.
    """
    partitions = {change.partition for change in changes}
    if base is None:
        return partitions
    now = _by_bucket(index, partitions)
    stale = {partition for (partition, _), _ in now.items() ^ _by_bucket(base, partitions).items()}
    for change in changes:
        key = (change.partition, change.bucket)
        expected = change.deleted[0].name if change.deleted else None
        if now.get(key) != expected:
            stale.add(change.partition)
        if change.added:
            now[key] = change.added[0].name
    return stale


def _by_bucket(index: Iterable[IndexEntry], partitions: set[bytes]) -> dict[Bucket, str]:
    return {
        (entry.partition, entry.bucket): entry.name
        for entry in index
        if entry.index_type == HASH and entry.partition in partitions
    }


def _hashed(entries: Index) -> Index:
    return tuple(entry for entry in entries if entry.index_type == HASH)
