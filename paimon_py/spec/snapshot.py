"""One committed state of a table, and tags.

Source: format.md §4; Java `Snapshot`, `Tag`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from paimon_py.spec.bounds import Count

BATCH_COMMIT_IDENTIFIER = 9_223_372_036_854_775_807
MIN_LONG = -9_223_372_036_854_775_808


class CommitKind(str, enum.Enum):
    """What a snapshot did to the table."""

    APPEND = "APPEND"
    COMPACT = "COMPACT"
    OVERWRITE = "OVERWRITE"
    ANALYZE = "ANALYZE"


class Base(msgspec.Struct, frozen=True):
    """The snapshot that something was built on, 0 for an empty table.

    The number alone does not tell: a rollback frees numbers, and other snapshots take them. `mark` is what no two
    snapshots share; None where it is not known.
    """

    id: Count
    mark: str | None = None

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Base:
        """The base that a snapshot is; None for an empty table."""
        return cls(0) if snapshot is None else cls(snapshot.id, snapshot.mark)

    def is_of(self, snapshot: Snapshot | None) -> bool:
        """Whether this is that snapshot; None for an empty table."""
        found = Base.of(snapshot)
        return self.id == found.id and (self.mark is None or self.mark == found.mark)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `snapshot-<id>`; times are epoch milliseconds, sizes bytes, counts rows in files.

    `extra` holds the JSON fields this version does not know, so that a rewrite carries them along.
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
    next_row_id: int | None = None
    operation: str | None = None
    extra: Mapping[str, object] = {}

    @property
    def mark(self) -> str:
        """What no other snapshot has, not even one of the same id: every commit names its delta list anew."""
        return self.delta_manifest_list


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A named copy of a snapshot.

    `create_time` is wall time of the writer's zone as `[y, M, d, h, m, s, nanos]`; `time_retained_seconds` the
    retention, both only when one was given.
    """

    name: str
    snapshot: Snapshot
    create_time: tuple[int, ...] | None = None
    time_retained_seconds: float | None = None
