"""The target tables of a step whose rows are built and written elsewhere: what is known about them, and the commits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from paimon_py.cdc.event_tasks import TargetSchema, WrittenParcels, unpack
from paimon_py.cdc.step import data_of, write_once
from paimon_py.cdc.taken import SeenShape
from paimon_py.cdc.taking import Columns
from paimon_py.cdc.target_tables import FittedTable
from paimon_py.commit.changes import Changes
from paimon_py.commit.commit import committed_before
from paimon_py.commit.uncommitted import discard, discarding_on_failure
from paimon_py.maintain.observers import notify_again
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.schema import TableSchema
from paimon_py.table.table import Table

IsStale = Callable[[Iterable[SeenShape]], bool]
"""Whether rows were built for other schemas than the tables have now, from the columns that were seen with them."""


class StepTargets:
    """The target tables of a step.

    Args:
        writers: returns the number of tasks among which the rows of a table are divided.

    Attributes:
        schemas: what tasks that build rows have to know, by target.
        tables: the tables that can store rows.
    """

    def __init__(self, writers: Callable[[TableSchema], int]) -> None:
        self._writers = writers
        self.schemas: dict[str, TargetSchema] = {}
        self.tables: dict[str, Table] = {}

    def know(self, known: Mapping[str, Table]) -> None:
        """Take tables as they are before the step."""
        self.schemas = {name: TargetSchema(table.schema, self._writers(table.schema)) for name, table in known.items()}

    def fit(self, fitted: Mapping[str, FittedTable]) -> IsStale:
        """Take tables as they were created or altered."""
        changed, refusing = set(), set[tuple[str, Columns]]()
        for name, (table, refused, _) in fitted.items():
            if table is not None:
                self.tables[name] = table
            known = self.schemas.get(name)
            is_known = known is not None and table is not None and known.schema == table.schema
            if not is_known:
                changed.add(name)
            if refused or not is_known:
                schema = None if table is None else table.schema
                writers = 1 if schema is None else self._writers(schema)
                self.schemas[name] = TargetSchema(schema, writers, refused, is_fitted=True)
                refusing.update((name, columns) for columns in refused)
        return lambda shapes: any(
            shape.target in changed or (shape.target, shape.columns) in refusing for shape in shapes
        )

    def names_to_write(self, label: CommitLabel) -> list[str]:
        """The tables that have not committed the step."""
        found = []
        for name, table in self.tables.items():
            known = committed_before(table._open_table, label)
            if known is None:
                found.append(name)
            else:
                notify_again(table._open_table, known)
        return found

    def is_moving(self, name: str) -> bool:
        """Whether keys of the table move between partitions: this process writes it."""
        return bucket_mode(self.tables[name].schema) is BucketMode.CROSS_PARTITION

    def for_tasks(self, names: Iterable[str]) -> dict[str, tuple[OpenTable, int]]:
        """The properties of tables that writing tasks need."""
        return {name: (self.tables[name]._open_table, self.schemas[name].writers) for name in names}

    def commit(
        self, written: Sequence[WrittenParcels], moving: Mapping[str, Sequence[bytes]], label: CommitLabel
    ) -> dict[str, int]:  # fmt: skip
        """Commit what was written, one table after the other; returns the number of rows by table.

        A failure deletes the files of tables that are not committed.

        Args:
            moving: the parcels of tables that this process writes.
        """
        rows, left = dict.fromkeys(self.tables, 0), _changes_by_table(written)
        counts = {name: sum(each.rows for each in written if each.target == name) for name in left}
        try:
            for name, table in self.tables.items():
                if moving.get(name):
                    rows[name] = write_once(table, data_of(table._open_table, unpack(moving[name])), label)
                elif name in left:
                    rows[name] = counts[name] if _commit(table, left.pop(name), label) else 0
        finally:
            for name, changes in left.items():
                discard(self.tables[name]._open_table, changes)
        return rows


def _changes_by_table(written: Iterable[WrittenParcels]) -> dict[str, Changes]:
    found: dict[str, list[Changes]] = {}
    for each in written:
        if each.changes is not None:
            found.setdefault(each.target, []).append(each.changes)
    return {name: Changes.concat(parts) for name, parts in found.items()}


def _commit(table: Table, changes: Changes, label: CommitLabel) -> bool:
    """Commit the changes of a table; returns whether they had not been committed before."""
    with discarding_on_failure(lambda: discard(table._open_table, changes)):
        return not table.commit(changes, user=label.user, identifier=label.identifier).already_committed
