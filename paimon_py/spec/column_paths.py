"""Finds and changes a column by its path, at any depth.

A path starts at a top-level column: the next step is a field name in a ROW, `element` in an ARRAY, `value` in a MAP.

Source: Java `SchemaManager.NestedColumnModifier`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from paimon_py.errors import SchemaError, UsageError
from paimon_py.spec.types import ArrayType, DataType, Field, MapType, RowType

ELEMENT = "element"
VALUE = "value"

FieldsChange = Callable[[tuple[Field, ...]], tuple[Field, ...]]
FieldChange = Callable[[Field, tuple[str, ...]], Field]


def column_path(column: str | Sequence[str]) -> tuple[str, ...]:
    """The path of a column given as a name or as a list of names.

    Raises:
        UsageError: the value is neither.
    """
    path = tuple(column) if isinstance(column, (list, tuple)) else (column,)
    if not path or not all(isinstance(name, str) for name in path):
        raise UsageError(f"a column is a name or a list of names, got {column!r}")
    return path


def path_text(path: Sequence[str]) -> str:
    """A path as shown in messages."""
    return repr(".".join(path))


def locate(fields: Sequence[Field], path: Sequence[str], name: str) -> int:
    """The index of the field `name`.

    Raises:
        SchemaError: it does not exist; the message lists the path and the existing names.
    """
    for index, field in enumerate(fields):
        if field.name == name:
            return index
    there = ", ".join(repr(field.name) for field in fields) or "none"
    row, _, rest = name.partition(".")
    is_inside = rest and any(field.name == row and isinstance(field.type, RowType) for field in fields)
    way = f"; write {[*path[:-1], row, *rest.split('.')]!r} for a field inside {row}" if is_inside else ""
    raise SchemaError(f"column {path_text(path)} does not exist; the columns are {there}{way}", fields=(name,))


def at(data_type: DataType, steps: Sequence[str]) -> DataType:
    """The type at the end of steps through arrays and maps; the type itself without steps."""
    for _ in steps:
        assert isinstance(data_type, (ArrayType, MapType))
        data_type = data_type.element if isinstance(data_type, ArrayType) else data_type.value
    return data_type


def replaced_at(data_type: DataType, steps: Sequence[str], target: DataType) -> DataType:
    """A copy of the type in which the part at the end of the steps is replaced."""
    if not steps:
        return target
    if isinstance(data_type, ArrayType):
        return msgspec.structs.replace(data_type, element=replaced_at(data_type.element, steps[1:], target))
    assert isinstance(data_type, MapType)
    return msgspec.structs.replace(data_type, value=replaced_at(data_type.value, steps[1:], target))


def modified_fields(fields: tuple[Field, ...], path: tuple[str, ...], change: FieldsChange) -> tuple[Field, ...]:
    """The fields after `change` was applied to the list of fields that contains the last name of the path.

    Raises:
        SchemaError: the path does not exist.
    """
    if len(path) == 1:
        return change(fields)
    index = locate(fields, path, path[0])
    steps, row = _row_below(fields[index], path)
    inner = modified_fields(row.fields, path[1 + len(steps) :], change)
    changed = replaced_at(fields[index].type, steps, msgspec.structs.replace(row, fields=inner))
    return _with(fields, index, msgspec.structs.replace(fields[index], type=changed))


def modified_field(fields: tuple[Field, ...], path: tuple[str, ...], change: FieldChange) -> tuple[Field, ...]:
    """The fields after `change` was applied to the field at the path.

    The path may end inside an array or map; `change` gets the nearest field and the remaining steps.

    Raises:
        SchemaError: the path does not exist.
    """
    index = locate(fields, path, path[0])
    field, steps = fields[index], _steps(fields[index].type, path[1:])
    below = path[1 + len(steps) :]
    if not below:
        return _with(fields, index, change(field, steps))
    row = at(field.type, steps)
    if not isinstance(row, RowType):
        raise SchemaError(f"column {path_text(path)} does not exist: {path_text(path[: 1 + len(steps)])} is not a ROW")
    inner = msgspec.structs.replace(row, fields=modified_field(row.fields, below, change))
    return _with(fields, index, msgspec.structs.replace(field, type=replaced_at(field.type, steps, inner)))


def _row_below(field: Field, path: tuple[str, ...]) -> tuple[tuple[str, ...], RowType]:
    steps = _steps(field.type, path[1:-1])
    row = at(field.type, steps)
    if not isinstance(row, RowType):
        raise SchemaError(f"column {path_text(path)} does not exist: {path_text(path[: 1 + len(steps)])} is not a ROW")
    return steps, row


def _steps(data_type: DataType, names: Sequence[str]) -> tuple[str, ...]:
    taken = []
    for name in names:
        if isinstance(data_type, ArrayType) and name == ELEMENT:
            data_type = data_type.element
        elif isinstance(data_type, MapType) and name == VALUE:
            data_type = data_type.value
        else:
            break
        taken.append(name)
    return tuple(taken)


def _with(fields: tuple[Field, ...], index: int, field: Field) -> tuple[Field, ...]:
    return (*fields[:index], field, *fields[index + 1 :])
