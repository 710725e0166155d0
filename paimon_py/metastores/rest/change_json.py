"""Encodes schemas and schema changes for a REST server. Pure.

Source: Java `SchemaChange`, `SchemaChange.Move`, `Schema`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon_py.spec.column_paths import column_path
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from paimon_py.spec.type_text import parse_type, print_field, print_type

Json = dict[str, Any]


def schema_json(schema: TableSchema, options: Mapping[str, str]) -> Json:
    """A new table's schema, with these options."""
    return {
        "fields": [print_field(field) for field in schema.fields],
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(options),
        "comment": schema.comment,
    }


def change_json(change: SchemaChange) -> Json:
    """One change that `spec.changed_schema.apply` takes."""
    if isinstance(change, SetOption):
        return {"action": "setOption", "key": change.name, "value": change.value}
    if isinstance(change, RemoveOption):
        return {"action": "removeOption", "key": change.name}
    if isinstance(change, UpdateColumnPosition):
        return {"action": "updateColumnPosition", "move": _move(change.column, change.position)}
    column = None if not hasattr(change, "column") else list(column_path(change.column))
    match change:
        case AddColumn():
            move = None if change.position is None or column is None else _move(column[-1], change.position)
            data_type = print_type(parse_type(change.type))
            body: Json = {"action": "addColumn", "dataType": data_type, "comment": change.comment, "move": move}
        case RenameColumn():
            body = {"action": "renameColumn", "newName": change.name}
        case DropColumn():
            body = {"action": "dropColumn"}
        case UpdateColumnType():
            data_type, keep = print_type(parse_type(change.type)), change.keep_nullability
            body = {"action": "updateColumnType", "newDataType": data_type, "keepNullability": keep}
        case UpdateColumnNullability():
            body = {"action": "updateColumnNullability", "newNullability": change.nullable}
        case UpdateColumnComment():
            body = {"action": "updateColumnComment", "newComment": change.comment}
        case UpdateColumnDefault():
            body = {"action": "updateColumnDefaultValue", "newDefaultValue": change.default}
        case _:
            return {"action": "updateComment", "comment": change.comment}
    return {**body, "fieldNames": column}


def _move(column: str, position: Position) -> Json:
    if isinstance(position, (After, Before)):
        kind = "AFTER" if isinstance(position, After) else "BEFORE"
        return {"fieldName": column, "referenceFieldName": position.name, "type": kind}
    return {"fieldName": column, "referenceFieldName": None, "type": "FIRST" if isinstance(position, First) else "LAST"}
