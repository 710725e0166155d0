"""`table.changes(result)`: the changes of a call that committed."""

from __future__ import annotations

import msgspec
import numpy as np

from paimon_py.commit.result import CommittedSnapshots
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.ends import Ends, Mode, require_mode
from paimon_py.scan.removals import refuses_removals
from paimon_py.scan.time_travel import snapshot_of
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.layout import POSTPONE_BUCKET
from paimon_py.spec.snapshot import CommitKind, Snapshot, SnapshotId


class OfCommit(msgspec.Struct, frozen=True):
    """The changes of one call: the difference between the state before its snapshots and the last one with its rows, or
    the deltas or changelogs of its snapshots.
    """

    before: SnapshotId | None
    snapshot_ids: tuple[int, ...]
    mode: Mode

    def ends(self, table: OpenTable) -> Ends | None:
        """The ends as snapshots; None if nothing was committed except for a compaction.

        Cost: two or three gets.
        Raises:
            SnapshotNotFoundError: the snapshots belong to another history, or another table.
            SnapshotExpiredError: they have expired.
            UnsupportedError: the rows are in postponed buckets, so that no state contains them yet.
        """
        if self.mode != "diff":
            return self._ends(table)
        postponed = bucket_mode(table.schema) is BucketMode.POSTPONED
        last = self._last(table.root, compactions=postponed)
        if last is None:
            return None
        if self.before is None:
            raise UsageError(f"the state before snapshot {last.id} is not known: give two ends, changes(a, b)")
        if postponed:
            _require_published(table.root, last)
        start = snapshot_of(table.root, self.before)
        return Ends(since=int(self.before), start=start, last=last, mode="diff", of_call=True)

    def _ends(self, table: OpenTable) -> Ends | None:
        own = [found for number in self.snapshot_ids if (found := snapshot_of(table.root, number)) is not None]
        if not own:
            return None
        refuses = refuses_removals(table.schema)
        return Ends(since=own[0].id - 1, last=own[-1], mode=self.mode, own=tuple(own), refuses_removals=refuses)

    def _last(self, root: TableRoot, *, compactions: bool) -> Snapshot | None:
        """The last snapshot that contains the result of the call; compactions count only for postponed rows."""
        for number in reversed(self.snapshot_ids):
            found = snapshot_of(root, number)
            if found is not None and (compactions or found.commit_kind is not CommitKind.COMPACT):
                return found
        return None


def of_commit(result: CommittedSnapshots, end: object, mode: object) -> OfCommit:
    """The changes of the call that returned a result.

    Raises: UsageError for a second end, an invalid mode, and for commits that are not known any more.
    """
    if end is not None:
        raise UsageError("a result has a fixed end: write changes(result), or changes(a, b) for two ends")
    if result.already_committed and not result.snapshot_ids:
        raise UsageError(
            "the commit of this result had happened before, and its snapshot is no longer"
            " known: give two ends, changes(a, b)"
        )
    chosen = require_mode(mode)
    return OfCommit(result.before, result.snapshot_ids, "diff" if chosen == "auto" else chosen)


def _require_published(root: TableRoot, snapshot: Snapshot) -> None:
    """Raises: UnsupportedError"""
    files = root.manifests.delta(snapshot)
    entries = root.manifests.read_entries(files)
    waiting = (entries.bucket == POSTPONE_BUCKET) & (entries.kind == FileKind.ADD)
    if np.any(waiting):
        raise UnsupportedError(
            f"the rows of snapshot {snapshot.id} are in postponed buckets, so no state contains them: table.compact()"
            " publishes them, and changes(its result) returns them; table.stream() returns them as they were written",
            feature="changes of rows that wait for their bucket",
        )
