"""Routes rows of a cross-partition table: an index of all keys determines the location of each row.

Source: format.md §7.3; Java `GlobalIndexAssigner`, `IndexBootstrap`; docs/decisions/0016.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.codec.python_values import value_text
from paimon_py.commit.changes import Bucket, BucketChanges, Changes, KeyBase
from paimon_py.commit.key_follower import KeyFollower
from paimon_py.errors import CorruptionError, SnapshotExpiredError, UsageError
from paimon_py.lsm.key_places import KeyPlaces
from paimon_py.lsm.key_runs import Run, group_keys, keys_of
from paimon_py.metadata.history import SnapshotLog
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.schema import DELETE
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.types import DataType
from paimon_py.write.bucket_assigner import AssignerSettings, with_limits
from paimon_py.write.cross_partition_moves import (
    BY_ENGINE,
    Batch,
    CrossPartitionMoves,
    KeyCounts,
    bucket_of,
    packed_places,
    part_of,
)
from paimon_py.write.route import Routed, partition_codes, route_rows
from paimon_py.write.routing import Routing

_INDEX_SHARE = 16
_MERGE_COPIES = 4
_SPREAD, _HALF = np.uint64(0x9E37_79B9_7F4A_7C15), np.uint64(32)
"""Multiplied with a key, the upper half of the result is spread evenly."""


class LiveKeys(NamedTuple):
    """The live keys of one bucket; `columns`: those of the primary key."""

    partition: bytes
    bucket: int
    columns: Sequence[pa.Array]


ReadKeys = Callable[[Snapshot], Iterator[LiveKeys]]
"""Reads all keys of a snapshot, each once."""


class KeyShare(NamedTuple):
    """The share of one writer of keys that several writers write: those that `key_shares` assigns to it.

    Attributes:
        number, writers: its number, counted from 0, and that of all writers.
        name: a name that the writers of all shares have in common.
        base: the snapshot whose keys were read, or Base(0).
        keys: returns the keys of this share, each once.
        counts: the number of keys in buckets, also of other shares.
    """

    number: int
    writers: int
    name: str
    base: Base
    keys: Callable[[], Iterator[LiveKeys]]
    counts: Mapping[Bucket, int]


def key_shares(columns: Sequence[pa.Array], types: Sequence[DataType], writers: int) -> Ints:
    """The number of the writer of each key; 0 for keys that contain NULL, which no writer accepts."""
    known = np.logical_and.reduce([validity_mask(column) for column in columns])
    shares = np.zeros(len(known), np.int64)
    mask = from_numpy(known, pa.bool_())
    words = keys_of([column.filter(mask) for column in columns], types).words.astype(np.uint64)
    shares[known] = ((words * _SPREAD) >> _HALF) % np.uint64(writers)
    return shares


class CrossPartitionRouting(Routing):
    """Routes the rows of one writer.

    The keys of the table, or of the writer's share, are read before the first row is routed.

    Attributes:
        memory_bytes: the maximum memory of the index, with the copies of a merge; the rest is on local disk.
    """

    def __init__(
        self, table: OpenTable, snapshot: Snapshot | None, read_keys: ReadKeys | None, share: KeyShare | None = None
    ) -> None:
        """`snapshot`: the snapshot that the writer builds on, or None; `read_keys` can be None in that case, and if
        the writer has a share.

        Raises: OptionError for limits that allow no bucket.
        """
        options = table.options
        self._table = table
        self._schema = table.schema
        self._snapshot = snapshot
        self._read_keys = read_keys
        self._root = table.root
        self._key_fields = tuple(table.schema.field(name) for name in table.schema.primary_keys)
        self._decide = BY_ENGINE[options.get_enum("merge-engine")]
        room = min(options.get_memory("lookup.cache-max-memory-size"), options.get_memory("write-buffer-size"))
        self._index = KeyPlaces(table.root.env.spill, room // _INDEX_SHARE)
        self.memory_bytes = _MERGE_COPIES * (room // _INDEX_SHARE)
        self._target_rows = with_limits(AssignerSettings(), options).target_rows
        self._share = share
        self._counts = KeyCounts(self._target_rows, *(() if share is None else share[:2]))
        self._numbers: dict[bytes, int] = {}
        self._partitions: list[bytes] = []
        self._values: list[pa.Array] = []
        self._writer = table.root.env.ids.uuid() if share is None else share.name
        self._follower = KeyFollower(_base(self._writer, Base.of(snapshot) if share is None else share.base))
        self._snapshot_log = SnapshotLog(table.root)
        self._is_loaded = share is None and snapshot is None
        self._end: str | None = None

    @property
    def keys(self) -> KeyBase:
        """The base of the keys for the changes that are handed over next."""
        return self._follower.base

    def route(self, batch: pa.RecordBatch, kinds: pa.Array | None = None) -> list[Routed]:
        """The rows of each target partition and bucket, and the deletes for the places where their keys were.

        Raises:
            UsageError: the writer's changes were discarded.
            CorruptionError: a key is in two locations.
            StorageError: the keys cannot be read, or the local disk failed.
        """
        if batch.num_rows == 0:
            return []
        if self._end is not None:
            raise UsageError(f"{self._end}: the locations of keys are no longer known; open a new writer")
        if not self._is_loaded:
            self._load()
        codes, partitions = partition_codes(batch, self._schema.partition_fields)
        numbers = np.array([self._number(partition) for partition in partitions], np.int64)
        parts = np.full(batch.num_rows, numbers[0]) if codes is None else numbers[codes]
        fields = self._key_fields
        keys = keys_of([batch.column(field.name) for field in fields], [field.type for field in fields])
        order, starts = group_keys(keys)
        distinct = keys.take(order[starts])
        moves = self._decide(Batch(order, starts, parts, self._index.find(distinct)), self._counts)
        self._index.put(Run(distinct.take(moves.keys), moves.new_places))
        return self._route_moves(batch, kinds, parts, moves)

    def with_index(self, changes: Sequence[BucketChanges]) -> list[BucketChanges]:
        """The changes unchanged; only files record where keys are. Checks what was committed.

        Raises: StorageError
        """
        if self.keys.files:
            self._follower.advance(self._snapshot_log, self._root.snapshots.latest())
        return list(changes)

    def hand_over(self, changes: Changes) -> None:
        """Everything written so far now belongs to the receiver."""
        self._follower.expect(changes)

    def forget(self, changes: Iterable[BucketChanges]) -> None:
        """Changes that were handed over will not be committed, although the index already includes them."""
        if any(one.written.added for one in changes):
            self._give_up("changes of this writer were discarded")

    def close(self) -> None:
        """No more rows will be written."""
        self._give_up("this writer has been closed")

    def abort(self) -> None:
        """Delete the files on local disk."""
        self._give_up("this writer has failed")

    # -- inside -----------------------------------------------------------------------------------------------------

    def _give_up(self, end: str) -> None:
        self._end = self._end or end
        self._index.clear()

    def _number(self, partition: bytes) -> int:
        number = self._numbers.setdefault(partition, len(self._partitions))
        if number == len(self._partitions):
            self._partitions.append(partition)
        return number

    def _load(self) -> None:
        """Read all keys. If the snapshot has expired, use the latest one: no row depends on the snapshot yet."""
        if self._share is not None:
            self._read(self._share.keys())
            for (partition, bucket), count in self._share.counts.items():
                self._counts.add(packed_places(np.array([self._number(partition)]), np.array([bucket])), count)
        while not self._is_loaded:
            try:
                self._read_all(self._snapshot)
            except SnapshotExpiredError:
                latest = self._root.snapshots.latest()
                if latest == self._snapshot:
                    raise
                self._snapshot = latest
                self._index.clear()
                self._counts = KeyCounts(self._target_rows)
                self._follower = KeyFollower(_base(self._writer, Base.of(latest)))

    def _read_all(self, snapshot: Snapshot | None) -> None:
        assert self._read_keys is not None
        self._read(iter(()) if snapshot is None else self._read_keys(snapshot))

    def _read(self, found_keys: Iterator[LiveKeys]) -> None:
        types = [field.type for field in self._key_fields]
        for live in found_keys:
            place = packed_places(np.array([self._number(live.partition)]), np.array([live.bucket]))
            keys = keys_of(live.columns, types)
            order, starts = group_keys(keys)
            distinct = keys.take(order)
            found = self._index.find(distinct)
            if not starts.all() or bool((found >= 0).any()):
                raise self._twice(live, found, order)
            places = np.repeat(place, len(order))
            if self._share is None:
                self._counts.add(places, 1)
            self._index.put(Run(distinct, places))
        self._is_loaded = True

    def _twice(self, live: LiveKeys, found: Ints, order: Ints) -> CorruptionError:
        at = int(np.argmax(found >= 0))
        key = ", ".join(
            f"{field.name}={value_text(column, int(order[at]))}"
            for field, column in zip(self._key_fields, live.columns, strict=True)
        )
        other = live.partition if found[at] < 0 else self._partitions[int(part_of(found[at : at + 1])[0])]
        files = OpenTable(self._root, self._schema)
        places = " and ".join(sorted({files.label(each) for each in (live.partition, other)}))
        return CorruptionError(
            f"the table has the key {key} more than once, in {places}; delete all but one of these rows",
            path=self._root.path,
        )

    def _route_moves(
        self, batch: pa.RecordBatch, kinds: pa.Array | None, parts: Ints, moves: CrossPartitionMoves
    ) -> list[Routed]:
        if not len(moves.rows):
            return []
        moved = part_of(moves.places)
        if moves.deletes is not None or len(moves.rows) < batch.num_rows:
            picked = from_numpy(moves.rows, pa.int64())
            batch = batch.take(picked)
            kinds = None if kinds is None else kinds.take(picked)
            parts = parts[moves.rows]
        if moves.deletes is not None:
            kinds = _with_deletes(kinds, moves.deletes)
        if bool((moved != parts).any()):
            batch = self._with_partitions(batch, moved)
        buckets = bucket_of(moves.places)
        width = int(buckets.max()) + 1
        return route_rows(batch, kinds, moved * width + buckets, width, self._partitions)

    def _with_partitions(self, batch: pa.RecordBatch, parts: Ints) -> pa.RecordBatch:
        """Rows with the values of the given partitions."""
        fields = self._schema.partition_fields
        if not self._values or len(self._values[0]) < len(self._partitions):
            self._values = decode(self._partitions, [field.type for field in fields])
        picked = from_numpy(parts, pa.int64())
        for field, values in zip(fields, self._values, strict=True):
            at = batch.schema.get_field_index(field.name)
            batch = batch.set_column(at, batch.schema.field(at), values.take(picked))
        return batch


def _base(writer: str, known: Base) -> KeyBase:
    return KeyBase(writer=writer, base=known)


def _with_deletes(kinds: pa.Array | None, deletes: Mask) -> pa.Array:
    numbers = np.zeros(len(deletes), np.int8) if kinds is None else numpy_values(kinds).copy()
    numbers[deletes] = DELETE
    return from_numpy(numbers, pa.int8())
