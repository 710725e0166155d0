"""Bind a predicate to columns.

A bound predicate has field ids and types for its columns, literals that their column can hold, LIKE reduced to the
simplest test, and no `Not` or `IsTrue`: negation is pushed down to the leaves. Without `Not`, unknown and false need
not be distinguished: AND and OR of them match the same rows. So leaves that no value satisfies become
`Constant(False)`, and leaves that every value satisfies become IS NOT NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.expr import like
from paimon_py.expr.arrow import evaluate
from paimon_py.expr.coerce import BINARY, ORDERED, TEXT, fit, special_float
from paimon_py.expr.literal import BinaryValue, LiteralValue
from paimon_py.expr.pairs import FLOATS, check_comparable
from paimon_py.expr.predicate import (
    INVERSE,
    And,
    ColumnValue,
    Compare,
    CompareColumns,
    Constant,
    In,
    IsNull,
    IsTrue,
    Not,
    Operator,
    Or,
    Predicate,
    Ref,
    TextMatch,
    ValueTest,
    ValueTree,
    as_predicate,
)
from paimon_py.expr.references import map_values, predicate_with_time, refs_of
from paimon_py.spec.type_text import UNASSIGNED
from paimon_py.spec.types import Atomic, DataType, Field, Root, RowType, VariantParts

if TYPE_CHECKING:
    from paimon_py.expr.sql_intervals import Now

MAX_DEPTH = 200
_TIMES = ("CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP")
"""The current time in SQL, which conditions write with parentheses, since columns may have these names."""


def predicate_of(where: object) -> Predicate:
    """The condition from a user: a predicate, or SQL text of one, without now().

    Raises: UsageError for anything else, and for text that is not a condition.
    """
    return predicate_at(where, None)


def predicate_at(where: object, now: Now | None) -> Predicate:
    """The condition from a user: a predicate, or SQL text of one; `now`: the clock for now() in a text.

    Raises: UsageError for anything else, and for text that is not a condition.
    """
    if isinstance(where, str):
        from paimon_py.expr.sql import parse_where

        return parse_where(where, now)
    found = as_predicate(where)
    return found if now is None else predicate_with_time(found, now)


def bind(predicate: Predicate, fields: Sequence[Field], *, takes_parts: bool = False) -> Predicate:
    """The predicate for rows of these fields; binding a bound predicate again by name is allowed.

    Args:
        takes_parts: rows contain the parts of VARIANT columns in the predicate in place of the columns.
    Cost: linear in the size of the predicate.
    Raises: UsageError for unknown columns, literals of a wrong type, comparisons of types without an order, and
        predicates nested deeper than 200.
    """
    by_name = {field.name: field for field in fields}
    return _Binder(by_name, takes_parts).walk(predicate, negated=False, depth=0)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """Bound predicates joined by AND: flat, without redundant constants."""
    return _join(And, parts, absorbing=False)


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """Bound predicates joined by OR: flat, without redundant constants."""
    return _join(Or, parts, absorbing=True)


def _join(kind: type[And] | type[Or], parts: Iterable[Predicate], *, absorbing: bool) -> Predicate:
    kept: list[Predicate] = []
    for part in parts:
        if isinstance(part, Constant):
            if part.value is absorbing:
                return part
        elif isinstance(part, kind):
            kept.extend(part.parts)
        else:
            kept.append(part)
    if not kept:
        return Constant(not absorbing)
    return kept[0] if len(kept) == 1 else kind(tuple(kept))


class _Binder:
    """One walk over a predicate, with the known columns."""

    def __init__(self, fields: dict[str, Field], takes_parts: bool) -> None:
        self._fields = fields
        self._takes_parts = takes_parts

    def walk(self, predicate: Predicate, *, negated: bool, depth: int) -> Predicate:
        if depth > MAX_DEPTH:
            raise UsageError(f"the predicate is nested deeper than {MAX_DEPTH}; write it flatter, or use isin([…])")
        if isinstance(predicate, Not):
            return self.walk(predicate.part, negated=not negated, depth=depth + 1)
        if isinstance(predicate, (And, Or)):
            parts = [self.walk(part, negated=negated, depth=depth + 1) for part in predicate.parts]
            return all_of(parts) if isinstance(predicate, And) is not negated else any_of(parts)
        if isinstance(predicate, Constant):
            return Constant(predicate.value is not negated)
        if isinstance(predicate, ValueTest):
            return self._values(predicate, negated, depth)
        if isinstance(predicate, CompareColumns):
            return self._pair(predicate, INVERSE[predicate.operator] if negated else predicate.operator)
        return self._leaf(predicate, negated)

    def _pair(self, leaf: CompareColumns, operator: Operator) -> Predicate:
        left = self._resolve(leaf.left)
        if len(leaf.right.path) == 1 and leaf.right.name not in self._fields:
            special = special_float(leaf.right.name)
            if special is not None and isinstance(left.type, Atomic) and left.type.root in FLOATS:
                return self._leaf(Compare(leaf.left, operator, special), False)
            raise UsageError(f"{_unknown(leaf.right, 0, self._fields)}. Text is written in 'single quotes'")
        right = self._resolve(leaf.right)
        for column in (left, right):
            _ordered_type(column)
        check_comparable(left, right)
        if left == right:
            return _always(left, operator in ("==", "<=", ">="))
        return CompareColumns(left, operator, right)

    def _leaf(self, leaf: Compare | In | IsNull | TextMatch | IsTrue, negated: bool) -> Predicate:
        column = self._resolve(leaf.column)
        if isinstance(leaf, IsNull):
            return IsNull(column, negated=leaf.negated is not negated)
        if isinstance(leaf, IsTrue):
            return _bind_true(column, negated)
        type_ = _ordered_type(column)
        if isinstance(leaf, Compare):
            operator = INVERSE[leaf.operator] if negated else leaf.operator
            fitted = fit(type_, operator, leaf.literal, str(column))
            return _always(column, fitted) if isinstance(fitted, bool) else Compare(column, *fitted)
        if isinstance(leaf, In):
            return _bind_in(column, type_, leaf, leaf.negated is not negated)
        return _bind_text(column, type_, leaf, leaf.negated is not negated)

    def _resolve(self, ref: Ref) -> Ref:
        fields, ids = self._fields, []
        type_: DataType | None = None
        for depth, step in enumerate(ref.column_path):
            field = fields.get(step)
            if field is None:
                raise UsageError(_unknown(ref, depth, fields))
            ids.append(field.id)
            type_ = field.type
            fields = {inner.name: inner for inner in type_.fields} if isinstance(type_, RowType) else {}
        if ref.part is None:
            return Ref(ref.path, tuple(ids), type_, calculated=ref.calculated)
        if not isinstance(type_, VariantParts) and not (isinstance(type_, Atomic) and type_.root is Root.VARIANT):
            raise UsageError(f"{ref}: only VARIANT columns have parts")
        if not self._takes_parts:
            feature = "parts of variants outside scans"
            raise UnsupportedError(
                f"{ref}: parts of variants are for scans, changes, streams, and for delete, update and merge",
                feature=feature,
            )
        return Ref((*ref.column_path, ref.part.name), (*ids, UNASSIGNED), ref.part.type, ref.part)

    def _values(self, leaf: ValueTest, negated: bool, depth: int) -> Predicate:
        """A condition on calculated values; a constant if they read no column."""
        from paimon_py.expr.value_test import value_fields

        def resolve(ref: Ref) -> ValueTree:
            special = None if len(ref.path) > 1 or ref.name in self._fields else special_float(ref.name)
            if special is not None:
                return special
            column = self._resolve(ref)
            _ordered_type(column)
            return ColumnValue(column)

        found = map_values(leaf, resolve, lambda part: self.walk(part, negated=False, depth=depth + 1))
        fields = {field.name: field for field in value_fields(found)}
        test = _Binder(fields, False).walk(leaf.test, negated=negated, depth=depth)
        found = msgspec.structs.replace(found, test=test)
        if isinstance(test, Constant) or refs_of(found):
            return test if isinstance(test, Constant) else found
        return Constant(bool(evaluate(found, pa.record_batch([pa.nulls(1)], [""]))[0].as_py()))


def _unknown(ref: Ref, depth: int, fields: dict[str, Field]) -> str:
    step, parent = ref.path[depth], ".".join(ref.path[:depth])
    if parent and not fields:
        return f"{ref}: {parent} is not a ROW, so it has no field {step!r}"
    message = f"{f'field {step!r} of {parent}' if parent else f'column {step!r}'} does not exist"
    if not parent and "." in step and step.partition(".")[0] in fields:
        steps = ", ".join(f'"{part}"' for part in step.split("."))
        return f"{message}; a field inside a ROW is written col([{steps}])"
    if step.upper() in _TIMES:
        return f"{message}; write {step}() for the current time"
    near = near_names(step, list(fields))
    if near:
        return f"{message}; did you mean {' or '.join(map(repr, near))}?"
    names = ", ".join(list(fields)[:20]) + (", …" if len(fields) > 20 else "")
    return f"{message}; the columns are {names}; table.refresh() sees columns that others added"


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """Names that may have been meant by another: equal except for case, otherwise a few similar ones."""
    import difflib

    folded = [each for each in known if each.casefold() == name.casefold()]
    return folded or difflib.get_close_matches(name, known, n=3)


def near_hint(names: Sequence[str], known: Sequence[str]) -> str:
    """The part of a message that asks for names that may have been meant; empty if there are none."""
    near = {name: near_names(name, known) for name in names}
    asked = [f"is {name!r} meant to be {' or '.join(map(repr, found))}" for name, found in near.items() if found]
    return f"{', '.join(asked)}? If not, " if asked else ""


def _always(column: Ref, value: bool) -> Predicate:
    """A leaf with the same answer for every value that is not NULL."""
    return IsNull(column, negated=True) if value else Constant(False)


def _ordered_type(column: Ref) -> Atomic:
    if isinstance(column.type, Atomic) and column.type.root in ORDERED:
        return column.type
    name = column.type.root.value if isinstance(column.type, Atomic) else type(column.type).__name__[:-4].upper()
    raise UsageError(f"{column} is {name}, which has no order: only is_null() and is_not_null() apply to it")


def _bind_true(column: Ref, negated: bool) -> Predicate:
    if isinstance(column.type, Atomic) and column.type.root is Root.BOOLEAN:
        return Compare(column, "==", not negated)
    raise UsageError(f"{column} is not BOOLEAN, so it is not a condition by itself; compare it with something")


def _bind_in(column: Ref, type_: Atomic, leaf: In, negated: bool) -> Predicate:
    where = str(column)
    literals: list[LiteralValue] = []
    for literal in leaf.literals:
        fitted = fit(type_, "==", literal, where)
        if not isinstance(fitted, bool):
            literals.append(fitted[1])
    if negated and leaf.has_null:
        return Constant(False)
    if not literals:
        return _always(column, negated)
    if len(literals) == 1:
        return Compare(column, "!=" if negated else "==", literals[0])
    return In(column, tuple(literals), negated=negated)


def _bind_text(column: Ref, type_: Atomic, leaf: TextMatch, negated: bool) -> Predicate:
    wanted = str if type_.root in TEXT else BinaryValue if type_.root in BINARY else None
    if wanted is None or (wanted is BinaryValue and leaf.test in ("like", "ilike")):
        raise UsageError(f"{column} is {type_.root.value}: {leaf.test} applies to text columns only")
    if not isinstance(leaf.pattern, wanted):
        raise UsageError(f"{column} is {type_.root.value}, but the pattern of {leaf.test} is {leaf.pattern!r}")
    if leaf.test == "like" and isinstance(leaf.pattern, str):
        return _bind_like(column, leaf.pattern, negated)
    if leaf.test == "ilike" and isinstance(leaf.pattern, str):
        every = like.pieces(leaf.pattern) == (like.Wildcard(like.ANY_TEXT),)
        return _always(column, not negated) if every else TextMatch(column, "ilike", leaf.pattern, negated)
    if leaf.pattern in ("", BinaryValue(b"")):
        return _always(column, not negated)
    return TextMatch(column, leaf.test, leaf.pattern, negated)


def _bind_like(column: Ref, pattern: str, negated: bool) -> Predicate:
    found = like.pieces(pattern)
    plain = "".join(piece.text for piece in found if isinstance(piece, like.Plain))
    shape = "".join("x" if isinstance(piece, like.Plain) else piece.sign for piece in found)
    if shape in ("", "x"):
        return Compare(column, "!=" if negated else "==", plain)
    if shape == "%":
        return _always(column, not negated)
    if shape == "x%":
        return TextMatch(column, "starts_with", plain, negated)
    if shape == "%x":
        return TextMatch(column, "ends_with", plain, negated)
    if shape == "%x%":
        return TextMatch(column, "contains", plain, negated)
    return TextMatch(column, "like", pattern, negated)
