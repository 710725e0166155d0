"""Applies schema changes to produce the next version of a schema, and refuses forbidden ones.

Source: format.md §3.3; Java `SchemaManager.generateTableSchema`, `SchemaChange`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.arguments import check_flag
from paimon_py.errors import SchemaError, UsageError
from paimon_py.spec.cast_rules import supports_cast, what_is_lost
from paimon_py.spec.column_paths import (
    at,
    column_path,
    locate,
    modified_field,
    modified_fields,
    path_text,
    replaced_at,
)
from paimon_py.spec.default_values import parse_default
from paimon_py.spec.layout import check_column_name, check_default, check_text
from paimon_py.spec.new_schema import CURRENT_VERSION, assign_ids, check_column_names, split_keys, with_key_nullability
from paimon_py.spec.option_changes import check_remove, check_set, renamed_options
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    Last,
    Path,
    Position,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from paimon_py.spec.type_text import contains, parse_type, sql_type, with_nullability
from paimon_py.spec.types import Atomic, DataType, Field, Root, RowType, VectorType
from paimon_py.spec.validation import validate

_DIRECTIVES = ("__BLOB", "__VECTOR")


def apply(
    schema: TableSchema, changes: Sequence[SchemaChange], *, has_snapshots: bool, time_millis: int
) -> TableSchema:
    """The next version of a schema.

    Args:
        schema: the latest version.
        changes: applied in order; the result is one version.
        has_snapshots: whether the table contains data; some options cannot change then.
        time_millis: creation time of the new version.

    Raises:
        UsageError: a change breaks a rule, or the result is not a valid schema.
    """
    if not changes:
        raise UsageError("alter needs at least one change, such as AddColumn('x', 'INT')")
    draft = _Draft(schema, has_snapshots)
    for change in changes:
        draft.apply(change)
    changed = draft.finish(time_millis)
    validate(changed, schema)
    return changed


def _refuse_dots(fields: Sequence[Field], column: object) -> None:
    """Refuse a string such as "pos.z", which may mean a field of the ROW "pos" or a column with a dot in its name."""
    if not isinstance(column, str):
        return
    row, _, rest = column.partition(".")
    if rest and any(field.name == row and isinstance(field.type, RowType) for field in fields):
        raise SchemaError(
            f"column {column!r}: write AddColumn({[row, rest]!r}, …) for a field inside {row}, or"
            f" AddColumn({[column]!r}, …) for a column whose name holds the dot",
            fields=(column,),
        )


class _Draft:
    """A schema to which changes are being applied."""

    def __init__(self, schema: TableSchema, has_snapshots: bool) -> None:
        options = Options(schema.options)
        self.schema = schema
        self.has_snapshots = has_snapshots
        self.fields = schema.fields
        self.highest = schema.highest_field_id
        self.options = dict(schema.options)
        self.comment = schema.comment
        self.renames: dict[str, str] = {}
        self.not_null_allowed = not options.get_bool("alter-column-null-to-not-null.disabled")
        self.explicit_casts = not options.get_bool("disable-explicit-type-casting")
        self.add_before_partition = options.get_bool("add-column-before-partition")

    def apply(self, change: SchemaChange) -> None:
        if isinstance(change, AddColumn):
            self.add(change)
        elif isinstance(change, RenameColumn):
            self.rename(change)
        elif isinstance(change, DropColumn):
            self.drop(change)
        elif isinstance(change, UpdateColumnType):
            self.update_type(change)
        elif isinstance(change, UpdateColumnNullability):
            self.update_nullability(change)
        elif isinstance(change, UpdateColumnPosition):
            self.fields = _move(self.fields, change.column, change.position)
        elif isinstance(change, UpdateColumnComment):
            _check_comment(change.column, change.comment)
            self.replace(change.column, lambda field: msgspec.structs.replace(field, description=change.comment))
        elif isinstance(change, UpdateColumnDefault):
            self.update_default(change)
        elif isinstance(change, SetOption):
            if check_set(self.schema, change.name, change.value, has_snapshots=self.has_snapshots):
                self.options[change.name] = change.value
        elif isinstance(change, RemoveOption):
            check_remove(self.schema, change.name, has_snapshots=self.has_snapshots)
            self.options.pop(change.name, None)
        elif isinstance(change, UpdateComment):
            self.comment = check_text("comment", change.comment)
        else:
            raise UsageError(
                f"not a schema change: {change!r}; alter takes changes such as AddColumn('x', 'INT'){_way(change)}"
            )

    def finish(self, time_millis: int) -> TableSchema:
        primary_keys = tuple(self.renames.get(name, name) for name in self.schema.primary_keys)
        options = renamed_options(self.options, self.renames)
        partition_text = options.pop("partition", None)
        key_text = options.pop("primary-key", None)
        primary_keys = primary_keys if key_text is None else split_keys(key_text)
        return TableSchema(
            id=self.schema.id + 1,
            fields=with_key_nullability(self.fields, primary_keys, options),
            highest_field_id=self.highest,
            partition_keys=self.schema.partition_keys if partition_text is None else split_keys(partition_text),
            primary_keys=primary_keys,
            options=options,
            comment=self.comment,
            time_millis=time_millis,
            version=CURRENT_VERSION,
            extra=self.schema.extra,
        )

    def add(self, change: AddColumn) -> None:
        path = column_path(change.column)
        _refuse_dots(self.fields, change.column)
        _check_comment(change.column, change.comment)
        data_type = _type(path, change.type)
        check_column_names([Field(-1, path[-1], data_type)])
        if not data_type.nullable:
            raise SchemaError(
                f"cannot add {path_text(path)} as NOT NULL: existing rows have no value for it", fields=(path[-1],)
            )
        (field,), self.highest = assign_ids([Field(-1, path[-1], data_type, change.comment)], self.highest)

        def insert(fields: tuple[Field, ...]) -> tuple[Field, ...]:
            _check_free(fields, path, path[-1])
            if change.position is None and len(path) == 1 and self.add_before_partition:
                for index, other in enumerate(fields):
                    if other.name in self.schema.partition_keys:
                        return (*fields[:index], field, *fields[index:])
            return _insert(fields, field, Last() if change.position is None else change.position)

        self.fields = modified_fields(self.fields, path, insert)

    def rename(self, change: RenameColumn) -> None:
        path = column_path(change.column)
        check_column_name(change.name)
        self.refuse_for(path, self.schema.partition_keys, "cannot rename partition column")
        self.refuse_for(path, _indexed_columns(self.options), "cannot rename column with a primary-key index:")

        def put(fields: tuple[Field, ...]) -> tuple[Field, ...]:
            index = locate(fields, path, path[-1])
            _check_free(fields, path, change.name)
            renamed = msgspec.structs.replace(fields[index], name=change.name)
            return (*fields[:index], renamed, *fields[index + 1 :])

        self.fields = modified_fields(self.fields, path, put)
        if len(path) == 1:
            origin = next((old for old, new in self.renames.items() if new == path[0]), path[0])
            self.renames[origin] = change.name

    def drop(self, change: DropColumn) -> None:
        path = column_path(change.column)
        self.refuse_for(path, self.schema.partition_keys, "cannot drop partition key")
        self.refuse_for(path, self.schema.primary_keys, "cannot drop primary key")
        self.refuse_for(path, _indexed_columns(self.options), "cannot drop column with a primary-key index:")

        def remove(fields: tuple[Field, ...]) -> tuple[Field, ...]:
            index = locate(fields, path, path[-1])
            if len(fields) == 1:
                raise SchemaError(f"cannot drop {path_text(path)}: no column would be left", fields=(path[-1],))
            return fields[:index] + fields[index + 1 :]

        self.fields = modified_fields(self.fields, path, remove)

    def update_type(self, change: UpdateColumnType) -> None:
        path = column_path(change.column)
        self.refuse_for(path, self.schema.partition_keys, "cannot change the type of partition column")
        self.refuse_for(path, self.schema.primary_keys, "cannot change the type of primary-key column")
        self.refuse_for(path, _indexed_columns(self.options), "cannot change the type of indexed column")
        wanted = _type(path, change.type)
        check_flag("keep_nullability", change.keep_nullability)
        check_flag("allow_narrowing", change.allow_narrowing)

        def put(field: Field, rest: tuple[str, ...]) -> Field:
            source = at(field.type, rest)
            target = with_nullability(wanted, source.nullable) if change.keep_nullability else wanted
            self.check_nullability(path, source, target.nullable)
            if any(contains(data_type, _is_separate) for data_type in (source, target)):
                raise SchemaError(f"cannot change {path_text(path)} from or to BLOB or VECTOR", fields=(path[-1],))
            if not supports_cast(source, target, self.explicit_casts):
                raise SchemaError(
                    f"cannot change {path_text(path)} from {sql_type(source)} to {sql_type(target)}: "
                    f"no such cast{'' if self.explicit_casts else ' without explicit casts'}",
                    fields=(path[-1],),
                )
            lost = None if change.allow_narrowing else what_is_lost(source, target)
            if lost is not None:
                raise SchemaError(
                    f"cannot change {path_text(path)} from {sql_type(source)} to {sql_type(target)} without loss: in"
                    f" existing rows, {lost}. To change it anyway, pass UpdateColumnType(…, allow_narrowing=True)",
                    fields=(path[-1],),
                )
            if sql_type(with_nullability(source, True)) == sql_type(with_nullability(target, True)):
                target = with_nullability(source, target.nullable)
            changed = msgspec.structs.replace(field, type=replaced_at(field.type, rest, target))
            if changed.default is not None:
                parse_default(changed.type, changed.default)
            return changed

        self.fields = modified_field(self.fields, path, put)

    def update_nullability(self, change: UpdateColumnNullability) -> None:
        path = column_path(change.column)
        check_flag("nullable", change.nullable)
        if change.nullable:
            self.refuse_for(path, self.schema.primary_keys, "cannot allow NULL in primary-key column")
        elif self.schema.options.get("primary-key.nullable", "").lower() == "true":
            self.refuse_for(path, self.schema.primary_keys, "'primary-key.nullable' allows NULL in primary-key column")

        def put(field: Field, rest: tuple[str, ...]) -> Field:
            source = at(field.type, rest)
            self.check_nullability(path, source, change.nullable)
            target = with_nullability(source, change.nullable)
            return msgspec.structs.replace(field, type=replaced_at(field.type, rest, target))

        self.fields = modified_field(self.fields, path, put)

    def update_default(self, change: UpdateColumnDefault) -> None:
        path = column_path(change.column)
        check_default(change.default)

        def put(field: Field, rest: tuple[str, ...]) -> Field:
            if change.default is not None:
                if rest:
                    raise SchemaError(f"an element of an array or map has no default: {path_text(path)}")
                parse_default(field.type, change.default)
            return msgspec.structs.replace(field, default=change.default)

        self.fields = modified_field(self.fields, path, put)

    def replace(self, column: Path, change: Any) -> None:
        self.fields = modified_field(self.fields, column_path(column), lambda field, _: change(field))

    def refuse_for(self, path: tuple[str, ...], names: Sequence[str], why: str) -> None:
        origins = {new: old for old, new in self.renames.items()}
        if len(path) == 1 and origins.get(path[0], path[0]) in names:
            raise SchemaError(f"{why} {path[0]!r}", fields=path)

    def check_nullability(self, path: tuple[str, ...], source: DataType, nullable: bool) -> None:
        if source.nullable and not nullable and not self.not_null_allowed:
            raise SchemaError(
                f"cannot make {path_text(path)} NOT NULL: existing rows may contain NULL; the option "
                "'alter-column-null-to-not-null.disabled' = 'false' allows it",
                fields=(path[-1],),
            )


def _type(path: tuple[str, ...], text: Any) -> DataType:
    try:
        return parse_type(text)
    except SchemaError as error:
        raise SchemaError(f"column {path_text(path)}: {error}", fields=(path[-1],)) from error


def _is_separate(data_type: DataType) -> bool:
    return isinstance(data_type, VectorType) or (isinstance(data_type, Atomic) and data_type.root is Root.BLOB)


def _check_comment(column: Path, comment: str | None) -> None:
    if (check_text("comment", comment) or "").strip().startswith(_DIRECTIVES):
        raise SchemaError(f"column {column!r}: comments that turn a column into BLOB or VECTOR are not supported")


def _check_free(fields: Sequence[Field], path: tuple[str, ...], name: str) -> None:
    if any(field.name == name for field in fields):
        raise SchemaError(
            f"there already is a column {path_text((*path[:-1], name))}; table.refresh() shows what columns there are",
            fields=(name,),
        )


def _indexed_columns(options: dict[str, str]) -> tuple[str, ...]:
    kinds = ("vector", "btree", "bitmap", "multivalue", "full-text")
    return tuple(name for kind in kinds for name in split_keys(options.get(f"pk-{kind}.index.columns", "")))


def _insert(fields: tuple[Field, ...], field: Field, position: Position) -> tuple[Field, ...]:
    if isinstance(position, First):
        return (field, *fields)
    if isinstance(position, Last):
        return (*fields, field)
    if not isinstance(position, (After, Before)):
        raise UsageError(f"a position is First(), Last(), After(name) or Before(name), not {position!r}")
    if not isinstance(position.name, str):
        raise UsageError(f"a position names a top-level column, not {position.name!r}: After('a') or Before('a')")
    index = locate(fields, (position.name,), position.name) + isinstance(position, After)
    return (*fields[:index], field, *fields[index:])


def _move(fields: tuple[Field, ...], name: str, position: Position) -> tuple[Field, ...]:
    if not isinstance(name, str):
        raise UsageError("only top-level columns have a position")
    index = locate(fields, (name,), name)
    rest = fields[:index] + fields[index + 1 :]
    if isinstance(position, (After, Before)) and position.name == name:
        raise SchemaError(f"cannot move column {name!r} next to itself", fields=(name,))
    return _insert(rest, fields[index], position)


def _way(given: object) -> str:
    """A hint for values that are nearly schema changes."""
    if isinstance(given, (list, tuple)):
        return ", each as an argument of its own: alter(*changes)"
    return "; SetOption(name, text) sets an option" if isinstance(given, Mapping) else ""
