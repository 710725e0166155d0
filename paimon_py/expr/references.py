"""Columns of predicates and values: which ones they read, and the same with other columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from paimon_py.expr.predicate import (
    And,
    Arithmetic,
    Case,
    ColumnValue,
    CompareColumns,
    Constant,
    FunctionCall,
    Negative,
    Not,
    Or,
    Predicate,
    Ref,
    ValueTest,
    ValueTree,
)

if TYPE_CHECKING:
    from paimon_py.expr.sql_intervals import Now

_ALWAYS_CALCULATED = frozenset((
    "coalesce", "concat", "greatest", "least", "length", "lower", "ltrim", "nullif", "replace", "rtrim", "substring",
    "trim", "upper",
))  # fmt: skip
"""Functions that return a value, or NULL, for all arguments of their types."""


def columns_of(predicate: Predicate) -> frozenset[str]:
    """The top-level columns that the predicate reads; also for predicates that are not bound."""
    return frozenset(ref.name for ref in refs_of(predicate))


def refs_of(predicate: Predicate) -> list[Ref]:
    """The columns that the predicate reads, as often as it reads them."""
    if isinstance(predicate, (And, Or)):
        return [ref for part in predicate.parts for ref in refs_of(part)]
    if isinstance(predicate, Not):
        return refs_of(predicate.part)
    if isinstance(predicate, CompareColumns):
        return [predicate.left, predicate.right]
    if isinstance(predicate, ValueTest):
        return [ref for _, value in predicate.values for ref in refs_of_value(value)]
    return [] if isinstance(predicate, Constant) else [predicate.column]


def refs_of_value(value: ValueTree) -> list[Ref]:
    """The columns that a value reads, as often as it reads them."""
    if isinstance(value, ColumnValue):
        return [value.column]
    found = [ref for part in _parts(value) for ref in refs_of_value(part)]
    if isinstance(value, Case):
        found += [ref for condition, _ in value.branches for ref in refs_of(condition)]
    return found


def with_refs(predicate: Predicate, change: Callable[[Ref], Ref]) -> Predicate:
    """The predicate on other columns: `change` of each."""
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(with_refs(part, change) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(with_refs(predicate.part, change))
    if isinstance(predicate, Constant):
        return predicate
    if isinstance(predicate, CompareColumns):
        return CompareColumns(change(predicate.left), predicate.operator, change(predicate.right))
    if isinstance(predicate, ValueTest):
        return map_values(predicate, lambda ref: ColumnValue(change(ref)), lambda part: with_refs(part, change))
    return msgspec.structs.replace(predicate, column=change(predicate.column))


def map_values(
    test: ValueTest, of_column: Callable[[Ref], ValueTree], of_condition: Callable[[Predicate], Predicate]
) -> ValueTest:
    """The test on other values: with a value for each column, and other conditions in CASE."""
    return _with_values(test, lambda value: map_value(value, of_column, of_condition))


def _with_values(test: ValueTest, change: Callable[[ValueTree], ValueTree]) -> ValueTest:
    return msgspec.structs.replace(test, values=tuple((name, change(value)) for name, value in test.values))


def map_value(
    value: ValueTree,
    of_column: Callable[[Ref], ValueTree],
    of_condition: Callable[[Predicate], Predicate],
    of_now: Callable[[str], ValueTree] | None = None,
) -> ValueTree:
    """The value with a value for each column, and other conditions in CASE; `of_now`: values for now() and the like."""

    def map_part(part: ValueTree) -> ValueTree:
        return map_value(part, of_column, of_condition, of_now)

    if isinstance(value, ColumnValue):
        return of_column(value.column)
    if isinstance(value, Arithmetic):
        return Arithmetic(value.sign, map_part(value.left), map_part(value.right))
    if isinstance(value, Negative):
        return Negative(map_part(value.value))
    if isinstance(value, FunctionCall):
        if not value.arguments and of_now is not None:
            return of_now(value.function)
        return FunctionCall(value.function, tuple(map(map_part, value.arguments)))
    if isinstance(value, Case):
        branches = tuple((of_condition(condition), map_part(one)) for condition, one in value.branches)
        return Case(branches, map_part(value.otherwise))
    return value


def predicate_with_time(predicate: Predicate, now: Now) -> Predicate:
    """The condition in which now() and the like have become times."""
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(predicate_with_time(part, now) for part in predicate.parts))
    if isinstance(predicate, Not):
        return Not(predicate_with_time(predicate.part, now))
    return _with_values(predicate, lambda value: tree_at(value, now)) if isinstance(predicate, ValueTest) else predicate


def tree_at(value: ValueTree, now: Now) -> ValueTree:
    """The value in which now() and the like have become times."""
    from paimon_py.expr.sql_intervals import NOW

    return map_value(value, ColumnValue, lambda part: predicate_with_time(part, now), lambda name: NOW[name](now))


def calculates(predicate: Predicate) -> bool:
    """Whether the predicate compares calculated values."""
    return any(True for _ in _value_tests(predicate))


def may_fail(predicate: Predicate) -> bool:
    """Whether a value in the predicate cannot be calculated for some rows, as `a / 0`."""
    return any(_may_fail(value) for test in _value_tests(predicate) for _, value in test.values)


def keeping_failing(predicate: Predicate) -> Predicate:
    """A bound predicate that is also true for rows whose values cannot be calculated."""
    if isinstance(predicate, (And, Or)):
        return type(predicate)(tuple(map(keeping_failing, predicate.parts)))
    if isinstance(predicate, ValueTest) and may_fail(predicate):
        return msgspec.structs.replace(predicate, keeps_failing=True)
    return predicate


def _value_tests(predicate: Predicate) -> Iterator[ValueTest]:
    """The tests of calculated values in the predicate."""
    if isinstance(predicate, ValueTest):
        yield predicate
    for part in predicate.parts if isinstance(predicate, (And, Or)) else ():
        yield from _value_tests(part)
    if isinstance(predicate, Not):
        yield from _value_tests(predicate.part)


def _may_fail(value: ValueTree) -> bool:
    if isinstance(value, (Arithmetic, Negative)):
        return True
    if isinstance(value, FunctionCall) and value.function not in _ALWAYS_CALCULATED:
        return True
    if isinstance(value, Case) and any(may_fail(condition) for condition, _ in value.branches):
        return True
    return any(map(_may_fail, _parts(value)))


def _parts(value: ValueTree) -> tuple[ValueTree, ...]:
    """The values that a value is calculated from; not those in conditions."""
    if isinstance(value, Arithmetic):
        return value.left, value.right
    if isinstance(value, Negative):
        return (value.value,)
    if isinstance(value, FunctionCall):
        return value.arguments
    if isinstance(value, Case):
        return (*(one for _, one in value.branches), value.otherwise)
    return ()
