"""Tables whose keys move between partitions, through the public verbs: every key is there once, where a model says."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.commit.support import Clock, Ids, below

from paimon_py import Catalog, Changes, CommitConflictError, PaimonError, Table, UnsupportedError, UsageError
from paimon_py.commit.commit import commit
from paimon_py.env import Env, SerialPool
from paimon_py.metadata.root import TableRoot
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.table import writing as table_writing
from paimon_py.testing.store_spill import StoreSpill

WAREHOUSE = "memory://moving"
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("p", pa.string()), ("v", pa.int64()), ("w", pa.int64())])
ENGINES = {
    "deduplicate": {},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"},
    "first-row": {"merge-engine": "first-row"},
}


def env(owner: str) -> Env:
    return Env(Clock(), Ids(owner), SerialPool(), StoreSpill(MemoryStore()))


def store_with(schema=SCHEMA, key=("k",), partitions=("p",), **options) -> MemoryStore:
    store = MemoryStore()
    names = Catalog(store, WAREHOUSE, env=env("setup"))
    names.create_database("db")
    given = {"bucket": "-1", "dynamic-bucket.target-row-num": "4", **options}
    names.create_table("db.t", schema, primary_key=list(key), partition_by=list(partitions), options=given)
    return store


def table_on(store, owner: str = "w") -> Table:
    root = TableRoot(store, f"{WAREHOUSE}/db.db/t", env(owner))
    return Table(root, root.schemas.latest(), "db.t")


def rows(*given):
    """Rows (k, p, v[, w[, kind]])."""
    full = [(*row, *(None, "+I")[len(row) - 3 :]) if len(row) < 5 else row for row in given]
    made = pa.table({name: [row[at] for row in full] for at, name in enumerate(SCHEMA.names)}, schema=SCHEMA)
    return made.append_column("_row_kind", pa.array([row[4] for row in full], pa.string()))


def state(table: Table) -> dict[int, tuple]:
    """The rows by key; each key is there once."""
    if table.options.get("merge-engine") == "first-row":
        table.compact()
    read = table.scan().to_arrow().to_pylist()
    found = {row["k"]: (row["p"], row["v"], row["w"]) for row in read}
    assert len(found) == len(read), "a key lies in two places"
    return found


class Model:
    """What a table holds, and where its writer believes keys to be."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.rows: dict[int, tuple] = {}
        self.places: dict[int, str] = {}

    def reopen(self) -> None:
        """A new writer knows the keys that are alive."""
        self.places = {key: row[0] for key, row in self.rows.items()}

    def write(self, key, p, v, w, kind) -> None:
        known = self.places.get(key)
        if self.engine == "deduplicate":
            self.places[key] = p
            self.rows.pop(key, None)
            if kind == "+I":
                self.rows[key] = (p, v, w)
            return
        place = self.places.setdefault(key, p)
        old = self.rows.get(key)
        if self.engine == "first-row":
            if old is None and known is None:
                self.rows[key] = (p, v, w)
        elif kind == "-D":
            self.rows.pop(key, None)
        elif self.engine == "partial-update":
            before = old or (place, None, None)
            self.rows[key] = (place, *(new if new is not None else kept for new, kept in zip((v, w), before[1:])))
        else:
            total = [value for value in (v, old and old[1]) if value is not None]
            self.rows[key] = (place, sum(total) if total else None, w if w is not None else old and old[2])


