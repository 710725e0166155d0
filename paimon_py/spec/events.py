"""Events of a table, as values that observers are called with.

`msgspec.json.encode(event)` returns an object whose field `kind` names the class: `commit`, `conflict`, `race`, …
"""

from __future__ import annotations

from typing import Literal

import msgspec


class TableEvent(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all events.

    Attributes:
        path: the directory or URL of the table.
        branch: the branch of the table, "main" for the table itself.
        time_millis: the time of the event in epoch milliseconds, by the clock of this process.
    """

    path: str
    branch: str = "main"
    time_millis: int

    @property
    def kind(self) -> str:
        """The kind of event, such as "commit": the value of `kind` in JSON."""
        tag = type(self).__struct_config__.tag
        assert isinstance(tag, str)
        return tag

    @property
    def table(self) -> str:
        """`database.table` if the path contains both, else the name of the directory."""
        above, _, name = self.path.rstrip("/").rpartition("/")
        database = above.rpartition("/")[2]
        return f"{database.removesuffix('.db')}.{name}" if database.endswith(".db") else name


class CommitEvent(TableEvent, frozen=True, kw_only=True, tag="commit"):
    """A snapshot was published.

    Attributes:
        snapshot_id: the snapshot.
        schema_id: its schema.
        commit_kind: `APPEND`, `COMPACT`, `OVERWRITE` or `ANALYZE`.
        operation: the operation, if the snapshot records it (`DELETE`, `UPDATE`, `MERGE`, …).
        user, identifier: the user and identifier of the commit.
        watermark: the watermark of the snapshot, in epoch milliseconds; None: unknown.
        added_files, deleted_files: data files that the snapshot adds and deletes.
        added_rows, deleted_rows: rows in these files, without those that contain BLOBs or vectors of these rows. An
            update of some columns (data evolution) adds a file for all rows of the files that it changes.
        added_bytes, deleted_bytes: sizes of these files.
        changelog_files, changelog_rows: changelog files of the snapshot, and rows in them.
        total_rows: rows in all files of the snapshot, as `Snapshot.total_record_count`; None if the snapshot does not
            record it.
        attempts: the number of attempts to publish; more than 1 if other commits were faster.
        seconds: the duration of the commit.
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
    """A commit lost an attempt to another writer and waits before the next attempt.

    Attributes:
        attempt: the number of attempts lost so far.
        wait_seconds: the time until the next attempt.
        reason: which commit was faster.
    """

    attempt: int
    wait_seconds: float
    reason: str


class ConflictEvent(TableEvent, frozen=True, kw_only=True, tag="conflict"):
    """A commit failed.

    Attributes:
        outcome: `conflict`: nothing was committed; `given-up`: nothing was committed, because other commits were faster
            too often; `unknown`: the store did not report whether the snapshot was published.
        reason: the message of the error.
        attempts: the number of attempts to publish.
    """

    outcome: Literal["conflict", "given-up", "unknown"]
    reason: str
    attempts: int


class CompactionEvent(TableEvent, frozen=True, kw_only=True, tag="compaction"):
    """The files of a bucket were merged; a later commit publishes the result or discards it.

    Attributes:
        directory: the directory of the bucket.
        output_level: the level of the new files.
        before_files, after_files: numbers of input and output files.
        read_rows, read_bytes: rows and bytes of the input.
        seconds: the duration of the merge.
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
        action: `create`, `replace`, `rename` or `delete`.
        name: the tag.
        snapshot_id: the snapshot that the tag names, or named.
        old_name: the name before it was renamed.
    """

    action: Literal["create", "replace", "rename", "delete"]
    name: str
    snapshot_id: int
    old_name: str | None = None


class BranchEvent(TableEvent, frozen=True, kw_only=True, tag="branch"):
    """A branch was created, renamed or deleted.

    Attributes:
        action: `create`, `rename` or `delete`.
        name: the branch.
        old_name: the name before it was renamed.
    """

    action: Literal["create", "rename", "delete"]
    name: str
    old_name: str | None = None


class RollbackEvent(TableEvent, frozen=True, kw_only=True, tag="rollback"):
    """The table was rolled back to an older snapshot, or fast-forwarded to a branch.

    Attributes:
        action: `rollback` or `fast-forward`.
        snapshot_id: the latest snapshot after the rollback.
        deleted_ids: snapshots that were deleted.
        deleted_tags: tags that were deleted.
        consumers: consumers that have already read deleted snapshots.
    """

    action: Literal["rollback", "fast-forward"]
    snapshot_id: int
    deleted_ids: tuple[int, ...] = ()
    deleted_tags: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()


class ExpiryEvent(TableEvent, frozen=True, kw_only=True, tag="expiry"):
    """Snapshots, changelogs, tags, partitions or consumers expired.

    Attributes:
        what: `snapshots`, `changelogs`, `tags`, `partitions` or `consumers`.
        count: the number of expired items.
        deleted_files: the number of files deleted with them.
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
        deleted_files: the number of files.
        size_bytes: the total size of the files.
    """

    deleted_files: int
    size_bytes: int


class SchemaEvent(TableEvent, frozen=True, kw_only=True, tag="schema"):
    """A new schema was published.

    Attributes:
        schema_id: the schema.
        changes: the changes, as strings.
    """

    schema_id: int
    changes: tuple[str, ...] = ()


class CatalogEvent(TableEvent, frozen=True, kw_only=True, tag="catalog"):
    """A table of the catalog was created, dropped or renamed.

    Attributes:
        action: `create`, `drop` or `rename`.
        name: `database.table`.
        old_name: the name before it was renamed.
    """

    action: Literal["create", "drop", "rename"]
    name: str
    old_name: str | None = None
