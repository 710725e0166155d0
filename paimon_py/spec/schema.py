"""A table's schema as a value.

Source: format.md §3; Java `TableSchema`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from paimon_py.errors import SchemaError
from paimon_py.html import join_values
from paimon_py.spec.redact import shown_options
from paimon_py.spec.schema_page import schema_page
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Field

SYSTEM_FIELD_ID_START = 1_073_741_823
KEY_PREFIX = "_KEY_"
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
ROW_ID = "_ROW_ID"
VALUE_KIND = "_VALUE_KIND"
LEVEL = "_LEVEL"
ROW_KIND_COLUMN = "_row_kind"
ROW_KINDS = ("+I", "-U", "+U", "-D")
"""The kinds of rows; `_VALUE_KIND` stores an index into this list."""
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(len(ROW_KINDS))


class TableSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `schema-<id>`. `extra` holds unknown JSON fields.

    `repr` and pickles show `***` for the values of options that are not known to be harmless.
    """

    id: int
    fields: tuple[Field, ...]
    highest_field_id: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    comment: str | None = None
    time_millis: int | None = None
    version: int = 3
    extra: Mapping[str, object] = {}

    def __repr__(self) -> str:
        columns = join_values(f"{field.name} {sql_type(field.type)}" for field in self.fields)
        keys = f", primary_key={list(self.primary_keys)}" if self.primary_keys else ""
        parts = f", partition_by={list(self.partition_keys)}" if self.partition_keys else ""
        options = f", options={shown_options(self.options)}" if self.options else ""
        return f"TableSchema({self.id}: {columns}{keys}{parts}{options})"

    def _repr_html_(self) -> str:
        return schema_page(self)

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self._public_fields(),)

    def _public_fields(self) -> dict[str, Any]:
        return {**msgspec.structs.asdict(self), "options": shown_options(self.options)}

    def is_same_version(self, other: TableSchema) -> bool:
        """Whether both are the same version of the same table. Options may differ: some are given for one writer or
        reader, and some are hidden.
        """
        keys = (self.primary_keys, self.partition_keys) == (other.primary_keys, other.partition_keys)
        return keys and (self.id, self.time_millis, self.fields) == (other.id, other.time_millis, other.fields)

    def field(self, name: str) -> Field:
        """The column named `name`.

        Raises: SchemaError if it does not exist: an option of the table may name a missing column.
        """
        for field in self.fields:
            if field.name == name:
                return field
        message = f"schema {self.id} has no column {name!r}, which an option of the table names; it has {self.names}"
        raise SchemaError(message, fields=(name,))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    @property
    def trimmed_primary_keys(self) -> tuple[str, ...]:
        """The key inside one bucket: the primary key without partition keys, or the whole key if none is left."""
        trimmed = tuple(name for name in self.primary_keys if name not in self.partition_keys)
        return trimmed or self.primary_keys

    @property
    def bucket_keys(self) -> tuple[str, ...]:
        """The columns whose hash selects the bucket: option `bucket-key`, else the trimmed primary key."""
        text = self.options.get("bucket-key")
        if text and text.strip():
            return tuple(part.strip() for part in text.split(","))
        return self.trimmed_primary_keys

    @property
    def partition_fields(self) -> tuple[Field, ...]:
        """Partition columns in partition-key order."""
        return tuple(self.field(name) for name in self.partition_keys)

    @property
    def key_fields(self) -> tuple[Field, ...]:
        """Fields of the trimmed primary key."""
        return tuple(self.field(name) for name in self.trimmed_primary_keys)


def unused_name(name: str, names: Collection[str]) -> str:
    """The name for an additional column: not the prefix of any of `names`, so that numbers may be appended."""
    while any(taken.startswith(name) for taken in names):
        name = f"_{name}"
    return name


def _again(fields: Mapping[str, Any]) -> TableSchema:
    return TableSchema(**fields)
