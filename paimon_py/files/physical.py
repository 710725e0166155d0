"""The columns that data files store: system columns, repeated keys, then the table's columns.

Source: format.md §8.1; Java `SpecialFields`, `KeyValue.schema`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.errors import CorruptionError
from paimon_py.spec.options import Options
from paimon_py.spec.schema import (
    KEY_PREFIX,
    LEVEL,
    ROW_ID,
    SEQUENCE_NUMBER,
    SYSTEM_FIELD_ID_START,
    VALUE_KIND,
    TableSchema,
)
from paimon_py.spec.types import Atomic, Field, Root

SEQUENCE_FIELD = Field(2_147_483_646, SEQUENCE_NUMBER, Atomic(Root.BIGINT, nullable=False))
KIND_FIELD = Field(2_147_483_645, VALUE_KIND, Atomic(Root.TINYINT, nullable=False))
LEVEL_FIELD = Field(2_147_483_644, LEVEL, Atomic(Root.INT, nullable=False))
"""Never stored: the level of the file that contains a row."""

ROW_ID_FIELD = Field(2_147_483_642, ROW_ID, Atomic(Root.BIGINT, nullable=False))
TRACKED_FIELDS = (ROW_ID_FIELD, SEQUENCE_FIELD)
"""The row-tracking columns of a table with `row-tracking.enabled`: row ids, and the snapshots that wrote the rows."""

TRACKED_IDS = frozenset(field.id for field in TRACKED_FIELDS)

_STORED_IDS = (ROW_ID_FIELD, msgspec.structs.replace(SEQUENCE_FIELD, type=Atomic(Root.BIGINT)))
"""The same in rewritten files; a NULL number stands for that of the file's entry."""


ROW_TRACKING = "row-tracking.enabled"
"""The option of tables whose rows have ids."""


def tracks_rows(schema: TableSchema) -> bool:
    """Whether rows of a table have ids."""
    return Options(schema.options).get_bool(ROW_TRACKING)


DATA_EVOLUTION = "data-evolution.enabled"
"""The option of tables whose files may store some columns of rows while other files store the rest."""


def evolves_columns(schema: TableSchema) -> bool:
    """Whether the columns of a row may be stored in several files."""
    return Options(schema.options).get_bool(DATA_EVOLUTION)


def with_row_ids(schema: TableSchema) -> TableSchema:
    """The schema of rewritten files, whose rows keep their ids; unchanged for tables without row ids."""
    return msgspec.structs.replace(schema, fields=(*schema.fields, *_STORED_IDS)) if tracks_rows(schema) else schema


def without_row_ids(schema: TableSchema) -> TableSchema:
    """The schema of a table, from one that also includes row ids."""
    if ROW_ID_FIELD not in schema.fields:
        return schema
    fields = tuple(field for field in schema.fields if field.id not in TRACKED_IDS)
    return msgspec.structs.replace(schema, fields=fields)


def key_copy(field: Field) -> Field:
    """The column `_KEY_<name>`, which repeats a key column."""
    return msgspec.structs.replace(
        field,
        id=SYSTEM_FIELD_ID_START + field.id,
        name=KEY_PREFIX + field.name,
        description=None,
        default=None,
    )


def bounded_fields(schema: TableSchema, names: Sequence[str] | None) -> tuple[Field, ...]:
    """The columns that a file's value statistics cover, from `DataFile.bounded_columns`."""
    if names is None:
        return schema.fields
    ids = {field.name: field for field in _STORED_IDS}
    return tuple(ids[name] if name in ids else schema.field(name) for name in names)


def readable_fields(schema: TableSchema, written: Sequence[str] | None = None) -> tuple[Field, ...]:
    """The columns that can be read from files written with `schema`: its columns, preceded by system columns if it has
    a key.

    Args:
        written: names of the columns in a file with row tracking; None: those of the schema.

    Raises: CorruptionError for a column that the schema does not have.
    """
    if schema.primary_keys:
        return (SEQUENCE_FIELD, KIND_FIELD, *schema.fields)
    if written is None:
        return schema.fields
    fields = {field.name: field for field in (*schema.fields, *_STORED_IDS)}
    unknown = [name for name in written if name not in fields]
    if unknown:
        raise CorruptionError(f"a file names the column {unknown[0]!r}, which its schema {schema.id} does not have")
    return tuple(fields[name] for name in written)


def stored_fields(schema: TableSchema, written: Sequence[str] | None = None) -> tuple[Field, ...]:
    """Every column of a file in its order, where the file does not say it.

    Args:
        written: as in `readable_fields`.
    """
    fields = readable_fields(schema, written)
    if not schema.primary_keys or Options(schema.options).get_bool("data-file.thin-mode"):
        return fields
    keys = tuple(key_copy(schema.field(name)) for name in schema.trimmed_primary_keys)
    return (*keys, *fields)
