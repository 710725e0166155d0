"""Dynamic buckets: the same rows in the same order get the buckets that Java gives them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.codec.binary_row import encode
from paimon_py.codec.binary_row.hash import hash_row, hash_rows
from paimon_py.errors import OptionError, UsageError
from paimon_py.spec.data_file import EMPTY_ROW
from paimon_py.spec.options import Options
from paimon_py.spec.type_text import parse_type
from paimon_py.write.bucket_assigner import AssignerSettings, PartitionBuckets, assigners_of, with_limits


def hashes(*values):
    return np.array(values, np.int32)


def one_by_one(values, known, target, count=1, number=0):
    """Java's rule for each hash alone: where it lies, else the first bucket with room, else the next free number."""
    places = {value: bucket for bucket, own in known for value in own}
    room = {bucket: len(own) for bucket, own in sorted(known) if bucket % count == number}
    used = set(room)
    out = []
    for value in values:
        if value not in places:
            bucket = next((b for b, size in room.items() if size < target), None)
            if bucket is None:
                bucket = next(b for b in range(number, 10_000, count) if b not in used)
                used.add(bucket)
            room[bucket] = room.get(bucket, 0) + 1
            places[value] = bucket
        out.append(places[value])
    return out


@pytest.mark.parametrize("seed", range(20))
def test_batches_get_the_buckets_that_rows_get_one_by_one(seed):
    random = np.random.default_rng(seed)
    target, count = int(random.integers(1, 9)), int(random.integers(1, 4))
    number = int(random.integers(0, count))
    known = []
    taken = random.permutation(np.arange(-500, 500))[:60].tolist()
    for bucket in range(0, 10):
        if random.random() < 0.4:
            known.append((bucket, [taken.pop() for _ in range(int(random.integers(1, 6)))]))
    values = random.integers(-500, 500, 200).tolist()
    buckets = PartitionBuckets(
        AssignerSettings(target_rows=target, count=count, number=number), [(b, hashes(*own)) for b, own in known]
    )
    got, fresh = [], {}
    for part in np.array_split(np.array(values, np.int32), 7):
        numbers, new = buckets.assign(part)
        got += numbers.tolist()
        for bucket, own in new.items():
            fresh.setdefault(bucket, []).extend(own.tolist())
    assert got == one_by_one(values, known, target, count, number)
    assert sorted(v for own in fresh.values() for v in own) == sorted(
        set(values) - {v for _, own in known for v in own}
    )


def test_sparse_buckets_are_filled_in_the_order_of_javas_hash_table():
    known = [(17, hashes(1)), (1, hashes(2)), (33, hashes(3)), (2, hashes(4))]
    buckets = PartitionBuckets(AssignerSettings(target_rows=2), known)
    assert buckets.assign(hashes(10, 11, 12, 13, 14))[0].tolist() == [33, 1, 17, 2, 0]


def test_full_buckets_share_new_keys_if_no_bucket_can_be_added():
    buckets = PartitionBuckets(AssignerSettings(target_rows=1, buckets_max=2), [])
    assert buckets.assign(hashes(5, 6))[0].tolist() == [0, 1]
    more = buckets.assign(hashes(7, 8, 5, 9))[0].tolist()
    assert set(more) <= {0, 1} and more[2] == 0
    assert buckets.assign(hashes(7, 8, 5, 9))[0].tolist() == more


def test_options_that_leave_no_bucket_are_refused_by_name():
    for name in ("dynamic-bucket.target-row-num", "dynamic-bucket.max-buckets"):
        with pytest.raises(OptionError, match=name):
            with_limits(AssignerSettings(), Options({name: "0"}))
    assert with_limits(AssignerSettings(), Options({"dynamic-bucket.max-buckets": "-1"})).buckets_max is None
    with pytest.raises(UsageError, match="max-buckets"):
        PartitionBuckets(AssignerSettings(buckets_max=1, count=4, number=3), []).assign(hashes(1))


def test_the_hash_of_a_serialized_row_is_that_of_its_columns():
    types = [parse_type("INT"), parse_type("STRING")]
    columns = [pa.array([1, None, 3], pa.int32()), pa.array(["a", "a long text beyond seven bytes", None])]
    rows = encode(columns, types).to_pylist()
    assert [hash_row(row) for row in rows] == hash_rows(columns, types).tolist()


def test_writers_share_a_partition_as_java_does():
    start = abs(int(np.fmod(hash_row(EMPTY_ROW), 4)))
    keys = hashes(0, 1, 2, 3, -1, -2)
    assert assigners_of(EMPTY_ROW, keys, channels=4, assigners=2).tolist() == [
        (start + own) % 4 for own in (0, 1, 0, 1, 1, 0)
    ]
