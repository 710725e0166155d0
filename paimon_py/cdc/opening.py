"""What the decoders have in common: JSON with exact numbers, rows before and after, and damage as a value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import msgspec

from paimon_py.cdc.event import Bad, Change, Decoded, Event, NoChange, SourceColumn
from paimon_py.spec.types import STRING

ANY = msgspec.json.Decoder(float_hook=Decimal)

_UNREADABLE = (msgspec.DecodeError, RecursionError, ArithmeticError, ValueError)

KindedRows = tuple[tuple[str, dict[str, Any]], ...]


class Damaged(Exception):
    """What is wrong with an event; becomes `Bad`."""


def decoder(read: Callable[[Event], Decoded]) -> Callable[[Event], Decoded]:
    """A decoder that never raises for what an event holds, and knows tombstones."""

    @functools.wraps(read)
    def decode(event: Event) -> Decoded:
        if event.value is None or event.value.strip() == b"null":
            return NoChange("tombstone")
        try:
            return read(event)
        except _UNREADABLE as error:
            return Bad(f"no JSON: {error}")
        except Damaged as error:
            return Bad(str(error))

    return decode


def whole(decoded: Decoded) -> Decoded:
    """A change whose columns can all be taken; else why not."""
    if not isinstance(decoded, Change):
        return decoded
    lost = [*decoded.lacking.values(), *(column.refused for column in decoded.columns if column.refused)]
    return Bad(lost[0]) if lost else decoded


def update_rows_of(before: dict[str, Any], after: dict[str, Any], keys: Iterable[str]) -> KindedRows:
    """The two rows of an update: -U and +U, or -D and +I where the key moved."""
    moved = any(before.get(name) != after.get(name) for name in keys)
    return (("-D" if moved else "-U", before), ("+I" if moved else "+U", after))


def text_columns(rows: KindedRows) -> tuple[SourceColumn, ...]:
    """The columns of rows whose types nobody declares: all STRING, as in Java."""
    names = dict.fromkeys(name for _, row in rows for name in row)
    return tuple(SourceColumn(name, STRING, "any text") for name in names)


def check_names(rows: KindedRows, columns: tuple[SourceColumn, ...]) -> None:
    """Refuse rows that lack columns or have others than those declared.

    Raises: Damaged.
    """
    declared = {column.name for column in columns}
    for _, row in rows:
        if row.keys() != declared:
            raise Damaged(f"the row and its schema differ in columns: {sorted(row.keys() ^ declared)[:5]}")


def origin_of(database: Any, table: str, millis: Any, schema: Any = None) -> dict[str, Any]:
    """What an event says of itself, by the names of metadata columns, with values as they came."""
    return {"database_name": database or None, "schema_name": schema, "table_name": table, "op_ts": millis}


def as_object(value: Any, what: str) -> dict[str, Any]:
    """An object of the event.

    Raises: Damaged if the value is another one.
    """
    if not isinstance(value, dict):
        raise Damaged(f"{what} is not an object")
    return value


def table_of(root: dict[str, Any]) -> tuple[str, str]:
    """The database and the table that an event of Canal or Maxwell names."""
    database, table = root.get("database"), root.get("table")
    if not isinstance(table, str) or not table or not isinstance(database, (str, type(None))):
        raise Damaged("'table' names no table")
    return database or "", table


def key_names(value: Any) -> tuple[str, ...]:
    """The names of key columns, none where nothing is declared."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Damaged("the names of key columns are not a list of texts")
    return tuple(value)
