"""Decimals with fewer digits after the point, exactly.

Arrow divides decimals by words of 32 bits and errs where such a word of the quotient has all bits set: it rounds
18446744073709551615 of scale 14 to 18446744066402043429 (seen in 26.0).
"""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

WIDEST = 76
"""The most digits of a decimal in Arrow."""
_WORDS = 8
_BITS = np.uint64(32)
_MASK = np.uint64(2**32 - 1)
_STEP = 9
"""Digits that one division by a word takes away."""

Words = npt.NDArray[np.uint64]


def scaled_down(array: pa.Array, scale: int, *, half_up: bool) -> pa.Array:
    """The decimals of `array` as decimal256 with 76 digits (with fewer before zeros), `scale` of them after the point.

    Args:
        scale: less than the array's; may be negative.
        half_up: round halves away from zero; else cut toward zero.
    """
    wide = pc.cast(array, pa.decimal256(WIDEST, array.type.scale))
    low_first = np.frombuffer(wide.buffers()[1], f"{'<' if sys.byteorder == 'little' else '>'}u4")
    words = low_first.reshape(-1, _WORDS)[wide.offset : wide.offset + len(wide)].T.astype(np.uint64)
    negative = words[-1] >> np.uint64(31) == 1
    _negate(words, negative)
    digits = array.type.scale - scale - (1 if half_up else 0)
    while digits > 0:
        _divide(words, 10 ** min(digits, _STEP))
        digits -= _STEP
    if half_up:
        _add(words, np.full(len(wide), 5, np.uint64))
        _divide(words, 10)
    _negate(words, negative)
    data = pa.py_buffer(np.ascontiguousarray(words.T.astype(np.uint32)))
    there = wide.is_valid().buffers()[1] if wide.null_count else None
    kind = pa.decimal256(WIDEST + min(0, scale), scale)
    return pa.Array.from_buffers(kind, len(wide), [there, data])


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
