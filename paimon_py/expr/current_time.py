"""The current time in values: `sql("now()")` is read before its table is known, whose clock counts."""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.expr.bind import predicate_at
from paimon_py.expr.column import Calculation, tree_of
from paimon_py.expr.predicate import is_predicate
from paimon_py.expr.references import tree_at
from paimon_py.expr.sql_intervals import Now


def conditions_at(asked: object, now: Now) -> object:
    """A condition or text, or several in a list, in which now() has become a time; anything else as it is.

    Raises: UsageError for a text that is not a condition.
    """
    if isinstance(asked, str) or is_predicate(asked):
        return predicate_at(asked, now)
    return [conditions_at(one, now) for one in asked] if isinstance(asked, list) else asked


def values_at(asked: object, now: Now) -> object:
    """Values by column, also with a condition or several in a list, in which now() has become a time.

    Raises: UsageError for a text that is not a condition.
    """
    if isinstance(asked, Mapping):
        return {name: values_at(value, now) for name, value in asked.items()}
    if isinstance(asked, Calculation):
        return Calculation(tree_at(tree_of(asked), now))
    if isinstance(asked, tuple) and len(asked) == 2:
        return conditions_at(asked[0], now), values_at(asked[1], now)
    return [values_at(one, now) for one in asked] if isinstance(asked, list) else asked
