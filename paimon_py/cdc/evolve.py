"""Derives schema changes from events: adds columns, widens types, refuses the rest. Pure.

Source: Java `UpdatedDataFieldsProcessFunctionBase` (`extractSchemaChanges`, `canConvert`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from paimon_py.cdc.event import InvalidEvent, SourceColumn
from paimon_py.spec.cast_rules import is_text
from paimon_py.spec.schema_changes import AddColumn, UpdateColumnType
from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.spec.types import STRING, Atomic, DataType, Field, Root
from paimon_py.spec.wider_types import wider


def changes_for(
    fields: Sequence[Field], columns: Iterable[SourceColumn], modes: Collection[str] = ()
) -> tuple[AddColumn | UpdateColumnType, ...] | InvalidEvent:  # fmt: skip
    """The changes that let a table with these fields store every value of the columns, or why that is impossible.

    Columns that are missing in the event are kept, as in Java. `modes`: those of type mappings; with
    `decimal-no-change`, decimals are not changed; with `allow-non-string-to-string`, a STRING accepts any other type
    (in Java, only a column that becomes STRING does).
    """
    known = {field.name: field.type for field in fields}
    found: list[AddColumn | UpdateColumnType] = []
    for column in columns:
        if column.refused:
            return InvalidEvent(column.refused)
        old = known.get(column.name)
        if old is None:
            found.append(AddColumn(column.name, with_nullability(column.type, True)))
            continue
        if "decimal-no-change" in modes and _is_decimal(old) and _is_decimal(column.type):
            continue
        wide = wider(old, column.type)
        if wide is None and "allow-non-string-to-string" in modes:
            wide = _text_of(old, column.type)
        if wide is None:
            both = f"{sql_type(old)} in the table and {sql_type(column.type)} in the event"
            return InvalidEvent(f"column {column.name!r} is {both}")
        if wide != old:
            found.append(UpdateColumnType(column.name, wide, keep_nullability=True))
    return tuple(found)


def to_nanoseconds(fields: Sequence[Field], changes: Iterable[AddColumn | UpdateColumnType]) -> tuple[str, ...]:
    """The columns that become finer than microseconds, and therefore cover fewer years."""
    known = {field.name: field.type for field in fields}
    return tuple(
        str(change.column)
        for change in changes
        if isinstance(change, UpdateColumnType) and _is_of_nanos(change.type)
        and not _is_of_nanos(known[str(change.column)])
    )  # fmt: skip


def _is_of_nanos(kind: DataType) -> bool:
    return isinstance(kind, Atomic) and kind.root is Root.TIMESTAMP and (kind.precision or 0) > 6


def _is_decimal(kind: DataType) -> bool:
    return isinstance(kind, Atomic) and kind.root is Root.DECIMAL


def _text_of(old: DataType, new: DataType) -> DataType | None:
    if is_text(old) or is_text(new):
        return with_nullability(STRING, old.nullable)
    return None
