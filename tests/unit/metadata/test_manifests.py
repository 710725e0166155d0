"""Manifests of a table: reading with pruning, folding, caching, writing, merging."""

import random

import msgspec
import numpy as np
import pytest
from unit.codec.manifest.manifest_entries import added, entry, fold, row

from paimon_py.codec.snapshot_json import snapshot_to_json
from paimon_py.env import Env, SerialPool
from paimon_py.errors import CorruptionError, SnapshotExpiredError, StorageError
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.manifest_cache import ManifestCache
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.metadata.manifests import Manifests
from paimon_py.spec.data_file import EMPTY_ROW, FileKind, ManifestEntry
from paimon_py.spec.manifest import IndexEntry
from paimon_py.spec.snapshot import CommitKind, Snapshot
from paimon_py.spec.types import Atomic, Root
from paimon_py.storage.memory_store import MemoryStore

ROOT = "/w/t"
BIGINT = Atomic(Root.BIGINT)


class Gets(MemoryStore):
    """Counts what is read."""

    def __init__(self):
        super().__init__()
        self.read = []

    def get(self, path):
        self.read.append(path.rpartition("/")[2])
        return super().get(path)


def manifests(store=None, root=ROOT, **more) -> Manifests:
    store = store or MemoryStore()
    store.make_directory(root)
    return Manifests(store, root, Env(pool=SerialPool()), **more)


def deleted(one: ManifestEntry) -> ManifestEntry:
    return msgspec.structs.replace(one, kind=FileKind.DELETE)


def snapshot_of(made: Manifests, base, delta) -> Snapshot:
    (base_name, _), (delta_name, _) = made.write_list(base), made.write_list(delta)
    return Snapshot(
        id=1,
        schema_id=0,
        base_manifest_list=base_name,
        delta_manifest_list=delta_name,
        commit_user="u",
        commit_identifier=1,
        commit_kind=CommitKind.APPEND,
        time_millis=1,
    )


def names(entries) -> list[str]:
    return sorted(one.file.name for one in entries)


def test_written_entries_are_read_back_through_lists():
    made = manifests()
    first, second = [entry(number, kind=FileKind.ADD) for number in range(70)], [added(500), added(501)]
    types = []
    files = [made.write_manifest(part, types) for part in (first, second)]
    snapshot = snapshot_of(made, files[:1], files[1:])
    assert made.base_and_delta(snapshot) == files
    assert made.read_list(snapshot.delta_manifest_list) == files[1:]
    assert made.read_entries(files).entries() == first + second
    assert made.live_entries(snapshot).entries() == first + second


def test_names_are_unique_and_show_the_kind_of_file():
    made = manifests()
    written = [made.write_manifest([added(1)], []).name for _ in range(3)]
    lists = [made.write_list([])[0] for _ in range(3)]
    indexes = [made.write_index([])[0] for _ in range(3)]
    assert len({*written, *lists, *indexes}) == 9
    assert all(name.startswith("manifest-") and not name.startswith("manifest-list") for name in written)
    assert all(name.startswith("manifest-list-") for name in lists)
    assert all(name.startswith("index-manifest-") for name in indexes)


def test_sizes_are_those_of_the_files():
    store = MemoryStore()
    made = manifests(store)
    file = made.write_manifest([added(1)], [])
    name, size = made.write_list([file])
    assert store.stat(f"{ROOT}/manifest/{file.name}").size_bytes == file.size_bytes
    assert store.stat(f"{ROOT}/manifest/{name}").size_bytes == size


def test_index_manifest_is_read_back():
    made = manifests()
    one = IndexEntry(
        kind=FileKind.ADD, partition=EMPTY_ROW, bucket=0, index_type="HASH", name="index-1", size_bytes=1, row_count=2
    )
    assert made.read_index(made.write_index([one])[0]) == [one]


def test_deleted_files_are_dead_and_upgraded_ones_are_live_once():
    made = manifests()
    old = [added(number) for number in range(60)]
    up = [msgspec.structs.replace(one, file=msgspec.structs.replace(one.file, level=5)) for one in old[:5]]
    files = [
        made.write_manifest(old, []),
        made.write_manifest([*map(deleted, old[:10]), *up], []),
        made.write_manifest([added(100)], []),
    ]
    assert made.live(files).entries() == [*old[10:], *up, added(100)]
    assert len(made.read_entries(files)) == 60 + 15 + 1


