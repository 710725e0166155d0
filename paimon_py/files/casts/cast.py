"""Casts a stored column to another type, for older files after a schema change.

Source: Java `CastExecutors`, `SchemaEvolutionUtil.createCastExecutor`, release 2.0; time zone UTC.
"""

from __future__ import annotations

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.files.casts.types import same_type
from paimon_py.spec.types import Atomic, DataType


def cast(array: pa.Array, source: DataType, target: DataType, *, column: str = "") -> pa.Array:
    """The values of `array` cast to the target type; null stays null.

    Fields of rows are matched by id at any depth: missing ones are null, and renamed ones are found. The result has the
    Arrow type of `target`; NOT NULL is not checked.

    Cost: whole columns; strings are parsed, and floats and unusual decimals formatted, once per distinct value.

    Raises:
        SchemaError: a value is invalid in the target type, such as the string `x` as INT.
        UnsupportedError: Paimon does not support the cast.
    """
    if same_type(source, target) and (isinstance(source, Atomic) or array.type.equals(to_arrow_type(target))):
        return array
    from paimon_py.files.casts.rules import convert

    return convert(array, source, target, column)
