"""`table.changes(a, b)`: the changes after one state up to and including another."""

from __future__ import annotations

from datetime import datetime
from typing import Union

import msgspec

from paimon_py.arguments import way_of
from paimon_py.commit.result import CommittedSnapshots
from paimon_py.errors import SnapshotExpiredError, SnapshotNotFoundError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.ends import Ends, Mode, require_mode
from paimon_py.scan.moments import as_moment, millis_of
from paimon_py.scan.of_commit import OfCommit, of_commit
from paimon_py.scan.removals import refuses_removals
from paimon_py.spec.snapshot import Base, Snapshot, SnapshotId

End = Union[int, str, datetime, None]


class Between(msgspec.Struct, frozen=True):
    """The changes after `start` up to and including `end` (None: the latest snapshot).

    Ends are snapshot ids (0: the empty table before the first one), names of tags, or datetimes, which stand for the
    last snapshot committed at or before them.
    """

    start: End
    end: End
    mode: Mode

    def ends(self, table: OpenTable) -> Ends | None:
        """The ends as snapshots; None if there is nothing between them.

        Cost: a few gets.
        Raises:
            UsageError: the ends are in the wrong order, or an end is invalid.
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: the state does not exist (any more).
        """
        states = self.mode == "diff"
        last = table.root.latest() if self.end is None else _state(table.root, "end", self.end, whole=states)
        start = None
        if states or not isinstance(self.start, int):
            start = _state(table.root, "start", self.start, whole=states)
        since, until = (0 if state is None else state.id for state in (start, last))
        if isinstance(self.start, int):
            since = self.start
        if since > until and isinstance(self.start, int) and self.end is None:
            table.root.snapshots.get(since)
        if since > until:
            raise UsageError(
                f"the changes between {self.start!r} and {self.end!r} end before they begin: the first end is snapshot "
                f"{since}, the last one {until}; an earlier state comes first"
            )
        if last is None or (since == until and not (states and _is_other(start, last))):
            return None
        if not states:
            _check_one_history(table.root, self.start, start)
            _check_one_history(table.root, self.end, last)
            table.root.snapshot_or_changelog(since + 1)
        return Ends(
            since=since, start=start, last=last, mode=self.mode, refuses_none=self.mode == "changelog",
            now=self.end is None, refuses_removals=refuses_removals(table.schema),
        )  # fmt: skip


def between(start: object, end: object, mode: object) -> Between | OfCommit:
    """The range that a caller passes.

    Raises: UsageError for invalid ends and modes.
    """
    if isinstance(start, CommittedSnapshots):
        return of_commit(start, end, mode)
    wanted = require_mode(mode)
    if start is None:
        raise UsageError("the changes begin after a state: give its snapshot id (0: the empty table), tag or time")
    found = Between(_end("start", start), None if end is None else _end("end", end), wanted)
    if isinstance(found.start, int) and isinstance(found.end, int) and found.start > found.end:
        raise UsageError(f"the changes between {start!r} and {end!r} end before they begin: the smaller id comes first")
    return found


def _end(which: str, given: object) -> End:
    value = as_moment(f"the {which} of changes", given)
    if isinstance(value, bool) or not isinstance(value, (int, str, datetime)):
        raise UsageError(
            f"the {which} of changes is a snapshot id, the name of a tag or a datetime, not {value!r}{way_of(value)}"
        )
    if isinstance(value, int) and value < 0:
        raise UsageError(f"the {which} of changes is a snapshot id, 0 for the empty table, not {value!r}")
    return value


def _state(root: TableRoot, which: str, end: End, *, whole: bool) -> Snapshot | None:
    """The snapshot of an end; None for the empty table. `whole`: its files are needed, not only its changes."""
    if isinstance(end, str):
        return root.tags.get(end).snapshot
    if isinstance(end, int):
        if not end:
            return None
        return root.snapshots.get(end) if whole else root.snapshot_or_changelog(end)
    assert isinstance(end, datetime)
    millis = millis_of(f"the {which} of changes", end)
    try:
        return root.snapshots.by_time(millis)
    except SnapshotExpiredError:
        raise
    except SnapshotNotFoundError:
        return None


def _is_other(start: Snapshot | None, last: Snapshot) -> bool:
    """Whether two states with the same id are of different histories, as tags may be."""
    return start is not None and start.mark != last.mark


def _check_one_history(root: TableRoot, end: End, state: Snapshot | None) -> None:
    """Refuse a state whose snapshot id was reused by another snapshot: after a rollback, or by another table."""
    if isinstance(end, SnapshotId) and end.mark is not None:
        base = Base(int(end), end.mark)
    elif isinstance(end, str) and state is not None:
        base = Base.of(state)
    else:
        return
    found = root.find_kept(base.id)
    if found is None:
        after = root.find_kept(base.id + 1)
        is_ours = after is None or after.follows(base) is not False
    else:
        is_ours = base.is_of(found)
    if not is_ours:
        named = f"tag {end!r} names a snapshot {base.id} that" if isinstance(end, str) else f"snapshot {base.id}"
        raise UsageError(
            f"{named} is no longer in the table's history: another one has its"
            " number; mode='diff' compares the states themselves"
        )