@pytest.mark.parametrize(
    ("entry_filter", "wanted", "opened"),
    [
        (None, lambda one: True, 3),
        (EntryFilter(buckets=frozenset((1, 77))), lambda one: one.bucket == 1, 2),
        (EntryFilter(buckets=frozenset((77,))), lambda one: False, 0),
        (EntryFilter(level_min=3), lambda one: one.file.level >= 3, 1),
        (EntryFilter(level_max=2), lambda one: one.file.level <= 2, 3),
        (EntryFilter(level_min=1, level_max=2), lambda one: 1 <= one.file.level <= 2, 2),
        (
            EntryFilter(partitions=lambda rows: np.array([value == row(4) for value in rows.to_pylist()])),
            lambda one: one.partition == row(4),
            3,
        ),
        (
            EntryFilter(manifests=lambda files: np.array([file.min_bucket == 0 for file in files])),
            lambda one: one.bucket != 1 or one.file.level != 0,
            2,
        ),
        (
            EntryFilter(keep=lambda columns: columns.row_count > 500_000),
            lambda one: one.file.row_count > 500_000,
            3,
        ),
        (
            EntryFilter(buckets=frozenset((0,)), level_min=1, keep=lambda columns: np.zeros(len(columns), np.bool_)),
            lambda one: False,
            2,
        ),
    ],
)
def test_a_filter_skips_manifests_before_opening_them_if_possible(entry_filter, wanted, opened):
    store = Gets()
    made = manifests(store)
    parts = [
        [added(number, bucket=number % 3, level=number % 3, partition=row(number % 7)) for number in range(60)],
        [added(number, bucket=0, level=number % 6, partition=row(4)) for number in range(60, 80)],
        [added(number, bucket=1, level=0, partition=row(2)) for number in range(80, 90)],
    ]
    gone = [one for part in parts for one in part if int(one.file.size_bytes) % 4 == 0]
    parts[0] = parts[0] + [deleted(one) for one in gone if one in parts[0]]
    parts[1] = parts[1] + [deleted(one) for one in gone if one in parts[1]]
    parts[2] = parts[2] + [deleted(one) for one in gone if one in parts[2]]
    files = [made.write_manifest(part, [BIGINT]) for part in parts]
    store.read.clear()
    found = manifests(store).live(files, entry_filter).entries()
    assert names(found) == names(one for part in parts for one in fold(part) if wanted(one))
    assert len(store.read) == opened


def test_pruning_by_key_does_not_revive_a_deleted_file():
    made = manifests()
    one = added(1)
    stripped = msgspec.structs.replace(deleted(one), file=msgspec.structs.replace(one.file, min_key=row(-5)))
    files = [made.write_manifest([one, added(2)], []), made.write_manifest([stripped], [])]

    def above_zero(columns):
        buffer, starts = columns.rows("min_key")
        return np.array([int.from_bytes(bytes(buffer[at + 12 : at + 20]), "little", signed=True) > 0 for at in starts])

    assert made.live(files, EntryFilter(keep=above_zero)).entries() == [added(2)]


def test_manifests_are_read_once():
    store = Gets()
    made = manifests(store)
    files = [made.write_manifest([added(number), added(number + 100)], []) for number in range(5)]
    snapshot = snapshot_of(made, files[:4], files[4:])
    assert len(made.live_entries(snapshot)) == 10 and store.read == []
    writer, made = made, manifests(store)
    first = made.live_entries(snapshot)
    assert len(store.read) == 7
    assert made.live_entries(snapshot).entries() == first.entries()
    assert made.live(files[1:3]).entries() == first.entries()[2:6]
    assert made.live([files[4], files[0]]).entries() == [*first.entries()[8:], *first.entries()[:2]]
    assert len(store.read) == 7
    new = writer.write_manifest([added(7)], [])
    assert made.live([*files, new]).entries() == [*first.entries(), added(7)]
    assert len(store.read) == 8
    assert made.live([new, files[0]]).entries() == [added(7), *first.entries()[:2]]
    assert len(store.read) == 8


def test_cache_is_bounded_and_still_right():
    store = Gets()
    made = manifests(store, cache_bytes=30_000)
    parts = [[added(100 * at + number) for number in range(20)] for at in range(8)]
    files = [made.write_manifest(part, []) for part in parts]
    for chosen in ([0], [1], [2], [0, 1], [3, 4], [5], [0], list(range(8)), [2]):
        expected = [one for at in chosen for one in parts[at]]
        assert made.live([files[at] for at in chosen]).entries() == expected
        assert made._cache.nbytes <= 30_000
    store.read.clear()
    made.live([files[2]])
    assert store.read == []


def test_remote_tables_read_manifests_through_the_pool():
    class Pool:
        calls = 0

        def map(self, function, items):
            self.calls += 1
            return map(function, items)

    store, pool = MemoryStore(), Pool()
    store.make_directory("s3://bucket/t")
    made = Manifests(store, "s3://bucket/t", Env(pool=pool))
    files = [made.write_manifest([added(number)], []) for number in range(3)]
    assert len(Manifests(store, "s3://bucket/t", Env(pool=pool)).live(files)) == 3
    assert pool.calls == 1


