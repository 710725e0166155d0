"""Somebody else is faster, at every moment of an operation: the end is that of one after the other.

For every two things that can be done to a table: before each call of one of them, all of the other happens. Either both
count, in one order or the other, or one is refused by name, and then it has left nothing behind and can be tried again.

Only calls to places that change are looked at, the directories of snapshots and schemas. All other files are written
once, under names of their own, and are never deleted here, so it does not matter when the other comes between them;
`test_compaction_rivals`, in which files expire too, looks at every call.
"""

from __future__ import annotations

import functools

import pytest
from faults.compaction_support import Rival, attempt, built, check_table, orphans, table_on
from faults.operations import KINDS, OPERATIONS, held, prepared

from paimon_py import CommitConflictError, PaimonError, SchemaError, UsageError
from paimon_py.rows import evaluation as attempts
from paimon_py.testing.fault_store import FaultStore

FASTER = [name for name in OPERATIONS if not OPERATIONS[name].beside]
FITTING = {kind: [name for name in FASTER if OPERATIONS[name].fits(scene)] for kind, scene in KINDS.items()}


def refused(error: PaimonError | None) -> bool:
    """Whether somebody was told that others were faster, or changed the schema or numbers of buckets."""
    if error is None:
        return False
    known = ("rows would be found in the wrong bucket", "rows that have not been compacted yet", "no row has the ids")
    named = isinstance(error, UsageError) and any(text in str(error) for text in known)
    named = named or (isinstance(error, SchemaError) and "there already is a column" in str(error))
    assert named or isinstance(error, CommitConflictError), repr(error)
    return True


@functools.cache
def places(kind: str, name: str) -> list[int]:
    """The calls of an operation to places that change."""
    store = FaultStore(built(KINDS[kind])[0])
    OPERATIONS[name].run(table_on(store, "slow"))
    return [at for at, (_, path) in enumerate(store.log, 1) if "/snapshot" in path or "/schema" in path]


def after(kind: str, *names: str):
    """What a table holds after operations, one after the other, by their models."""
    state = prepared(kind).full
    for name in names:
        state = OPERATIONS[name].effect(KINDS[kind], state)
    return state


def play(slow: str, fast: str, kind: str, at: int) -> None:
    """One run, with all of the faster one before call `at` of the slower one."""
    scene, mine, theirs = KINDS[kind], OPERATIONS[slow], OPERATIONS[fast]
    store = built(scene)[0]
    rival = Rival(store, at, lambda healthy: attempt(theirs.run, table_on(healthy, "fast")))
    _, error = attempt(mine.run, table_on(rival, "slow"))
    assert rival.result is not None, "the operation has fewer calls than before"
    lost, won = refused(error), not refused(rival.result[1])
    found = held(store, scene)
    table = table_on(store, "checker")
    assert orphans(table, check_table(table, scene)) == []
    assert won or not lost, "both are refused"
    orders = {(False, True): [(slow, fast), (fast, slow)], (False, False): [(slow,)], (True, True): [(fast,)]}
    ends = [after(kind, *order) for order in orders[lost, won]]
    if lost and mine.partly is not None:
        ends.append(theirs.effect(scene, mine.partly(scene, prepared(kind).full)))
    assert found.full in ends, f"{found.full} instead of one of {ends}"
    if lost:
        mine.run(table_on(store, "again"))
        assert held(store, scene).full == after(kind, fast, slow)
        check_table(table_on(store, "checker"), scene)


def everywhere(slow: str, fast: str, kind: str, share=lambda at: True) -> int:
    runs = 0
    for at in filter(share, places(kind, slow)):
        try:
            play(slow, fast, kind, at)
        except Exception as wrong:
            raise AssertionError(f"{wrong!r} when {fast} came before call {at} of {slow}") from wrong
        runs += 1
    return runs


PARTS = 8
"""The full suite comes in so many parts, each of which looks at all pairs: `-k part0`."""


@pytest.mark.full
@pytest.mark.parametrize(("slow", "kind"), [(slow, kind) for kind in KINDS for slow in FITTING[kind]])
@pytest.mark.parametrize("part", range(PARTS), ids="part{}".format)
def test_in_either_order_both_count_or_one_is_refused(slow, kind, part):
    known = places(kind, slow)
    for number, fast in enumerate(FITTING[kind]):
        everywhere(slow, fast, kind, share=lambda at, n=number: (known.index(at) + n) % PARTS == part)


QUICK = [
    ("merge", "merge", "files"), ("delete", "compact fully", "vectors"), ("write", "rescale", "keyed"),
    ("rescale", "write", "buckets"), ("merge", "merge", "eager"), ("write", "write", "dynamic"),
    ("compact", "write", "postponed"), ("update", "sort", "vectors"), ("index", "delete", "vectors in buckets"),
    ("compact", "delete", "clustered"), ("overwrite", "merge", "keyed vectors"), ("drop", "upsert", "dynamic vectors"),
    ("write", "alter", "settled vectors"), ("compact", "compact fully", "postponed vectors"),
    ("merge", "replace", "dynamic without index"), ("rounds", "drop", "moving"), ("write", "merge", "moving vectors"),
    ("upsert some", "upsert", "keyed"), ("upsert some", "update", "eager"), ("upsert some", "compact fully", "keyed vectors"),
    ("upsert some", "write", "dynamic"), ("rounds", "compact", "moving"), ("compact", "write", "moving sums"),
    ("update", "compact fully", "columns"), ("compact fully", "set rows", "columns"),
    ("set rows", "merge", "columns"), ("merge", "update", "columns"), ("set rows", "delete", "columns"),
]  # fmt: skip


@pytest.mark.parametrize(("slow", "fast", "kind"), QUICK)
def test_at_some_calls_the_faster_one_counts_and_the_other_one_follows(slow, fast, kind):
    place = QUICK.index((slow, fast, kind))
    known = places(kind, slow)
    assert everywhere(slow, fast, kind, share=lambda at: known.index(at) % 7 == place % 7) > 1


def test_an_operation_that_is_overtaken_every_time_gives_up_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(attempts, "ROUNDS", 3)
    scene = KINDS["files"]
    store = built(scene)[0]
    counts = []

    class Always(FaultStore):
        busy = False

        def put_new(self, path, data, *, within=None):
            if "/snapshot/" in path and not self.busy:
                self.busy = True
                counts.append(OPERATIONS["update"].run(table_on(store, f"fast{self.count}")))
                self.busy = False
            return super().put_new(path, data, within=within)

    with pytest.raises(CommitConflictError):
        OPERATIONS["delete"].run(table_on(Always(store), "slow"))
    assert len(counts) == 3
    state = prepared("files").full
    for _ in counts:
        state = OPERATIONS["update"].effect(scene, state)
    assert held(store, scene).full == state
    table = table_on(store, "checker")
    assert orphans(table, check_table(table, scene)) == []
