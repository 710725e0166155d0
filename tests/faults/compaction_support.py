"""Tables with something to compact, for tests that disturb compactions: what they hold, and what must be true of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa
from unit.commit.support import Clock, Ids, below

from paimon_py import Catalog, CommitUnknownError, PaimonError, SetOption, Table
from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.deletion_vectors import DeletionVector
from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.env import Env, SerialPool
from paimon_py.lsm.order import key_ranks
from paimon_py.metadata.deletion_files import DeletionWriter
from paimon_py.metadata.hash_files import read_hashes
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.change_plan import ChangeSource, plan_step
from paimon_py.scan.read import Request, read_split
from paimon_py.spec.layout import snapshot_path
from paimon_py.spec.manifest import HASH
from paimon_py.spec.snapshot import Base, CommitKind
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.testing.fault_store import FaultStore
from paimon_py.testing.store_spill import StoreSpill

WAREHOUSE = "memory://faults"
SPILL = f"{WAREHOUSE}/spill"
ROWS = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64()), ("w", pa.int64())])

Row = tuple
"""(p, k, v, w), and a row kind if it is not +I."""

State = dict
"""What a table holds: (p, k) → (v, w). An append table: row → how often."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A table and how it came about.

    `loads`: one commit each, none of which compacts. `raised`: after so many loads everything is compacted, 0 for never.
    `dead`: so many of the first rows of an append table are deleted in the end, by a deletion vector. `altered`: options
    that are set in the end. `loses_index`: the table's index files are forgotten. `moving`: the primary key is k alone,
    so keys move between partitions.
    """

    engine: str = "deduplicate"
    options: dict[str, str] = {}
    partitioned: bool = False
    loads: tuple[tuple[Row, ...], ...]
    raised: int = 0
    dead: int = 0
    altered: dict[str, str] = {}
    loses_index: bool = False
    moving: bool = False

    @property
    def tells(self) -> bool:
        """Whether compactions write a changelog."""
        return self.options.get("changelog-producer") in ("lookup", "full-compaction")

    @property
    def skips_level_0(self) -> bool:
        """Whether rows are read only once they are compacted, or published."""
        vectors = self.options.get("deletion-vectors.enabled") == "true" and self.engine != "append"
        return vectors or self.engine == "first-row" or self.options.get("bucket") == "-2"

    def after(self, state: State, rows: tuple[Row, ...]) -> State:
        """What the table holds when rows are written to it."""
        state = dict(state)
        for row in rows:
            key, new = row[:2], row[2:4]
            if self.moving:
                key = self._place(state, key, stays=self.engine != "deduplicate" or row[4:] == ("-D",))
            if self.engine == "append":
                state[row[:4]] = state.get(row[:4], 0) + 1
            elif row[4:] == ("-D",):
                state.pop(key, None)
            else:
                state[key] = merged(self.engine, state.get(key), new)
        return state

    def _place(self, state: State, key: tuple, *, stays: bool) -> tuple:
        """Where a key that may lie in any partition goes; what it leaves is deleted."""
        old = next((known for known in state if known[1] == key[1]), key)
        if stays:
            return old
        if old != key:
            del state[old]
        return key


def merged(engine: str, old: tuple | None, new: tuple) -> tuple:
    """What a merge engine makes of two rows of a key."""
    if old is None or engine == "deduplicate":
        return new
    if engine == "first-row":
        return old
    if engine == "partial-update":
        return tuple(mine if mine is not None else its for mine, its in zip(new, old))
    total, largest = ([value for value in pair if value is not None] for pair in zip(old, new))
    return sum(total) if total else None, max(largest, default=None)


ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "fields.w.aggregate-function": "max",
    },
    "first-row": {"merge-engine": "first-row"},
    "append": {},
}  # fmt: skip


def env(owner: str, store) -> Env:
    """Time goes on with every snapshot: files that wait for their bucket are published by age."""
    snapshots = getattr(store, "store", store).list(f"{WAREHOUSE}/db.db/t/snapshot")
    return Env(Clock(1_700_000_000_000 + 1000 * len(snapshots)), Ids(owner), SerialPool(), StoreSpill(store, f"{SPILL}/{owner}"))


def table_on(store, owner: str, **options: str) -> Table:
    """The table as another process would open it; `options` hold for this one alone."""
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner, store))
    schema = root.schemas.latest()
    return Table(root, msgspec.structs.replace(schema, options={**schema.options, **options}), "db.t")


def batch(rows: tuple[Row, ...]) -> pa.Table:
    made = pa.table([pa.array([row[at] for row in rows], field.type) for at, field in enumerate(ROWS)], schema=ROWS)
    if any(len(row) > 4 for row in rows):
        made = made.append_column("_row_kind", pa.array([row[4] if len(row) > 4 else "+I" for row in rows]))
    return made


@functools.cache
def _built(scene_bytes: bytes) -> tuple[MemoryStore, State, State]:
    scene = msgspec.msgpack.decode(scene_bytes, type=Scene)
    store = MemoryStore(clock=Clock())
    catalog = Catalog(store, WAREHOUSE, env=env("setup", store))
    catalog.create_database("db")
    keys = {} if scene.engine == "append" else {"primary_key": ["p", "k"] if scene.partitioned and not scene.moving else ["k"]}
    parts = {"partition_by": ["p"]} if scene.partitioned else {}
    options = {**ENGINES[scene.engine], **scene.options}
    if keys:
        options = {"bucket": "1", **options}
    catalog.create_table("db.t", ROWS, **keys, **parts, options=options)
    table = table_on(store, "setup", **{"write-only": "true"})
    state: State = {}
    seen: State = {}
    for number, rows in enumerate(scene.loads, start=1):
        rows = tuple(map(tuple, rows))
        table.write_arrow(batch(rows))
        state = scene.after(state, rows)
        if number == scene.raised:
            table.compact(full=True)
            seen = state
    if scene.dead:
        _kill(table, scene.dead)
        for row in scene.loads[0][: scene.dead]:
            del state[tuple(row)]
    if scene.altered:
        table.alter(*(SetOption(name, text) for name, text in scene.altered.items()))
    if scene.loses_index:
        for number in table._root.snapshots.ids():
            path = snapshot_path(table.location, number)
            store.put(path, json.dumps({**json.loads(store.get(path)), "indexManifest": None}).encode())
        for path in orphans(table_on(store, "setup")):
            store.delete(path)
    return store, seen if scene.skips_level_0 else state, state


def _kill(table: Table, count: int) -> None:
    """Mark the first rows of the oldest file as deleted."""
    root = table._root
    entries = root.manifests.live_entries(root.snapshots.latest()).entries()
    oldest = min(entries, key=lambda entry: entry.file.min_sequence)
    place = {"partition": oldest.partition, "bucket": oldest.bucket}
    writer = DeletionWriter(OpenTable(root, table.schema).bucket(**place))
    index = writer.write({oldest.file.name: DeletionVector.of(np.arange(count))})
    bucket = BucketChanges(**place, total_buckets=oldest.total_buckets, written=Edit(added_index=(index,)))
    table.commit(Changes(schema_id=0, base=Base.of(root.snapshots.latest()), buckets=(bucket,)))


def built(scene: Scene) -> tuple[MemoryStore, State, State]:
    """A store of one's own with the table, what is read of it, and what will be read when it is compacted."""
    store, seen, state = _built(msgspec.msgpack.encode(scene))
    return store.copy(), seen, state


