"""Computed numbers that are assigned to a column with fewer decimal places."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.errors import SchemaError
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Field


class Whole(NamedTuple):
    """A conversion step, and its result type."""

    step: Callable[[pa.Array], pa.Array]
    type: pa.DataType


def without_fractions(given: pa.DataType, field: Field) -> Whole:
    """A step that converts numbers to integers or to a smaller scale if nothing is truncated.

    Raises: the step raises SchemaError with the first value that would be truncated.
    """
    wanted, types = to_arrow_type(field.type), pa.types
    if types.is_integer(wanted) and (types.is_floating(given) or types.is_decimal(given)):
        kind = pa.int64()
    elif types.is_decimal(wanted) and types.is_decimal(given) and given.scale > wanted.scale:
        kind = pa.decimal256(given.precision - given.scale + wanted.scale or 1, wanted.scale)
    elif types.is_floating(wanted) and types.is_decimal(given):
        return Whole(lambda array: array.cast(pa.float64()), pa.float64())
    else:
        return Whole(lambda array: array, given)

    def step(array: pa.Array) -> pa.Array:
        try:
            return array.cast(kind)
        except pa.ArrowInvalid as error:
            row = _first_cut(array, kind)
            digits = f", {wanted.scale}" if types.is_decimal(wanted) else ""
            raise SchemaError(
                f"{field.name}: {array[row]} (row {row} of a batch) does not fit {sql_type(field.type)} without loss;"
                f' round the value with sql("round(…{digits})")',
                fields=(field.name,),
            ) from error

    return Whole(step, kind)


def _first_cut(array: pa.Array, kind: pa.DataType) -> int:
    """The first row that cannot be cast, in an array that contains one."""
    first, count = 0, len(array)
    while count > 1:
        half = count // 2
        try:
            pc.cast(array.slice(first, half), kind)
        except pa.ArrowInvalid:
            count = half
        else:
            first, count = first + half, count - half
    return first
