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


CALLS_OF_CARE = {
    "create_tag": 6, "create_branch": 25, "create_branch of a tag": 25, "rollback_to": 35, "fast_forward": 76, "delete_tag": 10,
    "delete_branch": 10, "expire": 79, "delete_tag of an expired snapshot": 56,
}  # fmt: skip
"""Of a table with six snapshots. At commit fb0e3a0 these were 3, 9, 11, 9, 24, 7, 4, 83 and 51. The verbs that cut or join
histories read the mark of each snapshot that they keep, announce themselves, and look again before they delete; every verb
reads the first schema, to see whether the table is still the same, and whether a cut is under way."""


def test_verbs_of_care_call_the_store_no_more_often_than_their_checks_need():
    table_schema = schema(primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    store, clock, owners, calls = MemoryStore(clock=Clock()), Clock(), iter("abcdefghijklmnop"), {}
    put_schema(store, table_schema)
    counting = CountingStore(store)

    def counted(what, action):
        table, before = opened(counting, table_schema, next(owners), clock), len(counting.paths)
        clock.seconds += 1
        action(table)
        calls[what] = len(counting.paths) - before

    def written(table, *keys):
        for key in keys:
            clock.seconds += 1
            table.write_arrow(rows(key))

    written(opened(store, table_schema, "x", clock), *range(6))
    counted("create_tag", lambda table: table.create_tag("a", 3))
    opened(store, table_schema, "y", clock).create_tag("b", 5)
    counted("create_branch of a tag", lambda table: table.create_branch("x", from_="b"))
    counted("create_branch", lambda table: table.create_branch("z", from_=4))
    counted("delete_branch", lambda table: table.delete_branch("z"))
    counted("delete_tag", lambda table: table.delete_tag("a"))
    counted("rollback_to", lambda table: table.rollback_to(5))
    written(opened(store, table_schema, "z", clock).branch("x"), 9)
    counted("fast_forward", lambda table: table.fast_forward("x"))
    written(opened(store, table_schema, "w", clock), *range(4))
    counted("expire", lambda table: table.expire_snapshots(retain_min=2, retain_max=2))
    counted("delete_tag of an expired snapshot", lambda table: table.delete_tag("b"))
    assert {what: (calls[what], most) for what, most in CALLS_OF_CARE.items() if calls[what] > most} == {}


def test_the_commit_of_a_step_asks_nothing_of_the_table_that_is_followed():
    table_schema = schema(primary_key=["k"], options={"bucket": "1", "write-only": "true"})
    stores = MemoryStore(clock=Clock()), MemoryStore(clock=Clock())
    for store in stores:
        put_schema(store, table_schema)
    counting = CountingStore(stores[0])
    source, target = opened(counting, table_schema, "a"), opened(stores[1], table_schema, "b")
    for key in range(3):
        source.write_arrow(rows(key))
    stream = source.stream(from_="earliest")
    for step in iter(stream.poll, None):
        data, before = step.to_arrow().drop_columns(["_row_kind"]), len(counting.paths)
        assert not target.write_arrow(data, user="u", identifier=step.identifier).already_committed
        assert counting.paths[before:] == []
    assert target.count() == 3
