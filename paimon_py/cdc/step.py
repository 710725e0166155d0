"""One step of a sink in this process: events are decoded, their rows built and committed, table by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from paimon_py.cdc.decoding import Decoding, Letter
from paimon_py.cdc.digest import EventsDigest
from paimon_py.cdc.event import Event
from paimon_py.cdc.rows import ChangedRows
from paimon_py.cdc.standing_rows import fill_deletes
from paimon_py.cdc.taken import SeenShape
from paimon_py.cdc.taking import letters_of, take_rows
from paimon_py.cdc.target_tables import FittedTable
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.table.table import Table


class Survey(msgspec.Struct, frozen=True):
    """The contents of a step, before anything is changed.

    Attributes:
        digest: the digest of all events.
        skipped: the number of events that change no row, by reason.
        shapes: the distinct columns of changes by target table, in the order in which they occur.
        is_empty: whether there are neither changes nor dead letters.
    """

    digest: EventsDigest
    skipped: Mapping[str, int]
    shapes: Mapping[str, Sequence[SeenShape]]
    is_empty: bool


class StepWork(Protocol):
    """The work of a step; the methods are called in this order, once."""

    def sample(self) -> set[str]:
        """Names of tables for which it helps to know the schema before the survey."""
        ...

    def survey(self, known: Mapping[str, Table], /) -> Survey:
        """Decode the events. Raises: as `Decoding.sort`"""
        ...

    def build(self, fitted: Mapping[str, FittedTable]) -> list[Letter]:
        """Build the rows for the tables; returns all dead letters."""
        ...

    def events_at(self, numbers: Sequence[int]) -> list[Event]:
        """The events with these numbers, which dead letters have."""
        ...

    def commit(self, label: CommitLabel) -> dict[str, int]:
        """Commit the rows, one table after the other; returns the number of rows by table. Raises: PaimonError"""
        ...


class StepHere:
    """A step whose work is done in this process."""

    def __init__(self, decoding: Decoding, events: Sequence[Event]) -> None:
        self._events = events
        self._decoding = decoding
        self._ready: dict[str, tuple[Table, pa.Table]] = {}

    def sample(self) -> set[str]:
        """See `StepWork`."""
        return set()

    def survey(self, _known: Mapping[str, Table]) -> Survey:
        """See `StepWork`."""
        self._sorted = self._decoding.sort(self._events)
        shapes = {name: taken.shapes for name, taken in self._sorted.taken.items()}
        is_empty = not shapes and not self._sorted.letters
        return Survey(EventsDigest.of(self._events), self._sorted.skipped, shapes, is_empty)

    def build(self, fitted: Mapping[str, FittedTable]) -> list[Letter]:
        """See `StepWork`."""
        letters = self._sorted.letters
        for name, (table, refused, _) in fitted.items():
            taken = self._sorted.taken.pop(name)
            if table is None:
                letters += [letter for part in taken.parts for letter in letters_of(name, part, refused)]
                continue
            rows = take_rows(name, table.schema, refused, taken, letters)
            self._ready[name] = table, data_of(table._open_table, rows)
        return letters

    def events_at(self, numbers: Sequence[int]) -> list[Event]:
        """See `StepWork`."""
        return [self._events[number] for number in numbers]

    def commit(self, label: CommitLabel) -> dict[str, int]:
        """See `StepWork`."""
        return {name: write_once(table, data, label) for name, (table, data) in self._ready.items()}


def data_of(table: OpenTable, rows: ChangedRows) -> pa.Table:
    """The rows as `Table.write_arrow` takes them. Cost, Raises: as `fill_deletes`"""
    if not table.schema.primary_keys:
        return rows.data.drop_columns([ROW_KIND_COLUMN])
    return fill_deletes(table, rows)


def write_once(table: Table, data: pa.Table, label: CommitLabel) -> int:
    """Write rows in one commit; returns their number, 0 if the commit was made before."""
    if not data.num_rows:
        return 0
    done = table.write_arrow(data, user=label.user, identifier=label.identifier)
    return 0 if done.already_committed else int(data.num_rows)


def shapes_in_order(shapes: Iterable[SeenShape]) -> dict[str, list[SeenShape]]:
    """The distinct columns by target table, each as it occurs first, from shapes of several parts of a step."""
    found: dict[str, dict[object, SeenShape]] = {}
    for shape in sorted(shapes, key=lambda each: each.number):
        found.setdefault(shape.target, {}).setdefault(shape.columns, shape)
    return {target: list(each.values()) for target, each in found.items()}
