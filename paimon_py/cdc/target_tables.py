"""Finds, creates and alters the tables of a database so that they can store the columns of changes.

Source: Java `CdcDynamicTableParsingProcessFunction`, `UpdatedDataFieldsProcessFunctionBase`.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from paimon_py.catalog.catalog import Catalog
from paimon_py.cdc.event import InvalidEvent
from paimon_py.cdc.evolve import changes_for, to_nanoseconds
from paimon_py.cdc.routes import Routes
from paimon_py.cdc.taken import SeenShape
from paimon_py.cdc.taking import Refused
from paimon_py.errors import DatabaseNotFoundError, TableNotFoundError, UsageError
from paimon_py.expr.column import col
from paimon_py.scan.request import every_bucket
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.schema_changes import UpdateColumnType
from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.table.table import Table

_NANOS_FROM, _NANOS_TO = map(datetime.datetime.fromisoformat, ("1678-01-01", "2261-12-31"))


class FittedTable(NamedTuple):
    """A table that can store the columns of changes.

    Attributes:
        table: the table; None if it does not exist and cannot be created.
        refused: the columns that it cannot store, with the reasons.
        altered: the number of schema changes.
    """

    table: Table | None
    refused: Refused
    altered: int


class TargetTables:
    """The tables of one database.

    Args:
        options: the options of created tables.
    """

    def __init__(self, catalog: Catalog, database: str, routes: Routes, options: Mapping[str, str]) -> None:
        self._catalog, self._database, self._routes, self._options = catalog, database, routes, options

    def find(self, name: str) -> Table | None:
        """The table; None if it does not exist, or the name is invalid: its changes then become dead letters."""
        try:
            table = self._catalog.table(f"{self._database}.{name}")
        except (TableNotFoundError, DatabaseNotFoundError, UsageError):
            return None
        return table if type(table) is Table else None

    def names(self) -> set[str]:
        """The names of all tables."""
        try:
            return set(self._catalog.tables(self._database))
        except DatabaseNotFoundError:
            return set()

    def fit(self, table: Table | None, name: str, shapes: Iterable[SeenShape]) -> FittedTable:
        """Create or alter a table so that it can store all columns that are possible, in the order of the shapes.

        Raises: PaimonError of storage and commits.
        """
        refused, altered = {}, 0
        for shape in shapes:
            try:
                table, number = self._fit(table, name, shape)
                altered += number
            except UsageError as error:
                refused[shape.columns] = str(error)
        return FittedTable(table, refused, altered)

    def _fit(self, table: Table | None, name: str, shape: SeenShape) -> tuple[Table, int]:
        """The table after the schema changes that columns require, and their number.

        Raises: UsageError if the table cannot store the columns.
        """
        full = f"{self._database}.{name}"
        try:
            table = table or self._catalog.table(full)
        except TableNotFoundError:
            return self._create(full, shape), 0
        if type(table) is not Table:
            raise UsageError(f"{full!r} is a system table: give the source table another name by names= of Routes")
        asked = changes_for(table.schema.fields, shape.columns, self._routes.types)
        if isinstance(asked, InvalidEvent):
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
                    " TIMESTAMP(9) does not hold: nanoseconds cannot be kept together with them"
                )
        table.alter(*asked)
        return self._catalog.table(full), len(asked)

    def _create(self, full: str, shape: SeenShape) -> Table:
        known = [column.name for column in shape.columns]
        routes = self._routes
        parts = tuple(map(routes.name_here, routes.partitions.get(shape.table, ())))
        for what, names in (("key", shape.keys), ("partition key", parts)):
            if not set(names) <= set(known):
                raise UsageError(f"the {what} {list(names)} is not among the columns {known}")
        columns = [
            (column.name, sql_type(with_nullability(column.type, column.name not in shape.keys)))
            for column in shape.columns
        ]
        return self._catalog.create_table(
            full, Schema(columns), primary_key=list(shape.keys), partition_by=parts, options=self._options,
            exist_ok=True,
        )  # fmt: skip
