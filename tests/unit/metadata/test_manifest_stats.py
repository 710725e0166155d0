"""Statistics of partitions in a manifest list."""

import datetime
import decimal
import math

import numpy as np
import pyarrow as pa
import pytest
from unit.codec.manifest.manifest_entries import added, row

from paimon_py.codec.arrow_types import to_arrow_type
from paimon_py.codec.binary_row import decode, encode
from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.metadata.manifest_stats import describe, may_contain, partition_stats
from paimon_py.spec.data_file import EMPTY_ROW, EMPTY_STATS, FileKind, Stats
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.types import MAX_LENGTH, Atomic, Root

BIGINT, DOUBLE, FLOAT = Atomic(Root.BIGINT), Atomic(Root.DOUBLE), Atomic(Root.FLOAT)
STRING = Atomic(Root.VARCHAR, length=MAX_LENGTH)
NANOS = Atomic(Root.TIMESTAMP, precision=9)
NAN = math.nan


def partitions(types, *columns):
    arrays = [pa.array(column, to_arrow_type(kind)) for column, kind in zip(columns, types, strict=True)]
    return encode(arrays, types)


def values(raw, types):
    return [column.to_pylist()[0] for column in decode([raw], types)]


@pytest.mark.parametrize(
    ("kind", "column", "low", "high"),
    [
        (BIGINT, [3, None, -2, 9], -2, 9),
        (STRING, ["b", "a" * 300, None, "ä", "", "\U0001f600", "\ufeff"], "", "\U0001f600"),
        (Atomic(Root.BOOLEAN), [True, False], False, True),
        (Atomic(Root.DATE), [datetime.date(2024, 1, 2), datetime.date(1901, 1, 1)], datetime.date(1901, 1, 1), datetime.date(2024, 1, 2)),
        (Atomic(Root.DECIMAL, precision=30, scale=2), [decimal.Decimal("1.50"), decimal.Decimal("-7.25")], decimal.Decimal("-7.25"), decimal.Decimal("1.50")),
        (Atomic(Root.VARBINARY, length=MAX_LENGTH), [b"\xff", b"\x00", b""], b"", b"\xff"),
    ],
)  # fmt: skip
def test_bounds_are_the_smallest_and_the_largest_value(kind, column, low, high):
    stats = partition_stats(partitions([kind], column), np.arange(len(column)) + 1, [kind])
    assert values(stats.min_values, [kind]) == [low]
    assert values(stats.max_values, [kind]) == [high]
    assert stats.null_counts == (sum(at + 1 for at, value in enumerate(column) if value is None),)


def test_nanoseconds_are_kept():
    column = pa.array([10**18 + 1, 10**18 + 999, None], pa.timestamp("ns"))
    stats = partition_stats(encode([column], [NANOS]), np.ones(3, np.int64), [NANOS])
    assert decode([stats.max_values], [NANOS])[0].cast(pa.int64()).to_pylist() == [10**18 + 999]


@pytest.mark.parametrize("kind", [DOUBLE, FLOAT])
def test_nan_is_the_largest_and_minus_zero_is_below_zero(kind):
    stats = partition_stats(partitions([kind], [0.0, -0.0, 1.5]), np.ones(3, np.int64), [kind])
    assert math.copysign(1, values(stats.min_values, [kind])[0]) == -1
    stats = partition_stats(partitions([kind], [0.0, NAN, -math.inf]), np.ones(3, np.int64), [kind])
    assert values(stats.min_values, [kind]) == [-math.inf] and math.isnan(values(stats.max_values, [kind])[0])


def test_all_null_has_null_bounds():
    for rows in ([None], [None, None]):
        stats = partition_stats(partitions([BIGINT], rows), np.full(len(rows), 4), [BIGINT])
        assert values(stats.min_values, [BIGINT]) == [None] == values(stats.max_values, [BIGINT])
        assert stats.null_counts == (4 * len(rows),)


def test_unpartitioned_is_the_empty_row():
    assert partition_stats(pa.array([EMPTY_ROW]), np.array([3]), []) == EMPTY_STATS


def test_manifest_is_described_by_its_entries():
    entries = [
        added(1, partition=row(5), bucket=3, level=2, schema_id=4, first_row_id=100, row_count=10),
        added(2, partition=row(7), bucket=1, level=0, schema_id=9, first_row_id=50, row_count=1),
        added(3, partition=row(5), bucket=-1, level=1, schema_id=0, first_row_id=7, row_count=2, kind=FileKind.DELETE),
    ]
    columns = read_manifests([("m", write_manifest(entries))])
    assert describe(columns, "m", 77, [BIGINT]) == ManifestFile(
        name="m",
        size_bytes=77,
        added_files=2,
        deleted_files=1,
        partition_stats=Stats(row(5), row(7), (0,)),
        schema_id=9,
        min_bucket=-1,
        max_bucket=3,
        min_level=0,
        max_level=2,
        min_row_id=7,
        max_row_id=109,
    )
    columns = read_manifests([("m", write_manifest([*entries, added(4, partition=row(6))]))])
    assert describe(columns, "m", 77, [BIGINT]).max_row_id is None


def test_a_manifest_may_contain_partitions_within_its_bounds():
    types = [BIGINT, STRING]
    low, high = partitions(types, [1, 9], ["b", "d"]).to_pylist()
    nulls = partitions(types, [None], [None])[0].as_py()

    def file(minimum, maximum, counts):
        stats = Stats(minimum, maximum, counts)
        return ManifestFile(name="m", size_bytes=1, added_files=1, deleted_files=0, schema_id=0, partition_stats=stats)

    files = [file(low, high, (0, 0)), file(low, high, (1, None)), file(nulls, nulls, (2, 2)), file(low, high, None)]
    inside = partitions(types, [5, 10], ["c", "c"])
    assert may_contain(files, inside, types).tolist() == [True, True, False, True]
    assert may_contain(files, partitions(types, [10], ["c"]), types).tolist() == [False] * 4
    assert may_contain(files, partitions(types, [5], [None]), types).tolist() == [False, True, False, True]
    assert may_contain(files, partitions(types, [None], [None]), types).tolist() == [False, True, True, True]


def test_float_partition_may_always_be_contained_and_unpartitioned_too():
    low, high = partitions([DOUBLE], [1.0, 2.0]).to_pylist()
    stats = Stats(low, high, (0,))
    file = ManifestFile(name="m", size_bytes=1, added_files=1, deleted_files=0, schema_id=0, partition_stats=stats)
    assert may_contain([file], partitions([DOUBLE], [NAN]), [DOUBLE]).tolist() == [True]
    assert may_contain([file], pa.array([EMPTY_ROW]), []).tolist() == [True]
