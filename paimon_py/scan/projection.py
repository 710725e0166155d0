"""The columns that a scan returns: whole columns, and fields of ROW columns, whose other fields are not decoded.

Source: Java `ReadBuilder.withReadType` (nested projection).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arguments import as_list, as_names
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.errors import UsageError
from paimon_py.expr.bind import bind, near_names
from paimon_py.expr.column import VariantColumn
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.predicate import IsNull, Predicate, Ref
from paimon_py.expr.references import refs_of
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import UNASSIGNED, sql_type
from paimon_py.spec.types import DataType, Field, RowType, VariantPart, VariantParts
from paimon_py.spec.variant_paths import WHOLE, column_name, with_parts


class Projection(msgspec.Struct, frozen=True, kw_only=True):
    """Returned columns: `fields[i]` is at `paths[i]`; `parts`: all required parts of VARIANT columns."""

    fields: tuple[Field, ...]
    paths: tuple[tuple[str, ...], ...]
    parts: tuple[PartOf, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns to read, each once."""
        return tuple(dict.fromkeys(path[0] for path in self.paths))

    @property
    def by_name(self) -> dict[str, tuple[str, ...]]:
        """The path in the table of each returned column."""
        return {field.name: path for field, path in zip(self.fields, self.paths, strict=True)}

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the returned columns."""
        return to_arrow_schema(self.fields)

    def narrow(self, schema: TableSchema, whole: frozenset[str]) -> TableSchema:
        """The schema with ROW columns reduced to the returned fields; `whole` columns are needed completely elsewhere.

        A VARIANT column becomes a ROW of its requested parts.
        """
        inner: dict[str, list[tuple[str, ...]]] = {}
        for path in self.paths:
            inner.setdefault(path[0], []).append(path[1:])
        for part in self.parts:
            if part.ref.name in inner:
                inner[part.ref.name].append(part.ref.column_path[1:])
        schema = _with_parts(schema, self.parts)
        fields = tuple(
            msgspec.structs.replace(field, type=_narrow(field.type, inner[field.name]))
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


class PartOf(str):
    """The name of a returned column that is a part of a VARIANT column, together with the part.

    Attributes: `ref`, the column and its part.
    """

    ref: Ref

    @classmethod
    def of(cls, ref: Ref) -> PartOf:
        """The part for `ref`, named by its path in the column."""
        assert ref.part is not None
        made = cls(column_name(".".join(ref.column_path), ref.part.path))
        made.ref = ref
        return made


def _with_parts(schema: TableSchema, parts: Sequence[PartOf]) -> TableSchema:
    """The schema with VARIANT columns replaced by their parts."""
    by_column: dict[tuple[str, ...], list[VariantPart]] = {}
    for part in parts:
        assert part.ref.part is not None
        by_column.setdefault(part.ref.column_path, []).append(part.ref.part)
    fields = schema.fields
    for path, wanted in by_column.items():
        fields = _replace(fields, path, wanted)
    return msgspec.structs.replace(schema, fields=fields)


def _replace(fields: tuple[Field, ...], path: tuple[str, ...], parts: Sequence[VariantPart]) -> tuple[Field, ...]:
    made = []
    for field in fields:
        if field.name == path[0]:
            kind = field.type
            if len(path) == 1:
                kind = with_parts(kind, parts)
            elif isinstance(kind, RowType):
                kind = msgspec.structs.replace(kind, fields=_replace(kind.fields, path[1:], parts))
            field = msgspec.structs.replace(field, type=kind)
        made.append(field)
    return tuple(made)


def with_parts_of(projection: Projection, predicate: Predicate | None, *, keeps_whole: bool = False) -> Projection:
    """The projection plus the parts of VARIANT columns that a condition needs; a column that is also returned whole
    becomes one more part.

    Args:
        keeps_whole: rows are compared by whole columns.
    Raises: UsageError if a ROW around such a column is returned whole.
    """
    refs = [] if predicate is None else [ref for ref in refs_of(predicate) if ref.part is not None]
    parts = [*projection.parts, *(PartOf.of(ref) for ref in refs)]
    columns = {part.ref.column_path for part in parts}
    if not columns:
        return projection
    paths = []
    for path in projection.paths:
        inside = next((column for column in columns if len(path) < len(column) and column[: len(path)] == path), None)
        if inside is not None:
            raise UsageError(
                f"{'.'.join(path)!r} is returned whole, and a part of the variant {'.'.join(inside)!r} in it is asked "
                "for: name the fields of the ROW that are to be returned"
            )
        if path in columns:
            parts.append(PartOf.of(Ref(path, part=WHOLE)))
            path = (*path, WHOLE.name)
        paths.append(path)
    if keeps_whole:
        parts += [PartOf.of(Ref(path, part=WHOLE)) for path in columns]
    return msgspec.structs.replace(projection, paths=tuple(paths), parts=tuple(parts))


def whole_columns(predicate: Predicate | None) -> frozenset[str]:
    """The columns that a condition needs whole, without those from which it needs only parts."""
    if predicate is None:
        return frozenset()
    return frozenset(ref.name for ref in refs_of(predicate) if ref.part is None)


def listed_names(columns: object) -> tuple[str, ...] | None:
    """The names in a list, None for none; a single name is refused. Parts of VARIANT columns are `PartOf`s.

    Raises: UsageError
    """
    if isinstance(columns, str):
        raise UsageError(f"columns must be a list of names: columns=[{columns!r}]")
    if columns is None:
        return None
    what = "columns must be a list of names"
    if isinstance(columns, (set, frozenset)):
        return as_names(what, columns)
    return as_names(what, [_name_of(item) for item in as_list(what, columns)])


def _name_of(item: object) -> object:
    return PartOf.of(item._ref) if isinstance(item, VariantColumn) else item


def projection_of(columns: ColumnList | None, schema: TableSchema, *, takes_parts: bool = False) -> Projection:
    """The projection for `columns`, None for all: `"a"` is the column of that name; `"pos.x"` is the column of that
    name if it exists, else the field `x` of the ROW `pos`.

    `takes_parts`: parts of VARIANT columns are allowed.

    Raises: UsageError for unknown or repeated columns; UnsupportedError for parts if they are not allowed.
    """
    columns = listed_names(columns)
    if columns is None:
        return Projection(fields=schema.fields, paths=tuple((name,) for name in schema.names))
    doubled = sorted({name for name in columns if list(columns).count(name) > 1}, key=str)
    found = [_find(name, schema, takes_parts) for name in columns]
    if doubled:
        raise UsageError(f"columns names {', '.join(map(repr, doubled))} more than once")
    parts = tuple(name for name in columns if isinstance(name, PartOf))
    return Projection(
        fields=tuple(field for field, _ in found), paths=tuple(path for _, path in found), parts=parts
    )  # fmt: skip


def _find(name: object, schema: TableSchema, takes_parts: bool) -> tuple[Field, tuple[str, ...]]:
    if not isinstance(name, str):
        raise UsageError(f"columns must be names, not {name!r}")
    if isinstance(name, PartOf):
        bound = bind(IsNull(name.ref), schema.fields, takes_parts=takes_parts)
        assert isinstance(bound, IsNull)
        assert isinstance(name.ref.part, VariantPart)
        return Field(UNASSIGNED, str(name), name.ref.part.type), bound.column.path
    found = _resolve(schema.fields, name)
    if found is None:
        hint = _dead_end(schema.fields, name) or column_hint(name, schema)
        raise UsageError(f"column {name!r} does not exist; {hint}")
    field, path = found
    return msgspec.structs.replace(field, name=name), path


def column_hint(name: str, schema: TableSchema) -> str:
    """The hint for a caller who names a missing column."""
    near = near_names(name, schema.names)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"columns: {', '.join(schema.names)}; table.refresh() sees columns that others added"


def _resolve(fields: Sequence[Field], name: str) -> tuple[Field, tuple[str, ...]] | None:
    """The field that a dotted name refers to, and its path; a field with exactly this name takes precedence."""
    for field in fields:
        if field.name == name:
            return field, (name,)
    for field in fields:
        if name.startswith(f"{field.name}.") and isinstance(field.type, RowType):
            found = _resolve(field.type.fields, name[len(field.name) + 1 :])
            if found is not None:
                inner, path = found
                if field.type.nullable and not inner.type.nullable:
                    inner = msgspec.structs.replace(inner, type=msgspec.structs.replace(inner.type, nullable=True))
                return inner, (field.name, *path)
    return None


def _dead_end(fields: Sequence[Field], name: str) -> str | None:
    """The reason why a dotted name does not resolve; None if its first step does not exist."""
    for field in fields:
        if not name.startswith(f"{field.name}."):
            continue
        if not isinstance(field.type, RowType):
            return f"{field.name!r} is {sql_type(field.type)}, which is returned whole: only ROWs have fields to pick"
        inner = _dead_end(field.type.fields, name[len(field.name) + 1 :])
        return inner or f"{field.name!r} has the fields {', '.join(each.name for each in field.type.fields)}"
    return None


def _narrow(kind: DataType, paths: Sequence[tuple[str, ...]]) -> DataType:
    """The type reduced to the fields at these paths; the empty path keeps all of it."""
    if isinstance(kind, VariantParts):
        return kind
    if () in paths or not isinstance(kind, RowType):
        return kind
    inner: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        inner.setdefault(path[0], []).append(path[1:])
    kept = [field for field in kind.fields if field.name in inner]
    fields = tuple(msgspec.structs.replace(field, type=_narrow(field.type, inner[field.name])) for field in kept)
    return msgspec.structs.replace(kind, fields=fields)


def _inside(array: pa.Array, path: Sequence[str]) -> pa.Array:
    for name in path:
        array = pc.struct_field(array, [array.type.get_field_index(name)])
    return array
