"""Tables in memory that are streamed: with a clock, a count of calls, and whatever befalls their snapshots."""

from __future__ import annotations

import pyarrow as pa
from unit.commit.support import TABLE, Clock, Ids, new_store, schema

from paimon_py import Table
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import changelog_path, snapshot_path
from paimon_py.testing.counting_store import CountingStore

COLUMNS = {"k": "INT NOT NULL", "v": "STRING"}


class Waiting(Clock):
    """A clock whose waits also let something happen: the next of some actions."""

    def __init__(self, *actions, **more):
        super().__init__(**more)
        self.actions = list(actions)

    def sleep(self, seconds):
        super().sleep(seconds)
        if self.actions:
            self.actions.pop(0)()

    async def pause(self, seconds):
        self.sleep(seconds)


def table_of(*, keyed=True, clock=None, store=None, store_clock=None, **options):
    """`store_clock`: where the store has its times from; by default it stands still."""
    options = {name.replace("_", "-"): value for name, value in options.items()}
    made = schema(
        primary_key=["k"] if keyed else [], columns=COLUMNS,
        options={"bucket": "1" if keyed else "-1", "write-only": "true", **options},
    )  # fmt: skip
    return on(store or new_store(made, store_clock), made, clock=clock)


def on(store, made, *, clock=None, owner="u"):
    """The table as another process would open it."""
    root = TableRoot(CountingStore(store), TABLE, Env(clock or Waiting(), Ids(owner), SerialPool()))
    return Table(root, made, "t")


def again(table, owner="other"):
    return on(table._root.store.store, table.schema, owner=owner)


def write(table, *rows, **more):
    """Rows as (k, v) or (k, v, kind); one commit."""
    columns = {"k": pa.array([row[0] for row in rows], pa.int32()), "v": pa.array([row[1] for row in rows], pa.string())}
    if table.schema.primary_keys:
        columns["_row_kind"] = [row[2] if len(row) > 2 else "+I" for row in rows]
    return table.write_arrow(pa.table(columns), **more)


def rows(step):
    return [tuple(row.values()) for row in step.to_arrow().to_pylist()]


def expire(table, *numbers, changelogs=False):
    """Take snapshots away as an expiry does, and keep their changelogs if asked to."""
    store = table._root.store
    for number in numbers:
        path = snapshot_path(TABLE, number)
        if changelogs:
            store.put(changelog_path(TABLE, number), store.get(path))
        store.delete(path)


def roll_back(table, number):
    """Take away the snapshots after one, newest first."""
    for later in range(table.snapshot().id, number, -1):
        table._root.store.delete(snapshot_path(TABLE, later))
