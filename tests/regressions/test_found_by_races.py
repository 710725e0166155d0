"""What the suites of failing stores and faster rivals found."""

from __future__ import annotations

import pytest
from faults.compaction_support import Rival, Scene, batch, built, check_table, content, orphans, table_on
from faults.operations import KINDS, NEW, OPERATIONS, OTHERS, VECTORS, held, prepared

from paimon_py import StorageError
from paimon_py.testing.fault_store import FaultStore


def test_a_bucketed_append_table_with_deletion_vectors_can_be_rescaled():
    store = built(KINDS["vectors in buckets"])[0]
    table_on(store, "one").delete("k = 2")
    before = held(store, KINDS["vectors in buckets"])
    table_on(store, "two").rescale(5)
    assert held(store, KINDS["vectors in buckets"]) == before
    check_table(table_on(store, "checker"))


@pytest.mark.parametrize("theirs", [NEW, OTHERS])
def test_a_writer_whose_hash_index_was_united_with_that_of_others_leaves_none_behind(theirs):
    store = built(KINDS["dynamic"])[0]
    write = OPERATIONS["write"].run

    class Overtaken(FaultStore):
        busy = False

        def put_new(self, path, data, *, within=None):
            if "/snapshot/" in path and not self.busy:
                self.busy = True
                table_on(store, "fast").write_arrow(batch(theirs))
            return super().put_new(path, data, within=within)

    write(table_on(Overtaken(store), "slow"))
    assert orphans(table_on(store, "checker")) == []
    check_table(table_on(store, "checker"))


def test_a_dropped_compaction_of_deletion_vectors_alone_leaves_no_index_file_behind():
    kind = "settled vectors"
    scene, calls = KINDS[kind], FaultStore(built(KINDS[kind])[0])
    OPERATIONS["write"].run(table_on(calls, "me"))
    second = max(at for at, (verb, path) in enumerate(calls.log, 1) if verb == "open_write" and "manifest-" in path)
    store = built(scene)[0]
    result = OPERATIONS["write"].run(table_on(FaultStore(store, second, "lost"), "me"))
    assert result.dropped_compaction is not None
    assert orphans(table_on(store, "checker")) == []
    assert held(store, scene).full == OPERATIONS["write"].effect(scene, prepared(kind).full)


def test_of_two_deletes_that_empty_the_same_file_both_mark_their_other_rows():
    """They were taken for one: whose commit it is was told by the names of the files that went, not by index files."""
    scene = Scene(engine="append", loads=(((1, 1, 1, 1),), ((1, 3, 3, 3), (1, 4, 4, 4), (1, 5, 5, 5))), options=VECTORS)
    calls = FaultStore(built(scene)[0])
    table_on(calls, "slow").delete("k IN (1, 3)")
    for at in range(1, calls.count + 1):
        store = built(scene)[0]
        rival = Rival(store, at, lambda healthy: table_on(healthy, "fast").delete("k IN (1, 4)"))
        mine = table_on(rival, "slow").delete("k IN (1, 3)")
        assert list(content(table_on(store, "reader"), scene)) == [(1, 5, 5, 5)], f"before call {at}"
        assert mine.deleted + rival.result.deleted == 3
        assert orphans(table_on(store, "checker")) == []


def test_a_hash_index_that_cannot_be_written_leaves_no_compacted_file_behind():
    scene = KINDS["dynamic vectors"]
    calls = FaultStore(built(scene)[0])
    OPERATIONS["write"].run(table_on(calls, "me"))
    for at in [at for at, (verb, path) in enumerate(calls.log, 1) if verb == "write" and "/index/" in path]:
        store = built(scene)[0]
        with pytest.raises(StorageError):
            OPERATIONS["write"].run(table_on(FaultStore(store, at, "before"), "me"))
        assert orphans(table_on(store, "checker")) == [], f"call {at}"


def test_rows_never_vanish_while_a_table_that_hides_level_0_is_rescaled():
    scene = KINDS["settled vectors"]
    before = prepared("settled vectors").seen
    calls = FaultStore(built(scene)[0])
    table_on(calls, "me").rescale(3)
    for at in [at for at, (_, path) in enumerate(calls.log, 1) if "/snapshot" in path]:
        store = built(scene)[0]
        rival = Rival(store, at, lambda healthy: content(table_on(healthy, "reader"), scene))
        table_on(rival, "me").rescale(3)
        assert rival.result == before, f"before call {at}"
    assert content(table_on(store, "reader"), scene) == before


def test_of_two_compactions_that_move_the_same_file_only_one_leaves_an_index_file():
    """The later one is taken for committed: the file that both move has the same name."""
    loads = (((1, 1, 1, 1), (1, 2, 2, 2)), ((1, 1, 9, 9),))
    store = built(Scene(loads=loads, raised=1, options={**VECTORS, "bucket": "1", "write-only": "true"}))[0]
    faster = []

    def meanwhile(*_):
        if not faster:
            faster.append(table_on(store, "faster").compact())

    slow = table_on(store, "slow").compact(progress=meanwhile)
    assert faster[0].snapshot_id is not None and slow.snapshot_id is None
    assert orphans(table_on(store, "checker")) == []
    assert len(table_on(store, "checker").scan().to_arrow()) == 2
