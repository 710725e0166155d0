"""Finds the newest and the oldest snapshot with few sequential requests on distant stores.

Source: docs/reliability.md §3 (f).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from paimon_py.env import Env
from paimon_py.metadata.hints import read_hint
from paimon_py.spec.layout import earliest_hint_path, latest_hint_path
from paimon_py.spec.snapshot import Snapshot
from paimon_py.storage.store import Get

WALK_MAX = 16
"""The number of steps forward from a stale hint before listing is cheaper."""


class SnapshotPrefetcher:
    """Reads hints and snapshots in parallel. Ids that were seen are remembered as hints; snapshots are not.

    Attributes:
        seen: the newest id that was seen; 0 for none.
        earliest: the last value of the EARLIEST hint; 0 for none.
    """

    __slots__ = ("_env", "_find", "_path", "_store", "earliest", "seen")

    def __init__(self, store: Get, path: str, env: Env, find: Callable[[int], Snapshot | None]) -> None:
        self._store = store
        self._path = path
        self._env = env
        self._find = find
        self.seen = 0
        self.earliest = 0

    def look(self) -> None:
        """Remember the LATEST hint for `newest`. Cost: one get."""
        self.seen = self.hint() or self.seen

    def hint(self) -> int | None:
        """The id in the LATEST hint; None if there is no readable hint. Cost: one get."""
        return read_hint(self._store, latest_hint_path(self._path))

    def newest(self) -> Snapshot | None:
        """The newest snapshot by hints; None if they do not lead to it.

        The last seen id is a hint like LATEST, and the larger one of both counts: a lower bound, accepted if its
        snapshot exists and is not older than EARLIEST. If LATEST differs, EARLIEST is read again at the end: snapshots
        may have expired between two of the calls. Without LATEST no hint counts, since a rollback may be in progress;
        the same applies if a snapshot does not follow from the previous one.

        Cost: one round trip if the newest snapshot was seen before, two with a good hint, one more for each commit
            since.
        """
        known: dict[int, Snapshot | None] = {}
        hints: list[int | None] = [None, None]

        def fetch(number: int) -> Callable[[], None]:
            return lambda: known.__setitem__(number, self._find(number))

        seen = self.seen
        of_seen = [fetch(seen), fetch(seen + 1)] if seen else []
        read = [lambda: hints.__setitem__(0, self.hint()), lambda: hints.__setitem__(1, self._earliest_hint())]
        self._env.at_once(self._path, [*read, *of_seen])
        latest, self.earliest = (hint or 0 for hint in hints)
        for start in (max(latest, seen), latest) if latest != seen else (seen,):
            if not latest or start <= 0 or start < self.earliest:
                continue
            for number in range(start, start + WALK_MAX):
                missing = [fetch(each) for each in (number, number + 1) if each not in known]
                self._env.at_once(self._path, missing)
                found = known[number]
                if found is None:
                    break
                following = known[number + 1]
                if following is not None:
                    if following.follows(found) is False:
                        return None
                    continue
                if number != latest and number < (self._earliest_hint() or 0):
                    return None
                self.seen = number
                return found
        return None

    def oldest_two(self) -> tuple[int, Snapshot | None] | None:
        """The id of the oldest snapshot, and the snapshot after it; None if the last seen hint does not lead to it.

        Cost: two gets in parallel.
        """
        first = self.earliest or 1  # snapshot 1 is the oldest if it still exists
        pair = [partial(self._find, first), partial(self._find, first + 1)]
        oldest, following = self._env.at_once(self._path, pair)
        return None if oldest is None else (first, following)

    def _earliest_hint(self) -> int | None:
        return read_hint(self._store, earliest_hint_path(self._path))
