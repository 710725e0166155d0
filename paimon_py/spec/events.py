"""Events: what happened to a table, as values that observers are called with.

`msgspec.json.encode(event)` gives an object whose field `kind` names the class: `commit`, `conflict`, `race`, …
"""

from __future__ import annotations

from typing import Literal

import msgspec


class TableEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all events.

    Attributes:
        path: directory or URL of the table.
        branch: the branch of the table, "main" for the table itself.
        time_millis: when it happened, in epoch milliseconds, by the clock of this process.
    """

    path: str
    branch: str = "main"
    time_millis: int

    @property
    def kind(self) -> str:
        """Kind of event, such as "commit": what JSON has in `kind`."""
        tag = type(self).__struct_config__.tag
        assert isinstance(tag, str)
        return tag

    @property
    def table(self) -> str:
        """`database.table` where the path says so, else the name of the directory."""
        above, _, name = self.path.rstrip("/").rpartition("/")
        database = above.rpartition("/")[2]
        return f"{database.removesuffix('.db')}.{name}" if database.endswith(".db") else name


class CommitEvent(TableEvent, frozen=True, kw_only=True, tag="commit"):
    """A snapshot was published.

    Attributes:
        snapshot_id: the snapshot.
        schema_id: its schema.
        commit_kind: `APPEND`, `COMPACT`, `OVERWRITE` or `ANALYZE`.
        operation: what the verb was, where the snapshot says so (`DELETE`, `UPDATE`, `MERGE`, …).
        user, identifier: who committed, and under which number.
        watermark: event time of the snapshot, in epoch milliseconds; None: unknown.
        added_files, deleted_files: data files that the snapshot adds and deletes.
        added_rows, deleted_rows: rows in these files.
        added_bytes, deleted_bytes: sizes of these files.
        changelog_files, changelog_rows: changelog files of the snapshot, and rows in them.
        total_rows: rows in all files of the snapshot, None where the snapshot does not say.
        attempts: how often publication was tried; more than 1: others were faster.
        seconds: how long that took.
    """

    snapshot_id: int
    schema_id: int
    commit_kind: str
    operation: str | None = None
    user: str
    identifier: int
    watermark: int | None = None
    added_files: int = 0
    deleted_files: int = 0
    added_rows: int = 0
    deleted_rows: int = 0
    added_bytes: int = 0
    deleted_bytes: int = 0
    changelog_files: int = 0
    changelog_rows: int = 0
    total_rows: int | None = None
    attempts: int = 1
    seconds: float = 0.0


class RaceEvent(TableEvent, frozen=True, kw_only=True, tag="race"):
    """A commit lost an attempt to another writer and waits before the next one.

    Attributes:
        attempt: how many were lost so far.
        wait_seconds: how long the commit waits.
        reason: who was faster.
    """

    attempt: int
    wait_seconds: float
    reason: str


class ConflictEvent(TableEvent, frozen=True, kw_only=True, tag="conflict"):
    """A commit failed.

    Attributes:
        outcome: `conflict`: nothing was committed; `given-up`: others were faster too often, nothing was committed;
            `unknown`: the store did not say whether the snapshot was published.
        reason: what the error says.
        attempts: how often publication was tried.
    """

    outcome: Literal["conflict", "given-up", "unknown"]
    reason: str
    attempts: int


class CompactionEvent(TableEvent, frozen=True, kw_only=True, tag="compaction"):
    """The files of a bucket were merged; a commit publishes that later, or gives it up.

    Attributes:
        directory: directory of the bucket.
        output_level: level of the new files.
        before_files, after_files: files that were merged, and new ones.
        read_rows, read_bytes: rows and bytes that were merged.
        seconds: how long that took.
    """

    directory: str
    output_level: int
    before_files: int
    after_files: int
    read_rows: int
    read_bytes: int
    seconds: float


class TagEvent(TableEvent, frozen=True, kw_only=True, tag="tag"):
    """A tag was created, replaced, renamed or deleted.

    Attributes:
        action: which of these.
        name: the tag.
        snapshot_id: the snapshot that the tag names, or named.
        old_name: name before a renaming.
    """

    action: Literal["create", "replace", "rename", "delete"]
    name: str
    snapshot_id: int
    old_name: str | None = None


class BranchEvent(TableEvent, frozen=True, kw_only=True, tag="branch"):
    """A branch was created, renamed or deleted.

    Attributes:
        action: which of these.
        name: the branch.
        old_name: name before a renaming.
    """

    action: Literal["create", "rename", "delete"]
    name: str
    old_name: str | None = None


class RollbackEvent(TableEvent, frozen=True, kw_only=True, tag="rollback"):
    """The table went back to an older snapshot, or on to a branch.

    Attributes:
        action: `rollback` or `fast-forward`.
        snapshot_id: the latest snapshot from now on.
        deleted_ids: snapshots that were deleted.
        deleted_tags: tags that were deleted.
        consumers: consumers that have read deleted snapshots.
    """

    action: Literal["rollback", "fast-forward"]
    snapshot_id: int
    deleted_ids: tuple[int, ...] = ()
    deleted_tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()


class ExpiryEvent(TableEvent, frozen=True, kw_only=True, tag="expiry"):
    """Something expired.

    Attributes:
        what: `snapshots`, `changelogs`, `tags`, `partitions` or `consumers`.
        count: how many.
        deleted_files: files that were deleted with them.
        first_id, last_id: range of the snapshots or changelogs.
    """

    what: Literal["snapshots", "changelogs", "tags", "partitions", "consumers"]
    count: int
    deleted_files: int = 0
    first_id: int | None = None
    last_id: int | None = None


class OrphanEvent(TableEvent, frozen=True, kw_only=True, tag="orphans"):
    """Orphan files were deleted.

    Attributes:
        deleted_files: how many.
        size_bytes: their size.
    """

    deleted_files: int
    size_bytes: int


class SchemaEvent(TableEvent, frozen=True, kw_only=True, tag="schema"):
    """A new schema was published.

    Attributes:
        schema_id: the schema.
        changes: the changes, as texts.
    """

    schema_id: int
    changes: tuple[str, ...] = ()


class CatalogEvent(TableEvent, frozen=True, kw_only=True, tag="catalog"):
    """A table of the catalog was created, dropped or renamed.

    Attributes:
        action: which of these.
        name: `database.table`.
        old_name: name before a renaming.
    """

    action: Literal["create", "drop", "rename"]
    name: str
    old_name: str | None = None
