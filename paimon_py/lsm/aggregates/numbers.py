"""Sums and products of integers and floats.

Source: format.md §12.5; Java `FieldSumAgg`, `FieldProductAgg`: exact arithmetic in the column's own type, in the order
of the versions; an integer that leaves its type is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon_py.codec.columns import from_numpy, numpy_values, validity_mask
from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates.base import RETRACT, Fold, Steps
from paimon_py.lsm.aggregates.wide import Wide, running_sums
from paimon_py.lsm.words import Ints, Mask
from paimon_py.spec.aggregate_rules import Aggregate
from paimon_py.spec.type_text import sql_type

AnyArray = npt.NDArray[Any]
_WAVES = 64


class Present(NamedTuple):
    """The steps of a fold whose value is not null.

    `values`: of those steps. `retracts`: which of them are RETRACT, None if none is. `filled`: the groups that have a
    step; `starts`, `ends`: the steps of those groups. `steps`: the same with all groups.
    """

    values: AnyArray
    retracts: Mask | None
    filled: Ints
    starts: Ints
    ends: Ints
    steps: Steps


def present(values: pa.Array, fold: Fold) -> Present:
    """The steps whose value is not null."""
    steps = fold.steps
    if values.null_count:
        steps = steps.only(steps.of(validity_mask(values)))
    return present_of(numpy_values(values), steps)


def present_of(values: AnyArray, steps: Steps) -> Present:
    """The steps with their values."""
    filled = np.flatnonzero(steps.ends > steps.starts)
    retracts = None if steps.actions is None else steps.actions == RETRACT
    if retracts is not None and not retracts.any():
        retracts = None
    own = values if steps.rows is None else values[steps.rows]
    return Present(own, retracts, filled, steps.starts[filled], steps.ends[filled], steps)


def spread(results: AnyArray, filled: Ints, count: int, kind: pa.DataType) -> pa.Array:
    """Results of the filled groups as a column with one value per group, null elsewhere."""
    if len(filled) == count:
        return from_numpy(results, kind)
    full = np.zeros((count, *results.shape[1:]), results.dtype)
    full[filled] = results
    valid = np.zeros(count, np.bool_)
    valid[filled] = True
    return from_numpy(full, kind, valid)


def sum_integers(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The sum of integers; retracted values are subtracted, from nothing too.

    Cost: 7 ns a row where no sum can overflow by the size of the values, else 60.
    Raises: SchemaError where a sum, or one on the way to it, leaves the column's type.
    """
    part = present(values, fold)
    if not len(part.filled):
        return pa.nulls(len(fold), values.type)
    limits = np.iinfo(part.values.dtype)
    own = part.values.astype(np.int64, copy=False)
    longest = int((part.ends - part.starts).max())
    if max(-int(own.min()), int(own.max())) * longest <= int(limits.max):
        signed = own if part.retracts is None else np.where(part.retracts, -own, own)
        sums = np.add.reduceat(signed, part.starts)
        return spread(sums.astype(part.values.dtype), part.filled, len(fold), values.type)
    sums_wide = running_sums(Wide.of_integers(own), part.retracts, part.starts, part.ends)
    beyond = sums_wide.outside(int(limits.min), int(limits.max))
    if beyond.any():
        raise overflow(made)
    last = sums_wide.low[part.ends - 1].view(np.int64)
    return spread(last.astype(part.values.dtype), part.filled, len(fold), values.type)