def test_a_manifest_with_other_counts_than_in_its_list_is_corruption():
    made = manifests()
    file = made.write_manifest([added(1), added(2)], [])
    for changes in ({"added_files": 3}, {"added_files": 1, "deleted_files": 1}):
        with pytest.raises(CorruptionError, match="its list says") as caught:
            manifests(made._store).live([msgspec.structs.replace(file, **changes)])
        assert caught.value.path.endswith(file.name)


def test_missing_file_means_expired_or_corrupt():
    store = MemoryStore()
    made = manifests(store)
    file = made.write_manifest([added(1)], [])
    snapshot = snapshot_of(made, [file], [])
    store.put(f"{ROOT}/snapshot/snapshot-1", snapshot_to_json(snapshot))
    made.delete([file.name])
    with pytest.raises(CorruptionError, match=file.name):
        made.live_entries(snapshot)
    store.delete(f"{ROOT}/snapshot/snapshot-1")
    with pytest.raises(SnapshotExpiredError, match="tag"):
        made.live_entries(snapshot)
    made.delete([snapshot.base_manifest_list])
    with pytest.raises(SnapshotExpiredError):
        manifests(store).base_and_delta(snapshot)


def test_hostile_name_in_a_list_is_corruption():
    made = manifests()
    file = msgspec.structs.replace(made.write_manifest([added(1)], []), name="../../etc/passwd")
    with pytest.raises(CorruptionError):
        made.live([file])


def life(made: Manifests, steps: int) -> list:
    """Manifests of a table that adds two files a step and deletes one of the step before."""
    files = []
    for step in range(steps):
        entries = [added(2 * step), added(2 * step + 1)]
        if step:
            entries.append(deleted(added(2 * step - 1)))
        files.append(made.write_manifest(entries, []))
    return files


def test_minor_merge_leaves_one_manifest_with_the_same_files():
    made = manifests()
    files = life(made, 30)
    merged, written = made.merge(files, [])
    assert [file.name for file in merged] == written and len(written) == 1
    assert merged[0].added_files == 31 and merged[0].deleted_files == 0
    assert names(made.live(merged).entries()) == names(made.live(files).entries())


def test_too_few_manifests_are_left_alone():
    made = manifests()
    files = life(made, 29)
    assert made.merge(files, []) == (files, [])
    assert made.merge([], []) == ([], [])


def test_minor_merge_keeps_deletes_of_files_elsewhere():
    made = manifests()
    files = life(made, 30)
    settings = ManifestSettings(target_file_size_bytes=max(file.size_bytes for file in files) + 1, merge_min_count=2)
    merged, written = made.merge(files, [], settings)
    assert 1 < len(merged) < 30 and len(written) > 1
    assert sum(file.deleted_files for file in merged) > 0
    assert names(made.live(merged).entries()) == names(made.live(files).entries())


def test_full_merge_leaves_no_delete_and_keeps_large_manifests_without_deleted_partitions():
    made = manifests()
    big = [made.write_manifest([added(1000 * at + n, partition=row(at)) for n in range(80)], [BIGINT]) for at in range(3)]
    small = made.write_manifest([deleted(added(1005, partition=row(1))), added(5000, partition=row(9))], [BIGINT])
    settings = ManifestSettings(target_file_size_bytes=2000, full_compaction_bytes=1)
    merged, written = made.merge([*big, small], [BIGINT], settings)
    assert big[0] in merged and big[2] in merged and big[1] not in merged
    assert sum(file.deleted_files for file in merged) == 0
    assert names(made.live(merged).entries()) == names(made.live([*big, small]).entries())
    assert sorted(file.name for file in merged if file.name in written) == sorted(written)


def test_full_merge_keeps_a_large_manifest_that_loses_nothing():
    made = manifests()
    big = made.write_manifest([added(n, partition=row(n % 3)) for n in range(80)], [BIGINT])
    small = [
        made.write_manifest([added(500, partition=row(1))], [BIGINT]),
        made.write_manifest([deleted(added(500, partition=row(1)))], [BIGINT]),
    ]
    settings = ManifestSettings(target_file_size_bytes=2000, full_compaction_bytes=1)
    assert made.merge([big, *small], [BIGINT], settings) == ([big], [])


def test_full_merge_that_would_rewrite_one_manifest_is_left_to_the_minor_one():
    made = manifests()
    file = made.write_manifest([added(1), deleted(added(2))], [])
    assert made.merge([file], [], ManifestSettings(full_compaction_bytes=1)) == ([file], [])


def test_everything_cancelled_leaves_no_manifest():
    made = manifests()
    files = [made.write_manifest([added(1)], []), made.write_manifest([deleted(added(1))], [])]
    assert made.merge(files, [], ManifestSettings(merge_min_count=2)) == ([], [])


