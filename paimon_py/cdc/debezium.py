"""Decodes Debezium's JSON change events, with or without a schema next to the payload.

Source: Java `DebeziumJsonRecordParser`, `DebeziumSchemaUtils`; Debezium's documentation of its data types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from paimon_py.cdc.columns import is_finer_than_micros
from paimon_py.cdc.event import Change, Decoded, Event, NoChange, SourceColumn
from paimon_py.cdc.known_heads import KnownHeads
from paimon_py.cdc.opening import (
    ANY,
    UNREADABLE,
    Damaged,
    KindedRows,
    check_names,
    decoder,
    is_null,
    key_names,
    origin_of,
    text_columns,
    update_rows_of,
    whole,
)
from paimon_py.spec.types import BYTES, STRING, Atomic, Root

UNAVAILABLE = "__debezium_unavailable_value"
"""The placeholder of Debezium for a large value that the source did not log."""
_UNAVAILABLE_FORMS = frozenset((UNAVAILABLE, "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="))

KeyOf = tuple[dict[str, Any], tuple[SourceColumn, ...]]
Declared = Callable[[], tuple[SourceColumn, ...]]
"""Returns the columns that a schema declares; raises `Damaged`."""
_OF_ROWS, _OF_KEYS = KnownHeads(), KnownHeads()


class _Envelope(msgspec.Struct):
    schema: msgspec.Raw = msgspec.Raw(b"")
    payload: Any = msgspec.UNSET


_ENVELOPE = msgspec.json.Decoder(_Envelope, float_hook=Decimal)


def decode(event: Event) -> Decoded:
    """Decode one event to a change, or to the reason why it is none. Never raises for the content of an event.

    Updates become -U (if the event contains the old row) and +U; if the key changed, -D and +I.
    Cost: JSON is parsed once; known schemas are cached.
    Source: Java emits -D and +I for every update, and fails without the old row.
    """
    return whole(decode_parts(event))


@decoder
def decode_parts(event: Event) -> Decoded:
    """Like `decode`, but accepts columns of unsupported types, which routes may exclude."""
    if event.topic.startswith("__debezium-heartbeat"):
        return NoChange("heartbeat")
    payload, declared = _open_message(event.topic, event.value or b"", _OF_ROWS)
    if payload is None:
        return NoChange("tombstone")
    return change_of(payload, declared, lambda: _key(event))


def _open_message(topic: str, text: bytes, heads: KnownHeads) -> tuple[Any, Declared | None]:
    """The payload, and what returns the columns of the schema; None if there is no schema.

    `heads`: those of messages of this kind; where the text begins with one of them, its schema is not read again.
    """
    known = heads.find(topic, text)
    if known is not None:
        return known.payload, lambda: known.columns
    if is_null(text):
        return None, None
    envelope = _ENVELOPE.decode(text)
    schema = bytes(envelope.schema)
    if envelope.payload is msgspec.UNSET:
        return ANY.decode(text), None
    if schema in (b"", b"null"):
        return envelope.payload, None

    def columns() -> tuple[SourceColumn, ...]:
        found = _fields(schema, None if heads is _OF_KEYS else "after")
        heads.add(topic, text, schema, found)
        return found

    return envelope.payload, columns


def change_of(payload: Any, declared: Declared | None, key_of: Callable[[], KeyOf]) -> Decoded:
    """Decode a payload.

    Args:
        declared: returns the columns of rows; None if they are not declared.
        key_of: returns the key of the event and its columns.
    Raises: Damaged.
    """
    if not isinstance(payload, dict):
        raise Damaged("the payload is not an object")
    kind = payload.get("op")
    if kind is None:
        return _without_operation(payload)
    if kind == "m":
        return NoChange("message")
    source: Any = payload.get("source")
    table, database = _names(source)
    if kind == "t":
        raise Damaged(f"the source truncated {table!r}: truncate the table in the catalog too if wanted")
    if kind not in ("c", "r", "u", "d"):
        raise Damaged(f"unknown operation {kind!r}")
    key, key_columns, keyless = _read_key(key_of)
    columns = declared() if declared else ()
    lacking: dict[str, str] = {}
    before, after = _row(payload, "before"), _row(payload, "after")
    if kind == "d" and before is None and keyless:
        raise Damaged(f"a delete without the old row: {keyless}")
    rows = _rows(kind, before, after, key, lacking)
    if kind == "d" and before is None:
        columns = _columns_by_key(key, key_columns, columns)
    elif declared is None:
        columns = text_columns(rows)
    check_names(rows, columns)
    if any(is_finer_than_micros(row[name]) for name in _instants(columns) for _, row in rows):
        columns = tuple(_instant_column(column, rows) for column in columns)
    keys = tuple(key) or key_names(payload.get("pkNames"))
    origin = origin_of(source.get("db"), table, source.get("ts_ms"), source.get("schema"))
    return Change(database, table, columns, keys, rows, origin, lacking, "" if keys else keyless)


def _read_key(key_of: Callable[[], KeyOf]) -> tuple[dict[str, Any], tuple[SourceColumn, ...], str]:
    """The key of an event, its columns, and the reason why it cannot be read, empty if it can."""
    try:
        return *key_of(), ""
    except UNREADABLE as error:
        reason = f"no JSON: {error}"
    except Damaged as error:
        reason = str(error)
    return {}, (), f"the key of the event cannot be read ({reason}): Routes(keys=…) names the key columns of its table"


def _columns_by_key(
    key: dict[str, Any], key_columns: tuple[SourceColumn, ...], declared: tuple[SourceColumn, ...]
) -> tuple[SourceColumn, ...]:
    """The columns of a row that is known by its key, with the types that rows of the table have.

    Converters of keys and values are configured apart: only one of them may declare types.
    """
    if not declared:
        return text_columns((("-D", key),))
    known = {column.name: column for column in declared}
    return tuple(known.get(column.name, column) for column in key_columns)


@functools.lru_cache(maxsize=1024)
def _instants(columns: tuple[SourceColumn, ...]) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.encoding == "instant")


def _instant_column(column: SourceColumn, rows: KindedRows) -> SourceColumn:
    """The column with nanosecond precision if a row has nanoseconds, which Connect's schema does not show."""
    if column.encoding == "instant" and any(is_finer_than_micros(row[column.name]) for _, row in rows):
        return msgspec.structs.replace(column, type=Atomic(Root.TIMESTAMP, precision=9))
    return column


