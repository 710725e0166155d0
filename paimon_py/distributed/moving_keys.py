"""Writes into tables whose keys move between partitions, by several processes, each with the keys of one share.

A writer must know the partition and bucket of every key that it writes, and of no other key. A share of the keys is
assigned by value (`key_shares`), so that a key has the same writer in whatever partition it was, is, or will be:

    step 1, `KeysPart`       process n reads the keys of some splits, and sends each, with its place, to the process of
                             its share, and the number of keys of a bucket to the process that fills the bucket
    step 2, `KeySharePart`   process n has the keys and the new rows of share n: writes the rows, and the deletes of
                             the rows that they replace in other partitions

Several processes may write to one bucket, but no two of them the same key. Where readers wait for the compaction of
writers, one process writes all rows, since a bucket needs one writer. The commit checks for all processes that the keys
are still where they were read, as for one writer.

Source: Java `GlobalIndexAssigner`, `IndexBootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import from_numpy
from paimon_py.commit.changes import Bucket
from paimon_py.distributed.assigned_write import together
from paimon_py.distributed.merge import pack_groups
from paimon_py.distributed.routing import of_keys
from paimon_py.distributed.sent import COUNT, KEYS, ROWS, HeldMessages, Sent, send_rows
from paimon_py.distributed.staging import writing
from paimon_py.rows import verbs
from paimon_py.rows.live_keys import key_splits, keys_of_split
from paimon_py.scan.split import Split
from paimon_py.spec.snapshot import Base
from paimon_py.table.table import Table
from paimon_py.write.cross_partition import KeyShare, LiveKeys

if TYPE_CHECKING:
    from paimon_py.distributed.write import Overwrite

_WORK = msgspec.msgpack.Decoder(list[bytes])
_COUNTED = msgspec.msgpack.Decoder(tuple[bytes, int, int])
_PARTITION, _BUCKET = b"partition", b"bucket"
"""The place of keys, in the metadata of their schema."""


class KeySteps(NamedTuple):
    """The steps of a write whose keys are shared. `work`: the input of each process of step 1, as bytes."""

    work: tuple[bytes, ...]
    keys: KeysPart
    rows: KeySharePart


def key_steps(table: Table, overwrite: Overwrite, processes: int) -> KeySteps:
    """The steps of a write by several processes; all build on the snapshot that is now the latest."""
    root = table._root
    snapshot = root.latest() if overwrite is None else None
    splits = [] if snapshot is None else list(key_splits(table._open_table, snapshot))
    groups = pack_groups([[split] for split in splits], processes)
    work = tuple(msgspec.msgpack.encode([bytes(split) for split in group]) for group in groups if group)
    rows = KeySharePart(table, overwrite, processes, root.env.ids.uuid(), Base.of(snapshot))
    return KeySteps(work, KeysPart(table, processes), rows)


class KeysPart:
    """Runs step 1 in another process: reads keys, and sends them to the processes of their shares. Can be pickled."""

    def __init__(self, table: Table, processes: int) -> None:
        self.processes = processes
        self._table = table

    def __call__(self, work: bytes) -> Iterator[Sent]:
        """Read the keys of some splits. Args: one of `KeySteps.work`"""
        counts: dict[Bucket, int] = {}
        for (partition, bucket), keys in together(self._keys(work, counts), self.processes):
            homes = of_keys(self._table.schema, keys.columns, self.processes)
            placed = keys.replace_schema_metadata({_PARTITION: partition, _BUCKET: str(bucket)})
            for number in np.unique(homes).tolist():
                yield from send_rows(number, KEYS, placed.filter(from_numpy(homes == number, pa.bool_())))
        for (partition, bucket), count in counts.items():
            yield Sent(bucket % self.processes, COUNT, msgspec.msgpack.encode((partition, bucket, count)))

    def _keys(self, work: bytes, counts: dict[Bucket, int]) -> Iterator[tuple[Bucket, pa.RecordBatch]]:
        names = list(self._table.schema.primary_keys)
        for split in map(Split.from_bytes, _WORK.decode(work)):
            for live in keys_of_split(self._table._open_table, split):
                place, keys = (live.partition, live.bucket), pa.RecordBatch.from_arrays(list(live.columns), names)
                counts[place] = counts.get(place, 0) + keys.num_rows
                yield place, keys


class KeySharePart:
    """Runs step 2 in another process: takes the keys and the rows of a share, writes the rows. Can be pickled."""

    def __init__(self, table: Table, overwrite: Overwrite, processes: int, name: str, base: Base) -> None:
        """`name`: what all processes have in common; `base`: the snapshot whose keys were read."""
        self.processes = processes
        self._table = table
        self._overwrite = overwrite
        self._name = name
        self._base = base

    def __call__(self, given: Iterable[tuple[int, pa.RecordBatch] | Sent]) -> Iterator[bytes]:
        """Write rows; returns the bytes of `Changes`.

        Args:
            given: batches of rows, each with the number that `RowRouting` assigned to them, and everything that step 1
                sent to this process, in any order.
        """
        table = self._table._open_table
        limit = verbs.source_limit(table.schema) // 2
        keys, rows = (HeldMessages(table.root.env.spill, limit) for _ in range(2))
        with closing(keys), closing(rows):
            counts: dict[Bucket, int] = {}
            share: KeyShare | None = None
            for one in given:
                if not isinstance(one, Sent):
                    number, batch = one
                    share = share or self._share(number, keys, counts)
                    rows.add(send_rows(number, ROWS, batch))
                elif one.kind == KEYS:
                    keys.add([one])
                else:
                    partition, bucket, count = _COUNTED.decode(one.data)
                    counts[(partition, bucket)] = counts.get((partition, bucket), 0) + count
            if share is None:
                return
            with writing(self._table, self._overwrite, share=share) as writer:
                for one in rows:
                    for batch in pa.ipc.open_stream(one.data):
                        writer.write_arrow(batch)
                yield bytes(writer.changes())

    def _share(self, number: int, keys: HeldMessages, counts: dict[Bucket, int]) -> KeyShare:
        return KeyShare(number, self.processes, self._name, self._base, lambda: _live_keys(keys), counts)


def _live_keys(held: HeldMessages) -> Iterator[LiveKeys]:
    for one in held:
        for keys in pa.ipc.open_stream(one.data):
            place = keys.schema.metadata
            yield LiveKeys(place[_PARTITION], int(place[_BUCKET]), keys.columns)
