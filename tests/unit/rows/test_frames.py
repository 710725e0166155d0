"""What lookups remember of files: never more than the limit, and counted right."""

import random

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.rows.frames import FrameId, Frames, Stretch
from paimon_py.rows.key_index import KeyIndex


def stretch(start, count):
    return Stretch(start, pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())}))


def index(count):
    rows = np.arange(count, dtype=np.uint32)
    return KeyIndex(rows, np.uint64(0), rows, ("f",), np.array([0, count]), True)


@pytest.mark.parametrize("seed", range(5))
def test_memory_is_what_the_held_rows_and_indexes_take(seed):
    chance = random.Random(seed)
    frames = Frames(4_000)
    files = [FrameId(f"f{number}", 0) for number in range(12)]
    for _ in range(300):
        file = chance.choice(files)
        if chance.random() < 0.7:
            frames.add(file, [stretch(chance.randrange(50), chance.randrange(1, 60))])
        else:
            frames.hold_index(file, chance.choice([None, index(chance.randrange(1, 100))]))
        decoded = sum(part.rows.nbytes for each in files for part in frames.get(each))
        indexes = sum(held.nbytes for each in files if (held := frames.index(each)) is not None)
        assert frames.nbytes == decoded + indexes <= 4_000
