"""The hash index files of the buckets of one writer: loaded from a snapshot, and written with new hashes.

Source: format.md §7.4; Java `DynamicBucketIndexMaintainer`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import msgspec
import numpy as np

from paimon_py.codec.columns import Int32s, distinct_integers
from paimon_py.commit.changes import Bucket, BucketChanges
from paimon_py.commit.deletion_index import index_entries
from paimon_py.compaction.live_files import LiveFiles
from paimon_py.errors import CorruptionError, SnapshotExpiredError
from paimon_py.metadata.hash_files import key_hashes, read_hashes, write_hashes
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError
from paimon_py.write.bucket_assigner import BUCKETS_MAX


class _Indexed(msgspec.Struct):
    """The index of one bucket: its file, its hashes, and those that are not in a file yet."""

    entry: IndexEntry | None
    hashes: list[Int32s]
    is_new: bool = False


class BucketIndexes:
    """The hash indexes of the buckets of one writer.

    If buckets have files but no index, the index is rebuilt from their keys.
    """

    def __init__(self, table: OpenTable, live: LiveFiles) -> None:
        """`live`: the files that the writer builds on."""
        self._root = table.root
        self._files = table
        self._live = live
        self._index: dict[Bucket, _Indexed] = {}
        self._entries: dict[bytes, list[IndexEntry]] | None = None
        self._is_old = False
        self._made: list[IndexEntry] = []

    def load(self, partition: bytes, only: int | None = None) -> list[tuple[int, Int32s]]:
        """The hashes of each bucket of a partition, or of one bucket. If the snapshot has expired, those of the latest
        snapshot; the commit then compares all of them, since the older one is unavailable to it too.

        Raises: CorruptionError if a file of the latest snapshot is missing.
        """
        if self._is_old:
            self._renew(self._root.snapshots.latest())
        while True:
            try:
                found = self._read(partition, only)
            except (FileMissingError, SnapshotExpiredError) as error:
                latest = self._root.snapshots.latest()
                if latest != self._live.snapshot:
                    self._renew(latest)
                elif latest is None or isinstance(error, SnapshotExpiredError):
                    raise
                else:
                    raise self._root.missing(Base.of(latest), error) from error
            else:
                break
        for bucket in found:
            if not 0 <= bucket < BUCKETS_MAX:
                message = f"{self._root.path} has a hash index of bucket {bucket}, and there are {BUCKETS_MAX} at most"
                raise CorruptionError(message, path=self._root.path)
        self._index.update({(partition, bucket): one for bucket, one in found.items()})
        return [(bucket, one.hashes[0]) for bucket, one in found.items()]

    def add(self, partition: bytes, bucket: int, hashes: Int32s) -> None:
        """Add new hashes to the index of a bucket."""
        indexed = self._index.setdefault((partition, bucket), _Indexed(None, []))
        indexed.hashes.append(hashes)
        indexed.is_new = True

    def with_index(self, changes: Sequence[BucketChanges]) -> list[BucketChanges]:
        """The changes with the index files of their buckets; writes new index files.

        A bucket without new hashes refers to its existing index file: the commit then knows what its rows depend on.

        Raises: StorageError; then call `abort`.
        """
        found = {(one.partition, one.bucket): one for one in changes}
        for key, indexed in self._index.items():
            if indexed.is_new and key not in found:
                found[key] = BucketChanges(partition=key[0], bucket=key[1], total_buckets=-1)
        return [self._with_index(key, one) for key, one in found.items()]

    def hand_over(self) -> frozenset[str]:
        """The names of the files written so far, which now belong to the receiver."""
        made, self._made = self._made, []
        return frozenset(entry.name for entry in made)

    def abort(self) -> None:
        """Delete the index files that were not handed over, as far as the store allows."""
        made, self._made = self._made, []
        self._files.delete_index(made)

    def forget(self, partitions: Container[bytes]) -> None:
        """Changes of some partitions will not be committed: what is loaded next is from the latest snapshot."""
        self._is_old = self._is_old or self._live.snapshot is not None
        self._index = {key: indexed for key, indexed in self._index.items() if key[0] not in partitions}

    # -- inside -----------------------------------------------------------------------------------------------------

    def _with_index(self, key: Bucket, changes: BucketChanges) -> BucketChanges:
        indexed = self._index.get(key)
        if indexed is None:
            return changes
        before = () if indexed.entry is None else (indexed.entry,)
        if indexed.is_new:
            hashes = np.concatenate(indexed.hashes)
            entry = write_hashes(self._files.bucket(*key), hashes)
            self._made.append(entry)
            indexed.entry, indexed.hashes, indexed.is_new = entry, [hashes], False
        assert indexed.entry is not None
        written = msgspec.structs.replace(changes.written, deleted_index=before, added_index=(indexed.entry,))
        return msgspec.structs.replace(changes, written=written)

    def _read(self, partition: bytes, only: int | None) -> dict[int, _Indexed]:
        """The index of each bucket of a partition, or of one bucket."""
        found: dict[int, _Indexed] = {}
        for entry in self._known_entries().get(partition, ()):
            if only in (None, entry.bucket):
                found[entry.bucket] = _Indexed(entry, [read_hashes(self._files, entry)])
        for bucket, files in self._files_without_index(partition, found, only):
            door = self._files.bucket(partition, bucket)
            keys = [key_hashes(door, file) for file in files]
            found[bucket] = _Indexed(None, [distinct_integers(np.concatenate(keys))], is_new=True)
        return found

    def _renew(self, latest: Snapshot | None) -> None:
        self._live, self._entries, self._is_old = LiveFiles(self._root, latest), None, False

    def _known_entries(self) -> dict[bytes, list[IndexEntry]]:
        if self._entries is None:
            self._live.columns()
            found: dict[bytes, list[IndexEntry]] = {}
            for entry in index_entries(self._root, self._live.snapshot):
                if entry.index_type == HASH:
                    found.setdefault(entry.partition, []).append(entry)
            self._entries = found
        return self._entries

    def _files_without_index(
        self, partition: bytes, known: Container[int], only: int | None
    ) -> Iterable[tuple[int, list[DataFile]]]:
        places = self._live.places(partition)
        columns = self._live.columns()
        return [
            (bucket, [entry.file for entry in columns.take(rows).entries()])
            for bucket, rows in sorted(places.items())
            if bucket not in known and only in (None, bucket)
        ]
