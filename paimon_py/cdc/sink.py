"""Writes events of several tables to the tables of one catalog, exactly once.

Source: Java `FlinkCdcMultiTableSink`, `RichCdcMultiplexRecordEventParser`; dead letters are ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from paimon_py.arguments import as_mapping
from paimon_py.catalog.catalog import Catalog
from paimon_py.cdc.decoding import DECODERS, Decoding, Letter
from paimon_py.cdc.event import Decoded, Event, events_of
from paimon_py.cdc.event_shares import EventShares
from paimon_py.cdc.routes import Routes
from paimon_py.cdc.step import StepHere, StepWork, write_once
from paimon_py.cdc.step_by_tasks import StepByTasks
from paimon_py.cdc.step_of_shares import StepOfShares
from paimon_py.cdc.target_tables import TargetTables
from paimon_py.commit.commit import committed_before
from paimon_py.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptionError,
    UnsupportedError,
    UsageError,
)
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.options import check_values
from paimon_py.spec.users import StepNumber
from paimon_py.table.table import Table

DEAD_LETTERS = Schema(
    [
        ("identifier", "BIGINT"), ("topic", "STRING"), ("position", "STRING"), ("table", "STRING"),
        ("reason", "STRING"), ("key", "BYTES"), ("value", "BYTES"),
    ]
)  # fmt: skip


class SinkResult(msgspec.Struct, frozen=True):
    """The results of one step.

    Attributes:
        rows: the number of rows committed, by table; 0 for tables that had committed the step before.
        dead: the number of dead letters.
        skipped: the number of events that change no row, by reason.
        altered: the number of schema changes, by table.
    """

    rows: Mapping[str, int]
    dead: int
    skipped: Mapping[str, int]
    altered: Mapping[str, int]


_NAMED = {"database": "database", "dead_letters": "table in the database"}


class Sink:
    """Writes change events to the tables of one database, which it creates and alters as needed.

    Attributes:
        user: the user name of commits; one name for one stream of events, forever.
        routes: selects source tables and columns, and names target tables.
        options: the options of tables that the sink creates.
        dead_letters: the table for events that cannot be applied.
    """

    def __init__(
        self, catalog: Catalog, database: str, *, user: str, format: str | Callable[[Event], Decoded] = "debezium-json",
        routes: Routes | None = None, options: Mapping[str, str] | None = None,
        dead_letters: str = "cdc_dead_letters",
    ) -> None:  # fmt: skip
        """
        Args:
            format: the format of events: a name, or a decoder, such as `avro_decoder` returns.
        Raises: UsageError for an unknown format, an empty user, and other arguments of wrong types; OptionError for an
            option with an invalid value.
        """
        if not isinstance(catalog, Catalog):
            raise UsageError(f"a sink writes into a catalog, such as Catalog.open('warehouse'), not {catalog!r}")
        for name, text in (("database", database), ("dead_letters", dead_letters)):
            if not isinstance(text, str) or not text:
                raise UsageError(f"{name} is the name of a {_NAMED[name]}, not {text!r}")
        if routes is not None and not isinstance(routes, Routes):
            raise UsageError(f"routes are Routes(…), not {routes!r}")
        if not callable(format) and format not in DECODERS:
            raise UsageError(f"format={format!r} is neither one of {sorted(DECODERS)} nor a decoder")
        if not isinstance(user, str) or not user:
            raise UsageError(f"user is the name under which commits are made, not {user!r}")
        self.user, self.routes, self.options = user, routes or Routes(), as_mapping("options", options)
        check_values(self.options)
        self.dead_letters = dead_letters
        self._catalog, self._database = catalog, database
        self._asked: int | None = None
        self._targets: set[str] = set()
        self._decoding = Decoding(format, self.routes, dead_letters)
        self._tables = TargetTables(catalog, database, self.routes, self.options)

    def write(self, events: object, *, identifier: int, executor: Executor | None = None) -> SinkResult:
        """Apply events in order: one commit for the dead letters first, then one per changed table.

        A step that was interrupted is completed by the same events with the same identifier, in any order: tables that
        have committed the identifier are skipped. Each commit is atomic by itself; readers may see one table before
        another. Identifiers increase from step to step.

        Args:
            events: input of `events_of`; or `SparkEvents`, whose events and rows stay on the executors of Spark.
            executor: who decodes the events and writes the rows; None: this process. The result is the same. Events and
                rows pass through this process as bytes.

        Cost: memory for the rows of all events; one commit per table, and one more per row shape that needs another
            schema. The first call reads the latest snapshot of every table in the database. With an executor, events of
            tables that are created or altered are decoded twice.

        Raises:
            UsageError: invalid events, or a source table with the name of the table for dead letters.
            UsageError, CommitConflictError: a table of the database has committed a larger identifier for the user,
                or different events under this one: the position in the source was lost. Nothing is created, altered or
                written.
            PaimonError: errors of storage and commits, unchanged.
        """
        if not isinstance(identifier, int) or isinstance(identifier, bool) or identifier < 0:
            raise UsageError(f"identifier is a whole number that grows from step to step, not {identifier!r}")
        require_executor(executor)
        if isinstance(events, EventShares):
            if executor is not None:
                raise UsageError("the engine that has the events runs the step: leave executor= out")
            names = self._tables.names() if self._asked is None else self._targets
            with contextlib.closing(StepOfShares(events, self._decoding, names)) as step:
                return self._write(step, identifier)
        given = list(events_of(events))
        if executor is not None:
            return self._write(StepByTasks(executor, self._decoding, given), identifier)
        return self._write(StepHere(self._decoding, given), identifier)

    def _write(self, work: StepWork, identifier: int) -> SinkResult:
        known = self._find_known(work.sample())
        survey = work.survey(known)
        step = StepNumber(identifier, str(survey.digest))
        if not survey.is_empty:
            known = self._find_tables(step, survey.shapes, known)
            self._catalog.create_database(self._database, exist_ok=True)
        fitted = {name: self._tables.fit(known.get(name), name, shapes) for name, shapes in survey.shapes.items()}
        letters = sorted(work.build(fitted), key=lambda letter: letter.number)
        if letters:
            self._bury(work.events_at([letter.number for letter in letters]), letters, step)
        rows = work.commit(CommitLabel(self.user, step))
        altered = {name: each.altered for name, each in fitted.items() if each.altered}
        self._targets.update(fitted)
        return SinkResult(rows=rows, dead=len(letters), skipped=survey.skipped, altered=altered)

    def _find_known(self, names: Iterable[str]) -> dict[str, Table]:
        """The existing tables of these names, without those that cannot be read."""
        found = {}
        for name in names:
            try:
                table = self._tables.find(name)
            except (UnsupportedError, CorruptionError):
                continue  # raised later if the step needs the table
            if table is not None:
                found[name] = table
        return found

    def _find_tables(
        self, step: StepNumber, targets: Iterable[str], known: Mapping[str, Table]
    ) -> dict[str, Table]:
        """The existing tables, after each was checked for the step; nothing is changed before.

        All tables of the database are checked, unless this sink has already written a smaller identifier: then those of
        the step. A table outside the step that cannot be read is ignored.
        Raises: UsageError, CommitConflictError if a table has committed a different step.
        """
        wanted = {*targets, self.dead_letters}
        every = set() if self._asked is not None and self._asked < step else self._tables.names()
        found: dict[str, Table] = {}
        for name in sorted(wanted | every):
            try:
                table = known.get(name) or self._tables.find(name)
                if table is None:
                    continue
                self._require_same_step(table, step)
            except (UnsupportedError, CorruptionError):
                if name in wanted:
                    raise
                continue
            found[name] = table
        self._asked = step
        return found

    def _require_same_step(self, table: Table, step: StepNumber) -> None:
        """Refuse a step that differs from the one that a table has committed under its identifier.

        Raises: UsageError, CommitConflictError
        """
        try:
            committed_before(table._open_table, CommitLabel(self.user, step))
        except (UsageError, CommitConflictError) as error:
            kind = UsageError if isinstance(error, UsageError) else CommitConflictError
            raise kind(
                f"{table.name}: {error}. In a sink this means that the position in the source was lost, or is older"
                f" than the tables, and identifier {int(step)} holds other events now. Bring the newest checkpoint"
                " back; or let the source begin after what the tables have, under a new name as user="
            ) from error

    def _bury(self, dead: Sequence[Event], letters: Sequence[Letter], step: StepNumber) -> None:
        full = f"{self._database}.{self.dead_letters}"
        try:
            table = self._catalog.create_table(full, DEAD_LETTERS)
        except AlreadyExistsError:
            table = self._catalog.table(full)
        columns = {
            "identifier": [int(step)] * len(letters), "topic": [event.topic for event in dead],
            "position": [event.position for event in dead], "table": [letter.table for letter in letters],
            "reason": [letter.reason for letter in letters], "key": [event.key for event in dead],
            "value": [event.value for event in dead],
        }  # fmt: skip
        write_once(table, pa.table(columns), CommitLabel(self.user, step))
