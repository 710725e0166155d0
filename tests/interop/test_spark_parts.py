"""What travels between Spark's tasks: parcels of rows, and splits that share a task. No Java runs."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = pytest.mark.spark

from paimon_py.codec.binary_row.hash import hash_row, hash_words  # noqa: E402
from paimon_py.scan.split import Section, Split  # noqa: E402
from paimon_py.spark import split_groups  # noqa: E402
from paimon_py.spark.places import places  # noqa: E402
from paimon_py.spark.shuffle import Parcels, open_parcels, work_parcel  # noqa: E402
from paimon_py.spark.split_groups import share_splits  # noqa: E402
from paimon_py.spec.data_file import DataFile  # noqa: E402

ROOT = Path(__file__).parents[2]


def sent(rows, places, at_once=10_000, batch_rows=10_000):
    parcels = Parcels(rows.schema, lambda batch: batch.column(0).to_numpy() % len(places), np.array(places, np.int32), at_once)
    return list(parcels(rows.to_batches(max_chunksize=batch_rows)))


@pytest.mark.parametrize("places", [[0], [7, 3, 11], list(range(100, 300))])
@pytest.mark.parametrize("rows", [1, 999, 40_000])
def test_parcels_bring_every_row_to_the_place_of_its_task_in_order(places, rows):
    given = pa.table({
        "k": pa.array(range(rows), pa.int64()), "s": pa.array([f"text {i % 17}" if i % 5 else None for i in range(rows)]),
        "l": pa.array([[i] * (i % 3) for i in range(rows)], pa.list_(pa.int32())),
    })  # fmt: skip
    found: dict[int, list[pa.RecordBatch]] = {}
    for place, part in open_parcels(sent(given, places), given.schema):
        found.setdefault(place, []).append(part)
    for number, place in enumerate(places):
        mine = given.filter(pa.array(np.arange(rows) % len(places) == number))
        assert pa.Table.from_batches(found.pop(place, []), given.schema).to_pylist() == mine.to_pylist()
    assert not found


def test_spark_hands_over_at_most_some_megabytes_of_parcels_at_once():
    given = pa.table({"k": pa.array(range(200_000), pa.int64()), "s": pa.array(["x" * 500] * 200_000)})
    lengths = [len(data) for batch in sent(given, [0, 1]) for data in batch.column(1).to_pylist() if data is not None]
    assert sum(lengths) > 100e6 and max(lengths) < 2 << 20
    rows = [data for batch in sent(given, [0, 1]) for data in batch.column(1).to_pylist()]
    at_once = [sum(len(data or b"") for data in rows[start : start + 10_000]) for start in range(0, len(rows), 10_000)]
    assert max(at_once) < 80 << 20 and len(at_once) > 1
    assert all(data is not None for batch in sent(given, [0], at_once=0) for data in batch.column(1).to_pylist())


def test_small_splits_share_a_task_and_large_ones_do_not():
    assert list(share_splits(["a", "b", "c", "d"], [4, 4, 4, 4], 9)) == [["a", "b"], ["c", "d"]]
    assert list(share_splits(["a", "b", "c"], [20, 1, 20], 9)) == [["a"], ["b"], ["c"]]
    assert list(share_splits([], [], 9)) == []


def test_other_work_travels_among_parcels_in_its_order():
    rows = pa.table({"k": range(10)})
    (parcel,) = sent(rows, [0])
    others = [work_parcel(number, data) for number, data in ((7, b"seven"), (2, b"two"))]
    batch = pa.RecordBatch.from_pylist([{"task": 0, "rows": bytes(data)} for data in others], schema=parcel.schema)
    work = []
    found = [part for _, part in open_parcels([batch, parcel, batch.slice(0, 0)], rows.schema, work)]
    assert pa.Table.from_batches(found) == rows
    assert sorted(work) == [(2, b"two"), (7, b"seven")]


@pytest.mark.parametrize("tasks", [1, 2, 3, 200])
def test_every_task_has_a_number_that_the_hash_of_spark_sends_there(tasks):
    assert [hash_row(struct.pack("<ii", 0, number)) % tasks for number in places(tasks)] == list(range(tasks))
    some = np.array([0, 1, 2**31 - 1, 123_456_789])
    assert hash_words(some.astype(np.uint32)).tolist() == [hash_row(struct.pack("<ii", 0, number)) for number in some.tolist()]


@pytest.mark.full
def test_what_is_timed_beside_other_ways_has_the_same_rows(tmp_path):
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    asked = ["--rows", "2000", "--merged", "4000", "--rounds", "1", "--memory", "1g"]
    command = [sys.executable, "-m", "benchmarks.spark", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    for step in ("read, append", "read, keyed", "write, append", "write, keyed", "compact", "merge", "splits"):
        assert f"{step:<16}ours" in done.stdout


def test_what_a_task_is_handed_does_not_grow_with_their_number(capsys):
    from benchmarks import scale

    for growth in scale.main(["--tasks", "20"]):
        flat = max(growth.size_bytes) / min(growth.size_bytes)
        assert (flat < 1.01) is (growth.way == "rows"), growth
    assert "compact, rows" in capsys.readouterr().out


@pytest.mark.parametrize(("count", "limit"), [(0, 50), (1, 50), (3000, 50), (3000, 1)])
def test_shares_of_compressed_splits_are_those_of_the_splits(count, limit):
    """Against the plain way: all splits at hand, and then grouped."""
    splits = [one_split(number, 1 + number * 7919 % 23) for number in range(count)]
    sizes = [split.size_bytes + 3 for split in splits]
    want = list(share_splits(map(bytes, splits), sizes, min(limit, max(3, sum(sizes) // 2))))
    assert list(split_groups._share(iter(splits), split_groups.TaskRules(3, limit, 2))) == want
    assert [Split.from_bytes(one) for share in want for one in share] == splits


def one_split(number, size):
    file = DataFile(
        name=f"data-{number}.parquet", size_bytes=size, row_count=1, min_sequence=0, max_sequence=0, schema_id=0, level=0
    )
    sections = (Section(runs=((file,),), raw=True),)
    return Split(snapshot_id=4, schema_id=0, partition=bytes(12), bucket=0, total_buckets=1, sections=sections)
