"""Consumers: how far readers of changes have come, recorded so that Java and paimon_py see each other's."""

from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from unit.commit.support import TABLE
from unit.stream.build import Waiting, again, expire, rows, table_of, write

from paimon_py import (
    Consumer,
    ConsumerNotFoundError,
    CorruptionError,
    PaimonWarning,
    SnapshotExpiredError,
    UsageError,
)
from paimon_py.spec.layout import consumer_mark_path, consumer_path


@pytest.fixture
def table():
    made = table_of()
    for number in range(1, 5):
        write(made, (number, "a"))
    return made


def stored(table, name="c"):
    return table._root.store.get(consumer_path(TABLE, name))


def put(table, data, name="c"):
    table._root.store.put(consumer_path(TABLE, name), data)


def steps(table, **more):
    stream = table.stream(consumer_id="c", **more)
    return list(iter(stream.poll, None))


def test_a_consumer_continues_after_its_last_acknowledged_step(table):
    full, = steps(table)
    assert table.consumers() == []  # a whole snapshot cannot be gone on with
    full.acknowledge()
    assert table.consumers() == [Consumer("c", 5)]
    write(table, (9, "z"))
    write(table, (10, "z"))
    for _ in range(2):
        ninth, tenth = steps(again(table), from_=1)
        assert [rows(step) for step in (ninth, tenth)] == [[(9, "z", "+I")], [(10, "z", "+I")]]
    ninth.acknowledge()
    ninth.acknowledge()
    assert [step.snapshot_id for step in steps(again(table))] == [6]
    tenth.acknowledge()
    assert steps(again(table)) == []


def test_a_consumer_that_does_not_begin_with_a_whole_snapshot_exists_immediately(table):
    stream = table.stream(from_=3, consumer_id="c")
    assert stream.poll().snapshot_id == 3
    assert table.consumers() == [Consumer("c", 3)]
    latest = table.stream(from_="latest", consumer_id="l")
    assert latest.poll() is None
    assert table.consumers() == [Consumer("c", 3), Consumer("l", 5)]


def test_the_file_is_what_java_writes(table):
    table.stream(from_=3, consumer_id="c").poll()
    assert stored(table) == b'{\n  "nextSnapshot" : 3\n}'


def test_the_files_of_java_are_read(table):
    put(table, b'{"nextSnapshot":4}')
    put(table, b'{\n  "nextSnapshot" : 2\n}', "other one")
    assert table.consumers() == [Consumer("c", 4), Consumer("other one", 2)]
    assert [step.snapshot_id for step in steps(table)] == [4]


def test_the_stored_progress_can_be_ignored(table):
    put(table, b'{"nextSnapshot":4}')
    assert [step.snapshot_id for step in steps(table, from_=2, options={"consumer.ignore-progress": "true"})] == [2, 3, 4]
    assert [step.snapshot_id for step in list(iter(table.stream(options={"consumer-id": "c"}).poll, None))] == [2, 3, 4]


def test_acknowledging_a_step_acknowledges_all_before_it(table):
    first, second, third, fourth = steps(table, from_=1)
    third.acknowledge()
    assert table.consumers() == [Consumer("c", 4)]
    first.acknowledge()
    assert table.consumers() == [Consumer("c", 4)]


def test_with_at_least_once_the_slowest_step_counts(table):
    first, second, third, fourth = steps(table, from_=1, options={"consumer.mode": "at-least-once"})
    third.acknowledge()
    assert table.consumers() == [Consumer("c", 1)]
    first.acknowledge()
    assert table.consumers() == [Consumer("c", 2)]
    second.acknowledge()
    assert table.consumers() == [Consumer("c", 4)]
    fourth.acknowledge()
    assert table.consumers() == [Consumer("c", 5)]


@pytest.mark.parametrize("order", [(3, 2, 1, 0), (1, 3, 0, 2), (0, 3, 2, 1)])
def test_with_at_least_once_nothing_is_left_after_all_steps_in_any_order(table, order):
    found = steps(table, from_=1, options={"consumer.mode": "at-least-once"})
    for number in order:
        found[number].acknowledge()
    assert table.consumers() == [Consumer("c", 5)]


