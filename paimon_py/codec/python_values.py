"""Python values as Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pyarrow as pa

from paimon_py.codec.columns import binary_array, integer_array

_EPOCH = date(1970, 1, 1).toordinal()


def python_array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    """What `pa.array(values, kind)` is; the usual values without it, which takes 0.2 s to import pandas.

    Raises: OverflowError, ValueError, TypeError or pa.ArrowException for what the type cannot hold.
    """
    given = {type(value) for value in values}
    if given == {type(None)}:
        return pa.nulls(len(values), kind)
    whole = pa.types.is_signed_integer(kind) and given == {int}
    wide = pa.types.is_float64(kind) and given == {float}
    if whole or wide or (pa.types.is_boolean(kind) and given == {bool}):
        return integer_array(values, kind)
    if given == {str} and pa.types.is_string(kind):
        return binary_array([str(value).encode() for value in values], kind)
    if given == {date} and pa.types.is_date32(kind):
        return integer_array([value.toordinal() - _EPOCH for value in values if isinstance(value, date)], kind)
    return pa.array(values, kind)
