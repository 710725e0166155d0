"""Selects the changes that a table accepts and converts them to its rows; the others become dead letters. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from paimon_py.cdc.decoding import Letter, Taken
from paimon_py.cdc.event import Change, SourceColumn
from paimon_py.cdc.fitting import Fitting, fitting
from paimon_py.cdc.rows import ChangedRows, rows_for
from paimon_py.spec.schema import TableSchema

Columns = tuple[SourceColumn, ...]
Refused = Mapping[Columns, str]
"""The reasons why a table cannot store some columns."""


class SeenShape(msgspec.Struct, frozen=True):
    """Columns of changes for a target table, as the first of these changes has them.

    Attributes:
        target: the target table.
        number: the number of the first change's event.
        table: its source table.
        keys: the primary key that it declares.
        columns: the columns.
    """

    target: str
    number: int
    table: str
    keys: tuple[str, ...]
    columns: Columns


def shapes_of(target: str, taken: Iterable[Taken]) -> list[SeenShape]:
    """The distinct columns of changes, in the order in which they occur."""
    found: dict[Columns, SeenShape] = {}
    for item in taken:
        change = item.change
        if change.columns not in found:
            found[change.columns] = SeenShape(target, item.number, change.table, change.keys, change.columns)
    return list(found.values())


def take_rows(
    target: str, schema: TableSchema, refused: Refused, taken: Sequence[Taken], letters: list[Letter]
) -> ChangedRows:
    """The rows of the changes that a table accepts; the others are added to `letters`."""
    asks, accepted = fitting(schema), []
    for item in taken:
        reason = (refused.get(item.change.columns) if refused else None) or _refusal(asks, item.change)
        if reason is None:
            accepted.append(item)
        else:
            letters.append(Letter(item.number, target, reason))
    found = rows_for(schema.fields, [item.change for item in accepted], asks)
    letters.extend(Letter(accepted[place].number, target, reason) for place, reason in found.bad.items())
    return found


def _refusal(asks: Fitting | None, change: Change) -> str | None:
    if asks is not None:
        return asks.refusal(change)
    kind = change.rows[0][0]
    return None if kind == "+I" else f"the table has no primary key: it cannot store rows of kind {kind}"
