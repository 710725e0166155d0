"""One step of a sink whose events are decoded and written by the tasks of an executor; this process only commits.

The rows pass through this process as bytes that it does not open, except those of tables whose keys move between
partitions: one process has to know where all keys are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paimon_py.cdc.decoding import Decoding, Letter
from paimon_py.cdc.digest import EventsDigest
from paimon_py.cdc.event import Event
from paimon_py.cdc.event_tasks import (
    DECODE,
    WRITE,
    DecodedEvents,
    EventsTask,
    Parcel,
    ParcelsTask,
    ReadShared,
)
from paimon_py.cdc.step import Survey, shapes_in_order
from paimon_py.cdc.step_targets import StepTargets
from paimon_py.cdc.target_tables import FittedTable
from paimon_py.distributed.routing import writers_of
from paimon_py.executors.executor import Executor, run_tasks
from paimon_py.executors.job import Job
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.visibility import waits_for_writers
from paimon_py.table.table import Table

TASK_EVENTS = 5_000
_TASK_BYTES = 8 << 20
_WRITERS_MAX = 64
_PARCELS_BYTES = 16 << 20
"""The number of compressed bytes that a task writes into a table without buckets."""
_SAMPLE = 64


class StepByTasks:
    """A step whose work is done by the tasks of an executor."""

    def __init__(self, executor: Executor, decoding: Decoding, events: Sequence[Event]) -> None:
        self._executor, self._decoding, self._events = executor, decoding, events
        self._tasks = list(_tasks_of(events))
        self._targets = StepTargets(self._writers)
        self._results: list[DecodedEvents] = []

    def sample(self) -> set[str]:
        """See `StepWork`. A table that is missing here costs a second decoding of its events."""
        few = self._events[:: max(1, len(self._events) // _SAMPLE)]
        return set(self._decoding.sort(few).taken)

    def survey(self, known: Mapping[str, Table]) -> Survey:
        """See `StepWork`."""
        self._targets.know(known)
        self._results = self._decode(self._tasks)
        digest, skipped = EventsDigest(), dict[str, int]()
        for result in self._results:
            digest = digest.plus(result.digest)
            for reason, count in result.skipped.items():
                skipped[reason] = skipped.get(reason, 0) + count
        shapes = shapes_in_order(shape for result in self._results for shape in result.shapes)
        is_empty = not shapes and not any(result.letters for result in self._results)
        return Survey(digest, skipped, shapes, is_empty)

    def build(self, fitted: Mapping[str, FittedTable]) -> list[Letter]:
        """See `StepWork`. Decodes again the events of tables that were created or altered, or that refuse columns."""
        is_stale = self._targets.fit(fitted)
        again = [place for place, result in enumerate(self._results) if is_stale(result.shapes)]
        for place, result in zip(again, self._decode([self._tasks[place] for place in again]), strict=True):
            self._results[place] = result
        return [letter for result in self._results for letter in result.letters]

    def events_at(self, numbers: Sequence[int]) -> list[Event]:
        """See `StepWork`."""
        return [self._events[number] for number in numbers]

    def commit(self, label: CommitLabel) -> dict[str, int]:
        """See `StepWork`. All tables are written before the first one is committed."""
        targets = self._targets
        parcels: dict[str, list[Parcel]] = {name: [] for name in targets.tables}
        for result in self._results:
            for parcel in result.parcels:
                parcels[parcel.target].append(parcel)
        self._results = []
        tasks, moving = list[ParcelsTask](), dict[str, list[bytes]]()
        for name in targets.names_to_write(label):
            if targets.is_moving(name):
                moving[name] = [parcel.data for parcel in parcels[name]]
            else:
                tasks += _writing_tasks(targets.tables[name].schema, name, parcels[name])
        written = run_tasks(self._executor, Job(WRITE, None, targets.for_tasks(targets.tables)), tasks)
        return targets.commit(written, moving, label)

    def _decode(self, tasks: Sequence[EventsTask]) -> list[DecodedEvents]:
        shared = ReadShared(self._decoding, self._targets.schemas)
        return run_tasks(self._executor, Job(DECODE, None, shared), tasks)

    def _writers(self, schema: TableSchema) -> int:
        return writers_for(schema, min(max(1, len(self._tasks)), _WRITERS_MAX))


def writers_for(schema: TableSchema, tasks: int) -> int:
    """The number of tasks, at most `tasks`, among which the rows of a table are divided by bucket.

    Keys of dynamic buckets are divided by hash: after steps of other sizes several tasks write the same bucket, and
    cannot compact it together. One task writes everything if rows are not
    visible, or not in the changelog, until they are compacted.
    """
    if bucket_mode(schema) is BucketMode.DYNAMIC and waits_for_writers(schema):
        return 1
    return writers_of(schema, tasks) or 1


def _tasks_of(events: Sequence[Event]) -> Iterator[EventsTask]:
    start = size = 0
    for number, event in enumerate(events):
        if number - start >= TASK_EVENTS or size >= _TASK_BYTES:
            yield EventsTask(first=start, events=tuple(events[start:number]))
            start, size = number, 0
        size += len(event.value or b"") + len(event.key or b"")
    if start < len(events):
        yield EventsTask(first=start, events=tuple(events[start:]))


def _writing_tasks(schema: TableSchema, name: str, parcels: Sequence[Parcel]) -> Iterator[ParcelsTask]:
    """The tasks that write the parcels of a table: one per writer, or neighbouring parcels if there are no buckets."""
    if bucket_mode(schema) is not BucketMode.NONE:
        by_writer: dict[int, list[bytes]] = {}
        for parcel in parcels:
            by_writer.setdefault(parcel.writer, []).append(parcel.data)
        for writer, own in by_writer.items():
            yield ParcelsTask(target=name, writer=writer, parcels=tuple(own))
        return
    held, size = list[bytes](), 0
    for parcel in parcels:
        held.append(parcel.data)
        size += len(parcel.data)
        if size >= _PARCELS_BYTES:
            yield ParcelsTask(target=name, writer=0, parcels=tuple(held))
            held, size = [], 0
    if held:
        yield ParcelsTask(target=name, writer=0, parcels=tuple(held))
