"""The runner: rounds over all tables, the most urgent ones first, within a budget, until it is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from paimon_py.catalog.catalog import Catalog
from paimon_py.errors import PaimonError, TableNotFoundError
from paimon_py.logs import GENERAL, fields
from paimon_py.metrics import Metrics
from paimon_py.metrics.measures import TableMeasures, measure_table
from paimon_py.service.duties import (
    ByteBudget,
    MergedFiles,
    compact_within,
    delete_orphans,
    expiry_steps,
    merge_manifests,
)
from paimon_py.service.memory import release_free_memory
from paimon_py.service.settings import CareSettings
from paimon_py.service.stop import StopFlag, StopRequest
from paimon_py.service.urgency import Need, Urgency, urgency
from paimon_py.service.values import CareEntry, CareRound
from paimon_py.table.table import Table

_LOOK_SECONDS = 1.0
"""The interval at which a waiting runner checks whether it should stop."""


class CareState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a runner.

    Attributes:
        began_millis: the start of the runner, in epoch milliseconds.
        rounds: the number of completed rounds.
        last: the last completed round.
        last_end_millis: the end of that round.
        failed_rounds: the number of rounds since the last one in which the tables could be listed.
        is_working: a round is running.
    """

    began_millis: int
    rounds: int = 0
    last: CareRound | None = None
    last_end_millis: int | None = None
    failed_rounds: int = 0
    is_working: bool = False

    def is_healthy(self, now_millis: int, settings: CareSettings) -> bool:
        """Whether a round ended without failure within three intervals plus the time that a round may take."""
        patience = 3 * settings.every + (settings.budget_time or settings.every)
        since = self.began_millis if self.last_end_millis is None else self.last_end_millis
        return self.failed_rounds < 3 and now_millis - since <= patience.total_seconds() * 1000


class _MeasuredTable(NamedTuple):
    """A table with its measures."""

    name: str
    table: Table
    urgency: Urgency


