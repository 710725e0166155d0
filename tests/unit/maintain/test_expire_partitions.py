"""Partitions: listing them, and letting those go whose time is over, whatever fails or happens meanwhile."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import Catalog, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.fault_store import MODES, FaultStore, for_each_fault

pytestmark = pytest.mark.filterwarnings("ignore:.*commits drop no partitions")
PATH = "/w/d.db/t"
DAY = 86_400_000
NOW = 1_700_000_000_000  # 2023-11-14 22:13:20
SCHEMA = pa.schema([pa.field("dt", pa.string()), pa.field("h", pa.int32()), ("k", pa.int64())])
COUNTS = ("record_count", "file_count", "total_buckets")


def opened(store, millis=NOW):
    root = TableRoot(store, PATH, Env(Clock(millis), None, SerialPool()))
    return Table(root, root.schemas.latest(), "d.t")


def made(options=(), partition_by=("dt", "h"), key=()):
    store = MemoryStore()
    catalog = Catalog(store, "/w", env=Env(Clock(NOW), None, SerialPool()))
    catalog.create_database("d")
    options = {"bucket": "1" if key else "-1", "write-only": "true", **dict(options)}  # then commits drop no partitions
    catalog.create_table("d.t", SCHEMA, partition_by=list(partition_by), primary_key=list(key), options=options)
    return store


def write(store, *rows, millis=NOW, **extra):
    columns = zip(*rows)
    data = pa.table(dict(zip(SCHEMA.names, columns)), SCHEMA)
    return opened(store, millis).write_arrow(data, **extra)


def days(store):
    return [one.partition["dt"] for one in opened(store).partitions()]


LAST_DAYS = [(f"2023-11-{day:02d}", 0, day) for day in range(5, 15)]


def test_partitions_are_listed_with_rows_files_and_times():
    store = made()
    assert opened(store).partitions() == []
    write(store, ("b", 1, 1), ("b", 1, 2), ("a", 2, 3), (None, None, 4))
    write(store, ("b", 1, 5), ("a", 1, 6), millis=NOW + DAY)
    opened(store).drop_partitions([{"dt": "a", "h": 2}])
    found = opened(store).partitions()
    assert [one.partition for one in found] == [{"dt": "a", "h": 1}, {"dt": "b", "h": 1}, {"dt": None, "h": None}]
    assert [(one.record_count, one.file_count, one.total_buckets) for one in found] == [(1, 1, -1), (3, 2, -1), (1, 1, -1)]
    assert [one.last_file_creation_time for one in found] == [
        datetime(2023, 11, 15, 22, 13, 20), datetime(2023, 11, 15, 22, 13, 20), datetime(2023, 11, 14, 22, 13, 20)
    ]  # fmt: skip
    sizes = {one.partition["dt"]: one.file_size_in_bytes for one in found}
    entries = opened(store)._root.manifests.live_entries(opened(store)._root.latest())
    assert sum(sizes.values()) == int(entries.size_bytes.sum())


def test_a_table_without_keys_is_one_partition():
    store = made(partition_by=())
    write(store, ("a", 1, 1), ("b", 1, 2))
    (found,) = opened(store).partitions()
    assert (found.partition, found.record_count, found.file_count) == ({}, 2, 1)


def test_old_days_go_in_batches_oldest_first():
    store = made({"partition.expiration-time": "7 d", "partition.expiration-batch-size": "2", "partition.expiration-max-num": "3"})
    write(store, *LAST_DAYS, ("no day", 0, 0), (None, 1, 1))
    table, told = opened(store, NOW + 2 * DAY), []
    planned = table.expire_partitions(dry_run=True)
    assert days(store) == [*[day for day, _, _ in LAST_DAYS], "no day", None]
    result = table.expire_partitions(progress=lambda *far: told.append(far))
    assert result.partitions == planned.partitions == tuple({"dt": f"2023-11-0{day}", "h": 0} for day in (5, 6, 7))
    assert result.snapshot_ids == (2, 3) and result.left == planned.left == 2
    assert result.undated == planned.undated == ({"dt": "no day", "h": 0}, {"dt": None, "h": 1})
    assert told == [(2, 3, "partitions"), (3, 3, "partitions")]
    kinds = [(one.commit_kind, one.commit_user, one.commit_identifier, one.operation) for one in map(opened(store)._root.snapshots.get, (2, 3))]
    assert kinds[0][0] == "OVERWRITE" and kinds[0][2] == 2**63 - 1 and kinds[0][3] is None
    rest = opened(store, NOW + 2 * DAY).expire_partitions()
    assert [one["dt"] for one in rest.partitions] == ["2023-11-08", "2023-11-09"] and rest.left == 0
    again = opened(store, NOW + 2 * DAY).expire_partitions()
    assert again.partitions == () and again.snapshot_ids == ()
    assert opened(store).snapshot().id == 4


def test_partitions_go_in_the_order_of_strings_in_java():
    """By UTF-16: a letter beyond 16 bits comes before the last ones below."""
    named = ("\uffee", "b", "\U0001f600", "\ue000")
    store = made({
        "partition.expiration-strategy": "update-time", "partition.expiration-time": "1 d", "partition.expiration-max-num": "2"
    }, partition_by=("dt",))  # fmt: skip
    write(store, *((name, 0, at) for at, name in enumerate(named)))
    for gone in (["b", "\U0001f600"], ["\ue000", "\uffee"]):
        assert [one["dt"] for one in opened(store, NOW + 3 * DAY).expire_partitions().partitions] == gone


def test_what_a_caller_says_counts_more_than_options():
    store = made({"partition.expiration-time": "7 d"})
    write(store, ("5.11.2023", 22, 1), ("13.11.2023", 22, 2), ("14.11.2023", 22, 3), ("14.11.2023", 21, 4))
    said = {"timestamp_pattern": "$dt $h", "timestamp_formatter": "d.MM.yyyy HH", "dry_run": True}
    assert len(opened(store).expire_partitions(dry_run=True).undated) == 4
    assert [one["dt"] for one in opened(store).expire_partitions(**said).partitions] == ["5.11.2023"]
    gone = opened(store).expire_partitions(older_than=timedelta(hours=1), **said).partitions
    assert [(one["dt"], one["h"]) for one in gone] == [("13.11.2023", 22), ("14.11.2023", 21), ("5.11.2023", 22)]
    moment = datetime.fromisoformat("2023-11-14T00:00:00+00:00")
    for older_than in (moment, int(moment.timestamp() * 1000)):
        assert len(opened(store).expire_partitions(older_than=older_than, **said).partitions) == 2
    assert len(opened(store).expire_partitions(older_than=moment, max_partitions=1, **said).partitions) == 1


def test_the_time_of_the_last_change_decides():
    store = made({"partition.expiration-time": "1 d", "partition.expiration-strategy": "update-time"})
    write(store, ("old", 0, 1), ("b", 0, 2), (None, None, 3))
    write(store, ("b", 0, 4), millis=NOW + DAY)
    assert opened(store, NOW + DAY).expire_partitions().partitions == ()
    result = opened(store, NOW + DAY + 1).expire_partitions()
    assert [one["dt"] for one in result.partitions] == [None, "old"] and result.undated == ()
    assert days(store) == ["b"]


class EastClock(Clock):
    """The clock on the wall is eight hours ahead."""

    def local_millis(self):
        return self.millis() + 8 * 3_600_000


def test_times_are_those_of_the_clock_on_the_wall():
    store = made({"partition.expiration-time": "1 h"}, ("dt",))
    table = opened(store)
    table._root.env = Env(EastClock(NOW), None, SerialPool())  # 2023-11-15 06:13:20 there
    table.write_arrow(pa.table({"dt": ["2023-11-15 05:13:21", "2023-11-15 05:13:20", "2023-11-15 05:13:19"], "h": [0] * 3, "k": [1] * 3}, SCHEMA))
    assert [one.last_file_creation_time.hour for one in table.partitions()] == [6, 6, 6]
    assert table.expire_partitions(strategy="update-time").partitions == ()
    assert table.expire_partitions().partitions == ({"dt": "2023-11-15 05:13:19"},)


@pytest.mark.parametrize(
    ("options", "partition_by", "given", "word"),
    [
        ({}, (), {"older_than": timedelta(1)}, "needs a table with partitions"),
        ({}, ("dt",), {}, "partition.expiration-time"),
        ({}, ("dt",), {"older_than": timedelta(1), "strategy": "age"}, "values-time or update-time"),
        ({}, ("dt",), {"older_than": timedelta(1), "max_partitions": 0}, "max_partitions"),
        ({}, ("dt",), {"older_than": timedelta(1), "batch_size": True}, "batch_size"),
        ({}, ("dt",), {"older_than": "a day"}, "older_than"),
        ({}, ("dt",), {"older_than": 10**30}, "older_than"),
        ({}, ("dt",), {"older_than": timedelta(1), "strategy": 5}, "strategy must be a string"),
        ({}, ("dt",), {"older_than": timedelta(1), "timestamp_pattern": 5}, "timestamp_pattern must be a string"),
        ({}, ("dt",), {"older_than": timedelta(1), "progress": 5}, "progress is a function"),
        ({}, ("dt",), {"older_than": timedelta(1), "timestamp_formatter": "nnn]"}, "formatter|pattern"),
    ],
)
def test_nonsense_is_refused(options, partition_by, given, word):
    store = made(options, partition_by)
    with pytest.raises(UsageError, match=word):
        opened(store).expire_partitions(**given)


class Meanwhile(FaultStore):
    """Somebody writes right before the snapshot with this id is published."""

    def __init__(self, store, number, act):
        super().__init__(store)
        self.number, self.act = number, act

    def put_new(self, path, data, **extra):
        if path.endswith(f"/snapshot-{self.number}") and self.act is not None:
            act, self.act = self.act, None
            act(self.store)
        return super().put_new(path, data, **extra)


@pytest.mark.parametrize("strategy", ["update-time", "values-time"])
def test_what_others_write_meanwhile(strategy):
    """New rows keep a partition whose last change counts, and go with one whose values say that its time is over."""
    store = made({"partition.expiration-strategy": strategy, "partition.expiration-time": "1 d"})
    write(store, ("2020-01-01", 0, 1), ("2020-01-02", 0, 2))
    late = Meanwhile(store, 2, lambda inner: write(inner, ("2020-01-02", 0, 3), millis=NOW + 2 * DAY))
    result = opened(late, NOW + 2 * DAY).expire_partitions()
    kept = ["2020-01-02"] if strategy == "update-time" else []
    assert days(store) == kept and len(result.partitions) == 2 - len(kept)


def test_what_others_drop_meanwhile_needs_no_commit():
    store = made({"partition.expiration-time": "1 d", "partition.expiration-batch-size": "1"})
    write(store, ("2020-01-01", 0, 1), ("2020-01-02", 0, 2), ("2020-01-03", 0, 2))
    told = lambda done, total, what: opened(store).drop_partitions([{"dt": "2020-01-02"}]) if done == 1 else None  # noqa: E731
    result = opened(store).expire_partitions(progress=told)
    assert [one["dt"] for one in result.partitions] == ["2020-01-01", "2020-01-03"] and days(store) == []
    assert opened(store).snapshot().id == 4


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.full)])
def test_whatever_fails_partitions_are_there_or_gone(every):
    original = made({"partition.expiration-time": "7 d", "partition.expiration-batch-size": "2"}, key=("dt", "h", "k"))
    write(original, *LAST_DAYS)

    def check(store, outcome):
        left = days(store)
        assert left == [f"2023-11-{day:02d}" for day in range(15 - len(left), 15)] and 7 <= len(left) <= 10
        assert outcome.result is None or len(left) == 7
        assert opened(store).scan().to_arrow().num_rows == len(left)
        opened(store).expire_partitions()
        assert len(days(store)) == 7

    share = lambda call, mode: (call + MODES.index(mode)) % every == 0  # noqa: E731
    assert for_each_fault(original.copy, lambda store: opened(store).expire_partitions(), check, share=share) > 10


def files(store):
    return {one.partition["dt"]: one.file_count for one in opened(store).partitions()}


def test_compaction_passes_over_what_has_expired_where_the_table_asks_for_it():
    options = {"partition.expiration-time": "7 d", "compaction.skip-expired-partitions": "true"}
    store = made(options, ("dt",), ("dt", "k"))
    for number in range(3):
        write(store, ("2023-11-01", 0, number), ("2023-11-14", 0, number), ("no day", 0, number))
    assert len(opened(store).compaction_tasks(full=True)) == 2
    opened(store).compact(full=True, partitions=[{"dt": "2023-11-01"}, {"dt": "2023-11-14"}])
    assert files(store) == {"2023-11-01": 3, "2023-11-14": 1, "no day": 3}
    opened(store).compact(full=True)
    assert files(store) == {"2023-11-01": 3, "2023-11-14": 1, "no day": 1}
    opened(store, NOW - 10 * DAY).compact(full=True)
    assert files(store) == {"2023-11-01": 1, "2023-11-14": 1, "no day": 1}


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"partition.timestamp-formatter": "yyyyMMdd"}, True),
        ({"partition.timestamp-pattern": "$dt"}, False),
        ({"partition.timestamp-pattern": "$dt $h:00:00"}, True),
        ({}, False),
    ],
)
def test_strict_tables_take_no_partition_without_a_time(options, refused):
    store = made({"partition.timestamp-format.strict": "true", **options})
    if not refused:
        write(store, ("2023-11-14", None, 1))
        if options:
            with pytest.raises(UsageError, match="format.strict"):
                write(store, ("no day", None, 1))
        else:
            write(store, ("no day", None, 1))
        assert days(store) == ["2023-11-14", *([] if options else ["no day"])]
        return
    with pytest.raises(UsageError, match="format.strict"):
        write(store, ("2023-11-14", None, 1))
    assert store.list(PATH)[0].name == "schema" and len(store.list(PATH)) == 1
    write(store, ("20231114" if "yyyyMMdd" in options.values() else "2023-11-14", 7, 1))
    assert len(days(store)) == 1
