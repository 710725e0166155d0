"""Somebody else is faster, at every moment of an operation: the end is that of one after the other."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from faults.test_row_faults import KINDS, content, prepared, table_on

from paimon_py import CommitConflictError
from paimon_py.rows import attempts
from paimon_py.testing.fault_store import FaultStore


class Interrupted(FaultStore):
    """Something happens just before one call."""

    def __init__(self, store, at, action):
        super().__init__(store)
        self._at = at
        self._action = action

    def _call(self, verb, path, action, *, shortened=None):
        if self.count + 1 == self._at:
            self._action()
        return super()._call(verb, path, action, shortened=shortened)


def rows(**values):
    return pa.table({"k": pa.array(values["k"], pa.int64()), "v": pa.array(values["v"], pa.int64())})


def count_up(table):
    return table.update("k < 4 AND v IS NOT NULL", {"v": lambda old: pc.add(old["v"], 1)})


def add_once(table):
    return table.merge(rows(k=[100, 5], v=[1, 1]), ["k"], when_not_matched_insert=True)


def upsert(table):
    return table.upsert(rows(k=[2, 100], v=[50, 1]), on=["k"])


PAIRS = {
    "delete, compact": (lambda t: t.delete("k < 5"), lambda t: t.compact(full=True)),
    "update, compact": (count_up, lambda t: t.compact(full=True)),
    "update, update": (count_up, count_up),
    "delete, update": (lambda t: t.delete("v = 2"), lambda t: t.update("k = 9", {"v": 2})),
    "update, delete": (lambda t: t.update("k = 9", {"v": 2}), lambda t: t.delete("v = 2")),
    "delete, delete": (lambda t: t.delete("k < 5"), lambda t: t.delete("k < 9")),
    "merge, merge": (add_once, add_once),
    "upsert, upsert": (upsert, upsert),
    "upsert, delete": (upsert, lambda t: t.delete("k = 2")),
    "update, write": (count_up, lambda t: t.write_arrow(rows(k=[-1], v=[10]))),
    "delete, truncate": (lambda t: t.delete("k < 5"), lambda t: t.truncate()),
}
QUICK = [("delete, compact", "vectors"), ("merge, merge", "files"), ("update, update", "vectors in buckets"),
         ("update, compact", "keyed"), ("upsert, upsert", "vectors")]  # fmt: skip
EVERY = [(pair, kind) for pair in PAIRS for kind in KINDS if (pair, kind) not in QUICK]


@pytest.mark.parametrize(("pair", "kind"), QUICK)
def test_the_faster_one_counts_and_the_other_one_follows(pair, kind):
    play(pair, kind, step=3)


@pytest.mark.full
@pytest.mark.parametrize(("pair", "kind"), EVERY)
def test_whoever_is_faster(pair, kind):
    play(pair, kind, step=1)


def play(pair, kind, step):
    slow, fast = PAIRS[pair]
    ends = [after(kind, slow, fast), after(kind, fast, slow)]
    calls = FaultStore(prepared(kind).copy())
    slow(table_on(calls, "slow"))
    for at in range(1, calls.count + 1, step):
        store = prepared(kind).copy()
        result = slow(table_on(Interrupted(store, at, lambda: fast(table_on(store, "fast"))), "slow"))
        table = table_on(store, "checker")
        found = content(table)
        assert found in ends, f"before call {at} of {calls.count}, {calls.log[at - 1]}: {result}"
        assert table.scan().count() == len(found)
        assert [snapshot.id for snapshot in table.snapshots()][-1] == table.snapshot().id


def after(kind, *operations):
    store = prepared(kind).copy()
    for number, operation in enumerate(operations):
        operation(table_on(store, f"one{number}"))
    return content(table_on(store, "checker"))


def test_an_operation_that_is_overtaken_every_time_gives_up_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(attempts, "ROUNDS", 3)
    store = prepared("files").copy()

    class Always(FaultStore):
        def put_new(self, path, data):
            if "/snapshot/" in path and data and not getattr(self, "busy", False):
                self.busy = True
                count_up(table_on(store, f"fast{self.count}"))
                self.busy = False
            return super().put_new(path, data)

    with pytest.raises(CommitConflictError):
        table_on(Always(store), "slow").delete("k = 1")
    assert content(table_on(store, "checker"))[1] == 4
