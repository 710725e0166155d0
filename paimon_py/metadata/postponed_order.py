"""The order of files in the postpone bucket: the snapshot that added a file determines how new its rows are.

The entries of live files do not contain this order: manifests are merged, and the snapshots that added the files
expire. An entry only contains the creation time of its file, and the clocks of writers differ. So commits give waiting
files times that never decrease (`commit/postponed_times.py`), and record in the snapshot from which time on this holds.
Java orders waiting files by these times as well. For files of other writers the history shows which snapshot added
them.

Source: format.md §7.3; docs/reliability.md §3 (c), (i); Java `PostponeBucketCompactSplitSource`.
"""

from __future__ import annotations

import re

import numpy as np

from paimon_py.codec.columns import Ints
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.metadata.history import HistoryGap, SnapshotLog, SnapshotRange
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.snapshot import CommitKind, Snapshot

WAITING = EntryFilter(buckets=frozenset({POSTPONE_BUCKET}))
"""Selects files that wait for their bucket."""

_NUMBER = re.compile(r"-(\d{1,18})$")


def oldest_first(root: TableRoot, snapshot: Snapshot, waiting: EntryColumns) -> EntryColumns:
    """The waiting files of a snapshot, each before those with newer rows.

    Order: by the snapshots that added them, if times or history show it; then by their times; then by the number from
        their
    writer. Files whose snapshot has expired come before those of the remaining snapshots.

    Cost: none if all files were committed by paimon_py; otherwise a get for each snapshot back to those that added the
        files, and two for its delta.
    """
    times = waiting.creation_time_millis
    order = snapshot.waiting
    settled = np.zeros(len(waiting), np.bool_) if order is None else times > order.since_millis
    unsettled = np.flatnonzero(~settled)
    added = np.zeros(len(waiting), np.int64)
    if len(unsettled) > 1:
        added[unsettled] = _added_by(root, snapshot, waiting.take(unsettled))
    names = waiting.names().to_pylist()
    keys = list(zip(settled.tolist(), added.tolist(), times.tolist(), map(_writer_and_number, names), strict=True))
    return waiting.take(np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64))


def latest_time(waiting: EntryColumns) -> int | None:
    """The largest time of waiting files; None if there are none, or none has a time."""
    times = waiting.creation_time_millis
    known = times[times != ABSENT]
    return int(known.max()) if len(known) else None


def _added_by(root: TableRoot, latest: Snapshot, waiting: EntryColumns) -> Ints:
    """The snapshot that added each file; 0 if it has expired."""
    wanted = _places(waiting)
    left, found_in = set(wanted), dict.fromkeys(wanted, 0)
    for snapshot in SnapshotLog(root).newest_first(latest):
        if snapshot.commit_kind not in (CommitKind.APPEND, CommitKind.OVERWRITE):
            continue
        entries = SnapshotRange(root.manifests, [snapshot]).entries(WAITING)
        if isinstance(entries, HistoryGap):
            break
        added = left.intersection(_places(entries.additions()))
        found_in.update(dict.fromkeys(added, snapshot.id))
        left -= added
        if not left:
            break
    return np.array([found_in[place] for place in wanted], np.int64)


def _places(entries: EntryColumns) -> list[tuple[bytes, str]]:
    """The partition and name of each file."""
    return list(zip(entries.partitions().to_pylist(), entries.names().to_pylist(), strict=True))


def _writer_and_number(name: str) -> tuple[str, int]:
    """The writer of a file, and its number among that writer's files."""
    stem = name.split(".", 1)[0]
    found = _NUMBER.search(stem)
    return (stem, 0) if found is None else (stem[: found.start()], int(found[1]))
