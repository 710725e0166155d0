"""Compares two columns row by row, of one type or of two types with a common order.

Values are compared exactly: integers of any width, decimals of any scale, integers with floats, dates and timestamps of
any precision. A decimal compared with a float becomes the nearest value of the float's type, as a literal does. Floats
are ordered as in Java's `compare`, and an integer 0 is 0.0, which is above −0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.arrays import Ints, Mask
from paimon_py.errors import UsageError
from paimon_py.expr.arrays import arrow_type, literal_array
from paimon_py.expr.coerce import BINARY, INTEGER_BITS, TEXT, timestamp_units
from paimon_py.expr.literal import SECONDS_PER_DAY
from paimon_py.expr.predicate import Operator, Ref
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, Root

KERNELS = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
FLOATS = frozenset({Root.FLOAT, Root.DOUBLE})

Convert = Callable[[pa.Array], pa.Array]
PairTest = Callable[[pa.Array, pa.Array], pa.Array]
Signs = npt.NDArray[np.int8]

_WHOLE = frozenset(INTEGER_BITS)
_EXACT = _WHOLE | {Root.DECIMAL}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_DECIMAL128_MAX, _DECIMAL256_MAX = 38, 76
_LARGEST = literal_array([(1 << 63) - 1], Atomic(Root.BIGINT))[0]
_ZERO = literal_array([0], Atomic(Root.TINYINT))[0]
_NAN32 = literal_array([float("nan")], Atomic(Root.FLOAT))[0]
_NAN64 = literal_array([float("nan")], Atomic(Root.DOUBLE))[0]
_UNKNOWN = pa.Array.from_buffers(pa.bool_(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(b"\0")], 1)[0]


def check_comparable(left: Ref, right: Ref) -> None:
    """Refuse columns whose values have no common order.

    Raises: UsageError naming both columns and their types.
    """
    assert isinstance(left.type, Atomic) and isinstance(right.type, Atomic)
    one, other = left.type.root, right.type.root
    if not any(one in family and other in family for family in _FAMILIES):
        _refuse(left, right)


_FAMILIES = (
    TEXT,
    BINARY,
    _EXACT | FLOATS,
    frozenset({Root.BOOLEAN}),
    frozenset({Root.TIME}),
    frozenset({Root.DATE, Root.TIMESTAMP}),
    frozenset({Root.TIMESTAMP_LTZ}),
)


def _refuse(left: Ref, right: Ref) -> NoReturn:
    assert left.type is not None and right.type is not None
    hint = ""
    if {left.type.root, right.type.root} <= {Root.DATE, Root.TIMESTAMP, Root.TIMESTAMP_LTZ}:  # type: ignore[union-attr]
        hint = ": one is a point in time, the other depends on a time zone"
    raise UsageError(
        f"{left} is {sql_type(left.type)} and cannot be compared with {right}, which is {sql_type(right.type)}{hint}"
    )


def comparison(left: Atomic, right: Atomic, operator: Operator) -> PairTest:
    """`left operator right` for arrays of two comparable types; null if one of them is.

    Cost: one pass if the types are alike, otherwise about three; decimals compared with floats are converted through
        text, 0.3 µs a row.
    """
    kernel = KERNELS[operator]
    roots = {left.root, right.root}
    signs = None
    if roots & FLOATS and roots & _WHOLE:
        signs = _whole_beside_float if left.root in _WHOLE else _mirror(_whole_beside_float)
    elif roots <= {Root.DATE, Root.TIMESTAMP, Root.TIMESTAMP_LTZ} and _rate(left) != _rate(right):
        coarse, fine = sorted((_rate(left), _rate(right)))
        signs = _beside_finer(fine // coarse)
        signs = signs if _rate(left) == coarse else _mirror(signs)
    if signs is None:
        one, other = _common(left, right), _common(right, left)
        return lambda a, b: kernel(one(a), other(b))
    signed = signs

    def test(a: pa.Array, b: pa.Array) -> pa.Array:
        mask = kernel(_array(signed(a, b)), _ZERO)
        if not a.null_count and not b.null_count:
            return mask
        return pc.if_else(pc.and_(pc.is_valid(a), pc.is_valid(b)), mask, _UNKNOWN)

    return test


def as_floats(array: pa.Array, beside: Atomic) -> pa.Array:
    """Numbers as DOUBLE in the same order, but possibly equal where they are not; decimals as for a float column."""
    if pa.types.is_decimal(array.type):
        kind = pa.float32() if beside.root is Root.FLOAT else pa.float64()
        return _nearest(array, kind).cast(pa.float64())
    return array.cast(pa.float64(), safe=False)


def float_bits(array: pa.Array) -> pa.Array:
    """The bits of floats, with one encoding of NaN: bits are equal if Java's `compare` returns 0."""
    nan = _NAN32 if array.type == pa.float32() else _NAN64
    array = pc.if_else(pc.is_nan(array), nan, array)
    return array.view(pa.int32() if array.type == pa.float32() else pa.int64())


