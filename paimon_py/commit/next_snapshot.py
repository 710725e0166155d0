"""The snapshot after the latest one, as Java 2.0 writes it. Pure.

Source: docs/format.md §4.1; Java `FileStoreCommitImpl`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from paimon_py.commit.changes import Changes
from paimon_py.commit.entry_lists import row_count
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, MIN_LONG, Base, Snapshot
from paimon_py.spec.users import SourceHistory, UserCommit, Users, users_of


class ManifestLists(msgspec.Struct, frozen=True, kw_only=True):
    """Names and sizes in bytes of the manifest lists of one attempt, and its index manifest."""

    base: tuple[str, int]
    delta: tuple[str, int]
    changelog: tuple[str, int] | None = None
    index_manifest: str | None = None


class Author(msgspec.Struct, frozen=True, kw_only=True):
    """The author of a commit, and its metadata. `source`: the position of the committed step of another table;
    `source_history`: the history of that table, unless the commit replaces all rows. `same_rows`: no row changes.
    """

    user: str
    identifier: int
    watermark: int | None = None
    properties: Mapping[str, str] | None = None
    operation: str | None = None
    source: str | None = None
    source_history: SourceHistory | None = None
    same_rows: bool = False


def batch_user(changes: Changes) -> str | None:
    """A user for a batch commit, the same whenever the same files are committed, so that a repetition is recognised.

    Formatted like a UUID; None if no file was created only for these changes: others may have deleted the same ones.
    """
    old, new = set[str](), set[str]()
    for bucket in changes.buckets:
        for edit in (bucket.written, bucket.compacted):
            old.update(file.name for file in edit.deleted)
            old.update(entry.name for entry in edit.deleted_index)
            new.update(file.name for file in edit.added + edit.changelog)
            new.update(entry.name for entry in edit.added_index)
    if new <= old:
        return None
    new |= old
    digest = hashlib.blake2b("\n".join(sorted(new)).encode(), digest_size=16).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:]))


def next_snapshot(
    latest: Snapshot | None,
    part: SnapshotDelta,
    lists: ManifestLists,
    author: Author,
    *,
    schema: TableSchema,
    uuid: str,
    time_millis: int,
    known: Users | None = None,
) -> Snapshot:
    """The snapshot after `latest`.

    Times never go back; the watermark never falls; statistics are kept while the schema stays the same.

    Args:
        schema: the latest one, under which the snapshot is committed.
        known: the users as of `latest`, if more is known about them than `latest` contains.
    """
    delta = row_count(part.adds) - row_count(part.deletes)
    changelog = row_count(part.changelog) if part.changelog else None
    same_schema = latest is not None and latest.schema_id == schema.id
    number = latest.id + 1 if latest else 1
    return Snapshot(
        id=number,
        uuid=uuid,
        schema_id=schema.id,
        base_manifest_list=lists.base[0],
        base_manifest_list_size=lists.base[1],
        delta_manifest_list=lists.delta[0],
        delta_manifest_list_size=lists.delta[1],
        changelog_manifest_list=lists.changelog[0] if lists.changelog else None,
        changelog_manifest_list_size=lists.changelog[1] if lists.changelog else None,
        index_manifest=lists.index_manifest,
        commit_user=author.user,
        commit_identifier=author.identifier,
        commit_kind=part.kind,
        time_millis=max(time_millis, latest.time_millis) if latest else time_millis,
        total_record_count=((latest.total_record_count or 0) if latest else 0) + delta,
        delta_record_count=delta,
        changelog_record_count=changelog,
        watermark=_watermark(latest, author.watermark),
        statistics=part.statistics or (latest.statistics if latest and same_schema else None),
        properties=dict(author.properties) if author.properties else None,
        built_on=Base.of(latest),
        known_schema_millis=schema.time_millis,
        known_users=_users(users_of(latest) if known is None else known, author, number),
        known_waiting=part.waiting,
        known_same_rows=author.same_rows,
        next_row_id=_row_id(latest) if part.next_row_id is None else part.next_row_id,
        operation=author.operation,
    )


def _row_id(latest: Snapshot | None) -> int:
    """The id of the next new row of a table without row tracking, which assigns none."""
    return (latest.next_row_id or 0) if latest else 0


def _users(known: Users, author: Author, number: int) -> Users:
    if author.identifier == BATCH_COMMIT_IDENTIFIER:
        return known
    last = known.commits.get(author.user)
    if last is not None and last.identifier == author.identifier:  # the first of two snapshots of one commit
        return known
    return known.after(author.user, UserCommit(author.identifier, number, author.source))


def _watermark(latest: Snapshot | None, new: int | None) -> int | None:
    known = [int(mark) for mark in (latest.watermark if latest else None, new) if mark is not None and mark != MIN_LONG]
    return max(known, default=None)
