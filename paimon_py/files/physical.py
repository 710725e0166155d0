"""The columns that data files really have: system columns, repeated keys, then the table's columns.

Source: format.md §8.1; Java `SpecialFields`, `KeyValue.schema`.
"""

from __future__ import annotations

import msgspec

from paimon_py.spec.schema import (
    KEY_PREFIX,
    LEVEL,
    SEQUENCE_NUMBER,
    SYSTEM_FIELD_ID_START,
    VALUE_KIND,
    TableSchema,
)
from paimon_py.spec.types import Atomic, Field, Root

SEQUENCE_FIELD = Field(2_147_483_646, SEQUENCE_NUMBER, Atomic(Root.BIGINT, nullable=False))
KIND_FIELD = Field(2_147_483_645, VALUE_KIND, Atomic(Root.TINYINT, nullable=False))
LEVEL_FIELD = Field(2_147_483_644, LEVEL, Atomic(Root.INT, nullable=False))
"""Never stored: the level of the file that a row comes from."""


def key_copy(field: Field) -> Field:
    """The column `_KEY_<name>` that repeats a key column."""
    return msgspec.structs.replace(
        field,
        id=SYSTEM_FIELD_ID_START + field.id,
        name=KEY_PREFIX + field.name,
        description=None,
        default=None,
    )


def readable_fields(schema: TableSchema) -> tuple[Field, ...]:
    """What may be read from files written with `schema`: its columns, after the system columns if it has a key."""
    return (SEQUENCE_FIELD, KIND_FIELD, *schema.fields) if schema.primary_keys else schema.fields
