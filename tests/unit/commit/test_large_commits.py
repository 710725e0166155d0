"""Changes of very many files are packed: the same commits, byte by byte, as with an object for each file."""

import random

import pytest
from unit.commit.support import (
    APPEND,
    KEYED,
    PARTITIONED,
    TABLE,
    below,
    bucket_changes,
    changes_of,
    data_file,
    do_commit,
    new_store,
    place,
    root_on,
    row,
    schema,
    unaware,
)

from paimon_py.commit import drafts
from paimon_py.commit.changes import Changes, Edit
from paimon_py.commit.commit import DynamicOverwrite
from paimon_py.errors import PaimonError, UsageError
from paimon_py.spec import packed as packing
from paimon_py.spec.packed import PackedList

TRACKED = schema(options={"row-tracking.enabled": "true"})
STAMPED = schema(primary_key=["k"], options={"bucket": "4", "sequence.snapshot-ordering": "true"})
POSTPONED = schema(primary_key=["k"], options={"bucket": "-2"})
KEYS = {"keys": (1, 5)}


def file(chosen, name, **more):
    rows = chosen.randrange(1, 5)
    return data_file(name, rows=rows, sequences=(0, rows - 1), **more)


def histories():
    """For each kind of table: its schema, and how the changes of one commit are made of a random source."""
    def unaware_files(chosen, number):
        return [unaware(*(file(chosen, f"f{number}-{at}-{i}") for i in range(chosen.randrange(1, 4)))) for at in range(5)]

    def keyed(chosen, number, **where):
        return [bucket_changes(file(chosen, f"f{number}-{at}", **KEYS), **where) for at in range(5)]

    def partitioned(chosen, number):
        return [
            bucket_changes(file(chosen, f"f{number}-{at}", **KEYS), partition=row(chosen.randrange(3)), total_buckets=1)
            for at in range(5)
        ]

    def in_buckets(chosen, number):
        return [bucket_changes(file(chosen, f"f{number}-{at}", **KEYS), bucket=at % 4, total_buckets=4) for at in range(6)]

    def waiting(chosen, number):
        return [
            bucket_changes(file(chosen, f"f{number}-{at}", **KEYS), bucket=-2, total_buckets=-2) for at in range(5)
        ]

    return {
        "append": (APPEND, unaware_files, {}), "keyed": (KEYED, keyed, {}), "partitions": (PARTITIONED, partitioned, {}),
        "row ids": (TRACKED, unaware_files, {}), "numbered by snapshot": (STAMPED, in_buckets, {}),
        "postponed": (POSTPONED, waiting, {}),
        "overwritten": (PARTITIONED, partitioned, {"overwrite": DynamicOverwrite()}),
    }  # fmt: skip


def files_of(store):
    return {path: store.get(path) for path in below(store, TABLE)}


def life(name, seed):
    """Some commits, one of them twice, some behind the back of others: all files of the table, and the results."""
    table_schema, make, request = histories()[name]
    chosen = random.Random(seed)
    store, results = new_store(table_schema), []
    for number in range(4):
        base = chosen.randrange(max(0, number - 1), number + 1) if number else 0
        handed = [bytes(changes_of(one, base=base)) for one in make(chosen, number)]
        changes = Changes.concat(map(Changes.from_bytes, handed))
        assert isinstance(changes.buckets, PackedList) is (packing.PART_WEIGHT == 1)
        place(store, table_schema, changes)
        again = [changes] if chosen.random() < 0.5 else []
        for given in (changes, *again):
            try:
                results.append(do_commit(root_on(store, f"{number}-{len(results)}-"), table_schema, given, **request))
            except PaimonError as error:
                results.append((type(error), str(error)))
    return files_of(store), results


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", histories())
def test_packed_changes_make_the_same_table(name, seed, monkeypatch):
    monkeypatch.setattr(drafts, "_ENTRIES_PER_MANIFEST", 3)
    want = life(name, seed)
    monkeypatch.setattr(packing, "PART_WEIGHT", 1)
    found = life(name, seed)
    assert found[1] == want[1]
    assert found[0].keys() == want[0].keys()
    different = [path for path in want[0] if found[0][path] != want[0][path]]
    assert different == []


@pytest.mark.parametrize("packs", [False, True])
def test_packed_compactions_fit_or_are_dropped_like_others(packs, monkeypatch):
    monkeypatch.setattr(packing, "PART_WEIGHT", 1 if packs else 100)
    table_schema = schema(primary_key=["k"], options={"bucket": "3"})
    store = new_store(table_schema)
    olds = [data_file(f"old{at}", **KEYS) for at in range(3)]
    first = changes_of(*(bucket_changes(old, bucket=at, total_buckets=3) for at, old in enumerate(olds)))
    place(store, table_schema, first)
    do_commit(root_on(store, "a"), table_schema, first)

    def compacted(at, old):
        edit = Edit(deleted=(old,), added=(data_file(f"new{at}", level=5, **KEYS),))
        return bucket_changes(bucket=at, total_buckets=3, compacted=edit)

    mine = changes_of(compacted(0, olds[0]), compacted(1, data_file("gone", **KEYS)), compacted(2, olds[2]), base=1)
    mine = Changes.from_bytes(bytes(mine))
    assert isinstance(mine.buckets, PackedList) is packs
    place(store, table_schema, mine)
    done = do_commit(root_on(store, "b"), table_schema, mine)
    assert done.dropped_buckets == ((row(), 1),)
    root = root_on(store, "reader")
    assert sorted(root.manifests.live_entries(root.snapshots.latest()).names().to_pylist()) == ["new0", "new2", "old1"]
    assert do_commit(root_on(store, "c"), table_schema, mine).already_committed


def test_a_file_given_twice_is_found_in_packed_changes(monkeypatch):
    monkeypatch.setattr(packing, "PART_WEIGHT", 1)
    store = new_store(APPEND)
    parts = [changes_of(unaware(data_file(name))) for name in ("a", "b", "c", "b")]
    changes = Changes.concat(iter(parts))
    assert (changes.file_count, changes.row_count) == (4, 4)
    place(store, APPEND, changes)
    with pytest.raises(UsageError, match="given twice .file b."):
        do_commit(root_on(store), APPEND, changes, check_files=True)


def test_changes_are_compressed_where_it_saves_memory():
    files = [unaware(*(data_file(f"data-{at}-{i}.parquet") for i in range(50))) for at in range(20)]
    changes = changes_of(*files)
    assert len(bytes(changes)) < 20_000
    assert Changes.from_bytes(bytes(changes)) == changes
