"""The clauses of a merge: converts the arguments of a call to values that fit the table and the source.

Source: Java `MergeIntoPaimonTable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

from paimon_py.arguments import as_list
from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.bind import any_of, near_hint
from paimon_py.expr.column import Column, ref_of
from paimon_py.expr.predicate import Constant, Predicate
from paimon_py.expr.sql import parse_column
from paimon_py.rows.rules import check_assigned
from paimon_py.rows.values import SOURCE, Assignment, Condition, Scope, assignments
from paimon_py.spec.layout import check_text
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Field


class MergeClauses(msgspec.Struct, frozen=True, kw_only=True):
    """The clauses of a merge as the caller passes them.

    A delete is True or a condition; an update or insert is True, a mapping of values, or (condition, one of these).
    Clauses in a list are tried in order.
    """

    matched_update: object = None
    matched_delete: object = None
    insert: object = None
    by_source_update: object = None
    by_source_delete: object = None


class Clause(NamedTuple):
    """An update or insert with values, or a delete if there are none; applies to all rows if there is no condition."""

    condition: Condition | None
    values: tuple[Assignment, ...] | None = None


class Clauses(msgspec.Struct, frozen=True, kw_only=True):
    """The clauses of a merge; the first one that applies to a row is used, and deletes are tried before updates.

    `matched`, `unmatched`: for rows of the table with and without a matching source row. `unique`: inserted rows must
    have different keys.
    """

    on: tuple[str, ...]
    both: Scope
    ours: Scope
    theirs: Scope
    matched: tuple[Clause, ...] = ()
    unmatched: tuple[Clause, ...] = ()
    inserts: tuple[Clause, ...] = ()
    unique: bool = False

    @property
    def deletes(self) -> bool:
        """Whether a clause deletes rows."""
        return any(clause.values is None for clause in (*self.matched, *self.unmatched))

    @property
    def takes_any_match(self) -> bool:
        """Whether several source rows may match a row, because it is deleted in any case."""
        return bool(self.matched) and self.matched[0] == Clause(None)

    @property
    def unmatched_where(self) -> Predicate:
        """A condition on rows of the table that change without a matching source row."""
        return any_of(Constant(True) if each.condition is None else each.condition.own for each in self.unmatched)

    @property
    def condition_names(self) -> frozenset[str]:
        """Columns of the table that conditions use."""
        found: frozenset[str] = frozenset()
        for clause in (*self.matched, *self.unmatched):
            if clause.condition is not None:
                found |= self.both.target_columns(clause.condition.names)
        return found


def join_keys(schema: TableSchema, on: object) -> list[tuple[str, Field]]:
    """The join columns: names in the source, and fields of the table.

    Args:
        on: names that exist in both, or a mapping from the table's names to the source's.

    Raises: UsageError if there are none, or for an unknown column or a type without equality.
    """
    given = {on: on} if isinstance(on, str) else on
    asked = 'on=["k"] names the columns to find rows by'
    pairs = list(given.items()) if isinstance(given, Mapping) else [(name, name) for name in as_list(asked, given)]
    names = dict(pairs) if all(isinstance(name, str) for pair in pairs for name in pair) else {}
    if not names:
        raise UsageError(f'{asked}, on={{"k": "source column"}} too, not {on!r}')
    for source in names.values():
        check_text("the name of a column of the source", source)
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        shown = ", ".join(map(repr, unknown))
        raise UsageError(f"on names {shown}, which the table does not have; its columns: {', '.join(schema.names)}")
    fields = [(source, schema.field(name)) for name, source in names.items()]
    for _, field in fields:
        if not isinstance(field.type, Atomic):
            raise UsageError(f"rows cannot be found by {field.name}: {sql_type(field.type)} values are not compared")
    return fields


def clauses_of(
    schema: TableSchema,
    source: pa.Schema,
    keys: Sequence[tuple[str, Field]],
    asked: MergeClauses,
    *,
    unique: bool,
    verb: str,
) -> Clauses:
    """Check everything that can be checked without reading rows.

    Raises:
        UsageError: no clause, a malformed clause, an unknown column, a key or partition column to be set, or a string
            that looks like a column or an expression but is not valid as one.
        SchemaError: a value cannot be converted to the type of its column.
    """
    fields = schema.fields
    both = Scope(fields, source, is_merge=True)
    ours = Scope(fields, None, is_merge=True, absent=tuple(source.names))
    theirs = Scope((), source, is_merge=True, absent=tuple(schema.names))
    on = {field.name: name for name, field in keys}

    def setting(given: object, scope: Scope, name: str) -> list[Clause]:
        return [_setting(schema, each, scope, verb, name, on) for each in as_clauses(given, name)]

    def deleting(given: object, scope: Scope, name: str) -> list[Clause]:
        return [_deleting(each, scope, name) for each in as_clauses(given, name)]

    clauses = Clauses(
        on=tuple(on),
        both=both,
        ours=ours,
        theirs=theirs,
        matched=_in_order(
            "when_matched_…",
            deleting(asked.matched_delete, both, "when_matched_delete"),
            setting(asked.matched_update, both, "when_matched_update"),
        ),
        unmatched=_in_order(
            "when_not_matched_by_source_…",
            deleting(asked.by_source_delete, ours, "when_not_matched_by_source_delete"),
            setting(asked.by_source_update, ours, "when_not_matched_by_source_update"),
        ),
        inserts=_in_order("when_not_matched_insert", setting(asked.insert, theirs, "when_not_matched_insert")),
        unique=unique,
    )
    if not (clauses.matched or clauses.unmatched or clauses.inserts):
        raise UsageError(
            "merge needs at least one of when_matched_…, when_not_matched_insert, when_not_matched_by_source_…"
        )
    return clauses


def as_clauses(asked: object, name: str) -> Sequence[object]:
    """The clauses of an argument: none, one, or those of a list."""
    if asked is None or asked is False:
        return ()
    if not isinstance(asked, list):
        return (asked,)
    if not asked or any(each is None or each is False or isinstance(each, list) for each in asked):
        raise UsageError(f"{name}: a list holds clauses that are tried in order, not {asked!r}")
    return asked


def keeps_keys(asked: MergeClauses, keys: Mapping[str, str]) -> bool:
    """Whether all inserted rows get the key of their source row, as the values of the clauses show.

    Args:
        keys: the column of the source for each key column of the table.
    """
    for each in as_clauses(asked.insert, "when_not_matched_insert"):
        values = each[1] if isinstance(each, tuple) and len(each) == 2 else each
        if values is True:
            continue
        if not isinstance(values, Mapping) or not all(_is_source(values.get(key), keys[key]) for key in keys):
            return False
    return True


def _is_source(value: object, name: str) -> bool:
    """Whether a value is a column of the source, and nothing else."""
    if isinstance(value, Column):
        return ".".join(ref_of(value).path) == f"{SOURCE}.{name}"
    if not isinstance(value, str) or value == f"{SOURCE}.{name}":
        return isinstance(value, str)
    try:
        return parse_column(value).path == (SOURCE, name)
    except UsageError:
        return False


def _in_order(name: str, *groups: Sequence[Clause]) -> tuple[Clause, ...]:
    """All clauses in the order in which they are tried."""
    clauses = tuple(clause for group in groups for clause in group)
    if any(clause.condition is None for clause in clauses[:-1]):
        raise UsageError(
            f"{name}: a clause without a condition takes all rows, so that no clause after it is reached; deletes are"
            " tried before updates"
        )
    return clauses


def _deleting(asked: object, scope: Scope, name: str) -> Clause:
    if asked is True:
        return Clause(None)
    if isinstance(asked, (tuple, Mapping)):
        raise UsageError(f"{name} is True or a condition, or a list of conditions, not {asked!r}")
    return Clause(scope.condition(asked))


def _setting(
    schema: TableSchema, asked: object, scope: Scope, verb: str, name: str, on: Mapping[str, str]
) -> Clause:
    name = verb if verb == "upsert" else f"{verb}: {name}"
    condition = None
    insert = not scope.target
    if isinstance(asked, tuple) and len(asked) == 2:
        condition, asked = scope.condition(asked[0]), asked[1]
    if asked is True and scope.source is not None:
        asked = _all(schema, scope.source, on, name, insert=insert)
    elif isinstance(asked, Mapping) and not asked:
        raise UsageError(f"{name} sets nothing")
    if not isinstance(asked, Mapping) or not all(isinstance(column, str) for column in asked):
        every = "True, " if scope.source is not None else ""
        raise UsageError(
            f'{name} is {every}values such as {{"c": 1}}, (condition, values), or a list of these, not {asked!r}'
        )
    if insert:
        _check_inserted(schema, asked, name, may_lack=verb == "upsert")
    else:
        check_assigned(schema, asked, name)
    return Clause(condition, assignments(schema.fields, asked, scope))


def _all(
    schema: TableSchema, source: pa.Schema, on: Mapping[str, str], verb: str, *, insert: bool
) -> dict[str, object]:
    """Every column of the source, by name; the join columns are not set."""
    unknown = [name for name in source.names if name not in schema.names and name not in on.values()]
    if unknown:
        hint = "" if verb == "upsert" else ', or say what to set as {"c": "source.c"}'
        near = near_hint(unknown, [name for name in schema.names if name not in source.names])
        shown = ", ".join(map(repr, unknown))
        raise SchemaError(
            f"the source has {shown}, which the table does not have; {near}leave them out{hint}",
            fields=tuple(unknown),
        )
    found: dict[str, object] = {name: f"{SOURCE}.{name}" for name in source.names if name in schema.names}
    for name, other in on.items():
        found.pop(name, None)
        if insert:
            found[name] = f"{SOURCE}.{other}"
    return found


def _check_inserted(schema: TableSchema, asked: Mapping[str, object], name: str, *, may_lack: bool) -> None:
    """`may_lack`: missing columns are allowed, because the writer of new rows reports them."""
    unknown = [column for column in asked if column not in schema.names]
    if unknown:
        shown = ", ".join(map(repr, unknown))
        raise UsageError(f"{name} sets {shown}, which the table does not have; its columns: {', '.join(schema.names)}")
    missing = [f.name for f in schema.fields if f.name not in asked and not f.type.nullable and f.default is None]
    if missing and not may_lack:
        raise SchemaError(f"{name} does not set {', '.join(missing)}, which may not be NULL", fields=tuple(missing))
