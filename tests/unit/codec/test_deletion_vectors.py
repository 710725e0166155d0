import random
import struct
import zlib

import numpy as np
import pytest

from paimon_py.codec.deletion_vectors import DeletionVector, decode, encode
from paimon_py.errors import CorruptionError

EXAMPLES = [
    (32, [1, 3, 5], "0000001a5e43f2d03a300000010000000000020010000000010003000500f39291eb"),
    (32, range(1000), "000000135e43f2d03b300000010000e70301000000e7035d08589f"),
    (64, [1, 3, 5], "00000026d1d3396401000000000000000000000"
                    "03a3000000100000000000200100000000100030005005a9e5d39"),
]  # fmt: skip


def vector(positions) -> DeletionVector:
    return DeletionVector.of(np.array(list(positions), np.int64))


@pytest.mark.parametrize(("bits", "positions", "block"), EXAMPLES)
def test_blocks_are_those_of_java(bits, positions, block):
    data, length = encode(vector(positions), bits=bits)
    assert data.hex() == block
    assert length == (len(data) - 8 if bits == 32 else len(data))
    assert decode(data, length, "index-1", 1).positions.tolist() == list(positions)


def random_positions(random_: random.Random) -> set[int]:
    """Scattered rows, dense stretches and runs, in several containers."""
    found: set[int] = set()
    for _ in range(random_.randint(0, 5)):
        base = random_.choice([0, 65_536, 200_000, 2**31 - 70_000])
        match random_.choice("sdr"):
            case "s":
                found |= {base + random_.randrange(60_000) for _ in range(random_.randint(1, 50))}
            case "d":
                found |= {base + random_.randrange(60_000) for _ in range(9_000)}
            case _:
                start = base + random_.randrange(1000)
                found |= set(range(start, start + random_.randint(1, 68_000)))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_vectors_of_every_kind_are_sets_of_positions(seed):
    random_ = random.Random(seed)
    model, more = random_positions(random_), random_positions(random_)
    if seed % 3 == 0:
        model = {position + (random_.randrange(3) << 32) for position in model}
    one, other = vector(model), vector(more)
    assert len(one) == len(model)
    assert one.positions.tolist() == sorted(model)
    assert one.last == max(model, default=-1)
    assert one.union(other).positions.tolist() == sorted(model | more)
    assert one.positions.tolist() == sorted(model), "a union changed its operand"
    start = random_.randrange(300_000)
    stop = start + random_.randrange(100_000)
    assert one.within(start, stop).tolist() == sorted(p for p in model if start <= p < stop)
    for bits in (32, 64) if one.last < 2**32 else (64,):
        data, length = encode(one, bits=bits)
        assert decode(data + b"next block", length, "index-1", 1) == one


def test_a_vector_of_no_rows_is_written_and_read():
    for bits in (32, 64):
        data, length = encode(vector([]), bits=bits)
        assert len(decode(data, length, "index-1", 1)) == 0


@pytest.mark.parametrize("bits", [32, 64])
def test_every_changed_or_missing_byte_is_noticed(bits):
    data, length = encode(vector([1, 3, 70_000]), bits=bits)
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x41
        with pytest.raises(CorruptionError) as caught:
            decode(bytes(broken), length, "index-1", 17)
        assert (caught.value.path, caught.value.offset) == ("index-1", 17)
        with pytest.raises(CorruptionError):
            decode(data[:at], length, "index-1", 17)


@pytest.mark.parametrize(
    "body",
    [
        bytes.fromhex("5e43f2d0"),
        bytes.fromhex("5e43f2d0ffffffffffffffff"),
        bytes.fromhex("5e43f2d03a30000001000000000002001000000001000300050099"),
        bytes.fromhex("5e43f2d03a300000010000000000020010000000010003000300"),
        bytes.fromhex("d1d33964"),
        bytes.fromhex("d1d33964ffffffffffffffff"),
        bytes.fromhex("d1d33964ffffff7f00000000"),
        bytes.fromhex("d1d33964010000000000000005000000"),
        bytes.fromhex("d1d339640200000000000000" + 2 * "010000003a300000010000000000000010000000010000"[:44]),
    ],
)
def test_a_block_with_a_right_checksum_but_wrong_content_is_refused(body):
    data = struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    with pytest.raises(CorruptionError, match="damaged"):
        decode(data, len(body) if body[0] == 0x5E else len(data), "index-1", 1)
