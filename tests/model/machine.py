"""One table with a life: every verb, the model beside it, and what must hold after each step."""

from __future__ import annotations

import itertools
import random

import msgspec
import pyarrow as pa
from model.engine_models import KINDS, Stamp, Token, merged
from model.run_model import RunModel
from unit.commit.support import TABLE, Clock, Ids, below
from unit.lsm.engine_models import Row

from paimon_py import AddColumn, Catalog, CommitConflictError, Table
from paimon_py.codec.binary_row import encode
from paimon_py.codec.buckets import bucket_numbers
from paimon_py.commit.changes import Changes
from paimon_py.commit.deletion_index import index_entries
from paimon_py.compaction.task import CompactionTask
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import EMPTY_ROW
from paimon_py.spec.type_text import parse_type
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.store_spill import StoreSpill

KEYS = 16
PARTITIONS = (1, 2)
INT = parse_type("INT NOT NULL")
LOOKUPS = ("deletion-vectors.enabled", "force-lookup")
EXPIRE_SECONDS = 3600


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """When and how a table is compacted."""

    name: str
    options: dict
    columns: dict = {}

    @property
    def marks(self):
        return self.options.get("deletion-vectors.enabled") == "true"

    @property
    def flushes(self):
        """A writer flushes before it hands over."""
        return self.options.get("write-buffer-spillable") == "false"

    def goes_with(self, case):
        return not (self.marks and case.first_wins)


class Held(msgspec.Struct):
    """Work that is done but not committed: its rows as (partition, key, row)."""

    changes: Changes
    token: Token
    rows: list


