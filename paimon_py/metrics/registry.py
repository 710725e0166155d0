"""Metrics: counters, gauges and histograms, kept by an observer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import Protocol

from paimon_py.metrics import families as names
from paimon_py.metrics.measures import TableMeasures
from paimon_py.metrics.samples import Labels, MetricFamily, Sample, prometheus_text
from paimon_py.parallel import new_lock
from paimon_py.spec.events import (
    CommitEvent,
    CompactionEvent,
    ConflictEvent,
    ExpiryEvent,
    OrphanEvent,
    RaceEvent,
    RollbackEvent,
    SchemaEvent,
    TableEvent,
    TagEvent,
)

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds of the parts of a histogram."""

_INFINITE = float("inf")


class OpenTelemetryMeter(Protocol):
    """The methods of a `Meter` of OpenTelemetry that are used."""

    def create_observable_counter(self, name: str, callbacks: object, unit: str, description: str) -> object:
        """Make a counter that is asked for its numbers."""

    def create_observable_gauge(self, name: str, callbacks: object, unit: str, description: str) -> object:
        """Make a gauge that is asked for its numbers."""


class _Times:
    """Times of one kind: how many by their length, and their sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds


class Metrics:
    """Counts what happens to tables: `catalog.register_observer(metrics)`. Can be used from several threads.

    Counters begin at 0 with the process. Gauges are what `set_measures` was given last.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._counts: dict[tuple[MetricFamily, Labels], float] = {}
        self._times: dict[tuple[MetricFamily, Labels], _Times] = {}
        self._gauges: dict[str, dict[tuple[MetricFamily, Labels], float]] = {}

    def __call__(self, event: TableEvent) -> None:
        """Count an event."""
        labels = {"table": event.table}
        with self._lock:
            match event:
                case CommitEvent():
                    self._count_commit(event, labels)
                case RaceEvent():
                    self._add(names.RACES, labels)
                case ConflictEvent():
                    self._add(names.FAILURES, {**labels, "outcome": event.outcome})
                    self._add(names.ATTEMPTS, labels, event.attempts)
                case CompactionEvent():
                    self._add(names.COMPACTIONS, labels)
                    self._add(names.COMPACTION_FILES, labels, event.before_files)
                    self._add(names.COMPACTION_BYTES, labels, event.read_bytes)
                    self._time(names.COMPACTION_SECONDS, labels, event.seconds)
                case ExpiryEvent():
                    self._add(names.EXPIRED, {**labels, "what": event.what}, event.count)
                    self._add(names.EXPIRED_FILES, {**labels, "what": event.what}, event.deleted_files)
                case OrphanEvent():
                    self._add(names.ORPHANS, labels, event.deleted_files)
                    self._add(names.ORPHAN_BYTES, labels, event.size_bytes)
                case TagEvent():
                    self._add(names.TAGS, {**labels, "action": event.action})
                case RollbackEvent():
                    self._add(names.ROLLBACKS, {**labels, "action": event.action})
                case SchemaEvent():
                    self._add(names.SCHEMAS, labels)
                case _:
                    return

    def count_call(self, operation: str, seconds: float, size_bytes: int, outcome: str) -> None:
        """Count one call to a store."""
        labels = {"operation": operation, "outcome": outcome}
        with self._lock:
            self._add(names.STORE_CALLS, labels)
            if size_bytes:
                self._add(names.STORE_BYTES, labels, size_bytes)
            self._time(names.STORE_SECONDS, {"operation": operation}, seconds)

    def set_measures(self, found: TableMeasures) -> None:
        """Let the gauges of a table be what was seen now."""
        numbers: list[tuple[MetricFamily, Mapping[str, str], float | None]] = [
            (names.SNAPSHOT_ID, {}, found.snapshot_id), (names.SNAPSHOT_AGE, {}, found.snapshot_age_seconds),
            (names.SNAPSHOTS, {}, found.snapshots), (names.TAG_COUNT, {}, found.tags),
            (names.LIVE_FILES, {}, found.file_count), (names.LIVE_BYTES, {}, found.size_bytes),
            (names.LIVE_ROWS, {}, found.record_count), (names.LEVEL_0_MAX, {}, found.level0_files_max),
            (names.RUNS_MAX, {}, found.sorted_runs_max), (names.BACKLOG_FILES, {}, found.backlog_files),
            (names.BACKLOG_BYTES, {}, found.backlog_bytes),
            *((names.LEVEL_FILES, {"level": str(one.level)}, one.file_count) for one in found.levels),
            *((names.LEVEL_BYTES, {"level": str(one.level)}, one.size_bytes) for one in found.levels),
            *((names.CONSUMER_LAG, {"consumer": one.name}, one.snapshots) for one in found.consumers),
        ]  # fmt: skip
        seen = {
            (family, _labels(family, {"table": found.table, **labels})): float(value)
            for family, labels, value in numbers
            if value is not None
        }
        with self._lock:
            self._gauges[found.table] = seen

    def forget(self, table: str) -> None:
        """Forget the gauges of a table, such as one that was dropped; counters stay."""
        with self._lock:
            self._gauges.pop(table, None)

    def samples(self) -> list[Sample]:
        """All numbers, by family and labels."""
        with self._lock:
            found = [Sample(family, labels, value) for (family, labels), value in self._counts.items()]
            for gauges in self._gauges.values():
                found += [Sample(family, labels, value) for (family, labels), value in gauges.items()]
            for (family, labels), times in self._times.items():
                sums = tuple(zip((*BOUNDS, _INFINITE), accumulate(times.counts), strict=True))
                found.append(Sample(family, labels, times.total, sums[-1][1], sums))
        order = {family: place for place, family in enumerate(names.FAMILIES)}
        return sorted(found, key=lambda sample: (order[sample.family], sample.labels))

    def value(self, name: str, **labels: str) -> float:
        """Sum of the numbers of a name that have some labels; of a histogram the sum of its times.

        0 where there is none.
        """
        wanted = labels.items()
        return sum(one.value for one in self.samples() if one.name == name and wanted <= dict(one.labels).items())

    def prometheus(self) -> str:
        """All numbers as text for Prometheus (content type `text/plain; version=0.0.4`)."""
        return prometheus_text(self.samples())

    def export_to(self, meter: OpenTelemetryMeter) -> None:
        """Hand all numbers to a meter of OpenTelemetry, such as `opentelemetry.metrics.get_meter("paimon")`.

        Histograms become two counters, `<name>_count` and `<name>_sum`.

        Raises: UsageError where the package `opentelemetry-api` is not installed (extra `opentelemetry`).
        """
        from paimon_py.metrics.telemetry import export

        export(self, meter)

    def _count_commit(self, event: CommitEvent, labels: Mapping[str, str]) -> None:
        kind = {**labels, "commit_kind": event.commit_kind}
        self._add(names.COMMITS, kind)
        self._add(names.ATTEMPTS, labels, event.attempts)
        self._time(names.COMMIT_SECONDS, labels, event.seconds)
        for family, amount in (
            (names.FILES_ADDED, event.added_files), (names.FILES_DELETED, event.deleted_files),
            (names.ROWS_ADDED, event.added_rows), (names.ROWS_DELETED, event.deleted_rows),
            (names.BYTES_ADDED, event.added_bytes), (names.BYTES_DELETED, event.deleted_bytes),
        ):  # fmt: skip
            self._add(family, kind, amount)
        if event.changelog_rows:
            self._add(names.CHANGELOG_ROWS, labels, event.changelog_rows)

    def _add(self, family: MetricFamily, labels: Mapping[str, str], amount: float = 1) -> None:
        key = family, _labels(family, labels)
        self._counts[key] = self._counts.get(key, 0) + amount

    def _time(self, family: MetricFamily, labels: Mapping[str, str], seconds: float) -> None:
        self._times.setdefault((family, _labels(family, labels)), _Times()).add(seconds)


def _labels(family: MetricFamily, labels: Mapping[str, str]) -> Labels:
    return tuple((name, labels[name]) for name in family.labels)
