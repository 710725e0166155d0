"""Casts between numbers: integers, floats, decimals, booleans.

Integers wrap around; floats become integers by truncation toward zero and saturation (NaN is 0); decimals round half
away from zero and become null if their precision is too small.

Source: Java `NumericPrimitiveCastRule`, `DecimalTo…CastRule`, `Decimal.fromBigDecimal`, `BooleanToNumericCastRule`,
release 2.0.
"""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.columns import AnyArray, from_numpy, nulls_or_none, numpy_values
from paimon_py.decimal_digits import WIDEST, scaled_down
from paimon_py.files.casts.job import Cast, by_distinct
from paimon_py.spec.types import Root

INTEGERS = {Root.TINYINT: np.int8, Root.SMALLINT: np.int16, Root.INT: np.int32, Root.BIGINT: np.int64}
FLOATS = {Root.FLOAT: np.float32, Root.DOUBLE: np.float64}
_COMPACT = 18
_PLAIN_SCALE = 38
_PLAIN = r"^-?[0-9]{1,37}(?:\.[0-9]{1,38})?$"
_EXACT = decimal.Context(prec=400, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def number_to_number(array: pa.Array, job: Cast) -> pa.Array:
    """Between integers and floats."""
    return _as(array, numpy_values(array), job)


def boolean_to_number(array: pa.Array, job: Cast) -> pa.Array:
    """True is 1, false 0."""
    values = numpy_values(array)
    if job.target_type.root is Root.DECIMAL:
        return _whole_to_decimal(array, values.astype(np.int64), job)
    return _as(array, values.astype(np.int32), job)


def number_to_boolean(array: pa.Array, job: Cast) -> pa.Array:
    """True for every integer except 0."""
    return from_numpy(numpy_values(array) != 0, to_arrow_type(job.target), nulls_or_none(array))


def number_to_decimal(array: pa.Array, job: Cast) -> pa.Array:
    """Integers exactly, floats by their shortest decimal digits; null if the precision is exceeded."""
    if job.source_type.root in INTEGERS:
        return _whole_to_decimal(array, numpy_values(array).astype(np.int64), job)
    kind = to_arrow_type(job.target)
    plain = rescaled_texts(pc.cast(pc.cast(array, pa.float64()), pa.string()), kind.precision, kind.scale)
    if plain is not None:
        return plain
    bits = from_numpy(numpy_values(array).astype(np.float64).view(np.int64), pa.int64(), nulls_or_none(array))
    return by_distinct(bits, lambda value: _of_float(value, kind.precision, kind.scale), kind, job)


def decimal_to_decimal(array: pa.Array, job: Cast) -> pa.Array:
    """Cast to another precision and scale."""
    kind = to_arrow_type(job.target)
    return rescale(array, kind.precision, kind.scale)


def decimal_to_number(array: pa.Array, job: Cast) -> pa.Array:
    """Integers get the low bits of the integer part; floats get the nearest value."""
    if job.target_type.root in FLOATS:
        return _as(array, _doubles(array), job)
    whole = array if array.type.scale == 0 else scaled_down(array, 0, half_up=False)
    whole = pc.cast(whole, pa.decimal128(38, 0))
    return _as(array, np.ascontiguousarray(numpy_values(whole)[:, 0]).view(np.int64), job)


def rescale(array: pa.Array, precision: int, scale: int) -> pa.Array:
    """The decimals of `array` with another precision and scale, rounded half away from zero, null on overflow."""
    kind, target = array.type, pa.decimal128(precision, scale)
    if scale >= kind.scale and precision - scale >= kind.precision - kind.scale:
        return pc.cast(array, target)
    if scale < kind.scale:
        wide = scaled_down(array, scale, half_up=True)
    else:
        wide = pc.cast(array, pa.decimal256(WIDEST, scale))
    largest = decimal.Decimal((0, (9,) * precision, -scale))
    high = pa.scalar(largest, pa.decimal256(WIDEST, scale))
    low = pa.scalar(largest.copy_negate(), pa.decimal256(WIDEST, scale))
    fits = pc.and_(pc.less_equal(wide, high), pc.greater_equal(wide, low))
    return pc.cast(pc.if_else(fits, wide, pa.scalar(None, wide.type)), target)


def rescaled_texts(texts: pa.Array, precision: int, scale: int) -> pa.Array | None:
    """Parse decimal strings, rounded and nulled as by `rescale`; None if some are not in plain notation."""
    if pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py() is False:
        return None
    return rescale(pc.cast(texts, pa.decimal256(WIDEST, _PLAIN_SCALE)), precision, scale)


def fit_decimal(value: decimal.Decimal, precision: int, scale: int) -> decimal.Decimal | None:
    """One decimal with `scale` digits after the point, rounded half away from zero; None if it has too many digits."""
    if not value:
        return decimal.Decimal((0, (0,), -scale))
    if value.adjusted() >= precision - scale:
        return None
    if value.adjusted() < -scale - 1:
        return decimal.Decimal((0, (0,), -scale))
    fitted = value.quantize(decimal.Decimal((0, (1,), -scale)), rounding=decimal.ROUND_HALF_UP, context=_EXACT)
    return fitted if len(fitted.as_tuple().digits) <= precision else None


def _as(array: pa.Array, values: AnyArray, job: Cast) -> pa.Array:
    dtype = {**INTEGERS, **FLOATS}[job.target_type.root]
    if values.dtype.kind == "f" and job.target_type.root in INTEGERS:
        values = _saturate(values, np.int64 if job.target_type.root is Root.BIGINT else np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        converted = values.astype(dtype)
    return from_numpy(converted, to_arrow_type(job.target), nulls_or_none(array))


def _saturate(values: AnyArray, dtype: type[np.int32] | type[np.int64]) -> AnyArray:
    bounds = np.iinfo(dtype)
    limit = 2.0 ** (bounds.bits - 1)
    wide = values.astype(np.float64)
    inside = (wide > -limit) & (wide < limit)
    whole = np.zeros(len(wide), dtype)
    whole[inside] = wide[inside].astype(dtype)
    whole[wide >= limit] = bounds.max
    whole[wide <= -limit] = bounds.min
    return whole


def _whole_to_decimal(array: pa.Array, values: AnyArray, job: Cast) -> pa.Array:
    kind = to_arrow_type(job.target)
    whole = from_numpy(values, pa.int64(), nulls_or_none(array))
    return rescale(pc.cast(whole, pa.decimal128(19, 0)), kind.precision, kind.scale)


def _of_float(bits: int, precision: int, scale: int) -> decimal.Decimal | None:
    value = float(np.int64(bits).view(np.float64))
    if value - value != 0:
        raise ValueError("not a finite number")
    return fit_decimal(decimal.Decimal(repr(value)), precision, scale)


def _doubles(array: pa.Array) -> AnyArray:
    if array.type.precision <= _COMPACT:
        unscaled = np.ascontiguousarray(numpy_values(array)[:, 0]).view(np.int64)
        divided: AnyArray = unscaled.astype(np.float64) / np.float64(10**array.type.scale)
        return divided
    encoded = array.dictionary_encode()
    distinct = np.array([float(value) for value in encoded.dictionary.to_pylist()] or [0.0], np.float64)
    gathered: AnyArray = distinct[numpy_values(encoded.indices.fill_null(0))]
    return gathered
