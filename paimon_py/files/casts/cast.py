"""A column stored as one type, read as another: what a table's older files need after its schema changed.

Source: Java `CastExecutors`, `SchemaEvolutionUtil.createCastExecutor`, release 2.0; time zone UTC.
"""

from __future__ import annotations

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.files.casts.types import same_type
from paimon_py.spec.types import Atomic, DataType


def cast(array: pa.Array, source: DataType, target: DataType, *, column: str = "") -> pa.Array:
    """The values of `array` as the other type; null stays null.

    Rows match their fields by id, at any depth: missing ones are null, renamed ones follow. The result has the
    Arrow type of `target`, whose NOT NULL is not checked.

    Cost: columns at a time; text is parsed, and floats and odd decimals printed, once per distinct value.

    Raises:
        SchemaError: a value has no meaning in the target type, such as the text `x` as INT.
        UnsupportedError: Paimon has no such cast.
    """
    if same_type(source, target) and (isinstance(source, Atomic) or array.type.equals(to_arrow_type(target))):
        return array
    from paimon_py.files.casts.rules import convert

    return convert(array, source, target, column)
