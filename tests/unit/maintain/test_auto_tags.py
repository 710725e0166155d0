"""Tags that commits make and let go."""

from __future__ import annotations

import json
import warnings
from datetime import datetime, timedelta, timezone

import pytest
from unit.commit.support import Clock
from unit.maintain.test_after_commit import FEW, HOUR, PATH, Timeless, created, ids, opened, rows

from paimon_py import PaimonWarning, SetOption, UsageError
from paimon_py.commit.result import CommitResult
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.maintain.zones import wall_in
from paimon_py.metadata.open_table import OpenTable
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.fault_store import MODES, for_each_fault

DAY = 24 * HOUR
MIDNIGHT = 1_699_920_000_000  # 2023-11-14
BY_WATERMARK = {"tag.automatic-creation": "watermark", "tag.creation-period": "hourly"}
BY_CLOCK = {"tag.automatic-creation": "process-time", "sink.process-time-zone": "UTC"}


@pytest.fixture
def clock():
    return Clock(MIDNIGHT)


@pytest.fixture
def store(clock):
    return MemoryStore(clock=clock)


def tags(table):
    return {tag.name: tag.snapshot.id for tag in table.tags()}


def test_a_tag_for_each_day_by_the_clock(store, clock):
    table = created(store, clock, (), **BY_CLOCK, **FEW, **{"snapshot.time-retained": "1 ms"})
    table.write_arrow(rows(1))
    assert tags(table) == {"2023-11-13": 1}
    clock.seconds += DAY - 1
    table.write_arrow(rows(2))
    assert tags(table) == {"2023-11-13": 1}
    clock.seconds += 1
    table.write_arrow(rows(3))
    assert tags(table) == {"2023-11-13": 1, "2023-11-14": 3}
    clock.seconds += 3 * DAY
    opened(store, clock).write_arrow(rows(4))
    assert tags(table) == {"2023-11-13": 1, "2023-11-14": 3, "2023-11-17": 4}
    assert table.scan(tag="2023-11-13").to_arrow().num_rows == 1 and ids(table) == [3, 4]


def test_between_tags_the_clock_alone_is_asked(store, clock):
    created(store, clock, (), **BY_CLOCK)
    counting = CountingStore(store)
    table = opened(counting, clock)
    for number in range(1, 40):
        table.write_arrow(rows(number))
        before = len(counting.paths)
        run_auto_maintenance(OpenTable(table._root, table.schema), CommitResult(snapshot_id=number))
        assert len(counting.paths) == before
        clock.seconds += 50
    clock.seconds += DAY
    table.write_arrow(rows(1))
    assert tags(table) == {"2023-11-13": 1, "2023-11-14": 40}


@pytest.mark.parametrize("completes", [False, True])
def test_tags_by_watermark(store, clock, completes):
    table = created(store, clock, (), **BY_WATERMARK, **{"tag.automatic-completion": str(completes).lower()})
    assert table.write_arrow(rows(1)).snapshot_id == 1 and tags(table) == {}
    for hours in (0.5, 0.9, 1, 5, 5.1, 5.2, 5.3, 5.4, 5.5):
        table.write_arrow(rows(2), watermark=MIDNIGHT + int(hours * HOUR * 1000))
    expected = {"2023-11-13 23": 2, "2023-11-14 00": 4, "2023-11-14 04": 5}
    if completes:
        expected = {"2023-11-13 23": 2, "2023-11-14 00": 4, "2023-11-14 01": 5, "2023-11-14 02": 6, "2023-11-14 03": 7,
                    "2023-11-14 04": 8}  # fmt: skip
    assert tags(table) == expected


def test_what_others_committed_gets_its_tags_later(store, clock):
    table = created(store, clock, (), **BY_WATERMARK, **{"write-only": "true"})
    for hours in range(5):
        table.write_arrow(rows(2), watermark=MIDNIGHT + hours * HOUR * 1000)
    assert tags(table) == {}
    table.alter(SetOption("write-only", "false"))
    table.write_arrow(rows(3))
    assert list(tags(table).values()) == [1, 2, 3, 4, 5]
    table.rollback_to(2)
    assert list(tags(table).values()) == [1, 2]
    table.write_arrow(rows(3), watermark=MIDNIGHT + 9 * HOUR * 1000)
    assert tags(table) == {"2023-11-13 23": 1, "2023-11-14 00": 2, "2023-11-14 08": 3}