def content(table: Table, scene: Scene, *, settled: bool = True) -> State:
    """What is read; each key once, in all partitions if it may move between them and everything is `settled`: rows
    that are seen only once their bucket is compacted may come into one partition before they leave the other."""
    read = table.scan().to_arrow().to_pydict()
    rows = list(zip(read["p"], read["k"], read["v"], read["w"]))
    found: State = {}
    for row in rows:
        if scene.engine == "append":
            found[row] = found.get(row, 0) + 1
        else:
            assert row[:2] not in found, f"key {row[:2]} lives twice"
            found[row[:2]] = row[2:]
    keys = sorted(key[1] for key in found)
    assert not (scene.moving and settled) or len(set(keys)) == len(keys), f"a key lies in two partitions: {sorted(found)}"
    return found


def followed(table: Table) -> State:
    """What somebody holds who followed the changelog from the first snapshot on; refuses changes that cannot be."""
    asked = Request(schema=table.schema, columns=tuple(table.schema.names), predicate=None)
    held: State = {}
    for number in table._root.snapshots.ids():
        planned = plan_step(table._root, asked, table._root.snapshots.get(number), ChangeSource.CHANGELOG)
        for row in (row for split in planned.splits for part in read_split(table._root, asked, split) for row in part.to_pylist()):
            p, k, v, w, kind = row.values()
            if kind in ("-U", "-D"):
                assert held.pop((p, k)) == (v, w), f"snapshot {number} takes back what was not there: {row}"
            else:
                assert (p, k) not in held, f"snapshot {number} adds what is there: {row}"
                held[(p, k)] = (v, w)
    return held


