"""`Stream`: reads the changes of a table as they are committed, snapshot by snapshot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from numbers import Integral

import msgspec
import pyarrow as pa

from paimon_py.api_hints import ApiHints
from paimon_py.arguments import way_of, with_location
from paimon_py.errors import UsageError
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.change_plan import ChangeSource, makes_changelog, plan_replacement, plan_step, plan_waiting
from paimon_py.scan.moments import as_moment, millis_of
from paimon_py.scan.plan_snapshot import Planned
from paimon_py.scan.removals import changes_rows, require_no_removals
from paimon_py.scan.row_shape import RowShape
from paimon_py.scan.split import Split
from paimon_py.spec.layout import check_name
from paimon_py.spec.option_changes import check_dynamic
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.spec.supported import check_readable
from paimon_py.stream.begin import follows, plan_whole, whole
from paimon_py.stream.end import End
from paimon_py.stream.follow import Follow, Reads
from paimon_py.stream.follower import SnapshotFollower
from paimon_py.stream.position import Position, table_of
from paimon_py.stream.progress import Progress
from paimon_py.stream.reading import Reading
from paimon_py.stream.start import Compacted, FromSnapshot, Full, Latest, start_of
from paimon_py.stream.step import Step
from paimon_py.stream.step_history import StepHistory


@with_location(lambda stream: stream._root.path)
class Stream(ApiHints):
    """The changes of a table, one step for each snapshot that has changes, in order.

    `poll()` returns the next step or None and never waits. As an iterator, plain or async, a stream waits for the next
    step, and checks for new snapshots every 'continuous.discovery-interval' of the table; it ends at `until`.

    A failed call changes nothing and can be repeated. Not thread-safe. The columns of a stream are those of the schema
    that the table object had when the stream was created.
    """

    def __init__(  # noqa: PLR0913
        self,
        root: TableRoot,
        schema: TableSchema,
        *,
        from_: object = None,
        columns: ColumnList | None = None,
        where: Predicate | str | None = None,
        until: object = None,
        options: Mapping[str, str] | None = None,
        consumer_id: str | None = None,
        view: RowShape | None = None,
    ) -> None:
        """See `Table.stream`. `view`: how rows are presented; None: unchanged, with their kinds."""
        given, table_schema = _check_options(schema, options), schema
        schema = msgspec.structs.replace(schema, options={**schema.options, **given})
        check_readable(schema)
        stored = Options(schema.options)
        self._root = root
        self._start = start_of(from_, given, schema)
        self._schema = table_schema
        self._follow = Follow.of(schema)
        self._reading = Reading(root, schema, columns, where, view)
        self._wait_seconds = stored.get_duration("continuous.discovery-interval") / 1000
        self._line: SnapshotFollower | None = None
        self._ended = False
        self._consumer_id: str | None = None
        self._progress = self._consumer(stored, consumer_id)
        self._end = _end(root, until, stored.find_int("scan.bounded.watermark"))
        if isinstance(self._start, Latest):
            self._start = Position(Base.of(root.latest()), table_of(root))
        self._table: str | None = None
        self._asked: asyncio.Future[Step | None] | None = None

    # -- what a user sees ---------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns of a step, `_row_kind` last."""
        return self._reading.schema

    @property
    def position(self) -> str | None:
        """The position after everything that was returned or skipped; None before `poll()` has found a start."""
        return None if self._line is None else str(Position(self._line.base, self._table))

    @property
    def is_ended(self) -> bool:
        """Whether the stream has reached its end, so that no step will follow."""
        return self._ended

    def poll(self) -> Step | None:
        """The next step, or None if there is none yet, or the stream has ended. Never waits.

        Cost: for each snapshot one or two gets and those of its plan; a get or two if there is none.
        Raises:
            SnapshotExpiredError: the next snapshot has expired, or the last one was rolled back.
            SnapshotNotFoundError: the snapshot at which the stream starts does not exist.
            TableNotFoundError: the table was dropped.
            UnsupportedError: a commit removed rows from a table with neither a primary key nor row ids.
        """
        while not self._ended:
            if self._line is None:
                step = self._begin()
                if step is not None or self._line is None or self._ended:
                    return step
            snapshot = self._next(self._line)
            if snapshot is None:
                return None
            step = self._step(self._line, snapshot)
            self._line.pass_it()
            self._ended = self._end.is_at(snapshot.id)
            if step is not None:
                return step
        return None

    def read(self, split: Split | bytes) -> pa.RecordBatchReader:
        """The rows of one split of a step, which may come from another process (as a value or its bytes)."""
        return pa.RecordBatchReader.from_batches(self.schema, self._reading.batches(self._reading.as_split(split)))

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Step:
        while True:
            step = self.poll()
            if step is not None:
                return step
            if self._ended:
                raise StopIteration
            self._root.env.clock.sleep(self._wait_seconds)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Step:
        """The next step. Cancelling the wait loses nothing: the step is returned by the next call."""
        while True:
            step = await self._aside()
            if step is not None:
                return step
            if self._ended:
                raise StopAsyncIteration
            await self._root.env.clock.pause(self._wait_seconds)

    async def _aside(self) -> Step | None:
        """Poll while other tasks run. A poll whose waiter was cancelled continues, and its step is kept."""
        asked = self._asked or asyncio.ensure_future(self._root.env.pool.aside(self.poll))
        self._asked = asked
        try:
            step = await asyncio.shield(asked)
        finally:
            if asked.done() and (asked.cancelled() or asked.exception() is not None):
                self._asked = None
        self._asked = None
        return step

    # -- how the next step is found -----------------------------------------------------------------------------------

    def _begin(self) -> Step | None:
        """Find the start of the stream and set `_line`.

        Returns: the step of a whole snapshot, if the stream starts with one. None with a line: steps follow; None
            without a line: there is no snapshot yet.
        """
        start = self._start
        self._root.require_same(self._schema)
        if not isinstance(start, (Full, Compacted)):
            base = follows(self._root, start)
            line = self._go_on_after(base)
            if self._progress is not None:
                self._progress.begin(base, self._table)
            self._ended = self._end.is_at(base.id)
            if self._ended and (isinstance(start, Position) or (isinstance(start, FromSnapshot) and start.after)):
                line.require_base()
            return None
        snapshot = whole(self._root, start, self._end)
        if snapshot is None:
            self._ended = self._end.is_at(0) or self._end.is_past(self._root.env.clock.millis())
            return None
        planned = plan_whole(self._root, self._reading.whole_request, snapshot)
        if self._follow.waiting:
            others = plan_waiting(self._root, self._reading.request, snapshot)
            planned = msgspec.structs.replace(planned, splits=(*planned.splits, *others.splits))
        self._go_on_after(Base.of(snapshot))
        self._ended = self._end.is_at(snapshot.id) or self._end.is_before(snapshot)
        return self._make_step(snapshot, planned, after=None)

    def _go_on_after(self, base: Base) -> SnapshotFollower:
        self._table = table_of(self._root)
        self._line = SnapshotFollower(self._root, base, self._table, self._consumer_id)
        return self._line

    def _next(self, line: SnapshotFollower) -> Snapshot | None:
        """The snapshot to read next; None if there is none yet, or no more."""
        now = self._root.env.clock.millis()
        snapshot = line.peek()
        if snapshot is None:
            self._ended = self._end.is_past(now)
            return None
        self._ended = self._end.is_before(snapshot)
        return None if self._ended or self._follow.is_too_new(snapshot, now) else snapshot

    def _step(self, line: SnapshotFollower, snapshot: Snapshot) -> Step | None:
        """The step of a snapshot; None if it has no changes. Only the existence of files counts, as in Java."""
        if self._follow.identifies and changes_rows(self._root, snapshot):
            planned = self._plan(snapshot, Reads.REPLACED)
            return self._make_step(snapshot, planned, after=line.base) if planned.splits else None
        if self._follow.refuses:
            require_no_removals(self._root, snapshot)
        has_changelog = self._follow.has_changelog
        if snapshot.schema_id != self._schema.id:
            has_changelog = makes_changelog(self._root.schemas.get(snapshot.schema_id))
        source = self._follow.source(snapshot, has_changelog=has_changelog)
        if source is None:
            return None
        planned = self._plan(snapshot, source)
        return self._make_step(snapshot, planned, after=line.base) if planned.splits else None

    def _plan(self, snapshot: Snapshot, source: Reads) -> Planned:
        if source is Reads.REPLACED:
            return plan_replacement(self._root, self._reading.request, snapshot)
        of = ChangeSource.DELTA if source is Reads.DELTA else ChangeSource.CHANGELOG
        return plan_step(self._root, self._reading.request, snapshot, of, waiting=self._follow.waiting)

    def _make_step(self, snapshot: Snapshot, planned: Planned, *, after: Base | None) -> Step:
        """The step for the snapshots after `after` up to this one; None: for all rows of this one."""
        if self._progress is not None:
            self._progress.on_step(after or Base(0), Base.of(snapshot))
        position = Position(Base.of(snapshot), self._table)
        is_full = after is None
        reset = None if self._progress is None else self._progress.reset
        return Step(
            self._reading, snapshot, planned.splits, position, is_full=is_full, acknowledge=self._progress,
            history=StepHistory(self._root, position, after, reset),
        )  # fmt: skip

    def _consumer(self, options: Options, consumer_id: str | None) -> Progress | None:
        """The consumer's progress; the stream starts at the consumer's position, unless that is to be ignored.

        Raises:
            UsageError: the name is invalid.
            CorruptionError: the consumer is damaged.
        """
        stored = options.find_str("consumer-id")
        if consumer_id is not None and stored is not None and consumer_id != stored:
            raise UsageError(
                f"a stream has one consumer, but consumer_id is {consumer_id!r} and the option 'consumer-id' is"
                f" {stored!r}"
            )
        name = stored if consumer_id is None else check_name("consumer", consumer_id)
        if name is None:
            return None
        self._consumer_id = name
        reset = None
        found = None if options.get_bool("consumer.ignore-progress") else self._root.consumers.find(name)
        if found is not None:
            after, reset = self._root.consumers.read_or_reset(found)
            self._start = FromSnapshot(max(found.next_snapshot_id, 1), name, after)
        in_order = options.get_enum("consumer.mode") == "exactly-once"
        return Progress(self._root, name, in_order=in_order, reset=reset)

    def __repr__(self) -> str:
        return f"Stream({self._root.path!r}, position={self.position!r})"


def _check_options(schema: TableSchema, options: Mapping[str, str] | None) -> Mapping[str, str]:
    if options is not None and not isinstance(options, Mapping):
        raise UsageError(f"options map names to strings, got a {type(options).__name__}")
    for name, text in (options or {}).items():
        check_dynamic(schema, name, text)
    return options or {}


def _end(root: TableRoot, until: object, watermark: int | None) -> End:
    """The end of the stream; "now" is the snapshot that is the latest now.

    Raises: UsageError if `until` is none of these.
    """
    if until is None:
        return End(watermark=watermark)
    if isinstance(until, str) and until == "now":
        return End(snapshot_id=root.snapshots.latest_id() or 0, watermark=watermark)
    until = as_moment("until", until)
    if isinstance(until, datetime):
        return End(millis=millis_of("until", until), watermark=watermark)
    if isinstance(until, Integral) and not isinstance(until, bool) and int(until) >= 0:
        return End(snapshot_id=int(until), watermark=watermark)
    raise UsageError(f"until must be a snapshot id, a datetime or 'now', not {until!r}{way_of(until)}")