def _without_operation(payload: dict[str, Any]) -> Decoded:
    if "ddl" in payload or "tableChanges" in payload:
        return NoChange("schema change")
    if payload.get("status") in ("BEGIN", "END") and "id" in payload:
        return NoChange("transaction")
    if set(payload) == {"ts_ms"}:
        return NoChange("heartbeat")
    raise Damaged("'op' is missing: not a Debezium event, or a flattened one")


def _names(source: Any) -> tuple[str, str]:
    if isinstance(source, dict) and "collection" in source and "table" not in source:
        raise Damaged("documents of a collection have no columns: a decoder of your own makes rows of them")
    if not isinstance(source, dict) or not isinstance(source.get("table"), str) or not source["table"]:
        raise Damaged("'source' names no table")
    database = source.get("schema") or source.get("db") or ""
    return source["table"], database if isinstance(database, str) else ""


def _row(payload: dict[str, Any], name: str) -> dict[str, Any] | None:
    row = payload.get(name)
    if row is not None and not isinstance(row, dict):
        raise Damaged(f"{name!r} is not an object")
    return row


def _rows(
    kind: str, before: dict[str, Any] | None, after: dict[str, Any] | None, key: dict[str, Any],
    lacking: dict[str, str],
) -> KindedRows:  # fmt: skip
    """The rows with their kinds; columns with missing values are added to `lacking`."""
    if kind == "d":
        gone = before if before is not None else key
        if not gone:
            raise Damaged("a delete without the old row and without a key")
        return (("-D", gone),)
    if after is None:
        raise Damaged("'after' is missing")
    after = _available(after, before, lacking)
    if kind != "u":
        return (("+I", after),)
    if before is None:
        return (("+U", after),)
    if _may_lack(before):
        for name, value in before.items():
            if _is_unavailable(value):
                before = {**before, name: None}
                lacking.setdefault(name, f"the old row lacks the large value of {name!r}")
    return update_rows_of(before, after, key)


