"""Expiry of snapshots: deletes old snapshots and the files that nothing else references.

First everything that determines what to delete is read. Then snapshots are deleted, oldest first, then manifests, then
data files: a process that dies on the way leaves unreferenced files, never a snapshot without its files.

Source: format.md §16.1, §16.2; docs/reliability.md §3 (d); Java `ExpireSnapshotsImpl`, `SnapshotDeletion`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import msgspec

from paimon_py.errors import CommitConflictError, PaimonError, StorageError, TableNotFoundError
from paimon_py.executors.executor import Executor
from paimon_py.files.physical import evolves_columns
from paimon_py.logs import EXPIRY, fields
from paimon_py.maintain.cleanup.deletion_plan import DeletionPlan, other_references
from paimon_py.maintain.cleanup.expired import ExpiredSnapshots
from paimon_py.maintain.cleanup.retention import (
    FetchedSnapshots,
    FirstKept,
    RetainedChanges,
    Retention,
    first_kept,
    retained_changes,
)
from paimon_py.maintain.observers import report
from paimon_py.metadata.id_runs import current_run
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.tag_ancestor import TagAncestor, read_tag_ancestor, write_tag_ancestor
from paimon_py.metadata.users import keep_numbers
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.events import ExpiryEvent
from paimon_py.spec.layout import earliest_hint_path, snapshot_path
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import CommitKind, Snapshot
from paimon_py.storage.store import FileMissingError


def expire_snapshots(
    table: OpenTable, retention: Retention, *, dry_run: bool, executor: Executor | None = None,
    progress: Progress | None = None, seen: Snapshot | None = None,
) -> ExpiredSnapshots:
    """Delete snapshots and the files that only they reference.

    The EARLIEST hint is raised before tags and branches are listed. A rollback checks the hint after writing its cut
    file, and expiry lists that file with the tags, so that one of the two refuses; if a rollback has already finished,
    expiry finds that the first kept snapshot is gone. It looks for that snapshot immediately before it deletes others,
    which also shows whether another table has come to the path. Tags, branches and consumers protect snapshots. Tags
    are listed again after snapshots are deleted, so that concurrently created ones count too.

    Args:
        table: opened under the latest schema.
        executor: deletes the files; None: this process.
        progress: called with the snapshots read, then with the files deleted.
        seen: a snapshot that was just read.

    Cost: one list, and one for each further 16 snapshots; a get per expiring snapshot and for its lists, each manifest
      of its delta and its changelog; the
      manifests of tags among them, of older ones down to one that they are known to descend from, and of each branch; a
      get per tag of a later snapshot, and a put if there are tags; the manifests of the first kept snapshot and of the
      latest one if data files are deleted; a delete per file.
    Raises:
        CommitConflictError: a rollback or fast-forward is in progress, or ran concurrently; or a tag or branch was
            deleted or replaced while it was read; nothing was deleted.
        TableNotFoundError: another table is at the path.
        CorruptionError, StorageError: a snapshot, tag, branch or consumer cannot be read; nothing was deleted.
    """
    root = table.root
    ids = list(current_run(root.check_listed(root.snapshots.ids()) or [0], root.snapshots.earliest_hint))
    if ids == [0]:
        return ExpiredSnapshots(reason="the table is empty", dry_run=dry_run)
    known = FetchedSnapshots(root.snapshots.find, seen)
    lasting = retained_changes(table.schema.options)
    kept = _first_kept(table, ids, retention, _consumer_positions(table, lasting), known)
    going = [snapshot for number in ids if number < kept.snapshot_id for snapshot in known.get(number)]
    if not going:
        return _result(ids, kept, [], None, dry_run=dry_run)
    following = _following(root, kept.snapshot_id, known)
    root.require_own(going[0], following)
    if not dry_run:
        root.store.put(earliest_hint_path(root.branch_path), str(kept.snapshot_id).encode(), within=root.path)
    others = None
    try:
        others = other_references(root, going)
        chain = Chain((*going, following), [following] if following.id == ids[-1] else known.get(ids[-1]))
        plan = _plan_deletion(table, chain, lasting, ProgressCounter(progress, len(going), "snapshots"))
        ancestor = _tag_before(root, going[0], others.tags)
        plan.spare(others.near(ancestor, kept.snapshot_id, known.has))
        plan.spare_changes(others)
        if dry_run:
            return _result(ids, kept, going, plan, dry_run=True)
        if others.tags:
            _record_tag(root, chain.snapshots, others.tags, ancestor)
        _require_same(root, following)
    except PaimonError as error:
        if not dry_run:
            _put_back_hint(root, ids[0])
        if isinstance(error, FileMissingError) and root.snapshots.find(going[-1].id) is None:
            raise _rolled_back_error(root, going[-1].id) from error
        if isinstance(error, FileMissingError) and others not in (None, other_references(root, going)):
            raise CommitConflictError(
                f"nothing was deleted: a tag or branch of {root.path} was deleted or replaced meanwhile; call again",
                table=root.path,
            ) from error
        raise
    _delete_snapshots(root, chain, lasting)
    plan.spare(other_references(root, going).without(others))
    return _report(root, _result(ids, kept, going, plan, dry_run=False, left_files=plan.delete(executor, progress)))


def _delete_snapshots(root: TableRoot, chain: Chain, lasting: RetainedChanges) -> None:
    """Delete the expiring snapshots, oldest first, after their changelogs and the numbers of users are kept."""
    *going, _ = chain.snapshots
    if lasting is not RetainedChanges.NOTHING:
        root.changelogs.keep(root.each_of_same(going))
    keep_numbers(root, going, chain.latest)
    for snapshot in root.each_of_same(going, is_checked=lasting is RetainedChanges.NOTHING):
        root.store.delete(snapshot_path(root.branch_path, snapshot.id))


def _report(root: TableRoot, done: ExpiredSnapshots) -> ExpiredSnapshots:
    """Log an expiry and notify observers; returns the result with their warnings."""
    EXPIRY.info(
        "%s: snapshots %d to %d expired, with %d data files; %s",
        root.path, done.snapshot_ids[0], done.snapshot_ids[-1], done.data_files, done.reason,
        extra=fields(
            root, snapshots=len(done.snapshot_ids), data_files=done.data_files, metadata_files=done.metadata_files
        ),
    )  # fmt: skip
    said = report(root, lambda: _event(root, done))
    return msgspec.structs.replace(done, warnings=said) if said else done


def _event(root: TableRoot, done: ExpiredSnapshots) -> ExpiryEvent:
    return ExpiryEvent(
        **root.event_place(), what="snapshots", count=len(done.snapshot_ids), first_id=done.snapshot_ids[0],
        last_id=done.snapshot_ids[-1], deleted_files=done.data_files + done.index_files + done.metadata_files,
    )  # fmt: skip


class Chain(NamedTuple):
    """Consecutive snapshots: the expiring ones and the first kept one; and the latest one."""

    snapshots: tuple[Snapshot, ...]
    latest: list[Snapshot]


def _following(root: TableRoot, number: int, known: FetchedSnapshots) -> Snapshot:
    """The first kept snapshot. Raises: as `_require_same`"""
    for found in known.get(number):
        return found
    root.schemas.latest()
    raise _rolled_back_error(root, number)


def _require_same(root: TableRoot, following: Snapshot) -> None:
    """Read the first kept snapshot again, after new rollbacks are blocked. Cost: a get.

    Raises:
        CommitConflictError: it was rolled back or expired since it was first read.
        TableNotFoundError: another table is at the path.
    """
    found = root.snapshots.find(following.id)
    if found is None or found.mark != following.mark:
        root.schemas.latest()
        raise _rolled_back_error(root, following.id)


def _rolled_back_error(root: TableRoot, number: int) -> CommitConflictError:
    return CommitConflictError(
        f"nothing was deleted: snapshot {number} of {root.path} was rolled back or expired in the meantime; call again",
        table=root.path,
        snapshot_id=number,
    )


def _put_back_hint(root: TableRoot, earliest: int) -> None:
    """Lower the EARLIEST hint again; if another table is at the path by now, to its oldest snapshot."""
    with suppress(StorageError):  # a hint
        try:
            root.schemas.latest()
        except TableNotFoundError:
            earliest = next(iter(root.snapshots.ids()), 0)
        if earliest:
            root.store.put(earliest_hint_path(root.branch_path), str(earliest).encode(), within=root.path)


def _tag_before(root: TableRoot, first: Snapshot, tags: Sequence[Snapshot]) -> Snapshot | None:
    """The newest tag that the first expiring snapshot is known to descend from.

    It is a tag of that snapshot or of its parent, or the one that the previous expiry recorded.

    Cost: none if there is one older tag at most; else a get.
    """
    older = [tag for tag in tags if tag.id <= first.id]
    near = [tag for tag in older if tag.mark == first.mark or first.follows(tag)]
    if near or len(older) < 2:
        return max(near, key=lambda tag: tag.id, default=None)
    record = read_tag_ancestor(root.store, root.branch_path)
    if record is None or record.snapshot != first.mark:
        return None
    return next((tag for tag in older if tag.mark == record.tag), None)


def _record_tag(
    root: TableRoot, chain: Sequence[Snapshot], tags: Sequence[Snapshot], ancestor: Snapshot | None
) -> None:
    """Record the newest tag that the first kept snapshot descends from, before the snapshots in between are deleted.

    Cost: a put if there is one; lists that were read before, for snapshots of other writers.
    """
    descended = [chain[-1]]
    for newer, older in pairwise(reversed(chain)):
        if not _is_child(root, older, newer):
            break
        descended.append(older)
    marks = {snapshot.mark for snapshot in descended}
    found = [tag for tag in tags if tag.mark in marks or (tag is ancestor and len(descended) == len(chain))]
    if found:
        newest = max(found, key=lambda tag: tag.id)
        write_tag_ancestor(root.store, root.branch_path, TagAncestor(chain[-1].mark, newest.mark))


def _first_kept(
    table: OpenTable, ids: Sequence[int], retention: Retention, held: Mapping[str, int], known: FetchedSnapshots
) -> FirstKept:
    """The first kept snapshot. A consumer that stands at an overwrite also needs the previous snapshot: its stream
    compares them. So it does at any commit that may set columns of existing rows.
    """
    kept = first_kept(ids[0], ids[-1], retention, held, known.time_of)
    if kept.snapshot_id == ids[0] or kept.snapshot_id not in held.values():
        return kept
    overwrites = any(one.commit_kind is CommitKind.OVERWRITE for one in known.get(kept.snapshot_id))
    compares = overwrites or evolves_columns(table.schema)
    return FirstKept(kept.snapshot_id - 1, kept.reason) if compares else kept


def _consumer_positions(table: OpenTable, lasting: RetainedChanges) -> dict[str, int]:
    """The next snapshot of each consumer; empty if kept changelogs are all that consumers need."""
    if lasting is not RetainedChanges.NOTHING and table.options.get_bool("consumer.changelog-only"):
        return {}
    return {consumer.name: consumer.next_snapshot_id for consumer in table.root.consumers.all()}


def _plan_deletion(table: OpenTable, chain: Chain, lasting: RetainedChanges, tally: ProgressCounter) -> DeletionPlan:
    """The files that the expiring snapshots reference and the following one does not, except for kept changes.

    Files that the first kept snapshot and the latest one reference are kept whatever deltas say; so are those of a
    snapshot that may not descend from the previous one.
    """
    plan = DeletionPlan(table)
    *going, following = chain.snapshots
    kept_as = [_kept_as(table.root, snapshot, lasting) for snapshot in going]
    for snapshot in (*going[1:], following):
        plan.add_deleted(snapshot, written=RetainedChanges.WRITTEN not in kept_as)
        tally.add(1)
    for snapshot, kept in zip(going, kept_as, strict=True):
        plan.add_indexes(snapshot)
        if kept is not RetainedChanges.WRITTEN:
            plan.add_lists(snapshot.base_manifest_list, snapshot.delta_manifest_list)
        if kept is RetainedChanges.NOTHING:
            plan.add_changelog(snapshot)
            plan.add_lists(snapshot.changelog_manifest_list)
    plan.spare_metadata(following)
    if plan.has_data:
        for later in (following, *(one for one in chain.latest if one != following)):
            plan.spare_later(later)
        plan.spare(after for before, after in pairwise(chain.snapshots) if not _is_child(table.root, before, after))
    if table.schema.id:
        _spare_older_changelogs(table.root, plan)
    return plan


def _kept_as(root: TableRoot, snapshot: Snapshot, lasting: RetainedChanges) -> RetainedChanges:
    """The part of a snapshot's changes that is kept: its changelog files if the table had any, else written files."""
    if lasting is RetainedChanges.NOTHING:
        return lasting
    producer = Options(root.schemas.get(snapshot.schema_id).options).get_enum("changelog-producer")
    return RetainedChanges.WRITTEN if producer == "none" else RetainedChanges.CHANGELOG


