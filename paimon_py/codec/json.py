"""Schema files: JSON and `TableSchema`, in the exact layout that Java writes.

Unknown JSON fields are kept in `extra` and written back.

Source: format.md §3; Java `SchemaSerializer`, `DataField.serializeJson`, Jackson's `DefaultPrettyPrinter`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.damaged_names import check_names
from paimon_py.errors import CorruptionError, SchemaError, UnsupportedError
from paimon_py.spec.json_values import whole_number
from paimon_py.spec.schema import KEY_PREFIX, LEVEL, SEQUENCE_NUMBER, VALUE_KIND, TableSchema
from paimon_py.spec.type_text import UNASSIGNED, UnknownTypeError, contains, parse_field, print_field, sql_type
from paimon_py.spec.types import Atomic, DataType, Field, RowType

CURRENT_VERSION = 3
NESTING_MAX = 100
"""The maximum nesting of lists and objects in preserved fields."""

_BUCKET_DEFAULT_OF_VERSION_1 = "1"
_FORMAT_DEFAULT_OF_VERSION_2 = "orc"
_KNOWN = frozenset(
    ("version", "id", "fields", "highestFieldId", "partitionKeys", "primaryKeys", "options", "comment", "timeMillis")
)
_SHORT_ESCAPES = {'"': '"', "\\": "\\", "\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
_ESCAPES = {i: f"\\u{i:04X}" for i in range(32)} | {ord(char): "\\" + name for char, name in _SHORT_ESCAPES.items()}


def decode_object(data: bytes, path: str) -> dict[str, Any]:
    """The JSON object in a metadata file.

    Raises:
        CorruptionError: the bytes are not one JSON object.
    """
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptionError(f"{path}: not JSON: {error}", path=path) from error
    except RecursionError as error:
        raise CorruptionError(f"{path}: JSON is nested too deeply", path=path) from error
    if not isinstance(value, dict):
        raise CorruptionError(f"{path}: expected a JSON object, got {type(value).__name__}", path=path)
    return value


def unknown_items(value: Mapping[str, Any], known: Collection[str], path: str) -> dict[str, Any]:
    """The items of a metadata file other than the known keys; they are written back when the file is rewritten.

    Raises:
        CorruptionError: nested more than `NESTING_MAX` deep, or a known key with a flipped bit.
    """
    found = {key: item for key, item in value.items() if key not in known}
    check_names(value, known, path)
    inside, depth = list(found.values()), 0
    while inside:
        depth += 1
        if depth > NESTING_MAX:
            raise CorruptionError(f"{path}: JSON is nested too deeply", path=path)
        inside = [part for item in inside for part in _parts(item)]
    return found


def _parts(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


def pretty(value: Any) -> bytes:
    """JSON in the layout of Jackson's default pretty printer: objects indented by two spaces, lists on one line."""
    parts: list[str] = []
    _print(value, "\n", parts.append)
    return "".join(parts).encode("utf-8", "replace")


