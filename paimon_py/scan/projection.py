"""Which columns a scan returns: whole ones, and fields inside ROW columns, of which nothing else is decoded.

Source: Java `ReadBuilder.withReadType` (nested projection).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.doors import NameList, named
from paimon_py.errors import UsageError
from paimon_py.expr.bind import near_names
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import DataType, Field, RowType


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """Returned columns: `fields[i]` lies at `paths[i]`."""

    fields: tuple[Field, ...]
    paths: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns to read, each once."""
        return tuple(dict.fromkeys(path[0] for path in self.paths))

    @property
    def by_name(self) -> dict[str, tuple[str, ...]]:
        """Where each returned column lies in the table."""
        return {field.name: path for field, path in zip(self.fields, self.paths, strict=True)}

    @property
    def arrow_schema(self) -> pa.Schema:
        """The returned columns for Arrow."""
        return to_arrow_schema(self.fields)

    def narrowed(self, schema: TableSchema, whole: frozenset[str]) -> TableSchema:
        """The schema with as much of its ROW columns as is returned; `whole` columns are needed by others, too."""
        inner: dict[str, list[tuple[str, ...]]] = {}
        for path in self.paths:
            inner.setdefault(path[0], []).append(path[1:])
        fields = tuple(
            msgspec.structs.replace(field, type=_narrowed(field.type, inner[field.name]))
            if field.name in inner and field.name not in whole
            else field
            for field in schema.fields
        )
        return schema if fields == schema.fields else msgspec.structs.replace(schema, fields=fields)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The returned columns of a batch of `columns`."""
        if not self.paths or all(len(path) == 1 for path in self.paths):
            return batch
        columns = [_inside(batch.column(path[0]), path[1:]) for path in self.paths]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)


def listed_names(columns: object) -> tuple[str, ...] | None:
    """The names in a list, None for none; one name alone is refused.

    Raises: UsageError
    """
    if isinstance(columns, str):
        raise UsageError(f"columns must be a list of names: columns=[{columns!r}]")
    return None if columns is None else named("columns must be a list of names", columns)


def projection_of(columns: NameList | None, schema: TableSchema) -> Projection:
    """What `columns` names, None for all: `"a"` is the column of that name if there is one, `"pos.x"` else the field
    `x` of the ROW `pos`.

    Raises: UsageError for unknown or repeated ones.
    """
    columns = listed_names(columns)
    if columns is None:
        return Projection(fields=schema.fields, paths=tuple((name,) for name in schema.names))
    doubled = sorted({name for name in columns if list(columns).count(name) > 1}, key=str)
    found = [_found(name, schema) for name in columns]
    if doubled:
        raise UsageError(f"columns names {', '.join(map(repr, doubled))} more than once")
    return Projection(fields=tuple(field for field, _ in found), paths=tuple(path for _, path in found))


def _found(name: object, schema: TableSchema) -> tuple[Field, tuple[str, ...]]:
    if not isinstance(name, str):
        raise UsageError(f"columns must be names, not {name!r}")
    found = _resolved(schema.fields, name)
    if found is None:
        hint = _dead_end(schema.fields, name) or column_hint(name, schema)
        raise UsageError(f"there is no column {name!r}; {hint}")
    field, path = found
    return msgspec.structs.replace(field, name=name), path


def column_hint(name: str, schema: TableSchema) -> str:
    """What to say to somebody who names a column that is not there."""
    near = near_names(name, schema.names)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"columns: {', '.join(schema.names)}; table.refresh() sees columns that others added"


def _resolved(fields: Sequence[Field], name: str) -> tuple[Field, tuple[str, ...]] | None:
    """The field that a dotted name leads to, and the way; a field that is really called so comes first."""
    for field in fields:
        if field.name == name:
            return field, (name,)
    for field in fields:
        if name.startswith(f"{field.name}.") and isinstance(field.type, RowType):
            found = _resolved(field.type.fields, name[len(field.name) + 1 :])
            if found is not None:
                inner, path = found
                if field.type.nullable and not inner.type.nullable:
                    inner = msgspec.structs.replace(inner, type=msgspec.structs.replace(inner.type, nullable=True))
                return inner, (field.name, *path)
    return None


def _dead_end(fields: Sequence[Field], name: str) -> str | None:
    """Where the way that a dotted name goes ends; None if it does not even begin."""
    for field in fields:
        if not name.startswith(f"{field.name}."):
            continue
        if not isinstance(field.type, RowType):
            return f"{field.name!r} is {sql_type(field.type)}, which is returned whole: only ROWs have fields to pick"
        inner = _dead_end(field.type.fields, name[len(field.name) + 1 :])
        return inner or f"{field.name!r} has the fields {', '.join(each.name for each in field.type.fields)}"
    return None


def _narrowed(kind: DataType, paths: Sequence[tuple[str, ...]]) -> DataType:
    """The type with the fields at these paths only; the empty path asks for all of it."""
    if () in paths or not isinstance(kind, RowType):
        return kind
    inner: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        inner.setdefault(path[0], []).append(path[1:])
    kept = [field for field in kind.fields if field.name in inner]
    fields = tuple(msgspec.structs.replace(field, type=_narrowed(field.type, inner[field.name])) for field in kept)
    return msgspec.structs.replace(kind, fields=fields)


def _inside(array: pa.Array, path: Sequence[str]) -> pa.Array:
    for name in path:
        array = pc.struct_field(array, [array.type.get_field_index(name)])
    return array
