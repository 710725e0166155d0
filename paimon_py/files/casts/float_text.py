"""Formats FLOAT and DOUBLE as Java does: `1.0`, `0.001`, `1.0E7`, `1.0E-4`, `NaN`, `-Infinity`.

The digits are the shortest that parse to the same number, with at least one after the point. Java before 19 sometimes
prints more digits than needed (1E23 as `9.999999999999999E22`), so there the result of a cast depends on the runtime.

Source: Java `Double.toString`, `Float.toString` (JDK 19 and later).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.columns import AnyArray, from_numpy, nulls_or_none, numpy_values
from paimon_py.codec.java_float import java_float


def float_texts(array: pa.Array) -> pa.Array:
    """The strings of a float32 or float64 array.

    Cost: one Python call per distinct value outside 0.001 … 10,000,000; Arrow formats the others.
    """
    values = numpy_values(array)
    bits = from_numpy(_bits(values), pa.int32() if values.dtype == np.float32 else pa.int64(), nulls_or_none(array))
    encoded = bits.dictionary_encode()
    distinct = from_numpy(numpy_values(encoded.dictionary).view(values.dtype), array.type)
    return _distinct_texts(distinct).take(encoded.indices)


def _bits(values: AnyArray) -> AnyArray:
    return values.view(np.int32 if values.dtype == np.float32 else np.int64)


def _distinct_texts(array: pa.Array) -> pa.Array:
    values = numpy_values(array)
    size = np.abs(values)
    plain = ((size >= values.dtype.type(1e-3)) & (size < values.dtype.type(1e7))) | (values == 0)
    shortest = pc.cast(array, pa.string())
    pointed = pc.if_else(pc.match_substring(shortest, "."), shortest, pc.binary_join_element_wise(shortest, ".0", ""))
    if plain.all():
        return pointed
    texts = pointed.to_pylist()
    for at in np.flatnonzero(~plain):
        texts[at] = java_float(float(values[at]), single=values.dtype == np.float32)
    return pa.array(texts, pa.string())
