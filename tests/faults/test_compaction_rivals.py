"""Somebody else is faster, at every store call of a compaction in turn: a compactor, a writer, an overwrite, expiry, DDL.

The loser gives up its compaction and keeps the data: all rows of both are there, in the order of their commits, every
key once, no deletion vector dangles, and nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from faults import compaction_support as support
from faults.compaction_support import (
    Rival,
    Row,
    Scene,
    State,
    attempt,
    batch,
    built,
    check_table,
    content,
    followed,
    orphans,
    table_on,
)

from paimon_py import AddColumn, CommitConflictError, SetOption, SnapshotExpiredError, Table
from paimon_py.spec.layout import snapshot_path

BASE = tuple((1, k, k, k) for k in range(8))
LOADS = (BASE, ((1, 1, 10, 1), (1, 9, 9, None)), ((1, 1, None, 5), (1, 2, 20, 2)), ((1, 3, 30, 30), (1, 9, 90, 1)))
MINE = ((1, 1, 100, 100), (1, 50, 5, 5))
THEIRS = ((1, 1, 7, 200), (1, 9, 8, 8), (1, 60, 6, 6))
EAGER = {"num-sorted-run.compaction-trigger": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
PARTS = tuple(tuple((p, *row[1:]) for p in (1, 2) for row in load) for load in LOADS[:3])


class Done(msgspec.Struct, frozen=True):
    """What somebody did: the first snapshot of it, and how it changes a state."""

    snapshot_id: int
    effect: Callable[[Scene, State], State]


def nothing(scene: Scene, state: State) -> State:
    return state


def adding(rows: tuple[Row, ...]):
    return lambda scene, state: scene.after(state, rows)


def replacing(rows: tuple[Row, ...]):
    return lambda scene, state: scene.after({}, rows)


def writes(table: Table) -> Done:
    return Done(table_on(table._root.store, "w", **{"write-only": "true"}).write_arrow(batch(THEIRS)).snapshot_ids[0], adding(THEIRS))


def writes_and_compacts(table: Table) -> Done:
    return Done(table.write_arrow(batch(THEIRS)).snapshot_ids[0], adding(THEIRS))


def compacts(table: Table) -> Done:
    table.compact(full=True)
    return Done(0, nothing)


def compacts_a_little(table: Table) -> Done:
    table.compact()
    return Done(0, nothing)


def overwrites(table: Table) -> Done:
    return Done(table.write_arrow(batch(THEIRS), overwrite={}).snapshot_ids[0], replacing(THEIRS))


def truncates(table: Table) -> Done:
    return Done(table.truncate().snapshot_ids[0], replacing(()))


def merges_manifests(table: Table) -> Done:
    table.compact_manifests()
    return Done(0, nothing)


def adds_a_column(table: Table) -> Done:
    table.alter(AddColumn("x", "INT"), SetOption("commit.max-retries", "11"))
    return Done(0, nothing)


def replaces_all_and_expires(table: Table) -> Done:
    """Compacts the bucket twice, and only the last snapshot is left."""
    writer = table_on(table._root.store, "w", **{"write-only": "true"})
    done = Done(writer.write_arrow(batch(THEIRS)).snapshot_ids[0], adding(THEIRS))
    table.compact(full=True)
    expire(table)
    return done


def expire(table: Table) -> None:
    """Leave the latest snapshot alone, and what it needs: in the order in which a crash does no harm."""
    root = table._root
    before = support.needed(table)
    latest = root.snapshots.latest_id()
    root.store.put(f"{root.path}/snapshot/EARLIEST", str(latest).encode())
    for number in root.snapshots.ids():
        if number < latest:
            root.store.delete(snapshot_path(root.path, number))
    for path in sorted(before - support.needed(table)):
        root.store.delete(path)


RIVALS = {
    "writer": writes,
    "compacting writer": writes_and_compacts,
    "compactor": compacts,
    "picking compactor": compacts_a_little,
    "overwrite": overwrites,
    "truncate": truncates,
    "merge of manifests": merges_manifests,
    "new column": adds_a_column,
    "expiry": replaces_all_and_expires,
}


def compact_fully(table: Table) -> list[Done]:
    table.compact(full=True)
    return []


def compact_minor(table: Table) -> list[Done]:
    table.compact()
    return []


def write(table: Table) -> list[Done]:
    """One commit with a compaction by the writer."""
    return [Done(table.write_arrow(batch(MINE)).snapshot_ids[0], adding(MINE))]


def stream(table: Table) -> list[Done]:
    """One writer, two commits with compactions."""
    done = []
    with table.writer() as writer:
        for number, row in enumerate(MINE, start=1):
            writer.write_arrow(batch((row,)))
            changes = writer.changes()
            try:
                result = table.commit(changes, user="job", identifier=number)
            except CommitConflictError as error:  # all snapshots since `changes()` have expired: look, and write again
                assert "cannot be determined" in str(error)
                writer.discard(changes)
                writer.write_arrow(batch((row,)))
                result = table.commit(writer.changes(), user="job", identifier=number)
            done.append(Done(result.snapshot_ids[0], adding((row,))))
    return done


OPERATIONS = {"full": compact_fully, "minor": compact_minor, "write": write, "stream": stream}
SCENES = {
    "deduplicate": Scene(loads=LOADS, raised=1, options=EAGER),
    "aggregation": Scene(engine="aggregation", loads=LOADS, raised=1, options=EAGER),
    "first-row": Scene(engine="first-row", loads=LOADS, raised=1, options=EAGER),
    "vectors": Scene(loads=LOADS, raised=1, options={**EAGER, **VECTORS}),
    "changelog": Scene(engine="aggregation", loads=LOADS, raised=1, options={"changelog-producer": "lookup"}),
    "append": Scene(engine="append", loads=LOADS, options={"compaction.min.file-num": "2", "bucket": "1", "bucket-key": "k"}),
}


TOLD = (writes, writes_and_compacts, compacts, compacts_a_little, merges_manifests)
"""Rivals whose changes changelogs tell; overwrites have none."""


def disturb(scene: Scene, operation, rival, at: int) -> None:
    """One run with the rival right before call `at`."""
    store, _, before = built(scene)
    disturbed = Rival(store, at, lambda healthy: rival(table_on(healthy, "rival")))
    mine, error = attempt(operation, table_on(disturbed, "me"))
    theirs = disturbed.result
    assert theirs is not None, "the operation has fewer calls than before"
    table = table_on(store, "checker")
    assert orphans(table, check_table(table, scene)) == []
    if error is not None:
        opening = isinstance(error, SnapshotExpiredError) and operation in (write, stream)
        assert opening, f"the operation ended with {error!r}"
        mine = []
    state = before
    for done in sorted((*mine, theirs), key=lambda done: done.snapshot_id):
        state = done.effect(scene, state)
    found = content(table, scene)
    if not scene.skips_level_0:
        assert found == state, f"{found} instead of {state}"
    table.compact(full=True)
    assert content(table, scene) == state
    check_table(table, scene)
    if scene.tells and rival in TOLD:
        assert followed(table) == state


def everywhere(scene: Scene, operation, rival, share: Callable[[int], bool] = lambda at: True) -> int:
    count = support.calls_of(scene, operation)
    runs = 0
    for at in filter(share, range(1, count + 1)):
        try:
            disturb(scene, operation, rival, at)
        except Exception as wrong:
            raise AssertionError(f"{wrong!r} when the rival came before call {at} of {count}") from wrong
        runs += 1
    return runs


TRIPLES = [(scene, operation, rival) for scene in SCENES for operation in OPERATIONS for rival in RIVALS]


@pytest.mark.full
@pytest.mark.parametrize(("scene", "operation", "rival"), TRIPLES)
def test_whenever_others_are_faster_the_loser_keeps_the_data(scene, operation, rival):
    assert everywhere(SCENES[scene], OPERATIONS[operation], RIVALS[rival]) > 30


_SPECIAL = {("vectors", "full", "compactor"), ("aggregation", "write", "compacting writer"), ("deduplicate", "write", "expiry")}
"""Looked at more closely in CI, too."""


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_at_some_calls_others_are_faster_and_the_loser_keeps_the_data(scene, operation):
    for place, rival in enumerate(RIVALS):
        every = 31 if (scene, operation, rival) in _SPECIAL else 131
        first = 8 + 13 * place + 5 * list(SCENES).index(scene)
        everywhere(SCENES[scene], OPERATIONS[operation], RIVALS[rival], share=lambda at, e=every, f=first: at % e == f % e)


def planned(at_level: int, low: int):
    """A compaction of the second half of level 0 of a bucket, keys from `low` on, beside one of the first half."""
    store, _, state = built(Scene(loads=LOADS[:2]))
    table = table_on(store, "me")
    (ours,) = table.compaction_tasks(full=True)
    later = tuple((1, low + at, at, at) for at in range(3))
    for owner, rows in (("v", later), ("w", later[:1])):
        table_on(store, owner, **{"write-only": "true"}).write_arrow(batch(rows))
        state = SCENES["deduplicate"].after(state, rows)
    (both,) = table.compaction_tasks(full=True)
    names = {file.name for file in ours.files}
    files = tuple(file for file in both.files if file.name not in names)
    theirs = msgspec.structs.replace(both, files=files, output_level=at_level, drop_deletes=False)
    return table, ours, theirs, state


@pytest.mark.parametrize(("level", "low", "fits"), [(5, 5, False), (5, 20, True), (4, 5, True)])
@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_compactors_of_different_files_of_a_bucket_both_fit_unless_their_results_overlap(level, low, fits, first):
    table, ours, theirs, state = planned(level, low)
    ours, theirs = table.run_compaction(ours), table.run_compaction(theirs)
    winner, loser = (ours, theirs) if first == "ours" else (theirs, ours)
    table.commit(winner)
    if fits:
        assert table.commit(loser).dropped_compaction is None
    else:
        with pytest.raises(CommitConflictError, match="overlap"):
            table.commit(loser)
        table.writer().discard(loser)
    assert content(table, SCENES["deduplicate"]) == state
    check_table(table)
    assert orphans(table) == []


@pytest.mark.parametrize("scene", ["deduplicate", "aggregation", "vectors", "append"])
def test_of_two_writers_that_compact_the_one_that_is_overtaken_gives_up_its_compaction_and_keeps_its_rows(scene):
    store, _, state = built(SCENES[scene])
    made = []
    for owner, rows in (("one", THEIRS), ("two", MINE)):
        table = table_on(store, owner)
        with table.writer() as writer:
            writer.write_arrow(batch(rows))
        made.append((table, writer.changes()))
        assert any(bucket.compacted.added for bucket in made[-1][1].buckets)
        state = SCENES[scene].after(state, rows)
    first, second = [table.commit(changes) for table, changes in made]
    assert first.dropped_compaction is None and len(first.snapshot_ids) == 2
    assert second.dropped_compaction is not None and len(second.snapshot_ids) == 1
    table = table_on(store, "checker")
    assert orphans(table) == []
    table.compact(full=True)
    assert content(table, SCENES[scene]) == state
    check_table(table)


def test_a_compaction_of_one_partition_survives_that_another_one_is_dropped():
    scene = Scene(loads=PARTS, partitioned=True)
    store, _, state = built(scene)
    table = table_on(store, "me")
    done = [table.run_compaction(task) for task in table.compaction_tasks(full=True)]
    table_on(store, "rival").drop_partitions([{"p": 1}])
    result = table.commit(done)
    assert len(result.dropped_buckets) == 1 and len(result.snapshot_ids) == 1
    assert content(table, scene) == {key: value for key, value in state.items() if key[0] == 2}
    check_table(table)
    assert orphans(table) == []
