"""Writes and merges into dynamic buckets in two steps, so that each bucket is written by one process.

Several processes can assign keys to buckets if each has the keys of one share. But if the number of shares changes
between two writes, several shares have keys in the same bucket. Where readers wait for the compaction of a bucket
(`visibility.waits_for_writers`), one process must write it:

    step 1, `AssignPart`     process n has the rows of share n: finds their buckets, and sends each row to the process
                             of its partition and bucket
    step 2, `AssignedPart`   process n writes the rows of its buckets, and maintains the indexes of these buckets; or,
            `AssignedMergePart`   merges them with the rows of its buckets

New keys get buckets in the order in which they arrive. If an engine repeats a process of step 1 after another process
has taken its rows, the repetition may assign other buckets. So each run has a name, which it sends to every process of
step 2, also to those without rows: one run may have rows for a process where the other has none. `assigned_changes`
notices if processes took the rows of different runs.

Source: Java `PaimonSparkWriter`, `HashBucketAssigner`, `DynamicBucketSink`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, ClassVar, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Int32s, Ints, from_numpy, numpy_values
from paimon_py.codec.row_size import row_bytes
from paimon_py.commit.changes import Changes
from paimon_py.compaction.live_files import LiveFiles
from paimon_py.distributed.merge import MergePart
from paimon_py.distributed.routing import BucketRouting
from paimon_py.distributed.sent import ROWS, RUN, Sent, send_rows
from paimon_py.distributed.staging import writing
from paimon_py.spec.serializable import Serializable
from paimon_py.spec.snapshot import Base
from paimon_py.table.table import Table
from paimon_py.write.dynamic import AssignedKeys, BucketCursor, DynamicBuckets, Share

if TYPE_CHECKING:
    from paimon_py.distributed.write import Overwrite
    from paimon_py.write.session import Writer

_BUCKET = pa.field("_BUCKET", pa.int16(), nullable=False)
_HELD_MIN, _HELD_MAX = 4 << 20, 64 << 20
"""Limits of the bytes that are held before they are sent; between them, enough for a piece for each process."""
_PIECE_BYTES = 256 << 10

Group = TypeVar("Group")


class AssignerRun(msgspec.Struct, frozen=True, array_like=True):
    """One run of a process of step 1. `share`: the number of its share; `base`: the snapshot whose indexes it used."""

    share: int
    name: str
    base: Base

    @classmethod
    def from_message(cls, data: bytes) -> AssignerRun:
        """The run that a message of the kind `RUN` names."""
        return msgspec.msgpack.decode(data, type=cls)


class AssignedResult(Serializable, frozen=True, kw_only=True):
    """The result of a process of step 2, None without work, and the runs from which it took rows.

    Attributes:
        result: the bytes of `Changes`, or the result of a merge.
    """

    kind: ClassVar[str] = "assigned"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a process that takes assigned rows"
    again: ClassVar[str] = "write the rows"

    result: bytes | None
    runs: tuple[AssignerRun, ...]


class AssignPart:
    """Runs step 1 in another process: takes rows, and sends them to the processes of their buckets. Can be pickled.

    Attributes:
        target: the columns of the rows.
        processes: the number of processes in each step.
    """

    def __init__(self, table: Table, target: pa.Schema, overwrite: Overwrite, processes: int) -> None:
        self.target = target
        self.processes = processes
        self._table = table
        self._replaces = overwrite is not None
        self._routing = BucketRouting(table.schema, processes)

    def __call__(self, rows: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[Sent]:
        """Assign rows to buckets.

        Args:
            rows: batches, each with the number that `RowRouting` assigned to its rows.
        """
        runs: dict[int, ShareAssigner] = {}
        for share, batch in together(rows, self.processes):
            if share not in runs:
                runs[share] = ShareAssigner(self._table, self._routing, share, replaces=self._replaces)
            yield from runs[share].send(batch)
        for run in runs.values():
            yield from run.end()


class ShareAssigner:
    """One run of a process that assigns the rows of one share to buckets."""

    def __init__(self, table: Table, routing: BucketRouting, share: int, *, replaces: bool) -> None:
        root = table._root
        snapshot = root.latest()
        self._said = AssignerRun(share, root.env.ids.uuid(), Base.of(snapshot))
        self._routing = routing
        live = LiveFiles(root, None if replaces else snapshot)
        own = Share.of(table.schema, share, routing.processes)
        self._assign = DynamicBuckets(table._open_table, live, own, writes=False).assign

    def send(self, rows: pa.RecordBatch, kind: bytes = ROWS, *, fills_nulls: bool = True) -> Iterator[Sent]:
        """The rows for each process, those of a bucket in their order. `fills_nulls`: as for `BucketRouting`"""
        processes, buckets = self._routing.assign_rows(rows, self._assign, fills_nulls=fills_nulls)
        order = np.lexsort((buckets, processes))
        placed = rows.append_column(_BUCKET, from_numpy(buckets.astype(np.int16), _BUCKET.type))
        placed = placed.take(from_numpy(order, pa.int64()))
        numbers, starts = np.unique(processes[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        for number, start, end in zip(numbers.tolist(), starts.tolist(), ends, strict=True):
            yield from send_rows(number, kind, placed.slice(start, end - start))

    def end(self) -> Iterator[Sent]:
        """The name of the run, for each process."""
        said = msgspec.msgpack.encode(self._said)
        yield from (Sent(number, RUN, said) for number in range(self._routing.processes))


class AssignedPart:
    """Runs step 2 in another process: takes what `AssignPart` sent to it, writes the rows. Can be pickled."""

    def __init__(self, table: Table, overwrite: Overwrite, processes: int) -> None:
        self.processes = processes
        self._table = table
        self._overwrite = overwrite

    def __call__(self, sent: Iterable[tuple[bytes, bytes]]) -> Iterator[bytes]:
        """Write rows; returns what `assigned_changes` takes.

        Args:
            sent: everything that was sent to this process: the kind, and the bytes.
        """
        runs: list[AssignerRun] = []
        cursor = BucketCursor()
        with ExitStack() as used:
            writer: Writer | None = None
            for cursor.bucket, rows in _take(sent, runs):
                if writer is None:
                    writer = used.enter_context(writing(self._table, self._overwrite, share=cursor))
                writer.write_arrow(rows)
            if runs or writer is not None:
                result = None if writer is None else bytes(writer.changes())
                yield bytes(AssignedResult(result=result, runs=tuple(runs)))


class AssignedMergePart:
    """Runs step 2 of a merge in another process: takes what `AssignPart` sent to it, and the splits of its buckets. Can
    be pickled.

    Args:
        part: the merge.
        target: the columns of the source, with the names in the table of those that find rows.
        processes: the number of processes in each step.
    """

    def __init__(self, part: MergePart, target: pa.Schema, processes: int) -> None:
        self.part = part
        self.first = AssignPart(part.table, target, None, processes)
        self._routing = BucketRouting(part.table.schema, processes)

    def __call__(self, sent: Iterable[tuple[bytes, bytes]], work: list[tuple[int, bytes]]) -> Iterator[bytes]:
        """Merge the rows of some buckets; returns what `assigned_rows` takes.

        Args:
            sent: everything that was sent to this process: the kind, and the bytes.
            work: the splits by their positions; complete once everything has been taken.
        """
        runs: list[AssignerRun] = []
        keys = AssignedKeys()
        result = next(self.part(self._rows(sent, runs, keys), work, keys), None)
        if runs or result is not None:
            yield bytes(AssignedResult(result=result, runs=tuple(runs)))

    def _rows(
        self, sent: Iterable[tuple[bytes, bytes]], runs: list[AssignerRun], keys: AssignedKeys
    ) -> Iterator[pa.RecordBatch]:
        for bucket, rows in _take(sent, runs):
            self._learn(bucket, rows, keys)
            yield pa.RecordBatch.from_arrays(rows.columns, schema=self.part.target)

    def _learn(self, bucket: int, rows: pa.RecordBatch, keys: AssignedKeys) -> None:
        def note(partition: bytes, hashes: Int32s) -> Ints:
            buckets = np.full(len(hashes), bucket, np.int64)
            keys.learn(partition, hashes, buckets)
            return buckets

        self._routing.assign_rows(rows, note)


def assigned_rows(results: Iterable[bytes]) -> tuple[list[bytes], bool]:
    """The results of all processes of step 2 of a merge, and whether they fit together; see `assigned_changes`."""
    found = [AssignedResult.from_bytes(result) for result in results]
    return [one.result for one in found if one.result is not None], _fit([one.runs for one in found])


def assigned_changes(results: Iterable[bytes]) -> tuple[list[Changes], bool]:
    """The changes of all processes of step 2, and whether they fit together.

    If they do not, a process of step 1 was repeated when others had taken its rows already: rows may be missing, or be
    in two buckets. Discard the changes, and write again.
    """
    found = [AssignedResult.from_bytes(result) for result in results]
    changes = [Changes.from_bytes(one.result) for one in found if one.result is not None]
    if changes:  # the commit compares the indexes with those that the keys were assigned by
        bases = dict.fromkeys(run.base for one in found for run in one.runs)
        changes += [msgspec.structs.replace(changes[0], base=base, further_bases=(), buckets=()) for base in bases]
    return changes, _fit([one.runs for one in found])


def _take(sent: Iterable[tuple[bytes, bytes]], runs: list[AssignerRun]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows that step 1 sent, with their buckets; `runs` receives the runs that assigned them."""
    for kind, data in sent:
        if kind == RUN:
            runs.append(AssignerRun.from_message(data))
            continue
        for batch in pa.ipc.open_stream(data):
            yield from by_bucket(batch)