class CareRunner:
    """Maintains the tables of a catalog. Any number of runners may work on a warehouse at the same time.

    Attributes:
        state: the state of the runner.
        metrics: counters of the work of this runner, and gauges of all tables as of the last round.
    """

    def __init__(
        self, catalog: Catalog, settings: CareSettings | None = None, *, stop: StopFlag | None = None
    ) -> None:
        self.metrics = Metrics()
        catalog.register_observer(self.metrics)
        self._catalog = catalog
        self._settings = settings or CareSettings()
        self._stop = stop or StopFlag()
        self._clock = catalog._env.clock
        self._cleaned: dict[str, float] = {}
        self.state = CareState(began_millis=self._clock.millis())

    @property
    def settings(self) -> CareSettings:
        """The settings of the runner."""
        return self._settings

    def run(self, on_round: Callable[[CareRound], object] | None = None, *, rounds: int | None = None) -> None:
        """Run rounds until `StopFlag.request` is called, or a fixed number of rounds.

        A round in which the tables cannot be listed is logged, and the next one tries again.

        Args:
            on_round: called after each round.
        """
        done = 0
        while not self._stop.is_requested and (rounds is None or done < rounds):
            began = self._clock.elapsed()
            try:
                found = self.run_round()
            except PaimonError as error:
                if rounds is not None and done + 1 >= rounds:
                    raise
                failed = fields(None, failed_rounds=self.state.failed_rounds)
                GENERAL.warning("the round failed: %s", error, extra=failed)
            else:
                if on_round is not None:
                    on_round(found)
            done += 1
            if rounds is None or done < rounds:
                self._wait(began + self._settings.every.total_seconds())

    def run_round(self) -> CareRound:
        """Maintain every table once.

        Raises: StorageError, NotFoundError: the tables cannot be listed.
        """
        self.state = msgspec.structs.replace(self.state, is_working=True)
        began, start = self._clock.millis(), self._clock.elapsed()
        try:
            entries, late = self._cared_tables(start)
        except PaimonError:
            failed = self.state.failed_rounds + 1
            self.state = msgspec.structs.replace(self.state, is_working=False, failed_rounds=failed)
            raise
        found = CareRound(
            began_millis=began, seconds=self._clock.elapsed() - start, entries=tuple(entries), out_of_time=tuple(late),
            stopped=self._stop.is_requested,
        )  # fmt: skip
        self.state = msgspec.structs.replace(
            self.state, is_working=False, failed_rounds=0, rounds=self.state.rounds + 1, last=found,
            last_end_millis=self._clock.millis(),
        )  # fmt: skip
        return found

    def _cared_tables(self, start: float) -> tuple[list[CareEntry], list[str]]:
        entries, targets = list[CareEntry](), list[_MeasuredTable]()
        for name in self._names():
            if self._stop.is_requested:
                return entries, []
            target = self._examine(name, entries)
            if target is not None:
                targets.append(target)
        targets.sort(key=lambda one: (one.urgency, one.name), reverse=True)
        budget, late = ByteBudget(self._settings.budget_bytes), list[str]()
        for target in targets:
            if self._stop.is_requested:
                break
            if self._is_late(start):
                late.append(target.name)
                continue
            entries.append(self._care(target, budget, start))
            release_free_memory()
        return entries, late

    def _names(self) -> list[str]:
        databases = self._settings.databases or tuple(self._catalog.databases())
        return [f"{database}.{table}" for database in databases for table in self._catalog.tables(database)]

    def _examine(self, name: str, entries: list[CareEntry]) -> _MeasuredTable | None:
        """Measure a table; None if it no longer exists or cannot be measured."""
        try:
            table = self._catalog.table(name)
            found = measure_table(table)
        except TableNotFoundError:
            self.metrics.forget(name)
            return None
        except PaimonError as error:
            entries.append(CareEntry(table=name, error=str(error)))
            return None
        self.metrics.set_measures(found)
        return _MeasuredTable(name, table, urgency(found, table.schema))

    def _is_late(self, start: float) -> bool:
        limit = self._settings.budget_time
        return limit is not None and self._clock.elapsed() - start >= limit.total_seconds()

    def _care(self, target: _MeasuredTable, budget: ByteBudget, start: float) -> CareEntry:
        """Run all steps for a table; an error ends only the maintenance of this table in this round."""
        entry = CareEntry(table=target.name)
        try:
            if self._settings.compacts:
                entry = self._compact(entry, target, budget)
            if self._settings.expires:
                for field, step in expiry_steps(target.table, self._stop.progress):
                    if self._stop.is_requested or self._is_late(start):
                        return entry
                    entry = msgspec.structs.replace(entry, **{field: getattr(entry, field) + step()})
            if self._are_orphans_due(target.name) and not self._stop.is_requested and not self._is_late(start):
                gone = delete_orphans(target.table, self._settings.orphans_older_than, self._stop.progress)
                self._cleaned[target.name] = self._clock.elapsed()
                entry = msgspec.structs.replace(entry, orphans=gone)
            if entry.did_something:
                self._measure_again(target)
        except StopRequest:
            return entry
        except TableNotFoundError:  # dropped in the meantime
            self.metrics.forget(target.name)
        except PaimonError as error:
            GENERAL.warning("care of %s: %s", target.name, error, extra=fields(target.table._root, error=error.kind))
            return msgspec.structs.replace(entry, error=str(error))
        return entry

    def _compact(self, entry: CareEntry, target: _MeasuredTable, budget: ByteBudget) -> CareEntry:
        need = target.urgency
        if need.need is Need.NOTHING:
            return entry
        if budget.is_over:
            return msgspec.structs.replace(entry, waiting_files=need.backlog_files)
        backlog = MergedFiles(need.backlog_files, need.backlog_bytes)
        done = compact_within(target.table, backlog, budget, self._stop.progress)
        merge_manifests(target.table)
        return msgspec.structs.replace(
            entry, compacted_files=done.files, compacted_bytes=done.size_bytes, waiting_files=done.waiting_files
        )

    def _are_orphans_due(self, name: str) -> bool:
        every, last = self._settings.orphans_every, self._cleaned.get(name)
        return every is not None and (last is None or self._clock.elapsed() - last >= every.total_seconds())

    def _measure_again(self, target: _MeasuredTable) -> None:
        found: TableMeasures = measure_table(target.table)
        self.metrics.set_measures(found)

    def _wait(self, until: float) -> None:
        while not self._stop.is_requested and (left := until - self._clock.elapsed()) > 0:
            self._clock.sleep(min(left, _LOOK_SECONDS))
