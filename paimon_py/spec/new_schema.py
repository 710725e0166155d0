"""The schema of a new table, and the ids of its fields.

Source: format.md §3.2; Java `Schema`, `Schema.Builder`, `ReassignFieldId`, `TableSchema.create`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.api_hints import explains_arguments
from paimon_py.arguments import as_list
from paimon_py.errors import OptionError, SchemaError, UsageError
from paimon_py.spec.layout import check_column_name, check_default, check_text
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import (
    UNASSIGNED,
    children,
    parse_field,
    parse_type,
    require_shallow,
    sql_type,
    with_nullability,
)
from paimon_py.spec.types import ArrayType, DataType, Field, MapType, MultisetType, RowType, VectorType

CURRENT_VERSION = 3


@explains_arguments
class Schema:
    """The columns of a new table; supports every Paimon type.

    Args:
        fields: one item per column: `(name, type)`, `(name, type, comment)`, `(name, type, comment, default)`, a JSON
            object as in a schema file, or a `Field`; or a mapping from names to types. A type is a string
            (`"DECIMAL(10, 2) NOT NULL"`, `"MAP<STRING, ROW<x INT>>"`), an object as in a schema file, or a data type
            value.

    Raises:
        SchemaError: an invalid type, or two columns with the same name.

    Example:
        ``Schema([("id", "BIGINT NOT NULL"), ("tags", "ARRAY<STRING>", "free text"), ("at", "TIMESTAMP(9)")])``
    """

    __slots__ = ("fields",)

    def __init__(self, fields: Iterable[Sequence[Any] | Mapping[str, Any] | Field] | Mapping[str, Any]) -> None:
        _refuse_rows(fields)
        if isinstance(fields, Mapping):
            fields = list(fields.items())
        columns = [_column(item) for item in as_list("columns come as a list of (name, type)", fields)]
        self.fields: tuple[Field, ...] = assign_ids(columns)[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(field.name for field in self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(self.fields)

    def __repr__(self) -> str:
        return f"Schema([{', '.join(repr((field.name, sql_type(field.type))) for field in self.fields)}])"


def assign_ids(fields: Iterable[Field], highest: int = -1) -> tuple[tuple[Field, ...], int]:
    """Assign ids to new columns.

    One counter: a column gets its id before its nested fields; inside a ROW, the nested fields of a field come first.

    Args:
        fields: columns; existing ids are replaced.
        highest: the largest id in use.

    Returns:
        The columns with ids, and the new largest id.
    """
    counter = _Counter(highest)
    columns = []
    for field in fields:
        number = counter.next()
        columns.append(msgspec.structs.replace(field, id=number, type=counter.renumber(field.type)))
    return tuple(columns), counter.last


class TableSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of a new table other than its columns."""

    primary_keys: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    comment: str | None = None


def new_table_schema(schema: Schema, spec: TableSpec, *, time_millis: int) -> TableSchema:
    """The first schema of a table: keys given as options become schema keys, and primary-key columns become NOT NULL.

    Raises:
        OptionError: a key is given twice.
        UsageError: an invalid column name.
    """
    options = dict(spec.options)
    partition_keys = _moved_out(options, "partition", spec.partition_keys)
    primary_keys = _moved_out(options, "primary-key", spec.primary_keys)
    check_column_names(schema.fields)
    check_text("comment", spec.comment)
    fields, highest = assign_ids(schema.fields)
    return TableSchema(
        id=0,
        fields=with_key_nullability(fields, primary_keys, options),
        highest_field_id=highest,
        partition_keys=partition_keys,
        primary_keys=primary_keys,
        options=options,
        comment=spec.comment,
        time_millis=time_millis,
        version=CURRENT_VERSION,
    )


def with_key_nullability(
    fields: Iterable[Field], primary_keys: Sequence[str], options: Mapping[str, str]
) -> tuple[Field, ...]:
    """Columns with the nullability that Java gives primary keys: NOT NULL, or nullable with `primary-key.nullable`."""
    nullable = options.get("primary-key.nullable", "false").lower() == "true"
    return tuple(
        msgspec.structs.replace(field, type=with_nullability(field.type, nullable))
        if field.name in primary_keys
        else field
        for field in fields
    )


def check_column_names(fields: Iterable[Field]) -> None:
    """Refuse invalid names of new columns and their nested fields.

    Raises:
        UsageError: blank, too long, or with control characters.
    """
    for field in fields:
        check_column_name(field.name)
        _check_nested_names(field.type)


def split_keys(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _check_nested_names(data_type: DataType) -> None:
    if isinstance(data_type, RowType):
        check_column_names(data_type.fields)
    else:
        for child in children(data_type):
            _check_nested_names(child)


def _moved_out(options: dict[str, str], name: str, given: tuple[str, ...]) -> tuple[str, ...]:
    text = options.pop(name, None)
    if text is None:
        return given
    if given:
        raise OptionError(f"give {name!r} as an argument or as an option, not both", option=name, value=text)
    return split_keys(text)


def _refuse_rows(columns: object) -> None:
    """Refuse rows, or lists of values, in the place of a table's columns."""
    made = ""
    if isinstance(columns, Mapping):
        made = "pa.table" if any(isinstance(value, list) for value in columns.values()) else ""
    elif isinstance(columns, (list, tuple)):
        rows = [one for one in columns if isinstance(one, Mapping) and not {"name", "type"} <= one.keys()]
        made = "pa.Table.from_pylist" if rows else ""
    if made:
        raise UsageError(
            f"a new table needs columns with types, not rows: create_table(name, {made}(rows)) takes the columns and "
            "types of rows, and table.write_arrow(rows) then writes them"
        )


def _column(item: Sequence[Any] | Mapping[str, Any] | Field) -> Field:
    if isinstance(item, Field):
        require_shallow(item.type)
        return item
    if isinstance(item, Mapping):
        return parse_field(item)
    if isinstance(item, str) or not isinstance(item, Sequence) or not 2 <= len(item) <= 4:
        raise UsageError(f"a column is (name, type[, comment[, default]]), got {item!r}")
    name, data_type, comment, default = (*item, None, None)[:4]
    if not isinstance(name, str):
        raise UsageError(f"a column's name is a string, got {name!r}")
    check_text(f"column {name!r}: the comment", comment)
    check_default(default, f"column {name!r}: the default")
    try:
        return Field(UNASSIGNED, name, parse_type(data_type), comment, default)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}", fields=(name,)) from error


class _Counter:
    def __init__(self, last: int) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last

    def renumber(self, data_type: DataType) -> DataType:
        if isinstance(data_type, (ArrayType, MultisetType, VectorType)):
            return msgspec.structs.replace(data_type, element=self.renumber(data_type.element))
        if isinstance(data_type, MapType):
            key = self.renumber(data_type.key)
            return msgspec.structs.replace(data_type, key=key, value=self.renumber(data_type.value))
        if isinstance(data_type, RowType):
            return msgspec.structs.replace(data_type, fields=tuple(self.renumber_field(f) for f in data_type.fields))
        return data_type

    def renumber_field(self, field: Field) -> Field:
        data_type = self.renumber(field.type)
        return msgspec.structs.replace(field, id=self.next(), type=data_type)
