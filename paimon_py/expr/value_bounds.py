"""Bounds of calculated values, `ts + INTERVAL '1' DAY` or `price * 2`, from those of the column that they are made of.

A value that only grows, or only shrinks, with one column has its ends where the column has them. All others have no
bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.errors import SchemaError
from paimon_py.expr.literal import DecimalValue
from paimon_py.expr.predicate import (
    Arithmetic,
    Case,
    ColumnValue,
    Constant,
    FunctionCall,
    Negative,
    Predicate,
    Ref,
    ValueTest,
    ValueTree,
)
from paimon_py.expr.references import refs_of_value
from paimon_py.expr.sql_intervals import parse_interval
from paimon_py.expr.value_test import prepare_values

_GROWING = {"add_interval": 0, "ceil": 0, "date": 0, "date_trunc": 1, "floor": 0}
"""Functions that never shrink while one argument grows, and the place of that argument; the others are constants."""


class ValueBounds(NamedTuple):
    """The bounds of one value, one slot per file.

    Attributes:
        column: the column that the value is calculated from; the value is NULL exactly where the column is.
        min: a lower bound; null if unknown.
        max: an upper bound; null if unknown.
        grows: whether the value grows with the column, so that a greatest NaN remains the greatest.
    """

    column: Ref
    min: pa.Array
    max: pa.Array
    grows: bool


def bounds_of_values(test: ValueTest, ends: Mapping[str, tuple[pa.Array, pa.Array]]) -> dict[str, ValueBounds]:
    """The bounds of the values of a bound test, by their names; values without known bounds are left out.

    Args:
        ends: the least and greatest values of top-level columns.
    Shapes: all arrays have one length; null where unknown.
    """
    found: dict[str, ValueBounds] = {}
    for name, value in test.values:
        direction, refs = _direction(value), refs_of_value(value)
        if not direction or refs[0].name not in ends:
            continue
        low, high = ends[refs[0].name][::direction]
        try:
            least, greatest = _at(value, low, -1), _at(value, high, 1)
        except SchemaError:  # rows of some file may fail: let them
            continue
        found[name] = ValueBounds(refs[0], *_without_nan(least, greatest), direction > 0)
    return found


def _direction(value: ValueTree) -> int | None:
    """1 or −1 for a value that grows or shrinks with its only column, 0 for a constant, else None, as for NULL."""
    if isinstance(value, ColumnValue):
        return 1 if len(value.column.path) == 1 and value.column.part is None else None
    if isinstance(value, Negative):
        found = _direction(value.value)
        return None if found is None else -found
    if isinstance(value, Arithmetic):
        return _of_arithmetic(value)
    if isinstance(value, FunctionCall):
        at = _GROWING.get(value.function)
        others = value.arguments if at is None else value.arguments[:at] + value.arguments[at + 1 :]
        return None if at is None or any(map(refs_of_value, others)) else _direction(value.arguments[at])
    return None if value is None or isinstance(value, Case) else 0


def _of_arithmetic(value: Arithmetic) -> int | None:
    left, right = _direction(value.left), _direction(value.right)
    if left is None or right is None or (left and right):
        return None
    if value.sign == "+":
        return left or right
    if value.sign == "-":
        return left or -right
    if value.sign == "*":
        factor = _sign(value.right if left else value.left)
        return (left or right) * factor or None
    return left * _sign(value.right) or None if value.sign == "/" else None


def _sign(literal: ValueTree) -> int:
    """The sign of a finite number; 0 for all other values."""
    number = Decimal(literal.text) if isinstance(literal, DecimalValue) else literal
    if isinstance(number, bool) or not isinstance(number, (int, float, Decimal)) or not Decimal(number).is_finite():
        return 0
    return (number > 0) - (number < 0)


def _at(value: ValueTree, ends: pa.Array, side: int) -> pa.Array:
    """The value for the ends of a column; `side`: −1 for a lower bound, 1 for an upper one."""

    def loosen(tree: ValueTree) -> ValueTree:
        """Months that are added may exchange times by less than a day: 30 January 12:00 and 31 January 11:00."""
        if isinstance(tree, FunctionCall) and tree.function == "add_interval":
            inner, text = tree.arguments
            interval = parse_interval(str(text))
            more = f" {side} day" if interval is not None and interval.months else ""
            return FunctionCall(tree.function, (loosen(inner), f"{text}{more}"))
        if isinstance(tree, FunctionCall):
            return FunctionCall(tree.function, tuple(map(loosen, tree.arguments)))
        if isinstance(tree, Arithmetic):
            return Arithmetic(tree.sign, loosen(tree.left), loosen(tree.right))
        return tree

    (ref,) = refs_of_value(value)
    found = prepare_values(ValueTest((("", loosen(value)),), Constant(True)), _no_conditions)
    return found({ref.name: ends}, len(ends))[""]


def _without_nan(least: pa.Array, greatest: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both bounds; none where one is NaN, as ∞ − ∞ is: all values at this end may be NaN."""
    if not pa.types.is_floating(least.type):
        return least, greatest
    known = pc.invert(pc.or_(pc.is_nan(least), pc.is_nan(greatest)))
    nulls = pa.nulls(len(least), least.type)
    return pc.if_else(known, least, nulls), pc.if_else(known, greatest, nulls)


def _no_conditions(condition: Predicate) -> NoReturn:
    raise AssertionError(f"{condition!r} stands in a value that grows")
