"""Cached state of automatic maintenance, so that a commit asks the store only when it must.

All of it may be forgotten, or be older than the table: it then costs a few calls, or care comes with a later commit.
"""

from __future__ import annotations

import msgspec

from paimon_py.spec.events import CommitEvent
from paimon_py.spec.tag_periods import TagRule


class Oldest(msgspec.Struct, frozen=True):
    """The oldest snapshot, or kept changelog, and the time that decides when it may go, None if that is not known."""

    id: int
    millis: int | None = None


class TagEnd(msgspec.Struct, frozen=True):
    """When the time of a tag is over, by the clock on the wall, None: never; and size and time of the file it is in."""

    stamp: tuple[int, int | None]
    wall_millis: int | None


class NextTag(msgspec.Struct, frozen=True):
    """Where commits go on making tags by a rule: at which snapshot, and for which period; None: no tag was made yet.

    `mark`: the mark of the snapshot before; None if unknown.
    """

    rule: TagRule
    snapshot_id: int
    after: int | None
    mark: str | None = None


class Upkeep(msgspec.Struct):
    """What commits remember.

    Attributes:
        snapshot: the oldest snapshot.
        changelog: the oldest changelog that is kept longer than its snapshot; the latest snapshot if there was
            none that may ever go: others may keep some from then on.
        consumers_due: no consumer expires before this time, in epoch milliseconds.
        tag_ends: when the time of each tag is over.
        tags_look: when to look at the tags again, in epoch milliseconds.
        next_tag: where commits go on making tags.
        partitions_checked: when commits last looked for partitions that have expired, in epoch milliseconds.
        at_work: whether care that was begun in the background still goes on.
        events: commits that observers are not told of yet.
        clients: connections to other catalogs to which commits are published, by their settings.
    """

    snapshot: Oldest | None = None
    changelog: Oldest | None = None
    consumers_due: int | None = None
    tag_ends: dict[str, TagEnd] = msgspec.field(default_factory=dict)
    tags_look: int | None = None
    next_tag: NextTag | None = None
    partitions_checked: int | None = None
    at_work: bool = False
    events: list[CommitEvent] = msgspec.field(default_factory=list)
    clients: dict[object, object] = msgspec.field(default_factory=dict)

    def forget(self) -> None:
        """Forget what was seen: another history is in its place."""
        self.snapshot = self.changelog = self.consumers_due = self.tags_look = self.next_tag = None
        self.tag_ends = {}
