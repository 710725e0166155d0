"""Checks that all keys of a table are still in the partitions that a writer assumes.

A key that moves to another partition leaves a −D row behind, so a writer must know the place of every key. Writes of
others may move or add keys; their compactions change nothing.
"""

from __future__ import annotations

from paimon_py.commit.changes import Changes, KeyBase
from paimon_py.commit.conflicts import Conflict
from paimon_py.errors import UsageError
from paimon_py.metadata.history import HistoryGap, SnapshotLog, SnapshotRange
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot

_HARMLESS = (CommitKind.COMPACT, CommitKind.ANALYZE)

_MOVED = Conflict(
    "others changed rows in the meantime, and keys may have moved to other partitions; write the rows again with a new "
    "writer"
)
_LOST = Conflict(
    "the writer had handed over changes before these that were not committed, and these rely on their key places; "
    "commit them first, or write the rows again with a new writer"
)


class KeyFollower:
    """Follows the snapshots after the one that a writer knew."""

    def __init__(self, base: KeyBase) -> None:
        self._writer = base.writer
        self._position = base.base
        self._files = set(base.files)
        self._conflict: Conflict | None = None

    @property
    def base(self) -> KeyBase:
        """The last snapshot known to contain only the writer's work, and its files that are not committed yet."""
        return KeyBase(writer=self._writer, base=self._position, files=tuple(sorted(self._files)))

    def expect(self, changes: Changes) -> None:
        """Note changes that the writer hands over."""
        self._files.update(file.name for bucket in changes.buckets for file in bucket.written.added)

    def advance(self, snapshot_log: SnapshotLog, latest: Snapshot | None) -> Conflict | None:
        """Check everything up to `latest`.

        Returns: a conflict if anything but the writer's files was added or deleted, also by a rollback, or if this
            cannot be determined because the last known snapshot has expired.
        Cost: a get for each snapshot that is not known yet, and two if it is not a compaction.
        """
        if self._conflict is None:
            history = snapshot_log.after(self._position, latest)
            own = isinstance(history, SnapshotRange) and all(map(self._is_own, history.each()))
            self._conflict = None if own else _MOVED
        if self._conflict is None:
            self._position = Base.of(latest)
        return self._conflict

    def missing(self) -> Conflict | None:
        """A conflict if files that were handed over were not committed."""
        return _LOST if self._files else None

    def _is_own(self, step: SnapshotRange) -> bool:
        if step.snapshots[0].commit_kind in _HARMLESS:
            return True
        columns = step.entries()
        if isinstance(columns, HistoryGap) or bool((columns.kind != FileKind.ADD).any()):
            return False
        names = set(columns.names().to_pylist())
        if not names <= self._files:
            return False
        self._files -= names
        return True


def require_replacing(changes: Changes) -> None:
    """Refuse to replace a table by rows that were written into it: they were routed by existing keys, or dropped.

    Raises: UsageError
    """
    base = changes.keys
    if base is not None and (base.base.id or base.files) and any(bucket.written.added for bucket in changes.buckets):
        raise UsageError(
            "rows that are to replace a table whose keys move between partitions must come from writer(overwrite=True) "
            "in one commit; these were written in addition to the existing rows"
        )
