"""Determines which columns an upsert must look up because its data lack them. Pure.

A row with a primary key replaces the whole older row, so missing values have to be written again. Partial updates keep
values that a row leaves NULL, except for columns with defaults, and those of a sequence group.

Source: Java `PartialUpdateMergeFunction`, `DefaultValueRow`.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from paimon_py.errors import SchemaError
from paimon_py.spec.aggregate_rules import named_function
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.engine_rules import sequence_groups
from paimon_py.spec.options import Options
from paimon_py.spec.schema import ROW_KIND_COLUMN, TableSchema
from paimon_py.spec.types import Field

_TAKES_NULL = frozenset(("last_value", "first_value", "primary-key"))
"""Aggregate functions that treat NULL as an ordinary value, and for which writing the old value again has no effect."""


class MissingColumn(msgspec.Struct, frozen=True):
    """A column that the data of an upsert lack.

    `is_copied`: existing rows get their old value again; else NULL, which the merge engine replaces by the old value.
    """

    field: Field
    is_copied: bool

    @property
    def asks_for_rows(self) -> bool:
        """Whether the written value depends on the existing row."""
        return self.is_copied or self.field.default is not None or not self.field.type.nullable


def missing_columns(schema: TableSchema, given: Collection[str]) -> tuple[MissingColumn, ...]:
    """The columns that the data lack; empty if no row has to be looked up, or a plain write would refuse the data.

    Raises: SchemaError for an aggregated NOT NULL column, for which neither the old value nor NULL can be written.
    """
    if not {*schema.primary_keys} <= {*given} <= {*schema.names, ROW_KIND_COLUMN}:
        return ()
    absent = [field for field in schema.fields if field.name not in given]
    is_partial = Options(schema.options).get_enum("merge-engine") == "partial-update"
    copied = _copied_columns(schema, given) if is_partial else frozenset(field.name for field in absent)
    found = tuple(MissingColumn(field, field.name in copied) for field in absent)
    for one in found:
        if not one.is_copied and not one.field.type.nullable:
            name = one.field.name
            raise SchemaError(
                f"the data lack {name!r}, which is NOT NULL and aggregated: no value keeps it unchanged; add it",
                fields=(name,),
            )
    return found if any(one.asks_for_rows for one in found) else ()


def _copied_columns(schema: TableSchema, given: Collection[str]) -> frozenset[str]:
    """The columns of a partial update that lose their values if a row leaves them NULL."""
    groups = sequence_groups(schema.options)
    free = set(schema.names).difference(*(group.members for group in groups))
    required = {field.name for field in schema.fields if not field.type.nullable}
    copied = {name for name in free if name in required or schema.field(name).default is not None}
    copied.add(Options(schema.options).find_str("rowkind.field") or "")
    if bucket_mode(schema) is BucketMode.CROSS_PARTITION:
        copied.update(schema.partition_keys)
    for group in groups:
        is_touched = any(name in given for name in group.members) or not required.isdisjoint(group.fields)
        for name in group.members:
            replaces = name in group.fields or named_function(schema, name) in (None, *_TAKES_NULL)
            if replaces and (is_touched or name in required):
                copied.add(name)
    return frozenset(copied - set(given))
