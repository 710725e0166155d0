"""Commits of others since the writers opened: the largest sequence numbers, and bucket counts.

Source: docs/reliability.md §3 (b), (c).
"""

from __future__ import annotations

import numpy as np

from paimon_py.codec.manifest.columns import EntryColumns
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import Bucket, Changes
from paimon_py.commit.state import State
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.history import SnapshotLog, SnapshotRange
from paimon_py.spec.snapshot import Base, Snapshot

_STEPS_MAX = 32
"""Maximum number of snapshots that are read one by one; beyond that, reading the live files is cheaper."""

_NOWHERE = ""
"""A mark that no snapshot has."""


def joint_base(snapshot_log: SnapshotLog, changes: Changes, latest: Snapshot | None) -> Base:
    """The snapshot that changes are based on; if one of several has expired, a snapshot that does not exist.

    Cost: one get for each base but the first.
    """
    for base in changes.further_bases:
        if base.id and snapshot_log.at(base, latest) is None:
            return Base(changes.base.id, _NOWHERE)
    return changes.base


class ConcurrentCommits:
    """Follows the snapshots after a base, for some partitions.

    Attributes:
        highest: the largest sequence number committed since the base, per bucket of those partitions.
        bucket_counts: the number of buckets of partitions in which files were added, if it is fixed.
    """

    def __init__(self, changes: Changes, partitions: frozenset[bytes]) -> None:
        self._changes = changes
        self._partitions = PartitionChoice.of_rows(partitions)
        self._position: Base | None = None
        self.highest: dict[Bucket, int] = {}
        self.bucket_counts: dict[bytes, int] = {}

    def follow(self, state: State) -> None:
        """Read everything between the last position and the latest snapshot.

        If the base snapshot has expired, the changes after it are unknown; then all live files count.

        Cost: a get for each snapshot that is not known yet, and two for its delta; or the live files once.
        """
        latest = state.latest
        position = self._position or joint_base(state.snapshot_log, self._changes, latest)
        if latest is None or position.is_of(latest):
            return
        wanted = EntryFilter(partitions=self._partitions)
        entries = None
        if latest.id - position.id <= _STEPS_MAX:
            history = state.snapshot_log.after(position, latest)
            entries = history.entries(wanted) if isinstance(history, SnapshotRange) else None
        if isinstance(entries, EntryColumns):
            self._take(entries.additions())
        else:
            self._take(state.live_columns(wanted))
        self._position = Base.of(latest)

    def _take(self, adds: EntryColumns) -> None:
        if not len(adds):
            return
        codes, values = adds.distinct("partition")
        partitions = values.to_pylist()
        pairs = np.stack([codes, adds.bucket])
        buckets, places = np.unique(pairs, axis=1, return_inverse=True)
        highest = np.full(buckets.shape[1], np.iinfo(np.int64).min)
        np.maximum.at(highest, places.reshape(-1), adds.max_sequence)
        for code, bucket, number in zip(*buckets.tolist(), highest.tolist(), strict=True):
            key = (partitions[code], bucket)
            self.highest[key] = max(number, self.highest.get(key, number))
        for code, partition in enumerate(partitions):
            counts = adds.total_buckets[codes == code]
            if int(counts[-1]) > 0:
                self.bucket_counts[partition] = int(counts[-1])
