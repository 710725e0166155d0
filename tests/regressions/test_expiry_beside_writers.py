"""Others expire snapshots, as Java's expiry does, while somebody builds on them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from regressions.test_rollbacks import DYNAMIC, KEYED, PATH, env, opened, rows, store_with, values
from unit.commit.support import below, reachable

from paimon_py import CommitConflictError, SetOption, SnapshotExpiredError
from paimon_py.commit.deletion_index import index_entries
from paimon_py.files.file_index import has_index
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import earliest_hint_path, snapshot_path

EAGER = {"bucket": "1", "num-sorted-run.compaction-trigger": "2"}
VECTORS = {"bucket": "1", "deletion-vectors.enabled": "true"}
KINDS = {
    "fixed": (KEYED, {}),
    "compacting": (EAGER, {}),
    "vectors": (VECTORS, {}),
    "dynamic": (DYNAMIC, {}),
    "dynamic, compacting": ({**DYNAMIC, "num-sorted-run.compaction-trigger": "2"}, {}),
    "moving": (DYNAMIC, {"partition_by": ("p",)}),
    "append": ({}, {"key": ()}),
    "append with buckets": ({"bucket": "2", "bucket-key": "k"}, {"key": ()}),
}


def expire(store):
    """All snapshots but the latest, and what only they need."""
    root = TableRoot(store, PATH, env("expiry"))
    *gone, last = root.snapshots.ids()
    store.put(earliest_hint_path(PATH), str(last).encode())
    for number in gone:
        store.delete(snapshot_path(PATH, number))
    latest = root.snapshots.latest()
    live = set(root.manifests.live_entries(latest).names().to_pylist())
    kept = {name for name in reachable(root) if not name.startswith("data-")} | live
    kept |= {entry.name for entry in index_entries(root, latest)}
    for path in below(store, PATH):
        name = path.rsplit("/", 1)[1]
        if name.startswith(("data-", "manifest-", "index-")) and name not in kept:
            store.delete(path)


def rewritten(store, turn=0):
    """Other rows, other files, and none of the snapshots from before."""
    opened(store, f"other{turn}-").write_arrow(rows([1, 20], 2))
    table = opened(store, f"compactor{turn}-")
    table.compact(full=True)
    table.compact_manifests()
    expire(store)


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_builds_on_what_is_there_when_its_base_expires_before_its_first_row(kind):
    options, more = KINDS[kind]
    store = store_with(options, **more)
    opened(store, "a").write_arrow(rows([1, 2, 3, 4], 1))
    opened(store, "b").write_arrow(rows([5], 1))
    table = opened(store, "late")
    with table.writer() as writer:
        rewritten(store)
        writer.write_arrow(rows([6, 7] if "append" in kind else [5, 6, 20, 7], 3))
        table.commit(writer.changes())
        expire(store) if "append" in kind else rewritten(store, turn=1)
        writer.write_arrow(rows([8] if "append" in kind else [8, 2, 6], 4))
        if kind == "moving":
            with pytest.raises(CommitConflictError, match="new writer"):
                table.commit(writer.changes())
            return
        table.commit(writer.changes())
    if "append" in kind:
        found = opened(store, "reader").scan().to_arrow()
        assert sorted(found["k"].to_pylist()) == [1, 1, 2, 3, 4, 5, 6, 7, 8, 20]
        return
    opened(store, "last").compact(full=True)
    assert values(store) == {1: 2, 2: 4, 3: 1, 4: 1, 5: 3, 6: 4, 7: 3, 8: 4, 20: 2}


def test_a_writer_compacts_again_once_what_it_had_handed_over_was_compacted_and_has_expired():
    store = store_with(EAGER)
    opened(store, "a").write_arrow(rows([1, 2], 1))
    table = opened(store, "late")
    with table.writer() as writer:
        for turn in range(3):
            writer.write_arrow(rows([1, 3], turn))
            table.commit(writer.changes())
            opened(store, f"compactor{turn}-").compact(full=True)
            expire(store)
        writer.write_arrow(rows(range(1, 40), 5))  # not smaller than the file below it, so that both are merged
        assert writer.changes().buckets[0].compacted.deleted


def test_a_partition_may_be_met_long_after_its_index_expired():
    store = store_with(DYNAMIC, key=("p", "k"), partition_by=("p",))
    for p in (1, 2):
        opened(store, f"a{p}").write_arrow(rows(range(6), 1, p=p))
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([0, 9], 2, p=1))
        opened(store, "other").write_arrow(rows([9], 3, p=2))
        opened(store, "other again").write_arrow(rows([8], 3, p=2))
        expire(store)
        writer.write_arrow(rows([9, 0, 7], 4, p=2))
        table.commit(writer.changes())
    found = {(row["p"], row["k"]): row["v"] for row in opened(store, "reader").scan().to_arrow().to_pylist()}
    wanted = {(p, k): 1 for p in (1, 2) for k in range(6)}
    assert found == {**wanted, (1, 0): 2, (1, 9): 2, (2, 9): 4, (2, 0): 4, (2, 7): 4, (2, 8): 3}


def test_after_discarded_changes_a_writer_knows_what_it_committed_before():
    store = store_with(DYNAMIC)
    opened(store, "a").write_arrow(rows(range(6), 1))
    table = opened(store, "late")
    with table.writer() as writer:
        writer.write_arrow(rows([10, 11, 12], 2))
        table.commit(writer.changes())
        writer.write_arrow(rows([12, 13], 3))
        writer.discard(writer.changes())
        writer.write_arrow(rows([10, 13, 14], 4))
        table.commit(writer.changes())
    assert values(store) == {**dict.fromkeys(range(6), 1), 10: 4, 11: 2, 12: 2, 13: 4, 14: 4}


def test_a_compaction_task_whose_files_are_gone_says_so_and_can_be_planned_again():
    store = store_with(KEYED)
    opened(store, "a").write_arrow(rows([1, 2], 1))
    opened(store, "b").write_arrow(rows([2, 3], 1))
    table = opened(store, "worker")
    (task,) = table.compaction_tasks(full=True)
    rewritten(store)
    with pytest.raises(SnapshotExpiredError, match="compaction_tasks"):
        table.run_compaction(bytes(task))
    assert table.compaction_tasks(full=True) == []
    assert values(store) == {1: 2, 2: 1, 3: 1, 20: 2}


@pytest.mark.parametrize("options", [{}, VECTORS])
def test_an_update_whose_files_are_compacted_and_expire_is_evaluated_anew(options):
    key = ("k",) if options else ()
    store = store_with({"compaction.min.file-num": "2", **options}, key=key)
    opened(store, "a").write_arrow(rows([1, 2], 1))
    opened(store, "b").write_arrow(rows([3], 1))
    calls = []

    def added(batch):
        if not calls:
            calls.append(True)
            opened(store, "other").write_arrow(rows([4], 1))
            opened(store, "compactor").compact(full=True)
            expire(store)
        return pa.array([value + 10 for value in batch["v"].to_pylist()], pa.int32())

    assert opened(store, "late").update("v = 1", {"v": added}).updated == 4
    assert values(store) == {1: 11, 2: 11, 3: 11, 4: 11}


def test_indexes_are_added_to_the_files_that_took_the_place_of_expired_ones(monkeypatch):
    store = store_with({"compaction.min.file-num": "2"}, key=())
    opened(store, "a").write_arrow(rows([1, 2], 1))
    opened(store, "b").write_arrow(rows([3], 1))
    table = opened(store, "late")
    table.alter(SetOption("file-index.bitmap.columns", "v"))
    schemas, once = table._root.schemas, []
    of_file = schemas.of_file

    def beside(*given):
        if not once:
            once.append(True)
            opened(store, "compactor").compact(full=True)
            expire(store)
        return of_file(*given)

    monkeypatch.setattr(type(schemas), "of_file", lambda _, *given: beside(*given))
    table.rewrite_file_index()
    monkeypatch.undo()
    root = table._root
    live = root.manifests.live_entries(root.snapshots.latest()).entries()
    assert len(live) == 1 and has_index(live[0].file)
    assert values(store) == {1: 1, 2: 1, 3: 1}
