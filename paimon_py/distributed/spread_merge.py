"""Merges in which each process has some files of the table and all rows of the source.

They are for merges whose source rows may match rows of any file: on columns other than the primary key, and in tables
without fixed buckets. A row of the table is in one process, which knows all source rows: it decides alone whether the
row is changed, and notices if two source rows want to change it. Only inserts need more than one process, since a
source row is new if no process has a row with its key. So they come second:

    step 1, `ChangePart`   process n changes rows of its files; sends on the source rows of share n, and all keys of the
                           source that its files have, each to the share of the key
    step 2, `InsertPart`   process n has the source rows of share n, and the keys of that share that some process has:
                           inserts the others

Where a source row may have the primary key of another row than it matches, one process must write both. There is a
third step then (`bucket_rows.py`), and a fourth one if rows must be assigned to buckets that one process writes:

    step 1, `ChangePart`   sends changed rows to the process of their key in step 3, by way of step 2
    step 2, `NewRowsPart`  sends new rows there too
    step 3, `BucketsPart`  process n writes the rows of its buckets, new ones last

All results are committed together. If a process fails, the process that commits deletes the files of the others.

Source: Java `MergeIntoPaimonTable`, whose join Spark runs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.distributed.merge import MergePart, writes_apart
from paimon_py.distributed.routing import BucketRouting
from paimon_py.distributed.sent import CHANGED, DONE, FAILED, KEYS, NEW, ROWS, HeldMessages, Sent, send_rows
from paimon_py.errors import PaimonError, ResourceError, StorageError
from paimon_py.executors.error_data import error_bytes, error_from
from paimon_py.rows import verbs
from paimon_py.rows.clauses import MergeClauses
from paimon_py.rows.decide import Decision
from paimon_py.rows.evaluation import RowOutput
from paimon_py.rows.keyed import RowSink
from paimon_py.rows.merging import MergeBlock
from paimon_py.rows.row_tasks import RowTaskResult
from paimon_py.scan.split import Split
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.write.dynamic import Share

_WORK = msgspec.msgpack.Decoder(tuple[int, list[bytes]])


class Shares:
    """Assigns keys to the processes of step 2. Can be pickled.

    Rows with equal keys have the same process. If `InsertPart` writes them into dynamic buckets, it is the process
    whose share of the buckets they belong to.
    """

    def __init__(self, part: MergePart, processes: int) -> None:
        self.processes = processes
        schema = self._schema = part.table.schema
        is_shared = bucket_mode(schema) is BucketMode.DYNAMIC and not writes_apart(schema, part.on, part.clauses)
        self._routing = BucketRouting(schema, processes) if is_shared else None

    def __call__(self, keys: pa.RecordBatch) -> Ints:
        if self._routing is not None:
            return self._routing.of_rows(keys).astype(np.int64)
        types = [self._schema.field(name).type for name in keys.schema.names]
        hashes: Ints = hash_rows(keys.columns, types).astype(np.int64)
        return hashes % self.processes

    def of_writer(self, number: int) -> Share | None:
        """The share of a process as its writer takes it; None if any process may write any row."""
        return None if self._routing is None else Share.of(self._schema, number, self.processes)


class ChangePart:
    """Runs step 1 in another process. Can be pickled.

    Args:
        part: the merge.
        processes: the number of processes in each step.
    """

    def __init__(self, part: MergePart, processes: int) -> None:
        self.part = part
        self.shares = Shares(part, processes)
        self._buckets = _bucket_routing(part, processes)

    def work(self, number: int, splits: Sequence[Split]) -> bytes:
        """The work of a process, as bytes to be sent to it."""
        return msgspec.msgpack.encode((number, list(map(bytes, splits))))

    def __call__(self, found: Iterator[pa.RecordBatch], work: list[tuple[int, bytes]]) -> Iterator[Sent]:
        """Change the rows of the table that source rows match, or that none matches.

        Args:
            found: all rows of the source, in any order.
            work: what `work` returned, with any number; complete once all rows have been taken.
        Raises: StorageError, ResourceError, which another attempt may avoid; other errors are sent.
        """
        reader = pa.RecordBatchReader.from_batches(self.part.target, found)
        table = self.part.table._open_table
        own = 0
        held = HeldMessages(table.root.env.spill, verbs.source_limit(table.schema))
        try:
            with verbs.merge_work(table, reader, self.part.on, self.part.clauses) as merging:  # has taken all rows
                own, splits = _WORK.decode(work[0][1])
                noted = _Noted(self.shares, own, held)
                changing = merging._replace(
                    operations=lambda: (_Change(_block(each), noted.take) for each in merging.operations())
                )
                sink = None if self._buckets is None else _Sink(self._buckets, held)
                evaluate = verbs.evaluator(table, changing, sink=sink)
                done = evaluate(self.part.snapshot, list(map(Split.from_bytes, splits)))
            yield Sent(own, DONE, _result_bytes(done))
            yield from held
        except (StorageError, ResourceError):
            raise
        except PaimonError as error:
            yield Sent(own, FAILED, error_bytes(error))
        finally:
            held.close()


class _InsertingPart:
    """Inserts source rows in another process.

    Args:
        part: the merge.
        processes: the number of processes in each step.
    """

    def __init__(self, part: MergePart, processes: int) -> None:
        self.part = part
        self.shares = Shares(part, processes)


class InsertPart(_InsertingPart):
    """Runs step 2 in another process. Can be pickled."""

    def __call__(self, sent: Iterator[tuple[int, bytes, bytes]]) -> Iterator[bytes]:
        """Insert the source rows of a share that no process has; returns the results of step 1, and its own.

        Args:
            sent: everything that was sent to this process: its number, the kind, and the bytes.
        Raises: the first error of step 1 that was sent here, after the results.
        """
        received = _Received()
        error: PaimonError | None = None
        try:
            own = insert_rows(self.part, received, sent, shares=self.shares)
        except (StorageError, ResourceError):
            raise
        except PaimonError as failed:
            own, error = None, failed
        yield from received.done
        if error is not None:
            raise error
        if own is not None:
            yield _result_bytes(own)


class NewRowsPart(_InsertingPart):
    """Runs step 2 in another process, where a third step writes. Can be pickled."""

    def __call__(self, sent: Iterator[tuple[int, bytes, bytes]]) -> Iterator[Sent]:
        """Find the source rows of a share that no process has; sends them, and what else belongs to step 3.

        Args:
            sent: as for `InsertPart`.
        Raises: StorageError, ResourceError, which another attempt may avoid; other errors are sent.
        """
        table = self.part.table._open_table
        held = HeldMessages(table.root.env.spill, verbs.source_limit(table.schema))
        received = _Received(held)
        try:
            buckets = _bucket_routing(self.part, self.shares.processes)
            assert buckets is not None
            own = insert_rows(self.part, received, sent, sink=_Sink(buckets, held))
            done = [*received.done, *([] if own is None else [_result_bytes(own)])]
            yield from (Sent(received.number, DONE, one) for one in done)
            yield from held
        except (StorageError, ResourceError):
            raise
        except PaimonError as error:
            yield Sent(received.number, FAILED, error_bytes(error))
        finally:
            held.close()


def _bucket_routing(part: MergePart, processes: int) -> BucketRouting | None:
    """The processes that write rows in a step of their own; None if there is none."""
    schema = part.table.schema
    return BucketRouting(schema, processes) if writes_apart(schema, part.on, part.clauses) else None


def insert_rows(
    part: MergePart, received: _Received, sent: Iterator[tuple[int, bytes, bytes]], *,
    shares: Shares | None = None, sink: RowSink | None = None,
) -> RowOutput | None:  # fmt: skip
    """Insert the source rows of a share that no process has.

    Args:
        shares: says which buckets this process fills, in tables with dynamic buckets.
        sink: takes the rows, if they are not written here.
    """
    rows = received.rows(sent)
    first = next(rows, None)
    if first is not None:
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
        clauses = MergeClauses(insert=part.clauses.insert)
        table = part.table._open_table
        with verbs.merge_work(table, reader, part.on, clauses) as merging:  # has taken everything sent
            received.require_success()
            inserting = merging._replace(
                operations=lambda: (_inserting(_block(each), received.keys) for each in merging.operations())
            )
            share = None if shares is None else shares.of_writer(received.number)
            return verbs.evaluator(table, inserting, share=share, sink=sink)(part.snapshot, ())
    received.require_success()
    return None


class _Sink:
    """Sends rows to the processes of their buckets: a `RowSink`."""

    def __init__(self, buckets: BucketRouting, held: HeldMessages) -> None:
        self._buckets = buckets
        self._held = held

    def write_arrow(self, data: pa.RecordBatch) -> None:
        """Send new rows."""
        self._send(NEW, data, fills_nulls=True)

    def write_again(self, batch: pa.RecordBatch, known_blobs: Container[str] = ()) -> None:  # noqa: ARG002
        """Send changed rows."""
        self._send(CHANGED, batch, fills_nulls=False)

    def _send(self, kind: bytes, rows: pa.RecordBatch, *, fills_nulls: bool) -> None:
        own = rows.select([name for name in rows.schema.names if name in self._buckets.names])
        homes = self._buckets.of_rows(own, fills_nulls=fills_nulls)
        for number in np.unique(homes).tolist():
            self._held.add(send_rows(number, kind, rows.filter(from_numpy(homes == number, pa.bool_()))))


class _Received:
    """The messages to a process of step 2, besides source rows. `passed`: receives those for step 3."""

    def __init__(self, passed: HeldMessages | None = None) -> None:
        self._passed = passed
        self.number = 0
        self.keys: list[pa.RecordBatch] = []
        self.done: list[bytes] = []
        self._errors: list[bytes] = []

    def rows(self, sent: Iterable[tuple[int, bytes, bytes]]) -> Iterator[pa.RecordBatch]:
        """The source rows; takes everything else."""
        lists = {DONE: self.done, FAILED: self._errors}
        for number, kind, data in sent:
            self.number = number
            if kind == ROWS:
                yield from pa.ipc.open_stream(data)
            elif kind == KEYS:
                self.keys += pa.ipc.open_stream(data)
            elif kind == CHANGED and self._passed is not None:
                self._passed.add([Sent(number, kind, data)])
            else:
                lists[kind].append(data)

    def require_success(self) -> None:
        """Check that no process failed. Raises: the first error that was sent."""
        if self._errors:
            raise error_from(self._errors[0])


class _Noted:
    """The results of the passes of step 1, for step 2."""

    def __init__(self, shares: Shares, own: int, held: HeldMessages) -> None:
        self._held = held
        self._shares = shares
        self._own = own

    def take(self, block: MergeBlock) -> None:
        """Take the source rows of the own share, and the keys that rows of the table have."""
        mine = self._shares(block.keys) == self._own
        self._send(self._own, ROWS, block.rows.filter(from_numpy(mine, pa.bool_())))
        seen = block.seen_keys
        homes = self._shares(seen)
        for number in np.unique(homes).tolist():
            self._send(number, KEYS, seen.filter(from_numpy(homes == number, pa.bool_())))

    def _send(self, process: int, kind: bytes, rows: pa.RecordBatch) -> None:
        self._held.add(send_rows(process, kind, rows))


class _Change:
    """A pass of step 1: an `Operation` that changes the rows of some files, and leaves inserts to step 2."""

    adds_rows = False
    inserts_last = False

    def __init__(self, block: MergeBlock, note: Callable[[MergeBlock], None]) -> None:
        self.names = block.names
        self.is_doubtful = block.is_doubtful
        self.seen = block.seen
        self._block = block
        self._note = note

    def decide(self, batch: pa.RecordBatch) -> Decision:
        return self._block.decide(batch)

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        return self._block.update(batch, decision)

    def check(self) -> None:
        """Never raises: which rows are new is known in step 2."""

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """No rows; the pass is complete."""
        self._note(self._block)
        return iter(())


def _inserting(block: MergeBlock, keys: Sequence[pa.RecordBatch]) -> MergeBlock:
    """A pass of step 2: a block that has seen all keys of the table."""
    for batch in keys:
        block.decide(batch)
    return block


def _block(operation: object) -> MergeBlock:
    assert isinstance(operation, MergeBlock)
    return operation


def _result_bytes(done: RowOutput) -> bytes:
    return bytes(RowTaskResult(changes=done.changes, counts=done.counts))

