"""Snapshots (committed states of a table) and tags.

Source: format.md §4; Java `Snapshot`, `Tag`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import msgspec

from paimon_py.spec.bounds import Count
from paimon_py.spec.postponed import WaitingOrder
from paimon_py.spec.users import Users

if TYPE_CHECKING:
    from paimon_py.spec.users import SourceHistory

BATCH_COMMIT_IDENTIFIER = 9_223_372_036_854_775_807
RESERVED_PROPERTIES = "paimon-py."
"""The prefix of snapshot properties that paimon_py writes for itself."""

MIN_LONG = -9_223_372_036_854_775_808


class CommitKind(str, enum.Enum):
    """The kind of change that a snapshot made to the table."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


class Base(msgspec.Struct, frozen=True):
    """A snapshot's position in a history: its id and its mark; id 0 is the empty table.

    The id alone does not identify a snapshot: a rollback frees ids, and new snapshots reuse them. Marks are unique;
    None if the mark is unknown.
    """

    id: Count
    mark: str | None = None

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Base:
        """The base for a snapshot; None for an empty table."""
        return cls(0) if snapshot is None else cls(snapshot.id, snapshot.mark)

    def is_of(self, snapshot: Snapshot | None) -> bool:
        """Whether the base refers to this snapshot; None for an empty table."""
        found = Base.of(snapshot)
        return self.id == found.id and (self.mark is None or self.mark == found.mark)


class SnapshotId(int):
    """The id of a snapshot together with its mark, so that another snapshot with the same id is never mistaken for it.

    Results that contain it become JSON with `msgspec.json.encode(result, enc_hook=int)`; the mark is then lost.

    Attributes:
        mark: the mark of the snapshot; None if unknown.
    """

    mark: str | None

    def __new__(cls, number: int, mark: str | None = None) -> SnapshotId:
        found = super().__new__(cls, number)
        found.mark = mark
        return found

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> SnapshotId:
        """The id of a snapshot; 0 for the empty table."""
        return cls(0) if snapshot is None else cls(snapshot.id, snapshot.mark)

    @classmethod
    def before(cls, snapshot: Snapshot) -> SnapshotId:
        """The id of the snapshot that `snapshot` was built on."""
        return cls(snapshot.id - 1, None if snapshot.parent is None else snapshot.parent.mark)

    def is_same(self, number: int) -> bool:
        """Whether a number refers to this snapshot; one without a mark refers to any of this id."""
        mark = number.mark if isinstance(number, SnapshotId) else None
        return self == number and mark in (None, self.mark)

    def __reduce__(self) -> tuple[object, ...]:
        return SnapshotId, (int(self), self.mark)


class StepSnapshotId(SnapshotId):
    """The id of the snapshot of a step; as the number of a commit it stands for that step, like a `StepNumber`.

    Attributes:
        source: the position after the step.
        history: the history of the step, if the table can be asked.
    """

    source: str
    history: SourceHistory | None

    def __new__(
        cls, number: int, mark: str | None, source: str, history: SourceHistory | None = None
    ) -> StepSnapshotId:
        found = cast("StepSnapshotId", super().__new__(cls, number, mark))
        found.source, found.history = source, history
        return found

    def __reduce__(self) -> tuple[object, ...]:
        return StepSnapshotId, (int(self), self.mark, self.source, self.history)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `snapshot-<id>`; times are epoch milliseconds, sizes bytes, counts rows in files.

    `extra` holds unknown JSON fields, so that a rewrite preserves them.

    Attributes:
        properties: the properties that the caller of the commit passed.
        built_on: the previous snapshot, as recorded by the writer; None if not recorded, as by other writers.
        known_schema_millis: the creation time of the schema in epoch milliseconds, as recorded by the writer.
        known_users: the users with their last identifiers, as recorded by the writer.
        known_waiting: the order of files in postponed buckets, as recorded by the writer.
        known_same_rows: the commit rewrote rows to other files without changing any, as recorded by the writer.
    """

    id: int
    schema_id: int
    base_manifest_list: str
    delta_manifest_list: str
    commit_user: str
    commit_identifier: int
    commit_kind: CommitKind
    time_millis: int
    version: int = 3
    uuid: str | None = None
    base_manifest_list_size: int | None = None
    delta_manifest_list_size: int | None = None
    changelog_manifest_list: str | None = None
    changelog_manifest_list_size: int | None = None
    index_manifest: str | None = None
    writer_version: str | None = None
    log_offsets: Mapping[str, int] | None = None
    total_record_count: int | None = None
    delta_record_count: int | None = None
    changelog_record_count: int | None = None
    watermark: int | None = None
    statistics: str | None = None
    properties: Mapping[str, str] | None = None
    built_on: Base | None = None
    known_schema_millis: int | None = None
    known_users: Users | None = None
    known_waiting: WaitingOrder | None = None
    known_same_rows: bool = False
    next_row_id: int | None = None
    operation: str | None = None
    extra: Mapping[str, object] = {}

    @property
    def mark(self) -> str:
        """A unique name, even among snapshots with the same id: every commit gives its delta list a new name."""
        return self.delta_manifest_list

    @property
    def is_numbered(self) -> bool:
        """Whether the commit has an identifier of its user, so that a repeated commit can be recognised."""
        return self.commit_identifier != BATCH_COMMIT_IDENTIFIER

    @property
    def parent(self) -> Base | None:
        """The snapshot that this one was built on; None if unknown, also if the properties were copied from another
        snapshot.
        """
        return self.built_on if self.built_on is not None and self.built_on.id == self.id - 1 else None

    def follows(self, parent: Snapshot | Base) -> bool | None:
        """Whether this snapshot was built on `parent`; None if it is not recorded."""
        if self.id != parent.id + 1:
            return False
        known = self.parent
        if known is None or (parent.id and parent.mark is None):
            return None
        return not parent.id or known.mark == parent.mark

    @property
    def users(self) -> Users | None:
        """The users with their last identifiers; None if unknown."""
        return None if self.parent is None else self.known_users

    @property
    def schema_millis(self) -> int | None:
        """The creation time of this snapshot's schema in epoch milliseconds; None if unknown."""
        return None if self.parent is None else self.known_schema_millis

    @property
    def waiting(self) -> WaitingOrder | None:
        """The order of files in postponed buckets; None if it is unknown or there are none."""
        return None if self.parent is None else self.known_waiting

    @property
    def has_same_rows(self) -> bool:
        """Whether the commit is known to have changed no row of the previous snapshot, whatever files it replaced."""
        return self.parent is not None and self.known_same_rows


class TagValue(msgspec.Struct, frozen=True, kw_only=True):
    """A named copy of a snapshot.

    `create_time` is local time of the writer as `[y, M, d, h, m, s, nanos]`; `time_retained_seconds` is the retention.
    Both are set only if a retention was given.
    """

    name: str
    snapshot: Snapshot
    create_time: tuple[int, ...] | None = None
    time_retained_seconds: float | None = None
