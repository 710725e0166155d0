"""Dynamic buckets of one writer: assigns keys to buckets, and maintains the hash index files.

Source: format.md §7.4; Java `HashBucketAssigner`, `DynamicBucketIndexMaintainer`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Container, Iterable, Sequence
from typing import Union

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.arguments import as_python
from paimon_py.codec.columns import Int32s, Ints, Mask, from_numpy
from paimon_py.commit.changes import Bucket, BucketChanges, Changes
from paimon_py.compaction.live_files import LiveFiles
from paimon_py.errors import CommitConflictError, OptionError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.visibility import waits_for_writers
from paimon_py.write.align import Alignment
from paimon_py.write.bucket_assigner import (
    AssignerSettings,
    KnownHashes,
    PartitionBuckets,
    assigners_of,
    start_of,
    with_limits,
)
from paimon_py.write.bucket_indexes import BucketIndexes
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
            raise UsageError(f"writer {number} of {writers} does not exist; they are counted from 0")
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

    def assigner(self, partition: bytes) -> int:
        """The number of this writer among the assigners of a partition, each of which fills buckets of its own."""
        start = start_of(partition, self.writers)
        return (start + (self.number - start) % self.writers) % self.assigners


def writer_numbers(schema: TableSchema, data: object, writers: int, *, fills_nulls: bool = True) -> pa.Array:
    """The writer of each row of any Arrow C stream. `fills_nulls`: as for `Alignment`

    Raises: UsageError if buckets are not dynamic, or the data do not fit.
    """
    share = Share.of(schema, 0, writers)

    def note(partition: bytes, hashes: Int32s) -> Ints:
        return assigners_of(partition, hashes, channels=writers, assigners=share.assigners).astype(np.int64)

    router = Router(schema, assign=note)
    reader = open_stream(data, schema.fields)
    alignment = Alignment(schema, reader.schema, fills_nulls=fills_nulls)
    found = [router.bucket_numbers(alignment.apply(piece).batch) for batch in reader for piece in pieces(batch)]
    return from_numpy(np.concatenate(found or [np.empty(0, np.int64)]).astype(np.int32), pa.int32())


class _IndexedBuckets(Routing):
    """A routing that maintains the hash indexes of its buckets."""

    def __init__(self, table: OpenTable, live: LiveFiles) -> None:
        self._table = table
        self._indexes = BucketIndexes(table, live)
        self.route = Router(table.schema, assign=self.assign).route

    @abstractmethod
    def assign(self, partition: bytes, hashes: Int32s) -> Ints:
        """The bucket of each key of a partition, by hash."""

    @abstractmethod
    def _reload(self, partitions: Container[bytes]) -> None:
        """Read the indexes of partitions again before their next row."""

    def with_index(self, changes: Sequence[BucketChanges]) -> list[BucketChanges]:
        """See `BucketIndexes.with_index`."""
        return self._indexes.with_index(changes)

    def hand_over(self, changes: Changes) -> None:
        """Everything written so far now belongs to the receiver."""
        del changes
        self.handed = self._indexes.hand_over()

    def abort(self) -> None:
        """Delete the index files that were not handed over, as far as the store allows."""
        self._indexes.abort()

    def forget(self, changes: Iterable[BucketChanges]) -> None:
        """Changes that were handed over will not be committed: the indexes of their partitions are read again."""
        gone = {one.partition for one in changes}
        if gone:
            self._indexes.forget(gone)
            self._reload(gone)


class DynamicBuckets(_IndexedBuckets):
    """Assigns the rows of one writer to dynamic buckets. Partitions are loaded at their first row."""

    def __init__(
        self,
        table: OpenTable,
        live: LiveFiles,
        share: Share | None = None,
        *,
        writes: bool = True,
    ) -> None:
        """`live`: the files that the writer builds on; `writes`: rows are written by the writer that assigns them.

        Raises: OptionError for limits that allow no bucket.
        """
        super().__init__(table, live)
        self._settings = with_limits(AssignerSettings(), table.options)
        self._share = share
        self._is_exclusive = writes and waits_for_writers(table.schema)
        self._partitions: dict[bytes, PartitionBuckets] = {}

    def assign(self, partition: bytes, hashes: Int32s) -> Ints:
        """The bucket of each key of a partition, by hash.

        Raises:
            UsageError: keys that belong to another writer, buckets that others write too, or too many buckets.
            CorruptionError, StorageError: the index cannot be read.
        """
        self._check_share(partition, hashes)
        buckets = self._partitions.get(partition)
        if buckets is None:
            buckets = self._partitions[partition] = self._load(partition)
        numbers, fresh = buckets.assign(hashes)
        for bucket, own in fresh.items():
            self._indexes.add(partition, bucket, own)
        return numbers

    # -- inside -----------------------------------------------------------------------------------------------------

    def _reload(self, partitions: Container[bytes]) -> None:
        self._partitions = {one: known for one, known in self._partitions.items() if one not in partitions}

    def _load(self, partition: bytes) -> PartitionBuckets:
        known = self._indexes.load(partition)
        share = self._share
        if share is None:
            return PartitionBuckets(self._settings, known)
        if self._is_exclusive:
            self._check_buckets(share, partition, known)
        settings = msgspec.structs.replace(self._settings, count=share.assigners, number=share.assigner(partition))
        return PartitionBuckets(settings, known, lambda hashes: share.owns(partition, hashes))

    def _check_share(self, partition: bytes, hashes: Int32s) -> None:
        if self._share is None or bool(self._share.owns(partition, hashes).all()):
            return
        raise UsageError(
            f"rows belong to another of the {self._share.writers} writers than number {self._share.number}: send each "
            "row to the writer that Table.writer_numbers names"
        )

    def _check_buckets(self, share: Share, partition: bytes, known: Iterable[tuple[int, Int32s]]) -> None:
        """Check that each bucket is written by one writer, in a table whose readers wait for the compaction of it."""
        for bucket, hashes in known:
            mine = share.owns(partition, hashes)
            fills = bucket % share.assigners == share.assigner(partition)
            if bool(mine.any() if not fills else not mine.all()):
                raise UsageError(
                    f"several of the {share.writers} writers would write bucket {bucket} of "
                    f"{self._table.label(partition)}, and could not compact it together: readers of this table see "
                    "rows, or their changes, after a compaction. Use as many writers as before, or one without share="
                )


class BucketCursor:
    """The bucket of the rows that a writer is given next, if their buckets are known."""

    def __init__(self) -> None:
        self.bucket = 0

    def find(self, partition: bytes, hashes: Int32s) -> Ints:
        """The bucket of each key of a partition."""
        del partition
        return np.full(len(hashes), self.bucket, np.int64)

    def buckets_of(self, partition: bytes) -> Sequence[int]:
        """No buckets: that of each key is known."""
        del partition
        return ()


class PlacedRows(Routing):
    """Takes rows whose buckets are known, in tables whose keys move between partitions.

    The keys of such rows stay where they are, so that no index is needed. That they were there is for the commit to
    check, by the files that were read.
    """

    def __init__(self, table: OpenTable, cursor: BucketCursor) -> None:
        self.route = Router(table.schema, assign=cursor.find).route


class AssignedKeys:
    """The buckets of keys, which were assigned elsewhere.

    Attributes:
        places: buckets that may have more keys, which are known from their indexes.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, KnownHashes] = {}
        self.places: frozenset[Bucket] = frozenset()

    def learn(self, partition: bytes, hashes: Int32s, buckets: Ints) -> None:
        """Remember the buckets of keys of a partition."""
        known = self._known.setdefault(partition, KnownHashes())
        distinct, first = np.unique(hashes, return_index=True)
        fresh = known.find(distinct) < 0
        if fresh.any():
            known.add(distinct[fresh], buckets[first[fresh]].astype(np.int16))

    def find(self, partition: bytes, hashes: Int32s) -> Ints:
        """The bucket of each key of a partition; -1 if none was learned."""
        known = self._known.get(partition)
        return np.full(len(hashes), -1, np.int64) if known is None else known.find(hashes).astype(np.int64)

    def buckets_of(self, partition: bytes) -> Sequence[int]:
        """The buckets among `places` of a partition."""
        return sorted(bucket for own, bucket in self.places if own == partition)