def flat(value: Any) -> str:
    """JSON on one line without spaces, as Java's system tables show lists and objects; None is `null`."""
    if isinstance(value, str):
        return '"' + value.translate(_ESCAPES) + '"'
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{flat(str(key))}:{flat(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(flat, value)) + "]"
    return msgspec.json.encode(value).decode()


def schema_from_json(data: bytes, path: str) -> TableSchema:
    """The schema in a schema file.

    Old versions get the defaults of their time as options: bucket 1 up to version 1, file format ORC up to version 2.

    Raises:
        CorruptionError: not a schema.
        UnsupportedError: a schema version newer than this library.
    """
    with decoding_metadata(path):
        return _schema(decode_object(data, path), path)


def schema_options_from_json(data: bytes, path: str) -> dict[str, str]:
    """The raw options in a schema file; works even if the columns use types of later releases.

    Raises:
        CorruptionError: not a schema.
    """
    with decoding_metadata(path):
        return _options(decode_object(data, path), path)


def _schema(value: Mapping[str, Any], path: str) -> TableSchema:
    version = _number(value, "version", path, missing=1)
    if version > CURRENT_VERSION:
        raise UnsupportedError(
            f"{path}: schema version {version} is newer than {CURRENT_VERSION}, the newest known here",
            feature=f"schema version {version}",
            path=path,
        )
    options = _options(value, path)
    if version <= 1:
        options.setdefault("bucket", _BUCKET_DEFAULT_OF_VERSION_1)
    if version <= 2:
        options.setdefault("file.format", _FORMAT_DEFAULT_OF_VERSION_2)
    comment = value.get("comment")
    fields = _fields(value, path)
    highest = _number(value, "highestFieldId", path)
    if max([field.id for field in fields], default=0) > max(highest, 0):
        raise CorruptionError(f"{path}: a column has an id above {highest}, the highest one", path=path)
    primary_keys = _keys(value, "primaryKeys", fields, path)
    for field in fields if primary_keys else ():
        name = field.name
        if name[:1] == "_" and (name.startswith(KEY_PREFIX) or name in (SEQUENCE_NUMBER, VALUE_KIND, LEVEL)):
            raise CorruptionError(f"{path}: no column of a table with a primary key can be {field.name!r}", path=path)
    return TableSchema(
        id=_number(value, "id", path),
        fields=fields,
        highest_field_id=max([highest, *_all_ids(fields)]),
        partition_keys=_keys(value, "partitionKeys", fields, path),
        primary_keys=primary_keys,
        options=options,
        comment=None if comment is None else _text(comment),
        time_millis=_number(value, "timeMillis", path, missing=0),
        version=version,
        extra=unknown_items(value, _KNOWN, path),
    )


def schema_to_json(schema: TableSchema) -> bytes:
    """The bytes of a schema file, in Java's layout."""
    value: dict[str, Any] = {
        "version": schema.version,
        "id": schema.id,
        "fields": [print_field(field) for field in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(schema.options),
    }
    if schema.comment is not None:
        value["comment"] = schema.comment
    value["timeMillis"] = schema.time_millis or 0
    value.update(schema.extra)
    return pretty(value)


def _print(value: Any, indent: str, emit: Any) -> None:
    if isinstance(value, str):
        emit('"' + value.translate(_ESCAPES) + '"')
    elif isinstance(value, Mapping):
        inner = indent + "  "
        for index, (key, item) in enumerate(value.items()):
            emit(("{" if index == 0 else ",") + inner + '"' + str(key).translate(_ESCAPES) + '" : ')
            _print(item, inner, emit)
        emit(indent + "}" if value else "{ }")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            emit("[ " if index == 0 else ", ")
            _print(item, indent, emit)
        emit(" ]" if value else "[ ]")
    else:
        emit(msgspec.json.encode(value).decode())


def _fields(value: Mapping[str, Any], path: str) -> tuple[Field, ...]:
    items = value.get("fields")
    if not isinstance(items, list):
        raise CorruptionError(f"{path}: 'fields' is missing or not a list", path=path)
    try:
        fields = tuple(parse_field(item) for item in items)
    except UnknownTypeError as error:
        message = f"{path}: {error}, which a later release may know"
        raise UnsupportedError(message, feature="types", path=path) from error
    except SchemaError as error:
        raise CorruptionError(f"{path}: {error}", path=path) from error
    nested = [field.type for field in fields if not isinstance(field.type, Atomic)]
    if any(field.id == UNASSIGNED for field in fields) or any(contains(kind, _lacks_id) for kind in nested):
        raise CorruptionError(f"{path}: a field has no id", path=path)
    if _repeats_id(fields) or any(contains(kind, _has_repeated_id) for kind in nested):
        raise CorruptionError(f"{path}: two fields of one row have the same id", path=path)
    if len({field.name for field in fields}) < len(fields):
        raise CorruptionError(f"{path}: two columns have the same name", path=path)
    return fields


def _all_ids(fields: Sequence[Field]) -> list[int]:
    """The ids of the fields and of their nested fields; ids may repeat: old SDKs restart in each ROW."""
    ids = [field.id for field in fields]

    def note(data_type: DataType) -> bool:
        if isinstance(data_type, RowType):
            ids.extend(field.id for field in data_type.fields)
        return False  # keeps the walk going

    for field in fields:
        if not isinstance(field.type, Atomic):
            contains(field.type, note)
    return ids


def _repeats_id(fields: Sequence[Field]) -> bool:
    return len({field.id for field in fields}) < len(fields)


def _has_repeated_id(data_type: DataType) -> bool:
    return isinstance(data_type, RowType) and _repeats_id(data_type.fields)


def _lacks_id(data_type: DataType) -> bool:
    return isinstance(data_type, RowType) and any(field.id == UNASSIGNED for field in data_type.fields)


def _keys(value: Mapping[str, Any], key: str, fields: tuple[Field, ...], path: str) -> tuple[str, ...]:
    items = value.get(key)
    if items is None and key in value:
        return ()
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise CorruptionError(f"{path}: {key!r} is missing or not a list of names", path=path)
    if not items:
        return ()
    types = {field.name: field.type for field in fields}
    unknown = set(items) - types.keys()
    if unknown:
        raise CorruptionError(f"{path}: {key!r} names columns that do not exist: {sorted(unknown)}", path=path)
    if len(set(items)) < len(items):
        raise CorruptionError(f"{path}: {key!r} names a column twice: {items}", path=path)
    for name in items:
        if not isinstance(types[name], Atomic):
            shown = sql_type(types[name])
            raise CorruptionError(f"{path}: {key!r} names {name!r}, and {shown} cannot be a key", path=path)
    return tuple(items)


def _options(value: Mapping[str, Any], path: str) -> dict[str, str]:
    items = value.get("options")
    if items is None and "options" in value:
        return {}
    if not isinstance(items, dict):
        raise CorruptionError(f"{path}: 'options' is missing or not an object", path=path)
    return {key: _text(item) for key, item in items.items() if item is not None}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _number(value: Mapping[str, Any], key: str, path: str, *, missing: int | None = None) -> int:
    item = value.get(key, missing)
    number = whole_number(item)
    if number is None:
        raise CorruptionError(f"{path}: {key!r} is missing or not a whole number: {item!r}", path=path)
    return number
