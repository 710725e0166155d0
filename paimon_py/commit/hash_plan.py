"""The hash indexes of dynamic buckets through a commit: what to publish if others committed keys meanwhile.

A writer assigns keys by the index it found. Hashes that others added since are united with its own; only if a key was
given two buckets, or the buckets were emptied, the commit is refused: no hash is ever lost, no key lies twice.

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
from paimon_py.errors import NotFoundError
from paimon_py.metadata.hash_files import read_hashes, write_hashes
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import FileMissingError


class HashIndexes:
    """What one commit does to the hash indexes of its table."""

    def __init__(self, root: TableRoot, schema: TableSchema, base_id: int | None) -> None:
        """`base_id`: the snapshot that the writers found."""
        self._root = root
        self._schema = schema
        self._base_id = base_id
        self._made: list[IndexEntry] = []
        self._unused: list[IndexEntry] = []

    def after(self, index: Index, latest: Snapshot | None, buckets: Iterable[BucketChanges]) -> Index | Conflict:
        """The index files of the table after the changes; united files are written anew.

        Cost: reads hashes only of partitions whose index others changed.
        Raises: SnapshotExpiredError, CorruptionError, StorageError
        """
        self.discard()
        changes = hash_changes(buckets)
        if not changes:
            return index
        stale = stale_partitions(index, self._base(latest), changes)
        united: list[IndexChange] = []
        for partition in sorted(stale):
            found = self._united(partition, index, latest, [one for one in changes if one.partition == partition])
            if isinstance(found, Conflict):
                return found
            united += found
        fresh = [one for one in changes if one.partition not in stale and one.deleted != one.added]
        after = index_after(index, [*fresh, *united], by_bucket=True)
        kept = {entry.name for one in changes for entry in one.deleted} | {entry.name for entry in after}
        self._unused = [entry for one in changes for entry in one.added if entry.name not in kept]
        return after

    def discard(self) -> None:
        """Delete the files that were made; no snapshot names them."""
        made, self._made, self._unused = self._made, [], []
        delete_index_files(self._root, self._schema, made)

    def delete_unused(self) -> None:
        """After publication: delete the writers' files of which united ones took the place.

        A writer that goes on needs them; it compares what it adds next with them.
        """
        delete_index_files(self._root, self._schema, self._unused)

    def _base(self, latest: Snapshot | None) -> Index | None:
        """The index that the writers found; None if it can no longer be read."""
        if self._base_id is None:
            return ()
        if latest is not None and latest.id == self._base_id:
            return index_entries(self._root, latest)
        try:
            return index_entries(self._root, self._root.snapshots.get(self._base_id))
        except (NotFoundError, FileMissingError):
            return None

    def _united(
        self, partition: bytes, index: Index, latest: Snapshot | None, changes: Sequence[IndexChange]
    ) -> list[IndexChange] | Conflict:
        entries = {e.bucket: e for e in index if e.index_type == HASH and e.partition == partition}
        now = {bucket: np.unique(self._read_latest(entry, latest)) for bucket, entry in entries.items()}
        place = partition_directory(self._schema, partition) or "the table"
        result: dict[int, IndexChange] = {}
        for change in changes:
            bucket = change.bucket
            try:
                before = self._read(change.deleted)
            except FileMissingError:
                return Conflict(f"others wrote new keys to {place} so long ago that its earlier index has expired")
            new = self._read(change.added)
            current = now.get(bucket, np.empty(0, np.int32))
            if len(np.setdiff1d(before, current)):
                return Conflict(f"others replaced the rows of {place} meanwhile")
            added = np.setdiff1d(new, before)
            for other, hashes in now.items():
                if other != bucket and len(np.intersect1d(added, hashes)):
                    return Conflict(f"others gave a key of {place} bucket {other} meanwhile, we gave it {bucket}")
            now[bucket] = np.union1d(current, new)
            if len(now[bucket]) > len(current):
                old = (entries[bucket],) if bucket in entries else ()
                result[bucket] = IndexChange(partition, bucket, old, change.added)
        return [self._written(change, now[bucket]) for bucket, change in result.items()]

    def _written(self, change: IndexChange, hashes: Int32s) -> IndexChange:
        """With the writer's own file where that holds all."""
        if change.added[0].row_count == len(hashes):
            return change
        entry = write_hashes(self._root, self._schema, change.partition, change.bucket, hashes)
        self._made.append(entry)
        return IndexChange(change.partition, change.bucket, change.deleted, (entry,))

    def _read(self, entries: Index) -> Int32s:
        found = [read_hashes(self._root, self._schema, entry) for entry in entries]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int32)

    def _read_latest(self, entry: IndexEntry, latest: Snapshot | None) -> Int32s:
        try:
            return read_hashes(self._root, self._schema, entry)
        except FileMissingError as error:
            assert latest is not None
            raise self._root.manifests.gone(latest, error) from error


def hash_changes(buckets: Iterable[BucketChanges]) -> list[IndexChange]:
    """What writing did to hash indexes, or relied on."""
    changes = (IndexChange(b.partition, b.bucket, _hashed(b.deleted_index), _hashed(b.new_index)) for b in buckets)
    return [change for change in changes if change.deleted or change.added]


def replaced_hashes(index: Index, buckets: Iterable[BucketChanges]) -> Index:
    """The index files of a table of which an overwrite left `index`, with those of the new rows."""
    changes = [IndexChange(one.partition, one.bucket, (), one.added) for one in hash_changes(buckets)]
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
