"""Streams: where they begin and end, what a step is, that nothing is missed or doubled, and what a poll costs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
from datetime import datetime, timezone

import pytest
from unit.commit.support import TABLE
from unit.maintain.test_expire_snapshots import EVERY_AGE, lived, opened
from unit.stream.build import Waiting, again, expire, on, roll_back, rows, table_of, write

from paimon_py import SnapshotExpiredError, Table, UnsupportedError, UsageError
from paimon_py.env import SerialPool
from paimon_py.errors import OptionError, StorageError
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError
from paimon_py.stream.begin import _first_since
from paimon_py.testing.counting_store import CountingStore
from paimon_py.testing.fault_store import FaultStore

MILLIS = 1_700_000_000_000


@pytest.fixture
def life():
    """Three snapshots, ten seconds apart."""
    clock = Waiting()
    table = table_of(clock=clock)
    write(table, (1, "a"), (2, "a"), watermark=10)
    clock.sleep(10)
    write(table, (1, "b", "+U"), watermark=20)
    clock.sleep(10)
    write(table, (2, None, "-D"), (3, "c"), watermark=30)
    return table


def all_rows(stream):
    return [sorted(rows(step)) for step in iter(stream.poll, None)]


FIRST = [(1, "a", "+I"), (2, "a", "+I")]
SECOND = [(1, "b", "+U")]
THIRD = [(2, None, "-D"), (3, "c", "+I")]
WHOLE = [(1, "b", "+I"), (3, "c", "+I")]


def at(seconds):
    return datetime.fromtimestamp(MILLIS / 1000 + seconds, timezone.utc)


@pytest.mark.parametrize("given, steps", [
    ({}, [WHOLE]), ({"from_": "full"}, [WHOLE]), ({"from_": "latest"}, []), ({"from_": "earliest"}, [FIRST, SECOND, THIRD]),
    ({"from_": 1}, [FIRST, SECOND, THIRD]), ({"from_": 3}, [THIRD]), ({"from_": 4}, []),
    ({"from_": at(0)}, [FIRST, SECOND, THIRD]), ({"from_": at(0.001)}, [SECOND, THIRD]), ({"from_": at(10)}, [SECOND, THIRD]),
    ({"from_": at(20)}, [THIRD]), ({"from_": at(21)}, []), ({"from_": at(-1)}, [FIRST, SECOND, THIRD]),
    ({"options": {"scan.mode": "latest"}}, []), ({"options": {"scan.mode": "latest-full"}}, [WHOLE]),
    ({"options": {"scan.mode": "full"}}, [WHOLE]), ({"options": {"scan.mode": "compacted-full"}}, [WHOLE]),
    ({"options": {"scan.snapshot-id": "2"}}, [SECOND, THIRD]),
    ({"options": {"scan.mode": "from-snapshot", "scan.snapshot-id": "3"}}, [THIRD]),
    ({"options": {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"}}, [FIRST, SECOND, THIRD]),
    ({"options": {"scan.timestamp-millis": str(MILLIS + 10_000)}}, [SECOND, THIRD]),
    ({"options": {"scan.mode": "from-timestamp", "scan.timestamp": str(at(20).astimezone().replace(tzinfo=None))}}, [THIRD]),
], ids=lambda value: None if isinstance(value, list) else repr(value))  # fmt: skip
def test_a_stream_begins_at_its_from(life, given, steps):
    stream = life.stream(**given)
    assert all_rows(stream) == steps
    write(life, (9, "z"))
    assert all_rows(stream) == [[(9, "z", "+I")]]


@pytest.mark.parametrize("given, steps", [
    ({"until": "now", "from_": 1}, [FIRST, SECOND, THIRD]), ({"until": 2, "from_": 1}, [FIRST, SECOND]),
    ({"until": at(10), "from_": 1}, [FIRST, SECOND]), ({"until": at(15), "from_": 1}, [FIRST, SECOND]),
    ({"until": "now"}, [WHOLE]), ({"until": 1}, [FIRST]), ({"until": at(5)}, [FIRST]), ({"until": 0, "from_": 1}, []),
    ({"from_": "latest", "until": "now"}, []), ({"from_": 3, "until": 2}, []),
    ({"from_": 1, "options": {"scan.bounded.watermark": "20"}}, [FIRST, SECOND]),
    ({"from_": 1, "options": {"scan.bounded.watermark": "19"}}, [FIRST]),
    ({"options": {"scan.bounded.watermark": "19"}}, [[*WHOLE, (9, "z", "+I")]]),
], ids=lambda value: None if isinstance(value, list) else repr(value))  # fmt: skip
def test_a_stream_ends_at_its_until_and_contains_the_table_as_of_then(life, given, steps):
    stream = life.stream(**given)
    write(life, (9, "z"), watermark=40)
    assert [sorted(rows(step)) for step in stream] == steps
    assert stream.is_ended
    assert stream.poll() is None
    assert list(stream) == []


def test_a_stream_that_ends_later_waits_for_its_end(life):
    clock = Waiting(lambda: write(life, (9, "z")), lambda: None)
    life._root.env.clock = clock
    assert [step.snapshot_id for step in life.stream(from_=2, until=4)] == [2, 3, 4]
    assert clock.waits == [10.0]
    for seconds, waits in ((30, 4), (49.999, 5)):
        assert list(life.stream(from_="latest", until=at(seconds))) == []
        assert clock.waits == [10.0] * waits, "a commit of the same millisecond may still come"


def test_a_step_has_a_useful_repr(life):
    full, = list(life.stream(until="now"))
    assert (full.is_full, full.snapshot_id, full.next_snapshot_id, full.watermark) == (True, 3, 4, 30)
    second = life.stream(from_=2).poll()
    assert (second.is_full, second.snapshot_id, second.next_snapshot_id, second.watermark) == (False, 2, 3, 20)
    assert second.schema.names == ["k", "v", "_row_kind"] == second.to_reader().schema.names
    assert second.position in repr(second)
    import pyarrow as pa

    assert pa.table(second).equals(second.to_arrow())


def test_columns_and_conditions(life):
    stream = life.stream(from_=1, columns=["v"], where="k = 1")
    assert all_rows(stream) == [[("a", "+I")], [("b", "+U")]]
    assert [(row["k"]) for step in life.stream(columns=["k"], until="now") for row in step.to_arrow().to_pylist()] == [1, 3]
    with pytest.raises(UsageError, match="column 'x' does not exist"):
        life.stream(columns=["x"])
    with pytest.raises(UsageError):
        life.stream(where="k = 'a'")


def test_splits_can_be_read_by_other_processes(life):
    step = life.stream(from_=3).poll()
    parts = [bytes(split) for split in step.splits()]
    copy = pickle.loads(pickle.dumps(step))
    found = [row for part in parts for row in copy.read(part).read_all().to_pylist()]
    assert found == step.to_arrow().to_pylist()
    other = again(life).stream(from_="latest")
    assert [row for part in parts for row in other.read(part).read_all().to_pylist()] == found
    assert copy.position == step.position


def test_a_position_is_valid_in_any_process(life):
    first = life.stream(from_=1).poll()
    assert all_rows(again(life).stream(from_=first.position)) == [SECOND, THIRD]
    full = life.stream().poll()
    stream = again(life).stream(from_=full.position)
    assert stream.poll() is None
    assert stream.position == full.position
    write(life, (9, "z"))
    assert all_rows(stream) == [[(9, "z", "+I")]]


def test_snapshots_without_changes_are_skipped_and_counted(life):
    stream = life.stream(from_="latest")
    assert life.compact(full=True).snapshot_id == 4
    assert stream.poll() is None
    assert stream.position.split(":")[1] == "4"
    life.truncate()
    write(life, (9, "z"))
    step = stream.poll()
    assert (rows(step), step.snapshot_id, step.next_snapshot_id) == ([(9, "z", "+I")], 6, 7)


def test_overwrites_of_append_tables_are_read_by_option():
    table = table_of(keyed=False)
    write(table, (1, "a"))
    write(table, (2, "b"), overwrite={})
    write(table, (3, "c"))
    passing = table.stream(from_=1, options={"streaming-read-append-overwrite": "false"})
    assert all_rows(passing) == [[(1, "a", "+I")], [(3, "c", "+I")]]
    stream = table.stream(from_=1, options={"streaming-read-append-overwrite": "true"})
    assert all_rows(stream) == [[(1, "a", "+I")], [(2, "b", "+I")], [(3, "c", "+I")]]


def test_rows_that_wait_for_their_bucket_are_read_when_they_are_written():
    table = table_of(bucket="-2", **{"write-only": "false"})
    write(table, (1, "a"), (2, "a"))
    position = table.stream(from_="latest")
    assert sorted(rows(table.stream().poll())) == [(1, "a", "+I"), (2, "a", "+I")]
    table.compact()
    write(table, (1, None, "-D"), (3, "c"))
    table.compact()
    write(table, (4, "d"))
    assert all_rows(table.stream(from_=1)) == [FIRST, [(1, None, "-D"), (3, "c", "+I")], [(4, "d", "+I")]]
    assert all_rows(position) == [[(1, None, "-D"), (3, "c", "+I")], [(4, "d", "+I")]]
    assert sorted(rows(table.stream().poll())) == [(2, "a", "+I"), (3, "c", "+I"), (4, "d", "+I")]
    assert [rows(step) for step in table.stream(where="k = 4", until="now")] == [[(4, "d", "+I")]]
    assert [rows(step) for step in table.stream(from_=1, where="v = 'd'", until="now") if rows(step)] == [[(4, "d", "+I")]]


def test_a_stream_waits_for_the_first_snapshot_of_an_empty_table():
    for given in ({}, {"from_": "latest"}, {"from_": "earliest"}, {"from_": 1}, {"from_": at(0)}):
        table = table_of()
        stream = table.stream(**given)
        assert stream.poll() is None
        assert stream.poll() is None
        write(table, (1, "a"))
        step, = iter(stream.poll, None)
        assert rows(step) == [(1, "a", "+I")]
        assert step.is_full == (not given)
    assert list(table_of().stream(until="now")) == []


def test_a_delay_ignores_new_snapshots(life):
    clock = life._root.env.clock
    stream = life.stream(from_=2, options={"streaming.read.snapshot.delay": "15 s"})
    assert stream.poll() is None
    clock.sleep(5)
    assert all_rows(stream) == [SECOND]
    clock.sleep(10)
    assert all_rows(stream) == [THIRD]


def test_waiting_uses_the_clock_and_async_does_not_block(life):
    clock = Waiting(lambda: None, lambda: write(life, (9, "z")), lambda: write(life, (10, "z")))
    life._root.env.clock = clock

    async def follow():
        stream = life.stream(from_="latest", until=5, options={"continuous.discovery-interval": "3 s"})
        return [rows(step) async for step in stream]

    assert asyncio.run(follow()) == [[(9, "z", "+I")], [(10, "z", "+I")]]
    assert clock.waits == [3.0] * 3


def test_cancelling_the_wait_for_a_step_loses_nothing(life):
    class Slow(SerialPool):
        async def aside(self, function):
            step = function()
            await asyncio.sleep(0.001)
            return step

    life._root.env.pool = Slow()

    async def follow():
        stream = life.stream(from_=1, until="now")
        found = []
        while len(found) < 3:
            waiting = asyncio.ensure_future(stream.__anext__())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                found.append((await waiting).snapshot_id)
            found.append((await stream.__anext__()).snapshot_id)
        return found

    assert asyncio.run(follow()) == [1, 2, 3]


def test_an_async_stream_continues_after_an_error(life):
    stream = life.stream(from_=1, until="now")
    store = life._root.store

    async def follow():
        found = []
        life._root.snapshots._store = FaultStore(store, 1)
        with pytest.raises(StorageError):
            await stream.__anext__()
        life._root.snapshots._store = store
        async for step in stream:
            found.append(step.snapshot_id)
        return found

    assert asyncio.run(follow()) == [1, 2, 3]


# -- what befalls the snapshots -------------------------------------------------------------------------------------------


def test_an_expired_snapshot_is_refused_by_name(life):
    position = life.stream(from_=1).poll().position
    running = life.stream(from_=1)
    assert rows(running.poll()) == FIRST
    expire(life, 1, 2)
    for stream in (running, life.stream(from_=position), life.stream(from_=1)):
        with pytest.raises(SnapshotExpiredError, match="snapshot.num-retained.max") as error:
            for _ in range(2):
                stream.poll()
        assert error.value.snapshot_id in (1, 2)
    with pytest.raises(SnapshotExpiredError, match="earliest"):
        life.stream(from_=at(0)).poll()
    assert all_rows(life.stream(from_=at(20))) == [THIRD]
    assert all_rows(life.stream(from_="earliest")) == [THIRD]
    assert all_rows(life.stream(from_=3)) == [THIRD]


def test_a_stream_continues_if_only_snapshots_that_it_has_read_expired(life):
    stream = life.stream(from_=1)
    for _ in range(2):
        position = stream.poll().position
    expire(life, 1, 2)
    assert all_rows(stream) == [THIRD]
    assert all_rows(again(life).stream(from_=position)) == [THIRD]


class ActsAfterAMiss(CountingStore):
    """A store on which another process acts once, right after a snapshot was not there yet."""

    def __init__(self, store, act):
        super().__init__(store)
        self._act = act

    def get(self, path):
        try:
            return super().get(path)
        except FileMissingError:
            act, self._act = self._act, lambda: None
            act()
            raise


def test_a_snapshot_that_comes_while_its_predecessor_expires_is_read(life):
    stream = life.stream(from_=3)
    assert rows(stream.poll()) == THIRD

    def act():
        write(again(life), (9, "z"))
        expire(life, 1, 2, 3)

    life._root.snapshots._store = ActsAfterAMiss(life._root.store.store, act)
    assert [rows(step) for step in (stream.poll(), stream.poll()) if step is not None] == [[(9, "z", "+I")]]


@pytest.mark.parametrize("start", [1, "earliest", at(0), at(5)], ids=str)
def test_changelogs_are_read_after_their_snapshots_expired(life, start):
    stream = life.stream(from_=start)
    expire(life, 1, 2, changelogs=True)
    wanted = [SECOND, THIRD] if start == at(5) else [FIRST, SECOND, THIRD]
    assert all_rows(stream) == wanted
    write(life, (9, "z"))
    assert all_rows(stream) == [[(9, "z", "+I")]]


def test_changelogs_that_expire_while_a_stream_reads_them(life):
    stream = life.stream(from_=1)
    assert rows(stream.poll()) == FIRST
    expire(life, 1, 2, changelogs=True)
    assert all_rows(stream) == [SECOND, THIRD]


def test_a_rollback_is_noticed(life):
    running, waiting = life.stream(from_=1), life.stream(from_="latest")
    position = [step.position for step in iter(running.poll, None)][-1]
    assert waiting.poll() is None
    roll_back(life, 1)
    for stream in (running, waiting, life.stream(from_=position)):
        with pytest.raises(SnapshotExpiredError, match="rolled back"):
            for _ in range(2):
                stream.poll()
    other = again(life)
    for _ in range(3):
        write(other, (8, "y"))
    for stream in (running, waiting, life.stream(from_=position)):
        with pytest.raises(SnapshotExpiredError, match="rolled back"):
            stream.poll()
    assert len(all_rows(life.stream(from_=2))) == 3


def test_a_position_of_another_table_is_refused_by_name(life):
    position = life.stream(from_=1).poll().position
    other = table_of(v="x")
    for _ in range(2):
        write(other, (1, "a"))
    with pytest.raises(UsageError, match="is not of the table at"):
        other.stream(from_=position).poll()


@pytest.mark.parametrize("given, error, text", [
    ({"from_": "fulll"}, UsageError, "from_"), ({"from_": 0}, UsageError, "snapshot id"), ({"from_": True}, UsageError, "snapshot id"),
    ({"from_": 1.5}, UsageError, "snapshot id"), ({"from_": "paimon-stream-1:x"}, UsageError, "not a position"),
    ({"from_": "paimon-stream-2:1:-:"}, UsageError, "version 2"), ({"from_": "paimon-stream-1:99999999999999999999:-:"}, UsageError, "not a position"),
    ({"until": "later"}, UsageError, "until"), ({"until": -1}, UsageError, "until"), ({"until": True}, UsageError, "until"),
    ({"from_": 1, "options": {"scan.mode": "latest"}}, UsageError, "not both"),
    ({"options": {"scan.mode": "from-snapshot"}}, OptionError, "scan.snapshot-id"),
    ({"options": {"scan.mode": "from-timestamp"}}, OptionError, "scan.timestamp"),
    ({"options": {"scan.snapshot-id": "0"}}, OptionError, "from 1"), ({"options": {"scan.mode": "fast"}}, OptionError, "scan.mode"),
    ({"options": {"scan.tag-name": "x"}}, UnsupportedError, "scan.tag-name"), ({"options": {"scan.watermark": "5"}}, UnsupportedError, "scan.watermark"),
    ({"options": {"scan.mode": "incremental", "incremental-between": "1,2"}}, UnsupportedError, "incremental"),
    ({"options": ["x"]}, UsageError, "options"), ({"consumer_id": "a/b"}, UsageError, "consumer name"), ({"consumer_id": 3}, UsageError, "consumer"),
], ids=lambda value: repr(value) if isinstance(value, dict) else None)  # fmt: skip
def test_bad_input_is_refused_by_name(life, given, error, text):
    with pytest.raises(error, match=text):
        life.stream(**given)


def test_a_snapshot_that_is_not_the_next_one_cannot_begin_a_stream(life):
    with pytest.raises(UsageError, match="the next one will be 4"):
        life.stream(from_=5).poll()


# -- what a poll costs ----------------------------------------------------------------------------------------------------


def calls(table):
    """Calls since the last time."""
    store = table._root.store
    found = sum(store.calls.values())
    store.reset()
    return found


def calls_of_poll(table, stream):
    calls(table)
    step = stream.poll()
    assert not table._root.store.calls["list"]
    return step, calls(table)


def test_a_step_costs_four_calls_and_no_listing_whatever_the_age_of_the_table():
    table = table_of()
    for number in range(40):
        write(table, (number, "a"))
    stream = table.stream(from_=1)
    stream.poll()
    costs = [calls_of_poll(table, stream)[1] for _ in range(39)]
    assert sum(costs) <= 4 * len(costs)
    for number in range(20):
        write(table, (number, "b"))
        step, cost = calls_of_poll(table, stream)
        assert cost <= 4
        assert rows(step) == [(number, "b", "+I")]
    for _ in range(2):
        assert calls_of_poll(table, stream) == (None, 2)


def test_a_reader_that_is_far_behind_fetches_several_snapshots():
    clock = Waiting()
    table = table_of(clock=clock)
    for number in range(100):
        write(table, (number, "a"))
        clock.sleep(1)
    stream = table.stream(from_=1)
    calls_before = sum(table._root.store.calls.values())
    assert [rows(step)[0][0] for step in iter(stream.poll, None)] == list(range(100))
    assert (sum(table._root.store.calls.values()) - calls_before) <= 3.3 * 100 + 20


def test_a_rollback_of_fetched_snapshots_is_noticed():
    clock = Waiting()
    table = table_of(clock=clock)
    for number in range(10):
        write(table, (number, "a"))
        clock.sleep(1)
    stream = table.stream(from_=1)
    for _ in range(3):
        stream.poll()
    roll_back(table, 2)
    write(again(table), (99, "z"))
    with pytest.raises(SnapshotExpiredError, match="rolled back|expired"):
        for _ in range(10):
            stream.poll()


def test_the_stream_of_a_table_that_was_opened_again(tmp_path):
    from unit.public import keyed_table, new_catalog, reopened

    table = keyed_table(new_catalog(str(tmp_path)))
    assert isinstance(table, Table)
    assert len(list(reopened(table).stream(from_=1, until="now"))) == 2




def test_overwrites_of_keyed_tables_are_read_by_option(life):
    write(life, (1, "b"), (3, "d"), (4, "d"), overwrite={})
    write(life, (9, "z"))
    assert all_rows(life.stream(from_=4)) == [[(9, "z", "+I")]]
    stream = life.stream(from_=4, options={"streaming-read-overwrite": "true"})
    assert all_rows(stream) == [[(3, "c", "-U"), (3, "d", "+U"), (4, "d", "+I")], [(9, "z", "+I")]]
    life.truncate()
    assert all_rows(stream) == [[(1, "b", "-D"), (3, "d", "-D"), (4, "d", "-D"), (9, "z", "-D")]]


@pytest.mark.parametrize("options", [{"deletion_vectors.enabled": "true"}, {"deletion_vectors.enabled": "true", "changelog_producer": "input"}])
def test_rows_hidden_until_a_compaction_are_in_the_first_step_or_among_the_replaced_rows(options):
    table = table_of(streaming_read_overwrite="true", **options)
    write(table, (1, "a"), (2, "a"))
    table.compact(full=True)
    write(table, (2, "b"), (3, "b"))
    assert table.count() == 2
    stream = table.stream()
    assert rows(stream.poll()) == [(1, "a", "+I"), (2, "b", "+I"), (3, "b", "+I")]
    write(table, (3, "c"), overwrite={})
    assert rows(stream.poll()) == [(1, "a", "-D"), (2, "b", "-D"), (3, "b", "-U"), (3, "c", "+U")]
    write(table, (4, "c"))
    table.compact(full=True)
    assert rows(stream.poll()) == [(4, "c", "+I")] and stream.poll() is None


def test_the_first_step_of_a_first_row_table_has_rows_that_are_not_compacted():
    table = table_of(merge_engine="first-row")
    write(table, (1, "a"))
    table.compact(full=True)
    write(table, (1, "b"), (2, "b"))
    assert rows(table.stream().poll()) == [(1, "a", "+I"), (2, "b", "+I")]
    told = table_of(merge_engine="first-row", changelog_producer="lookup")
    write(told, (1, "a"))
    stream = told.stream()
    assert rows(stream.poll()) == []
    told.compact(full=True)
    assert rows(stream.poll()) == [(1, "a", "+I")]


@pytest.mark.parametrize("number, found", [(None, 2), (8, 2), (6, 3)])
def test_streams_and_scans_agree_on_the_last_full_compaction(number, found):
    """Of a schedule, numbers that its interval divides are full ones; a batch job has none, and compacts all."""
    table = table_of(**{"full-compaction.delta-commits": "4"})
    write(table, (1, "a"))
    table.compact(full=True)
    write(table, (2, "b"))
    if number is not None:
        store, path = table._root.store, snapshot_path(TABLE, 2)
        store.put(path, store.get(path).replace(str(BATCH_COMMIT_IDENTIFIER).encode(), str(number).encode()))
    table = again(table)
    options = {"scan.mode": "compacted-full"}
    assert [step.snapshot_id for step in iter(table.stream(options=options).poll, None)] == list(range(found, 4))
    assert sorted(table.scan(options=options).to_arrow()["k"].to_pylist()) == list(range(1, found))


def stripped(table):
    """Snapshots as other programs write them: none names the one before."""
    store = table._root.store
    for snapshot in table.snapshots():
        path = snapshot_path(TABLE, snapshot.id)
        text = json.loads(store.get(path))
        store.put(path, json.dumps({**text, "properties": {}}).encode())


@pytest.mark.parametrize("others_name_theirs", [False, True])
def test_snapshots_that_name_no_parent_are_read_twice(monkeypatch, others_name_theirs):
    clock = Waiting()
    table = table_of(clock=clock)
    for number in (1, 2, 3):
        write(table, (number, "old"))
    stripped(table)
    clock.sleep(10)
    reader = on(table._root.store.store, table.schema, clock=clock, owner="reader")
    stream, get = reader.stream(from_=1), MemoryStore.get
    assert rows(stream.poll()) == [(1, "old", "+I")]

    def and_others_begin_anew(store, path):
        found = get(store, path)
        if path == snapshot_path(TABLE, 3):
            monkeypatch.setattr(MemoryStore, "get", get)
            roll_back(table, 1)
            for number in (2, 3):
                write(again(table, f"other{number}"), (number, "new"))
            if not others_name_theirs:
                stripped(again(table))
        return found

    monkeypatch.setattr(MemoryStore, "get", and_others_begin_anew)
    assert all_rows(stream) == [[(2, "new", "+I")], [(3, "new", "+I")]]


def test_a_time_is_known_from_that_of_the_oldest_snapshot_on():
    table = opened(lived("keyed"))
    table.expire_snapshots(retain_min=2, older_than=EVERY_AGE)
    oldest = table.snapshots()[0]
    assert oldest.id > 1 and _first_since(table._root, oldest.id, oldest.value.time_millis) == oldest.id
    with pytest.raises(SnapshotExpiredError):
        _first_since(table._root, oldest.id, oldest.value.time_millis - 1)
