"""Every store call of a stream and its consumer fails once: nothing is missed or doubled, and nothing is recorded early."""

from __future__ import annotations

import functools
from datetime import timedelta

import pytest
from unit.commit.support import TABLE, Clock, Ids
from unit.stream.build import expire, rows, table_of, write

from paimon_py import Table, UsageError
from paimon_py.env import Env, SerialPool
from paimon_py.errors import NotFoundError, StorageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import consumer_path
from paimon_py.testing.fault_store import for_each_fault

SCHEMA = table_of().schema
WANTED = [[(1, "a", "+I"), (2, "a", "+I")], [(1, "b", "+U")], [(2, None, "-D")], [(3, "c", "+I")]]


def opened(store):
    return Table(TableRoot(store, TABLE, Env(Clock(), Ids("reader"), SerialPool())), SCHEMA, "t")


@functools.cache
def first_built():
    """Five snapshots, the first two expired with their changelogs kept, a compaction among the others."""
    table = table_of()
    write(table, (1, "a"), (2, "a"))
    write(table, (1, "b", "+U"))
    write(table, (2, None, "-D"))
    table.compact(full=True)
    write(table, (3, "c"))
    expire(table, 1, 2, changelogs=True)
    return table._root.store.store


def built():
    """The same table in a store of its own."""
    return first_built().copy()


def follow(stream, steps):
    """Take and acknowledge steps until there are none, whatever the store does: a failed call is made again."""
    waits = 0
    while waits < 2:
        try:
            step = stream.poll()
        except StorageError:
            step = stream.poll()
        if step is None:
            waits += 1
            continue
        try:
            found = sorted(rows(step))
        except StorageError:
            found = sorted(rows(step))
        steps.append(found)
        try:
            step.acknowledge()
        except StorageError:
            step.acknowledge()


def begun(store, **more):
    try:
        return opened(store).stream(consumer_id="c", **more)
    except StorageError:
        return opened(store).stream(consumer_id="c", **more)


@pytest.mark.parametrize("start", ["earliest", 1])
def test_a_stream_whose_store_fails_once_misses_and_repeats_nothing(start):
    def operation(store):
        steps = []
        follow(begun(store, from_=start), steps)
        return steps

    def check(store, outcome):
        assert outcome.error is None
        assert outcome.result == WANTED
        assert opened(store).consumers()[0].next_snapshot_id == 6

    assert for_each_fault(built, operation, check, modes=("before", "after", "lost")) > 40


def test_a_stream_that_dies_continues_after_the_last_acknowledged_step():
    taken = []

    def operation(store):
        taken.clear()
        stream = opened(store).stream(consumer_id="c", from_=1)
        for step in iter(stream.poll, None):
            taken.append((step.next_snapshot_id, sorted(rows(step))))
            step.acknowledge()

    def check(store, outcome):
        table = opened(store)
        stands = [consumer.next_snapshot_id for consumer in table.consumers()]
        reached = max([number for number, _ in taken], default=1)
        assert all(number <= reached for number in stands), "the consumer is ahead of what was processed"
        again = [(step.next_snapshot_id, sorted(rows(step))) for step in iter(table.stream(consumer_id="c", from_=1).poll, None)]
        both = dict(taken) | dict(again)
        assert [both[number] for number in sorted(both)] == WANTED
        assert all(dict(taken)[number] == found for number, found in again if number in dict(taken))

    assert for_each_fault(built, operation, check, modes=("die", "die_after")) > 30


@pytest.mark.parametrize("verb", ["reset", "delete", "expire"])
def test_verbs_of_consumers_happen_or_not(verb):
    before = b'{\n  "nextSnapshot" : 5\n}'

    def with_consumer():
        store = built()
        store.put(consumer_path(TABLE, "c"), before)
        store._clock = Clock(Clock().millis() + 2000)
        return store

    def call(table):
        if verb == "reset":
            return table.reset_consumer("c", 3).next_snapshot_id
        if verb == "delete":
            return table.delete_consumer("c")
        table._root.env.clock.start += 2000
        return table.expire_consumers(timedelta(seconds=1))

    done = [3] if verb == "reset" else []

    def check(store, outcome):
        table = opened(store)
        left = [consumer.next_snapshot_id for consumer in table.consumers()]
        assert left in ([5], done)
        if outcome.error is None:
            assert left == done
        elif not outcome.crashed:
            assert isinstance(outcome.error, StorageError)
            if left == done == []:
                with pytest.raises((NotFoundError, UsageError)):
                    table.delete_consumer("c")
            else:
                call(table)
                assert [consumer.next_snapshot_id for consumer in opened(store).consumers()] == done

    assert for_each_fault(with_consumer, lambda store: call(opened(store)), check) > 2
