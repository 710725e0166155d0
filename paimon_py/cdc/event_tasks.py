"""The tasks of a step of change events: some decode events and build rows in parcels, others write the parcels.

A task that decodes gets the schemas of the tables that the caller knows, and packs the rows of each table for the tasks
that will write them. Where a table has to be created or altered first, it only returns the columns that it saw; the
caller does that, and runs the task again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import pyarrow as pa

from paimon_py.cdc.decoding import Decoding, Letter
from paimon_py.cdc.digest import EventsDigest
from paimon_py.cdc.event import Event, InvalidEvent
from paimon_py.cdc.evolve import changes_for
from paimon_py.cdc.rows import ChangedRows
from paimon_py.cdc.step import data_of
from paimon_py.cdc.taken import SeenShape, TakenChanges
from paimon_py.cdc.taking import Refused, letters_of, take_rows
from paimon_py.codec.columns import Ints, from_numpy
from paimon_py.commit.changes import Changes
from paimon_py.commit.uncommitted import discard
from paimon_py.distributed.routing import BucketRouting
from paimon_py.executors.job import Job, TaskKind, restore_options
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.serializable import Serializable
from paimon_py.table.writing import writer

_BY_KEY = "_BY_KEY"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


class TargetSchema(msgspec.Struct, frozen=True):
    """The known properties of a target table.

    Attributes:
        schema: its schema; None if it cannot be created, and all columns are refused.
        writers: the number of tasks that write it; see `Parcel`.
        refused: columns that it cannot store, with the reasons.
        is_fitted: whether it can store all other columns of the step.
    """

    schema: TableSchema | None
    writers: int
    refused: Refused = {}
    is_fitted: bool = False


class ReadShared(msgspec.Struct, frozen=True):
    """The common values of decoding tasks: the decoder, the routes, and the known properties of target tables."""

    decoding: Decoding
    targets: Mapping[str, TargetSchema]


class Parcel(msgspec.Struct, frozen=True, array_like=True):
    """Rows of a target table, in their order, for one of the tasks that write it. `data`: an Arrow stream."""

    target: str
    writer: int
    data: bytes


class EventsTask(Serializable, frozen=True, kw_only=True):
    """Events to decode; `first` is the number of the first one in the step."""

    kind: ClassVar[str] = "events"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that decodes events"
    again: ClassVar[str] = "write the events"

    first: int
    events: tuple[Event, ...]


class DecodedEvents(Serializable, frozen=True, kw_only=True):
    """The contents of some events.

    Attributes:
        shapes: the distinct columns of each target table.
        parcels: the rows of the tables that can store all these columns.
    """

    kind: ClassVar[str] = "decodedevents"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that decodes events"
    again: ClassVar[str] = "run the task"

    digest: EventsDigest
    skipped: dict[str, int]
    letters: tuple[Letter, ...]
    shapes: tuple[SeenShape, ...]
    parcels: tuple[Parcel, ...]


class ParcelsTask(Serializable, frozen=True, kw_only=True):
    """Parcels of one table to write, in the order of their events."""

    kind: ClassVar[str] = "parcels"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "a task that writes rows of events"
    again: ClassVar[str] = "write the events"

    target: str
    writer: int
    parcels: tuple[bytes, ...]


class WrittenParcels(Serializable, frozen=True, kw_only=True):
    """The number of rows written, and the changes; None if there was nothing to write."""

    kind: ClassVar[str] = "writtenparcels"
    edition: ClassVar[int] = 1
    called: ClassVar[str] = "the result of a task that writes rows of events"
    again: ClassVar[str] = "run the task"

    target: str
    rows: int
    changes: Changes | None


def pack(rows: ChangedRows) -> bytes:
    """Rows as an Arrow stream."""
    data = rows.data.append_column(_BY_KEY, pa.array(rows.by_key))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema, options=_OPTIONS) as stream:
        stream.write_table(data)
    return bytes(sink.getvalue().to_pybytes())


def unpack(parcels: Sequence[bytes]) -> ChangedRows:
    """The rows of parcels of one table, one after the other."""
    data = pa.concat_tables([pa.ipc.open_stream(each).read_all() for each in parcels])
    last = data.num_columns - 1
    by_key = np.asarray(data.column(last), dtype=bool)
    return ChangedRows(data.remove_column(last), {}, by_key)


def _decode(job: Job[EventsTask, DecodedEvents], task: EventsTask) -> DecodedEvents:
    return decode_events(job.shared, task)


def decode_events(shared: ReadShared, task: EventsTask) -> DecodedEvents:
    """Decode events, and build the rows of tables that can store them. Raises: as `Decoding.sort`"""
    found = shared.decoding.sort(task.events, task.first)
    letters = list(found.letters)
    shapes: list[SeenShape] = []
    parcels: list[Parcel] = []
    for name, taken in found.taken.items():
        shapes += taken.shapes
        target = shared.targets.get(name)
        if target is not None and can_store(target, taken.shapes, shared.decoding.routes.types):
            parcels += _parcels(name, target, taken, letters)
    return DecodedEvents(
        digest=EventsDigest.of(task.events), skipped=found.skipped, letters=tuple(letters), shapes=tuple(shapes),
        parcels=tuple(parcels),
    )  # fmt: skip


def can_store(target: TargetSchema, shapes: Sequence[SeenShape], modes: Sequence[str]) -> bool:
    """Whether a table, as it is known, can store the rows of all columns that it does not refuse."""
    if target.is_fitted or target.schema is None:
        return target.is_fitted
    asked = [changes_for(target.schema.fields, shape.columns, modes) for shape in shapes]
    return not any(isinstance(each, InvalidEvent) or each for each in asked)


def _parcels(name: str, target: TargetSchema, taken: TakenChanges, letters: list[Letter]) -> Iterator[Parcel]:
    if target.schema is None:
        letters += [letter for part in taken.parts for letter in letters_of(name, part, target.refused)]
        return
    rows = take_rows(name, target.schema, target.refused, taken, letters)
    if not rows.data.num_rows:
        return
    if target.writers == 1:
        yield Parcel(name, 0, pack(rows))
        return
    numbers = _writers_of_rows(target.schema, target.writers, rows.data)
    for number in np.unique(numbers).tolist():
        places = np.flatnonzero(numbers == number)
        own = ChangedRows(rows.data.take(from_numpy(places, pa.int64())), {}, rows.by_key[places])
        yield Parcel(name, number, pack(own))


def _writers_of_rows(schema: TableSchema, writers: int, data: pa.Table) -> Ints:
    routing = BucketRouting(schema, writers)
    (batch,) = data.select(list(routing.names)).combine_chunks().to_batches()
    return routing.of_rows(batch).astype(np.int64)


def write_parcels(job: Job[ParcelsTask, WrittenParcels], task: ParcelsTask) -> WrittenParcels:
    """Write parcels of one table into new files. Raises: PaimonError"""
    table, writers = _table_of(job, task.target)
    data = data_of(table, unpack(task.parcels))
    if not data.num_rows:
        return WrittenParcels(target=task.target, rows=0, changes=None)
    has_shares = writers > 1 and bucket_mode(table.schema) is BucketMode.DYNAMIC
    with writer(table, overwrite=False, share=(task.writer, writers) if has_shares else None) as session:
        session.write_arrow(data)
        return WrittenParcels(target=task.target, rows=data.num_rows, changes=session.changes())


def _table_of(job: Job[Any, Any], target: str) -> tuple[OpenTable, int]:
    table, writers = job.shared[target]
    return restore_options(table) if job.is_remote else table, writers


def discard_parcels(job: Job[Any, WrittenParcels], result: WrittenParcels) -> None:
    """Delete the files of a result."""
    if result.changes is not None:
        discard(_table_of(job, result.target)[0], result.changes)


DECODE = TaskKind(task=EventsTask, result=DecodedEvents, run=_decode)
WRITE = TaskKind(task=ParcelsTask, result=WrittenParcels, run=write_parcels, discard=discard_parcels)
