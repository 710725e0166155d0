"""A table with a life beside its model: what is open, what was remembered, and what must hold after every step."""

from __future__ import annotations

import contextlib
import itertools
import random

import msgspec
import pyarrow as pa
from model.row_model import Content, counted, difference
from unit.commit.support import TABLE, Clock, Ids, below

from paimon_py import Catalog, CommitConflictError, SchemaError, Table, UsageError
from paimon_py.codec.binary_row import decode
from paimon_py.commit.changes import Changes
from paimon_py.commit.deletion_index import index_entries
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.postponed_order import WAITING
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_spill import StoreSpill

KEYS = 16
REMEMBERED = 25
INT = parse_type("INT")
ARROW = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DOUBLE": pa.float64()}
ALL_LEVELS = {"deletion-vectors.merge-on-read": "true"}


class Held(msgspec.Struct):
    """Work that is done but not committed. `since`: what had been committed when it began."""

    changes: Changes
    schema_id: int
    rows: list
    since: int


class Open(msgspec.Struct):
    """A writer that stays open over commits, with the schema and the numbers of buckets of its beginning.

    `loose`: something that it handed over was not committed at once, and later changes may rely on it.
    """

    writer: object
    schema: TableSchema
    since: int
    counts: dict
    rows: list = []
    loose: bool = False


SKEWS = (0, 60_000, -60_000, 0, 3_600_000)
"""How far the clocks of processes are ahead, in milliseconds, where rows wait for their buckets."""


class Skewed:
    """A clock that is ahead of another one."""

    def __init__(self, clock, by):
        self._clock = clock
        self._by = by

    def __getattr__(self, name):
        return getattr(self._clock, name)

    def millis(self):
        return self._clock.millis() + self._by

    def local_millis(self):
        return self._clock.local_millis() + self._by


