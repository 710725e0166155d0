"""Which tables and columns of the sources are taken, and what the tables are called here. Pure.

Source: Java `TableNameConverter`; options `including_tables`, `excluding_tables`, `table_prefix`, `table_suffix`,
`table_mapping`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from paimon_py.cdc.event import Change
from paimon_py.errors import UsageError


class Routes(msgspec.Struct, frozen=True):
    """How source tables become tables of a catalog.

    Attributes:
        including, excluding: patterns that the whole name of a source table matches, as in Java; excluding wins.
        prefix, suffix: what stands before and after the name of every table here.
        names: names of tables here by names of source tables; prefix and suffix do not apply to them.
        keys: primary keys by names of source tables, instead of those that events declare.
        without: columns to leave out, as `table.column` or `column`.
    """

    including: str = ".*"
    excluding: str | None = None
    prefix: str = ""
    suffix: str = ""
    names: Mapping[str, str] = {}
    keys: Mapping[str, tuple[str, ...]] = {}
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("including", "excluding"):
            text = getattr(self, name)
            try:
                re.compile(text or "")
            except (re.error, TypeError) as error:
                raise UsageError(f"{name}={text!r} is no pattern: {error}") from error
        if isinstance(self.without, str):
            raise UsageError(f"without is a list of columns such as ['orders.note'], not {self.without!r}")

    def target(self, table: str) -> str | None:
        """The name of the table here, or None if the source table is not taken."""
        if not re.fullmatch(self.including, table) or (self.excluding and re.fullmatch(self.excluding, table)):
            return None
        return self.names.get(table, f"{self.prefix}{table}{self.suffix}")

    def narrowed(self, change: Change) -> Change:
        """The change with the keys given for its table and without the columns that are left out.

        Raises: UsageError if a column of the primary key is left out.
        """
        change = msgspec.structs.replace(change, keys=tuple(self.keys.get(change.table, change.keys)))
        gone = {name for name in self.without if "." not in name}
        gone |= {name.split(".", 1)[1] for name in self.without if name.startswith(change.table + ".")}
        if gone.isdisjoint(column.name for column in change.columns):
            return change
        if not gone.isdisjoint(change.keys):
            raise UsageError(f"table {change.table!r} has its primary key {list(change.keys)} left out in part")
        columns = tuple(column for column in change.columns if column.name not in gone)
        rows = tuple(
            (kind, {name: value for name, value in row.items() if name not in gone}) for kind, row in change.rows
        )
        return msgspec.structs.replace(change, columns=columns, rows=rows)
