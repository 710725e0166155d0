"""Tables to play with: made once, copied for every run, with changes that were written and not committed yet."""

from __future__ import annotations

import functools
from collections import Counter
from typing import NamedTuple

import pyarrow as pa
from simulation import java
from simulation.world import Clock, Ids, below

from paimon_py import Catalog, RemoveOption, SetOption, Table
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.rows.verbs import evaluator, update_work
from paimon_py.storage.memory_store import MemoryStore

WAREHOUSE = "/w"
NAME = "db.t"
PATH = "/w/db.db/t"
COLUMNS = pa.schema([pa.field("p", pa.int32(), False), pa.field("k", pa.int32(), False), pa.field("v", pa.int32())])


class Deed(NamedTuple):
    """Something that happens to the rows of a table at most once. `joined`: keys of the deeds that are done in one."""

    key: str
    apply: object
    joined: tuple = ()

    @property
    def parts(self):
        """The deeds that make this one."""
        return frozenset(self.joined or (self.key,))


class Kind(NamedTuple):
    """A kind of table."""

    options: dict
    key: tuple = ()
    partition_by: tuple = ()


KEYED = {"bucket": "1", "num-sorted-run.compaction-trigger": "50"}
EAGER = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
MANIFESTS = {"manifest.merge-min-count": "3"}
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "3", "num-sorted-run.compaction-trigger": "50"}
EVOLVES = {
    "bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true", "deletion-vectors.enabled": "true",
    "compaction.min.file-num": "2",
}  # fmt: skip
KINDS = {
    "append": Kind({"compaction.min.file-num": "2"}),
    "append, partitions": Kind({"compaction.min.file-num": "2", **MANIFESTS}, (), ("p",)),
    "append, buckets": Kind({"bucket": "2", "bucket-key": "k", "compaction.min.file-num": "2"}),
    "append, vectors": Kind({"deletion-vectors.enabled": "true", "compaction.min.file-num": "2"}),
    "append, indexed": Kind({"compaction.min.file-num": "2", "file-index.bitmap.columns": "v"}),
    "keyed": Kind(KEYED, ("k",)),
    "keyed, partitions": Kind({**KEYED, **MANIFESTS}, ("p", "k"), ("p",)),
    "keyed, eager": Kind(EAGER, ("k",)),
    "keyed, vectors": Kind({**EAGER, "deletion-vectors.enabled": "true"}, ("k",)),
    "keyed, vectors apart": Kind(
        {**EAGER, "deletion-vectors.enabled": "true", "write-only": "true", "num-levels": "6"}, ("k",)
    ),
    "columns": Kind(EVOLVES),
    "columns, partitions": Kind(EVOLVES, (), ("p",)),
    "dynamic": Kind(DYNAMIC, ("k",)),
    "dynamic, eager": Kind({**DYNAMIC, "num-sorted-run.compaction-trigger": "2"}, ("k",)),
}


def rows(values):
    """Rows (p, k, v) as Arrow."""
    columns = [[row[place] for row in values] for place in range(3)]
    return pa.table([pa.array(column, pa.int32()) for column in columns], COLUMNS)


def written(kind, values):
    """What writing rows does to the rows of a table: keyed ones map (p, k) to v, others count (p, k, v)."""
    if KINDS[kind].key:
        return lambda state: {**state, **{row_key(kind, row): row for row in values}}
    return lambda state: state + Counter(values)


def row_key(kind, row):
    return (row[0], row[1]) if "p" in KINDS[kind].key else row[1]


class Prepared(NamedTuple):
    """A table, its clock's seconds, changes to commit (bytes and their deed), and the snapshots of those that are in the table."""

    store: MemoryStore
    seconds: float
    changes: tuple
    compactions: tuple
    done: dict


class Stage:
    """Makes a prepared table."""

    def __init__(self, kind):
        self.kind = kind
        self.clock = Clock()
        self.store = MemoryStore(clock=self.clock)
        self.count = 0
        self.done = {}
        self.changes = []
        self.compactions = []
        one = KINDS[kind]
        options = {**one.options, "snapshot.num-retained.min": "100000"}  # nothing goes but by the actor that expires
        names = Catalog(self.store, WAREHOUSE, env=self.env("setup"))
        names.create_database("db")
        names.create_table(NAME, COLUMNS, primary_key=one.key, partition_by=one.partition_by, options=options)

    def env(self, owner):
        return Env(self.clock, Ids(owner), SerialPool())

    def table(self):
        self.count += 1
        root = TableRoot(self.store, PATH, self.env(f"s{self.count}"))
        return Table(root, root.schemas.latest(), NAME)

    def root(self):
        return self.table()._root

    def prepare(self, keys, key=None):
        """Write rows, and keep the changes. Gives their number."""
        number = len(self.changes)
        values = tuple((k % 2, k, 1000 + 10 * number + place) for place, k in enumerate(keys))
        with self.table().writer() as writer:
            writer.write_arrow(rows(values))
            changes = bytes(writer.changes())
        self.changes.append((changes, Deed(key or f"c{number}", written(self.kind, values))))
        self.clock.seconds += 1
        return number

    def prepare_columns(self, key):
        """Set v of the rows with a key, and keep the changes: files that add a column to rows. Gives their number."""
        number, table = len(self.changes), self.table()
        new = lambda batch: pa.array([value + 7_000_000 for value in batch["v"].to_pylist()], pa.int32())  # noqa: E731
        work = update_work(table._schema, f"k = {key}", {"v": new})
        splits = table.scan(where=f"k = {key}").splits()
        changes = evaluator(table._open_table, work)(table._root.latest(), splits).changes
        changed = lambda row: (*row[:2], row[2] + 7_000_000) if row[1] == key else row  # noqa: E731
        deed = Deed(f"c{number}", lambda state: Counter({changed(row): count for row, count in state.items()}))
        self.changes.append((bytes(changes), deed))
        self.clock.seconds += 1
        return number

    def commit(self, number, **how):
        changes, deed = self.changes[number]
        result = self.table().commit(changes, **how)
        self.done[deed.key] = result.snapshot_ids[0]
        self.clock.seconds += 1
        return result

    def plan(self, *, full=True):
        """Compact, and keep the changes."""
        table = self.table()
        for task in table.compaction_tasks(full=full):
            self.compactions.append(bytes(table.run_compaction(task)))

    def ready(self):
        return Prepared(
            self.store, self.clock.seconds, tuple(self.changes), tuple(self.compactions), self.done
        )


