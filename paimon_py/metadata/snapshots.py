"""The snapshots of one table: finding, reading, publishing.

Source: format.md §1.3, §2, §4.1; Java `SnapshotManager`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Protocol

import msgspec

from paimon_py.arguments import way_of
from paimon_py.codec.snapshot_json import snapshot_from_json
from paimon_py.env import Env, is_distant
from paimon_py.errors import (
    CorruptionError,
    SnapshotExpiredError,
    SnapshotNotFoundError,
    UsageError,
)
from paimon_py.metadata.hints import read_hint
from paimon_py.metadata.id_runs import current_run
from paimon_py.metadata.snapshot_prefetch import WALK_MAX, SnapshotPrefetcher
from paimon_py.spec.layout import (
    SNAPSHOT_PREFIX,
    earliest_hint_path,
    latest_hint_path,
    parse_number,
    snapshot_directory,
    snapshot_path,
)
from paimon_py.spec.snapshot import MIN_LONG, Snapshot, SnapshotId
from paimon_py.storage.store import FileMissingError, Get, List, Put, PutNew, Stat


class SnapshotStore(Get, PutNew, Put, List, Stat, Protocol):
    """The store operations that this module uses."""


class ReadPolicy(msgspec.Struct, frozen=True):
    """Settings for half-written snapshot files: the number of attempts, and the wait between them."""

    attempts: int = 10
    wait_seconds: float = 0.2


class Snapshots:
    """The snapshots of one table directory (or branch directory).

    Snapshots are not cached: a rollback may reuse an id. `.ahead` finds the newest one on distant stores.

    Args:
        newest: returns the newest snapshot if a catalog manages the history; all others are files also then.
    """

    __slots__ = ("_env", "_is_doubtful", "_newest", "_path", "_policy", "_store", "ahead")

    def __init__(
        self,
        store: SnapshotStore,
        path: str,
        env: Env | None = None,
        policy: ReadPolicy | None = None,
        *,
        newest: Callable[[], Snapshot | None] | None = None,
    ) -> None:
        self._newest = newest
        self._is_doubtful = False
        self._store = store
        self._path = path
        self._env = env or Env()
        self._policy = policy or ReadPolicy()
        self.ahead = SnapshotPrefetcher(store, path, self._env, self.find)

    def ids(self) -> list[int]:
        """Ids of all snapshots, ascending. Cost: one list."""
        statuses = self._store.list(snapshot_directory(self._path))
        numbers = (parse_number(SNAPSHOT_PREFIX, status.name) for status in statuses if not status.is_directory)
        return sorted(number for number in numbers if number is not None)

    def latest_id(self) -> int | None:
        """The id of the newest snapshot; None for an empty table. Cost: as `latest`."""
        newest = self.latest()
        return None if newest is None else newest.id

    def latest(self) -> Snapshot | None:
        """The newest snapshot; None for an empty table.

        The LATEST hint is only a lower bound: it is accepted if its snapshot exists and is not older than the
        EARLIEST hint, and newer ones are then read one by one; each must follow from the previous one. Otherwise
        the snapshots are listed.

        Cost: three gets and one stat with a good hint, one more get per commit since; otherwise one list, and one get.
            On distant stores the hints are read in parallel, and then the snapshot together with the one after it: one
            round trip for a table object that has seen the newest snapshot, two for others.
        """
        if self._newest is not None:
            return self._newest()
        if is_distant(self._path):
            found = self.ahead.newest()
            if found is not None:
                return found
        hint = read_hint(self._store, latest_hint_path(self._path))
        if hint is not None and hint > 0:
            hinted = self.find(hint)
            if hinted is not None and hint >= (self.earliest_hint() or 0):
                if not self._exists(hint + 1):
                    return hinted
                found = self._walk(hinted)
                if found is not None:
                    return found
        return self._listed_latest(hint)

    def _walk(self, hinted: Snapshot) -> Snapshot | None:
        """The newest snapshot that follows from one; None if so many follow that listing is cheaper."""
        newest = hinted
        for _ in range(WALK_MAX):
            following = self.find(newest.id + 1)
            if following is None:
                return newest
            if following.follows(newest) is False:
                self._is_doubtful = True
                return newest
            newest = following
        return None

    def _listed_latest(self, hint: int | None) -> Snapshot | None:
        """The newest snapshot of the history, by a listing. `hint`: the LATEST hint."""
        for _ in range(self._policy.attempts):
            ids = self.ids()
            self._is_doubtful = self._is_doubtful or bool(ids or hint)
            if not ids:
                return None
            snapshot = self.find(current_run(ids, self.earliest_hint)[-1])
            if snapshot is not None:
                return snapshot
        raise SnapshotNotFoundError(f"the newest snapshot of {self._path} disappears repeatedly", path=self._path)

    def reset_doubt(self) -> bool:
        """Whether `latest` found its result without a good hint since the last call."""
        is_doubtful, self._is_doubtful = self._is_doubtful, False
        return is_doubtful

    def earliest_id(self) -> int | None:
        """The id of the oldest snapshot; None for an empty table. Cost: one get and one stat, or one list."""
        hint = self.earliest_hint()
        if hint is not None and self._exists(hint):
            return hint
        ids = self.ids()
        return current_run(ids, lambda: hint)[0] if ids else None

    def oldest_two(self) -> tuple[int | None, Snapshot | None]:
        """The id of the oldest snapshot, None for an empty table; and the snapshot after it, if it was read as well.

        Cost: as `earliest_id`; on distant stores two gets in parallel, by the last seen hint.
        """
        if is_distant(self._path):
            found = self.ahead.oldest_two()
            if found is not None:
                return found
        return self.earliest_id(), None

    def find(self, snapshot_id: int) -> Snapshot | None:
        """One snapshot; None if it does not exist (any more).

        Raises:
            CorruptionError: the file is broken, also after reading it again.
        """
        path = snapshot_path(self._path, snapshot_id)
        try:
            snapshot = self._read(path)
        except FileMissingError:
            return None
        if snapshot.id != snapshot_id:
            raise CorruptionError(f"{path} contains snapshot {snapshot.id}", path=path)
        return snapshot

    def get(self, snapshot_id: int) -> Snapshot:
        """One snapshot.

        Raises:
            SnapshotExpiredError: it is older than the oldest one left.
            SnapshotNotFoundError: there is none of that id, or another one than the `SnapshotId` refers to.
            UsageError: it is not a whole number.
        """
        if isinstance(snapshot_id, bool) or not isinstance(snapshot_id, int):
            raise UsageError(f"snapshot_id must be a whole number, not {snapshot_id!r}{way_of(snapshot_id)}")
        snapshot = self.find(snapshot_id)
        if snapshot is not None:
            check_mark(self._path, snapshot_id, snapshot)
            return snapshot
        ids = self.ids()
        if ids and 0 < snapshot_id < ids[0]:
            raise self._expired_error(snapshot_id, ids[0])
        there = f"it has snapshots {ids[0]} to {ids[-1]}" if ids else "the table has no snapshot yet"
        raise SnapshotNotFoundError(
            f"no snapshot {snapshot_id} in {self._path}: {there}", path=self._path, snapshot_id=snapshot_id
        )

    def by_time(self, millis: int) -> Snapshot:
        """The latest snapshot that was committed at or before a time, in epoch milliseconds.

        Times are assumed to ascend with ids and found by binary search, as in Java.

        Raises:
            SnapshotExpiredError, SnapshotNotFoundError: the time is before the oldest remaining snapshot.
        """
        first = self._oldest()
        latest = self.latest_id()
        if first is None or latest is None:
            raise SnapshotNotFoundError(f"{self._path} has no snapshot yet", path=self._path)
        if first.time_millis > millis:
            raise _too_early(self._path, millis, first)
        found = first
        low, high = first.id, latest
        while low <= high:
            middle = (low + high) // 2
            snapshot = self.find(middle)
            if snapshot is None or snapshot.time_millis < millis:
                low, found = middle + 1, snapshot or found
            elif snapshot.time_millis > millis:
                high = middle - 1
            else:
                return snapshot
        return found

    def first_since(self, millis: int) -> Snapshot | None:
        """The first snapshot that was committed at a time or later, in epoch milliseconds.

        None if there is none yet, or if the oldest remaining one is that late: earlier ones may have been, too.
        """
        first, latest = self._oldest(), self.latest_id()
        if first is None or latest is None or first.time_millis >= millis:
            return None
        return self.find(self.by_time(millis - 1).id + 1)

    def by_watermark(self, watermark: int) -> Snapshot:
        """The first snapshot whose watermark is at least `watermark`; snapshots without one are skipped.

        Raises:
            SnapshotNotFoundError: none has reached it.
        """
        latest = self.latest_id()
        low, high = self.earliest_id() or 1, latest or 0
        found: Snapshot | None = None
        while low <= high:
            middle = (low + high) // 2
            snapshot = self._find_watermark(middle, low)
            if snapshot is None or watermark_of(snapshot) < watermark:
                low = middle + 1
            else:
                found, high = snapshot, snapshot.id - 1
        if found is None:
            raise SnapshotNotFoundError(
                f"no snapshot of {self._path} has reached watermark {watermark}", path=self._path
            )
        return found

    def _read(self, path: str) -> Snapshot:
        """Decode a file; read it again while it does not end like JSON: it may still be written."""
        for _ in range(self._policy.attempts - 1):
            data = self._store.get(path)
            if data.rstrip().endswith(b"}"):
                return snapshot_from_json(data, path)
            self._env.clock.sleep(self._policy.wait_seconds)
        return snapshot_from_json(self._store.get(path), path)

    def _oldest(self) -> Snapshot | None:
        """The oldest readable snapshot; expiry may delete some in the meantime."""
        earliest = self.earliest_id()
        snapshot = None if earliest is None else self.find(earliest)
        if snapshot is not None or earliest is None:
            return snapshot
        return next((found for found in map(self.find, self.ids()) if found is not None), None)

    def _find_watermark(self, newest: int, oldest: int) -> Snapshot | None:
        """The newest snapshot from `newest` down to `oldest` that has a watermark."""
        found = map(self.find, range(newest, oldest - 1, -1))
        return next((it for it in found if it is not None and watermark_of(it) > MIN_LONG), None)

    def _exists(self, snapshot_id: int) -> bool:
        return self._store.stat(snapshot_path(self._path, snapshot_id)) is not None

    def earliest_hint(self) -> int | None:
        """The value of the EARLIEST hint. Cost: one get."""
        return read_hint(self._store, earliest_hint_path(self._path))

    def _expired_error(self, snapshot_id: int, earliest: int) -> SnapshotExpiredError:
        return SnapshotExpiredError(
            f"snapshot {snapshot_id} of {self._path} has expired, the oldest one left is {earliest}{PINNING}",
            path=self._path,
            snapshot_id=snapshot_id,
        )


def check_mark(path: str, number: int, found: Snapshot) -> None:
    """Check that a snapshot is the one that a `SnapshotId` refers to; a plain number refers to any.

    Raises: SnapshotNotFoundError
    """
    if not SnapshotId.of(found).is_same(number):
        raise SnapshotNotFoundError(
            f"snapshot {number} of {path} now has other contents: the original was rolled back, and a later commit has"
            " its id; or it belongs to another table or branch",
            path=path, snapshot_id=int(number),
        )  # fmt: skip


def watermark_of(snapshot: Snapshot) -> int:
    """The watermark of a snapshot; MIN_LONG if it has none."""
    return MIN_LONG if snapshot.watermark is None else snapshot.watermark


PINNING = (
    "; the options snapshot.num-retained.min, snapshot.num-retained.max and snapshot.time-retained decide how long"
    " snapshots are kept, and a tag (create_tag) keeps one for good"
)


def _time_text(millis: int) -> str:
    """A time as readable text, in UTC, with the milliseconds that callers pass."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)
    except OverflowError:
        return str(millis)
    return f"{moment.isoformat(timespec='milliseconds').replace('+00:00', 'Z')} ({millis})"


def _too_early(path: str, millis: int, first: Snapshot) -> SnapshotNotFoundError:
    oldest = f"the oldest one is {first.id}, of {_time_text(first.time_millis)}"
    message = f"no snapshot of {path} at {_time_text(millis)}: {oldest}"
    if first.id == 1:
        return SnapshotNotFoundError(message, path=path)
    return SnapshotExpiredError(message + PINNING, path=path)
