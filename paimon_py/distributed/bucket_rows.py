"""The last steps of merges in which one process writes all rows of a key: changed rows, and then new ones.

`spread_merge.py` has the first two steps. In tables with fixed buckets, and with dynamic ones whose readers do not wait
for the compaction of writers, one step follows:

    step 3, `BucketsPart`   process n writes the rows of its buckets or, with dynamic buckets, those of share n

If readers wait, one process must write a dynamic bucket, whose rows may belong to several shares:

    step 3, `AssignRowsPart`        process n finds the buckets of the rows of share n, and sends the rows there
    step 4, `AssignedBucketsPart`   process n writes the rows of its buckets

As in `assigned_write.py`, `assigned_rows` notices if an engine repeated a process of step 3 when others had taken its
rows already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain

import pyarrow as pa

from paimon_py.distributed.assigned_write import AssignedResult, AssignerRun, ShareAssigner, by_bucket, together
from paimon_py.distributed.merge import MergePart
from paimon_py.distributed.routing import BucketRouting
from paimon_py.distributed.sent import CHANGED, DONE, FAILED, NEW, RUN, HeldMessages, Sent
from paimon_py.errors import PaimonError, ResourceError, StorageError
from paimon_py.executors.error_data import error_bytes, error_from
from paimon_py.metadata.open_table import OpenTable
from paimon_py.rows import verbs
from paimon_py.rows.evaluation import RowCounts
from paimon_py.rows.row_tasks import RowTaskResult
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.write.dynamic import BucketCursor, Share
from paimon_py.write.session import Writer

Message = tuple[int, bytes, bytes]
"""The number of the process to which it was sent, the kind, and the bytes."""


class _WritingPart:
    """Writes rows in another process.

    Args:
        part: the merge.
        processes: the number of processes in each step.
    """

    def __init__(self, part: MergePart, processes: int) -> None:
        self.processes = processes
        self._table = part.table


class BucketsPart(_WritingPart):
    """Runs step 3 in another process: writes changed rows, and then new ones. Can be pickled."""

    def __call__(self, sent: Iterable[Message]) -> Iterator[bytes]:
        """Write rows; returns the results of all steps.

        Args:
            sent: everything that was sent to this process.
        Raises: the first error of an earlier step that was sent here.
        """
        table = self._table._open_table
        received = _take_number(sent)
        if received is None:
            return
        own, messages = received
        is_shared = bucket_mode(table.schema) is BucketMode.DYNAMIC
        share = Share.of(table.schema, own, self.processes) if is_shared else None
        for result, _ in _write_rows(table, share, messages, lambda batch: (batch,)):
            yield result


class AssignRowsPart:
    """Runs step 3 in another process, where a fourth step writes. Can be pickled.

    Args:
        part: the merge.
        processes: the number of processes in each step.
    """

    def __init__(self, part: MergePart, processes: int) -> None:
        self.processes = processes
        self._table = part.table
        self._routing = BucketRouting(part.table.schema, processes)

    def __call__(self, sent: Iterable[Message]) -> Iterator[Sent]:
        """Assign changed and new rows to buckets; sends them, and the results of earlier steps.

        Args:
            sent: everything that was sent to this process.
        Raises: StorageError, ResourceError, which another attempt may avoid; other errors are sent.
        """
        received = _take_number(sent)
        if received is None:
            return
        own, messages = received
        passed: list[Sent] = []
        assigner: ShareAssigner | None = None
        try:
            rows = _kinds_of_rows(messages, passed)
            for (kind, _), batch in together(rows, self.processes):
                if assigner is None:
                    assigner = ShareAssigner(self._table, self._routing, own, replaces=False)
                yield from assigner.send(batch, kind, fills_nulls=kind == NEW)
            yield from passed
            yield from () if assigner is None else assigner.end()
        except (StorageError, ResourceError):
            raise
        except PaimonError as error:
            yield Sent(own, FAILED, error_bytes(error))


class AssignedBucketsPart(_WritingPart):
    """Runs step 4 in another process: writes changed rows, and then new ones, into assigned buckets. Can be pickled."""

    def __call__(self, sent: Iterable[Message]) -> Iterator[bytes]:
        """Write rows; returns the results of all steps, for `assigned_rows`.

        Args:
            sent: everything that was sent to this process.
        Raises: the first error of an earlier step that was sent here.
        """
        cursor = BucketCursor()

        def rows_by_bucket(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            for cursor.bucket, rows in by_bucket(batch):
                yield rows

        for result, runs in _write_rows(self._table._open_table, cursor, sent, rows_by_bucket):
            yield bytes(AssignedResult(result=result, runs=runs))


def _take_number(sent: Iterable[Message]) -> tuple[int, Iterator[Message]] | None:
    """The number of this process, and everything that was sent to it; None if nothing was."""
    messages = iter(sent)
    first = next(messages, None)
    return None if first is None else (first[0], chain([first], messages))


def _write_rows(
    table: OpenTable,
    share: Share | BucketCursor | None,
    sent: Iterable[Message],
    parts: Callable[[pa.RecordBatch], Iterable[pa.RecordBatch]],
) -> Iterator[tuple[bytes, tuple[AssignerRun, ...]]]:
    """Write the changed rows that were sent, and then the new ones.

    Args:
        parts: the parts of a batch, each of which the writer writes to its buckets of that moment.
    Returns: the results of this step and of earlier ones, each with the runs that assigned rows to buckets.
    """
    held = HeldMessages(table.root.env.spill, verbs.source_limit(table.schema))
    with closing(held), Writer(table, share=share) as writer:
        received = _Received(held)
        for batch in received.changed_rows(sent):
            for rows in parts(batch):
                writer.write_again(rows)
        for batch in received.new_rows():
            for rows in parts(batch):
                writer.write_arrow(rows)
        runs = tuple(received.runs)
        result = bytes(RowTaskResult(changes=writer.changes(), counts=RowCounts()))
        for one in (result, *received.done):
            yield one, runs


class _Received:
    """The messages to a process of the last step. `held`: keeps new rows, since changed ones come first.

    Attributes:
        done: the results of earlier steps.
        runs: the runs that assigned rows to buckets.
    """

    def __init__(self, held: HeldMessages) -> None:
        self.done: list[bytes] = []
        self.runs: list[AssignerRun] = []
        self._held = held

    def changed_rows(self, sent: Iterable[Message]) -> Iterator[pa.RecordBatch]:
        """The changed rows; takes everything else. Raises: the first error of an earlier step, at the end."""
        errors: list[bytes] = []
        lists = {DONE: self.done, FAILED: errors}
        for number, kind, data in sent:
            if kind == NEW:
                self._held.add([Sent(number, kind, data)])
            elif kind == CHANGED:
                yield from pa.ipc.open_stream(data)
            elif kind == RUN:
                self.runs.append(AssignerRun.from_message(data))
            else:
                lists[kind].append(data)
        if errors:
            raise error_from(errors[0])

    def new_rows(self) -> Iterator[pa.RecordBatch]:
        """The new rows, after `changed_rows` has taken everything."""
        for one in self._held:
            yield from pa.ipc.open_stream(one.data)


def _kinds_of_rows(
    sent: Iterable[Message], passed: list[Sent]
) -> Iterator[tuple[tuple[bytes, pa.Schema], pa.RecordBatch]]:
    """The rows with their kinds and schemas; `passed` receives everything else."""
    for number, kind, data in sent:
        if kind not in (CHANGED, NEW):
            passed.append(Sent(number, kind, data))
            continue
        for batch in pa.ipc.open_stream(data):
            yield (kind, batch.schema), batch
