"""Conditions on calculated values, `price * 2 > 10`: their binding and evaluation.

The values are calculated as in `update` (`calculate`), and compared by the rules of columns of their types, with one
exception: −0.0 is 0.0, since `round(-0.3)` and `a * -1` would not be 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.errors import SchemaError, UsageError
from paimon_py.expr.arrays import arrow_type, column_type, conform
from paimon_py.expr.calculate import Columns, calculate
from paimon_py.expr.predicate import Predicate, Ref, ValueTest, ValueTree
from paimon_py.expr.references import columns_of
from paimon_py.spec.types import BYTES, STRING, Atomic, Field, Root

Mask = Callable[[Columns], pa.Array]
_PRECISIONS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def value_fields(test: ValueTest) -> tuple[Field, ...]:
    """The values of a test, whose columns are bound, as columns with their types.

    Raises: UsageError for values that cannot be calculated from these columns, or are always NULL.
    """
    around = _Bound(_no_mask)
    return tuple(_field(at, name, value, around) for at, (name, value) in enumerate(test.values))


def prepare_values(test: ValueTest, mask: Callable[[Predicate], Mask]) -> Callable[[Columns, int], dict[str, pa.Array]]:
    """The values of a bound test, by name, as a function of the columns and the number of rows.

    Args:
        mask: prepares a bound condition of CASE.
    The function raises: SchemaError for a row whose values cannot be calculated.
    """
    around = _Bound(mask)
    each = [(name, calculate(value, around)) for name, value in test.values]

    def values(columns: Columns, rows: int) -> dict[str, pa.Array]:
        return {name: _with_one_zero(found.value(columns, rows)) for name, found in each}

    return values


class _Bound:
    """The columns of a bound predicate."""

    def __init__(self, mask: Callable[[Predicate], Mask]) -> None:
        self._mask = mask

    def reader(self, ref: Ref) -> tuple[Callable[[Columns], pa.Array], str, pa.DataType]:
        """A function that takes a column from a batch; its name; the type."""
        type_ = column_type(ref)

        def read(columns: Columns) -> pa.Array:
            array = columns[ref.name]
            for step in ref.path[1:]:
                array = pc.struct_field(array, [step])
            return conform(array.dictionary_decode() if pa.types.is_dictionary(array.type) else array, type_)

        return read, ref.name, arrow_type(type_)

    def mask(self, condition: Predicate) -> tuple[frozenset[str], Mask]:
        """The columns of a condition, and the rows for which it is true."""
        return columns_of(condition), self._mask(condition)


def _no_mask(condition: Predicate) -> Mask:
    """Stands for a condition where only the type of a value matters; it is called with no rows, or not at all."""
    del condition
    return lambda columns: pc.is_valid(next(iter(columns.values())))


def _field(number: int, name: str, value: ValueTree, around: _Bound) -> Field:
    try:
        kind = calculate(value, around).type
    except SchemaError as error:
        raise UsageError(f"{name}: {error}") from error
    if pa.types.is_null(kind):
        raise UsageError(f"{name} is always NULL; leave the condition out")
    return Field(number, name, _column_type(kind))


def _column_type(kind: pa.DataType) -> Atomic:
    """The type of a column with calculated values; a decimal may have up to 76 digits."""
    if pa.types.is_decimal(kind):
        return Atomic(Root.DECIMAL, precision=kind.precision, scale=kind.scale)
    if pa.types.is_timestamp(kind):
        root = Root.TIMESTAMP if kind.tz is None else Root.TIMESTAMP_LTZ
        return Atomic(root, precision=_PRECISIONS[kind.unit])
    return _TYPES[kind]


_TYPES = {
    pa.bool_(): Atomic(Root.BOOLEAN),
    pa.int64(): Atomic(Root.BIGINT),
    pa.float64(): Atomic(Root.DOUBLE),
    pa.string(): STRING,
    pa.binary(): BYTES,
    pa.date32(): Atomic(Root.DATE),
    pa.time32("ms"): Atomic(Root.TIME, precision=3),
}


def _with_one_zero(array: pa.Array) -> pa.Array:
    return pc.add(array, 0.0) if pa.types.is_floating(array.type) else array