def check_table(table: Table, scene: Scene | None = None) -> set[str]:
    """What must hold of any table at any time: everything that snapshots name is there, levels do not overlap,
    deletion vectors and hashes are of live files, a bucket has one index file of a type, and what came in was told.

    `scene`: how the table began; its first snapshots need no second look.

    Returns: the files that snapshots name.
    """
    root = table._root
    ids = root.snapshots.ids()
    assert not ids or ids == list(range(ids[0], ids[-1] + 1)), f"gap in {ids}"
    known = {} if scene is None else _first_snapshots(msgspec.msgpack.encode(scene))
    names: set[str] = set()
    for number in ids:
        names |= known[number] if number in known else _checked(table, number, last=number == ids[-1])
    lost = names - set(below(root.store, WAREHOUSE))
    assert not lost, f"snapshots name files that are gone: {sorted(lost)}"
    return names


@functools.cache
def _first_snapshots(scene_bytes: bytes) -> dict[int, set[str]]:
    table = table_on(_built(scene_bytes)[0], "checker")
    ids = table._root.snapshots.ids()
    return {number: _checked(table, number, last=number == ids[-1]) for number in ids}


def _checked(table: Table, number: int, *, last: bool) -> set[str]:
    """Look at one snapshot; the files that it names."""
    root, schema = table._root, table.schema
    snapshot = root.snapshots.get(number)
    entries = root.manifests.live_entries(snapshot).entries()
    assert sum(entry.file.row_count for entry in entries) == snapshot.total_record_count
    live = {(entry.partition, entry.bucket, entry.file.name) for entry in entries}
    assert len(live) == len(entries), "a file is there twice"
    if schema.primary_keys:
        _check_levels(schema, entries)
    index = root.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []
    places = OpenTable(root, schema).deletion_places(index)
    assert {(*key, name) for key, files in places.items() for name in files} <= live, "a deletion vector dangles"
    buckets = [(entry.partition, entry.bucket, entry.index_type) for entry in index]
    assert not schema.primary_keys or len(set(buckets)) == len(buckets), "a bucket has two index files of a type"
    is_newest = schema.options.get("merge-engine", "deduplicate") == "deduplicate"
    if schema.options.get("changelog-producer") == "input" and is_newest:
        _check_told(table, snapshot)
    if last:
        _check_hashes(root, schema, entries, [entry for entry in index if entry.index_type == HASH])
    return _named(table, snapshot, entries, index)


def _check_told(table: Table, snapshot) -> None:
    """The changelog of a snapshot makes the rows before it those of it; overwrites have none."""
    if snapshot.commit_kind is CommitKind.OVERWRITE:
        assert snapshot.changelog_manifest_list is None, "an overwrite has a changelog"
        return
    if snapshot.id > 1 and table._root.snapshots.find(snapshot.id - 1) is None:
        return  # what was there before has expired
    before, after = (
        {} if number == 0 else {row[:2]: row[2:] for row in _rows(table.scan(snapshot_id=number))}
        for number in (snapshot.id - 1, snapshot.id)
    )
    waits = table.schema.options.get("bucket") == "-2"
    told = snapshot.commit_kind is (CommitKind.COMPACT if waits else CommitKind.APPEND)
    assert (snapshot.changelog_manifest_list is not None) <= told, "a snapshot without new rows has a changelog"
    for p, k, v, w, kind in _rows(table.changes(snapshot.id - 1, snapshot.id, mode="changelog")):
        before.pop((p, k), None)
        if kind in ("+I", "+U"):
            before[p, k] = (v, w)
    assert before == after, f"snapshot {snapshot.id} holds other rows than it tells"


def _rows(scan) -> list[tuple]:
    read = scan.to_arrow().to_pydict()
    return list(zip(*(read[name] for name in ("p", "k", "v", "w", "_row_kind") if name in read)))


