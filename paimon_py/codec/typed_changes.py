"""Schema changes from callers: Arrow types are converted, and defaults of new columns become changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pyarrow as pa

from paimon_py.codec.arrow_types import from_arrow_type
from paimon_py.spec.schema_changes import AddColumn, SchemaChange, UpdateColumnDefault, UpdateColumnType


def with_paimon_types(changes: Iterable[SchemaChange]) -> tuple[SchemaChange, ...]:
    """The same changes with Paimon types in place of Arrow types; the default of a new column becomes a separate
    change, as in Java.

    Raises: SchemaError for a type that Paimon lacks; the message names the type to use.
    """
    found: list[SchemaChange] = []
    for change in changes:
        given = change
        if isinstance(given, (AddColumn, UpdateColumnType)) and isinstance(given.type, pa.DataType):
            given = dataclasses.replace(given, type=from_arrow_type(given.type))
        if isinstance(given, AddColumn) and given.default is not None:
            found += [dataclasses.replace(given, default=None), UpdateColumnDefault(given.column, given.default)]
        else:
            found.append(given)
    return tuple(found)
