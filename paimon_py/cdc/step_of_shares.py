"""One step of a sink whose events stay in the processes of an engine; this process gets reports, and commits."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from paimon_py.cdc.decoding import Decoding, Letter
from paimon_py.cdc.digest import EventsDigest
from paimon_py.cdc.event import Event
from paimon_py.cdc.event_shares import (
    DecodePart,
    EventShares,
    EventsReport,
    Place,
    SentParcel,
    WriteEventsPart,
    WrittenEvents,
)
from paimon_py.cdc.event_tasks import WRITE, ReadShared
from paimon_py.cdc.step import Survey, shapes_in_order
from paimon_py.cdc.step_by_tasks import writers_for
from paimon_py.cdc.step_targets import StepTargets
from paimon_py.cdc.taken import SeenShape
from paimon_py.cdc.target_tables import FittedTable
from paimon_py.errors import ResourceError, UsageError
from paimon_py.executors.job import Job
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.table.table import Table

_ROUNDS = 3
_LOST = (
    "nothing was written: rows came to their writers other than they had been reported, in several rounds; find out "
    "why executors die, and write the events again"
)


class StepOfShares:
    """A step whose events are decoded, and whose rows are written, where an engine has them.

    Args:
        names: tables that may exist already; a table that is missing here costs a second decoding of all events.
    """

    def __init__(self, shares: EventShares, decoding: Decoding, names: set[str]) -> None:
        self._shares, self._decoding, self._names = shares, decoding, names
        self._targets = StepTargets(lambda schema: writers_for(schema, shares.processes))
        self._reports: list[EventsReport] = []
        self._events: dict[int, Event] = {}

    def sample(self) -> set[str]:
        """See `StepWork`."""
        return self._names

    def survey(self, known: Mapping[str, Table]) -> Survey:
        """See `StepWork`."""
        self._targets.know(known)
        self._decode()
        skipped: Counter[str] = Counter()
        shapes: list[SeenShape] = []
        for start, report in self._with_starts():
            skipped.update(report.skipped)
            shapes += [msgspec.structs.replace(each, number=start + each.number) for each in report.shapes]
        is_empty = not shapes and not any(report.letters for report in self._reports)
        return Survey(_digest(self._reports), dict(skipped), shapes_in_order(shapes), is_empty)

    def build(self, fitted: Mapping[str, FittedTable]) -> list[Letter]:
        """See `StepWork`. Decodes all events again if a table was created or altered, or refuses columns.

        Raises: UsageError if the engine has other events then.
        """
        is_stale = self._targets.fit(fitted)
        if any(is_stale(report.shapes) for report in self._reports):
            before = _digest(self._reports)
            self._decode()
            if _digest(self._reports) != before:
                raise UsageError(
                    "the DataFrame has other events each time it is computed, so that they cannot be written once: "
                    "write those of a source that keeps them, such as Kafka, or persist the DataFrame"
                )
        letters = []
        for start, report in self._with_starts():
            for letter, event in zip(report.letters, report.dead, strict=True):
                number = start + letter.number
                letters.append(Letter(number, letter.table, letter.reason))
                self._events[number] = event
        return letters

    def events_at(self, numbers: Sequence[int]) -> list[Event]:
        """See `StepWork`."""
        return [self._events[number] for number in numbers]

    def commit(self, label: CommitLabel) -> dict[str, int]:
        """See `StepWork`. All tables are written before the first one is committed.

        Raises: ResourceError if processes were lost in every round; no file is left then.
        """
        targets = self._targets
        names = targets.names_to_write(label)
        here = [name for name in names if targets.is_moving(name)]
        there = [name for name in names if name not in here]
        moving = self._bring(here)
        written = self._write(there)
        written.sort(key=lambda each: each.parcels[0][0])
        return targets.commit([each.written for each in written], moving, label)

    def _decode(self) -> None:
        """Decode all events, and put the reports in the order of the source; if runs overlap, sort the events first."""
        part = DecodePart(ReadShared(self._decoding, self._targets.schemas), self._shares.processes)
        reports = _in_order(self._shares.decode(part))
        if any(one.last > other.first for one, other in itertools.pairwise(reports)):
            self._shares.close()
            self._shares = self._shares.in_order()
            reports = _in_order(self._shares.decode(part))
        self._reports = reports

    def _with_starts(self) -> list[tuple[int, EventsReport]]:
        """The reports, each with the number of its first event in the step."""
        found, start = [], 0
        for report in self._reports:
            found.append((start, report))
            start += report.digest.count
        return found

    def _bring(self, names: Sequence[str]) -> dict[str, list[bytes]]:
        """The parcels of tables that this process writes, in the order of the source."""
        expected = self._marks_of(names)
        if not expected:
            return {}
        parcels = sorted(map(SentParcel.from_bytes, self._shares.bring()), key=lambda each: each.first)
        own = [each for each in parcels if each.target in names]
        if Counter((each.target, each.writer, each.first, zlib.crc32(each.data)) for each in own) != expected:
            raise ResourceError(_LOST)
        return {name: [each.data for each in own if each.target == name] for name in names}

    def _write(self, names: Sequence[str]) -> list[WrittenEvents]:
        """Write the parcels of tables, each once: what comes back is compared with what was reported.

        If an executor is lost, an engine may compute its parcels again, after others took parcels from it.
        """
        expected = self._marks_of(names)
        if not expected:
            return []
        part = WriteEventsPart(Job(WRITE, None, self._targets.for_tasks(names)))
        for _ in range(_ROUNDS):
            done = self._shares.write(part)
            results = [WrittenEvents.from_bytes(each) for each in done]
            came = Counter(
                (each.written.target, each.writer, first, mark) for each in results for first, mark in each.parcels
            )
            if came == expected:
                return results
            part.discard(done)
        raise ResourceError(_LOST)

    def _marks_of(self, names: Sequence[str]) -> Counter[tuple[str, int, Place, int]]:
        """The parcels of tables, as they were reported."""
        return Counter(
            (target, writer, report.first, mark)
            for report in self._reports for target, writer, mark in report.parcels if target in names
        )  # fmt: skip

    def close(self) -> None:
        """Drop what the engine keeps."""
        self._shares.close()


def _in_order(reports: Sequence[bytes]) -> list[EventsReport]:
    def places(report: EventsReport) -> tuple[Place, Place]:
        return report.first, report.last

    return sorted(map(EventsReport.from_bytes, reports), key=places)


def _digest(reports: Sequence[EventsReport]) -> EventsDigest:
    digest = EventsDigest()
    for report in reports:
        digest = digest.plus(report.digest)
    return digest