def test_tags_that_a_rollback_of_another_process_took_are_made_of_the_snapshots_that_came_instead(store, clock):
    table = created(store, clock, (), **BY_CLOCK, **{"tag.creation-period": "hourly"})
    for number in range(4):
        table.write_arrow(rows(number))
        clock.seconds += HOUR
    assert len(tags(table)) == 4
    opened(store, clock).rollback_to(1)
    for number in range(10, 14):
        opened(store, clock).write_arrow(rows(number))
    opened(store, clock).delete_tag("2023-11-14 03")  # writers of Java that make no tags would not have made it
    clock.seconds += HOUR
    table.write_arrow(rows(20))
    assert tags(table) == {"2023-11-13 23": 1, "2023-11-14 03": 2, "2023-11-14 04": 6}


@pytest.mark.parametrize("left", [1, 2, 3, 4])
def test_the_first_commit_after_a_rollback_of_another_process_makes_its_tag(store, clock, left):
    table = created(store, clock, (), **BY_CLOCK, **{"tag.creation-period": "hourly"})
    for number in range(5):
        table.write_arrow(rows(number))
        clock.seconds += HOUR
    opened(store, clock).rollback_to(left)
    table.write_arrow(rows(20))
    names = ["2023-11-13 23", *(f"2023-11-14 0{hour}" for hour in range(left - 1)), "2023-11-14 04"]
    assert tags(table) == dict(zip(names, range(1, left + 2), strict=True))


def test_an_automatic_tag_that_somebody_deleted_is_not_made_again(store, clock):
    table = created(store, clock, (), **BY_CLOCK, **{"tag.creation-period": "hourly"})
    for number in range(3):
        table.write_arrow(rows(number))
        clock.seconds += HOUR
    table.delete_tag("2023-11-14 00")
    for process in (opened(store, clock), table):
        process.write_arrow(rows(9))
        assert tags(table) == {"2023-11-13 23": 1, "2023-11-14 01": 3, "2023-11-14 02": 4}


def test_the_newest_automatic_tags_stay_and_those_by_hand(store, clock):
    options = {**BY_WATERMARK, **FEW, "tag.num-retained-max": "2", "tag.create-success-file": "true"}
    table = created(store, clock, **options)
    table.write_arrow(rows(0), watermark=MIDNIGHT)
    table.create_tag("mine", snapshot_id=1)
    for hours in range(1, 6):
        table.write_arrow(rows(hours), watermark=MIDNIGHT + hours * HOUR * 1000)
    assert tags(table) == {"2023-11-14 03": 5, "2023-11-14 04": 6, "mine": 1}
    assert [table.scan(tag=name).to_arrow().num_rows for name in tags(table)] == [5, 6, 1]
    found = sorted(status.name for status in store.list(f"{PATH}/tag/tag-success-file"))
    assert found == ["2023-11-14 03_SUCCESS", "2023-11-14 04_SUCCESS", "mine_SUCCESS"]
    said = json.loads(store.get(f"{PATH}/tag/tag-success-file/mine_SUCCESS"))
    assert said == {"creationTime": MIDNIGHT, "modificationTime": MIDNIGHT}
    table.delete_tag("mine")
    assert len(store.list(f"{PATH}/tag/tag-success-file")) == 2


def test_a_name_that_is_taken_counts_as_made(store, clock):
    table = created(store, clock, (), **BY_WATERMARK)
    table.write_arrow(rows(1))
    table.create_tag("2023-11-14 02")
    table.write_arrow(rows(2), watermark=MIDNIGHT + 3 * HOUR * 1000)
    assert tags(table) == {"2023-11-14 02": 1}
    table.write_arrow(rows(2), watermark=MIDNIGHT + 4 * HOUR * 1000)
    assert tags(table) == {"2023-11-14 02": 1, "2023-11-14 03": 3}


