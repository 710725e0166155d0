"""The aggregate functions of columns: combine the versions of one column into one value. One module per family.

Each is a function over all groups of a window at once; merge engines decide which rows count, and as what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates import blobs, collections, decimals, extremes, nested, numbers, picks, texts
from paimon_py.lsm.aggregates.base import Aggregator, Fold, Pick
from paimon_py.spec.aggregate_rules import RETRACTABLE, Aggregate, aggregate_of
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Atomic, Root

_LONG = frozenset((Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY, Root.DECIMAL))
_PICKS: Mapping[str, Pick] = {
    "last_value": Pick(picks.last_value, looks_at="nothing"),
    "primary-key": Pick(picks.primary_key, looks_at="nothing"),
    "last_non_null_value": Pick(picks.last_non_null_value, looks_at="nulls"),
    "first_value": Pick(picks.first_value, looks_at="nothing", newest=False),
    "first_non_null_value": Pick(picks.first_non_null_value, looks_at="nulls", newest=False),
}
_EXTREMES: Mapping[str, Pick] = {
    "min": Pick(extremes.smallest_row, newest=False),
    "max": Pick(extremes.largest_row, newest=False),
}
"""The smallest and largest of values that do not fit into a single number."""

_FUNCTIONS: Mapping[str, Callable[[Aggregate, pa.Array, Fold], pa.Array]] = {
    "min": extremes.minimum,
    "max": extremes.maximum,
    "bool_and": extremes.minimum,
    "bool_or": extremes.maximum,
    "listagg": texts.listagg,
    "collect": collections.collect,
    "merge_map": collections.merge_map,
    "merge_map_with_keytime": nested.merge_map_with_keytime,
    "nested_update": nested.nested_update,
    "nested_partial_update": nested.nested_partial_update,
    "rbm32": blobs.union,
    "rbm64": blobs.union,
    "theta_sketch": blobs.union,
    "hll_sketch": blobs.union,
}


def aggregator_of(schema: TableSchema, name: str, function: str) -> Aggregator:
    """The aggregate function `function` of a column, with the column's options.

    A `Pick` if the result is always one of the values.
    Raises: OptionError or SchemaError as `aggregate_of`; the returned function raises SchemaError for a RETRACT that it
        does not support and that the column's option `ignore-retract` does not skip.
    """
    made = aggregate_of(schema, name, function)
    pick = _PICKS.get(made.function)
    if made.function in _EXTREMES and isinstance(made.field.type, Atomic) and made.field.type.root in _LONG:
        pick = _EXTREMES[made.function]
    if pick is not None:
        return pick.guard(partial(_without_ignored, made))
    compute = _function_of(made)
    return lambda values, fold: compute(made, values, _without_ignored(made, fold))


def _function_of(made: Aggregate) -> Callable[[Aggregate, pa.Array, Fold], pa.Array]:
    if made.function in ("sum", "product"):
        assert isinstance(made.field.type, Atomic)
        root = made.field.type.root
        if root is Root.DECIMAL:
            return decimals.sum_decimals if made.function == "sum" else decimals.product_decimals
        if root in (Root.FLOAT, Root.DOUBLE):
            return numbers.sum_floats if made.function == "sum" else numbers.product_floats
        return numbers.sum_integers if made.function == "sum" else numbers.product_integers
    return _FUNCTIONS[made.function]


def _without_ignored(made: Aggregate, fold: Fold) -> Fold:
    """The fold without the retractions that the column ignores."""
    if not fold.has_retracts:
        return fold
    if made.ignore_retract:
        return fold.without_retracts
    if made.function in RETRACTABLE:
        return fold
    name = made.field.name
    raise SchemaError(
        f"aggregate function {made.function} of column {name!r} cannot retract a value, but there is a version of"
        f" kind -U or -D; set 'fields.{name}.ignore-retract' = 'true' to ignore such versions, or use one of"
        f" {', '.join(sorted(RETRACTABLE))}",
        fields=(name,),
    )
