"""Times of new files in the postpone bucket: a commit makes them later than all earlier commits.

The later commit has the newer row, regardless of the clocks of the machines. A compaction, also Java's, replays waiting
files in the order of these times (`metadata/postponed_order.py`).

Source: docs/reliability.md §3 (c), (i); format.md §7.3.
"""

from __future__ import annotations

import msgspec

from paimon_py.commit.entry_lists import bucket_counts
from paimon_py.commit.snapshot_delta import SnapshotDelta, with_growing_times
from paimon_py.commit.state import State
from paimon_py.metadata.postponed_order import WAITING, latest_time
from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.postponed import WaitingOrder

_BEFORE_ALL = -1
"""A lower bound of times for a table without waiting files."""


def in_waiting_order(part: SnapshotDelta, state: State, now_millis: int) -> SnapshotDelta:
    """The part with times for its waiting files, and the order of waiting files to store in its snapshot.

    Args:
        now_millis: wall clock of the committer's zone; no file is made later.

    Cost: none, unless files wait and the latest snapshot was committed by another kind of writer: then the live
        waiting files.
    Raises: SnapshotExpiredError
    """
    order = None if state.latest is None else state.latest.waiting
    if not any(bucket == POSTPONE_BUCKET for _, bucket in bucket_counts(part.adds)):
        return msgspec.structs.replace(part, waiting=order)
    if order is None:
        known = latest_time(state.live_columns(WAITING))
        since = _BEFORE_ALL if known is None else max(known, _BEFORE_ALL)
        order = WaitingOrder(since, since)
    adds, until = with_growing_times(part.adds, order.until_millis, now_millis, _waits)
    return msgspec.structs.replace(part, adds=adds, waiting=WaitingOrder(order.since_millis, until))


def _waits(entry: ManifestEntry) -> bool:
    return entry.bucket == POSTPONE_BUCKET
