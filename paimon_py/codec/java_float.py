"""FLOAT and DOUBLE as strings, digit for digit as Java prints them before JDK 19.

These versions generate digits from an exact fraction until the remainder is smaller than half the distance to the next
number, but four peculiarities make some strings longer than necessary (2E23 is 1.9999999999999998E23): in exponent form
the test is skipped once; integers are printed whole, with digits dropped by a table; the distance is the same on both
sides, except halved at powers of two; and whether "exactly at the limit" stops depends on whether the fraction fits in
a machine word. Partition directories are named by these strings, so they must agree. JDK 19 and later print the
shortest string.

Source: the behaviour of `Double.toString` and `Float.toString` of JDK 8 to 18, checked against JDK 17.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

_MANTISSA_BITS = 52
_WHOLE_EXPONENTS = range(-21, 63)
_FIVES_MAX = 27


class _Binary(NamedTuple):
    """value = mantissa · 2^(exponent − 52), 2^52 ≤ mantissa < 2^53; `precision`: the number of significant bits."""

    mantissa: int
    exponent: int
    precision: int


def java_float(value: float, *, single: bool) -> str:
    """Java's string for a FLOAT (`single`) or DOUBLE: at least one decimal; exponent form from 10⁷ and below 10⁻³."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}Infinity"
    if value == 0:
        return f"{sign}0.0"
    digits, point = _digits(_binary(abs(value), single))
    if 0 < point < 8:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _binary(value: float, single: bool) -> _Binary:
    if single:
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        width, bias = 23, 127
    else:
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        width, bias = _MANTISSA_BITS, 1023
    fraction, exponent = bits & ((1 << width) - 1), bits >> width
    if exponent:
        fraction |= 1 << width
    else:
        exponent = 1
    precision = fraction.bit_length()
    lacking = width + 1 - precision
    return _Binary(fraction << (lacking + _MANTISSA_BITS - width), exponent - lacking - bias, precision)


def _digits(number: _Binary) -> tuple[str, int]:
    """The decimal digits, and the exponent of the decimal point: value = 0.digits · 10^point."""
    mantissa, exponent, precision = number
    odd_bits = _MANTISSA_BITS + 1 - _trailing_zeros(mantissa)
    fraction_bits = max(0, odd_bits - exponent - 1)
    if fraction_bits == 0 and exponent in _WHOLE_EXPONENTS:
        return _whole(number)
    decimal = _estimate(mantissa, exponent)
    fives_top, fives_bottom = max(0, -decimal), max(0, decimal)
    twos_top = fives_top + fraction_bits + exponent
    twos_bottom = fives_bottom + fraction_bits
    twos_gap = twos_top - precision
    twos_top -= odd_bits - 1
    common = min(twos_top, twos_bottom)
    twos_top, twos_bottom, twos_gap = twos_top - common, twos_bottom - common, twos_gap - common
    if odd_bits == 1:
        twos_gap -= 1
    if twos_gap < 0:
        twos_top, twos_bottom, twos_gap = twos_top - twos_gap, twos_bottom - twos_gap, 0
    top_bits = odd_bits + twos_top + _five_bits(fives_top)
    bottom_bits = twos_bottom + 1 + _five_bits(fives_bottom + 1)
    widest = max(top_bits, bottom_bits)
    word = 32 if widest < 32 else 64 if widest < 64 else None
    top = (mantissa >> (_MANTISSA_BITS + 1 - odd_bits)) * 5**fives_top << twos_top
    return _generate(top, 5**fives_bottom << twos_bottom, 5**fives_top << twos_gap, decimal, word)


def _generate(top: int, bottom: int, gap: int, decimal: int, word: int | None) -> tuple[str, int]:
    """Digits of top / bottom until the remainder is within `gap` of the value or of the next digit."""
    tens = bottom * 10
    digits: list[int] = []
    first = True
    while True:
        digit, rest = divmod(top, bottom)
        top, gap = rest * 10, _wrap(gap * 10, word)
        if gap <= 0:
            low = high = True
        else:
            low = top < gap
            reach = _wrap(top + gap, word)
            high = reach > tens if word else reach >= tens
        if first and digit == 0 and not high:
            decimal -= 1
        else:
            digits.append(digit)
        if first and not -3 <= decimal < 8:
            low = high = False
        first = False
        if low or high:
            break
    if high and (not low or top * 2 > tens or (top * 2 == tens and digits[-1] % 2)):
        return _rounded_up(digits, decimal + 1)
    return "".join(map(str, digits)), decimal + 1


def _whole(number: _Binary) -> tuple[str, int]:
    """An integer below 2^63, without the digits beyond its precision."""
    mantissa, exponent, precision = number
    value = (
        mantissa << (exponent - _MANTISSA_BITS)
        if exponent >= _MANTISSA_BITS
        else mantissa >> (_MANTISSA_BITS - exponent)
    )
    spare = exponent - precision - 1
    dropped = int(spare * math.log10(2)) if exponent > precision and spare > 1 else 0
    if dropped:
        power = 10**dropped
        value, rest = divmod(value, power)
        value += rest >= power >> 1
    text = str(value)
    return text.rstrip("0"), len(text) + dropped


def _rounded_up(digits: list[int], point: int) -> tuple[str, int]:
    value = str(int("".join(map(str, digits))) + 1).rjust(len(digits), "0")
    if len(value) > len(digits):
        return "1" + "0" * (len(digits) - 1), point + 1
    return value, point


def _estimate(mantissa: int, exponent: int) -> int:
    """The decimal exponent, or one more: a linear approximation of the logarithm, in double arithmetic."""
    scaled = math.ldexp(mantissa, -_MANTISSA_BITS)
    return math.floor((scaled - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)


def _wrap(value: int, word: int | None) -> int:
    if word is None:
        return value
    value &= (1 << word) - 1
    return value - (1 << word) if value >> (word - 1) else value


def _five_bits(power: int) -> int:
    """The estimated number of bits of 5^power: exact in a table, three bits per power beyond it."""
    if power >= _FIVES_MAX:
        return power * 3
    return (5**power).bit_length() if power else 0


def _trailing_zeros(value: int) -> int:
    return (value & -value).bit_length() - 1
