"""Decodes Canal's JSON change events, with their MySQL types.

Source: Java `CanalRecordParser`, `MySqlTypeUtils`.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from paimon_py.cdc.event import Change, Decoded, Event, NoChange, SourceColumn
from paimon_py.cdc.opening import (
    ANY,
    Damaged,
    KindedRows,
    as_object,
    check_names,
    decoder,
    key_names,
    origin_of,
    table_of,
    text_columns,
    update_rows_of,
    whole,
)
from paimon_py.spec.types import MAX_LENGTH, STRING, ArrayType, Atomic, Root

_TYPE = re.compile(r"\s*([a-z ]+?)\s*(?:\((.*)\))?\s*((?:unsigned|zerofill|\s)*)", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_WHOLE = {
    "tinyint": (Root.TINYINT, Root.SMALLINT), "smallint": (Root.SMALLINT, Root.INT),
    "mediumint": (Root.INT, Root.BIGINT), "int": (Root.INT, Root.BIGINT), "integer": (Root.INT, Root.BIGINT),
    "year": (Root.INT, Root.INT),
}  # fmt: skip
_TEXTS = ("tinytext", "text", "mediumtext", "longtext", "json", "enum", "string")
_NATIONAL = ("nchar", "nvarchar", "national char", "national varchar", "national character")
_SHAPES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
    "geomcollection",
)  # fmt: skip
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")


def decode(event: Event) -> Decoded:
    """Decode one event to a change, or to the reason why it is none. Never raises for the content of an event."""
    return whole(decode_parts(event))


@decoder
def decode_parts(event: Event) -> Decoded:
    """Like `decode`, but accepts columns of unsupported types, which routes may exclude."""
    root = as_object(ANY.decode(event.value or b""), "the event")
    kind = root.get("type")
    if kind == "TRUNCATE":
        raise Damaged("the source truncated a table: truncate the table in the catalog too if wanted")
    if root.get("isDdl") is True:
        return NoChange("schema change")
    database, table = table_of(root)
    keys = key_names(root.get("pkNames"))
    rows = _rows(kind, _rows_of(root, "data"), root, keys)
    declared, origin = root.get("mysqlType"), origin_of(database, table, root.get("es"))
    if declared is None:
        return Change(database, table, text_columns(rows), keys, rows, origin)
    types = as_object(declared, "'mysqlType'")
    columns = tuple(_column(name, text if isinstance(text, str) else repr(text)) for name, text in types.items())
    check_names(rows, columns)
    return Change(database, table, columns, keys, rows, origin)


def _rows_of(root: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = root.get(name)
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) for row in value):
        raise Damaged(f"{name!r} is not a list of rows")
    return value


def _rows(kind: Any, data: list[dict[str, Any]], root: dict[str, Any], keys: tuple[str, ...]) -> KindedRows:
    if kind in ("INSERT", "ROW"):
        return tuple(("+I", row) for row in data)
    if kind == "DELETE":
        return tuple(("-D", row) for row in data)
    if kind != "UPDATE":
        raise Damaged(f"unknown type {kind!r}")
    if root.get("old") is None:
        return tuple(("+U", row) for row in data)
    old = _rows_of(root, "old")
    if len(old) != len(data):
        raise Damaged("'old' and 'data' differ in length")
    pairs = zip(data, old, strict=True)
    return tuple(row for after, part in pairs for row in update_rows_of({**after, **part}, after, keys))


@functools.lru_cache(maxsize=4096)
def _column(name: str, text: str) -> SourceColumn:
    """The column for a MySQL type, such as `decimal(10,2) unsigned`.

    An unsupported type produces a column that is refused.
    """
    match = _TYPE.fullmatch(text)
    if match is None:
        return SourceColumn(name, STRING, "string", refused=f"column {name!r} does not have a MySQL type: {text}")
    base, inner, unsigned = match[1].lower(), match[2], "unsigned" in match[3].lower()
    base = base.removesuffix(" precision")
    if base in ("enum", "set"):
        choices = tuple(found.replace("''", "'") for found in _QUOTED.findall(inner or ""))
        kind = STRING if base == "enum" else ArrayType(STRING)
        return SourceColumn(name, kind, f"{base} text", choices=choices)
    numbers = [int(part) for part in (inner or "").split(",") if part.strip().isdecimal()]
    found = _number(base, numbers, unsigned) or _other(base, numbers)
    if found is None:
        reason = f"column {name!r} has the type {text!r}, which is not supported"
        return SourceColumn(name, STRING, "string", refused=reason)
    return SourceColumn(name, *found, declared=f"{base} unsigned" if unsigned else base)


def _number(base: str, numbers: list[int], unsigned: bool) -> tuple[Atomic, str] | None:
    if base in ("boolean", "bool") or (base in ("tinyint", "bit") and numbers == [1] and not unsigned):
        return Atomic(Root.BOOLEAN), "boolean text"
    if base in _WHOLE:
        return Atomic(_WHOLE[base][unsigned]), "whole text"
    if base == "bigint":
        if unsigned:
            return Atomic(Root.DECIMAL, precision=20, scale=0), "number text"
        return Atomic(Root.BIGINT), "whole text"
    if base in ("float", "double", "real"):
        return Atomic(Root.FLOAT if base == "float" else Root.DOUBLE), "float text"
    if base in ("decimal", "numeric", "fixed"):
        precision, scale = [*numbers, 0][:2] if numbers else (38, 18)
        if not 1 <= precision <= 38 or scale > precision:
            return STRING, "string"
        return Atomic(Root.DECIMAL, precision=precision, scale=scale), "number text"
    return None


def _other(base: str, numbers: list[int]) -> tuple[Atomic, str] | None:
    length = numbers[0] if numbers else 0
    if base in ("char", "varchar"):
        root = Root.CHAR if base == "char" else Root.VARCHAR
        return (Atomic(root, length=length) if length else STRING), "string"
    if base in _TEXTS or base in _NATIONAL:
        return STRING, "string"
    if base in _SHAPES:
        return STRING, "mysql geometry"
    if base == "bit" and 1 < length <= 64:
        return Atomic(Root.BINARY, length=(length + 7) // 8), "bit number"
    if base in ("binary", "varbinary") or base in _BLOBS:
        return Atomic(Root.VARBINARY, length=MAX_LENGTH if base in _BLOBS else length or MAX_LENGTH), "latin text"
    if base == "date":
        return Atomic(Root.DATE), "time text"
    if base == "time":
        return Atomic(Root.TIME, precision=3), "clock text"
    if base in ("datetime", "timestamp") and length <= 6:
        return Atomic(Root.TIMESTAMP, precision=length), "time text"
    return None