def test_a_step_is_acknowledged_in_another_process(table):
    first, second, *_ = steps(table, from_=1)
    pickle.loads(pickle.dumps(second)).acknowledge()
    assert again(table).consumers() == [Consumer("c", 3)]


def test_without_a_consumer_nothing_is_acknowledged(table):
    with pytest.raises(UsageError, match="consumer_id"):
        table.stream().poll().acknowledge()


def test_reset_moves_a_consumer_forward_and_backward(table):
    put(table, b'{"nextSnapshot":4}')
    for number in (2, 5, 1):
        assert table.reset_consumer("c", number) == Consumer("c", number)
        assert table.consumers() == [Consumer("c", number)]
    with pytest.raises(UsageError, match="the next one will be 5"):
        table.reset_consumer("c", 6)
    expire(table, 1)
    with pytest.raises(SnapshotExpiredError, match="num-retained"):
        table.reset_consumer("c", 1)
    for wrong in (0, -1, True, "2", 1.5, None):
        with pytest.raises(UsageError, match="next_snapshot_id"):
            table.reset_consumer("c", wrong)
    assert table.consumers() == [Consumer("c", 1)]


@pytest.mark.parametrize("call", [0, 1, 2])
def test_a_consumer_that_is_deleted_while_a_step_is_acknowledged_is_created_again(table, call, monkeypatch):
    """Before its mark is written, before its number is, and after both; rows neither come twice nor are left out."""
    stream = table.stream(consumer_id="c", from_=1)
    first, second, third = (stream.poll() for _ in range(3))
    first.acknowledge()
    store, puts = table._root.store, []
    written = type(store).put

    def put_and_delete(self, path, data, **more):
        if len(puts) == call:
            again(table).delete_consumer("c")
        puts.append(path)
        written(self, path, data, **more)

    with monkeypatch.context() as patched:
        patched.setattr(type(store), "put", put_and_delete)
        second.acknowledge()
    if call == 2:
        again(table).delete_consumer("c")
        assert again(table).consumers() == []
        third.acknowledge()
    assert again(table).consumers() == [Consumer("c", 4 if call == 2 else 3)]
    found = [rows(step) for step in steps(again(table))]
    assert found == [rows(step) for step in iter(again(table).stream(from_=4 if call == 2 else 3).poll, None)]
    assert len(found) == (1 if call == 2 else 2)


def test_an_unknown_consumer_is_refused_by_name(table):
    for call in (lambda: table.reset_consumer("nobody", 2), lambda: table.delete_consumer("nobody")):
        with pytest.raises(ConsumerNotFoundError, match="no consumer 'nobody'"):
            call()
    for name in ("", "a/b", None, 3, "..", "a\\b"):
        with pytest.raises(UsageError, match="consumer name"):
            table.delete_consumer(name)


def test_a_number_as_a_text_is_read_as_java_reads_it(table):
    put(table, b'{"nextSnapshot":"3"}')
    assert table.consumers() == [Consumer("c", 3)]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"nextSnapshot":"x"}', b'{"nextSnapshot":-1}', b'{"nextSnapshot":true}',
                                  b'{"nextSnapshot":1.5}', b'{"nextSnapshot":9223372036854775808}', b"\xff\xfe}", b'{"nextSnapshot":null}'])  # fmt: skip
def test_a_damaged_consumer_is_refused_by_name_and_can_be_mended(table, data):
    put(table, data)
    for call in (table.consumers, lambda: table.stream(consumer_id="c")):
        with pytest.raises(CorruptionError, match=r"consumer-c.*delete_consumer\('c'\) removes it"):
            call()
    table.reset_consumer("c", 3)
    assert table.consumers() == [Consumer("c", 3)]
    put(table, data)
    table.delete_consumer("c")
    assert table.consumers() == []


def test_a_file_that_is_being_written_is_read_again(table):
    put(table, b'{"nextSn')
    clock, root = table._root.env.clock, table._root
    clock.actions = [lambda: put(table, b'{"nextSnapshot":2}')]
    assert root.consumers.find("c") == Consumer("c", 2)
    assert clock.waits[-1:] == [0.2]


