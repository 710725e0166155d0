"""Work on the latest snapshot that restarts when another commit is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from paimon_py.errors import CommitConflictError, SnapshotExpiredError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.storage.store import FileMissingError

T = TypeVar("T")

ROUNDS = 20
"""The maximum number of evaluations of a row operation."""


def on_latest(root: TableRoot, work: Callable[[Snapshot | None, int], T], *, rounds: int) -> T:
    """The result of `work` on the latest snapshot (None on an empty table), in rounds counted from 1.

    A conflict, or a snapshot that expired, starts the next round, unless the snapshot is still the latest: then the
    next round would end the same way.

    Raises:
        CommitConflictError, SnapshotExpiredError: others were faster in every round.
        CorruptionError: a file does not exist although its snapshot does.
        Everything that `work` raises.
    """
    for number in range(1, rounds + 1):
        snapshot = root.latest()
        try:
            return _run_round(root, work, snapshot, number)
        except (CommitConflictError, SnapshotExpiredError):
            if number == rounds or root.snapshots.latest() == snapshot:
                raise
    raise AssertionError("the last round returns or raises")


def _run_round(root: TableRoot, work: Callable[[Snapshot | None, int], T], snapshot: Snapshot | None, number: int) -> T:
    """Run one round. A missing file has expired with its snapshot, or the table is damaged."""
    try:
        return work(snapshot, number)
    except FileMissingError as error:
        if snapshot is None:
            raise
        raise root.missing(Base.of(snapshot), error) from error
