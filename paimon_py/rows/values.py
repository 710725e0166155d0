"""Assigned values and conditions, over rows of the table and of a merge's source.

A value is a literal, a column (`col("a")`, in a merge `col("source.a")` or the string `"source.a"`), an expression
(`col("a") + 1`, `sql("upper(a)")`), or a function that takes a record batch and returns an Arrow array. A string that
looks like a column or an expression but is not valid as one is refused (`text_values.column_meant`); `lit("source.a")`
is the string itself. Type errors are reported before a row is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import from_arrow_type, to_arrow_type
from paimon_py.codec.columns import from_numpy
from paimon_py.codec.python_values import python_array, shown_value
from paimon_py.codec.variant.arrays import of_encoded, of_value
from paimon_py.errors import PaimonError, SchemaError, UsageError
from paimon_py.expr.arrow import Filter
from paimon_py.expr.bind import predicate_of
from paimon_py.expr.calculate import calculate
from paimon_py.expr.column import Calculation, Column, Lit, ref_of, tree_of
from paimon_py.expr.literal import DateValue, TimestampValue, is_na
from paimon_py.expr.predicate import Constant, Predicate, Ref
from paimon_py.expr.references import columns_of, with_refs
from paimon_py.expr.sql import parse_column
from paimon_py.expr.sql_intervals import NOW
from paimon_py.rows.fractions import without_fractions
from paimon_py.rows.text_values import column_meant, correct, is_path
from paimon_py.rows.variant_parts import bind_with_parts, filter_of, part_reader, without_parts
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Field, Root
from paimon_py.write.convert import plan
from paimon_py.write.listed_rows import VALUE_ERRORS, convert_values
from paimon_py.write.misfits import place_of
from paimon_py.write.steps import Refusal

_DAY = re.compile(r"\s*[0-9]{4}-[0-9]")
_NOW_OF = {Root.DATE: "today", Root.TIMESTAMP: "localtimestamp", Root.TIMESTAMP_LTZ: "now"}

SOURCE = "source"
TARGET = "target"

Columns = Mapping[str, pa.Array]
Value = Callable[[Columns, int], pa.Array]


class Scope(msgspec.Struct, frozen=True):
    """The columns that values and conditions may refer to.

    `target`: columns of the table; `source`: of a merge's source, None elsewhere. In a merge, columns are named
    `source.a` and `target.a`; the bare name suffices if only one side has it. `absent`: names of columns on the side
    that has no row here.
    """

    target: tuple[Field, ...] = ()
    source: pa.Schema | None = None
    is_merge: bool = False
    absent: tuple[str, ...] = ()

    def path(self, path: Sequence[str]) -> tuple[str, ...]:
        """Resolve a column as the caller writes it: its name in `columns`, and the fields inside it.

        Raises: UsageError if the column does not exist or is ambiguous.
        """
        if not self.is_merge:
            return (self._check_name(TARGET, path[0]), *path[1:])
        if path[0] not in self.names and path[0].startswith((f"{SOURCE}.", f"{TARGET}.")):
            side, _, name = path[0].partition(".")
            return (self._check_name(side, name), *path[1:])
        if path[0] in (SOURCE, TARGET) and len(path) > 1:
            return (self._check_name(path[0], path[1]), *path[2:])
        sides = [side for side in (SOURCE, TARGET) if path[0] in self._names(side)]
        if len(sides) > 1:
            raise UsageError(
                f"column {path[0]!r} is in the source and in the table: write source.{path[0]} or target.{path[0]}"
            )
        return (self._check_name(sides[0] if sides else self._only_side, path[0]), *path[1:])

    def columns(self, target: pa.RecordBatch | None, source: pa.RecordBatch | None) -> dict[str, pa.Array]:
        """The columns of both sides, under the names that `path` returns."""
        if not self.is_merge:
            assert target is not None
            return dict(zip(target.schema.names, target.columns, strict=True))
        found: dict[str, pa.Array] = {}
        for side, batch in ((TARGET, target), (SOURCE, source)):
            if batch is not None:
                found.update({f"{side}.{name}": batch.column(at) for at, name in enumerate(batch.schema.names)})
        return found

    def arrow_type(self, path: Sequence[str]) -> pa.DataType:
        """The Arrow type of a column, given by `path`.

        Raises: UsageError for a missing field.
        """
        side, name = self._side(path[0])
        if side == SOURCE:
            assert self.source is not None
            kind = self.source.field(name).type
        else:
            kind = to_arrow_type(self._field(name).type)
        for step in path[1:]:
            if not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
                raise UsageError(f"{'.'.join(path)}: {kind} has no field {step!r}")
            kind = kind.field(step).type
        return kind

    def reader(self, ref: Ref) -> ColumnReader:
        """Resolve a column, a field inside it, or a part of a VARIANT, as the caller writes it.

        Raises: as `path`, `arrow_type` and `part_reader`.
        """
        path = self.path(ref.path)
        if ref.part is not None:
            part, field = part_reader(Ref(path, part=ref.part), self._as_field(0, path[0]))
            return ColumnReader(part, path[0], to_arrow_type(field.type))

        def read(columns: Columns) -> pa.Array:
            array = columns[path[0]]
            return pc.struct_field(array, list(path[1:])) if len(path) > 1 else array

        return ColumnReader(read, path[0], self.arrow_type(path))

    def mask(self, condition: Predicate) -> tuple[frozenset[str], Filter]:
        """The names that a condition uses, and a function for the mask of matching rows.

        Raises: as `condition`.
        """
        found = self.condition(condition)
        return found.names, found.mask

    def condition(self, condition: object) -> Condition:
        """Compile a predicate, or its SQL string, to a mask over `columns`.

        Raises: UsageError if it does not fit the columns.
        """
        predicate = predicate_of(condition)
        moved = _rename(predicate, self.path)
        names = sorted(columns_of(moved))
        bound = bind_with_parts(moved, [self._as_field(number, name) for number, name in enumerate(names)])
        own: Predicate = Constant(True)
        if all(self._side(name)[0] == TARGET for name in names):
            there = _rename(moved, lambda path: (self._side(path[0])[1], *path[1:]))
            own = without_parts(bind_with_parts(there, self.target))
        return Condition(frozenset(names), filter_of(bound), own)

    def target_columns(self, names: Iterable[str]) -> frozenset[str]:
        """The table's column names among some names in `columns`."""
        sides = map(self._side, names)
        return frozenset(name for side, name in sides if side == TARGET)

    def _as_field(self, number: int, name: str) -> Field:
        side, column = self._side(name)
        if side == TARGET:
            field = self._field(column)
            return field if not self.is_merge else msgspec.structs.replace(field, name=name)
        try:
            return Field(number, name, from_arrow_type(self.arrow_type((name,))))
        except SchemaError as error:
            raise SchemaError(f"a condition uses {name}: {error}", fields=(column,)) from error

    def has(self, side: str, name: str) -> bool:
        """Whether one side has a column of this name."""
        return name in self._names(side)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of both sides, including the side that has no row here."""
        return (*self._names(TARGET), *self._names(SOURCE), *self.absent)

    def _names(self, side: str) -> Sequence[str]:
        if side == SOURCE:
            return () if self.source is None else self.source.names
        return [field.name for field in self.target]

    @property
    def _only_side(self) -> str:
        return SOURCE if self.source is not None and not self.target else TARGET

    def _check_name(self, side: str, name: str) -> str:
        names = self._names(side)
        if name not in names:
            where = "the source" if side == SOURCE else "the table"
            have = f"its columns: {', '.join(names)}" if names else f"{where} has no row here"
            raise UsageError(f"{where} has no column {name!r}; {have}")
        return f"{side}.{name}" if self.is_merge else name

    def _side(self, name: str) -> tuple[str, str]:
        if not self.is_merge:
            return TARGET, name
        side, _, column = name.partition(".")
        return side, column

    def _field(self, name: str) -> Field:
        return next(field for field in self.target if field.name == name)


class ColumnReader(NamedTuple):
    """Takes a column, a field inside it, or a part of it from `columns`.

    `name`: the column, in `columns`. `type`: of what `read` returns.
    """

    read: Callable[[Columns], pa.Array]
    name: str
    type: pa.DataType


class Condition(NamedTuple):
    """A condition over a scope's columns.

    `names`: the names that it uses. `mask`: computes the rows for which it is true. `own`: its part about rows of the
        table alone.
    """

    names: frozenset[str]
    mask: Filter
    own: Predicate


def _rename(predicate: Predicate, path: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Predicate:
    """A predicate with its columns renamed."""
    return with_refs(predicate, lambda ref: Ref(path(ref.path), part=ref.part))


class Assignment(NamedTuple):
    """A column of the table, the function that computes its values, and its input columns (None: all)."""

    field: Field
    value: Value
    names: frozenset[str] | None


def assignments(fields: Sequence[Field], values: Mapping[str, object], scope: Scope) -> tuple[Assignment, ...]:
    """Compile a mapping from columns to values; all columns exist.

    Raises:
        UsageError: an unknown column in a value, or a string that looks like a column or an expression but is not valid
            as one.
        SchemaError: a value cannot be converted to the type of its column; all such columns are listed.
    """
    by_name = {field.name: field for field in fields}
    problems: list[tuple[str, str]] = []
    found = []
    for name, value in values.items():
        try:
            found.append(_assignment(by_name[name], value, scope))
        except SchemaError as error:
            problems.append((name, str(error)))
    if problems:
        lines = "".join(f"\n  {text}" for _, text in problems)
        raise SchemaError(f"values do not fit their columns:{lines}", fields=tuple(name for name, _ in problems))
    return tuple(found)


def _assignment(field: Field, value: object, scope: Scope) -> Assignment:
    reference = _reference(field, value, scope)
    if reference is not None:
        found = scope.reader(reference)
        step = _step(found.type, field)

        def column(columns: Columns, rows: int) -> pa.Array:
            del rows
            return step(found.read(columns))

        return Assignment(field, column, frozenset([found.name]))
    if isinstance(value, Calculation) or (isinstance(value, Lit) and isinstance(value.value, msgspec.Struct)):
        return _from_calculation(field, value, scope)
    if callable(value):
        return Assignment(field, _from_function(field, value), None)
    single = _literal(field, value.value if isinstance(value, Lit) else value)

    def literal(columns: Columns, rows: int) -> pa.Array:
        del columns
        return single.take(from_numpy(np.zeros(rows, np.int64), pa.int64()))

    return Assignment(field, literal, frozenset())


def _reference(field: Field, value: object, scope: Scope) -> Ref | None:
    """The column that a value names; None for any other value."""
    if isinstance(value, Column):
        return ref_of(value)
    if not isinstance(value, str):
        return None
    side, dot, name = value.partition(".")
    sided = scope.is_merge and bool(dot) and side in (SOURCE, TARGET)
    if sided and scope.has(side, name):
        return Ref((side, name))
    meant = column_meant(value, scope.names)
    if meant is not None and not (sided and is_path(value)):
        raise UsageError(_mistaken(field, value, meant, scope))
    if sided:
        return Ref(parse_column(value).path if "`" in name or '"' in name else (side, *name.split(".")))
    return None


def _mistaken(field: Field, value: str, meant: Sequence[str], scope: Scope) -> str:
    named = meant if scope.is_merge or meant[0] not in (SOURCE, TARGET) else meant[1:]
    column = f'col("{".".join(named)}") for the column'
    if is_path(value):
        meant_by = column
    else:
        text = json.dumps(correct(value, sided=scope.is_merge), ensure_ascii=False)
        meant_by = f"sql({text}) for the value, {column}"
    return (
        f"{field.name}: the string {value!r} looks like a column or an expression: write"
        f" {meant_by}, and lit({json.dumps(value, ensure_ascii=False)}) to store the string"
    )


def _from_function(field: Field, function: Callable[..., object]) -> Value:
    def value(columns: Columns, rows: int) -> pa.Array:
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        made = function(batch)
        if isinstance(made, pa.ChunkedArray):
            made = made.combine_chunks()
        if isinstance(made, pa.Scalar):
            made = pa.repeat(made, rows)
        if not isinstance(made, pa.Array) or len(made) != rows:
            shown = f"{len(made)} values" if isinstance(made, pa.Array) else repr(made)
            raise UsageError(f"the function for {field.name} must return an Arrow array of {rows} values, not {shown}")
        return _step(made.type, field)(made)

    return value


def _from_calculation(field: Field, what: Calculation | Lit, scope: Scope) -> Assignment:
    try:
        found = calculate(tree_of(what), scope)
    except SchemaError as error:
        raise SchemaError(f"{field.name}: {error}", fields=(field.name,)) from error
    before = without_fractions(found.type, field)
    try:
        step = _step(before.type, field)
    except SchemaError as error:
        hint = _current_time(field) if isinstance(tree_of(what), (DateValue, TimestampValue)) else ""
        raise SchemaError(f"{error}{hint}", fields=error.fields) from error

    def value(columns: Columns, rows: int) -> pa.Array:
        try:
            return step(before.step(found.value(columns, rows)))
        except SchemaError as error:
            if error.fields:
                raise
            raise SchemaError(f"{field.name}: {error}", fields=(field.name,)) from error

    return Assignment(field, value, found.names)


def _step(given: pa.DataType, field: Field) -> Callable[[pa.Array], pa.Array]:
    step = plan(given, field.type, place_of(field.name))
    if isinstance(step, Refusal):
        raise SchemaError(str(step), fields=(field.name,))
    return step


def _current_time(field: Field) -> str:
    """The way to write the current time into a column; empty for columns of other types."""
    name = _NOW_OF.get(field.type.root) if isinstance(field.type, Atomic) else None
    return "" if name is None else f'; sql("{name}()") is the current time for this column'


def _calculates(value: object, field: Field) -> str:
    """A hint for a value that was probably meant as an expression."""
    if isinstance(value, str) and value.strip().casefold().removesuffix("()") in NOW:
        return _current_time(field)
    if isinstance(value, get_args(Predicate)):
        return '; sql("CASE WHEN a > 1 THEN TRUE ELSE FALSE END") makes a value of a condition'
    if isinstance(value, str) and any(sign in value for sign in "+-*/(") and not _DAY.match(value):
        return f"; sql({json.dumps(value, ensure_ascii=False)}) calculates"
    if type(value).__name__ in ("Expression", "Expr"):
        library = type(value).__module__.partition(".")[0]
        return f'; expressions of {library} are not supported: write col("a") + 1, or sql("a + 1")'
    return ""


def _literal(field: Field, value: object) -> pa.Array:
    """An array of one value."""
    value = None if is_na(value) else value
    wanted = f"{field.name}: {shown_value(value)} given, {sql_type(field.type)} needed"
    if value is None and not field.type.nullable:
        raise SchemaError(f"{wanted}; it may not be NULL", fields=(field.name,))
    if isinstance(value, pa.Scalar):
        step = plan(value.type, field.type, place_of(field.name))
        if not isinstance(step, Refusal):
            return step(pa.repeat(value, 1))
    kind = to_arrow_type(field.type)
    if isinstance(field.type, Atomic) and field.type.root is Root.VARIANT:
        return of_encoded([of_value(value)])
    try:
        array = python_array([value], kind)
    except VALUE_ERRORS as error:
        found = convert_values([value], field)
        if found is None:
            raise SchemaError(f"{wanted}: {error}{_calculates(value, field)}", fields=(field.name,)) from error
        array = found
    try:
        return _step(array.type, field)(array)
    except PaimonError as error:
        raise SchemaError(f"{wanted}: {error}", fields=(field.name,)) from error
