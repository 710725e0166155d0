"""A step of a stream: the rows of one snapshot, and the position after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Union

import pyarrow as pa

from paimon_py.arguments import check_flag
from paimon_py.errors import UsageError
from paimon_py.scan.split import Split
from paimon_py.spec.snapshot import MIN_LONG, Base, Snapshot, StepSnapshotId
from paimon_py.spec.users import SourceHistory, StepNumber
from paimon_py.stream.position import Position
from paimon_py.stream.reading import Reading

_ID_BITS = 20
_ID_MASK = (1 << _ID_BITS) - 1

Acknowledge = Callable[[Base, Union[str, None]], None]


class Step:
    """The changes of one snapshot, or with `is_full` all rows of a snapshot.

    Steps are immutable. They can be pickled to be read in other processes; secrets are omitted.
    """

    def __init__(
        self,
        reading: Reading,
        snapshot: Snapshot,
        splits: tuple[Split, ...],
        position: Position,
        *,
        is_full: bool,
        acknowledge: Acknowledge | None,
        history: SourceHistory | None = None,
    ) -> None:
        """
        Args:
            acknowledge: records that everything up to a snapshot was processed; None: the stream has no consumer.
            history: tells whether a table that has committed an earlier step follows the same history.
        """
        self._reading = reading
        self._snapshot = snapshot
        self._splits = splits
        self._position = position
        self._is_full = is_full
        self._acknowledge = acknowledge
        self._history = history

    @property
    def snapshot_id(self) -> int:
        """The snapshot whose changes these are, by id and mark: a scan refuses another snapshot with the same id."""
        return StepSnapshotId(self._snapshot.id, self._snapshot.mark, self.position, self._history)

    @property
    def next_snapshot_id(self) -> int:
        """The snapshot with which the stream continues; snapshots in between without changes are skipped.

        Like `snapshot_id` it carries the position of the step: if it is the number of a commit, and the table was
        rolled back since, another step that then has the same number is refused as a conflict.
        """
        return StepNumber(self._position.base.id + 1, self.position, self._history)

    @property
    def position(self) -> str:
        """The position after this step, as a string to store and to pass to `stream(from_=…)`, in any process."""
        return str(self._position)

    @property
    def identifier(self) -> int:
        """A number for committing the results of this step, as in `write_arrow(…, user="totals",
        identifier=step.identifier)`: the step always has the same number, and no other step ever has it, even
        if the table is rolled back or created again.

        Numbers of a stream grow as long as the times of its snapshots do not decrease, which happens only if Java
        writers with different clocks commit. The number carries the position of the step into the commit, so that the
        number of another step is refused as a conflict. So is the number of a later step, if the last step that the
        user has committed was rolled back since: its rows are still in the table that the user writes to.
        """
        number = (self._snapshot.time_millis << _ID_BITS) | (self._snapshot.id & _ID_MASK)
        return StepNumber(number, self.position, self._history)

    @property
    def watermark(self) -> int | None:
        """The event time that the table has reached, in epoch milliseconds; None if it has none."""
        mark = self._snapshot.watermark
        return None if mark == MIN_LONG else mark

    @property
    def is_full(self) -> bool:
        """Whether the rows are those of a whole snapshot; only possible for the first step of a stream."""
        return self._is_full

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, `_row_kind` last."""
        return self._reading.schema

    def splits(self) -> list[Split]:
        """Independent parts of the step, to be read anywhere with `read`.

        All changes of one key are in one part, in order.
        """
        return list(self._splits)

    def read(self, split: Split | bytes) -> pa.RecordBatchReader:
        """The rows of one split, also one that came from another process (as a value or its bytes).

        Raises:
            SnapshotExpiredError: the snapshot has expired in the meantime.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._reading.batches(self._reading.as_split(split)))

    def to_reader(self, *, in_order: bool = True) -> pa.RecordBatchReader:
        """The rows as a stream of batches, in memory that does not grow with them; splits are read in parallel.

        Args:
            in_order: return the rows as if one split were read after the other; otherwise alternate between splits as
                their rows become available. All changes of one key come in order in either case.
        Raises: as `read`
        """
        check_flag("in_order", in_order)
        return pa.RecordBatchReader.from_batches(self.schema, self._batches(in_order=in_order))

    def to_arrow(self) -> pa.Table:
        """The rows as a table in memory.

        Raises: as `read`
        """
        return pa.Table.from_batches(list(self._batches(keeps=True)), self.schema)

    def acknowledge(self) -> None:
        """Record for the consumer of the stream that this step and all before it are processed.

        Call it when the results of the rows are stored: a stream with this consumer will not return them again. Can be
        repeated. Cost: a get and a put.

        Raises:
            UsageError: the stream has no consumer.
            TableNotFoundError: the table was dropped, or created again.
            StorageError: the store failed; call it again.
        """
        if self._acknowledge is None:
            raise UsageError("this stream has no consumer: name one with stream(consumer_id=…), or store position")
        self._acknowledge(self._position.base, self._position.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _batches(self, *, in_order: bool = True, keeps: bool = False) -> Iterator[pa.RecordBatch]:
        return self._reading.together(self._splits, in_order=in_order, keeps=keeps)

    def __repr__(self) -> str:
        rows = sum(split.row_count for split in self._splits)
        what = "all rows" if self._is_full else "changes"
        return f"Step({what} of snapshot {self.snapshot_id}, stored_rows={rows}, position={self.position!r})"