def test_tags_expire_by_commits(store, clock):
    table = created(store, clock, (), **BY_CLOCK, **{"tag.default-time-retained": "36 h"})
    table.write_arrow(rows(1))
    assert table._root.tags.get("2023-11-13").time_retained_seconds == 36 * HOUR
    table.create_tag("brief", retain=timedelta(minutes=5))
    opened(store, clock).create_tag("briefer", retain=timedelta(minutes=2))
    for minutes, expected in ((2, 3), (1, 2), (2, 2), (1, 1), (60, 1)):
        clock.seconds += minutes * 60
        table.write_arrow(rows(2))
        assert len(tags(table)) == expected, minutes
    clock.seconds += DAY
    table.write_arrow(rows(2))
    assert len(tags(table)) == 2
    clock.seconds += DAY / 2
    table.write_arrow(rows(2))
    assert list(tags(table)) == ["2023-11-14"]


def test_tags_that_end_are_looked_for_once_a_minute_and_when_one_of_them_ends(store, clock):
    created(store, clock, ()).write_arrow(rows(0))
    counting = CountingStore(store)
    table = opened(counting, clock)
    table.create_tag("long", retain=timedelta(days=9))
    table.create_tag("brief", retain=timedelta(seconds=30))
    looks, listing = [], ("list", f"{PATH}/tag")
    for second in range(10, 120, 10):
        clock.seconds += 10
        before = counting.paths.count(listing)
        table.write_arrow(rows(second))
        looks += [second] if counting.paths.count(listing) > before else []
    assert (looks, list(tags(table))) == ([10, 40, 100], ["long"])


def test_where_the_store_tells_no_times_a_tag_that_another_process_replaced_ends_at_its_new_time(store, clock):
    table = created(Timeless(store), clock, ())
    table.write_arrow(rows(1))
    table.create_tag("brief", retain=timedelta(minutes=9))
    clock.seconds += 60
    table.write_arrow(rows(2))
    size = store.stat(f"{PATH}/tag/tag-brief").size_bytes
    opened(store, clock).replace_tag("brief", 1, retain=timedelta(minutes=3))
    assert store.stat(f"{PATH}/tag/tag-brief").size_bytes == size, "only the content tells"
    clock.seconds += 4 * 60
    table.write_arrow(rows(3))
    assert tags(table) == {}


def test_tags_that_do_not_expire_by_time(store, clock):
    table = created(store, clock, (), **{"tag.time-expire-enabled": "false"})
    table.write_arrow(rows(1))
    table.create_tag("brief", retain=timedelta(minutes=5))
    clock.seconds += DAY
    table.write_arrow(rows(2))
    assert len(tags(table)) == 1
    assert table.expire_tags() == ["brief"]


def test_tags_of_batches(store, clock):
    options = {"tag.automatic-creation": "batch", "tag.num-retained-max": "2", "sink.process-time-zone": "+01:00", **FEW}
    table = created(store, clock, **options, **{"write-only": "true"})
    table.write_arrow(rows(1))
    assert tags(table) == {"batch-write-2023-11-14": 1}
    table.create_tag("mine")
    clock.seconds += 22 * HOUR
    table.write_arrow(rows(2))
    assert tags(table) == {"batch-write-2023-11-14": 2, "mine": 1}
    clock.seconds += 2 * HOUR
    with table.writer() as writer:
        writer.write_arrow(rows(3))
        changes = writer.changes()
    table.commit(changes, user="u", identifier=1)
    assert tags(table) == {"batch-write-2023-11-14": 2, "mine": 1}, "of a stream"
    table.truncate()
    assert tags(table) == {"batch-write-2023-11-14": 2, "mine": 1}, "without rows"
    table.write_arrow(rows(4))
    clock.seconds += DAY
    table.delete("k = 4")
    assert tags(table) == {"batch-write-2023-11-15": 5, "batch-write-2023-11-16": 6, "mine": 1}


