"""Shared code of the decoders: JSON with exact numbers, old and new rows, and damage as a value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import msgspec

from paimon_py.cdc.event import Change, Decoded, Event, InvalidEvent, NoChange, SourceColumn
from paimon_py.spec.types import STRING

ANY = msgspec.json.Decoder(float_hook=Decimal)

UNREADABLE = (msgspec.DecodeError, RecursionError, ArithmeticError, ValueError)

KindedRows = tuple[tuple[str, dict[str, Any]], ...]


class Damaged(Exception):
    """The reason why an event is damaged; becomes `InvalidEvent`."""


def decoder(read: Callable[[Event], Decoded]) -> Callable[[Event], Decoded]:
    """Wrap a decoder so that it never raises for the content of an event, and handles tombstones."""

    @functools.wraps(read)
    def decode(event: Event) -> Decoded:
        if event.value is None or is_null(event.value):
            return NoChange("tombstone")
        try:
            return read(event)
        except UNREADABLE as error:
            return InvalidEvent(f"no JSON: {error}")
        except Damaged as error:
            return InvalidEvent(str(error))

    return decode


def is_null(text: bytes) -> bool:
    """Whether a message is the JSON value null."""
    return text.strip() == b"null"


def whole(decoded: Decoded) -> Decoded:
    """The change if all its columns are supported; else the reason."""
    if not isinstance(decoded, Change):
        return decoded
    unread = [decoded.keyless] if decoded.keyless else []
    lost = [*unread, *decoded.lacking.values(), *(column.refused for column in decoded.columns if column.refused)]
    return InvalidEvent(lost[0]) if lost else decoded


def update_rows_of(before: dict[str, Any], after: dict[str, Any], keys: Iterable[str]) -> KindedRows:
    """The two rows of an update: -U and +U, or -D and +I if the key changed."""
    moved = False
    for name in keys:
        if before.get(name) != after.get(name):
            moved = True
            break
    return (("-D" if moved else "-U", before), ("+I" if moved else "+U", after))


def text_columns(rows: KindedRows) -> tuple[SourceColumn, ...]:
    """The columns of rows without declared types: all STRING, as in Java."""
    names = tuple(rows[0][1])
    if any(tuple(row) != names for _, row in rows):
        names = tuple(dict.fromkeys(name for _, row in rows for name in row))
    return _text_columns(names)


@functools.lru_cache(maxsize=1024)
def _text_columns(names: tuple[str, ...]) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(name, STRING, "any text") for name in names)


@functools.lru_cache(maxsize=1024)
def _names_of(columns: tuple[SourceColumn, ...]) -> frozenset[str]:
    return frozenset(column.name for column in columns)


def check_names(rows: KindedRows, columns: tuple[SourceColumn, ...]) -> None:
    """Refuse rows whose columns differ from those declared.

    Raises: Damaged.
    """
    declared = _names_of(columns)
    for _, row in rows:
        if row.keys() != declared:
            raise Damaged(f"the row and its schema differ in columns: {sorted(row.keys() ^ declared)[:5]}")


def origin_of(database: Any, table: str, millis: Any, schema: Any = None) -> dict[str, Any]:
    """The event's metadata, by the names of metadata columns, with unconverted values."""
    return {"database_name": database or None, "schema_name": schema, "table_name": table, "op_ts": millis}


def as_object(value: Any, what: str) -> dict[str, Any]:
    """An object of the event.

    Raises: Damaged for other values.
    """
    if not isinstance(value, dict):
        raise Damaged(f"{what} is not an object")
    return value


def table_of(root: dict[str, Any]) -> tuple[str, str]:
    """The database and table names in an event of Canal or Maxwell."""
    database, table = root.get("database"), root.get("table")
    if not isinstance(table, str) or not table or not isinstance(database, (str, type(None))):
        raise Damaged("'table' names no table")
    return database or "", table


def key_names(value: Any) -> tuple[str, ...]:
    """The names of key columns, empty if not declared."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Damaged("the names of key columns are not a list of strings")
    return tuple(value)
