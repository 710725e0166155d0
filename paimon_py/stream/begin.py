"""Finds where a stream begins: resolves a start to a whole snapshot, or to the snapshot after which it continues."""

from __future__ import annotations

from collections.abc import Iterator

from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.plan_snapshot import Planned, plan_snapshot
from paimon_py.scan.request import Request
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Base, CommitKind, Snapshot
from paimon_py.spec.visibility import clusters_keys
from paimon_py.stream.end import End
from paimon_py.stream.follower import expired_error, require_following
from paimon_py.stream.position import Position, table_of
from paimon_py.stream.start import Compacted, Earliest, FromSnapshot, FromTime, Full, Latest


def whole(root: TableRoot, start: Full | Compacted, end: End) -> Snapshot | None:
    """The snapshot whose rows all come first; None while the table is empty.

    The latest one, or the last one before the end, so that the stream ends with the table as of the end.

    Cost: that of finding the latest snapshot; a get for each later one if an end or a compaction must be found.
    Raises: SnapshotExpiredError, SnapshotNotFoundError
    """
    if isinstance(start, Full) and start.snapshot_id is not None:
        return root.snapshots.get(start.snapshot_id)
    latest = root.latest()
    if latest is None:
        return None
    if isinstance(start, Compacted):
        return next((found for found in _downwards(root, latest) if _is_compacted(found, start)), latest)
    if end.snapshot_id is not None and end.snapshot_id < latest.id:
        return root.snapshots.get(end.snapshot_id)
    if end.millis is not None and end.millis < latest.time_millis:
        return root.snapshots.by_time(end.millis)
    return latest


def plan_whole(root: TableRoot, request: Request, snapshot: Snapshot) -> Planned:
    """Plan all rows of a snapshot with which a stream begins.

    Raises: UnsupportedError if some of them can be neither returned now nor in a later step.
    """
    planned = plan_snapshot(root, request, snapshot)
    if clusters_keys(request.schema) and request.files is None and planned.skipped.uncompacted:
        raise UnsupportedError(
            f"snapshot {snapshot.id} of {root.path} has rows that are not compacted yet. In a table with"
            " pk-clustering-override they cannot be merged with the others, and no later step would return them:"
            " compact the table with the program that writes it, or begin with from_='latest'",
            feature="a stream of all rows of a table with pk-clustering-override before a compaction",
        )
    return planned


def follows(root: TableRoot, start: Latest | Earliest | FromSnapshot | FromTime | Position) -> Base:
    """The snapshot after which a stream begins.

    Cost: a few gets; a binary search for a time, a list for the earliest.
    Raises:
        UsageError: a position of another table, or a snapshot that is later than the next one.
        SnapshotExpiredError: the snapshot to read has expired.
    """
    if isinstance(start, Position):
        if start.table is not None and start.table != table_of(root):
            raise UsageError(
                f"the position {str(start)!r} is not of the table at {root.path}, or the table was created again since:"
                " start again with from_='full'"
            )
        return start.base
    if isinstance(start, Latest):
        return Base.of(root.latest())
    if isinstance(start, FromSnapshot):
        require_following(root, start.snapshot_id, start.consumer)
        return before(root, start.snapshot_id) if start.after is None else start.after
    oldest = min(root.changelogs.ids(), default=None) or root.snapshots.earliest_id()
    if oldest is None:
        return Base(0)
    return before(root, oldest if isinstance(start, Earliest) else _first_since(root, oldest, start.millis))


def before(root: TableRoot, number: int) -> Base:
    """The snapshot before one, if it is known: it exists, or the given one references it. Cost: a get or
    two.
    """
    found = root.snapshots.find(number - 1) if number > 1 else None
    if found is not None:
        return Base.of(found)
    after = root.find_kept(number)
    return (None if after is None else after.parent) or Base(number - 1)


def _first_since(root: TableRoot, oldest: int, millis: int) -> int:
    """The id of the first snapshot that was committed at a time or later; the next id if there is none.

    Source: Java `TimeTravelUtil.earlierThanTimeMills`.
    """
    latest = root.snapshots.latest_id() or 0
    low, high = oldest, latest + 1
    while low < high:
        middle = (low + high) // 2
        found = root.find_kept(middle)
        if found is None or found.time_millis < millis:
            low = middle + 1
        else:
            high = middle
    first = root.find_kept(oldest)
    if low == oldest and oldest > 1 and (first is None or first.time_millis > millis):
        raise expired_error(root, oldest - 1)
    return low


def _downwards(root: TableRoot, latest: Snapshot) -> Iterator[Snapshot]:
    """The snapshots from the latest down to the oldest remaining one."""
    found: Snapshot | None = latest
    while found is not None:
        yield found
        found = root.snapshots.find(found.id - 1)


def _is_compacted(snapshot: Snapshot, start: Compacted) -> bool:
    number = snapshot.commit_identifier
    full = start.commits is None or number % start.commits == 0 or number == BATCH_COMMIT_IDENTIFIER
    return snapshot.commit_kind is CommitKind.COMPACT and full
