"""Selects the changes that a table accepts and converts them to its rows; the others become dead letters. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.cdc.decoding import Letter
from paimon_py.cdc.event import Change, SourceColumn
from paimon_py.cdc.fitting import Fitting, fitting
from paimon_py.cdc.rows import ChangedRows, ShapedRows, rows_for
from paimon_py.cdc.taken import TakenChanges
from paimon_py.spec.schema import TableSchema

Columns = tuple[SourceColumn, ...]
Refused = Mapping[Columns, str]
"""The reasons why a table cannot store some columns."""


def take_rows(
    target: str, schema: TableSchema, refused: Refused, taken: TakenChanges, letters: list[Letter]
) -> ChangedRows:
    """The rows of the changes that a table accepts; the others are added to `letters`."""
    asks, bad = fitting(schema), dict[int, str]()
    accepted: list[ShapedRows] = []
    for part in taken.parts:
        if part.columns in refused:
            letters += letters_of(target, part, refused)
            continue
        for change, numbers in part.alike.values():
            reason = _refusal(asks, change)
            if reason is not None:
                bad.update(dict.fromkeys(numbers, reason))
        accepted.append(part)
    found = rows_for(schema.fields, accepted, bad, asks)
    letters.extend(Letter(number, target, reason) for number, reason in found.bad.items())
    return found


def letters_of(target: str, part: ShapedRows, refused: Refused) -> list[Letter]:
    """The dead letters of all changes of a part, whose columns the table refuses."""
    reason = refused[part.columns]
    return [Letter(number, target, reason) for _, numbers in part.alike.values() for number in numbers]


def _refusal(asks: Fitting | None, change: Change) -> str | None:
    if asks is not None:
        return asks.refusal(change)
    kind = change.rows[0][0]
    return None if kind == "+I" else f"the table has no primary key: it cannot store rows of kind {kind}"
