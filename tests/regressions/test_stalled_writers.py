"""A writer that stalls right before publication, while a rival takes the number and lets it expire."""

from __future__ import annotations

import pytest
from regressions.test_expiry_beside_writers import KINDS
from regressions.test_rollbacks import PATH, env, opened, rows, store_with
from simulation.java import expire

from paimon_py import CommitConflictError, Table
from paimon_py.metadata.root import TableRoot
from paimon_py.testing.fault_store import FaultStore


class Stalling(FaultStore):
    """Lets something happen before the first snapshot is published."""

    action = None

    def put_new(self, path, data, *, within=None):
        if "/snapshot/" in path and self.action is not None:
            action, self.action = self.action, None
            action()
        return super().put_new(path, data, within=within)


@pytest.mark.parametrize("kind", ["append", "fixed", "dynamic"])
@pytest.mark.parametrize("more", [1, 2])
def test_a_snapshot_that_is_acknowledged_is_in_the_history(kind, more):
    """The rival's snapshot of the same number has as many files and rows."""
    options, settings = KINDS[kind]
    store = store_with(options, **settings)
    opened(store, "first").write_arrow(rows([1], 1))

    def rival():
        for turn in range(more + 1):
            opened(store, f"rival{turn}").write_arrow(rows([10 + turn], 2))
        expire(TableRoot(store, PATH, env("expiry")), 1)

    stalling = Stalling(store)
    root = TableRoot(stalling, PATH, env("late"))
    stalling.action = rival
    try:
        Table(root, root.schemas.latest(), "db.t").write_arrow(rows([9], 3))
        acknowledged = True
    except CommitConflictError:
        acknowledged = False
    assert stalling.action is None
    table = opened(store, "reader")
    found = table.scan().to_arrow()["k"].to_pylist()
    assert sorted(found) == sorted([1, *range(10, 11 + more), *([9] if acknowledged else [])])
    ids = [snapshot.id for snapshot in table.snapshots()]
    assert ids == list(range(2 + more, 3 + more + acknowledged))