def sum_floats(_made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The sum of floats, one version after the other, rounded to the column's type each time."""
    part = present(values, fold)
    if part.retracts is not None:
        part = part._replace(values=np.where(part.retracts, -part.values, part.values))
    with np.errstate(all="ignore"):
        sums = in_turn(part, lambda sums, values, _: sums + values, np.add)
    return spread(sums, part.filled, len(fold), values.type)


def product_floats(_made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The product of floats in turn; a retracted value divides, but not before there is a product."""
    part = _from_first_add(present(values, fold))
    with np.errstate(all="ignore"):
        if part.retracts is None:
            products = in_turn(part, lambda products, values, _: products * values, np.multiply)
        else:
            products = in_turn(part, _times_or_over, None)
    return spread(products, part.filled, len(fold), values.type)


def product_integers(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The product of integers in turn; a retracted value divides, cutting off the fraction.

    Cost: as many numpy steps as the longest group has versions.
    Raises: SchemaError where a product leaves the column's type, or for a division by zero.
    """
    part = _from_first_add(present(values, fold))
    limits = np.iinfo(part.values.dtype)

    def step(products: AnyArray, factors: AnyArray, retracts: Mask | None) -> AnyArray:
        found, wrong = _multiplied(products, factors if retracts is None else np.where(retracts, 1, factors))
        if retracts is not None:
            if (retracts & (factors == 0)).any():
                raise _no_division(made)
            found, worse = _divided(found, np.where(retracts, factors, 1))
            wrong |= worse
        if (wrong | (found < limits.min) | (found > limits.max)).any():
            raise overflow(made)
        return found

    with np.errstate(all="ignore"):
        products = in_turn(part._replace(values=part.values.astype(np.int64)), step, None)
    return spread(products.astype(part.values.dtype), part.filled, len(fold), values.type)


def in_turn(
    part: Present, step: Callable[[AnyArray, AnyArray, Mask | None], AnyArray], tail: np.ufunc | None
) -> AnyArray:
    """Every group's first value, with `step` applied to it and the second one, the third one, and so on.

    Cost: one call for all groups' second values, one for their third values …; groups of more than 64 versions end
        with one call of `tail.accumulate` each, if there is a `tail` that does the same.
    """
    lengths = part.ends - part.starts
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = part.starts[order], lengths[order]
    sums = part.values[starts]
    longest = int(lengths[0]) if len(lengths) else 0
    waves = longest if tail is None else min(longest, _WAVES)
    for wave in range(1, waves):
        count = int(np.searchsorted(-lengths, -wave, side="left"))
        rows = starts[:count] + wave
        sums[:count] = step(sums[:count], part.values[rows], None if part.retracts is None else part.retracts[rows])
    if tail is not None and longest > waves:
        for place in range(int(np.searchsorted(-lengths, -waves, side="left"))):
            rest = part.values[starts[place] + waves : starts[place] + lengths[place]]
            sums[place] = tail.accumulate(np.concatenate((sums[place : place + 1], rest)))[-1]
    found = np.empty_like(sums)
    found[order] = sums
    return found


def overflow(made: Aggregate) -> SchemaError:
    """A result that does not fit into the column's type."""
    name = made.field.name
    return SchemaError(
        f"aggregate function {made.function} of column {name!r} leaves the range of {sql_type(made.field.type)}: "
        "versions of one key add up to more than it holds; give the column a wider type",
        fields=(name,),
    )


def _no_division(made: Aggregate) -> SchemaError:
    name = made.field.name
    return SchemaError(
        f"aggregate function product of column {name!r} cannot retract the value 0: a product is not divided by "
        f"zero; set 'fields.{name}.ignore-retract' = 'true' to leave retracted values out",
        fields=(name,),
    )


def _from_first_add(part: Present) -> Present:
    """Without the retracted values that come before there is anything to retract them from."""
    if part.retracts is None:
        return part
    place = np.arange(len(part.retracts))
    adds = np.where(part.retracts, len(place), place)
    first = np.minimum.reduceat(adds, part.starts) if len(part.starts) else part.starts
    return present_rows(part, place >= np.repeat(first, part.ends - part.starts))


def present_rows(part: Present, wanted: Mask) -> Present:
    """Only some of the steps."""
    if wanted.all():
        return part
    steps = part.steps.only(wanted)
    filled = np.flatnonzero(steps.ends > steps.starts)
    retracts = None if part.retracts is None else part.retracts[wanted]
    return Present(part.values[wanted], retracts, filled, steps.starts[filled], steps.ends[filled], steps)


def _times_or_over(products: AnyArray, values: AnyArray, retracts: Mask | None) -> AnyArray:
    assert retracts is not None
    return np.where(retracts, products / values, products * values)


def _multiplied(left: AnyArray, right: AnyArray) -> tuple[AnyArray, Mask]:
    """Products of 64-bit integers, and which of them overflowed."""
    found = left * right
    some = left != 0
    wrong = some & (found // np.where(some, left, 1) != right)
    return found, wrong | ((left == -1) & (right == np.iinfo(np.int64).min))


def _divided(left: AnyArray, right: AnyArray) -> tuple[AnyArray, Mask]:
    """Quotients of 64-bit integers without their fraction, and which of them overflowed."""
    found = left // right
    found = found + ((found * right != left) & ((left < 0) != (right < 0)))
    return found, (left == np.iinfo(np.int64).min) & (right == -1)