def fresh(stage):
    """An empty table and three changes."""
    for keys in ((1, 2), (2, 3), (5,)):
        stage.prepare(keys)


def some(stage):
    """Two snapshots, and changes that were written before, between and after them."""
    stage.prepare((1, 2))
    old = stage.prepare((2, 3, 4))
    stage.commit(old)
    stage.prepare((4, 6))
    new = stage.prepare((1, 6))
    stage.commit(new)
    stage.prepare((7, 1))
    stage.plan()


def columns(stage):
    """Two ranges of rows, and files that add a column to some of them, which nobody has committed."""
    stage.commit(stage.prepare((1, 2)))
    stage.commit(stage.prepare((3, 4)))
    stage.prepare_columns(2)
    stage.prepare((5,))


def late(stage, **how):
    """A commit, many others, a compaction: whoever repeats it comes late."""
    first = stage.prepare((1, 2))
    stage.commit(first, **how)
    stage.table().create_tag("early")
    stage.prepare((2, 9))
    for turn in range(34):
        stage.commit(stage.prepare((turn % 3 + 1,)))
    stage.plan()
    stage.table().compact(full=True)
    stage.commit(stage.prepare((1,)))


def late_named(stage):
    """The same with a user and an identifier."""
    late(stage, user="me0", identifier=7)


def late_expired(stage):
    """The same, and only the last snapshot and a tag are left."""
    late(stage, user="me0", identifier=7)
    java.expire(stage.root(), 1)


def compacted(stage):
    """A compaction that was committed, tagged, and whose snapshot has expired since."""
    if stage.kind == "keyed, vectors apart":
        marked(stage)
        return
    for keys in ((1, 2), (2, 3), (1, 4)):
        stage.commit(stage.prepare(keys))
    if KINDS[stage.kind].options.get("deletion-vectors.enabled") and not KINDS[stage.kind].key:
        stage.table().delete("k = 3")
    stage.plan()
    for changes in stage.compactions:
        stage.table().commit(changes)
    stage.table().create_tag("early")
    stage.commit(stage.prepare((1, 4)))
    stage.commit(stage.prepare((2, 4)))
    stage.table().compact(full=True)
    stage.commit(stage.prepare((5,)))
    java.expire(stage.root(), 1)
    stage.prepare((6,))


def marked(stage):
    """The same of a compaction whose file is live still, while its deletion vectors have been replaced."""
    stage.commit(stage.prepare(range(1, 2500)))
    stage.table().compact(full=True)
    for keys in (range(1, 600), range(500, 800)):
        stage.commit(stage.prepare(keys))
    stage.plan(full=False)
    stage.table().commit(stage.compactions[0])
    stage.table().create_tag("early")
    for keys in ((2401, 1), (2402, 2)):
        stage.commit(stage.prepare(keys))
    stage.table().compact()
    java.expire(stage.root(), 1)
    stage.prepare((6,))


def indexed(stage):
    """Files that had an index and lost it."""
    stage.commit(stage.prepare((1, 2)))
    table = stage.table()
    stage.commit(stage.prepare((3,)))
    table.alter(RemoveOption("file-index.bitmap.columns"))
    stage.prepare((4,))


def unindexed(stage):
    """Files that never had an index."""
    table = stage.table()
    table.alter(RemoveOption("file-index.bitmap.columns"))
    stage.commit(stage.prepare((1, 2)))
    stage.commit(stage.prepare((3,)))
    stage.table().alter(SetOption("file-index.bitmap.columns", "v"))
    stage.prepare((4,))


STATES = {one.__name__: one for one in (fresh, some, columns, late, late_named, late_expired, compacted, indexed, unindexed)}


@functools.cache
def prepared(kind, state):
    stage = Stage(kind)
    STATES[state](stage)
    return stage.ready()


def copied(store, clock):
    """The same files on another clock."""
    other = store.copy()
    other._clock = clock
    return other


__all__ = ["KINDS", "PATH", "STATES", "Deed", "below", "copied", "prepared", "rows", "row_key", "written"]
