"""Compaction through the public verbs: what it leaves, what it touches, and what happens when others are faster."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from unit.public import KEYED, files, new_catalog, reopened

import paimon_py
from paimon_py import CommitConflictError, CompactionTask, CorruptionError, UsageError, col

WRITE_ONLY = {"write-only": "true"}


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def keyed(catalog, **options):
    return catalog.create_table(
        "d.t", KEYED, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1", **WRITE_ONLY, **options}
    )


def append(catalog, **options):
    return catalog.create_table("d.a", pa.schema([("n", pa.int64())]), options={**WRITE_ONLY, **options})


def upsert(table, *rows, kinds=None):
    """Rows (p, k, v)."""
    parts, keys, values = zip(*rows)
    data = {"p": pa.array(parts, pa.int32()), "k": pa.array(keys, pa.int64()), "v": list(values)}
    table.write_arrow(pa.table({**data, **({"_row_kind": kinds} if kinds else {})}))


def rows(table):
    found = reopened(table).scan().to_arrow().to_pydict()
    return sorted(zip(*found.values()))


def live(table):
    """Live files by partition: (level, rows, deletes, lowest and highest sequence number)."""
    root = reopened(table)._root
    latest = root.snapshots.latest()
    entries = root.manifests.live_entries(latest).entries()
    return sorted((e.file.level, e.file.row_count, e.file.delete_row_count, e.file.min_sequence, e.file.max_sequence) for e in entries)


def data_names(table):
    return {name.rpartition("/")[2] for name in files(table.location) if name.rpartition("/")[2].startswith("data-")}


def named(table):
    """Data files that some snapshot names."""
    found = set()
    for snapshot in table.snapshots():
        found |= {entry.file.name for manifest in snapshot.manifests() for entry in manifest.entries()}
    return found


def test_a_full_compaction_leaves_one_row_per_key_and_no_deletes_on_the_top_level(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (1, 2, "b"))
    upsert(table, (1, 1, "c"), (1, 2, "d"), (1, 3, "e"), kinds=["+U", "-D", "+I"])
    before = rows(table)
    result = table.compact(full=True)
    assert (result.snapshot_ids, result.row_count, result.file_count) == ((3,), 2, 1)
    assert rows(table) == before == [(1, 1, "c"), (1, 3, "e")]
    assert live(table) == [(5, 2, 0, 2, 4)]
    assert table.snapshot().commit_kind.value == "COMPACT"
    assert table.snapshot().total_record_count == 2


def test_nothing_to_do_makes_no_snapshot(catalog):
    table = keyed(catalog)
    assert table.compact(full=True).snapshot_id is None
    upsert(table, (1, 1, "a"))
    assert table.compact().snapshot_id is None
    assert table.compact(full=True).snapshot_id == 2
    assert table.compact(full=True).snapshot_id is None
    assert table.snapshot().id == 2


def test_a_lone_file_moves_up_and_keeps_its_name(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    (before,) = data_names(table)
    table.compact(full=True)
    assert data_names(table) == {before}
    assert live(table) == [(5, 1, 0, 0, 0)]


def test_deletes_stay_while_older_rows_lie_above(catalog):
    table = keyed(catalog, **{"num-sorted-run.compaction-trigger": "2", "compaction.size-ratio": "0",
                              "compaction.max-size-amplification-percent": "1000000", "num-levels": "3"})  # fmt: skip
    upsert(table, *((1, k, "x" * 400 + str(k * 7919 % 10007)) for k in range(3000)))
    table.compact(full=True)
    upsert(table, (1, 1, "a"), kinds=["-D"])
    upsert(table, (1, 2, "a"), kinds=["-D"])
    table.compact()
    assert [(level, deletes) for level, _, deletes, *_ in live(table)] == [(1, 2), (2, 0)]
    assert len(rows(table)) == 2998
    table.compact(full=True)
    assert [(level, count, deletes) for level, count, deletes, *_ in live(table)] == [(2, 2998, 0)]


def test_only_the_partitions_asked_for_are_compacted(catalog):
    table = keyed(catalog)
    for value in "ab":
        upsert(table, *((p, 1, value) for p in (1, 2, 3, 4)))
    assert len(table.compaction_tasks(full=True, partitions=[{"p": 1}, {"p": 2}])) == 2
    assert len(table.compaction_tasks(full=True, where="p > 1")) == 3
    assert len(table.compaction_tasks(full=True, where=col("p").isin([1, 9]))) == 1
    assert len(table.compaction_tasks(full=True, partitions=[{"p": 1}], where=col("p") == 2)) == 0
    assert table.compact(full=True, partitions=[{"p": 3}]).file_count == 1
    assert len(live(table)) == 7


@pytest.mark.parametrize(
    "arguments",
    [
        {"where": "k = 1"}, {"where": col("v") == "a"}, {"where": "p = 1 OR k = 2"}, {"partitions": [{"k": 1}]}, {"partitions": {"p": 1}},
        {"partitions": []}, {"partitions": [{}]}, {"partitions": "p=1"}, {"where": 5}, {"where": "p = 'x"}, {"partitions": [{"p": "no"}]},
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_choose_partitions_is_refused_and_nothing_is_written(catalog, arguments):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    before = files(table.location)
    with pytest.raises(UsageError):
        table.compact(full=True, **arguments)
    with pytest.raises(UsageError):
        table.compaction_tasks(full=True, **arguments)
    assert files(table.location) == before


def test_tables_without_partitions_refuse_partitions(catalog):
    with pytest.raises(UsageError, match="partition key"):
        append(catalog).compact(partitions=[{"p": 1}])


def test_progress_is_told_while_buckets_are_read(catalog):
    table = keyed(catalog)
    for value in "ab":
        upsert(table, (1, 1, value), (2, 1, value), (2, 2, value))
    seen = []
    table.compact(full=True, progress=lambda *far: seen.append(far))
    assert {(total, what) for _, total, what in seen} == {(6, "rows")}
    counts = [done for done, _, _ in seen]
    assert counts == sorted(set(counts)) and counts[-1] == 6 and len(counts) > 2


def test_an_error_in_the_callback_stops_the_compaction_and_leaves_no_file(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (2, 1, "a"))
    upsert(table, (1, 1, "b"), (2, 1, "b"))
    before = files(table.location)

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.compact(full=True, progress=stop)
    assert files(table.location) == before


def test_tasks_travel_and_are_committed_together(catalog):
    table = keyed(catalog)
    for value in "ab":
        upsert(table, (1, 1, value), (2, 1, value))
    tasks = [bytes(task) for task in table.compaction_tasks(full=True)]
    elsewhere = pickle.loads(pickle.dumps(table))
    changes = [bytes(elsewhere.run_compaction(CompactionTask.from_bytes(task))) for task in tasks]
    changes[1:] = [bytes(elsewhere.run_compaction(tasks[1]))]
    result = table.commit(changes)
    assert (result.snapshot_ids, result.file_count, result.row_count) == ((3,), 2, 2)
    assert rows(table) == [(1, 1, "b"), (2, 1, "b")]


def test_a_compaction_committed_twice_is_recognised(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "b"))
    changes = table.run_compaction(table.compaction_tasks(full=True)[0])
    assert table.commit(changes).snapshot_ids == (3,)
    assert table.commit(changes).already_committed
    upsert(table, (1, 1, "c"))
    assert table.commit(changes).already_committed
    assert table.snapshot().id == 4
    assert rows(table) == [(1, 1, "c")]


def test_the_same_compaction_twice_in_one_commit_is_refused(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "b"))
    changes = table.run_compaction(table.compaction_tasks(full=True)[0])
    with pytest.raises(UsageError, match="twice"):
        table.commit([changes, changes])
    assert table.commit(changes).snapshot_ids == (3,)


def test_of_two_compactors_of_a_bucket_the_second_gives_up_and_the_rows_stay(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (2, 1, "a"))
    upsert(table, (1, 1, "b"), (2, 1, "b"))
    one, two = ([table.run_compaction(task) for task in table.compaction_tasks(full=True)] for _ in range(2))
    table.commit(one[:1])
    result = table.commit(two)
    assert "deleted or moved" in result.dropped_compaction
    assert (result.snapshot_ids, len(result.dropped_buckets)) == ((4,), 1)
    with pytest.raises(CommitConflictError):
        table.commit(one[1:])
    table.writer().discard(one[1])
    assert rows(table) == [(1, 1, "b"), (2, 1, "b")]
    assert data_names(table) == named(table)


def test_an_old_compaction_committed_again_deletes_nothing(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (2, 1, "a"))
    upsert(table, (1, 1, "b"), (2, 1, "b"))
    old = [table.run_compaction(task) for task in table.compaction_tasks(full=True)]
    table.commit(old[0])
    upsert(table, (1, 2, "c"))
    table.compact(full=True, partitions=[{"p": 1}])
    before = files(table.location).keys()
    assert table.commit(old).snapshot_ids == (6,)
    assert before <= files(table.location).keys()
    assert rows(table) == [(1, 1, "b"), (1, 2, "c"), (2, 1, "b")]
    assert table.scan(snapshot_id=3).to_arrow().num_rows == 2


class Interrupting:
    """Calls something once, right before the first snapshot of a compaction is published."""

    def __init__(self, store, action):
        self.store = store
        self.action = action

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def put_new(self, path, data, *, within=None):
        if "/snapshot-" in path and b"COMPACT" in data and self.action is not None:
            action, self.action = self.action, None
            action()
        return self.store.put_new(path, data, within=within)


def interrupted(table, action):
    """The table as seen through a store that lets `action` happen."""
    other = pickle.loads(pickle.dumps(table))
    other._root.snapshots._store = Interrupting(other._root.snapshots._store, action)
    other._root.store = Interrupting(other._root.store, action)
    return other


def test_a_table_compacted_by_another_meanwhile_is_planned_anew(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (2, 1, "a"))
    upsert(table, (1, 1, "b"), (2, 1, "b"))

    def other():
        table.compact(full=True, partitions=[{"p": 1}])
        upsert(table, (1, 1, "c"))

    result = interrupted(table, other).compact(full=True)
    assert result.dropped_compaction is None
    assert result.snapshot_ids == (5, 6)
    assert rows(table) == [(1, 1, "c"), (2, 1, "b")]
    assert {level for level, *_ in live(table)} == {5}
    assert data_names(table) == named(table)


class Losing:
    """Runs an action before the first data file is read."""

    def __init__(self, store, action):
        self.store = store
        self.action = action

    def __getattr__(self, verb):
        return getattr(self.store, verb)

    def open_read(self, path):
        if self.action is not None and "/data-" in path:
            action, self.action = self.action, None
            action()
        return self.store.open_read(path)


def expire(table, number):
    """Take a snapshot away with the data files that only it needs, as expiry would."""
    root = table._root
    names = lambda snapshot_id: set(root.manifests.live_entries(root.snapshots.get(snapshot_id)).names().to_pylist())  # noqa: E731
    for name in names(number) - names(root.snapshots.latest_id()):
        (path,) = Path(table.location).rglob(name)
        path.unlink()
    for snapshot_id in range(1, number + 1):
        root.store.delete(f"{table.location}/snapshot/snapshot-{snapshot_id}")


def test_files_that_others_replaced_and_expired_meanwhile_are_planned_anew(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (2, 1, "a"))
    upsert(table, (1, 1, "b"), (2, 1, "b"))

    def other():
        table.compact(full=True, partitions=[{"p": 1}])
        expire(table, 2)
        upsert(table, (1, 1, "c"))

    slow = pickle.loads(pickle.dumps(table))
    slow._root.files = Losing(slow._root.files, other)
    result = slow.compact(full=True)
    assert (result.snapshot_ids, result.dropped_compaction) == ((5, 6), None)
    assert rows(table) == [(1, 1, "c"), (2, 1, "b")]


def test_a_missing_file_is_corruption_and_nothing_is_published(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (2, 1, "a"))
    upsert(table, (1, 1, "b"), (2, 1, "b"))
    victim = sorted(Path(table.location).rglob("p=2/**/data-*"))[0]
    victim.unlink()
    before = files(table.location)
    with pytest.raises(CorruptionError, match="does not exist, but snapshot") as caught:
        table.compact(full=True)
    assert caught.value.path.endswith(victim.name)
    assert files(table.location) == before


def test_a_bucket_whose_rows_are_all_deleted_ends_without_files(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "a"), kinds=["-D"])
    result = table.compact(full=True)
    assert (result.snapshot_ids, result.file_count) == ((3,), 0)
    assert live(table) == rows(table) == []
    upsert(table, (1, 1, "b"))
    assert rows(table) == [(1, 1, "b")]


def test_a_bucket_that_others_compact_twice_meanwhile_is_given_up_and_reported(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "b"))
    slow = interrupted(table, None)

    def other():
        table.compact(full=True)
        upsert(table, (1, 1, "c"))
        slow._root.store.action = again

    def again():
        table.compact(full=True)
        upsert(table, (1, 2, "d"))

    slow._root.store.action = other
    result = slow.compact(full=True)
    assert (result.snapshot_ids, len(result.dropped_buckets)) == ((), 1)
    assert "deleted or moved by another commit" in result.dropped_compaction
    assert rows(table) == [(1, 1, "c"), (1, 2, "d")]
    assert data_names(table) == named(table)


def test_a_compaction_beside_a_writer_keeps_what_was_written(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "b"))
    result = interrupted(table, lambda: upsert(table, (1, 1, "c"), (1, 2, "d"))).compact(full=True)
    assert (result.snapshot_ids, result.dropped_compaction) == ((4,), None)
    assert rows(table) == [(1, 1, "c"), (1, 2, "d")]


def test_a_writer_beside_a_compaction_is_newer_than_what_was_compacted(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    with table.writer() as writer:
        writer.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [1], "v": ["mine"]}))
    upsert(table, (1, 1, "b"))
    table.compact(full=True)
    table.commit(writer.changes())
    assert rows(table) == [(1, 1, "mine")]


def test_files_of_every_level_have_its_format_and_compression(catalog):
    table = keyed(catalog, **{"file.format.per.level": "0:avro,5:orc"})
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "b"))
    table.compact(full=True)
    assert {name.rpartition(".")[2] for name in data_names(table)} == {"avro", "orc"}
    assert rows(table) == [(1, 1, "b")]


def test_files_of_older_schemas_are_rewritten_in_the_current_one(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"), (1, 2, "b"))
    table.alter(paimon_py.AddColumn("w", "INT"), paimon_py.RenameColumn("v", "u"))
    table.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [1], "u": ["c"], "w": pa.array([5], pa.int32())}))
    table.compact(full=True)
    assert rows(table) == [(1, 1, "c", 5), (1, 2, "b", None)]
    assert len(live(table)) == 1


def test_a_task_of_an_older_schema_is_refused(catalog):
    table = keyed(catalog)
    upsert(table, (1, 1, "a"))
    upsert(table, (1, 1, "b"))
    (task,) = table.compaction_tasks(full=True)
    table.alter(paimon_py.AddColumn("w", "INT"))
    with pytest.raises(UsageError, match="schema 0"):
        table.run_compaction(task)


@pytest.mark.parametrize("task", [b"", b"nothing", 5, None])
def test_what_is_no_task_is_refused(catalog, task):
    with pytest.raises((UsageError, CorruptionError)):
        keyed(catalog).run_compaction(task)


def test_small_files_of_an_append_table_are_joined(catalog):
    table = append(catalog)
    for number in range(5):
        table.write_arrow(pa.table({"n": [number, -number]}))
    result = table.compact()
    assert (result.snapshot_ids, result.file_count, result.row_count) == ((6,), 1, 10)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == sorted([n for i in range(5) for n in (i, -i)])
    assert table.compact().snapshot_id is None


def test_rows_of_a_bucket_keep_their_order(catalog):
    table = append(catalog, **{"bucket": "1", "bucket-key": "n"})
    for number in range(7):
        table.write_arrow(pa.table({"n": [number, -number]}))
    before = table.scan().to_arrow()["n"].to_pylist()
    table.compact()
    assert live(table) == [(0, 2, 0, 10, 11), (0, 2, 0, 12, 13), (0, 10, 0, 0, 9)]
    assert table.scan().to_arrow()["n"].to_pylist() == before
    table.compact(full=True)
    assert live(table) == [(0, 14, 0, 0, 13)]
    assert table.scan().to_arrow()["n"].to_pylist() == before
    table.write_arrow(pa.table({"n": [99]}))
    assert live(table)[0] == (0, 1, 0, 14, 14)


def test_manifests_are_merged_without_touching_rows(catalog):
    table = keyed(catalog)
    assert table.compact_manifests().snapshot_id is None
    for value in "abc":
        upsert(table, (1, 1, value))
    table.compact(full=True)
    before = rows(table)
    result = table.compact_manifests()
    snapshot = table.snapshot()
    assert (result.snapshot_ids, snapshot.id, snapshot.commit_kind.value) == ((5,), 5, "COMPACT")
    assert (snapshot.delta_record_count, snapshot.total_record_count) == (0, 1)
    assert [(m.added_files, m.deleted_files) for m in snapshot.manifests()] == [(1, 0)]
    assert rows(table) == before
    assert table.compact_manifests().snapshot_id is None


def test_a_bucket_that_was_overwritten_and_compacted_still_agrees(catalog):
    table = keyed(catalog, **{"overwrite-upgrade": "true"})
    upsert(table, (1, 1, "a"), (1, 2, "b"))
    table.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [7], "v": ["new"]}), overwrite={"p": 1})
    assert live(table) == [(5, 1, 0, 0, 0)]
    upsert(table, (1, 7, "newer"))
    table.compact(full=True)
    assert rows(table) == [(1, 7, "newer")]
    assert [level for level, *_ in live(table)] == [5]
