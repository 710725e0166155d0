"""The settings of a runner: what it does, how often, and how much in one round."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from paimon_py.errors import UsageError


class CareSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a `CareRunner`.

    Attributes:
        every: time from the beginning of one round to the beginning of the next.
        databases: only the tables of these databases; empty: of all databases.
        compacts: whether files are merged.
        expires: whether snapshots, changelogs, tags, partitions and consumers expire, by the options of each table.
        orphans_every: how often orphan files of a table are deleted; None: never.
        orphans_older_than: the minimum age of orphan files; no writer may keep files uncommitted for longer.
        budget_bytes: bytes that the compactions of one round may read; the first task always runs, so that large
            buckets are compacted, too. None: no limit.
        budget_time: no step starts in a round after this time. None: no limit.
    """

    every: timedelta = timedelta(minutes=10)
    databases: tuple[str, ...] = ()
    compacts: bool = True
    expires: bool = True
    orphans_every: timedelta | None = timedelta(days=1)
    orphans_older_than: timedelta = timedelta(days=1)
    budget_bytes: int | None = None
    budget_time: timedelta | None = None

    def __post_init__(self) -> None:
        for name in ("every", "orphans_every", "orphans_older_than", "budget_time"):
            value = getattr(self, name)
            if value is not None:
                check_duration(name, value)
        if self.budget_bytes is not None and self.budget_bytes < 1:
            raise UsageError(f"budget_bytes must be a number of bytes, at least 1, not {self.budget_bytes!r}")


def check_duration(name: str, value: object) -> None:
    """Check an argument that is a length of time.

    Raises: UsageError if it is not a timedelta above 0.
    """
    if not isinstance(value, timedelta) or value <= timedelta(0):
        raise UsageError(f"{name} must be a timedelta above 0, such as timedelta(minutes=10), not {value!r}")
