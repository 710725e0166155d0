from __future__ import annotations

import random

import pytest
from pyroaring import BitMap

from paimon_py.codec.roaring import union_32, union_64

# bytes of Java's RoaringBitmap64 1.2.1: keys 0-3 with one container each, and the same with one more
JAVA_64 = bytes.fromhex(
    "010300000000000000000300030000000003020104000000000000010000000000000000000004000000000000020000010000000000000004"
    "000000000000030000020000000000000001000000fe0300000001020100000003000102010000000600010201000000090003000000000000"
    "000000000002000000"
)


def bitmap_64(values):
    """A 64-bit bitmap as bytes, grown from Java's by one value at a time."""
    parts = [JAVA_64, *(single_64(value) for value in values)]
    return union_64(parts)


def single_64(value):
    key, low = value >> 16, value & 0xFFFF
    leaf = bytes([4, 0, 0, 0]) + key.to_bytes(6, "big") + (0).to_bytes(8, "little")
    slots = (1).to_bytes(4, "little") + b"\xfe" + (1).to_bytes(4, "little")
    container = b"\x01\x02" + (1).to_bytes(4, "little") + low.to_bytes(2, "little")
    return b"\x01" + (1).to_bytes(8, "little") + leaf + slots + container + (1).to_bytes(8, "little") + bytes(8)


def values_64(data):
    """The values in it, by our own reader."""
    from paimon_py.codec.roaring import _Bitmap64

    bitmap = _Bitmap64.read(data)
    return {int.from_bytes(key, "big") << 16 | low for key, place in bitmap.places.items() for low in bitmap.slots[place]}


def test_a_32_bit_union_has_all_values_in_the_portable_format():
    rng = random.Random(1)
    sets = [{rng.randrange(2**32) for _ in range(500)} | set(range(start, start + 9000)) for start in (0, 70_000, 5_000)]
    made = union_32([BitMap(values).serialize() for values in sets])
    assert set(BitMap.deserialize(made)) == set().union(*sets)
    wanted = BitMap(set().union(*sets))
    wanted.run_optimize()
    assert made == wanted.serialize()


def test_javas_64_bit_bytes_are_written_again_as_they_were():
    assert union_64([JAVA_64]) == JAVA_64
    assert union_64([JAVA_64, JAVA_64]) == JAVA_64
    assert union_64([b"\0", JAVA_64, b"\0"]) == JAVA_64
    assert union_64([b"\0", b"\0"]) == b"\0"


@pytest.mark.parametrize("spread", [2, 5, 17, 49, 256])
def test_nodes_of_every_size_are_read_back(spread):
    rng = random.Random(spread)
    values = {rng.randrange(spread) << (8 * rng.randrange(1, 8)) | rng.randrange(1 << 16) for _ in range(4 * spread)}
    values = {value & (2**64 - 1) for value in values}
    made = bitmap_64(sorted(values, key=lambda value: rng.random()))
    assert values_64(made) == values | values_64(JAVA_64)
    assert union_64([made]) == made


def test_containers_of_every_kind_are_read_back():
    runs = union_64([single_64(value) for value in range(100, 400)])
    bits = union_64([single_64(value) for value in range(0, 18_000, 2)])
    assert len(runs) < 80 < 8192 < len(bits)
    assert values_64(runs) == set(range(100, 400))
    assert values_64(union_64([bits, runs])) == set(range(0, 18_000, 2)) | set(range(100, 400))


@pytest.mark.parametrize("cut", range(1, len(JAVA_64), 7))
def test_bytes_that_end_early_are_refused(cut):
    with pytest.raises(ValueError, match="bytes|containers|values|node|deserialize"):
        union_64([JAVA_64[:cut]])


def test_other_bytes_are_refused():
    far = single_64(5).replace((0).to_bytes(8, "little") + (1).to_bytes(4, "little"), (-9).to_bytes(8, "little", signed=True) + (1).to_bytes(4, "little"), 1)
    roomy = single_64(5)[:-4] + (2**31 - 1).to_bytes(4, "little")  # what is added next would lie 16 GB further
    for union in (union_32, union_64):
        for data in (far, roomy, b"", b"no bitmap at all, just text", single_64(5).replace(b"\1\2\1", b"\1\x09\1", 1)):
            with pytest.raises(ValueError, match="bytes|deserialize|node|containers|disorder"):
                union([data, data])