def test_consumers_that_do_not_move_expire():
    clock = Waiting()
    table = table_of(clock=clock, store_clock=clock)
    put(table, b'{"nextSnapshot":2}', "a")
    put(table, b'{"nextSnapshot":2}', "b")
    assert table.expire_consumers() == []
    assert table.expire_consumers(timedelta(seconds=60)) == []
    clock.seconds += 61
    put(table, b'{"nextSnapshot":3}', "b")
    assert table.expire_consumers(timedelta(seconds=60)) == ["a"]
    clock.seconds += 61
    assert table.expire_consumers(timedelta(seconds=60)) == ["b"]
    assert table.consumers() == []
    with pytest.raises(UsageError, match="older_than"):
        table.expire_consumers(60)


def test_a_consumer_written_at_the_limit_stays_and_a_later_limit_also_deletes_its_marks():
    clock = Waiting()
    table = table_of(clock=clock, store_clock=clock)
    for number in (1, 2):
        write(table, (number, "a"))
    table.stream(from_=1, consumer_id="a").poll().acknowledge()
    consumers, marks = table._root.consumers, consumer_mark_path(TABLE, "a")
    written = consumers.write_times()["a"]
    assert consumers.expire(["a"], written, print) == [] and table._root.store.stat(marks) is not None
    assert consumers.expire(["a"], written + 1, print) == ["a"] and table._root.store.stat(marks) is None


def test_an_option_decides_when_consumers_expire():
    clock = Waiting()
    table = table_of(clock=clock, store_clock=clock, **{"consumer.expiration-time": "1 min"})
    put(table, b'{"nextSnapshot":1}')
    clock.seconds += 59
    assert table.expire_consumers() == []
    clock.seconds += 2
    assert table.expire_consumers() == ["c"]


def test_a_consumer_whose_snapshot_expired_is_an_error(table):
    put(table, b'{"nextSnapshot":2}')
    expire(table, 1, 2)
    with pytest.raises(SnapshotExpiredError, match="num-retained"):
        table.stream(consumer_id="c").poll()


def test_two_names_of_one_consumer_are_refused(table):
    with pytest.raises(UsageError, match="one consumer"):
        table.stream(consumer_id="a", options={"consumer-id": "b"})


def test_the_error_of_a_consumer_beyond_a_rollback_explains_how_to_reset_it(table):
    put(table, b'{"nextSnapshot":5}')
    with pytest.warns(PaimonWarning, match=r"from 3 are deleted.* read them: 'c'\..*reset_consumer\('c', 3\)"):
        assert table.rollback_to(2).consumers == ("c",)
    with pytest.raises(UsageError, match=r"consumer 'c' .* is at snapshot 5, .*reset_consumer\('c', 3\)"):
        table.stream(consumer_id="c").poll()
    table.reset_consumer("c", 3)
    write(table, (9, "b"))
    assert [step.to_arrow()["k"].to_pylist() for step in steps(table)] == [[9]]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_consumer_that_read_no_rolled_back_snapshot_continues_without_a_warning(table, number):
    put(table, b'{"nextSnapshot":%d}' % number)
    assert table.rollback_to(2).consumers == ()
    write(table, (9, "b"))
    assert [step.snapshot_id for step in steps(table)] == list(range(number, 4))


def test_a_consumer_of_java_notices_a_rollback_when_the_ids_are_reused(table):
    put(table, b'{"nextSnapshot":5}')
    table.create_branch("b", from_=2)
    for cut, read in ((lambda: table.rollback_to(2), 4), (lambda: table.fast_forward("b", discard=True), 7)):
        with pytest.warns(PaimonWarning, match="Their streams are refused until"):
            cut()
        for number in range(6):
            write(table, (number, "new"))
        with pytest.raises(SnapshotExpiredError, match=f"snapshot {read} .*rolled back.*reset_consumer"):
            table.stream(consumer_id="c").poll()
        put(table, b'{"nextSnapshot":7}')
        assert [step.snapshot_id for step in steps(table)] == [7, 8]
        put(table, b'{"nextSnapshot":8}')
