"""Decides what a stream reads of a snapshot, from the snapshot and the options of the table at that time.

Source: format.md §17; Java `DataTableStreamScan`, `DeltaFollowUpScanner`, `ChangelogFollowUpScanner`.
"""

from __future__ import annotations

import enum

import msgspec

from paimon_py.scan.change_plan import makes_changelog, source_of
from paimon_py.scan.removals import identifies_removals, refuses_removals
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import CommitKind, Snapshot


class Reads(enum.Enum):
    """The location of a snapshot's changes: in files that its delta adds, in changelog files, or in the files that an
    overwrite replaced and added.
    """

    DELTA = "delta"
    CHANGELOG = "changelog"
    REPLACED = "replaced"


class Follow(msgspec.Struct, frozen=True):
    """The settings for following the snapshots of a table.

    Attributes:
        has_changelog: the table writes changelog files, unless a snapshot's own schema differs.
        keyed: the table has a primary key.
        overwrites: overwrites are read as well.
        identifies: commits that change rows are read by comparing the states before and after them by row ids.
        refuses: other commits that remove rows are refused; the rest are read regardless of their kind.
        waiting: rows in the postpone bucket are read when they are written: nothing reports them later.
        delay_millis: how long a snapshot is ignored after it was committed.
    """

    has_changelog: bool
    keyed: bool
    overwrites: bool
    identifies: bool
    refuses: bool
    waiting: bool
    delay_millis: int

    @classmethod
    def of(cls, schema: TableSchema) -> Follow:
        """The settings from the options of a table."""
        options = Options(schema.options)
        keyed = bool(schema.primary_keys)
        return cls(
            has_changelog=makes_changelog(schema),
            keyed=keyed,
            overwrites=options.get_bool("streaming-read-overwrite" if keyed else "streaming-read-append-overwrite"),
            identifies=identifies_removals(schema),
            refuses=refuses_removals(schema),
            waiting=bucket_mode(schema) is BucketMode.POSTPONED and options.get_enum("changelog-producer") == "none",
            delay_millis=options.find_duration("streaming.read.snapshot.delay") or 0,
        )

    def source(self, snapshot: Snapshot, *, has_changelog: bool) -> Reads | None:
        """The changes to read of a snapshot, if any. `has_changelog`: the table wrote changelogs at that time.

        An overwrite that is read counts with the rows it removed and added, whether the table has a changelog or not.
        """
        if self.keyed and self.overwrites and snapshot.commit_kind is CommitKind.OVERWRITE:
            return None if snapshot.has_same_rows else Reads.REPLACED
        overwrites = self.overwrites or self.refuses
        source = source_of(snapshot, makes_changelog=has_changelog, overwrites=overwrites)
        return None if source is None else Reads(source.value)

    def is_too_new(self, snapshot: Snapshot, now_millis: int) -> bool:
        """Whether a snapshot is to be ignored for now."""
        return bool(self.delay_millis) and snapshot.time_millis > now_millis - self.delay_millis
