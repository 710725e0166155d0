"""What a table object remembers of the care that its commits take, so that a commit asks the store only when it must.

All of it may be forgotten, or be older than the table: it then costs a few calls, or care comes with a later commit.
"""

from __future__ import annotations

import msgspec


class Oldest(msgspec.Struct, frozen=True):
    """The oldest snapshot, or kept changelog, and the time that decides when it may go, None if that is not known."""

    id: int
    millis: int | None = None


class Upkeep(msgspec.Struct):
    """What commits remember.

    Attributes:
        snapshot: the oldest snapshot.
        changelog: the oldest changelog that is kept longer than its snapshot; the latest snapshot if there was
            none that may ever go: others may keep some from then on.
        consumers_due: no consumer expires before this time, in epoch milliseconds.
        at_work: whether care that was begun in the background still goes on.
    """

    snapshot: Oldest | None = None
    changelog: Oldest | None = None
    consumers_due: int | None = None
    at_work: bool = False
