"""Change events in the processes of an engine: each process decodes its share, and rows go to the one that writes them.

Only reports come to the process that commits: which events a share has, the columns of their rows, and dead letters.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from paimon_py.cdc.decoding import Letter
from paimon_py.cdc.digest import EventsDigest
from paimon_py.cdc.event import Event, events_of_rows
from paimon_py.cdc.event_tasks import (
    DecodedEvents,
    EventsTask,
    Parcel,
    ParcelsTask,
    ReadShared,
    WrittenParcels,
    decode_events,
    discard_parcels,
    write_parcels,
)
from paimon_py.cdc.taken import SeenShape
from paimon_py.errors import UsageError
from paimon_py.executors.job import Job
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.serializable import Serializable

REPORT, KEPT = -1, -2
"""In the place of the number of a process: a report; a parcel that the process that commits writes itself."""
_RUN_EVENTS = 5_000
_RUN_BYTES = 8 << 20

Place = tuple[bool, str, bool, int, int]
"""The position of an event in its source: its topic, partition and offset, each missing one behind all others."""


@runtime_checkable
class EventShares(Protocol):
    """Change events in the processes of an engine, in any division; the methods are called one after the other."""

    @property
    def processes(self) -> int:
        """The number of processes that write."""
        ...

    def decode(self, part: DecodePart) -> list[bytes]:
        """Run a part in every process with its events, and keep what it returns in the engine.

        Events are batches as `events_of_rows` takes them, with a column `offset`.

        Returns: the reports. Raises: PaimonError
        """
        ...

    def bring(self) -> list[bytes]:
        """The values that the last `decode` returned with the number `KEPT`."""
        ...

    def write(self, part: WriteEventsPart) -> list[bytes]:
        """Run a part in every process with the values that the last `decode` returned with its number.

        Raises: PaimonError, after `part.discard` of the results of other processes.
        """
        ...

    def in_order(self) -> EventShares:
        """The same events, sorted, divided among the processes by their places in the source."""
        ...

    def close(self) -> None:
        """Drop what the engine keeps."""
        ...


class EventsReport(Serializable, frozen=True, kw_only=True):
    """The contents of a run of events, which is sorted by their places; numbers are those in the run.

    Attributes:
        first, last: the places of the first and the last event.
        dead: the events of `letters`.
        parcels: the target, the writer and the checksum of each parcel of the run.
    """

    kind: ClassVar[str] = "eventsreport"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the report of a process that decodes events"
    again: ClassVar[str] = "write the events"

    first: Place
    last: Place
    digest: EventsDigest
    skipped: dict[str, int]
    letters: tuple[Letter, ...]
    dead: tuple[Event, ...]
    shapes: tuple[SeenShape, ...]
    parcels: tuple[tuple[str, int, int], ...]


class SentParcel(Serializable, frozen=True, kw_only=True):
    """Rows for the process that writes them. `first`: the place of the first event of their run."""

    kind: ClassVar[str] = "sentparcel"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a parcel of rows"
    again: ClassVar[str] = "write the events"

    target: str
    writer: int
    first: Place
    data: bytes


class WrittenEvents(Serializable, frozen=True, kw_only=True):
    """The changes that one writer made to one table, and its parcels: the places of their runs, and checksums.

    `parcels` are in the order of the source.
    """

    kind: ClassVar[str] = "writtenevents"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a process that writes events"
    again: ClassVar[str] = "write the events"

    writer: int
    parcels: tuple[tuple[Place, int], ...]
    written: WrittenParcels


class DecodePart:
    """Runs in every process: decodes its events, and returns reports and parcels, each with the number of a process."""

    def __init__(self, shared: ReadShared, processes: int) -> None:
        self.shared, self.processes = shared, processes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes]]:
        """Decode events. Raises: UsageError for an event without an offset; as `Decoding.sort`"""
        for places, events in _runs(batches):
            decoded = decode_events(self.shared, EventsTask(first=0, events=tuple(events)))
            first = places[0]
            for parcel in decoded.parcels:
                sent = SentParcel(target=parcel.target, writer=parcel.writer, first=first, data=parcel.data)
                yield self._process(parcel, first), bytes(sent)
            yield REPORT, bytes(_report(places, events, decoded))

    def _process(self, parcel: Parcel, first: Place) -> int:
        schema = self.shared.targets[parcel.target].schema
        if _mode(schema) is BucketMode.CROSS_PARTITION:
            return KEPT
        if _mode(schema) is BucketMode.NONE:
            return zlib.crc32(repr(first[:-1]).encode()) % self.processes
        return (zlib.crc32(parcel.target.encode()) + parcel.writer) % self.processes


class WriteEventsPart:
    """Runs in every process: writes the parcels that came to it, all of a writer in the order of the source."""

    def __init__(self, job: Job[ParcelsTask, WrittenParcels]) -> None:
        self.job = job

    def __call__(self, parcels: Iterable[bytes]) -> Iterator[bytes]:
        """Write parcels; those of tables that the job does not have are not written. Raises: PaimonError"""
        found: dict[tuple[object, ...], list[SentParcel]] = {}
        for parcel in map(SentParcel.from_bytes, parcels):
            if parcel.target in self.job.shared:
                found.setdefault(self._file_of(parcel), []).append(parcel)
        for own in found.values():
            own.sort(key=lambda each: each.first)
            task = ParcelsTask(
                target=own[0].target, writer=own[0].writer, parcels=tuple(each.data for each in own)
            )  # fmt: skip
            marks = tuple((each.first, zlib.crc32(each.data)) for each in own)
            yield bytes(WrittenEvents(writer=task.writer, parcels=marks, written=write_parcels(self.job, task)))

    def _file_of(self, parcel: SentParcel) -> tuple[object, ...]:
        """Rows to write together: those of a writer, and of one partition of a topic if there are no buckets."""
        table, _ = self.job.shared[parcel.target]
        is_plain = _mode(table.schema) is BucketMode.NONE
        return (parcel.target, parcel.writer, parcel.first[:-1] if is_plain else None)

    def discard(self, done: Sequence[bytes]) -> None:
        """Delete the files of results."""
        for each in map(WrittenEvents.from_bytes, done):
            discard_parcels(self.job, each.written)


def _mode(schema: TableSchema | None) -> BucketMode | None:
    return None if schema is None else bucket_mode(schema)


def _report(places: Sequence[Place], events: Sequence[Event], decoded: DecodedEvents) -> EventsReport:
    return EventsReport(
        first=places[0], last=places[-1], digest=decoded.digest, skipped=decoded.skipped, letters=decoded.letters,
        dead=tuple(events[letter.number] for letter in decoded.letters), shapes=decoded.shapes,
        parcels=tuple((each.target, each.writer, zlib.crc32(each.data)) for each in decoded.parcels),
    )  # fmt: skip


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[list[Place], list[Event]]]:
    """Events that follow each other in their source, a few thousand at a time, with their places."""
    places, events, size = list[Place](), list[Event](), 0
    for batch in batches:
        for event in events_of_rows(batch):
            place = _place_of(event)
            if events and (place < places[-1] or len(events) >= _RUN_EVENTS or size >= _RUN_BYTES):
                yield places, events
                places, events, size = [], [], 0
            places.append(place)
            events.append(event)
            size += len(event.value or b"") + len(event.key or b"")
    if events:
        yield places, events


def _place_of(event: Event) -> Place:
    if event.offset is None:
        raise UsageError("an event of a DataFrame has no offset: events have one each, which says their order")
    return not event.topic, event.topic, event.partition is None, event.partition or 0, event.offset