@pytest.mark.parametrize(("zone", "day"), [("-11:30", "2023-11-13"), ("UTC", "2023-11-14"), ("+13:00", "2023-11-15")])
def test_the_tag_of_a_batch_is_that_of_the_day_in_the_zone_of_the_table(store, clock, zone, day):
    clock.seconds += 11.25 * HOUR
    created(store, clock, **{"tag.automatic-creation": "batch", "sink.process-time-zone": zone}).write_arrow(rows(1))
    assert tags(opened(store, clock)) == {f"batch-write-{day}": 1}


def test_a_batch_tag_of_a_name(store, clock):
    table = created(store, clock, (), **{"tag.automatic-creation": "batch", "tag.batch.customized-name": "last"})
    for number in (1, 2):
        table.write_arrow(rows(1))
        assert tags(table) == {"last": number}


def test_a_delay_that_is_too_long_and_a_zone_that_is_none_are_told(store, clock):
    for wrong in ({"tag.creation-delay": "1 d"}, {"sink.process-time-zone": "Mars/Base"}):
        table = created(store, clock, (), **{**BY_CLOCK, **wrong})
        with pytest.warns(PaimonWarning, match="snapshot 1 was committed, but no tag was created: .*(tag.creation-delay|Mars/Base)"):
            table.write_arrow(rows(1))
        store.delete_tree(PATH)


@pytest.mark.parametrize(
    ("zone", "text"),
    [("UTC", "2024-07-01 12:00"), ("Europe/Berlin", "2024-07-01 14:00"), ("America/Los_Angeles", "2024-07-01 05:00"),
     ("GMT-08:00", "2024-07-01 04:00"), ("+5", "2024-07-01 17:00"), ("UTC+05:30", "2024-07-01 17:30"),
     ("-0330", "2024-07-01 08:30"), ("Z", "2024-07-01 12:00"), ("+18:00", "2024-07-02 06:00"),
     ("GMT-18", "2024-06-30 18:00")],
)  # fmt: skip
def test_zones(zone, text):
    moment = datetime(2024, 7, 1, 12, tzinfo=timezone.utc).timestamp() * 1000
    shown = datetime.fromtimestamp(wall_in(zone, int(moment)) / 1000, timezone.utc)
    assert shown.isoformat(" ", "minutes")[:16] == text


@pytest.mark.parametrize("zone", ["", "+19", "+18:00:01", "-18:01", "../etc/passwd", "GMT-08:99", "nowhere"])
def test_zones_that_are_none(zone):
    with pytest.raises(UsageError, match="Europe/Berlin"):
        wall_in(zone, 0)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.full)])
def test_whatever_fails_the_next_commit_goes_on(every):
    clock = Clock(MIDNIGHT)
    original = MemoryStore(clock=clock)
    options = {**BY_WATERMARK, **FEW, "tag.num-retained-max": "2", "tag.create-success-file": "true"}
    table = created(original, clock, (), **options)
    for hours in range(4):
        table.write_arrow(rows(hours), watermark=MIDNIGHT + hours * HOUR * 1000)
    clock.seconds += DAY

    def operation(store):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PaimonWarning)
            return opened(store, clock).write_arrow(rows(9), watermark=MIDNIGHT + 4 * HOUR * 1000)

    def check(store, outcome):
        left = opened(store, clock)
        for name in tags(left):
            assert left.scan(tag=name).to_arrow().num_rows == tags(left)[name]
        left.write_arrow(rows(10), watermark=MIDNIGHT + 4 * HOUR * 1000)
        assert left.snapshot().id in (5, 6)
        left.write_arrow(rows(11), watermark=MIDNIGHT + 5 * HOUR * 1000)
        assert list(tags(left)) == ["2023-11-14 03", "2023-11-14 04"]
        assert outcome.result is None or tags(left)["2023-11-14 03"] == 5

    share = lambda call, mode: (call + MODES.index(mode)) % every == 0  # noqa: E731
    assert for_each_fault(original.copy, operation, check, share=share) > 10
