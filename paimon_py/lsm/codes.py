"""Numbers for rows that are equal if and only if the rows are, by Java's generated row comparison.

Source: Java `EqualiserCodeGenerator`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import encode
from paimon_py.codec.columns import Ints, combine, from_numpy, nulls_or_none, numpy_values
from paimon_py.spec.types import Atomic, DataType, Root


def codes_of(columns: Sequence[pa.Array], types: Sequence[DataType]) -> Ints:
    """Numbers that are equal where the rows are equal: nulls equal nulls, NaN equals NaN, -0.0 differs from 0.0.

    Cost: one dictionary; nested types and several columns are encoded as binary rows first.
    """
    column, data_type = columns[0], types[0]
    if len(columns) > 1 or not isinstance(data_type, Atomic):
        column = encode(columns, types)
    elif data_type.root in (Root.FLOAT, Root.DOUBLE):
        column = _bits(column)
    encoded = combine(pc.dictionary_encode(column, null_encoding="encode"))
    return numpy_values(encoded.indices).astype(np.int64)


def _bits(column: pa.Array) -> pa.Array:
    floats = numpy_values(column)
    same = np.where(np.isnan(floats), floats.dtype.type("nan"), floats)
    bits, kind = (same.view(np.int32), pa.int32()) if same.dtype.itemsize == 4 else (same.view(np.int64), pa.int64())
    return from_numpy(bits, kind, nulls_or_none(column))
