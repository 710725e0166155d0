"""At any call of an operation or a read others write, compact everything and let all that is older expire.

Both count, in one order or the other, or the slower one is told by name, leaves nothing behind and can try again. A read
sees one snapshot, or is told that it has expired; it never sees a table with files missing.
"""

from __future__ import annotations

import contextlib

import pytest
from faults.compaction_support import Rival, attempt, batch, built, check_table, orphans, table_on
from faults.operations import KINDS, OPERATIONS, adding, held, prepared
from faults.test_compaction_rivals import expire
from faults.test_operation_races import FITTING
from faults.test_read_faults import KEYED, READS, looked_up

from paimon_py import CommitConflictError, SnapshotExpiredError, Table, UsageError
from paimon_py.testing.fault_store import FaultStore

MORE = ((1, 1, 7, 200), (1, 60, 6, 6))


def replace_and_expire(table: Table) -> bool:
    """Whether it could: while buckets are being rescaled nobody may write."""
    store = table._root.store
    try:
        table_on(store, "writer", **{"write-only": "true"}).write_arrow(batch(MORE))
    except UsageError as error:
        assert "rows would be found in the wrong bucket" in str(error)
        return False
    table_on(store, "compactor").compact(full=True)
    expire(table_on(store, "expirer"))
    return True


def disturbed(store, at: int) -> Rival:
    return Rival(store, at, lambda healthy: replace_and_expire(table_on(healthy, "rival")))


def overtake(name: str, kind: str, at: int) -> None:
    """One run of an operation, which others overtake before call `at`."""
    scene, operation, store = KINDS[kind], OPERATIONS[name], built(KINDS[kind])[0]
    rival = disturbed(store, at)
    _, error = attempt(operation.run, table_on(rival, "slow"))
    assert error is None or isinstance(error, (CommitConflictError, SnapshotExpiredError)), repr(error)
    table = table_on(store, "checker")
    assert orphans(table, check_table(table, scene)) == []
    full, theirs = prepared(kind).full, adding(MORE) if rival.result else lambda scene, state: state
    last = operation.effect(scene, theirs(scene, full))
    ends = [last, theirs(scene, operation.effect(scene, full))]
    if error is not None:
        ends = [theirs(scene, full)]
        if operation.partly is not None:
            ends += [theirs(scene, operation.partly(scene, full)), operation.partly(scene, ends[0])]
    assert held(store, scene).full in ends
    if error is not None:
        operation.run(table_on(store, "again"))
        assert held(store, scene).full == last
        check_table(table_on(store, "checker"), scene)


def everywhere(name: str, kind: str, every: int, first: int = 0) -> int:
    calls = FaultStore(built(KINDS[kind])[0])
    OPERATIONS[name].run(table_on(calls, "slow"))
    chosen = range(1 + first % every, calls.count + 1, every)
    for at in chosen:
        try:
            overtake(name, kind, at)
        except Exception as wrong:
            raise AssertionError(f"{wrong!r} when files expired before call {at}, {calls.log[at - 1]}") from wrong
    return len(chosen)


CASES = [(name, kind) for kind in KINDS for name in FITTING[kind]]
READ_FILES = [
    ("index", "files"), ("index", "vectors in buckets"), ("index", "keyed"), ("delete", "dynamic without index"),
    ("write", "dynamic without index"), ("compact", "postponed sums"), ("compact", "postponed"), ("rescale", "keyed"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), READ_FILES)
def test_an_operation_continues_without_files_that_expire_in_the_meantime(name, kind):
    assert everywhere(name, kind, 17) > 2


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_survives_the_expiry_of_its_snapshot_at_some_calls(kind):
    names = FITTING[kind][list(KINDS).index(kind) % 7 :: 7]
    assert sum(everywhere(name, kind, 41, 7 * CASES.index((name, kind))) for name in names) > 0


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_operation_survives_the_expiry_of_its_snapshot_at_every_call(name, kind):
    assert everywhere(name, kind, 1) > 5


@pytest.mark.parametrize("every", [pytest.param(29, id="few"), pytest.param(1, marks=pytest.mark.full, id="all")])
@pytest.mark.parametrize("kind", ["files", "vectors in buckets", "clustered", *KEYED])
def test_a_read_during_expiry_sees_one_snapshot_or_raises(kind, every):
    reads = {name: read for name, read in READS.items() if name not in ("few rows", "count")}
    reads["count"] = lambda table: table.scan(where="p = 1").count()
    if kind in KEYED:
        reads["lookup"] = looked_up
    after = built(KINDS[kind])[0]
    assert replace_and_expire(table_on(after, "rival"))
    runs = 0
    for name, read in reads.items():
        answers = [read(table_on(store, "me")) for store in (built(KINDS[kind])[0], after)]
        calls = FaultStore(built(KINDS[kind])[0])
        read(table_on(calls, "me"))
        for at in range(1 + len(name) % every, calls.count + 1, every):
            table = table_on(disturbed(built(KINDS[kind])[0], at), "me")
            with contextlib.suppress(SnapshotExpiredError):
                assert read(table) in answers, f"{name}, call {at}"
            assert read(table) == answers[1], f"{name} after call {at}"
            runs += 1
    assert runs > 0