def _is_child(root: TableRoot, before: Snapshot, after: Snapshot) -> bool:
    """Whether a snapshot is certain to descend from the previous one, according to both and their lists."""
    said = after.follows(before)
    if said is not None:
        return said
    base, whole = (
        {file.name for name in names for file in root.manifests.read_list(name)}
        for names in ((after.base_manifest_list,), (before.base_manifest_list, before.delta_manifest_list))
    )
    return whole <= base


def _spare_older_changelogs(root: TableRoot, plan: DeletionPlan) -> None:
    """Keep the data files of kept changelogs without changelog files of their own.

    Options may have been different when they were kept.
    """
    for number in root.changelogs.ids() if plan.has_data else ():
        changelog = root.changelogs.find(number)
        if changelog is not None:
            plan.spare_written(changelog)


def _result(
    ids: Sequence[int],
    kept: FirstKept,
    going: Sequence[Snapshot],
    plan: DeletionPlan | None,
    *,
    dry_run: bool,
    left_files: int = 0,
) -> ExpiredSnapshots:
    found = ExpiredSnapshots(
        snapshot_ids=tuple(snapshot.id for snapshot in going),
        earliest_id=kept.snapshot_id if going else ids[0],
        latest_id=ids[-1],
        reason=kept.reason,
        left_files=left_files,
        dry_run=dry_run,
    )
    if plan is None:
        return found
    return msgspec.structs.replace(found, **plan.counts._asdict())
