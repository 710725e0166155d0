"""What lookups remember of files: never more than the limit, and counted right."""

import random

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.lookup.frames import FrameId, Frames, RowRange
from paimon_py.lookup.key_index import KeyIndex


def stretch(start, count):
    return RowRange(start, pa.record_batch({"n": pa.array(range(start, start + count), pa.int64())}))


def index(count):
    rows = np.arange(count, dtype=np.uint32)
    return KeyIndex(rows, np.uint64(0), rows, ("f",), np.array([0, count]), True)


@pytest.mark.parametrize("seed", range(5))
def test_memory_counts_the_cached_rows_and_indexes(seed):
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


BLOCK = FrameId("t/b", 0)
LIVING = [f"f{number}" for number in range(12)]


def held(count, rows=20, max_bytes=1 << 20):
    """Files of so many rows each."""
    frames = Frames(max_bytes)
    files = [FrameId(f"t/b/{name}", 0) for name in LIVING[:count]]
    for at, file in enumerate(files):
        frames.add(file, [RowRange(0, stretch(100 * at, rows).rows)])
    return frames, dict.fromkeys(files, rows)


def numbers(frames, files):
    return [[n for part in frames.get(file) for n in part.rows["n"].to_pylist()] for file in files]


def test_files_in_a_block_equal_the_files_alone_and_take_no_more_memory():
    frames, files = held(3)
    before, nbytes = numbers(frames, files), frames.nbytes
    frames.join(BLOCK, files, lambda: LIVING)
    assert list(frames.block(BLOCK).places.values()) == [(0, 20), (20, 20), (40, 20)]
    assert numbers(frames, files) == before
    assert frames.nbytes == nbytes


def test_a_block_is_rebuilt_with_enough_new_files_and_without_files_that_are_gone():
    frames, files = held(8)
    names, before = list(files), numbers(frames, files)
    frames.join(BLOCK, dict.fromkeys(names[:3], 20), lambda: LIVING)
    first = frames.block(BLOCK)
    frames.join(BLOCK, dict.fromkeys(names[:6], 20), lambda: LIVING)
    assert frames.block(BLOCK) is first
    frames.join(BLOCK, dict.fromkeys(names[3:7], 20), lambda: [name for name in LIVING if name != "f1"])
    assert set(frames.block(BLOCK).places) == set(names) - {names[1], names[7]}
    assert numbers(frames, files) == [numbers if at != 1 else [] for at, numbers in enumerate(before)]
    assert frames.nbytes == 7 * 160


def test_files_cached_in_part_or_in_several_ranges_are_not_part_of_a_block():
    frames, files = held(2)
    more = [FrameId(f"t/b/{name}", 0) for name in LIVING[2:4]]
    frames.add(more[0], [stretch(0, 10)])
    frames.add(more[1], [stretch(10, 10), stretch(0, 10)])
    frames.join(BLOCK, {**files, **dict.fromkeys(more, 20), FrameId("t/b/f9", 0): 20}, lambda: LIVING)
    assert list(frames.block(BLOCK).places) == list(files)
    assert [len(frames.get(file)) for file in more] == [1, 2]


def test_a_block_is_evicted_as_a_whole():
    frames, files = held(3, max_bytes=1_000)
    frames.join(BLOCK, files, lambda: LIVING)
    assert frames.block(BLOCK) is not None
    frames.add(FrameId("t/b/f9", 0), [stretch(0, 80)])
    assert frames.block(BLOCK) is None
    assert numbers(frames, files) == [[], [], []]
    assert frames.nbytes == 640


def test_without_memory_for_a_copy_there_is_no_block():
    frames, files = held(3, max_bytes=900)
    before = numbers(frames, files)
    frames.join(BLOCK, files, lambda: LIVING)
    assert frames.block(BLOCK) is None
    assert numbers(frames, files) == before
