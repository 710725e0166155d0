"""Rows with moving keys go where one row after the other would send them, as Java does it."""

from __future__ import annotations

import numpy as np
import pytest

from paimon_py.write.bucket_counts import BucketCounts
from paimon_py.write.cross_partition_moves import BY_ENGINE, Batch, KeyCounts, packed_places


class OneByOne:
    """Buckets of one partition, filled like Java's `crosspartition.BucketAssigner`."""

    def __init__(self, target):
        self.target = target
        self.counts = {}

    def come(self):
        for bucket in sorted(self.counts):
            if self.counts[bucket] < self.target:
                self.counts[bucket] += 1
                return bucket
        bucket = next(number for number in range(1_000) if number not in self.counts)
        self.counts[bucket] = 1
        return bucket

    def leave(self, bucket):
        self.counts[bucket] = self.counts.get(bucket, 0) - 1


@pytest.mark.parametrize("seed", range(60))
def test_buckets_are_filled_as_one_by_one(seed):
    rng = np.random.default_rng(seed)
    target = int(rng.integers(1, 6))
    ours, model = BucketCounts(target), OneByOne(target)
    for bucket in rng.permutation(6)[: rng.integers(0, 4)].tolist():
        held = int(rng.integers(0, 2 * target))
        ours.add(bucket, held)
        model.counts[bucket] = held
    for _ in range(6):
        leaving = [bucket for bucket, held in model.counts.items() for _ in range(max(held, 0))]
        rng.shuffle(leaving)
        leaving = leaving[: int(rng.integers(0, len(leaving) + 1))]
        coming = int(rng.integers(0, 12))
        events = rng.permutation(np.array([0] * coming + [1] * len(leaving), np.int64))
        times, left_times = np.flatnonzero(events == 0), np.flatnonzero(events == 1)
        given = ours.assign(times, np.array(leaving, np.int64), left_times)
        wanted, rest = [], list(leaving)
        for event in events.tolist():
            if event:
                model.leave(rest.pop(0))
            else:
                wanted.append(model.come())
        assert given.tolist() == wanted
        assert ours.counts == model.counts


def test_a_free_number_below_others_becomes_the_next_bucket():
    counts = BucketCounts(2)
    counts.add(1, 2)
    assert counts.assign(np.arange(5), np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == [0, 0, 2, 2, 3]


def one_by_one(engine, rows, places, buckets):
    """What Java does, row after row: (row, partition, bucket, is a −D for the old place)."""
    out = []
    for row, (key, part) in enumerate(rows):
        old = places.get(key)
        if old is None:
            places[key] = (part, buckets(part).come())
            out.append((row, *places[key], False))
        elif old[0] == part:
            out.append((row, *old, False))
        elif engine == "deduplicate":
            out.append((row, *old, True))
            buckets(old[0]).leave(old[1])
            places[key] = (part, buckets(part).come())
            out.append((row, *places[key], False))
        elif engine != "first-row":
            out.append((row, *old, False))
    return out


@pytest.mark.parametrize("engine", BY_ENGINE)
@pytest.mark.parametrize("seed", range(25))
def test_rows_go_where_one_after_the_other_would_go(engine, seed):
    """With room in every bucket; which bucket a key gets where they are full is a question of its own."""
    rng = np.random.default_rng(seed)
    counts, model, places = KeyCounts(1_000), {}, {}
    known: dict[int, int] = {}
    for _ in range(5):
        rows = [(int(k), int(p)) for k, p in zip(rng.integers(0, 30, 40), rng.integers(0, 3, 40), strict=True)]
        keys = np.array([key for key, _ in rows])
        order = np.argsort(keys, kind="stable")
        starts = np.append(True, keys[order][1:] != keys[order][:-1])
        distinct = keys[order][starts].tolist()
        before = np.array([known.get(key, -1) for key in distinct])
        moves = BY_ENGINE[engine](Batch(order, starts, np.array([part for _, part in rows]), before), counts)
        known.update({distinct[at]: place for at, place in zip(moves.keys.tolist(), moves.new_places.tolist())})
        deletes = [False] * len(moves.rows) if moves.deletes is None else moves.deletes.tolist()
        out = list(zip(moves.rows.tolist(), moves.places.tolist(), deletes, strict=True))
        wanted = one_by_one(engine, rows, places, lambda part: model.setdefault(part, OneByOne(1_000)))
        assert out == [(row, int(packed_places(np.int64(part), np.int64(bucket))), dead) for row, part, bucket, dead in wanted]
        assert known == {key: int(packed_places(np.int64(part), np.int64(bucket))) for key, (part, bucket) in places.items()}
        held = {part: buckets.counts for part, buckets in model.items()}
        assert {part: counts.of(part).counts for part in held} == held


def test_rows_that_leave_full_buckets_make_room_at_once():
    counts = KeyCounts(2)
    counts.add(packed_places(np.array([0, 0]), np.array([0, 0])), 1)
    order, starts = np.arange(3), np.ones(3, np.bool_)
    moves = BY_ENGINE["deduplicate"](Batch(order, starts, np.array([1, 0, 0]), np.array([0, -1, -1])), counts)
    assert moves.rows.tolist() == [0, 0, 1, 2]
    assert moves.places.tolist() == [0, 1 << 32, 0, 1], "the first new key takes the room, the second a new bucket"
