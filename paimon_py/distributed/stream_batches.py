"""A stream in batches, for engines that keep offsets in checkpoints: offsets -> splits.

The two offsets of a batch determine everything that it reads, so that a batch can be repeated in another process: each
is planned again from the table, by `Table.stream`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from paimon_py.distributed.batch_limits import BatchLimits, Size
from paimon_py.distributed.offsets import Offset, all_of, mark_of
from paimon_py.errors import SnapshotExpiredError, SnapshotNotFoundError, UsageError
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.consumers import Consumer
from paimon_py.scan.split import Split
from paimon_py.spec.layout import check_name
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import Base
from paimon_py.stream.begin import follows, whole
from paimon_py.stream.end import End
from paimon_py.stream.position import Position, parse_position, table_of
from paimon_py.stream.reading import Reading
from paimon_py.stream.start import Compacted, FromSnapshot, Full, start_of
from paimon_py.stream.step import Step
from paimon_py.stream.stream import Stream
from paimon_py.system.metadata_table import MetadataTable
from paimon_py.system.table import SystemTable
from paimon_py.table.table import Table

_STARTS = (
    "scan.mode", "scan.snapshot-id", "scan.timestamp-millis", "scan.timestamp", "consumer-id", "consumer.mode",
    "consumer.ignore-progress",
)  # fmt: skip


class SplitBatch(NamedTuple):
    """The splits of a batch, and the offset after the batch."""

    splits: list[Split]
    end: Offset


class StreamBatches:
    """The batches of a query that follows a table. The last plan is cached, since engines ask for it twice.

    Args:
        source: the table, or a system table that shows its changes.
        where: the condition on the rows to read; None: all rows.
        options: options of the table, for this query only.
        restart: how a query starts again without its checkpoint, for errors.

    Raises: UsageError for a table that cannot be followed.
    """

    def __init__(
        self, source: Table | SystemTable | MetadataTable, where: Predicate | None, options: Mapping[str, str],
        restart: str,
    ) -> None:  # fmt: skip
        if isinstance(source, MetadataTable):
            raise UsageError(f"{source.name} cannot be read as a stream: read it as a batch")
        self._root = source._root
        self._schema = source._schema
        self._source = _without_consumer(source)
        self._where = where
        self._options = options
        self._restart = restart
        self.columns: Sequence[str] | None = None
        """The columns of the table to read, None: all. Row kinds are always included."""
        stored = Options({**self._schema.options, **options})
        name = stored.find_str("consumer-id")
        self._consumer = None if name is None else check_name("consumer", name)
        self._resumes = not stored.get_bool("consumer.ignore-progress")
        self._kept: tuple[Offset, SplitBatch] | None = None
        self._begun: Offset | None = None
        self._recorded = self._last_millis = 0

    @property
    def reading(self) -> Reading:
        """The object that reads splits, in any process."""
        return self._stream(from_="earliest")._reading

    def beginning(self) -> Offset:
        """The offset at which a new query begins; determined once.

        Raises:
            UsageError: an invalid start, or one that is only for batch reads.
            SnapshotExpiredError, SnapshotNotFoundError: the state of the start does not exist, or no longer exists.
        """
        if self._begun is not None:
            return self._begun
        start = start_of(None, self._options, self._schema)
        if self._consumer is not None and self._resumes:
            found = self._root.consumers.find(self._consumer)
            start = start if found is None else FromSnapshot(max(found.next_snapshot_id, 1), self._consumer)
        if isinstance(start, (Full, Compacted)):
            snapshot = whole(self._root, start, End())
            begun = all_of(None if snapshot is None else snapshot.id)
        else:
            begun = Offset(began=str(Position(follows(self._root, start), table_of(self._root))))
        self.acknowledge(begun)
        self._begun = begun
        return begun

    def now(self) -> int:
        """The id of the latest snapshot, 0 for none."""
        return self._root.snapshots.latest_id() or 0

    def latest(self) -> Offset:
        """The offset after the latest snapshot, for an engine that does not pass the start of a batch.

        The offset contains the start of a new query, since the query may be new. If that start is not available, a
        continued query does not need it, and a new query gets the error when it asks for its beginning.
        """
        began = None
        with contextlib.suppress(SnapshotNotFoundError):
            began = self.beginning().began
        return Offset(began=began, after=str(Position(Base.of(self._root.latest()), table_of(self._root))))

    def following(self, start: Offset, limits: BatchLimits, until: int | None = None) -> SplitBatch:
        """The next batch after an offset, within the limits.

        Args:
            until: the last snapshot to read.

        Cost: a plan for each snapshot. Keeps the splits of one batch in memory.
        Raises: SnapshotExpiredError, which says what to do
        """
        with self._advice():
            batch, size = self._following(self._decide_start(start), limits, until)
        now = self._root.env.clock.millis()
        if until is None and batch.splits and not limits.is_enough(size, now - self._last_millis):
            return SplitBatch([], start)
        self._last_millis = now if batch.splits else self._last_millis
        self._kept = (start, batch)
        return batch

    def between(self, start: Offset, end: Offset) -> list[Split]:
        """The splits between two offsets, the same ones on every call.

        Raises: SnapshotExpiredError, which says what to do; UsageError if the splits are no longer the same.
        """
        if self._kept is not None and self._kept[0] == start and self._kept[1].end == end:
            return self._kept[1].splits
        if start.is_beginning and end.began is not None:
            start = Offset(began=end.began)
        if start.waits and end.position is not None:
            start = all_of(end.position.base.id) if end.position.base.id else end
        with self._advice():
            return self._between(start, end) if start != end else []

    def acknowledge(self, end: Offset) -> None:
        """Move the consumer, if there is one, to an offset: everything before it has been read."""
        if self._consumer is None or end.waits:
            return
        position = end.position
        number = (end.whole or 1) if position is None else position.base.id + 1
        if number > self._recorded:
            read = () if position is None else (position.base,)
            self._root.consumers.put(Consumer(self._consumer, number), *read)
            self._recorded = number

    @contextlib.contextmanager
    def _advice(self) -> Iterator[None]:
        """Add advice to errors of a query whose next rows have expired."""
        try:
            yield
        except (SnapshotExpiredError, SnapshotNotFoundError) as error:
            raise SnapshotExpiredError(
                f"{error}. The checkpoint of the query is older than the snapshots that the table keeps, and the query"
                f" may miss rows in between: {self._restart}, with scan.mode=latest-full for all rows, or"
                " scan.mode=from-snapshot and scan.snapshot-id for those that are left; the option consumer-id keeps"
                " snapshots that the query has not read", path=error.path, snapshot_id=error.snapshot_id,
            ) from error  # fmt: skip

    # -- planning -----------------------------------------------------------------------------------------------------

    def _decide_start(self, start: Offset) -> Offset:
        """The actual start of a stream that waits for the first snapshot, once there is one."""
        if not start.waits:
            return start
        snapshot = whole(self._root, Full(), End())
        return start if snapshot is None else all_of(snapshot.id)

    def _following(self, start: Offset, limits: BatchLimits, until: int | None) -> tuple[SplitBatch, Size]:
        splits: list[Split] = []
        size, end = Size(), start
        if start.waits or (until is not None and start.whole is not None and start.whole > until):
            return SplitBatch(splits, start), size
        stream = self._from(start, until)
        while not limits.is_full(size):
            step = stream.poll()
            if step is None:
                position = stream.position
                if position is not None and not end.taken and position != (end.after or end.began):
                    end = Offset(began=end.began, after=position)
                break
            there = self._check(step, end)
            for number, split in enumerate(there[end.taken :], end.taken + 1):
                if limits.is_full(size):
                    break
                splits.append(split)
                size = size.plus(split)
                end = msgspec.structs.replace(
                    end, taken=number, step=int(step.snapshot_id), mark=mark_of(there[:number])
                )
            if end.taken == len(there):
                end = Offset(began=end.began, after=step.position)
        return SplitBatch(splits, end), size

    def _between(self, start: Offset, end: Offset) -> list[Split]:
        last = 0 if end.position is None else end.position.base.id
        stream, splits, at = self._from(start, end.step if end.taken else last), list[Split](), start
        while (step := stream.poll()) is not None:
            there = self._check(step, at)[at.taken :]
            if end.taken and step.snapshot_id == end.step:
                self._check(step, end)
                return splits + there[: end.taken - at.taken]
            splits += there
            at = Offset(after=step.position)
            _require_same(at, end)
        came_to = None if stream.position is None else parse_position(stream.position)
        if end.taken or came_to is None or came_to.base.id < last:
            raise _expired_error(self._root.path, end)
        return splits

    def _from(self, start: Offset, until: int | None) -> Stream:
        if start.whole is not None:
            first = {"scan.mode": "from-snapshot-full", "scan.snapshot-id": str(start.whole)}
            return self._stream(options=first, until=until)
        return self._stream(from_=str(start.position), until=until)

    def _stream(
        self, *, from_: str | None = None, options: Mapping[str, str] | None = None, until: int | None = None
    ) -> Stream:
        others = {name: text for name, text in self._options.items() if name not in _STARTS}
        return self._source.stream(
            from_=from_, columns=self.columns, where=self._where, until=until,
            options={**others, **(options or {})},
        )  # fmt: skip


    def _check(self, step: Step, at: Offset) -> list[Split]:
        """The splits of a step that an offset covers in part.

        Raises: UsageError if they are no longer the same.
        """
        there = step.splits()
        if not at.taken:
            return there
        if step.snapshot_id != at.step or at.taken > len(there) or mark_of(there[: at.taken]) != at.mark:
            raise UsageError(
                f"the checkpoint says that {at.taken} splits of snapshot {at.step} were read, but the snapshot now has"
                f" other splits: give the options that the query had, or {self._restart}"
            )
        return there


def _without_consumer(source: Table | SystemTable) -> Table | SystemTable:
    """The table without a consumer in its options: Spark's checkpoint determines what a query has read."""
    kept = {name: text for name, text in source._schema.options.items() if name not in _STARTS}
    schema = msgspec.structs.replace(source._schema, options=kept)
    if isinstance(source, Table):
        return Table(source._root, schema, source.name)
    return SystemTable(source._root, schema, source._name, source._kind)


def _require_same(at: Offset, end: Offset) -> None:
    """Raises: SnapshotExpiredError if another snapshot now has the id of the one with which a batch ended."""
    here, there = at.position, end.position
    if here is not None and there is not None and here.base.id == there.base.id and here != there:
        raise _expired_error("the table", end)


def _expired_error(path: str, end: Offset) -> SnapshotExpiredError:
    number = end.step if end.taken or end.position is None else end.position.base.id
    message = f"snapshot {number} of {path}, the end of a batch of the query, no longer exists: it was rolled back"
    return SnapshotExpiredError(message, snapshot_id=number)
