"""Writes events of several tables to the tables of one catalog, exactly once.

Source: Java `FlinkCdcMultiTableSink`, `RichCdcMultiplexRecordEventParser`; dead letters are ours.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from paimon_py.arguments import as_mapping
from paimon_py.catalog.catalog import Catalog
from paimon_py.cdc import canal, debezium, maxwell
from paimon_py.cdc.event import Bad, Change, Decoded, Event, NoChange, SourceColumn, events_of
from paimon_py.cdc.evolve import changes_for, to_nanoseconds
from paimon_py.cdc.fitting import fitting
from paimon_py.cdc.routes import Routes
from paimon_py.cdc.rows import rows_for
from paimon_py.cdc.shaping import Shaping
from paimon_py.cdc.standing_rows import fill_deletes
from paimon_py.commit.commit import committed_before
from paimon_py.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptionError,
    DatabaseNotFoundError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.expr.predicate import col
from paimon_py.scan.request import every_bucket
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.options import check_values
from paimon_py.spec.schema_changes import UpdateColumnType
from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.spec.users import StepNumber
from paimon_py.table.table import Table

DECODERS: Mapping[str, Callable[[Event], Decoded]] = {
    "debezium-json": debezium.decode_parts, "canal-json": canal.decode_parts, "maxwell-json": maxwell.decode,
}  # fmt: skip
DEAD_LETTERS = Schema(
    [
        ("identifier", "BIGINT"), ("topic", "STRING"), ("position", "STRING"), ("table", "STRING"),
        ("reason", "STRING"), ("key", "BYTES"), ("value", "BYTES"),
    ]
)  # fmt: skip


class Synced(msgspec.Struct, frozen=True):
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


class _Letter(msgspec.Struct, frozen=True):
    event: Event
    table: str
    reason: str


class _Taken(msgspec.Struct, frozen=True):
    event: Event
    change: Change


_NANOS_FROM, _NANOS_TO = map(datetime.datetime.fromisoformat, ("1678-01-01", "2261-12-31"))
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
        self._shaping = Shaping(self.routes)
        self._catalog, self._database = catalog, database
        self._asked: int | None = None
        self._decode = format if callable(format) else DECODERS[format]

    def write(self, events: object, *, identifier: int) -> Synced:
        """Apply events in order: one commit for the dead letters first, then one per changed table.

        A step that was interrupted is completed by the same events with the same identifier, in any order: tables that
        have committed the identifier are skipped. Each commit is atomic by itself; readers may see one table before
        another. Identifiers increase from step to step.

        Args:
            events: input of `events_of`.

        Cost: memory for the rows of all events; one commit per table, and one more per row shape that needs another
            schema. The first call reads the latest snapshot of every table in the database.
        Raises:
            UsageError: invalid events, or a source table with the name of the table for dead letters.
            UsageError, CommitConflictError: a table of the database has committed a larger identifier for the user,
                or different events under this one: the position in the source was lost. Nothing is created, altered or
                written.
            PaimonError: errors of storage and commits, unchanged.
        """
        if not isinstance(identifier, int) or isinstance(identifier, bool) or identifier < 0:
            raise UsageError(f"identifier is a whole number that grows from step to step, not {identifier!r}")
        given = list(events_of(events))
        step = StepNumber(identifier, _digest(given))
        taken, letters, skipped = self._sort_events(given)
        known = self._find_tables(step, taken) if taken or letters else {}
        if taken or letters:
            self._catalog.create_database(self._database, exist_ok=True)
        ready: dict[str, tuple[Table, pa.Table]] = {}
        altered: dict[str, int] = {}
        for name, changes in taken.items():
            table, fit, altered[name] = self._prepare(known.get(name), name, changes, letters)
            if table is not None:
                ready[name] = table, self._rows(table, name, fit, letters)
        if letters:
            self._bury(letters, step)
        rows = {name: self._commit(table, data, step) for name, (table, data) in ready.items()}
        return Synced(rows=rows, dead=len(letters), skipped=skipped, altered={k: v for k, v in altered.items() if v})

    def _find_tables(self, step: StepNumber, targets: Iterable[str]) -> dict[str, Table]:
        """The existing tables, after each was checked for the step; nothing is changed before.

        All tables of the database are checked, unless this sink has already written a smaller identifier: then those of
        the step. A table outside the step that cannot be read is ignored.
        Raises: UsageError, CommitConflictError if a table has committed a different step.
        """
        wanted = {*targets, self.dead_letters}
        every = set() if self._asked is not None and self._asked < step else self._table_names()
        found: dict[str, Table] = {}
        for name in sorted(wanted | every):
            try:
                table = self._find_table(name)
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

    def _find_table(self, name: str) -> Table | None:
        """The table; None if it does not exist, or the name is invalid: its changes then become dead letters."""
        try:
            table = self._catalog.table(f"{self._database}.{name}")
        except (TableNotFoundError, DatabaseNotFoundError, UsageError):
            return None
        return table if type(table) is Table else None

    def _table_names(self) -> set[str]:
        try:
            return set(self._catalog.tables(self._database))
        except DatabaseNotFoundError:
            return set()

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

    def _sort_events(self, events: Iterable[Event]) -> tuple[dict[str, list[_Taken]], list[_Letter], dict[str, int]]:
        taken: dict[str, list[_Taken]] = {}
        letters: list[_Letter] = []
        skipped: dict[str, int] = {}
        for event in events:
            decoded = self._decode(event)
            if not isinstance(decoded, (Change, Bad, NoChange)):
                raise UsageError(
                    f"a decoder makes a Change, a NoChange or a Bad of each event, not {type(decoded).__name__},"
                    f" as of the one at {event.position!r} of topic {event.topic!r}"
                )
            if isinstance(decoded, Bad):
                letters.append(_Letter(event, "", decoded.reason))
                continue
            target = None if isinstance(decoded, NoChange) else self.routes.target(decoded.table, decoded.database)
            if isinstance(decoded, NoChange) or target is None:
                reason = decoded.reason if isinstance(decoded, NoChange) else f"table {decoded.table} is not taken"
                skipped[reason] = skipped.get(reason, 0) + 1
                continue
            if target == self.dead_letters:
                raise UsageError(f"table {target!r} is the one for dead letters: choose dead_letters= or another name")
            shaped = self._shaping.shape(decoded, event)
            if isinstance(shaped, Bad):
                letters.append(_Letter(event, target, shaped.reason))
            else:
                taken.setdefault(target, []).append(_Taken(event, shaped))
        return taken, letters, skipped

    def _prepare(
        self, table: Table | None, name: str, changes: Sequence[_Taken], letters: list[_Letter]
    ) -> tuple[Table | None, list[_Taken], int]:
        """The table with a schema that fits the rows, the changes that fit, and the number of schema changes."""
        refused: dict[tuple[SourceColumn, ...], str] = {}
        known: set[tuple[SourceColumn, ...]] = set()
        asks, altered, taken = None, 0, []
        for item in changes:
            shape = item.change.columns
            if shape not in known:
                known.add(shape)
                try:
                    table, number = self._shape(table, name, item.change)
                    altered += number
                except UsageError as error:
                    refused[shape] = str(error)
            reason = refused.get(shape)
            kind = item.change.rows[0][0]
            if reason is None and kind != "+I" and table is not None and not table.schema.primary_keys:
                reason = f"the table has no primary key: it cannot store rows of kind {kind}"
            if reason is None and table is not None:
                asks = asks or fitting(table.schema)
                reason = asks.refusal(item.change) if asks else None
            if reason is None:
                taken.append(item)
            else:
                letters.append(_Letter(item.event, name, reason))
        return table, taken, altered

    def _shape(self, table: Table | None, name: str, change: Change) -> tuple[Table, int]:
        """The table after the schema changes that a change requires, and their number.

        Raises: UsageError if the table cannot store the columns.
        """
        full = f"{self._database}.{name}"
        try:
            table = table or self._catalog.table(full)
        except TableNotFoundError:
            return self._create(full, change), 0
        if type(table) is not Table:
            raise UsageError(f"{full!r} is a system table: give the source table another name by names= of Routes")
        asked = changes_for(table.schema.fields, change.columns, self.routes.types)
        if isinstance(asked, Bad):
            raise UsageError(asked.reason)
        if not asked:
            return table, 0
        for each in asked:
            if isinstance(each, UpdateColumnType) and each.column in table.schema.primary_keys:
                raise UsageError(
                    f"column {each.column!r} of the primary key is {sql_type(each.type)} in the event, and a key"
                    " keeps its type: copy the table into one with the wider key, as docs/cdc.md shows under"
                    " 'A key that widens', and write the dead letters again"
                )
        for name in to_nanoseconds(table.schema.fields, asked):
            outside = (col(name) < _NANOS_FROM) | (col(name) > _NANOS_TO)
            whole = Table(table._root, every_bucket(table.schema), table.name)
            if whole.scan(columns=[name], where=outside, limit=1).to_arrow().num_rows:
                raise UsageError(
                    f"column {name!r} holds years before {_NANOS_FROM.year} or after {_NANOS_TO.year}, which a"
                    " TIMESTAMP(9) does not hold: nanoseconds cannot be kept beside them"
                )
        table.alter(*asked)
        return self._catalog.table(full), len(asked)

    def _create(self, full: str, change: Change) -> Table:
        known = [column.name for column in change.columns]
        parts = tuple(map(self.routes.name_here, self.routes.partitions.get(change.table, ())))
        for what, names in (("key", change.keys), ("partition key", parts)):
            if not set(names) <= set(known):
                raise UsageError(f"the {what} {list(names)} is not among the columns {known}")
        columns = [
            (column.name, sql_type(with_nullability(column.type, column.name not in change.keys)))
            for column in change.columns
        ]
        return self._catalog.create_table(
            full, Schema(columns), primary_key=list(change.keys), partition_by=parts, options=self.options,
            exist_ok=True,
        )  # fmt: skip

    def _rows(self, table: Table, name: str, taken: Sequence[_Taken], letters: list[_Letter]) -> pa.Table:
        found = rows_for(table.schema.fields, [item.change for item in taken], fitting(table.schema))
        letters.extend(_Letter(taken[number].event, name, reason) for number, reason in sorted(found.bad.items()))
        if not table.schema.primary_keys:
            return found.data.drop_columns(["_row_kind"])
        return fill_deletes(table._open_table, found)

    def _bury(self, letters: Sequence[_Letter], step: StepNumber) -> None:
        full = f"{self._database}.{self.dead_letters}"
        try:
            table = self._catalog.create_table(full, DEAD_LETTERS)
        except AlreadyExistsError:
            table = self._catalog.table(full)
        columns = {
            "identifier": [int(step)] * len(letters), "topic": [letter.event.topic for letter in letters],
            "position": [letter.event.position for letter in letters], "table": [letter.table for letter in letters],
            "reason": [letter.reason for letter in letters], "key": [letter.event.key for letter in letters],
            "value": [letter.event.value for letter in letters],
        }  # fmt: skip
        self._commit(table, pa.table(columns), step)

    def _commit(self, table: Table, data: pa.Table, step: StepNumber) -> int:
        if not data.num_rows:
            return 0
        done = table.write_arrow(data, user=self.user, identifier=step)
        return 0 if done.already_committed else int(data.num_rows)


def _digest(events: Iterable[Event]) -> str:
    """A digest of the events of a step, independent of their order."""
    count = total = 0
    for event in events:
        content = msgspec.msgpack.encode((event.topic, event.key, event.value))
        total += int.from_bytes(hashlib.sha256(content).digest()[:16], "big")
        count += 1
    return f"{count} events, {total % (1 << 128):032x}"
