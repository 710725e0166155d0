"""Finds the snapshots that follow one another, one by one.

Nothing is listed in normal operation: the next snapshot is requested by its id. Each must have been built on the last
passed one, so that a rollback is noticed, even long after that one has expired. A snapshot of another writer does not
contain its parent: then the previous one is read again.

Source: docs/reliability.md §3 (b), (c); Java `NextSnapshotFetcher`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from paimon_py.errors import SnapshotExpiredError, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.snapshots import check_mark
from paimon_py.spec.snapshot import Base, Snapshot
from paimon_py.stream.position import table_of

AHEAD_MAX = 64
"""The number of snapshots that are fetched at once if a reader is far behind."""

KEEPING = (
    "; the options snapshot.num-retained.min, snapshot.num-retained.max and snapshot.time-retained decide how long"
    " snapshots are kept, changelog.num-retained.max and changelog.time-retained how long their changes are kept, and a"
    " consumer (consumer_id) keeps what it has not acknowledged. from_='earliest' starts with the oldest that is left"
)


class SnapshotFollower:
    """The snapshots after a base, in order, one at a time.

    Attributes:
        base: the last passed snapshot.
    """

    def __init__(self, root: TableRoot, base: Base, table: str | None, consumer: str | None = None) -> None:
        """`table`: identifies the table among those created at its path. `consumer`: the consumer of the stream."""
        self._root = root
        self._table = table
        self._consumer = consumer
        self.base = base
        self._ahead: deque[Snapshot] = deque()
        self._chunk = 1
        self._asked_millis = root.env.clock.millis()
        self._expired_below = 0

    def peek(self) -> Snapshot | None:
        """The next snapshot; None if there is none yet. The follower does not advance, so the call can be repeated.

        Cost: two gets, hardly more than one if the reader is behind.
        Raises:
            SnapshotExpiredError: the snapshot has expired, or was rolled back.
            TableNotFoundError: the table no longer exists.
        """
        if not self._ahead:
            self._ahead.extend(self._fetch())
        return self._ahead[0] if self._ahead else None

    def require_base(self) -> None:
        """Check that the last passed snapshot was not rolled back, for a stream that ends with it.

        Cost: a get or two.
        Raises: SnapshotExpiredError
        """
        ids: Sequence[int] = ()
        if self.base.id and self._root.snapshots.find(self.base.id) is None:
            ids = self._root.snapshots.ids()
        if ids and self.base.id > ids[-1]:
            raise self._rolled_back(ids)
        self._check_base(follows=False)

    def pass_it(self) -> None:
        """Advance past the snapshot that `peek` returned."""
        self.base = Base.of(self._ahead.popleft())

    def _fetch(self) -> Sequence[Snapshot]:
        asked, self._asked_millis = self._asked_millis, self._root.env.clock.millis()
        number = self.base.id + 1
        if number < self._expired_below:
            return [self._changelog(number)]
        found = self._many(number) or self._one(number)
        if not found:
            return self._none(number)
        behind = found[-1].time_millis < asked
        self._chunk = min(2 * self._chunk, AHEAD_MAX) if behind else 1
        return found

    def _one(self, number: int) -> Sequence[Snapshot]:
        self._chunk = 1
        snapshot = self._root.snapshots.find(number)
        return [] if snapshot is None or not self._follows(snapshot) else [snapshot]

    def _many(self, number: int) -> Sequence[Snapshot]:
        """A chunk of snapshots; empty if there are too few.

        If each states that it was built on the previous one, they are the next ones. Otherwise the last one is fetched
        first, and once more at the end: if both are the same, there was no rollback in between, and the last one
        descends from all the others, including the base.
        """
        last = number + self._chunk - 1
        newest = self._root.snapshots.find(last) if self._chunk > 1 else None
        if newest is None:
            return []
        numbers = range(number, last)
        many = "://" in self._root.path
        found = list((self._root.env.pool.map if many else map)(self._root.snapshots.find, numbers))
        there = [snapshot for snapshot in found if snapshot is not None]
        if len(there) < len(found):
            return []
        chain = [*there, newest]
        links = [chain[0].follows(self.base), *(after.follows(before) for before, after in pairwise(chain))]
        if False in links:
            return []
        said = all(links) and bool(self.base.id)
        self._check_base(follows=said)
        return chain if said or self._root.snapshots.find(last) == newest else []

    def _follows(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot follows the last passed one; False for one that a commit left in the wrong place.

        Raises: SnapshotExpiredError if the last passed one is no longer part of the history.
        """
        said = snapshot.follows(self.base)
        if said is False:
            if self.base.is_of(self._root.snapshots.find(self.base.id)):
                return False
            raise self._rolled_back()
        self._check_base(follows=bool(said and self.base.id))
        return True

    def _check_base(self, *, follows: bool) -> None:
        """Check that the last passed snapshot was not rolled back; an expired one is accepted.

        Args:
            follows: its successor states that it was built on it. Otherwise the table and a retained changelog are
                checked.
        """
        if self.base.id and self.base.mark is None:
            return
        here = self._root.snapshots.find(self.base.id) if self.base.id else None
        if here is not None:
            if not self.base.is_of(here):
                raise self._rolled_back()
            return
        if follows:
            ids = self._root.snapshots.ids()
            if ids and ids[0] < self.base.id:
                raise self._rolled_back(ids)
            return
        if self._table is not None and table_of(self._root) != self._table:
            raise self._rolled_back()
        kept = self._root.changelogs.find(self.base.id) if self.base.id else None
        if kept is not None and not self.base.is_of(kept):
            raise self._rolled_back()

    def _none(self, number: int) -> Sequence[Snapshot]:
        """Decide if a snapshot is missing: it may not exist yet, or no longer."""
        here = self._root.snapshots.find(self.base.id) if self.base.id else None
        if here is not None:
            if not self.base.is_of(here):
                raise self._rolled_back()
            return []
        ids = self._root.snapshots.ids()
        if not ids:
            self._root.schemas.latest()  # raises if there is no table
        if number in ids or self.base.id in ids:
            return []
        if ids and number < ids[0]:
            self._expired_below = ids[0]
            return [self._changelog(number)]
        if not ids and not self.base.id:
            return []
        raise self._rolled_back(ids)

    def _changelog(self, number: int) -> Snapshot:
        found = self._root.changelogs.find(number)
        if found is None:
            raise expired_error(self._root, number)
        if found.follows(self.base) is False:
            raise self._rolled_back()
        if found.follows(self.base) is None:
            self._check_base(follows=False)
        return found

    def _rolled_back(self, ids: Sequence[int] = ()) -> SnapshotExpiredError:
        there = f": its newest snapshot is {ids[-1]}" if ids else ""
        way = "start again with from_='full'"
        if self._consumer is not None:
            way = f"table.reset_consumer({self._consumer!r}, …) sets the snapshot with which the consumer continues"
        return SnapshotExpiredError(
            f"snapshot {self.base.id} of {self._root.path}, after which the stream continues, is no longer in the"
            f" table{there}. The table was rolled back or created again: {way}",
            path=self._root.path, snapshot_id=self.base.id,
        )  # fmt: skip


