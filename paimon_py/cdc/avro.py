"""Decodes Debezium events in Avro, as written by Confluent's converter: a zero byte, a schema id, a record.

Source: Confluent's documentation of its wire format and its registry; Java `DebeziumAvroRecordParser`.
"""

from __future__ import annotations

import base64
import math
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from paimon_py.cdc.debezium import KeyOf, change_of, column_of
from paimon_py.cdc.event import Decoded, Event, NoChange, SourceColumn
from paimon_py.cdc.opening import Damaged, decoder
from paimon_py.codec.avro.data_files import readable, record_of
from paimon_py.errors import CorruptionError, StorageError, UsageError

Schemas = Callable[[int], "str | None"]
"""Returns the schema with an id as JSON, None if it does not exist."""

Send = Callable[[str, Mapping[str, str]], "bytes | None"]
_HEAD = 5
_PLAIN = {
    "int": "int32", "long": "int64", "float": "float", "double": "double", "boolean": "boolean", "string": "string",
    "bytes": "bytes", "fixed": "bytes", "enum": "string", "record": "struct", "array": "array", "map": "map",
}  # fmt: skip
_LOGICAL = {
    "date": "org.apache.kafka.connect.data.Date", "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp", "time-micros": "io.debezium.time.MicroTime",
    "local-timestamp-millis": "io.debezium.time.Timestamp", "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp", "decimal": "org.apache.kafka.connect.data.Decimal",
}  # fmt: skip


class _Shape(msgspec.Struct, frozen=True):
    """A parsed schema, and the columns of the rows in it: its own, or those of its field `after`."""

    schema: Any
    columns: tuple[SourceColumn, ...]


def avro_decoder(schemas: Schemas) -> Callable[[Event], Decoded]:
    """A decoder of Debezium events in Avro, for the `format` of a `Sink`.

    Args:
        schemas: returns the schema with an id as JSON, None if it does not exist: see `registry`. Called once per id.
    Raises: the errors of `schemas`, when an event is decoded; an event without a known schema is a dead letter.
    """
    shapes: dict[tuple[int, bool], _Shape] = {}

    def open_message(data: bytes, *, is_key: bool) -> tuple[Any, tuple[SourceColumn, ...]]:
        if len(data) < _HEAD or data[0] != 0:
            raise Damaged("not in Confluent's format, which begins with a zero byte and a schema id")
        number = int.from_bytes(data[1:_HEAD], "big")
        shape = shapes.get((number, is_key))
        if shape is None:
            shape = shapes[number, is_key] = _shape(schemas(number), number, is_key=is_key)
        try:
            return _plain(record_of(data[_HEAD:], shape.schema)), shape.columns
        except CorruptionError as error:
            raise Damaged(f"not a record of schema {number}: {error}") from error

    @decoder
    def decode(event: Event) -> Decoded:
        if event.topic.startswith("__debezium-heartbeat"):
            return NoChange("heartbeat")
        payload, columns = open_message(event.value or b"", is_key=False)

        def key() -> KeyOf:
            if event.key is None:
                return {}, ()
            found, key_columns = open_message(event.key, is_key=True)
            if not isinstance(found, dict):
                raise Damaged("the key is not a record")
            return found, key_columns

        return change_of(payload, lambda: columns, key)

    return decode


def registry(
    url: str, *, headers: Mapping[str, str] | None = None, send: Send | None = None
) -> Schemas:
    """The schemas in a registry with Confluent's API, such as `http://localhost:8081`.

    Args:
        headers: sent with each request, such as `Authorization`.
        send: fetches a URL, returns None for a missing resource; None uses HTTP. It raises OSError if the server cannot
            be reached.
    Raises: UsageError for an invalid URL. The function raises StorageError if the registry does not respond.
    """
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise UsageError(f"a registry has an address such as http://localhost:8081, not {url!r}")
    fetch, sent = send or _fetch, dict(headers or {})

    def schema(number: int) -> str | None:
        address = f"{url.rstrip('/')}/schemas/ids/{number}"
        try:
            body = fetch(address, sent)
        except OSError as error:
            message = f"the registry does not return schema {number} at {address}: {error}"
            raise StorageError(message, path=address, operation="get", transient=True) from error
        if body is None:
            return None
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.DecodeError as error:
            raise StorageError(f"{address} is not a registry: {error}", path=address, operation="get") from error
        if answer.schema_type != "AVRO" or answer.references:
            raise Damaged(f"schema {number} is not a self-contained Avro schema")
        return answer.schema

    return schema


