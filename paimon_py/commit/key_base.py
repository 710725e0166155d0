"""Whether all keys of a table still lie where a writer believes them to be.

A key that moves to another partition leaves a −D behind, so a writer must know the place of every key. What others
write may move keys or add them; their compactions change nothing.
"""

from __future__ import annotations

import pyarrow.compute as pc

from paimon_py.codec.columns import text_array
from paimon_py.commit.changes import Changes, KeyBase
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.foreign import is_there
from paimon_py.errors import UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.snapshot import Base, CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError

_HARMLESS = (CommitKind.COMPACT, CommitKind.ANALYZE)

_MOVED = Conflict(
    "others changed rows meanwhile, and keys may have moved to other partitions; write the rows again with a new writer"
)
_LOST = Conflict(
    "the writer had handed over changes before these that were not committed, and these rely on where they put keys; "
    "commit them first, or write the rows again with a new writer"
)


class KeyFollower:
    """Follows the snapshots after the one that a writer knew."""

    def __init__(self, root: TableRoot, base: KeyBase) -> None:
        self._root = root
        self._writer = base.writer
        self._position = Base(base.snapshot_id, base.mark)
        self._files = set(base.files)
        self._conflict: Conflict | None = None

    @property
    def base(self) -> KeyBase:
        """The last snapshot that is known to hold nothing but the writer's work, and its files that came not yet."""
        known = self._position
        return KeyBase(writer=self._writer, snapshot_id=known.id, mark=known.mark, files=tuple(sorted(self._files)))

    def expect(self, changes: Changes) -> None:
        """The writer hands these over."""
        self._files.update(file.name for bucket in changes.buckets for file in bucket.new_files)

    def advance(self, latest: Snapshot | None) -> Conflict | None:
        """Look at everything up to `latest`.

        Returns: a conflict if something else than the writer's files was added or taken away, also by a rollback, or if
            that cannot be said because the last known snapshot has expired.
        Cost: one get, for each snapshot one more, and two if it is not a compaction.
        """
        if self._conflict is None and not is_there(self._root, self._position, latest):
            self._conflict = _MOVED
        latest_id = 0 if latest is None else latest.id
        while self._conflict is None and self._position.id < latest_id:
            number = self._position.id + 1
            found = latest if number == latest_id else self._root.snapshots.find(number)
            if found is None or not self._is_own(found):
                self._conflict = _MOVED
            else:
                self._position = Base.of(found)
        return self._conflict

    def missing(self) -> Conflict | None:
        """A conflict if files that were handed over did not come."""
        return _LOST if self._files else None

    def _is_own(self, snapshot: Snapshot) -> bool:
        if snapshot.commit_kind in _HARMLESS:
            return True
        try:
            manifests = self._root.manifests.read_list(snapshot.delta_manifest_list)
            columns = self._root.manifests.read_entries(manifests)
        except FileMissingError:
            return False
        if bool((columns.kind != FileKind.ADD).any()):
            return False
        names = columns.names()
        if len(names) and not pc.all(pc.is_in(names, value_set=text_array(sorted(self._files)))).as_py():
            return False
        self._files.difference_update(names.to_pylist())
        return True


def require_replacing(changes: Changes) -> None:
    """Refuse to replace a table by what was written into it: rows went to where their keys lie, or were dropped.

    Raises: UsageError
    """
    base = changes.keys
    if base is not None and (base.snapshot_id or base.files) and any(bucket.new_files for bucket in changes.buckets):
        raise UsageError(
            "rows that are to replace a table whose keys move between partitions must come from writer(overwrite=True) "
            "in one commit; these were written beside the rows that are there"
        )