def require_following(root: TableRoot, number: int, consumer: str | None = None) -> None:
    """Check that a stream can begin with a snapshot: the snapshot or its changelog exists, or it is the next one.

    `consumer`: the consumer with this position.

    Raises:
        UsageError: it would be later than the next one.
        SnapshotExpiredError: it has expired.
        SnapshotNotFoundError: another one has the number of the `SnapshotId`.
    """
    found = root.find_kept(number)
    if found is not None:
        check_mark(root.branch_path, number, found)
        return
    latest = root.snapshots.latest_id() or 0
    if number > latest + 1 and consumer is not None:
        raise UsageError(
            f"the consumer {consumer!r} of {root.path} is at snapshot {number}, but the next one will be"
            f" {latest + 1}: the table was rolled back or created again;"
            f" table.reset_consumer({consumer!r}, {latest + 1})"
        )
    if number > latest + 1:
        raise UsageError(f"snapshot {number} of {root.path} does not exist yet: the next one will be {latest + 1}")
    if number <= latest:
        raise expired_error(root, number)


def expired_error(root: TableRoot, number: int) -> SnapshotExpiredError:
    """The error for a snapshot whose changes are gone."""
    return SnapshotExpiredError(
        f"snapshot {number} of {root.path} has expired, and its changes with it{KEEPING}",
        path=root.path,
        snapshot_id=number,
    )
