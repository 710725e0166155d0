"""Conditions that are never unknown: whether another condition is true, or is false.

A comparison is unknown where one of its columns is NULL, so it is joined with a test for NULL.
"""

from __future__ import annotations

import msgspec

from paimon_py.errors import UsageError
from paimon_py.expr.predicate import And, CompareColumns, Constant, In, IsNull, Not, Or, Predicate, ValueTest

_PARTS_MAX = 10_000
"""The maximum number of parts of a condition: nested tests for UNKNOWN double them each time."""


def is_true(predicate: Predicate) -> Predicate:
    """The condition that a condition is true: false where that is unknown."""
    return _with_truth(_require_small(predicate), wanted=True)


def is_false(predicate: Predicate) -> Predicate:
    """The condition that a condition is false: false where that is unknown."""
    return _with_truth(_require_small(predicate), wanted=False)


def is_unknown(predicate: Predicate) -> Predicate:
    """The condition that a condition is unknown."""
    return And((Not(is_true(predicate)), Not(is_false(predicate))))


def _require_small(predicate: Predicate) -> Predicate:
    waiting, count = [predicate], 0
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, (And, Or)):
            waiting += part.parts
        elif isinstance(part, Not):
            waiting.append(part.part)
        elif isinstance(part, ValueTest):
            waiting.append(part.test)
        if count > _PARTS_MAX:
            raise UsageError("IS TRUE, IS FALSE and IS UNKNOWN are nested too deeply, or follow too long a condition")
    return predicate


def _with_truth(predicate: Predicate, *, wanted: bool) -> Predicate:
    match predicate:
        case Not():
            return _with_truth(predicate.part, wanted=not wanted)
        case And() | Or():
            parts = tuple(_with_truth(part, wanted=wanted) for part in predicate.parts)
            return And(parts) if isinstance(predicate, And) is wanted else Or(parts)
        case Constant():
            return Constant(predicate.value is wanted)
        case ValueTest():
            return msgspec.structs.replace(predicate, test=_with_truth(predicate.test, wanted=wanted))
        case IsNull():
            return predicate if wanted else Not(predicate)
        case In(has_null=True):
            # a value that is not among the others may be the NULL, so it is never certain that it is not in the list
            if predicate.negated is wanted:
                return Constant(False)
            known = msgspec.structs.replace(predicate, has_null=False, negated=False)
            return _with_truth(known, wanted=True)
    columns = (predicate.left, predicate.right) if isinstance(predicate, CompareColumns) else (predicate.column,)
    exist = [IsNull(column, negated=True) for column in columns]
    return And((*exist, predicate if wanted else Not(predicate)))
