"""Determines the schema changes for the option `write.merge-schema`. Pure.

Source: Java `SchemaMergingUtils`, main of August 2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Union

import msgspec

from paimon_py.errors import SchemaError
from paimon_py.spec.schema_changes import AddColumn, UpdateColumnType
from paimon_py.spec.type_text import sql_type, with_nullability
from paimon_py.spec.types import DataType, Field, RowType
from paimon_py.spec.wider_types import wider

Change = Union[AddColumn, UpdateColumnType]
Named = tuple[str, DataType]


class SchemaMerging(msgspec.Struct, frozen=True):
    """The changes allowed to types of existing columns: none; to wider types; or to any that values can be cast to."""

    widens: bool = False
    casts: bool = False


def merge_columns(fields: Sequence[Field], given: Sequence[Named], how: SchemaMerging) -> list[Change]:
    """The changes after which a table with these fields has all given columns.

    Columns that are not given stay. New ones are nullable, and come last.

    Raises: SchemaError that lists the columns whose types cannot be merged.
    """
    problems: dict[str, str] = {}
    found = list(_merge((), {field.name: field.type for field in fields}, given, how, problems))
    if problems:
        lines = "".join(f"\n  {text}" for text in problems.values())
        raise SchemaError(f"the schemas cannot be merged:{lines}", fields=tuple(problems))
    return found


def _merge(
    path: tuple[str, ...], known: dict[str, DataType], given: Sequence[Named], how: SchemaMerging,
    problems: dict[str, str],
) -> Iterator[Change]:  # fmt: skip
    for name, kind in given:
        place, old = (*path, name), known.get(name)
        if old is None:
            yield AddColumn(place, with_nullability(kind, True))
        elif isinstance(old, RowType) and isinstance(kind, RowType):
            inner = [(field.name, field.type) for field in kind.fields]
            yield from _merge(place, {field.name: field.type for field in old.fields}, inner, how, problems)
        elif how.widens:
            changed = _widen(place, old, kind, how)
            if isinstance(changed, str):
                problems[".".join(place)] = changed
            elif changed is not None:
                yield changed


def _widen(
    place: tuple[str, ...], old: DataType, kind: DataType, how: SchemaMerging
) -> UpdateColumnType | str | None:
    """The change that lets a column contain values of another type too; None: no change; a string: why it cannot."""
    if with_nullability(kind, old.nullable) == old:
        return None
    wide = wider(old, kind)
    if wide == old and not how.casts:
        return None
    if how.casts:
        return UpdateColumnType(place, kind, keep_nullability=True, allow_narrowing=True)
    if wide is None:
        return (
            f"column {'.'.join(place)!r} is {sql_type(old)} in the table and {sql_type(kind)} in the data: no type"
            " holds the values of both without loss; cast the data, or set write.merge-schema.explicit-cast"
        )
    return UpdateColumnType(place, wide, keep_nullability=True)