def test_file_added_twice_stops_a_merge_and_nothing_stays_behind():
    store = MemoryStore()
    made = manifests(store)
    good = [made.write_manifest([added(number)], []) for number in range(4)]
    twice = [made.write_manifest([added(9)], []) for _ in range(2)]
    before = [status.name for status in store.list(f"{ROOT}/manifest")]
    settings = ManifestSettings(target_file_size_bytes=2 * good[0].size_bytes - 50, merge_min_count=2)
    with pytest.raises(CorruptionError, match="added twice"):
        made.merge([*good, *twice], [], settings)
    assert [status.name for status in store.list(f"{ROOT}/manifest")] == before


def test_write_that_fails_leaves_no_file():
    class Full(MemoryStore):
        def open_write(self, path, *, within=None):
            sink = super().open_write(path, within=within)

            def fail(data):
                raise StorageError("disk full", path=path, operation="write")

            sink.write = fail
            return sink

    store = Full()
    with pytest.raises(StorageError):
        manifests(store).write_list([])
    assert store.list(f"{ROOT}/manifest") == []


def test_an_index_manifest_is_read_once_and_held_with_few_others():
    store = Gets()
    made = manifests(store)
    one = IndexEntry(
        kind=FileKind.ADD, partition=EMPTY_ROW, bucket=0, index_type="HASH", name="index-0", size_bytes=4, row_count=1
    )
    written = [[msgspec.structs.replace(one, bucket=number, name=f"index-{number}")] for number in range(4)]
    named = [made.write_index(entries)[0] for entries in written]
    assert [made.read_index(named[0]) for _ in range(3)] == [written[0]] * 3
    assert store.read == [named[0]]
    made.read_index(named[0]).clear()
    assert made.read_index(named[0]) == written[0]
    assert [made.read_index(name) for name in named] == written
    assert made.read_index(named[0]) == written[0] and store.read.count(named[0]) == 2


def test_the_cache_holds_the_newest_batch_however_large_and_counts_what_it_holds(monkeypatch):
    """Against a list of batches, oldest first, of which the oldest are left out until a quarter is free."""
    made, chance = manifests(), random.Random(5)
    batches = [made.live([made.write_manifest([added(100 * at + number) for number in range(size)], [])]) for at, size in enumerate((1, 2, 5, 20, 38))]
    cache, model = ManifestCache(batches[-1].nbytes + 1), []
    makes_room, calls = ManifestCache._make_room, []
    monkeypatch.setattr(ManifestCache, "_make_room", lambda self: (calls.append(self.nbytes), makes_room(self))[1])
    for number in range(300):
        batch = chance.choice(batches).take(slice(None))
        before = sum(size for _, size in model)
        cache.hold(str(number), batch)
        model.append((str(number), batch.nbytes))
        if sum(size for _, size in model) > cache.max_bytes:
            assert calls == [before + batch.nbytes]
            while 4 * sum(size for _, size in model) > 3 * cache.max_bytes and len(model) > 1:
                del model[0]
        assert calls == [] or before + batch.nbytes > cache.max_bytes
        calls.clear()
        assert list(cache._places) == [name for name, _ in model] and cache.nbytes == sum(size for _, size in model)


def test_manifests_that_cancel_each_other_leave_none():
    made = manifests()
    entries = [added(number) for number in range(9)]
    files = [made.write_manifest(part, []) for part in (entries[:5], entries[5:], [deleted(one) for one in entries])]
    settings = ManifestSettings(full_compaction_bytes=1, merge_min_count=2, target_file_size_bytes=1)
    assert made.merge(files, [], settings) == ([], [])
    assert made.live(made.merge(files[:2], [], settings)[0]).entries() == entries


@pytest.mark.parametrize("error", [StorageError("gone", operation="put"), KeyboardInterrupt()], ids=repr)
def test_a_merge_that_is_broken_off_leaves_no_files(error, monkeypatch):
    store = MemoryStore()
    made = manifests(store)
    files = [made.write_manifest([added(100 * at + number) for number in range(3)], []) for at in range(8)]
    before, puts = sorted(status.name for status in store.list(f"{ROOT}/manifest")), []
    open_write = MemoryStore.open_write

    def breaking(self, path, *args, **kwargs):
        puts.append(path)
        if len(puts) == 3:
            raise error
        return open_write(self, path, *args, **kwargs)

    monkeypatch.setattr(MemoryStore, "open_write", breaking)
    with pytest.raises(type(error)):
        made.merge(files, [], ManifestSettings(target_file_size_bytes=2 * files[0].size_bytes, merge_min_count=2, full_compaction_bytes=1 << 40))
    assert len(puts) == 3 and sorted(status.name for status in store.list(f"{ROOT}/manifest")) == before
