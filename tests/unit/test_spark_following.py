"""A table as a streaming query of Spark follows it: offsets, limits and batches that are run again, without Spark."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from paimon_py import Catalog, OptionError, Schema, SnapshotExpiredError, UsageError
from paimon_py.distributed import BatchLimits, Offset
from paimon_py.distributed.batch_limits import Size
from paimon_py.spark.source.limits import BYTES, DELAY, FILES, LEAST, ROWS, limits_of
from paimon_py.spark.source.opening import NEW_CHECKPOINT, batches_of
from paimon_py.spark.source.options import asked_of

ALL = BatchLimits()


@pytest.fixture
def table(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("db")
    columns = Schema([("k", "BIGINT NOT NULL"), ("v", "STRING")])
    return catalog.create_table("db.t", columns, primary_key=["k"], options={"bucket": "4", "write-only": "true"})


def put(table, start, end):
    table.write_arrow(pa.table({"k": range(start, end), "v": [f"v{k}" for k in range(start, end)]}))


def following(table, **options):
    named = {name.replace("_", "-", 9).replace("scan-", "scan."): text for name, text in options.items()}
    return batches_of(asked_of({"path": table.location, **named}))


def keys(query, splits):
    return sorted(key for split in splits for batch in query.reading.batches(split) for key in batch["k"].to_pylist())


def sent(offset):
    """As Spark keeps it."""
    return Offset.of(json.loads(json.dumps(offset.as_json())), NEW_CHECKPOINT)


def follow(table, start, limits=ALL, **options):
    """One batch, as the process that plans it and as one that runs it again see it."""
    query = following(table, **options)
    batch = query.following(start, limits)
    found = keys(query, query.between(start, batch.end))
    again = following(table, **options)
    assert keys(again, again.between(sent(start), sent(batch.end))) == found
    return found, batch.end


def test_a_stream_begins_with_all_rows_and_goes_on_with_changes(table):
    put(table, 0, 10)
    put(table, 5, 15)
    start = following(table).beginning()
    assert follow(table, start) == (list(range(15)), follow(table, start)[1])
    _, end = follow(table, start)
    assert follow(table, end) == ([], end)
    put(table, 20, 22)
    put(table, 30, 31)
    assert follow(table, end)[0] == [20, 21, 30]


def test_limits_cut_snapshots_into_batches_of_splits(table):
    put(table, 0, 40)
    put(table, 40, 50)
    start = end = following(table).beginning()
    put(table, 50, 90)
    found, batches = [], 0
    while True:
        some, after = follow(table, end, BatchLimits(rows=1))
        if after == end:
            break
        found, end, batches = found + some, after, batches + 1
    assert sorted(found) == list(range(90))
    assert batches == len(following(table).between(start, end)) > 4
    assert [follow(table, start, BatchLimits(files=3))[1].taken, follow(table, start, BatchLimits(bytes=1))[1].taken] == [2, 1]


def test_an_empty_table_begins_with_the_first_rows_that_come(table):
    start = following(table).beginning()
    assert follow(table, start) == ([], start)
    put(table, 0, 3)
    put(table, 3, 4)
    rows, end = follow(table, start)
    assert rows == [0, 1, 2, 3]
    put(table, 4, 5)
    assert follow(table, end)[0] == [4]


def test_the_first_batch_is_the_same_when_it_is_run_again_later(table):
    put(table, 0, 3)
    query = following(table)
    end = query.following(query.beginning(), ALL).end
    put(table, 3, 6)
    again = following(table)
    assert again.beginning() != query.beginning()
    assert keys(again, again.between(again.beginning(), sent(end))) == [0, 1, 2]


def test_a_spark_that_does_not_say_where_a_batch_begins_reads_all_up_to_now(table):
    query = following(table)
    start = query.beginning()
    put(table, 0, 3)
    end = query.latest()
    assert keys(query, query.between(start, end)) == [0, 1, 2]
    again = following(table)
    put(table, 3, 5)
    assert keys(again, again.between(again.beginning(), sent(end))) == [0, 1, 2]
    later = again.latest()
    assert keys(again, again.between(sent(end), later)) == [3, 4]
    assert keys(again, again.between(later, again.latest())) == []


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"scan_mode": "latest"}, [30]),
        ({"scan_mode": "from-snapshot", "scan_snapshot_id": "2"}, [20, 30]),
        ({"scan_snapshot_id": "1"}, [10, 20, 30]),
        ({"scan_mode": "from-snapshot-full", "scan_snapshot_id": "2"}, [10, 20, 30]),
        ({"scan_mode": "from-timestamp", "scan_timestamp_millis": "0"}, [10, 20, 30]),
        ({"scan_mode": "latest-full"}, [10, 20, 30]),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_javas_modes_say_where_a_stream_begins(table, options, rows):
    put(table, 10, 11)
    put(table, 20, 21)
    query = following(table, **options)
    start = query.beginning()
    put(table, 30, 31)
    first, end = follow(table, start, **options)
    put(table, 40, 41)
    assert (first + follow(table, end, **options)[0]) == [*rows, 40]


def test_a_checkpoint_that_is_older_than_the_table_says_what_to_do(table):
    put(table, 0, 1)
    query = following(table)
    end = query.following(query.beginning(), ALL).end
    for key in range(1, 5):
        put(table, key, key + 1)
    table.expire_snapshots(retain_max=1, retain_min=1)
    later = following(table)
    with pytest.raises(SnapshotExpiredError, match=r"new checkpointLocation.*consumer-id"):
        later.following(sent(end), ALL)
    with pytest.raises(SnapshotExpiredError, match="new checkpointLocation"):
        later.between(sent(end), later.latest())


def test_a_rollback_below_a_batch_is_noticed(table):
    for key in range(3):
        put(table, key, key + 1)
    query = following(table, scan_mode="from-snapshot", scan_snapshot_id="1")
    first = query.following(query.beginning(), BatchLimits(rows=1)).end
    end = query.following(first, ALL).end
    table.rollback_to(1)
    again = following(table)
    with pytest.raises(SnapshotExpiredError, match="rolled back"):
        again.between(sent(first), sent(end))
    put(table, 7, 8)
    put(table, 8, 9)
    with pytest.raises(SnapshotExpiredError, match="rolled back"):
        again.between(sent(first), sent(end))


def test_a_consumer_keeps_what_is_still_to_read(table):
    put(table, 0, 1)
    query = following(table, consumer_id="c")
    start = query.beginning()
    assert [one.next_snapshot_id for one in table.consumers()] == [1]
    put(table, 1, 2)
    end = query.following(start, ALL).end
    query.acknowledge(sent(end))
    assert [one.next_snapshot_id for one in table.consumers()] == [3]
    put(table, 2, 3)
    table.expire_snapshots(retain_max=1, retain_min=1)
    assert follow(table, end, consumer_id="c")[0] == [2]
    fresh = following(table, consumer_id="c")
    assert keys(fresh, fresh.following(fresh.beginning(), ALL).splits) == [2]


def test_splits_that_are_cut_in_another_way_are_refused(table):
    put(table, 0, 40)
    query = following(table)
    end = query.following(query.beginning(), BatchLimits(rows=1)).end
    assert end.taken == 1
    from msgspec.structs import replace

    for wrong in (replace(end, mark=1), replace(end, taken=9), replace(end, step=7)):
        with pytest.raises(UsageError, match="now has other splits"):
            following(table).following(wrong, ALL)


def test_a_query_stops_at_what_was_there(table):
    put(table, 0, 1)
    query = following(table)
    until = query.now()
    put(table, 1, 2)
    start = Offset.of(query.beginning().as_json(), NEW_CHECKPOINT)
    assert query.following(start, ALL, until).splits == []
    query = following(table, scan_mode="from-snapshot", scan_snapshot_id="1")
    batch = query.following(query.beginning(), ALL, until)
    assert keys(query, batch.splits) == [0]
    assert query.following(batch.end, ALL, until) == ([], batch.end)


def test_few_rows_are_waited_for(table):
    put(table, 0, 5)
    query = following(table)
    start = query.beginning()
    end = query.following(start, BatchLimits(least=30, delay_millis=1 << 50)).end
    assert end == start
    assert query.following(start, BatchLimits(least=30, delay_millis=1)).end != start


@pytest.mark.parametrize("value", [{}, {"edition": 2}, {"edition": 1, "snapshotId": 3}, {"edition": 1, "taken": "x"}], ids=str)
def test_offsets_of_others_are_refused(value):
    with pytest.raises(UsageError, match="new checkpointLocation"):
        Offset.of(value, NEW_CHECKPOINT)


def test_limits_are_numbers_and_belong_together():
    own = {FILES: "1", BYTES: "2", ROWS: "3", LEAST: "4", DELAY: "5"}
    limits = limits_of(own)
    assert limits == BatchLimits(files=1, bytes=2, rows=3, least=4, delay_millis=5)
    assert [limits.is_full(size) for size in (Size(), Size(1), Size(0, 2), Size(0, 1, 3))] == [False, True, True, True]
    assert [limits.is_enough(Size(0, 0, 4), 0), limits.is_enough(Size(), 5), limits.is_enough(Size(), 6)] == [True, False, True]
    with pytest.raises(OptionError, match="maxFilesPerTrigger"):
        limits_of({FILES: "0"})
    with pytest.raises(UsageError, match="belong together"):
        limits_of({LEAST: "3"})