def life(engine: str, seed: int, *, options=None, commits: int = 5, batches: int = 3, keys: int = 25) -> None:
    """Random batches, over several commits of a writer and over several writers."""
    rng = random.Random(seed)
    store = store_with(**ENGINES[engine], **(options or {}))
    model = Model(engine)
    writer = None
    kinds = ["+I", "+I", "+I", "-D"] if engine == "deduplicate" else ["+I"]
    number = 0
    for turn in range(commits):
        table = table_on(store, f"c{turn}-")
        if writer is None or rng.random() < 0.4:
            model.reopen()
            writer = table.writer()
        for _ in range(rng.randint(1, batches)):
            given = []
            for _ in range(rng.randint(1, 30)):
                number += 1
                p = rng.choice(["a", "b", "c", None])
                v, w = (rng.choice([number, None]) for _ in range(2))
                kind = rng.choice(kinds)
                if kind == "-D":
                    v = w = None  # a partial update would begin with the values of a delete without a row
                given.append((rng.randrange(keys), p, v, w, kind))
            for row in given:
                model.write(*row)
            writer.write_arrow(rows(*given))
        table.commit(writer.changes())
        if rng.random() < 0.3:
            table.compact(full=rng.random() < 0.5)
        assert state(table) == model.rows, f"seed {seed}, after commit {turn}"
    asked = list(range(keys))
    found = table_on(store, "r").lookup(asked).to_pylist()
    assert {row["k"]: row["p"] for row in found} == {key: row[0] for key, row in model.rows.items()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", range(2))
def test_a_random_life_ends_as_the_model_says(engine, seed):
    life(engine, seed)


@pytest.mark.parametrize(
    "options",
    [
        {"write-only": "true"},
        {"deletion-vectors.enabled": "true"},
        {"lookup.cache-max-memory-size": "8 b"},
        {"file.format": "avro", "ignore-update-before": "true"},
        {"num-sorted-run.compaction-trigger": "2"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_so_it_does_with_other_options(options):
    life("deduplicate", 100, options=options)
    if "deletion-vectors.enabled" not in options:
        life("partial-update", 101, options=options)


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_many_random_lives_end_as_the_model_says(engine):
    for seed in range(1_000, 1_060):
        life(engine, seed, commits=15, keys=random.Random(seed).choice([5, 25, 100]))


def places(table: Table) -> list[tuple]:
    """Partition, bucket, rows and deletes of every live file."""
    entries = [entry for manifest in table.snapshot().manifests() for entry in manifest.entries()]
    return sorted((e.partition, e.bucket, e.file.row_count, e.file.delete_row_count) for e in entries)


def test_a_row_that_moves_leaves_a_delete_with_its_values_behind():
    store = store_with(**{"write-only": "true"})
    table = table_on(store)
    table.write_arrow(rows((1, "a", 10), (2, "a", 20)))
    table.write_arrow(rows((1, "b", 11)))
    assert state(table) == {1: ("b", 11, None), 2: ("a", 20, None)}
    assert [(bucket, count, dead) for _, bucket, count, dead in places(table)] == [(0, 1, 1), (0, 2, 0), (0, 1, 0)]


def test_rows_of_one_batch_may_go_to_and_fro():
    table = table_on(store_with())
    table.write_arrow(rows((1, "a", 1), (1, "b", 2), (1, "a", 3), (2, "b", 4), (2, "b", 5), (1, "c", 6), (2, "a", 7)))
    assert state(table) == {1: ("c", 6, None), 2: ("a", 7, None)}
    table.write_arrow(rows((1, "a", 8), (1, "c", 9), (2, "b", 10), (2, "a", 11), (2, "a", 12, None, "-D")))
    assert state(table) == {1: ("c", 9, None)}


def test_a_delete_finds_its_row_in_another_partition():
    table = table_on(store_with())
    table.write_arrow(rows((1, "a", 1), (2, "a", 2)))
    table.write_arrow(rows((1, "b", None, None, "-D"), (3, "c", None, None, "-D")))
    assert state(table) == {2: ("a", 2, None)}


def test_buckets_fill_up_and_moved_keys_make_room():
    table = table_on(store_with(**{"write-only": "true"}))
    table.write_arrow(rows(*((k, "a", k) for k in range(10))))
    assert [(bucket, count) for _, bucket, count, _ in places(table)] == [(0, 4), (1, 4), (2, 2)]
    table.write_arrow(rows((0, "b", 0), (10, "a", 10), (11, "a", 11)))
    buckets = sorted((bucket, count, dead) for _, bucket, count, dead in places(table))
    assert buckets == [(0, 1, 0), (0, 2, 1), (0, 4, 0), (1, 4, 0), (2, 1, 0), (2, 2, 0)], "10 took the place of 0"


def test_a_key_may_hold_some_of_the_partition_keys():
    schema = pa.schema(
        [pa.field("p", pa.int32(), nullable=False), pa.field("q", pa.string()), pa.field("k", pa.string(), nullable=False),
         ("v", pa.int64())]
    )  # fmt: skip
    table = table_on(store_with(schema, ("p", "k"), ("p", "q")))
    for given in ([(1, "a", "x", 1), (2, "a", "x", 2)], [(1, "b", "x", 3), (1, "b", "y", 4)], [(2, "b", "x", 5)]):
        table.write_arrow(pa.table({n: [r[i] for r in given] for i, n in enumerate(schema.names)}, schema=schema))
    read = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    assert read == [(1, "b", "x", 3), (1, "b", "y", 4), (2, "b", "x", 5)]
    found = table.lookup([{"p": 1, "k": "x"}, {"p": 2, "k": "y"}]).to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, "b", "x", 3)]


def test_old_keys_are_forgotten_after_the_time_to_live():
    store = store_with(**{"cross-partition-upsert.index-ttl": "1 h"})
    table_on(store).write_arrow(rows((1, "a", 1)))
    late = table_on(store, "late")
    late._root.env.clock.seconds = 3_000.0
    late.write_arrow(rows((1, "b", 2)))
    assert state(late) == {1: ("b", 2, None)}
    last = table_on(store, "last")
    last._root.env.clock.seconds = 10_000.0
    last.write_arrow(rows((1, "c", 3)))
    assert len(last.scan().to_arrow()) == 2, "as in Java: b is too old to be looked for"


# -- others --------------------------------------------------------------------------------------------------------------


def raced(first_rows, second_rows):
    """Two writers that saw the same table; the first one has committed."""
    store = store_with()
    table_on(store, "base").write_arrow(rows((1, "a", 1), (2, "a", 2)))
    first, second = table_on(store, "a"), table_on(store, "b")
    with second.writer() as writer:
        writer.write_arrow(rows(*second_rows))
        changes = writer.changes()
    first.write_arrow(rows(*first_rows))
    return store, second, writer, changes


@pytest.mark.parametrize("key", [1, 7], ids=["a known key", "a new key"])
def test_of_two_writers_with_one_key_the_first_one_wins(key):
    store, second, writer, changes = raced([(key, "b", 10)], [(key, "c", 20)])
    with pytest.raises(CommitConflictError, match="write the rows again with a new writer"):
        second.commit(changes)
    writer.discard(changes)
    assert state(second)[key] == ("b", 10, None)
    second.write_arrow(rows((key, "c", 20)))
    assert state(second)[key] == ("c", 20, None)
    assert len(state(second)) == len({1, 2, key})


def test_a_table_is_written_again_when_others_were_faster_but_a_stream_cannot_be(monkeypatch):
    store = store_with()
    table_on(store, "base").write_arrow(rows((1, "a", 1)))
    slow = table_on(store, "slow")
    others = iter([rows((1, "b", 2)), rows((1, "c", 3)), rows((1, "a", 4))])

    def late(opened, *given):
        other = next(others, None) if opened.root is slow._root else None
        if other is not None:
            table_on(store, f"fast{len(other)}-{slow.snapshot().id}").write_arrow(other)
        return commit(opened, *given)

    monkeypatch.setattr(table_writing, "commit", late)
    slow.write_arrow(rows((1, "d", 5)))
    assert state(slow) == {1: ("d", 5, None)}
    others = iter([rows((1, "b", 6))])
    with pytest.raises(CommitConflictError):
        slow.write_arrow(rows((1, "d", 7)).to_reader())
    assert state(slow) == {1: ("b", 6, None)}


def test_compactions_of_others_do_not_conflict():
    store = store_with(**{"write-only": "true"})
    table_on(store, "base").write_arrow(rows((1, "a", 1)))
    table_on(store, "base2").write_arrow(rows((1, "b", 2)))
    table = table_on(store)
    with table.writer() as writer:
        writer.write_arrow(rows((1, "c", 3)))
        assert table_on(store, "care").compact(full=True).snapshot_id is not None
        table.commit(writer.changes())
        writer.write_arrow(rows((1, "a", 4)))
        table.commit(writer.changes())
    assert state(table) == {1: ("a", 4, None)}


def test_one_writer_commits_in_rounds_without_reading_keys_again():
    store = store_with()
    table = table_on(store)
    with table.writer() as writer:
        for number in range(12):
            writer.write_arrow(rows((number % 3, "abc"[number % 2], number)))
            changes = writer.changes()
            assert changes.keys.files == ()
            assert changes.keys.base.id == (table._root.snapshots.latest_id() or 0)
            table.commit(changes)
    assert {key: row[1] for key, row in state(table).items()} == {0: 9, 1: 10, 2: 11}


def test_rounds_may_be_committed_together_or_later_but_in_their_order():
    store = store_with()
    table = table_on(store)
    with table.writer() as writer:
        parts = []
        for p in "abcd":
            writer.write_arrow(rows((1, p, ord(p))))
            parts.append(Changes.from_bytes(bytes(writer.changes())))
    with pytest.raises(CommitConflictError, match="were not committed"):
        table.commit(parts[1])
    table.commit(parts[:2])
    with pytest.raises(CommitConflictError, match="were not committed"):
        table.commit(parts[3])
    table.commit(parts[2])
    table.commit(parts[3])
    assert state(table) == {1: ("d", ord("d"), None)}


def test_changes_that_were_committed_with_later_ones_are_not_committed_again():
    table = table_on(store_with())
    with table.writer() as writer:
        writer.write_arrow(rows((1, "a", 1)))
        first = writer.changes()
        writer.write_arrow(rows((2, "a", 1)))
        second = writer.changes()
        with pytest.raises(CommitConflictError):
            table.commit(second)
        table.commit([first, second])
        assert table.commit(first).already_committed
    assert set(state(table)) == {1, 2}


def test_changes_of_several_writers_are_not_committed_together():
    table = table_on(store_with())
    with table.writer() as one, table.writer() as two:
        one.write_arrow(rows((1, "a", 1)))
        two.write_arrow(rows((1, "b", 2)))
        parts = [one.changes(), two.changes()]
    with pytest.raises(UsageError, match="several writers"):
        table.commit(parts)


def test_a_writer_whose_changes_were_discarded_takes_no_more_rows():
    store = store_with()
    table = table_on(store)
    with table.writer() as writer:
        writer.write_arrow(rows((1, "a", 1)))
        writer.discard(writer.changes())
        with pytest.raises(UsageError, match="open a new writer"):
            writer.write_arrow(rows((1, "b", 1)))
    assert below(store, f"{WAREHOUSE}/db.db/t/p=a") == []


def test_a_key_in_two_partitions_is_named():
    store = store_with()
    table = table_on(store)
    table.write_arrow(rows((1, "a", 1)))
    fixed = table_on(store, "other")
    fixed._schema = _with_options(fixed.schema, bucket="1")
    fixed.write_arrow(rows((1, "b", 2)))
    with pytest.raises(PaimonError, match=r"the key k=1 more than once, in p=a and p=b"):
        table_on(store, "late").write_arrow(rows((5, "a", 5)))


def _with_options(schema, **options):
    import msgspec

    return msgspec.structs.replace(schema, options={**schema.options, **options})


# -- overwriting, dropping -----------------------------------------------------------------------------------------------


def filled():
    store = store_with()
    table = table_on(store)
    table.write_arrow(rows((1, "a", 1), (2, "b", 2), (3, "c", 3)))
    return store, table


def test_the_whole_table_can_be_overwritten():
    _, table = filled()
    table.write_arrow(rows((1, "b", 10), (4, "a", 40), (4, "c", 41)), overwrite={})
    assert state(table) == {1: ("b", 10, None), 4: ("c", 41, None)}
    with table.writer(overwrite=True) as writer:
        writer.write_arrow(rows((4, "a", 5)))
        changes = writer.changes()
    with pytest.raises(CommitConflictError):
        table.commit(changes)
    table.commit(changes, overwrite={})
    assert state(table) == {4: ("a", 5, None)}


@pytest.mark.parametrize("overwrite", [{"p": "a"}, "dynamic"])
def test_parts_of_it_cannot(overwrite):
    store, table = filled()
    before = below(store, WAREHOUSE)
    with pytest.raises(UnsupportedError, match="drop_partitions"):
        table.write_arrow(rows((1, "a", 10)), overwrite=overwrite)
    assert below(store, WAREHOUSE) == before


def test_rows_written_concurrently_do_not_replace_others():
    _, table = filled()
    with table.writer() as writer:
        writer.write_arrow(rows((1, "b", 10)))
        changes = writer.changes()
    with pytest.raises(UsageError, match=r"writer\(overwrite=True\)"):
        table.commit(changes, overwrite={})
    assert len(state(table)) == 3


def test_dropped_partitions_and_a_truncated_table_forget_their_keys():
    store, table = filled()
    with table.writer() as writer:
        writer.write_arrow(rows((1, "c", 9)))
        changes = writer.changes()
    table.drop_partitions([{"p": "a"}])
    assert set(state(table)) == {2, 3}
    with pytest.raises(CommitConflictError):
        table.commit(changes)
    table.write_arrow(rows((1, "c", 5)))
    assert state(table)[1] == ("c", 5, None)
    table.truncate()
    assert state(table) == {}
    table_on(store, "n").write_arrow(rows((1, "a", 6), (2, "a", 7)))
    assert state(table) == {1: ("a", 6, None), 2: ("a", 7, None)}


# -- other verbs -----------------------------------------------------------------------------------------------------------


def test_rows_are_deleted_updated_and_merged_where_they_are():
    _, table = filled()
    assert table.update("v >= 2", {"w": 7}).updated == 2
    assert table.delete("k = 1").deleted == 1
    assert state(table) == {2: ("b", 2, 7), 3: ("c", 3, 7)}
    with pytest.raises(UsageError, match="decide where a row is"):
        table.update("k = 2", {"p": "z"})
    source = pa.table({"k": [2, 5], "v": [20, 50]}, schema=pa.schema([("k", pa.int64()), ("v", pa.int64())]))
    table.merge(source, on=["k"], when_matched_update={"v": "source.v"},
                when_not_matched_insert={"k": "source.k", "p": "'n'", "v": "source.v"})  # fmt: skip
    assert state(table)[2] == ("b", 20, 7)
    assert state(table)[5][1] == 50


def test_an_upsert_moves_rows():
    _, table = filled()
    table.upsert(rows((1, "z", 11), (9, "z", 99)).drop_columns(["_row_kind"]))
    assert state(table) == {1: ("z", 11, None), 2: ("b", 2, None), 3: ("c", 3, None), 9: ("z", 99, None)}


def test_the_number_of_buckets_and_of_writers_cannot_be_chosen():
    store, table = filled()
    before = below(store, WAREHOUSE)
    with pytest.raises(PaimonError):
        table.rescale(4)
    with pytest.raises(UsageError, match="cross-partition table"):
        table.writer(share=(0, 2))
    with pytest.raises(UsageError, match="cross-partition table"):
        table.writer_numbers(rows((1, "a", 1)).drop_columns(["_row_kind"]), 2)
    assert below(store, WAREHOUSE) == before


def test_deletes_cannot_be_ignored_where_moves_need_them():
    store = store_with()
    before = below(store, WAREHOUSE)
    table = table_on(store)
    table._schema = _with_options(table.schema, **{"ignore-delete": "true"})
    with pytest.raises(UnsupportedError, match="ignore-delete"):
        table.write_arrow(rows((1, "a", 1)))
    assert below(store, WAREHOUSE) == before
