"""The newest and the oldest snapshot found in few waits, where requests to the store take their time.

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
"""Steps forward from a stale hint before listing is cheaper."""


class SnapshotPrefetcher:
    """Asks for hints and snapshots at once. Ids that were seen are remembered as hints, and no snapshot is.

    Attributes:
        seen: the newest id that was seen, 0 for none.
        earliest: what the EARLIEST hint said last, 0 for nothing.
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
        """Remember what the LATEST hint says, for `newest`. Cost: one get."""
        self.seen = self.hint() or self.seen

    def hint(self) -> int | None:
        """The id that the LATEST hint says, None if there is none that can be read. Cost: one get."""
        return read_hint(self._store, latest_hint_path(self._path))

    def newest(self) -> Snapshot | None:
        """The newest snapshot by hints, None if they do not lead to it.

        What was seen is a hint like LATEST, and the larger one of both counts: a lower bound, believed if its snapshot
        is there and not older than EARLIEST says. Where LATEST does not say the same, EARLIEST is asked again at the
        end: snapshots may have expired between two of the calls. Without LATEST no hint counts, since a rollback may be
        at work; nor where a snapshot does not follow from the one before.

        Cost: one wait where the newest snapshot was seen before, two by a good hint, one more for each commit since.
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
        """The id of the oldest snapshot, and the snapshot after it; None if the hint that was seen does not lead to it.

        Cost: two gets at once.
        """
        first = self.earliest or 1  # snapshot 1 is the oldest wherever it is left
        pair = [partial(self._find, first), partial(self._find, first + 1)]
        oldest, following = self._env.at_once(self._path, pair)
        return None if oldest is None else (first, following)

    def _earliest_hint(self) -> int | None:
        return read_hint(self._store, earliest_hint_path(self._path))
