"""Changes of schemas whose types are those of Arrow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import pyarrow as pa

from paimon_py.codec.arrow_types import from_arrow_type
from paimon_py.spec.schema_changes import AddColumn, SchemaChange, UpdateColumnType


def with_paimon_types(changes: Iterable[SchemaChange]) -> tuple[SchemaChange, ...]:
    """The same changes with types of Paimon in the place of types of Arrow.

    Raises: SchemaError for a type that Paimon lacks, with the type to use.
    """
    return tuple(
        dataclasses.replace(change, type=from_arrow_type(change.type))
        if isinstance(change, (AddColumn, UpdateColumnType)) and isinstance(change.type, pa.DataType)
        else change
        for change in changes
    )
