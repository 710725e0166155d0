"""Decimals that lose digits after the point, against Python's own decimals."""

from __future__ import annotations

import decimal
import random

import pyarrow as pa
import pytest

from paimon_py.decimal_digits import scaled_down
from paimon_py.files.cast_number import rescale

EXACT = decimal.Context(prec=200)
WORDS = [2**32 - 1, 2**64 - 1, 2**96 - 1, 2**128 - 1, 2**32, 2**64, 2**64 - 2**32, 0, 1, 5]


def values(rng, scale, digits_max):
    """Decimals of a scale; some have words with all bits set when they lose digits."""
    found = []
    for _ in range(40):
        number = rng.choice(WORDS) * 10 ** rng.randrange(scale + 1) + rng.choice([0, 1, 5, 10**scale // 2])
        number = rng.choice([number, rng.randrange(10 ** rng.randint(1, digits_max))])
        if number < 10**digits_max:
            found.append(decimal.Decimal(rng.choice([1, -1]) * number).scaleb(-scale, EXACT))
    return [*found, None]


@pytest.mark.parametrize("seed", range(40))
def test_digits_are_cut_and_rounded_as_by_hand(seed):
    rng = random.Random(seed)
    scale = rng.randint(1, 40)
    kept = rng.randrange(-3, scale)
    kind = rng.choice([pa.decimal256(74, scale), pa.decimal128(38, min(scale, 38))])
    kept = min(kept, kind.scale - 1)
    given = values(rng, kind.scale, 36 if kind.bit_width == 128 else 70)
    array = pa.array([None, *given], kind).slice(1)
    for half_up, rounding in ((True, decimal.ROUND_HALF_UP), (False, decimal.ROUND_DOWN)):
        found = scaled_down(array, kept, half_up=half_up)
        assert found.type == pa.decimal256(76 + min(0, kept), kept)
        unit = decimal.Decimal(1).scaleb(-kept)
        wanted = [None if one is None else one.quantize(unit, rounding=rounding, context=EXACT) for one in given]
        assert found.cast(pa.decimal256(76, max(kept, 0))).to_pylist() == wanted


def test_a_word_whose_bits_are_all_set_stays():
    value = decimal.Decimal(2**64 - 1)
    assert rescale(pa.array([value, -value], pa.decimal128(38, 14)), 20, 0).to_pylist() == [value, -value]
    assert scaled_down(pa.array([], pa.decimal128(38, 14)), 0, half_up=True).to_pylist() == []
