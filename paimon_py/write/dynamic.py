"""Dynamic buckets of one writer: assigns keys to buckets, and maintains the hash index files.

Source: format.md §7.4; Java `HashBucketAssigner`, `DynamicBucketIndexMaintainer`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.arguments import as_python
from paimon_py.codec.columns import Int32s, Ints, Mask, distinct_integers, from_numpy
from paimon_py.commit.changes import Bucket, BucketChanges, Changes
from paimon_py.commit.deletion_index import index_entries
from paimon_py.compaction.live_files import LiveFiles
from paimon_py.errors import CorruptionError, OptionError, SnapshotExpiredError, UsageError
from paimon_py.metadata.hash_files import key_hashes, read_hashes, write_hashes
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.manifest import HASH, IndexEntry
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError
from paimon_py.write.align import Alignment
from paimon_py.write.bucket_assigner import BUCKETS_MAX, AssignerSettings, PartitionBuckets, assigners_of, with_limits
from paimon_py.write.route import Router
from paimon_py.write.routing import Routing
from paimon_py.write.streams import open_stream, pieces

_WRITERS_MAX = 2**31 - 1


class Share(msgspec.Struct, frozen=True):
    """The share of one writer among `writers`; `assigners` of them share a partition."""

    number: int
    writers: int
    assigners: int

    @classmethod
    def of(cls, schema: TableSchema, number: int, writers: int) -> Share:
        """The share of writer `number`, counted from 0; `dynamic-bucket.initial-buckets` limits those of a partition.

        Raises: UsageError if buckets are not dynamic, or the writer number is out of range.
        """
        mode = bucket_mode(schema)
        if mode is BucketMode.CROSS_PARTITION:
            raise UsageError("rows of a cross-partition table are written by one writer at a time")
        if mode is not BucketMode.DYNAMIC:
            raise UsageError("only the rows of a table with dynamic buckets are shared among writers by key")
        number, writers = as_python(number), as_python(writers)
        if not all(isinstance(each, int) and not isinstance(each, bool) for each in (number, writers)):
            raise UsageError(f"writers are counted in whole numbers, not {number!r} of {writers!r}")
        if not 0 <= number < writers:
            raise UsageError(f"there is no writer {number} of {writers}; they are counted from 0")
        if writers > _WRITERS_MAX:
            raise UsageError(f"there are at most {_WRITERS_MAX} writers, not {writers}")
        assigners = Options(schema.options).find_int("dynamic-bucket.initial-buckets") or writers
        if assigners < 1:
            raise OptionError(
                f"option 'dynamic-bucket.initial-buckets' is {assigners}; it must be at least 1",
                option="dynamic-bucket.initial-buckets",
                value=str(assigners),
            )
        return cls(number, writers, min(assigners, writers))

    def owns(self, partition: bytes, hashes: Int32s) -> Mask:
        """A mask of the keys of a partition that belong to this writer."""
        owners = assigners_of(partition, hashes, channels=self.writers, assigners=self.assigners)
        mask: Mask = owners == self.number
        return mask


def writer_numbers(schema: TableSchema, data: object, writers: int) -> pa.Array:
    """The writer of each row of any Arrow C stream.

    Raises: UsageError if buckets are not dynamic, or the data do not fit.
    """
    share = Share.of(schema, 0, writers)

    def note(partition: bytes, hashes: Int32s) -> Ints:
        return assigners_of(partition, hashes, channels=writers, assigners=share.assigners).astype(np.int64)

    router = Router(schema, assign=note)
    reader = open_stream(data, schema.fields)
    alignment = Alignment(schema, reader.schema)
    found = [router.bucket_numbers(alignment.apply(piece).batch) for batch in reader for piece in pieces(batch)]
    return from_numpy(np.concatenate(found or [np.empty(0, np.int64)]).astype(np.int32), pa.int32())


class _Indexed(msgspec.Struct):
    """The index of one bucket: its file, its hashes, and those that are not in a file yet."""

    entry: IndexEntry | None
    hashes: list[Int32s]
    is_new: bool = False


class DynamicBuckets(Routing):
    """Assigns the rows of one writer to dynamic buckets.

    Partitions are loaded at their first row. If buckets have files but no index, the index is rebuilt from their keys.
    """

    def __init__(
        self,
        table: OpenTable,
        live: LiveFiles,
        share: Share | None = None,
    ) -> None:
        """`live`: the files that the writer builds on.

        Raises: OptionError for limits that allow no bucket.
        """
        self._root = table.root
        self._schema = table.schema
        self._files = table
        self._live = live
        own = AssignerSettings() if share is None else AssignerSettings(count=share.assigners, number=share.number)
        self._settings = with_limits(own, table.options)
        self._share = share
        self._partitions: dict[bytes, PartitionBuckets] = {}
        self._index: dict[Bucket, _Indexed] = {}
        self._entries: dict[bytes, list[IndexEntry]] | None = None
        self._is_old = False
        self._made: list[IndexEntry] = []
        self.route = Router(table.schema, assign=self.assign).route

    def assign(self, partition: bytes, hashes: Int32s) -> Ints:
        """The bucket of each key of a partition, by hash.

        Raises:
            UsageError: keys that belong to another writer, or too many buckets.
            CorruptionError, StorageError: the index cannot be read.
        """
        self._check_share(partition, hashes)
        buckets = self._partitions.get(partition)
        if buckets is None:
            buckets = self._partitions[partition] = self._load(partition)
        numbers, fresh = buckets.assign(hashes)
        for bucket, own in fresh.items():
            indexed = self._index.setdefault((partition, bucket), _Indexed(None, []))
            indexed.hashes.append(own)
            indexed.is_new = True
        return numbers

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

    def hand_over(self, changes: Changes) -> None:
        """Everything written so far now belongs to the receiver."""
        del changes
        self.handed = frozenset(entry.name for entry in self._made)
        self._made = []

    def abort(self) -> None:
        """Delete the index files that were not handed over, as far as the store allows."""
        made, self._made = self._made, []
        self._files.delete_index(made)

    def forget(self, changes: Iterable[BucketChanges]) -> None:
        """Changes that were handed over will not be committed: their partitions are reloaded."""
        gone = {one.partition for one in changes}
        self._is_old = self._is_old or (bool(gone) and self._live.snapshot is not None)
        for partition in gone:
            self._partitions.pop(partition, None)
        self._index = {key: indexed for key, indexed in self._index.items() if key[0] not in gone}

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

    def _load(self, partition: bytes) -> PartitionBuckets:
        """The index of a partition. If the snapshot has expired, that of the latest snapshot; the commit then compares
        all of it, since the older one is unavailable to it too.

        Raises: CorruptionError if a file of the latest snapshot is missing.
        """
        if self._is_old:
            self._renew(self._root.snapshots.latest())
        while True:
            try:
                found = self._read(partition)
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
        known = [(bucket, one.hashes[0]) for bucket, one in found.items()]
        self._index.update({(partition, bucket): one for bucket, one in found.items()})
        share = self._share
        return PartitionBuckets(self._settings, known, None if share is None else lambda h: share.owns(partition, h))

    def _read(self, partition: bytes) -> dict[int, _Indexed]:
        """The index of each bucket of a partition."""
        found: dict[int, _Indexed] = {}
        for entry in self._known_entries().get(partition, ()):
            found[entry.bucket] = _Indexed(entry, [read_hashes(self._files, entry)])
        for bucket, files in self._files_without_index(partition, found):
            door = self._files.bucket(partition, bucket)
            keys = [key_hashes(door, file) for file in files]
            found[bucket] = _Indexed(None, [distinct_integers(np.concatenate(keys))], is_new=True)
        return found

    def _renew(self, latest: Snapshot | None) -> None:
        self._live, self._entries, self._is_old = LiveFiles(self._root, latest), None, False

    def _check_share(self, partition: bytes, hashes: Int32s) -> None:
        if self._share is None or bool(self._share.owns(partition, hashes).all()):
            return
        raise UsageError(
            f"rows belong to another of the {self._share.writers} writers than number {self._share.number}: send each "
            "row to the writer that Table.writer_numbers names"
        )

    def _known_entries(self) -> dict[bytes, list[IndexEntry]]:
        if self._entries is None:
            self._live.columns()
            found: dict[bytes, list[IndexEntry]] = {}
            for entry in index_entries(self._root, self._live.snapshot):
                if entry.index_type == HASH:
                    found.setdefault(entry.partition, []).append(entry)
            self._entries = found
        return self._entries

    def _files_without_index(self, partition: bytes, known: Container[int]) -> list[tuple[int, list[DataFile]]]:
        places = self._live.places(partition)
        columns = self._live.columns()
        return [
            (bucket, [entry.file for entry in columns.take(rows).entries()])
            for bucket, rows in sorted(places.items())
            if bucket not in known
        ]
