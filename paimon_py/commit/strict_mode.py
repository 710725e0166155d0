"""Refuses commits after which others compacted or replaced partitions: `commit.strict-mode.last-safe-snapshot`.

Source: Java `StrictModeChecker`, release 2.0.
"""

from __future__ import annotations

import itertools

from paimon_py.codec.columns import binary_array
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.conflicts import Conflict
from paimon_py.commit.deletion_index import index_entries
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.commit.state import Planned, State
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.history import HistoryGap, SnapshotRange
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.manifest import HASH
from paimon_py.spec.snapshot import CommitKind, Snapshot

_OPTION = "commit.strict-mode.last-safe-snapshot"


class StrictMode:
    """Looks for commits of other users after the last safe snapshot that changed the same partitions.

    A COMPACT or OVERWRITE of others conflicts with every commit to its partitions, an APPEND only with an OVERWRITE.
    """

    def __init__(self, table: OpenTable, user: str) -> None:
        """`user`: the committing user, whose own snapshots do not count."""
        self._root = table.root
        self._user = user
        self._safe = table.options.find_int(_OPTION)

    def check(self, planned: Planned, state: State) -> Planned:
        """The plan, or the conflict.

        Cost: nothing without the option; else a get for each snapshot since the safe one, and two for its delta.
        """
        safe, latest = self._safe, state.latest
        if safe is None or latest is None or latest.id <= safe or not isinstance(planned, SnapshotDelta):
            return planned
        partitions = _changed_partitions(planned, state)
        if not partitions:
            return planned
        found = list(itertools.takewhile(lambda one: one.id >= safe, state.snapshot_log.newest_first(latest)))
        if found[-1].id > safe + 1:
            return self._refusal(f"snapshot {found[-1].id - 1}, a later one, no longer exists")
        chosen = PartitionChoice.of_rows(partitions)
        for snapshot, before in zip(found, [*found[1:], None], strict=True):
            if snapshot.id > safe and snapshot.commit_user != self._user:
                reason = self._change_by_others(planned.kind, chosen, snapshot, before)
                if reason is not None:
                    return self._refusal(reason)
        return planned

    def _change_by_others(
        self, kind: CommitKind, chosen: PartitionChoice, snapshot: Snapshot, before: Snapshot | None
    ) -> str | None:
        """The change of another user that conflicts with a commit; `before`: the snapshot before, if it was read."""
        replaces = snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.OVERWRITE)
        appends = snapshot.commit_kind is CommitKind.APPEND and kind is CommitKind.OVERWRITE
        if not replaces and not appends:
            return None
        entries = SnapshotRange(self._root.manifests, [snapshot]).entries(EntryFilter(partitions=chosen))
        if isinstance(entries, HistoryGap):
            return f"the manifests of snapshot {snapshot.id} no longer exist"
        has_files = len(entries) > 0 if replaces else bool((entries.bucket >= 0).any())
        if not has_files and not (replaces and self._has_index(chosen, snapshot, before)):
            return None
        said = snapshot.commit_kind.value
        return f"snapshot {snapshot.id} ({said}) of {snapshot.commit_user!r} changed the same partition"

    def _has_index(self, chosen: PartitionChoice, snapshot: Snapshot, before: Snapshot | None) -> bool:
        """Whether a snapshot has another index manifest than the one before, with index files of the partitions."""
        if before is not None and before.index_manifest == snapshot.index_manifest:
            return False
        entries = index_entries(self._root, snapshot)
        return bool(chosen(binary_array([entry.partition for entry in entries])).any())

    def _refusal(self, reason: str) -> Conflict:
        return Conflict(f"{reason}, and {_OPTION} = {self._safe} permits no such change after that snapshot")


def _changed_partitions(part: SnapshotDelta, state: State) -> frozenset[bytes]:
    """The partitions whose data files, deletion vectors or indexes of values change."""
    before, after = frozenset(state.index), frozenset(state.index if part.index is None else part.index)
    changed = {entry.partition for entry in before ^ after if entry.index_type != HASH}
    return frozenset(changed | {entry.partition for entry in part.entries})