def _fit(taken: Sequence[Sequence[AssignerRun]]) -> bool:
    """Whether all processes took rows from the same runs, one for each share."""
    if len({frozenset(run.name for run in runs) for runs in taken}) > 1:
        return False
    shares = [run.share for run in taken[0]] if taken else []
    return len(shares) == len(set(shares))


def together(rows: Iterable[tuple[Group, pa.RecordBatch]], processes: int) -> Iterator[tuple[Group, pa.RecordBatch]]:
    """The batches of each group in larger ones, enough for a piece for each process."""
    limit_bytes = min(max(_HELD_MIN, processes * _PIECE_BYTES), _HELD_MAX)
    held: dict[Group, list[pa.RecordBatch]] = {}
    size = 0
    for group, batch in rows:
        held.setdefault(group, []).append(batch)
        size += row_bytes(batch)
        if size >= limit_bytes:
            yield from _combine(held)
            held, size = {}, 0
    yield from _combine(held)


def _combine(held: dict[Group, list[pa.RecordBatch]]) -> Iterator[tuple[Group, pa.RecordBatch]]:
    for group, batches in held.items():
        for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
            if batch.num_rows:
                yield group, batch


def by_bucket(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each bucket; they are next to each other."""
    last = batch.num_columns - 1
    buckets = numpy_values(batch.column(last))
    rows = batch.remove_column(last)
    ends = [*np.flatnonzero(buckets[1:] != buckets[:-1]).tolist(), batch.num_rows - 1]
    start = 0
    for end in ends:
        yield int(buckets[start]), rows.slice(start, end + 1 - start)
        start = end + 1