def _common(type_: Atomic, other: Atomic) -> Convert:
    """The conversion of values to a type in which Arrow's kernels can compare them with those of another type."""
    roots = {type_.root, other.root}
    if roots & FLOATS:
        kind = _common_float(type_, other)
        return lambda array: _float_ranks(_nearest(array, kind))
    if Root.DECIMAL in roots and arrow_type(type_) != arrow_type(other):
        digits, scales = zip(_digits(type_), _digits(other), strict=True)
        precision = max(digits) + max(scales)
        decimal = pa.decimal128 if precision <= _DECIMAL128_MAX else pa.decimal256
        target = decimal(min(precision, _DECIMAL256_MAX), max(scales))
        return lambda array: array.cast(target)
    if roots <= _WHOLE:
        widest = arrow_type(max(type_, other, key=lambda each: INTEGER_BITS[each.root]))
        return lambda array: array.cast(widest)
    return lambda array: array


def _common_float(type_: Atomic, other: Atomic) -> pa.DataType:
    kinds = {each.root for each in (type_, other)} & FLOATS
    return pa.float64() if Root.DOUBLE in kinds else pa.float32()


def _nearest(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Floats unchanged; decimals as the nearest float, by parsing their digits."""
    return (array.cast(pa.string()) if pa.types.is_decimal(array.type) else array).cast(kind)


def _float_ranks(array: pa.Array) -> pa.Array:
    """Integers in the order of the floats."""
    bits = float_bits(array.cast(pa.float64()))
    return pc.if_else(pc.less(bits, _ZERO), pc.bit_wise_xor(bits, _LARGEST), bits)


def _digits(type_: Atomic) -> tuple[int, int]:
    """The number of digits before and after the point."""
    if type_.root is Root.DECIMAL:
        scale = type_.scale or 0
        return (type_.precision or 10) - scale, scale
    return _DIGITS[INTEGER_BITS[type_.root]], 0


def _rate(type_: Atomic) -> int:
    """The number of units per day."""
    return 1 if type_.root is Root.DATE else timestamp_units(type_.precision) * SECONDS_PER_DAY


def _mirror(signs: Callable[[pa.Array, pa.Array], Signs]) -> Callable[[pa.Array, pa.Array], Signs]:
    return lambda a, b: -signs(b, a)


def _beside_finer(factor: int) -> Callable[[pa.Array, pa.Array], Signs]:
    """Signs of a − b if a unit of `a` is `factor` units of `b`."""

    def signs(a: pa.Array, b: pa.Array) -> Signs:
        coarse, fine = _words(a), _words(b)
        floor = fine // factor
        return _signs(coarse, floor, fine != floor * factor)

    return signs


def _whole_beside_float(a: pa.Array, b: pa.Array) -> Signs:
    """Signs of a − b for integers and floats."""
    whole, floats = _words(a), _doubles(b)
    inside = (floats >= -(2.0**63)) & (floats < 2.0**63)
    floor = np.floor(np.where(inside, floats, 0.0))
    signs = _signs(whole, floor.astype(np.int64), floats > floor)
    signs[(whole == 0) & (floats == 0) & np.signbit(floats)] = 1
    signs[~inside] = np.where(floats[~inside] < 0, 1, -1)
    return signs


def _signs(whole: Ints, floor: Ints, is_above: Mask) -> Signs:
    """Signs of whole − x, where x is `floor`, or between it and the next integer."""
    signs = (whole > floor).astype(np.int8) - (whole < floor).astype(np.int8)
    signs[(whole == floor) & is_above] = -1
    return signs


def _words(array: pa.Array) -> Ints:
    """Integers, dates or timestamps as 64-bit integers; arbitrary where null."""
    width = array.type.bit_width
    return _values(array, f"i{width // 8}").astype(np.int64)


def _doubles(array: pa.Array) -> npt.NDArray[np.float64]:
    return _values(array, f"f{array.type.bit_width // 8}").astype(np.float64)


def _values(array: pa.Array, kind: str) -> npt.NDArray[Any]:
    dtype = np.dtype(kind)
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def _array(signs: Signs) -> pa.Array:
    return pa.Array.from_buffers(pa.int8(), len(signs), [None, pa.py_buffer(np.ascontiguousarray(signs))])
