"""Decimals that lose digits after the point, against Python's own decimals."""

from __future__ import annotations

import decimal
import random

import pyarrow as pa
import pytest

from paimon_py.decimal_digits import quotient, quotient_type, scaled_down
from paimon_py.files.casts.numbers import rescale

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


@pytest.mark.parametrize("seed", range(40))
def test_quotients_are_those_of_python(seed):
    rng = random.Random(seed)
    exact = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)
    wide = rng.random() < 0.3
    most = 60 if wide else 38
    kinds = [(precision, rng.randint(0, precision)) for precision in (rng.randint(1, most), rng.randint(1, most))]
    sides = [
        pa.array(
            [None, *(rng.choice([None, *[_number(rng, *kind) for _ in range(9)]]) for _ in range(60))], pa.decimal256(*kind)
        ).slice(1)
        for kind in kinds
    ]
    kind = quotient_type(*(side.type for side in sides))
    assert kind.scale >= 6 and kind.precision <= (76 if max(kinds)[0] > 38 else 38)
    unit = decimal.Decimal(1).scaleb(-kind.scale)
    kept, wanted = [], []
    for at, (left, right) in enumerate(zip(*(side.to_pylist() for side in sides), strict=True)):
        value = None if left is None or right is None else _divided(left, right, unit, exact)
        if right != 0 and (value is None or value.scaleb(kind.scale, exact).copy_abs() < 10**kind.precision):
            kept.append(at)
            wanted.append(value)
        elif right:
            with pytest.raises(pa.ArrowInvalid, match="more than"):
                quotient(sides[0].slice(at, 1), sides[1].slice(at, 1), kind)
    found = quotient(*(side.take(pa.array(kept, pa.int64())) for side in sides), kind)
    found.validate(full=True)
    assert found.type == kind and found.to_pylist() == wanted


def _number(rng, precision, scale):
    size = rng.choice([*WORDS, 10**precision - 1, rng.randrange(10**precision), rng.randrange(10 ** rng.randint(1, precision))])
    return decimal.Decimal(rng.choice([1, -1]) * (size % 10**precision)).scaleb(-scale, EXACT)


def _divided(left, right, unit, exact):
    return None if right == 0 else exact.divide(left, right).quantize(unit, context=exact)


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [((10, 2), (10, 2), (23, 13)), ((38, 14), (38, 14), (38, 6)), ((5, 0), (3, 0), (11, 6)), ((38, 0), (1, 0), (38, 6)),
     ((20, 0), (10, 5), (36, 11)), ((50, 2), (10, 2), (63, 13))],
)  # fmt: skip
def test_the_type_of_a_quotient_is_that_of_spark(left, right, found):
    assert quotient_type(pa.decimal256(*left), pa.decimal256(*right)) == pa.decimal256(*found)
