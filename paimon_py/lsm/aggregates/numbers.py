"""Sums and products of integers and floats.

Nulls are replaced by a neutral value, so that all columns of a window share their steps.

Source: format.md §12.5; Java `FieldSumAgg`, `FieldProductAgg`: exact arithmetic in the column's own type, in the order
of the versions; an integer that leaves its type is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import AnyArray, Ints, Mask, from_numpy, numpy_values, validity_mask
from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates.base import Fold, Waves, waves_of
from paimon_py.lsm.aggregates.wide import Wide, running_sums
from paimon_py.spec.aggregate_rules import Aggregate
from paimon_py.spec.type_text import sql_type


class Present(NamedTuple):
    """The values of a fold's steps.

    `valid`: a mask of the non-null values; None if all are. `filled`: the groups with steps; `starts`, `ends`: the
    steps.
    """

    values: AnyArray
    valid: Mask | None
    filled: Ints
    starts: Ints
    ends: Ints


def present(own: AnyArray, values: pa.Array, fold: Fold, neutral: object) -> Present:
    """The values of the steps; `own` are those of the array, `neutral` replaces null."""
    steps, filled = fold.steps, fold.filled_groups
    own = steps.of(own)
    valid = steps.of(validity_mask(values)) if values.null_count else None
    if valid is not None:
        own = np.where(valid, own, np.array(neutral, own.dtype))
    return Present(own, valid, filled, steps.starts[filled], steps.ends[filled])


def spread_results(results: AnyArray, part: Present, count: int, kind: pa.DataType) -> pa.Array:
    """Results of the filled groups as a column with one value per group, null for groups without a value."""
    some = None if part.valid is None or not len(part.starts) else np.logical_or.reduceat(part.valid, part.starts)
    if len(part.filled) == count:
        return from_numpy(results, kind, some)
    full = np.zeros((count, *results.shape[1:]), results.dtype)
    full[part.filled] = results
    valid = np.zeros(count, np.bool_)
    valid[part.filled] = True if some is None else some
    return from_numpy(full, kind, valid)


def sum_integers(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The sum of integers; retracted values are subtracted, also from an empty sum.

    Cost: 8 ns a row if no sum can overflow given the size of the values, otherwise 60.
    Raises: SchemaError if a sum, or an intermediate one, exceeds the column's type.
    """
    part = present(numpy_values(values), values, fold, 0)
    limits = np.iinfo(part.values.dtype)
    if not len(part.filled):
        return pa.nulls(len(fold), values.type)
    longest = int((part.ends - part.starts).max())
    if max(-int(part.values.min()), int(part.values.max())) * longest <= int(limits.max):
        signed = part.values if fold.retracts is None else np.where(fold.retracts, -part.values, part.values)
        sums = np.add.reduceat(signed, part.starts, dtype=part.values.dtype)
        return spread_results(sums, part, len(fold), values.type)
    wide = running_sums(Wide.of_integers(part.values.astype(np.int64)), fold.retracts, part.starts, part.ends)
    if wide.outside(int(limits.min), int(limits.max)).any():
        raise overflow(made)
    last = wide.low[part.ends - 1].view(np.int64)
    return spread_results(last.astype(part.values.dtype), part, len(fold), values.type)


