"""Matches files with the columns of the table to import into. Pure except for casts of strings."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import encode
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.bind import near_names
from paimon_py.files.casts.cast import cast
from paimon_py.imports.result import UnfitFile
from paimon_py.imports.source_files import SourceFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type, sql_type, with_nullability
from paimon_py.spec.types import STRING, Atomic, DataType, Field, Root
from paimon_py.write.limits import limit_check
from paimon_py.write.misfits import Misfit, place_of

PartitionBy = Sequence[str] | Mapping[str, object] | None
"""Names of partition keys, optionally with their types; None uses the names of the directories."""


class Layout(msgspec.Struct, frozen=True):
    """The columns of files, and the partition keys with their types.

    Attributes:
        fields: columns stored in the files.
        keys: partition keys, whose values are in the names of directories.
    """

    fields: tuple[Field, ...]
    keys: tuple[Field, ...]

    @property
    def columns(self) -> tuple[Field, ...]:
        """All columns of a new table: those of the files, then the keys."""
        return self.fields + self.keys


def layout_of(files: Sequence[SourceFile], by: PartitionBy, required: Container[str] = ()) -> Layout:
    """The columns of a new table: all columns of the files, each with its type in the first file that has it.

    All are nullable except those that are `required`, its primary key.

    Raises: UsageError for partition keys that the directories do not have.
    """
    columns: dict[str, Field] = {}
    for file in files:
        for field in file.fields:
            columns.setdefault(field.name, field)
    _require_other_names(files)
    given = _given_keys(by)
    found = _keys_of(files)
    if given is not None and tuple(given) != found:
        raise UsageError(f"partition_by names {list(given)}, and the directories say {list(found)}")
    kinds: Mapping[str, DataType] = given or {}
    for key in found:
        columns.pop(key, None)
    named = [*columns.values(), *(Field(id=0, name=key, type=kinds.get(key, STRING)) for key in found)]
    numbered = tuple(
        Field(id=at, name=field.name, type=with_nullability(field.type, field.name not in required))
        for at, field in enumerate(named)
    )
    return Layout(numbered[: len(columns)], numbered[len(columns) :])


def _require_other_names(files: Sequence[SourceFile]) -> None:
    """Raises: SchemaError for columns, or a column and a partition key, that may be one: names differ only in case"""
    known: dict[str, tuple[str, str]] = {}
    for file in files:
        columns = [field.name for field in file.fields]
        for name in (*columns, *(key for key, _ in file.partition)):
            before, path = known.setdefault(name.lower(), (name, file.path))
            if before != name and not {before, name} <= {*columns}:
                there = f"in {path} and {name!r} in {file.path}" if path != file.path else f"and {name!r} in {path}"
                raise SchemaError(
                    f"{before!r} {there} differ only in case: write the files again with one name for the column, or"
                    " create the table with both first if they are two columns",
                    fields=(before, name),
                )


def layout_in(schema: TableSchema, files: Sequence[SourceFile], by: PartitionBy) -> Layout:
    """The columns of an existing table.

    Raises: UsageError if its partition keys differ from those of the directories.
    """
    given, found = _given_keys(by), _keys_of(files)
    wanted = tuple(schema.partition_keys)
    for who, keys in (("partition_by says", wanted if given is None else tuple(given)), ("the directories say", found)):
        if keys != wanted:
            raise UsageError(f"the table is partitioned by {list(wanted)}, and {who} {list(keys)}")
    fields = tuple(field for field in schema.fields if field.name not in wanted)
    return Layout(fields, tuple(schema.partition_fields))


def _given_keys(by: PartitionBy) -> dict[str, DataType] | None:
    if by is None:
        return None
    if isinstance(by, Mapping):
        return {name: parse_type(kind) for name, kind in by.items()}  # type: ignore[arg-type]
    if isinstance(by, str) or not all(isinstance(name, str) for name in by):
        raise UsageError(f"partition_by is a list of names, or maps names to types, not {by!r}")
    return dict.fromkeys(by, STRING)


def _keys_of(files: Sequence[SourceFile]) -> tuple[str, ...]:
    kinds = {tuple(key for key, _ in file.partition) for file in files}
    if len(kinds) > 1:
        shown = " and ".join(str(list(keys)) for keys in sorted(kinds)[:2])
        raise UsageError(f"directories say different partition keys: {shown}; bring them one after the other")
    return next(iter(kinds), ())


def misfits_of(files: Iterable[SourceFile], layout: Layout, *, by_reference: bool) -> list[UnfitFile]:
    """The files that cannot be imported, each with the first reason."""
    found = ((file, _misfit(file, layout, by_reference=by_reference)) for file in files)
    return [UnfitFile(file.path, reason) for file, reason in found if reason is not None]


def _misfit(file: SourceFile, layout: Layout, *, by_reference: bool) -> str | None:
    keys = {field.name for field in layout.keys}
    types = {field.name: field.type for field in layout.fields}
    may_be_null = {field.name: field.type.nullable and by_reference for field in file.fields}
    for name in file.untyped:
        if by_reference or name not in types:
            way = "copy=True fills the column with NULL" if name in types else "give it the type that it should have"
            return f"column {name!r} contains only NULL and has no type; {way}"
    for field in file.fields:
        if field.name in keys:
            continue  # the value is that of the directory, as in Java and Spark
        if field.name not in types:
            near = near_names(field.name, [name for name in types if name not in may_be_null])
            hint = f"is it {' or '.join(map(repr, near))}? If not, " if near else ""
            return f"column {field.name!r} is not in the table; {hint}add it with table.alter(AddColumn(…)) first"
        if by_reference and not _same(field.type, types[field.name]):
            there, here = sql_type(field.type), sql_type(types[field.name])
            return f"column {field.name!r} is {there} in the file and {here} in the table"
    for field in layout.fields:
        fills = not by_reference and field.default is not None
        if not field.type.nullable and may_be_null.get(field.name, True) and not fills:
            if field.name not in may_be_null:
                way = "copy=True with a default of the column fills it" if by_reference else "give the column a default"
                return f"column {field.name!r} is NOT NULL in the table, but not in the file, which lacks it; {way}"
            return f"column {field.name!r} is NOT NULL in the table, but not in the file; copy=True checks the values"
        if field.type.nullable and by_reference and field.name in file.strict:
            return f"column {field.name!r} is NOT NULL in the file, but not in the table"
    try:
        partition_of(file, layout)
    except SchemaError as error:
        return str(error)
    return file.only_copied if by_reference else None


def _same(one: DataType, other: DataType) -> bool:
    plain = [sql_type(with_nullability(kind, True)).replace(" NOT NULL", "") for kind in (one, other)]
    return plain[0] == plain[1]


def partition_values(file: SourceFile, layout: Layout) -> list[pa.Array]:
    """The values of the partition keys, each as an array of one element.

    Raises: SchemaError for a string that is not a value of its key.
    """
    found = []
    for field, (_, text) in zip(layout.keys, file.partition, strict=True):
        if text is None and not field.type.nullable:
            message = f"partition key {field.name!r} is NOT NULL, but NULL in the name of the directory"
            raise SchemaError(message, fields=(field.name,))
        try:
            value = _value(text, field.type)
        except (pa.ArrowException, SchemaError, Misfit) as error:
            message = f"partition key {field.name!r}: {text!r} is not of type {sql_type(field.type)}"
            raise SchemaError(message, fields=(field.name,)) from error
        found.append(value)
    return found


def _value(text: str | None, kind: DataType) -> pa.Array:
    """The value of a string, exactly. Raises: ArrowException, SchemaError or Misfit if it has none"""
    array = pa.array([text], pa.string())
    if isinstance(kind, Atomic) and kind.root is Root.TIME:
        return cast(array, STRING, kind)
    array = array.cast(to_arrow_type(kind))
    check = limit_check(kind) if isinstance(kind, Atomic) else None
    if check is not None:
        check(array, place_of("key"))
    return array


def partition_of(file: SourceFile, layout: Layout) -> bytes:
    """The partition of a file, as a serialized BinaryRow. Raises: as `partition_values`"""
    values = partition_values(file, layout)
    serialized: bytes = encode(values, [field.type for field in layout.keys])[0].as_py()
    return serialized
