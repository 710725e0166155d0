"""Sums and products of decimals.

A result beyond the column's precision is null, and the next version starts over. Decimals of up to 18 digits are
added as 64-bit integers without checking their precision: DECIMAL(4, 2) can reach 100.00. Decimals of up to 9 digits
have 32 bits in files; a sum that Java would truncate is refused.

Source: format.md §12.5; Java `FieldSumAgg`, `FieldProductAgg`, `DecimalUtils.add`, `Decimal.fromBigDecimal`.
"""

from __future__ import annotations

from math import gcd

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, from_numpy, integer_array, numpy_values, ranges
from paimon_py.errors import SchemaError
from paimon_py.lsm.aggregates.base import Fold
from paimon_py.lsm.aggregates.numbers import Present, overflow, present, spread_results
from paimon_py.lsm.aggregates.wide import Wide, running_sums
from paimon_py.spec.aggregate_rules import Aggregate

_COMPACT = 18
_SHORT = 9
_INT = (1 << 31) - 1
_LONG = (1 << 63) - 1


def sum_decimals(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The sum of decimals; retracted values are subtracted, also from an empty sum.

    Cost: 12 ns a row if no sum can exceed 64 bits given the size of the values, otherwise 60, and again for every
        result that was too large.
    Raises: SchemaError if a sum of up to 9 digits needs more than 32 bits.
    """
    if not len(fold.filled_groups):
        return pa.nulls(len(fold), values.type)
    part, high = _halves(values, fold)
    small = part.values
    if bool((high == small >> 63).all()):
        longest = int((part.ends - part.starts).max())
        most = max(-int(small.min()), int(small.max()))
        if most * longest <= _LONG and most < 10**values.type.precision:
            signed = small if fold.retracts is None else np.where(fold.retracts, -small, small)
            sums = np.add.reduceat(signed, part.starts)
            if values.type.precision <= _SHORT and int(np.abs(sums).max()) > _INT:
                raise overflow(made)
            return spread_results(Wide.of_integers(sums).halves(), part, len(fold), values.type)
    found = _checked_sums(part, Wide(small.view(np.uint64), high), fold, values.type)
    if values.type.precision <= _SHORT and int(np.abs(numpy_values(found)[:, 0].view(np.int64)).max()) > _INT:
        raise overflow(made)
    return found


def _halves(values: pa.Array, fold: Fold) -> tuple[Present, Ints]:
    """The lower and upper words of the steps' values; zeros for null."""
    halves = numpy_values(values).view(np.int64)
    low = present(np.ascontiguousarray(halves[:, 0]), values, fold, 0)
    return low, present(np.ascontiguousarray(halves[:, 1]), values, fold, 0).values


def _checked_sums(part: Present, wide: Wide, fold: Fold, kind: pa.DataType) -> pa.Array:
    """Sums that may exceed the precision along the way."""
    out = np.zeros((len(fold), 2), np.uint64)
    valid = np.zeros(len(fold), np.bool_)
    given = np.ones(len(wide.low), np.bool_) if part.valid is None else part.valid
    kept = np.flatnonzero(given)
    before = np.zeros(len(given) + 1, np.int64)
    np.cumsum(given, out=before[1:])
    starts, ends = before[part.starts], before[part.ends]
    some = ends > starts
    groups, starts, ends = part.filled[some], starts[some], ends[some]
    wide, retracts = wide.at(kept), None if fold.retracts is None else fold.retracts[kept]
    most = 10**kind.precision - 1
    least_sum, most_sum = (-_LONG - 1, _LONG) if kind.precision <= _COMPACT else (-most, most)
    while len(groups):
        lengths = ends - starts
        rows = ranges(starts, lengths)
        own_ends = np.cumsum(lengths)
        own_starts = own_ends - lengths
        subtract = None if retracts is None else retracts[rows]
        sums = running_sums(wide.at(rows), subtract, own_starts, own_ends)
        beyond = sums.outside(least_sum, most_sum)
        if subtract is not None:
            beyond[own_starts] |= subtract[own_starts] & sums.at(own_starts).outside(-most, most)
        broken = np.minimum.reduceat(np.where(beyond, rows, len(wide.low)), own_starts)
        whole = broken == len(wide.low)
        out[groups[whole]] = sums.at(own_ends[whole] - 1).halves()
        valid[groups[whole]] = True
        again = ~whole & (broken + 1 < ends)
        groups, starts, ends = groups[again], broken[again] + 1, ends[again]
    return from_numpy(out, kind, valid)


def product_decimals(made: Aggregate, values: pa.Array, fold: Fold) -> pa.Array:
    """The product of decimals in order, rounded half up each time; a retracted value divides.

    Cost: about 1 µs a row, a loop over versions: products of 128 bits have no vector form.
    Raises: SchemaError for a division by zero or a quotient that does not terminate.
    """
    part, high = _halves(values, fold)
    lows, highs = part.values.view(np.uint64).tolist(), high.tolist()
    given = [True] * len(lows) if part.valid is None else part.valid.tolist()
    retracts = [False] * len(lows) if fold.retracts is None else fold.retracts.tolist()
    unit, limit = 10**values.type.scale, 10**values.type.precision
    results: list[int | None] = [None] * len(fold)
    for group, start, end in zip(part.filled.tolist(), part.starts.tolist(), part.ends.tolist(), strict=True):
        product: int | None = None
        for row in range(start, end):
            number, retract = highs[row] << 64 | lows[row], retracts[row]
            if product is None or not given[row]:
                product = number if given[row] and not retract else product
                continue
            if retract and not _ends(product, number):
                raise _endless(made)
            top, bottom = (product * unit, number) if retract else (product * number, unit)
            product = _half_up(top, bottom)
            if abs(product) >= limit:
                product = None
        results[group] = product
    return integer_array(results, values.type)


def _half_up(top: int, bottom: int) -> int:
    size, rest = divmod(abs(top), abs(bottom))
    size += 2 * rest >= abs(bottom)
    return size if (top < 0) == (bottom < 0) else -size


def _ends(top: int, bottom: int) -> bool:
    """Whether top / bottom is a terminating decimal."""
    if not bottom:
        return False
    bottom //= gcd(top, bottom)
    for prime in (2, 5):
        while bottom % prime == 0:
            bottom //= prime
    return abs(bottom) == 1


def _endless(made: Aggregate) -> SchemaError:
    name = made.field.name
    return SchemaError(
        f"aggregate function product of column {name!r} cannot retract a value: the quotient is not a terminating "
        f"decimal; set 'fields.{name}.ignore-retract' = 'true' to ignore retracted values",
        fields=(name,),
    )