class _Answer(msgspec.Struct):
    schema: str
    schema_type: str = msgspec.field(default="AVRO", name="schemaType")
    references: list[Any] = []


def _fetch(address: str, headers: Mapping[str, str]) -> bytes | None:
    try:
        request = urllib.request.Request(address, headers=dict(headers))
        with urllib.request.urlopen(request, timeout=60) as answer:
            body: bytes = answer.read()
            return body
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def _shape(text: str | None, number: int, *, is_key: bool) -> _Shape:
    if text is None:
        raise Damaged(f"the registry has no schema {number}")
    try:
        declared = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Damaged(f"schema {number} is not JSON: {error}") from error
    names: dict[str, Any] = {}
    _collect(declared, "", names)
    holder: Any = declared
    if not is_key:
        fields = {field.get("name"): field for field in _fields(declared)}
        row = fields.get("after", fields.get("before"))
        holder = None if row is None else _resolve(row.get("type"), names)
    columns = () if holder is None else tuple(_column(field, names) for field in _fields(holder))
    try:
        return _Shape(readable(_bare(declared)), columns)
    except CorruptionError as error:
        raise Damaged(f"schema {number}: {error}") from error


def _fields(declared: Any) -> list[dict[str, Any]]:
    fields = declared.get("fields") if isinstance(declared, dict) else None
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []


def _collect(declared: Any, space: str, names: dict[str, Any]) -> None:
    """All named types by their full names, and by their short names inside their namespace."""
    if isinstance(declared, list):
        for one in declared:
            _collect(one, space, names)
    if not isinstance(declared, dict):
        return
    if declared.get("type") in ("record", "enum", "fixed") and isinstance(declared.get("name"), str):
        name, space = declared["name"], declared.get("namespace", space)
        full = name if "." in name or not space else f"{space}.{name}"
        names[full] = declared
        names.setdefault(full.rpartition(".")[2], declared)
    for field in _fields(declared):
        _collect(field.get("type"), space, names)
    for part in ("items", "values", "type"):
        if isinstance(declared.get(part), (dict, list)):
            _collect(declared[part], space, names)


def _resolve(kind: Any, names: dict[str, Any]) -> Any:
    """The type without NULL, with references to named types resolved."""
    if isinstance(kind, list):
        rest = [one for one in kind if one != "null"]
        return _resolve(rest[0], names) if len(rest) == 1 else {"type": "map"}
    if isinstance(kind, str):
        return names.get(kind, {"type": kind})
    inner = kind.get("type") if isinstance(kind, dict) else None
    return _resolve(inner, names) if isinstance(inner, (dict, list)) else kind


def _column(field: dict[str, Any], names: dict[str, Any]) -> SourceColumn:
    kind = _resolve(field.get("type"), names)
    if not isinstance(kind, dict):
        raise Damaged(f"the schema declares a field without a type: {field.get('name')!r}")
    parameters = dict(kind.get("connect.parameters") or {})
    logical = kind.get("connect.name") or _LOGICAL.get(str(kind.get("logicalType")))
    if kind.get("logicalType") == "decimal":
        logical = _LOGICAL["decimal"]
        parameters |= {"scale": kind.get("scale", 0), "connect.decimal.precision": kind.get("precision")}
    plain = kind.get("connect.type") or _PLAIN.get(str(kind.get("type")))
    return column_of({"field": field.get("name"), "type": plain, "name": logical, "parameters": parameters})


def _bare(declared: Any) -> Any:
    """The schema without logical types: values are returned as stored."""
    if isinstance(declared, list):
        return [_bare(one) for one in declared]
    if isinstance(declared, dict):
        return {name: _bare(part) for name, part in declared.items() if name != "logicalType"}
    return declared


def _plain(value: Any) -> Any:
    """An Avro value in the form that JSON would have."""
    change = _PLAINLY.get(type(value))
    return change(value) if change else value


_NAMES_OF_FLOATS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_PLAINLY: dict[type, Callable[[Any], Any]] = {
    dict: lambda value: {name: _plain(part) for name, part in value.items()},
    list: lambda value: [_plain(part) for part in value],
    bytes: lambda value: base64.b64encode(value).decode(),
    float: lambda value: Decimal(value) if math.isfinite(value) else _NAMES_OF_FLOATS[str(value)],
}
