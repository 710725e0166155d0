"""How often commits, repetitions and retries call the store: no more than before commits were planned from a history."""

import pyarrow as pa
import pytest
from unit.commit.support import TABLE, Clock, Ids, put_schema, schema

from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import Table
from paimon_py.testing.counting_store import CountingStore

KINDS = {
    "append": schema(),
    "keyed": schema(primary_key=["k"], options={"bucket": "1", "write-only": "true"}),
    "keyed, compacting": schema(primary_key=["k"], options={"bucket": "1"}),
    "postponed": schema(primary_key=["k"], options={"bucket": "-2"}),
}
CALLS = {
    "append": {"first": 19, "second": 21, "commit": 17, "identified": 25, "again": 13, "behind": 19, "race": 34},
    "keyed": {"first": 19, "second": 22, "commit": 15, "identified": 25, "again": 13, "behind": 22, "race": 44},
    "keyed, compacting": {"first": 19, "second": 22, "commit": 15, "identified": 25, "again": 13, "behind": 27, "race": 61},
    "postponed": {"first": 19, "second": 19, "commit": 15, "identified": 21, "again": 9, "behind": 19, "race": 37},
}


class Racing:
    """A store in which somebody else publishes the next snapshot, once."""

    def __init__(self, store):
        self.store = store
        self.other = None

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def put_new(self, path, data, *, within=None):
        if "/snapshot-" in path and self.other is not None:
            other, self.other = self.other, None
            other()
        return self.store.put_new(path, data, within=within)


def opened(store, table_schema, owner, clock=None):
    return Table(TableRoot(store, TABLE, Env(clock or Clock(), Ids(owner), SerialPool())), table_schema, "db.t")


def rows(*keys):
    count = len(keys)
    return pa.table({"p": pa.array([1] * count, pa.int32()), "k": pa.array(keys, pa.int32()), "v": ["x"] * count})


@pytest.mark.parametrize("kind", KINDS)
def test_commits_call_the_store_no_more_often_than_before(kind):
    table_schema = KINDS[kind]
    store = MemoryStore(clock=Clock())
    put_schema(store, table_schema)
    counting = CountingStore(store)
    table = opened(counting, table_schema, "a")
    calls = {}

    def counted(what, action):
        before = len(counting.paths)
        result = action()
        calls[what] = len(counting.paths) - before
        return result

    counted("first", lambda: table.write_arrow(rows(1, 2)))
    counted("second", lambda: table.write_arrow(rows(3)))
    writer = table.writer()
    writer.write_arrow(rows(4))
    changes = writer.changes()
    counted("commit", lambda: table.commit(changes))
    writer.write_arrow(rows(5))
    changes = writer.changes()
    counted("identified", lambda: table.commit(changes, user="u", identifier=1))
    assert counted("again", lambda: table.commit(changes, user="u", identifier=1)).already_committed
    with table.writer() as late:
        late.write_arrow(rows(6))
        changes = late.changes()
    opened(store, table_schema, "b").write_arrow(rows(7))
    counted("behind", lambda: table.commit(changes))
    racing = Racing(store)
    counting = CountingStore(racing)
    table = opened(counting, table_schema, "d")
    table.write_arrow(rows(8))
    racing.other = lambda: opened(store, table_schema, "c").write_arrow(rows(9))
    assert counted("race", lambda: table.write_arrow(rows(10))).attempts >= 2
    over = {what: (count, CALLS[kind][what]) for what, count in calls.items() if count > CALLS[kind][what]}
    assert over == {}


EXPIRING = {"snapshot.time-retained": "0 s", "snapshot.num-retained.min": "3"}
CALLS_OF_A_LIFE = {
    "append": {"commits": 257, "numbered": 135, "plan": 23, "verb": 18},
    "keyed": {"commits": 310, "numbered": 159, "plan": 27, "verb": 23},
    "write-only": {"commits": 171, "numbered": 84, "plan": 24, "verb": 62},
}
"""Calls at commit fb0e3a0, before snapshots had identities; and for the verb one more, immediately before it deletes
snapshots: whether the table is still the same."""


@pytest.mark.parametrize("kind", CALLS_OF_A_LIFE)
def test_commits_that_expire_plans_and_expiry_call_the_store_no_more_often_than_before(kind):
    keys = [] if kind == "append" else ["k"]
    options = {"bucket": "1" if keys else "-1", "write-only": str(kind == "write-only").lower(), **EXPIRING}
    table_schema = schema(primary_key=keys, options=options)
    store = MemoryStore(clock=Clock())
    put_schema(store, table_schema)
    counting = CountingStore(store)
    clock = Clock()
    table = opened(counting, table_schema, "a", clock)
    calls = {}

    def counted(what, action):
        before = len(counting.paths)
        clock.seconds += 1
        result = action()
        calls[what] = calls.get(what, 0) + len(counting.paths) - before
        return result

    for number in range(9):
        counted("commits", lambda number=number: table.write_arrow(rows(number % 3)))
    for number in range(4):
        with table.writer() as writer:
            writer.write_arrow(rows(number))
            changes = writer.changes()
        counted("numbered", lambda number=number: table.commit(changes, user="u", identifier=number))
    counted("plan", lambda: table.scan().splits())
    counted("plan", lambda: opened(counting, table_schema, "b", clock).scan().splits())
    table.write_arrow(rows(7))
    counted("verb", lambda: table.expire_snapshots(retain_min=1, retain_max=1))
    assert {what: (calls[what], most) for what, most in CALLS_OF_A_LIFE[kind].items() if calls[what] > most} == {}