def _check_levels(schema, entries) -> None:
    types = [field.type for field in schema.key_fields]
    runs: dict = {}
    for entry in entries:
        if entry.file.level:
            runs.setdefault((entry.partition, entry.bucket, entry.file.level), []).append(entry.file)
    for run in runs.values():
        lows, highs = key_ranks([file.min_key for file in run], [file.max_key for file in run], types)
        ranges = sorted(zip(lows.tolist(), highs.tolist()))
        assert all(one[1] < next_[0] for one, next_ in zip(ranges, ranges[1:])), "files of a level overlap"


def _check_hashes(root, schema, entries, index) -> None:
    """The keys of every file of a dynamic bucket are in its hash index, and no hash is in two buckets."""
    if not index:
        return
    known: dict[bytes, set[int]] = {}
    hashes = {(entry.partition, entry.bucket): set(read_hashes(OpenTable(root, schema), entry).tolist()) for entry in index}
    for (partition, _), own in hashes.items():
        assert known.setdefault(partition, set()).isdisjoint(own), "a hash is in two buckets"
        known[partition] |= own
    types = [field.type for field in schema.key_fields]
    files = OpenTable(root, schema)
    for entry in entries:
        if entry.partition not in known:
            continue
        for found in files.bucket(entry.partition, entry.bucket).stored_rows(entry.file, schema.key_fields):
            own = hashes.get((entry.partition, entry.bucket), set())
            assert set(hash_rows(found.columns, types).tolist()) <= own, "a key lacks in the index of its bucket"


def needed(table: Table) -> set[str]:
    """Paths of the metadata, data and index files that some snapshot needs."""
    root = table._root
    found: set[str] = set()
    for number in root.snapshots.ids():
        snapshot = root.snapshots.get(number)
        index = root.manifests.read_index(snapshot.index_manifest) if snapshot.index_manifest else []
        found |= _named(table, snapshot, root.manifests.live_entries(snapshot).entries(), index)
    return found


def _named(table: Table, snapshot, entries, index) -> set[str]:
    root, schema = table._root, table.schema
    found: set[str] = set()
    told = snapshot.changelog_manifest_list
    for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list, *([told] if told else [])):
        found.add(f"{root.path}/manifest/{name}")
        found |= {f"{root.path}/manifest/{file.name}" for file in root.manifests.read_list(name)}
    files = OpenTable(root, schema)
    for entry in (*entries, *(root.manifests.read_entries(root.manifests.read_list(told)).entries() if told else ())):
        found.update(files.bucket(entry.partition, entry.bucket).paths(entry.file))
    if snapshot.index_manifest:
        found.add(f"{root.path}/manifest/{snapshot.index_manifest}")
    return found | {files.index_path(entry) for entry in index}


def orphans(table: Table, named: set[str] | None = None) -> list[str]:
    """Files that no snapshot needs; `named` are those that some do, if the caller knows."""
    named = needed(table) if named is None else named
    places = ("/manifest/", "/bucket-", "/index/", "/spill/")
    return sorted(path for path in below(table._root.store, WAREHOUSE) if path not in named and any(place in path for place in places))


def unsure(outcome) -> bool:
    """Whether nobody can tell if the operation happened."""
    return outcome.crashed or isinstance(outcome.error, CommitUnknownError)


class Rival(FaultStore):
    """A store at one call of which, the `at`-th, somebody else is faster: `act` runs right before it."""

    def __init__(self, store, at: int, act: Callable[[MemoryStore], object]) -> None:
        super().__init__(store)
        self.at = at
        self.act = act
        self.result: object = None

    def _call(self, verb, path, action, *, shortened=None):
        if self.count + 1 == self.at:
            self.at = 0
            self.result = self.act(self.store)
        return super()._call(verb, path, action, shortened=shortened)


@functools.cache
def _calls_of(scene_bytes: bytes, operation: Callable[[Table], object]) -> int:
    store = FaultStore(built(msgspec.msgpack.decode(scene_bytes, type=Scene))[0])
    operation(table_on(store, "me"))
    return store.count


def calls_of(scene: Scene, operation: Callable[[Table], object]) -> int:
    """How many store calls an operation makes."""
    return _calls_of(msgspec.msgpack.encode(scene), operation)


def attempt(operation: Callable[[Table], object], table: Table) -> tuple[object, PaimonError | None]:
    try:
        return operation(table), None
    except PaimonError as error:
        return None, error
