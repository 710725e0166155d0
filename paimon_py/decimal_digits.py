"""Exact rounding of decimals to fewer fractional digits, and exact quotients of decimals.

Arrow divides decimals by words of 32 bits and errs if such a word of the quotient has all bits set: it rounds
18446744073709551615 of scale 14 to 18446744066402043429 (seen in 26.0).
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

WIDEST = 76
"""The maximum number of digits of a decimal in Arrow."""
_WORDS = 8
_BITS = np.uint64(32)
_MASK = np.uint64(2**32 - 1)
_STEP = 9
"""The number of digits that one division by a word removes."""

_WIDEST_STORED = 38
_SCALE_MIN = 6

Words = npt.NDArray[np.uint64]


def scaled_down(array: pa.Array, scale: int, *, half_up: bool) -> pa.Array:
    """The decimals of `array` as decimal256 with 76 digits (fewer before zeros), `scale` of them after the point.

    Args:
        scale: less than the array's; may be negative.
        half_up: round halves away from zero; otherwise truncate toward zero.
    """
    words = _words(array)
    negative = words[-1] >> np.uint64(31) == 1
    _negate(words, negative)
    digits = array.type.scale - scale - (1 if half_up else 0)
    while digits > 0:
        _divide(words, 10 ** min(digits, _STEP))
        digits -= _STEP
    if half_up:
        _add(words, np.full(len(array), 5, np.uint64))
        _divide(words, 10)
    _negate(words, negative)
    data = pa.py_buffer(np.ascontiguousarray(words.T.astype(np.uint32)))
    there = array.is_valid().buffers()[1] if array.null_count else None
    kind = pa.decimal256(WIDEST + min(0, scale), scale)
    return pa.Array.from_buffers(kind, len(array), [there, data])


def quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of the quotient of two decimals, as in Spark: at least six digits after the point.

    If 38 digits are not enough for all of them, digits before the point take precedence; likewise with 76 for a wider
    side.

    Source: Spark `DecimalPrecision`, `DecimalType.adjustPrecisionScale`.
    """
    scale = max(_SCALE_MIN, left.scale + right.precision + 1)
    whole = left.precision - left.scale + right.scale
    most = WIDEST if max(left.precision, right.precision) > _WIDEST_STORED else _WIDEST_STORED
    if whole + scale > most:
        scale = max(most - whole, min(scale, _SCALE_MIN))
    return pa.decimal256(min(most, whole + scale), scale)


def quotient(left: pa.Array, right: pa.Array, kind: pa.DataType) -> pa.Array:
    """Divide decimals by decimals, rounding halves away from zero; NULL if a side is NULL.

    Args:
        right: not zero if both sides have a value.
        kind: the type from `quotient_type`.

        Cost: uses integers of any length, two microseconds a row.
        Raises: pa.ArrowInvalid if a quotient has more digits than the type.
    """
    there = pc.and_(left.is_valid(), right.is_valid())
    above, below = _whole_numbers(left), _whole_numbers(right)
    below = np.where(below == 0, 1, below)
    digits = kind.scale - left.type.scale + right.type.scale
    if digits >= 0:
        above = above * 10**digits
    else:
        below = below * 10**-digits
    size, divisor = np.abs(above), np.abs(below)
    found = (2 * size + divisor) // (2 * divisor)
    known = there.to_numpy(zero_copy_only=False)
    if (found[known] >= 10**kind.precision).any():
        raise pa.ArrowInvalid(f"a quotient has more than {kind.precision} digits")
    found = np.where(known, found, 0)
    words = np.stack([((found >> 32 * at) & (2**32 - 1)).astype(np.uint64) for at in range(_WORDS)])
    _negate(words, (above < 0).astype(bool) != (below < 0).astype(bool))
    data = pa.py_buffer(np.ascontiguousarray(words.T.astype(np.uint32)))
    mask = pa.concat_arrays([there]).buffers()[1] if not known.all() else None
    return pa.Array.from_buffers(kind, len(left), [mask, data])


def _whole_numbers(array: pa.Array) -> npt.NDArray[np.object_]:
    """The digits of decimals as Python integers, without the point."""
    words = _words(array)
    negative = words[-1] >> np.uint64(31) == 1
    _negate(words, negative)
    found = sum((word.astype(object) << 32 * at for at, word in enumerate(words)), np.zeros(len(array), object))
    return np.where(negative, -found, found)


def _words(array: pa.Array) -> Words:
    """Decimals as words of 32 bits, the lowest ones first."""
    wide = pc.cast(array, pa.decimal256(WIDEST, array.type.scale))
    low_first = np.frombuffer(wide.buffers()[1], f"{'<' if sys.byteorder == 'little' else '>'}u4")
    words: Words = low_first.reshape(-1, _WORDS)[wide.offset : wide.offset + len(wide)].T.astype(np.uint64)
    return words


def _divide(words: Words, divisor: int) -> None:
    by, rest = np.uint64(divisor), np.zeros(words.shape[1], np.uint64)
    for word in words[::-1]:
        now = rest << _BITS | word
        np.floor_divide(now, by, out=word)
        rest = now - word * by


def _add(words: Words, carry: Words) -> None:
    for word in words:
        word += carry
        carry = word >> _BITS
        word &= _MASK


def _negate(words: Words, which: npt.NDArray[np.bool_]) -> None:
    if which.any():
        words[:, which] ^= _MASK
        _add(words, which.astype(np.uint64))
