"""Places on curves against bit-by-bit definitions, and as orders of their columns."""

from __future__ import annotations

import datetime
import itertools
import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from paimon_py import UnsupportedError
from paimon_py.lsm.curves import hilbert, z_order

SIGN = 1 << 63


def places(columns) -> list[tuple[int, ...]]:
    return list(zip(*[column.to_pylist() for column in columns]))


def number(place: tuple[int, ...]) -> int:
    """Words of a place as one number."""
    whole = 0
    for word in place:
        whole = whole << 64 | (word + SIGN)
    return whole


def interleaved(values: list[bytes]) -> bytes:
    """One bit of every value in turn, as Java's ZOrderByteUtils does."""
    bits = [f"{int.from_bytes(value, 'big'):0{8 * len(value)}b}" for value in values]
    mixed = "".join(bit for column in itertools.zip_longest(*bits, fillvalue="") for bit in column)
    return int(mixed, 2).to_bytes(len(mixed) // 8, "big")


def java_long(value) -> bytes:
    return bytes(8) if value is None else (value + SIGN).to_bytes(8, "big")


def java_text(value, size: int = 8) -> bytes:
    return (b"" if value is None else value.encode())[:size].ljust(size, b"\0")


def test_z_order_has_the_bits_of_java():
    rng = random.Random(1)
    numbers = [rng.choice([None, 0, -1, 2**63 - 1, -(2**63), rng.randrange(-100, 100)]) for _ in range(300)]
    texts = [rng.choice([None, "", "a", "é", "abcdefghij", str(rng.random())]) for _ in range(300)]
    days = [rng.choice([None, rng.randrange(-1000, 1000)]) for _ in range(300)]
    columns = [pa.array(numbers), pa.array(texts), pa.array(days, pa.int32()).cast(pa.date32())]
    wanted = [interleaved([java_long(n), java_text(t), java_long(d)]) for n, t, d in zip(numbers, texts, days)]
    found = places(z_order(columns, text_bytes=8))
    assert [b"".join((word + SIGN).to_bytes(8, "big") for word in place) for place in found] == wanted


@pytest.mark.parametrize("size", [1, 3, 8, 11, 20])
def test_texts_count_with_as_many_bytes_as_asked_and_a_column_without_bits_is_passed_over(size):
    rng = random.Random(size)
    texts = ["".join(rng.choice("ab") for _ in range(rng.randrange(25))) for _ in range(100)]
    numbers = [rng.randrange(50) for _ in range(100)]
    found = places(z_order([pa.array(texts), pa.array(numbers)], text_bytes=size))
    wanted = [interleaved([java_text(t, size), java_long(n)]) for t, n in zip(texts, numbers)]
    got = [b"".join((word + SIGN).to_bytes(8, "big") for word in place) for place in found]
    assert [each[: size + 8] for each in got] == wanted
    assert all(not each[size + 8 :].strip(b"\0") for each in got)


def test_columns_of_a_slice_are_those_of_its_rows():
    column, text = pa.array([5, None, -7, 3, 9]), pa.array(["x", "yy", None, "zzz", "w"])
    whole = places(z_order([column, text], text_bytes=8))
    assert places(z_order([column.slice(1, 3), text.slice(1, 3)], text_bytes=8)) == whole[1:4]
    assert places(hilbert([column.slice(1, 3), text.slice(1, 3)])) == places(hilbert([column, text]))[1:4]
    assert [len(each) for each in hilbert([column.slice(0, 0), text.slice(0, 0)])] == [0]


ORDERED = {
    "booleans": pa.array([None, False, True]),
    "bytes": pa.array([None, -128, -1, 0, 1, 127], pa.int8()),
    "ints": pa.array([None, -(2**31), -1, 0, 2**31 - 1], pa.int32()),
    "floats": pa.array([None, -math.inf, -1.5, -1e-40, -0.0, 0.0, 1e-40, 0.1, 3e38, math.inf, math.nan], pa.float32()),
    "doubles": pa.array([None, -math.inf, -1.0000000001, -1.0, -5e-324, -0.0, 0.0, 1.0, 1.0000000001, math.nan]),
    "narrow decimals": pa.array([None, Decimal("-9.99"), Decimal("-0.01"), Decimal("0.00"), Decimal("9.99")], pa.decimal128(3, 2)),
    "wide decimals": pa.array([None, -(10**37), -(10**30), 0, 10**30, 10**37], pa.decimal128(38, 0)),
    "times": pa.array([None, datetime.time(0), datetime.time(23, 59)], pa.time32("ms")),
    "timestamps": pa.array([None, -1_000_001, -1, 0, 1000, 10**15], pa.timestamp("us")),
    "texts": pa.array([None, "a", "aa", "b", "ä"]),
    "binaries": pa.array([None, b"\x01", b"\x01\x01", b"\xff"]),
    "fixed binaries": pa.array([None, b"\x01\x02", b"\xff\x00"], pa.binary(2)),
}


@pytest.mark.parametrize("kind", ORDERED)
def test_alone_a_column_keeps_its_order_on_the_curve_with_nulls_first(kind):
    column = ORDERED[kind]
    got = [number(place) for place in places(z_order([column], text_bytes=8))]
    assert got == sorted(got)
    assert got[0] == 0
    distinct = len(set(got))
    assert distinct >= len(got) - 2, "nothing but null and the smallest value, and parts of a millisecond, share a place"


def test_neighbours_on_the_hilbert_curve_are_neighbours_in_space():
    for dimensions, side in ((2, 16), (3, 8), (5, 2)):
        points = list(itertools.product(range(side), repeat=dimensions))
        random.Random(dimensions).shuffle(points)
        found = [number(place) for place in places(hilbert([pa.array(column) for column in zip(*points)]))]
        assert len(set(found)) == len(points)
        path = [point for _, point in sorted(zip(found, points))]
        steps = [sum(abs(a - b) for a, b in zip(one, other)) for one, other in itertools.pairwise(path)]
        assert set(steps) == {1}


def test_the_hilbert_curve_covers_negative_numbers_and_the_last_bit():
    points = list(itertools.product([-2, -1, 0, 1], repeat=2))
    found = [number(place) for place in places(hilbert([pa.array(column) for column in zip(*points)]))]
    assert len(set(found)) == 16


def test_a_type_without_order_is_refused():
    with pytest.raises(UnsupportedError, match="no order"):
        z_order([pa.array([[1]])], text_bytes=8)