def _available(after: dict[str, Any], before: dict[str, Any] | None, lacking: dict[str, str]) -> dict[str, Any]:
    """The row with unchanged large values copied from the old row."""
    if not _may_lack(after):
        return after
    lost = [name for name, value in after.items() if _is_unavailable(value)]
    if not lost:
        return after
    kept = before or {}
    absent = [name for name in lost if name not in kept or _is_unavailable(kept[name])]
    for name in absent:
        lacking[name] = (
            f"the event lacks the unchanged large values of {absent}: "
            "ALTER TABLE … REPLICA IDENTITY FULL in the source brings them"
        )
    return {**after, **{name: None if name in lacking else kept[name] for name in lost}}


def _may_lack(row: dict[str, Any]) -> bool:
    """False if no value of the row is unavailable; values that have no hash are not looked into."""
    try:
        return not _UNAVAILABLE_FORMS.isdisjoint(row.values())
    except TypeError:
        return True


def _is_unavailable(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        items = value if isinstance(value, list) else [*value, *value.values()]
        return any(item in _UNAVAILABLE_FORMS for item in items if isinstance(item, str))
    return isinstance(value, str) and value in _UNAVAILABLE_FORMS


def _key(event: Event) -> KeyOf:
    if event.key is None:
        return {}, ()
    payload, declared = _open_message(event.topic, event.key, _OF_KEYS)
    if payload is None:
        return {}, ()
    if not isinstance(payload, dict):
        raise Damaged("the key is not an object")
    if declared is None:
        return payload, text_columns((("+I", payload),))
    return payload, declared()


@functools.lru_cache(maxsize=1024)
def _fields(schema: bytes, part: str | None) -> tuple[SourceColumn, ...]:
    """The columns of a schema, or of the schema's field that contains rows."""
    declared = ANY.decode(schema)
    fields = _schema_fields(declared)
    if part is not None:
        rows = [field for field in fields if field.get("field") in (part, "before")]
        rows.sort(key=lambda field: bool(field.get("field") != part))
        if not rows:
            raise Damaged("the schema declares no rows")
        fields = _schema_fields(rows[0])
    return tuple(column_of(field) for field in fields)


def _schema_fields(declared: Any) -> list[dict[str, Any]]:
    fields = declared.get("fields") if isinstance(declared, dict) else None
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise Damaged("the schema declares no fields")
    return fields


_NAMED: dict[str, tuple[str, Atomic]] = {
    "io.debezium.time.Date": ("days", Atomic(Root.DATE)),
    "org.apache.kafka.connect.data.Date": ("days", Atomic(Root.DATE)),
    "io.debezium.time.Timestamp": ("millis", Atomic(Root.TIMESTAMP, precision=3)),
    "org.apache.kafka.connect.data.Timestamp": ("millis", Atomic(Root.TIMESTAMP, precision=3)),
    "io.debezium.time.MicroTimestamp": ("micros", Atomic(Root.TIMESTAMP, precision=6)),
    "io.debezium.time.NanoTimestamp": ("nanos", Atomic(Root.TIMESTAMP, precision=9)),
    "io.debezium.time.ZonedTimestamp": ("instant", Atomic(Root.TIMESTAMP, precision=6)),
    "io.debezium.time.Time": ("millis of day", Atomic(Root.TIME, precision=3)),
    "org.apache.kafka.connect.data.Time": ("millis of day", Atomic(Root.TIME, precision=3)),
    "io.debezium.time.MicroTime": ("micros of day", Atomic(Root.TIME, precision=3)),
    "io.debezium.data.VariableScaleDecimal": ("variable decimal", STRING),
    "io.debezium.data.geometry.Point": ("geometry", STRING),
    "io.debezium.data.geometry.Geometry": ("geometry", STRING),
    "io.debezium.data.geometry.Geography": ("geometry", STRING),
}
_PLAIN: dict[str, tuple[str, Atomic]] = {
    "int8": ("int8", Atomic(Root.TINYINT)), "int16": ("int16", Atomic(Root.SMALLINT)),
    "int32": ("int32", Atomic(Root.INT)), "int64": ("int64", Atomic(Root.BIGINT)),
    "float": ("float", Atomic(Root.FLOAT)), "float32": ("float", Atomic(Root.FLOAT)),
    "double": ("float", Atomic(Root.DOUBLE)), "float64": ("float", Atomic(Root.DOUBLE)),
    "boolean": ("boolean", Atomic(Root.BOOLEAN)), "bytes": ("base64", BYTES),
    "string": ("string", STRING), "struct": ("string", STRING), "array": ("string", STRING), "map": ("string", STRING),
}  # fmt: skip


def column_of(field: dict[str, Any]) -> SourceColumn:
    """The column for a field of a Connect schema; refused if its type is unknown.

    Raises: Damaged for a field without a name.
    """
    name = field.get("field")
    if not isinstance(name, str):
        raise Damaged("the schema declares a field without a name")
    try:
        return _source_column(name, field)
    except Damaged as error:
        return SourceColumn(name, STRING, "string", refused=str(error))


def _source_column(name: str, field: dict[str, Any]) -> SourceColumn:
    plain, logical = field.get("type"), field.get("name")
    if not isinstance(plain, str) or plain not in _PLAIN:
        raise Damaged(f"the schema declares column {name!r} of unknown type {plain!r}")
    if logical == "org.apache.kafka.connect.data.Decimal":
        return _decimal_column(name, field)
    if logical == "io.debezium.data.Bits":
        return SourceColumn(name, Atomic(Root.BINARY, length=max(1, (_parameter(field, "length") + 7) // 8)), "bits")
    if plain == "int64" and logical is None and _is_unsigned(field):
        return SourceColumn(name, Atomic(Root.BIGINT), "unsigned int64")
    encoding, data_type = _NAMED.get(logical, _PLAIN[plain]) if isinstance(logical, str) else _PLAIN[plain]
    return SourceColumn(name, data_type, encoding)


def _is_unsigned(field: dict[str, Any]) -> bool:
    """Whether the connector propagates the source type (`datatype.propagate.source.type`), and it is unsigned."""
    parameters = field.get("parameters")
    declared = parameters.get("__debezium.source.column.type") if isinstance(parameters, dict) else None
    return isinstance(declared, str) and "UNSIGNED" in declared.upper()


def _decimal_column(name: str, field: dict[str, Any]) -> SourceColumn:
    scale = _parameter(field, "scale")
    declared = "connect.decimal.precision" in field["parameters"]
    precision = _parameter(field, "connect.decimal.precision") if declared else 38 if scale else 20
    if precision > 38 or scale < 0 or scale > precision or precision < 1:
        return SourceColumn(name, STRING, "decimal text", scale)
    return SourceColumn(name, Atomic(Root.DECIMAL, precision=precision, scale=scale), "decimal", scale)


def _parameter(field: dict[str, Any], name: str) -> int:
    """An integer parameter of a field."""
    parameters = field.get("parameters")
    text = parameters.get(name) if isinstance(parameters, dict) else None
    try:
        found = int(str(text))
    except ValueError as error:
        raise Damaged(f"the schema of {field.get('field')!r} lacks the number {name!r}") from error
    if abs(found) > 1_000_000:
        raise Damaged(f"the schema of {field.get('field')!r} has {name!r} = {found}")
    return found