def sum_floats(_made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The sum of floats, in the order of the versions, rounded to the column's type each time."""
    own = numpy_values(values)
    if fold.retracts is not None:
        signs = np.zeros(len(fold.actions), np.bool_)
        signs[slice(None) if fold.steps.rows is None else fold.steps.rows] = fold.retracts
        own = np.where(signs, -own, own)
    part = present(own, values, fold, -0.0)
    with np.errstate(all="ignore"):
        sums = in_turn(part.values, fold.waves, lambda sums, rows: sums + part.values[rows], np.add)
    return spread_results(sums, part, len(fold), values.type)


def product_floats(_made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The product of floats in order; a retracted value divides, but only once there is a product."""
    part = _from_first_add(present(numpy_values(values), values, fold, 1), fold)
    own, retracts = part.values, fold.retracts
    with np.errstate(all="ignore"):
        if retracts is None:
            products = in_turn(own, fold.waves, lambda products, rows: products * own[rows], np.multiply)
        else:
            taken_back = retracts
            waves = waves_of(part.starts, part.ends, None)
            products = in_turn(
                own,
                waves,
                lambda products, rows: np.where(taken_back[rows], products / own[rows], products * own[rows]),
                None,
            )
    return spread_results(products, part, len(fold), values.type)


def product_integers(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The product of integers in order; a retracted value divides, discarding the fraction.

    Cost: as many numpy steps as the longest group has versions.
    Raises: SchemaError if a product exceeds the column's type, or for a division by zero.
    """
    part = _from_first_add(present(numpy_values(values), values, fold, 1), fold)
    limits = np.iinfo(part.values.dtype)
    own, retracts = part.values.astype(np.int64), fold.retracts
    if retracts is not None and (retracts & (own == 0)).any():
        raise _no_division(made)

    def step(products: AnyArray, rows: Ints) -> AnyArray:
        factors = own[rows]
        found, wrong = _multiply(products, factors if retracts is None else np.where(retracts[rows], 1, factors))
        if retracts is not None:
            found, worse = _divide(found, np.where(retracts[rows], factors, 1))
            wrong |= worse
        if (wrong | (found < limits.min) | (found > limits.max)).any():
            raise overflow(made)
        return found

    with np.errstate(all="ignore"):
        products = in_turn(own, waves_of(part.starts, part.ends, None), step, None)
    return spread_results(products.astype(part.values.dtype), part, len(fold), values.type)


def in_turn(
    values: AnyArray, waves: Waves, step: Callable[[AnyArray, Ints], AnyArray], tail: np.ufunc | None
) -> AnyArray:
    """Fold every group in order: apply `step` to its first value and the second row, then the third row, and so on.

    Cost: one call for all groups' second rows, one for their third rows …; groups with more rows than waves end
        with one call of `tail.accumulate` each.
    """
    if not waves.rows:
        return values[:0]
    results = values[waves.rows[0]]
    for rows in waves.rows[1:]:
        results[: len(rows)] = step(results[: len(rows)], rows)
    for place, first, last in waves.tails if tail is not None else ():
        results[place] = tail.accumulate(np.concatenate((results[place : place + 1], values[first:last])))[-1]  # type: ignore[union-attr]
    found = np.empty_like(results)
    found[waves.order] = results
    return found


def overflow(made: Aggregate) -> SchemaError:
    """The error for a result that does not fit into the column's type."""
    name = made.field.name
    return SchemaError(
        f"aggregate function {made.function} of column {name!r} exceeds the range of {sql_type(made.field.type)}: "
        "versions of one key come to more than it holds; give the column a wider type",
        fields=(name,),
    )


def _no_division(made: Aggregate) -> SchemaError:
    name = made.field.name
    return SchemaError(
        f"aggregate function product of column {name!r} cannot retract the value 0: a product cannot be divided by "
        f"zero; set 'fields.{name}.ignore-retract' = 'true' to ignore retracted values",
        fields=(name,),
    )


def _from_first_add(part: Present, fold: Fold) -> Present:
    """Replace retracted values that precede the first added value by one."""
    if fold.retracts is None or not len(part.starts):
        return part
    place = np.arange(len(part.values))
    adds = ~fold.retracts if part.valid is None else part.valid & ~fold.retracts
    first = np.minimum.reduceat(np.where(adds, place, len(place)), part.starts)
    begun = place >= np.repeat(first, part.ends - part.starts)
    valid = begun if part.valid is None else part.valid & begun
    return part._replace(values=np.where(begun, part.values, np.array(1, part.values.dtype)), valid=valid)


def _multiply(left: AnyArray, right: AnyArray) -> tuple[AnyArray, Mask]:
    """Products of 64-bit integers, and a mask of those that overflowed."""
    found = left * right
    some = left != 0
    wrong = some & (found // np.where(some, left, 1) != right)
    return found, wrong | ((left == -1) & (right == np.iinfo(np.int64).min))


def _divide(left: AnyArray, right: AnyArray) -> tuple[AnyArray, Mask]:
    """Quotients of 64-bit integers without their fraction, and a mask of those that overflowed."""
    found = left // right
    found = found + ((found * right != left) & ((left < 0) != (right < 0)))
    return found, (left == np.iinfo(np.int64).min) & (right == -1)
