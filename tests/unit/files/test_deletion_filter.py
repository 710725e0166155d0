"""Rows by their positions in a file: each function against lists, with batches that end anywhere."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.errors import CorruptionError
from paimon_py.files.deletion_filter import (
    POSITION,
    alive,
    check_fits,
    dead_as_deletes,
    living,
    select_rows,
    with_positions,
)
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import VALUE_KIND

SEEDS = range(40)


def cut(seed: int) -> tuple[list[tuple[int, pa.RecordBatch]], list[int], list[int]]:
    """Batches with the position of their first row, the kinds of all rows, and the dead positions."""
    rng = random.Random(seed)
    count = rng.choice([0, 1, 7, 30])
    kinds = [rng.randrange(4) for _ in range(count)]
    rows = pa.record_batch({"n": pa.array(range(count), pa.int64()), VALUE_KIND: pa.array(kinds, pa.int8())})
    pieces, at = [], 0
    while at < count:
        size = rng.randrange(1, 9)
        pieces.append((at, rows.slice(at, size)))
        at += size
    first = rng.randrange(count + 1)
    dead = rng.choice([[], range(count), range(first, min(count, first + 4)), rng.sample(range(count), count // 2)])
    return pieces, kinds, sorted(dead)


def numbers(batches: list[pa.RecordBatch], name: str = "n") -> list[int]:
    return [value for batch in batches for value in batch.column(name).to_pylist()]


def vector(dead: list[int]) -> DeletionVector:
    return DeletionVector.of(np.array(dead, np.int64))


@pytest.mark.parametrize("seed", SEEDS)
def test_dead_rows_are_dropped_and_the_others_keep_their_positions(seed):
    pieces, kinds, dead = cut(seed)
    left = [row for row in range(len(kinds)) if row not in dead]
    found = list(alive(pieces, vector(dead)))
    assert numbers(found) == left and all(batch.num_rows for batch in found)
    assert numbers(list(alive(pieces, None))) == list(range(len(kinds)))
    placed = list(with_positions(pieces, vector(dead)))
    assert numbers(placed, POSITION) == numbers(placed) == left
    rows = list(living(pieces, vector(dead)))
    assert [int(row) for one in rows for row in one.positions(np.arange(one.rows.num_rows))] == left
    assert numbers([one.rows for one in rows]) == left
    assert all(one.end == one.rows.column("n")[-1].as_py() + 1 or one.places is None for one in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_dead_rows_become_deletes_and_no_row_is_lost(seed):
    pieces, kinds, dead = cut(seed)
    found = list(dead_as_deletes(pieces, vector(dead)))
    assert numbers(found) == list(range(len(kinds)))
    assert numbers(found, VALUE_KIND) == [3 if row in dead else kind for row, kind in enumerate(kinds)]
    assert numbers([batch for _, batch in pieces], VALUE_KIND) == kinds


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_that_are_asked_for_come_and_no_empty_batch(seed):
    pieces, _, wanted = cut(seed)
    found = list(select_rows(pieces, BitMap(wanted)))
    assert numbers(found) == wanted and all(batch.num_rows for batch in found)
    bare = [(at, batch.select([])) for at, batch in pieces]
    assert sum(batch.num_rows for batch in select_rows(bare, BitMap(wanted))) == len(wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_are_found_by_their_positions(seed):
    pieces, kinds, dead = cut(seed)
    left = [row for row in range(len(kinds)) if row not in dead]
    wanted = random.Random(seed).sample(left, len(left) // 2)
    found = [one.rows.column("n")[int(row)].as_py() for one in living(pieces, vector(dead)) for row in one.find(vector(wanted))]
    assert found == sorted(wanted)


@pytest.mark.parametrize(("last", "fits"), [(4, True), (5, False), (6, False)])
def test_a_vector_ends_with_its_file(last, fits):
    file = DataFile(name="f", size_bytes=1, row_count=5, schema_id=0, level=0, min_sequence=0, max_sequence=0)
    if fits:
        check_fits(file, vector([last]), "/t/f")
    else:
        with pytest.raises(CorruptionError, match=f"names row {last}, the file has 5 rows"):
            check_fits(file, vector([last]), "/t/f")