GivenBuckets = Union[BucketCursor, AssignedKeys]
"""Knows the buckets of the rows of a writer, if they were assigned elsewhere."""


class AssignedBuckets(_IndexedBuckets):
    """Takes rows whose buckets were assigned elsewhere; maintains the indexes of these buckets.

    Source: Java `DynamicBucketSink`, whose writers maintain the index of the buckets that an assigner chose.
    """

    def __init__(self, table: OpenTable, live: LiveFiles, assigned: GivenBuckets) -> None:
        super().__init__(table, live)
        self._assigned = assigned
        self._known: dict[Bucket, KnownHashes] = {}

    def assign(self, partition: bytes, hashes: Int32s) -> Ints:
        """The assigned bucket of each key of a partition.

        Raises:
            CommitConflictError: no bucket was assigned to a key, since others replaced rows in the meantime.
            CorruptionError, StorageError: the index cannot be read.
        """
        buckets = self._assigned.find(partition, hashes)
        missing = np.flatnonzero(buckets < 0)
        for bucket in self._assigned.buckets_of(partition) if len(missing) else ():
            hit = self._hashes(partition, bucket).find(hashes[missing]) >= 0
            buckets[missing[hit]] = bucket
            missing = missing[~hit]
        if len(missing):
            raise CommitConflictError(
                f"others replaced rows of {self._table.label(partition)} in the meantime: keys that were read are in "
                "the index of no bucket that this process writes; read and write again",
                table=self._table.root.path,
            )
        for bucket in np.unique(buckets).tolist():
            self._note(partition, bucket, np.unique(hashes[buckets == bucket]))
        return buckets

    def _reload(self, partitions: Container[bytes]) -> None:
        self._known = {key: known for key, known in self._known.items() if key[0] not in partitions}

    def _note(self, partition: bytes, bucket: int, distinct: Int32s) -> None:
        known = self._hashes(partition, bucket)
        fresh = distinct[known.find(distinct) < 0]
        if len(fresh):
            known.add(fresh, np.zeros(len(fresh), np.int16))
            self._indexes.add(partition, bucket, fresh)

    def _hashes(self, partition: bytes, bucket: int) -> KnownHashes:
        """The hashes of a bucket, with those that were added."""
        known = self._known.get((partition, bucket))
        if known is None:
            known = self._known[(partition, bucket)] = KnownHashes()
            for _, hashes in self._indexes.load(partition, bucket):
                known.add(hashes, np.zeros(len(hashes), np.int16))
        return known
