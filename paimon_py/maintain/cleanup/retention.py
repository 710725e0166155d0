"""Retention limits of snapshots and changelogs; computes the first kept snapshot, and the reason. Pure.

Source: format.md §16.1; Java `ExpireSnapshotsImpl`, `CoreOptions.expireConfig`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from paimon_py.arguments import as_python
from paimon_py.errors import UsageError
from paimon_py.scan.moments import limit_before
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import Snapshot


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of expiry.

    Attributes:
        count_min: the number of newest snapshots that are always kept.
        count_max: the maximum number of snapshots; older ones expire whatever their age.
        older_than_millis: other snapshots expire if their successor is older than this time, in epoch milliseconds.
        limit: the maximum number of snapshots that expire at once.
    """

    count_min: int
    count_max: int
    older_than_millis: int
    limit: int


def retention_of(
    options: Mapping[str, str],
    now_millis: int,
    what: str,
    *,
    count_min: int | None = None,
    count_max: int | None = None,
    older_than: datetime | timedelta | str | int | None = None,
    limit: int | None = None,
) -> Retention:
    """The limits that the caller passes, with defaults from the table's options.

    `what`: 'snapshot', or 'changelog', whose options are by default those of snapshots.

    Raises: UsageError for numbers that contradict each other.
    """
    table = Options(options)
    numbers = {
        "retain_min": table.get_int(_option(table, what, "num-retained.min")) if count_min is None else count_min,
        "retain_max": table.get_int(_option(table, what, "num-retained.max")) if count_max is None else count_max,
        "max_deletes": table.get_int("snapshot.expire.limit") if limit is None else limit,
    }
    numbers = {name: as_python(number) for name, number in numbers.items()}
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, not {number!r}")
    least, most = numbers["retain_min"], numbers["retain_max"]
    retained = table.get_duration(_option(table, what, "time-retained"))
    if most < least:
        raise UsageError(
            f"retain_max = {most} is less than retain_min = {least}; a limit that is not given comes from the options "
            f"{what}.num-retained.max and {what}.num-retained.min: give both"
        )
    return Retention(
        count_min=least,
        count_max=most,
        older_than_millis=_older_than(older_than, now_millis, retained),
        limit=numbers["max_deletes"],
    )


def _option(table: Options, what: str, name: str) -> str:
    return f"{what}.{name}" if table.is_set(f"{what}.{name}") else f"snapshot.{name}"


def _older_than(given: datetime | timedelta | str | int | None, now_millis: int, retained_millis: int) -> int:
    if given is None:
        return now_millis - retained_millis
    return limit_before("older_than", as_python(given), now_millis)


class FirstKept(msgspec.Struct, frozen=True):
    """The oldest snapshot that is kept, and the reason."""

    snapshot_id: int
    reason: str


def first_kept(
    earliest: int,
    latest: int,
    retention: Retention,
    consumers: Mapping[str, int],
    time_of: Callable[[int], int | None],
) -> FirstKept:
    """The first kept snapshot; all from `earliest` up to that one expire.

    Args:
        consumers: the next snapshot of each consumer, by name.
        time_of: the time of a snapshot in epoch milliseconds, None if it does not exist any more.

    Cost: a time per snapshot that expires by its age, and for the first kept one.
    """
    ends = [(latest - retention.count_min + 1, f"the newest {retention.count_min} are kept (retain_min)")]
    ends.append((earliest + retention.limit, f"at most {retention.limit} expire at once (snapshot.expire.limit)"))
    ends += [(following, f"consumer {name!r} has not read it") for name, following in sorted(consumers.items())]
    end, reason = min(ends, key=lambda found: found[0])
    for number in range(max(latest - retention.count_max + 1, earliest), end):
        following = time_of(number + 1)
        if following is not None and retention.older_than_millis <= following:
            return FirstKept(number, "the snapshot after it is too young (snapshot.time-retained)")
    return FirstKept(max(end, earliest), reason)


def may_go(oldest: int, millis: int | None, latest: int, retention: Retention) -> bool | None:
    """Whether counts and times allow the oldest snapshot, or kept changelog, to expire; None if its time is needed.

    `millis`: the decisive time: that of the following snapshot, or of the changelog itself.
    """
    if oldest > latest - retention.count_min:
        return False
    if oldest <= latest - retention.count_max:
        return True
    return None if millis is None else millis < retention.older_than_millis


def first_kept_changelog(
    ids: Sequence[int],
    latest: int,
    retention: Retention,
    consumers: Mapping[str, int],
    time_of: Callable[[int], int | None],
) -> FirstKept:
    """The first changelog that is kept; those of `ids`, ascending, up to it expire. `latest`: newest snapshot.

    Unlike snapshots, changelogs expire by their own time, and the newest one is always kept.

    Source: Java `ExpireChangelogImpl`.
    """
    ends = [(latest - retention.count_min + 1, f"the newest {retention.count_min} changes are kept (retain_min)")]
    ends.append((ids[0] + retention.limit, f"at most {retention.limit} expire at once (snapshot.expire.limit)"))
    ends.append((ids[-1], "the newest kept changelog never expires"))
    ends += [(following, f"consumer {name!r} has not read it") for name, following in sorted(consumers.items())]
    end, reason = min(ends, key=lambda found: found[0])
    if end <= ids[0]:
        return FirstKept(ids[0], reason)
    for number in range(max(latest - retention.count_max + 1, ids[0]), end + 1):
        time = time_of(number)
        if time is not None and retention.older_than_millis <= time:
            return FirstKept(number, "the changelog is too young (changelog.time-retained)")
    return FirstKept(end, reason)


class RetainedChanges(enum.Enum):
    """The kept part of the changes of expired snapshots: nothing, changelog files, or the written files."""

    NOTHING = 0
    CHANGELOG = 1
    WRITTEN = 2


def retained_changes(options: Mapping[str, str]) -> RetainedChanges:
    """Whether a table's options keep changes longer than snapshots, and in which files."""
    table = Options(options)
    kept_longer = (
        (table.find_int("changelog.num-retained.min") or 0) > table.get_int("snapshot.num-retained.min")
        or (table.find_int("changelog.num-retained.max") or 0) > table.get_int("snapshot.num-retained.max")
        or (table.find_duration("changelog.time-retained") or 0) > table.get_duration("snapshot.time-retained")
    )
    if not kept_longer:
        return RetainedChanges.NOTHING
    return RetainedChanges.WRITTEN if table.get_enum("changelog-producer") == "none" else RetainedChanges.CHANGELOG


class FetchedSnapshots:
    """Snapshots, or kept changelogs, each fetched once by `find`. `seen`: one that was just read."""

    def __init__(self, find: Callable[[int], Snapshot | None], seen: Snapshot | None = None) -> None:
        self._find = find
        self._found: dict[int, Snapshot | None] = {} if seen is None else {seen.id: seen}

    def has(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot exists."""
        return any(found.mark == snapshot.mark for found in self.get(snapshot.id))

    def get(self, number: int) -> list[Snapshot]:
        """The snapshot, or an empty list if another process expired it."""
        if number not in self._found:
            self._found[number] = self._find(number)
        found = self._found[number]
        return [] if found is None else [found]

    def time_of(self, number: int) -> int | None:
        """The commit time in epoch milliseconds; None if another process expired the snapshot."""
        return next((snapshot.time_millis for snapshot in self.get(number)), None)
