"""Changes of schemas as callers give them: with types of Arrow, and with defaults of new columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pyarrow as pa

from paimon_py.codec.arrow_types import from_arrow_type
from paimon_py.spec.schema_changes import AddColumn, SchemaChange, UpdateColumnDefault, UpdateColumnType


def with_paimon_types(changes: Iterable[SchemaChange]) -> tuple[SchemaChange, ...]:
    """The same changes with types of Paimon in the place of types of Arrow; the default of a new column is a change of
    its own, as in Java.

    Raises: SchemaError for a type that Paimon lacks, with the type to use.
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
