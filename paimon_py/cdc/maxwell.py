"""Decodes Maxwell's JSON change events; all columns are STRING, as in Java, since the events declare no types.

Source: Java `MaxwellRecordParser`; Maxwell's documentation of its data format.
"""

from __future__ import annotations

from paimon_py.cdc.event import Change, Decoded, Event, NoChange
from paimon_py.cdc.opening import (
    ANY,
    Damaged,
    KindedRows,
    as_object,
    decoder,
    key_names,
    origin_of,
    table_of,
    text_columns,
    update_rows_of,
)

_WITHOUT_ROWS = {"bootstrap-start": "bootstrap", "bootstrap-complete": "bootstrap", "heartbeat": "heartbeat"}
_OF_SCHEMAS = ("table-create", "table-alter", "table-drop", "database-create", "database-alter", "database-drop")


@decoder
def decode(event: Event) -> Decoded:
    """Decode one event to a change, or to the reason why it is none. Never raises for the content of an event."""
    root = as_object(ANY.decode(event.value or b""), "the event")
    kind = root.get("type")
    if kind in _OF_SCHEMAS:
        return NoChange("schema change")
    if isinstance(kind, str) and kind in _WITHOUT_ROWS:
        return NoChange(_WITHOUT_ROWS[kind])
    database, table = table_of(root)
    keys = key_names(root.get("primary_key_columns"))
    after = as_object(root.get("data"), "'data'")
    rows: KindedRows
    if kind in ("insert", "bootstrap-insert"):
        rows = (("+I", after),)
    elif kind == "update" and root.get("old") is None:
        rows = (("+U", after),)
    elif kind == "update":
        rows = update_rows_of({**after, **as_object(root.get("old"), "'old'")}, after, keys)
    elif kind == "delete":
        rows = (("-D", after),)
    else:
        raise Damaged(f"unknown type {kind!r}")
    seconds = root.get("ts")
    millis = seconds * 1000 if type(seconds) is int else None
    return Change(database, table, text_columns(rows), keys, rows, origin_of(database, table, millis))