class Life:
    """The table, the model and everything that is open."""

    def __init__(self, case, mode, seed):
        rng = random.Random(seed)
        self.case, self.mode = case, mode
        self.parted = rng.random() < 0.4
        keys = ["p", "k"] if self.parted else ["k"]
        self.columns = {**dict.fromkeys(keys, "INT NOT NULL"), **case.columns, **mode.columns}
        self.bucket_count = rng.choice([1, 1, 2, 3])
        self.clock = Clock()
        self.store = MemoryStore(clock=self.clock)
        self.owners = itertools.count()
        options = {"bucket": str(self.bucket_count), "file.format": rng.choice(["parquet", "parquet", "orc", "avro"])}
        self.options = {**options, **case.options, **mode.options}
        names = Catalog(self.store, "/warehouse", env=self._env())
        names.create_database("db")
        names.create_table(
            "db.t", self._schema(), primary_key=keys,
            partition_by=["p"] if self.parted else [], options={**self.options, "snapshot.num-retained.min": "100000"},
        )  # fmt: skip
        looks_up = case.first_wins or any(self.options.get(name) == "true" for name in LOOKUPS)
        self.model = RunModel(
            case, looks_up=looks_up, marks=mode.marks, expire_seconds=EXPIRE_SECONDS if mode.columns else None
        )
        self.flat_answer = case.flat and (case.flat_by_lookup or not looks_up) and not mode.columns
        self.live = {}
        self.index = {}
        self.history = {}
        self.flat = {}
        self.folded = {}
        self.named = set()
        self.held = []
        self.pending = {}
        self.renamed = {}
        self.buckets = self._bucket_table()
        self.commits = 0
        self.ahead = itertools.count(1 << 40)
        self.latest = 0
        self.moved = set()
        self.overwrites = []
        self.writer = None
        self.filling = None
        self.overwriting = None
        self.checked = None
        self.doubts = {}
        self.steps_taken = None
        self.open_table()

    def _schema(self):
        kinds = {"INT": pa.int32(), "STRING": pa.string(), "BOOLEAN": pa.bool_()}
        return pa.schema(
            [pa.field(name, kinds[text.split()[0]], nullable="NOT" not in text) for name, text in self.columns.items()]
        )

    def _env(self):
        spill = StoreSpill(MemoryStore(clock=self.clock))
        return Env(self.clock, Ids(f"o{next(self.owners)}-"), SerialPool(), spill)

    def _bucket_table(self):
        keys = pa.array(range(KEYS), pa.int32())
        return bucket_numbers([keys], [INT], self.bucket_count).tolist()

    def open_table(self):
        """As another process would open it: nothing cached."""
        root = TableRoot(self.store, f"{TABLE}", self._env())
        self.table = Table(root, root.schemas.latest(), "db.t")
        self.root = root
        self.writer = None

    @property
    def now_seconds(self):
        return self.clock.millis() // 1000

    # -- rows ---

    def rows(self, rng, size):
        """Random rows as columns, and as the model sees them."""
        kinds = [rng.choice(self.case.kinds) for _ in range(size)]
        columns = {name: [self._value(rng, name, text) for _ in range(size)] for name, text in self.columns.items()}
        return {**columns, "_row_kind": kinds}

    def _value(self, rng, name, text):
        if name == "p":
            return rng.choice(PARTITIONS)
        if name == "k":
            return rng.randrange(KEYS)
        if rng.random() < 0.25:
            return None
        if name == "age":
            return self.now_seconds - rng.choice([0, 0, 1000, 3000, 4000])
        if text == "INT":
            return rng.randrange(8)
        return rng.choice(["a", "b", "cc", "\u00e9"]) if text == "STRING" else rng.random() < 0.5

    def partition(self, columns, at):
        if not self.parted:
            return _partition(None)
        return _partition(columns["p"][at])

    def enter(self, writer, columns, token, taken):
        """Hand rows to a writer, and to the model."""
        names = list(self.columns)
        for at, kind in enumerate(columns["_row_kind"]):
            number = KINDS.index(kind)
            if number & 1 and self.case.ignore_delete:
                continue
            values = {name: columns[name][at] for name in names}
            row = Row(values, number, Stamp(token, len(taken)))
            partition, key = self.partition(columns, at), values["k"]
            taken.append((partition, key, row))
            self.pending.setdefault((partition, self.buckets[key]), []).append((key, row))
        writer.write_arrow(self.arrow(columns))

    def fill(self, writer, batches, token):
        """Write batches; returns the model's rows."""
        taken = []
        self.filling = writer
        for columns in batches:
            for piece in self._pieces(columns):
                self.enter(writer, piece, token, taken)
                self.sync()
        changes = writer.changes()
        self._take_new(changes)
        self.filling = None
        return Held(changes, token, taken)

    def _pieces(self, columns):
        """One bucket at a time where a flush in the middle has to be told from the next."""
        if not self.mode.flushes:
            return [columns]
        places = {}
        for at, key in enumerate(columns["k"]):
            places.setdefault((columns["p"][at] if self.parted else 0, self.buckets[key]), []).append(at)
        return [{name: [values[at] for at in rows] for name, values in columns.items()} for rows in places.values()]

    def sync(self):
        """Files that a writer has flushed since it was last looked at."""
        if self.filling is None or not self.mode.flushes:
            return
        for key, edit in self.filling._buckets.finished_files.items():
            self._place_new(key, edit.added)

    def _take_new(self, changes):
        for bucket in changes.buckets:
            self._place_new((bucket.partition, bucket.bucket), bucket.written.added)
        assert not any(self.pending.values()), f"rows are in no file: {self.pending}"

    def _place_new(self, key, files):
        new = [file for file in files if file.name not in self.model.files]
        if new:
            rows = self.model.flushed(self.pending.pop(key))
            assert all(file.level == 0 for file in new)
            assert not self.model.place(new, rows)

    def token(self):
        return Token(next(self.ahead))

    # -- what the code under test is seen doing ---

    def saw_task(self, run, table, task, **more):
        """A compaction is carried out.

        That of a writer may be wrong if others have committed meanwhile: then it must not be published.
        """
        if self.filling is not None:
            for key, edit in self.filling._buckets.finished_files.items():
                self._place_new(key, edit.added)
        key = (task.partition, task.bucket)
        if self.overwriting is None:
            known = self.history_levels(task.base.id).get(key, {})
            above = [level for name, level in known.items() if level > task.output_level]
            assert not (task.drop_deletes and above) or self.mode.marks, "deletes end above older rows"
        changes = run(table, task, **more)
        try:
            assert not self.doubts.keys() & {file.name for file in task.files}, "made of a compaction that was wrong"
            self.model.carry_out(task, self.steps_taken, changes, self.now_seconds)
        except AssertionError as error:
            before = {file.name for file in changes.compacted.deleted}
            self.doubts.update((file.name, error) for file in changes.compacted.added if file.name not in before)
            if self.filling is None or not self.doubts:
                raise
        return changes

    def saw_renumbering(self, run, files, bucket, offset):
        moved = run(files, bucket, offset)
        for old, new in zip(bucket.written.added, moved.added, strict=True):
            if old.name != new.name:
                self.model.files[new.name] = self.model.files[old.name]
                self.renamed[old.name] = new.name
        return moved

    # -- commits ---

    def commit(self, helds, overwrite=None):
        """Publish; nothing happens to the rows if all were compactions that came too late."""
        for held in helds:
            self.commits += 1
            held.token.number = self.commits
        try:
            self.table.commit([held.changes for held in helds], overwrite=overwrite)
        except CommitConflictError:
            assert not any(bucket.written.added for held in helds for bucket in held.changes.buckets), "rows were refused"
            for held in helds:
                self.table.writer().discard(held.changes)
        for held in helds:
            self.acknowledge(held.rows)
        self.held = [held for held in self.held if held not in helds]

    def saw_commit(self, run, table, changes, request, **more):
        result = run(table, changes, request, **more)
        self.follow(changes.buckets, result, self.overwriting)
        return result

    def held_of(self, changes):
        """A compaction that waits."""
        return Held(changes, self.token(), [])

    def compact(self, full):
        self.table.compact(full=full)

    def overwrite(self, where, columns):
        """Replace a partition, or everything."""
        if where:
            columns["p"] = [where["p"]] * len(columns["p"])
        self.overwriting = where
        try:
            with self.table.writer(overwrite=True) as writer:
                held = self.fill(writer, [columns], self.token())
            self.commit([held], overwrite=where)
        finally:
            self.overwriting = None
        self.writer = None

    def check_scan(self, rng):
        """A snapshot that was, a filter, a projection, a limit, a count."""
        number = rng.choice([self.latest, *self.history])
        rows = list(self.expected(number).values())
        low = rng.randrange(KEYS)
        names = rng.sample(list(self.history[number][2]), 2)
        value = next((name for name, text in self.columns.items() if text == "INT"), "k")
        where, holds = rng.choice(
            [
                (None, lambda row: True),
                (f"k >= {low} and k < {low + 5}", lambda row: low <= row["k"] < low + 5),
                (f"{value} = 3", lambda row: row[value] == 3),
                (f"{value} is null or k = {low}", lambda row: row[value] is None or row["k"] == low),
            ]
        )
        wanted = [{name: row[name] for name in names} for row in rows if holds(row)]
        scan = self.table.scan(snapshot_id=number, where=where, columns=names)
        _same(scan.to_arrow().to_pylist(), wanted)
        assert scan.count() == len(wanted)
        limit = rng.randrange(1, 6)
        some = self.table.scan(snapshot_id=number, where=where, columns=names, limit=limit).to_arrow().to_pylist()
        assert len(some) == min(limit, len(wanted))
        assert {repr(row) for row in some} <= {repr(row) for row in wanted}

    def arrow(self, columns):
        schema = self._schema().append(pa.field("_row_kind", pa.string()))
        return pa.table(columns, schema=schema)

    def acknowledge(self, rows):
        for partition, key, row in rows:
            self.flat.setdefault((partition, key), []).append(row)
            self.folded.pop((partition, key), None)

    def follow(self, buckets, result, overwrite=None):
        """Work out the live files after a commit, and compare."""
        if not result.snapshot_ids:
            return
        real = self.read_live()
        live = {key: dict(levels) for key, levels in self.live.items()}
        if overwrite is not None:
            self.overwrites += result.snapshot_ids
            for key in list(live):
                if overwrite == {} or key[0] == _partition(overwrite["p"]):
                    del live[key]
                    self.index.pop(key, None)
            for key in [key for key in self.flat if overwrite == {} or key[0] == _partition(overwrite["p"])]:
                del self.flat[key]
                self.folded.pop(key, None)
        for bucket in buckets:
            levels = live.setdefault((bucket.partition, bucket.bucket), {})
            there = real.get((bucket.partition, bucket.bucket), {})
            for file in bucket.written.added:
                name = self.renamed.get(file.name, file.name)
                moves = overwrite is not None and not any(each.compacted.deleted for each in buckets)
                levels[name] = there.get(name, 0) if moves else 0
        if len(result.snapshot_ids) == 2:
            self.remember(result.snapshot_ids[0], live, dict(self.index))
        older = {key: set(levels) for key, levels in self.live.items()}
        written = {key: set(levels) for key, levels in live.items()}
        moved = [each for each in buckets if any(file.name in self.renamed for file in each.written.added)]
        self.moved = {(each.partition, each.bucket) for each in moved}
        for bucket in buckets:
            known = older.setdefault((bucket.partition, bucket.bucket), set())
            others = known & written[bucket.partition, bucket.bucket]
            self._follow_compaction(bucket, live, real, None if overwrite is not None else others)
            known.update(self.renamed.get(file.name, file.name) for file in bucket.written.added)
        self.live = {key: levels for key, levels in live.items() if levels}
        assert self.live == real, f"files are {_less(real, self.live)}, not {_less(self.live, real)}"
        self.index = {key: names for key, names in self.index.items() if names}
        assert self.index == self.read_index()
        self.latest = result.snapshot_ids[-1]
        self.remember(self.latest, self.live, dict(self.index))

    def _follow_compaction(self, bucket, live, real, older):
        """`older`: files that the commit finds or brings before the new ones; None if these replaced them."""
        if not (bucket.compacted.deleted or bucket.compacted.added):
            return
        key = (bucket.partition, bucket.bucket)
        levels, there = live.setdefault(key, {}), real.get(key, {})
        before = {file.name for file in bucket.compacted.deleted}
        after = {file.name: file.level for file in bucket.compacted.added}
        fits = before <= levels.keys() and not any(file.name in self.renamed for file in bucket.written.added)
        base = tuple(entry.name for entry in bucket.compacted.deleted_index)
        fits = fits and (not self.mode.marks or base == self.index.get(key, ()))
        if older is not None and bucket.compact_base is not None:
            own = {file.name for file in bucket.written.added}
            base = self.history_levels(bucket.compact_base.id).get(key, {})
            kept = not any(number > bucket.compact_base.id for number in self.overwrites)
            fits = fits and (own.isdisjoint(before) or (kept and older <= base.keys()))
        done = fits and after.items() <= there.items() and not (before - after.keys()) & there.keys()
        spared = self._overlaps(levels, before, after) or (fits and key in self.moved)
        assert done == fits or spared, f"compaction of {key}: {fits=}, {done=}"
        if done:
            for name in self.doubts.keys() & after.keys():
                raise self.doubts[name]
            for name in before:
                levels.pop(name)
            levels.update(after)
            self.index[key] = tuple(entry.name for entry in bucket.compacted.added_index)

    def _overlaps(self, levels, before, after):
        """Whether new files would overlap others on their level."""
        try:
            self.model.check_levels({**{name: at for name, at in levels.items() if name not in before}, **after})
        except AssertionError:
            return True
        return False

    def read_live(self):
        snapshot = self.root.snapshots.latest()
        live, count = {}, 0
        for entry in self.root.manifests.live_entries(snapshot).entries():
            live.setdefault((entry.partition, entry.bucket), {})[entry.file.name] = entry.file.level
            count += entry.file.row_count
            assert entry.file.row_count == len(self.model.files[entry.file.name])
        assert count == snapshot.total_record_count
        return live

    def read_index(self):
        found = {}
        for entry in index_entries(self.root, self.root.snapshots.latest()):
            found[entry.partition, entry.bucket] = (*found.get((entry.partition, entry.bucket), ()), entry.name)
        return found

    def remember(self, snapshot_id, live, index):
        live = {key: dict(levels) for key, levels in live.items() if levels}
        self.history[snapshot_id] = (live, index, tuple(self.columns))
        self.named.update(name for levels in live.values() for name in levels)
        self.named.update(name for names in index.values() for name in names)

    def history_levels(self, snapshot_id):
        return self.history[snapshot_id][0] if snapshot_id in self.history else {}

    # -- answers ---

    def expected(self, snapshot_id, columns=None):
        """Rows by (partition, key); `columns` other than those of the snapshot's schema."""
        if snapshot_id not in self.history:
            return {}
        live, index, known = self.history[snapshot_id]
        columns = columns or known
        rows = {}
        for key, levels in live.items():
            for number, values in self.model.visible(levels, index.get(key, ())).items():
                rows[key[0], number] = {name: values.get(name) for name in columns}
        return rows

    def check(self):
        """Everything that must hold between two steps."""
        self.check_files()
        state = (self.latest, len(self.columns), self.table)
        if state == self.checked:
            return
        self.checked = state
        rows = self.expected(self.latest, self.columns)
        _same(self.table.scan().to_arrow().to_pylist(), rows.values())
        for levels in self.live.values():
            self.model.check_levels(levels)
        hidden = self.model.hides_new and any(0 in levels.values() for levels in self.live.values())
        if self.flat_answer and not hidden:
            _same(rows.values(), self.flat_rows().values())

    def flat_rows(self):
        for key, versions in self.flat.items():
            if key not in self.folded:
                self.folded[key] = merged(self.case, versions, looks_up=False)
        return {
            key: {name: row.values.get(name) for name in self.columns}
            for key, row in self.folded.items()
            if not row.kind & 1
        }

    def check_files(self):
        stored = {
            path.rsplit("/", 1)[1] for path in below(self.store, TABLE) if "/bucket-" in path or "/index/" in path
        }
        stored = {name for name in stored if not name.startswith("index-manifest")}
        held = set()
        for one in self.held:
            for bucket in one.changes.buckets:
                held.update(file.name for file in bucket.made_files)
                held.update(entry.name for entry in bucket.compacted.added_index)
        assert stored == self.named | held, f"orphans {stored - self.named - held}, lost {self.named | held - stored}"

    def add_column(self):
        name = f"n{len(self.columns)}"
        self.table.alter(AddColumn(name, "INT"))
        self.columns[name] = "INT"
        for rows in self.model.files.values():
            for row in rows.values():
                row.values.setdefault(name, None)
        for versions in self.flat.values():
            for row in versions:
                row.values.setdefault(name, None)
        self.folded.clear()
        self.writer = None

    def tasks_by_bytes(self, full):
        return [CompactionTask.from_bytes(bytes(task)) for task in self.table.compaction_tasks(full=full)]


def _same(found, wanted):
    """Fail with the rows that differ, whatever their order."""
    one, two = sorted(map(repr, found)), sorted(map(repr, wanted))
    assert one == two, f"read {[row for row in one if row not in two]}, not {[row for row in two if row not in one]}"


def _less(some, others):
    """The live files of some buckets that others lack."""
    return {key: dict(levels.items() - others.get(key, {}).items()) for key, levels in some.items()}


def _partition(value):
    if value is None:
        return EMPTY_ROW
    if value not in _PARTITIONS:
        _PARTITIONS[value] = encode([pa.array([value], pa.int32())], [INT])[0].as_py()
    return _PARTITIONS[value]


_PARTITIONS = {}
