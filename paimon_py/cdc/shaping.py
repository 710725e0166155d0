"""Transforms changes by their routes: columns dropped, mapped, computed, and columns that describe the event. Pure.

Source: Java `AbstractRecordParser` (`evalComputedColumns`, `evalMetadataColumns`), `CdcMetadataProcessor`.
"""

from __future__ import annotations

from typing import Any, Union

import msgspec

from paimon_py.cdc.computed import type_of
from paimon_py.cdc.event import Change, Event, InvalidEvent, SourceColumn
from paimon_py.cdc.mapping import map_column
from paimon_py.cdc.opening import KindedRows, update_rows_of
from paimon_py.cdc.routes import METADATA, Routes
from paimon_py.errors import UsageError

_OF_EVENTS = ("topic", "partition", "offset", "timestamp")


class _Plan(msgspec.Struct, frozen=True):
    """The transformation for all changes of one shape.

    `added`: metadata by column name. `renamed`: target names of columns that are renamed. `same`: no change needed.
    """

    columns: tuple[SourceColumn, ...]
    gone: frozenset[str]
    added: tuple[tuple[str, str], ...]
    renamed: dict[str, str]
    same: bool


class Shaping:
    """Applies routes to changes; the plan for each shape of change is cached."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._plans: dict[tuple[object, ...], Union[_Plan, InvalidEvent]] = {}

    def shape(self, change: Change, event: Event) -> Change | InvalidEvent:
        """The change for the table, or the reason why there is none.

        Raises: UsageError if a column of the primary key is excluded.
        """
        if change.keyless and change.table not in self._routes.keys:
            return InvalidEvent(change.keyless)
        keys = self._routes.keys_of(change)
        is_delete = change.rows[-1][0] == "-D"
        shape = (change.table, change.columns, keys, is_delete)
        plan = self._plans.get(shape)
        if plan is None:
            plan = self._plans[shape] = self._plan(change, keys, is_delete)
        if isinstance(plan, InvalidEvent):
            return plan
        lost = [reason for name, reason in change.lacking.items() if name not in plan.gone]
        if lost:
            return InvalidEvent(lost[0])
        if plan.same:
            return change
        rows = change.rows if keys == change.keys else _split_moves(change.rows, keys)
        if plan.gone:
            rows = tuple(
                (kind, {name: value for name, value in row.items() if name not in plan.gone}) for kind, row in rows
            )
        if plan.renamed:
            here = plan.renamed
            rows = tuple((kind, {here.get(name, name): value for name, value in row.items()}) for kind, row in rows)
        if plan.added:
            more = {name: _metadata(what, change, event) for what, name in plan.added}
            rows = tuple((kind, {**row, **more}) for kind, row in rows)
        keys = tuple(map(self._routes.name_here, keys))
        return msgspec.structs.replace(change, columns=plan.columns, keys=keys, rows=rows, lacking={})

    def _plan(self, change: Change, keys: tuple[str, ...], is_delete: bool) -> _Plan | InvalidEvent:
        routes = self._routes
        gone = routes.left_out(change.table, [column.name for column in change.columns])
        if not gone.isdisjoint(keys):
            raise UsageError(f"table {change.table!r} has columns of its primary key {list(keys)} excluded")
        modes = frozenset(routes.types)
        columns = [map_column(column, modes) for column in change.columns if column.name not in gone]
        refused = [column for column in columns if column.refused]
        if refused:
            out = f"{change.table}.{refused[0].name}"
            return InvalidEvent(f"{refused[0].refused}: Routes(without=[{out!r}]) leaves it out")
        renamed = {column.name: routes.name_here(column.name) for column in columns}
        columns = [msgspec.structs.replace(column, name=renamed[column.name]) for column in columns]
        added = tuple((what, routes.name_here(name)) for what, name in routes.metadata.items())
        columns += [SourceColumn(name, *METADATA[what]) for what, name in added]
        try:
            columns += _computed_columns(routes, change.table, columns, is_delete)
        except UsageError as error:
            return InvalidEvent(str(error))
        names = [column.name for column in columns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            return InvalidEvent(
                f"columns {twice} occur twice: in the source (in another case), computed or as metadata"
            )
        renamed = {name: here for name, here in renamed.items() if name != here}
        same = tuple(columns) == change.columns and keys == change.keys
        return _Plan(tuple(columns), gone, added, renamed, same)


def _computed_columns(routes: Routes, table: str, columns: list[SourceColumn], is_delete: bool) -> list[SourceColumn]:
    """The computed columns, each after those that it depends on.

    Raises: UsageError if a required column is missing, and for a type that the function does not support.
    """
    known = {column.name: column for column in columns}
    waiting = [
        msgspec.structs.replace(one, name=routes.name_here(one.name), field=routes.name_here(one.field))
        for one in routes.computations
        if one.table in ("", table)
    ]
    found: list[SourceColumn] = []
    while ready := [one for one in waiting if not one.field or one.field in known]:
        for one in ready:
            kind = type_of(one, known[one.field].type if one.field else columns[0].type)
            made = SourceColumn(one.name, kind, "computed", computed=one)
            found.append(made)
            known.setdefault(one.name, made)
        waiting = [one for one in waiting if one not in ready]
    lacking = [one for one in waiting if one.table]
    if lacking and not is_delete:
        raise UsageError(f"computed column {lacking[0]}: the event has no column {lacking[0].field!r}")
    return found


def _split_moves(rows: KindedRows, keys: tuple[str, ...]) -> KindedRows:
    """Updates as a delete and an insert if they change the table's key, which differs from the event's."""
    found = list(rows)
    for place in range(len(rows) - 1):
        (first, before), (second, after) = rows[place : place + 2]
        if (first, second) == ("-U", "+U"):
            found[place : place + 2] = update_rows_of(before, after, keys)
    return tuple(found)


def _metadata(what: str, change: Change, event: Event) -> Any:
    if what == "topic":
        return event.topic or None
    return getattr(event, what) if what in _OF_EVENTS else change.origin.get(what)
