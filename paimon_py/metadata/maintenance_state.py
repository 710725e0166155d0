"""Cached state of automatic maintenance, so that a commit queries the store only when it must.

All of it may be discarded or outdated: this only costs a few calls, or delays maintenance to a later commit.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.spec.data_file import ManifestEntry
from paimon_py.spec.events import CommitEvent
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.tag_periods import TagRule


class Oldest(msgspec.Struct, frozen=True):
    """The oldest snapshot, or retained changelog, and the time that decides when it may be deleted; None if unknown."""

    id: int
    millis: int | None = None


class TagEnd(msgspec.Struct, frozen=True):
    """The wall clock time when a tag expires, None: never; and the size and time of its file."""

    stamp: tuple[int, int | None]
    wall_millis: int | None


class NextTag(msgspec.Struct, frozen=True):
    """The point at which automatic tagging continues: the snapshot, and the period of the next tag; None: no tag yet.

    `mark`: the mark of the snapshot before; None if unknown.
    """

    rule: TagRule
    snapshot_id: int
    after: int | None
    mark: str | None = None


class MaintenanceState(msgspec.Struct):
    """The cached state of automatic maintenance.

    Attributes:
        snapshot: the oldest snapshot.
        changelog: the oldest changelog that is retained longer than its snapshot; the latest snapshot if there was
            none that may ever be deleted: others may retain some from then on.
        consumers_due: no consumer expires before this time, in epoch milliseconds.
        tag_ends: when each tag expires.
        tags_look: when to list the tags again, in epoch milliseconds.
        next_tag: where automatic tagging continues.
        partitions_checked: when commits last checked for expired partitions, in epoch milliseconds.
        at_work: whether maintenance is still running in the background.
        events: commits that were not reported to observers yet.
        committed: the snapshot that was committed last.
        committed_delta: the entries of its delta until they are published to Iceberg readers, if they ever are.
        published: the Iceberg version that was published last.
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
    committed: Snapshot | None = None
    committed_delta: Sequence[ManifestEntry] | None = None
    published: object = None
    clients: dict[object, object] = msgspec.field(default_factory=dict)

    def forget(self) -> None:
        """Discard the state: another history has taken its place."""
        self.snapshot = self.changelog = self.consumers_due = self.tags_look = self.next_tag = None
        self.committed = self.committed_delta = self.published = None
        self.tag_ends = {}