class Life:
    """A table, its model, and everything that is open."""

    def __init__(self, mode, seed):
        rng = random.Random(seed)
        self.mode = mode
        self.clock = Clock()
        self.store = MemoryStore(clock=self.clock)
        self.owners = itertools.count()
        key = () if not mode.keyed else ("p", "k") if mode.parted and not mode.moves else ("k",)
        self.key = key
        self.parts = [1, 2] if mode.keyed else [1, 2, None]
        self.columns = {"k": "BIGINT", "v": "STRING", "n": "INT", "x": "DOUBLE"}
        if mode.parted:
            self.columns = {"p": "INT", **self.columns}
        self.options = {
            "snapshot.num-retained.min": "100000",  # the model knows every file that was ever named
            "file.format": rng.choice(["parquet", "parquet", "orc", "avro"]),
            "num-sorted-run.compaction-trigger": rng.choice(["2", "3", "5"]),
            "compaction.min.file-num": rng.choice(["2", "3"]),
            "manifest.merge-min-count": rng.choice(["2", "30"]),
            **rng.choice([{}, {}, {"target-file-row-num": "5"}, {"write-buffer-size": "400 b"}]),
            **mode.options,
        }
        catalog = Catalog(self.store, "/warehouse", env=self.env())
        catalog.create_database("db")
        catalog.create_table(
            "db.t", self.arrow_schema(self.columns), primary_key=list(key) or None,
            partition_by=["p"] if mode.parted else None, options=self.options,
        )  # fmt: skip
        self.content = Content(key, mode.engine, mode.postponed)
        self.commits = 0
        self.written = []
        self.held = []
        self.writers = []
        self.history = {}
        self.columns_of = {0: dict(self.columns)}
        self.latest_schema = 0
        self.identifiers = itertools.count(1)
        self.seen = 0
        self.snapshot_id = None
        self.named = set()
        self.counts = {}
        self.fresh_rows = False
        self.checks = 0
        self.files = TableRoot(self.store, TABLE, self.env())
        self.table, self.other = self.opened(), self.opened()

    # -- tables ---

    def env(self):
        owner = next(self.owners)
        clock = Skewed(self.clock, SKEWS[owner % len(SKEWS)] if self.mode.postponed else 0)
        return Env(clock, Ids(f"o{owner}-"), SerialPool(), StoreSpill(MemoryStore(clock=self.clock)))

    def opened(self):
        """The table as another process would open it: nothing cached."""
        root = TableRoot(self.store, TABLE, self.env())
        return Table(root, root.schemas.latest(), "db.t")

    def pick(self, rng):
        """One of two table objects; what the other did it has not seen."""
        return self.table if rng.random() < 0.6 else self.other

    def any(self, rng):
        """One that mostly knows the latest schema."""
        return self.pick(rng) if rng.random() < 0.3 else self.current(rng)

    def outdated(self, table):
        """Whether others may have written columns or values that a table object does not know."""
        return self.columns_of[table.schema.id] != self.columns

    def current(self, rng):
        """One that knows the latest schema."""
        table = self.pick(rng)
        if table.schema.id == self.latest_schema:
            return table
        return self.reopen(table)

    def reopen(self, table):
        fresh = self.opened()
        if table is self.table:
            self.table = fresh
        else:
            self.other = fresh
        return fresh

    # -- rows ---

    def arrow_schema(self, columns):
        fixed = ("p", "k") if self.key else ()
        return pa.schema([pa.field(name, ARROW[text], nullable=name not in fixed) for name, text in columns.items()])

    def known(self, table):
        """The columns of a table object, or of an open writer."""
        return self.columns_of[table.schema.id]

    def row(self, rng, columns):
        return {name: self.value(rng, name, text) for name, text in columns.items()}

    def value(self, rng, name, text=""):
        if name == "p":
            return rng.choice(self.parts)
        if name == "k":
            return None if not self.key and rng.random() < 0.04 else rng.randrange(KEYS)
        if rng.random() < 0.2:
            return None
        if text == "BIGINT" and rng.random() < 0.1:
            return 1 << 40
        if name == "v":
            return rng.choice(["", "a", "b", "ab", "zz"])
        return float(rng.randrange(8)) if name == "x" else rng.randrange(60)

    def some(self, rng, table, size=None):
        """(kind, row) pairs to write."""
        kinds = ["+I", "+I", "+I", "+U", "-D", "-U"] if self.mode.keyed and self.mode.engine == "deduplicate" else ["+I"]
        size = rng.choice([1, 3, 8, 20]) if size is None else size
        rows = [self.row(rng, self.known(table)) for _ in range(size)]
        return [(rng.choice(kinds), row) for row in rows]

    def arrow(self, table, pairs):
        columns = self.known(table)
        found = {name: pa.array([row[name] for _, row in pairs], ARROW[text]) for name, text in columns.items()}
        data = pa.table(found, schema=self.arrow_schema(columns))
        if any(kind != "+I" for kind, _ in pairs):
            data = data.append_column("_row_kind", pa.array([kind for kind, _ in pairs], pa.string()))
        return data

    def partitions(self, pairs):
        return {row.get("p") for _, row in pairs}

    # -- what is expected ---

    def closed(self, schema, partitions, counts=None):
        """Whether one of these partitions has another number of buckets than the schema says."""
        counts, wanted = self.counts if counts is None else counts, int(schema.options.get("bucket", "-1"))
        return wanted > 0 and any(counts.get(partition, wanted) != wanted for partition in partitions)

    def retyped(self, schema_id):
        """Whether a column has another type now."""
        now = self.columns_of[self.latest_schema]
        return any(now[name] != text for name, text in self.columns_of[schema_id].items())

    def cut(self, table):
        """The body may be refused to a table object that does not know how wide a column is."""
        return self.refused(SchemaError, must=False) if self.retyped(table.schema.id) else contextlib.nullcontext()

    @contextlib.contextmanager
    def refused(self, *errors, must=True):
        """The body is refused with one of these; without `must` it may be."""
        try:
            yield
        except errors:
            self.was_refused = True
            return
        self.was_refused = False
        assert not must, f"not refused: {errors}"

    def try_write(self, call, table, pairs):
        """Carry out a write of rows that others may have closed the way to; returns what it gives, None if refused."""
        schema = table.schema
        if pairs and self.closed(schema, self.partitions(pairs)):
            with self.refused(UsageError, CommitConflictError):
                call()
            return None
        if pairs and self.retyped(schema.id):
            with self.refused(CommitConflictError, SchemaError):
                call()
            return None
        return call()

    def rival(self, since, pairs):
        """Whether others put keys of these rows somewhere meanwhile, or emptied a partition of theirs."""
        if since < 0:
            return True
        if self.mode.moves:
            return any(number > since for number, _, _ in self.written)
        keys = {self.content.at(row) for _, row in pairs}
        parts = self.partitions(pairs)
        for number, emptied, put in self.written:
            if number > since and (put & keys or (emptied is not None and any(map(emptied, parts)))):
                return True
        return False

    def wrote(self, pairs, emptied=None):
        """Remember who wrote what, for keys that are given buckets."""
        self.commits += 1
        if self.mode.dynamic:
            self.written.append((self.commits, emptied, {self.content.at(row) for _, row in pairs}))

    def waits(self):
        """Whether rows wait for their buckets."""
        snapshot = self.files.snapshots.latest()
        return snapshot is not None and len(self.files.manifests.live_entries(snapshot, WAITING)) > 0

    def took(self, pairs):
        """Rows were committed."""
        self.content.add(pairs)
        self.wrote(pairs)

    def knows(self, rng):
        """A partition, or None for no restriction."""
        return None if not self.mode.parted or rng.random() < 0.4 else rng.choice(self.parts)

    # -- checks ---

    def check(self):
        """The rows are those of the model; no file is lost or left over."""
        before = self.snapshot_id
        self.observe()
        self.check_files()
        self.checks += 1
        table = (self.table, self.other, None)[self.checks % 3]
        table = self.opened() if table is None else table
        if not self.blind and (before != self.snapshot_id or self.checks % 4 == 0):
            options = ALL_LEVELS if self.hidden else None
            with self.cut(table):
                self.compare(table, table.scan(options=options), self.content.all())
        latest = self.snapshot_id
        if latest is not None and not self.hidden and latest not in self.history:
            self.history[latest] = (self.table.snapshot(latest).schema_id, self.content.all())
            while len(self.history) > REMEMBERED:
                self.history.pop(next(iter(self.history)))

    def compare(self, table, scan, rows):
        names = list(self.known(table))
        found = scan.to_arrow()
        assert found.schema.names == names
        wrong = difference(counted(found.to_pylist(), names), counted(rows, names))
        assert not wrong, wrong

    @property
    def hidden(self):
        """Whether a plain scan leaves rows out."""
        return self.mode.hides and self.fresh_rows

    @property
    def blind(self):
        """Whether no scan at all shows every row."""
        return self.hidden and not self.mode.marks

    def observe(self):
        """Look at the files of new snapshots."""
        root = self.files
        latest = root.snapshots.latest_id() or 0
        for number in range(self.seen + 1, latest + 1):
            snapshot = root.snapshots.get(number)
            live = root.manifests.live_entries(snapshot).entries()
            self.named.update(name for entry in live for name in (entry.file.name, *entry.file.extra_files))
            self.named.update(entry.name for entry in index_entries(root, snapshot))
            if number == latest:
                self.note(snapshot, live)
        self.seen = latest
        self.snapshot_id = latest or None

    def check_files(self):
        """Every file is named by a snapshot or held by somebody, and there."""
        stored = {
            path.rsplit("/", 1)[1] for path in below(self.store, TABLE) if "/bucket-" in path or "/index/" in path
        }
        stored = {name for name in stored if not name.startswith("index-manifest")}
        held = {name for one in self.held for name in own_names(one.changes)}
        orphans, lost = stored - self.named - held, (self.named | held) - stored
        if self.writers:  # what they have not handed over yet
            orphans = {name for name in orphans if name.startswith("index-")}
        assert not orphans and not lost, f"orphans {orphans}, lost {lost}"

    def note(self, snapshot, live):
        rows = sum(entry.file.row_count for entry in live)
        assert rows == snapshot.total_record_count
        real = [entry for entry in live if entry.bucket >= 0]
        self.fresh_rows = any(entry.file.level == 0 for entry in real) and self.mode.keyed
        self.counts = {}
        for entry in real:
            partition = partition_of(self, entry.partition)
            count = self.counts.setdefault(partition, entry.total_buckets)
            assert count == entry.total_buckets, "a partition has two numbers of buckets"
            limit = self.mode.options.get("dynamic-bucket.max-buckets")
            assert limit is None or entry.bucket < int(limit)


def own_names(changes):
    """Files that changes bring along and nobody else names."""
    for bucket in changes.buckets:
        for file in bucket.made_files:
            yield file.name
            yield from file.extra_files
        before = {entry.name for entry in bucket.written.deleted_index}
        for entry in (*bucket.compacted.added_index, *bucket.written.added_index):
            if entry.name not in before:
                yield entry.name


def partition_of(life, partition):
    """The value of a partition."""
    return decode([partition], [INT])[0][0].as_py() if life.mode.parted else None
