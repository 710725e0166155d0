"""Expiry of changelogs that outlive their snapshots: deletes old ones and the files that only they reference.

Source: format.md §16.2; Java `ExpireChangelogImpl`, `ChangelogDeletion`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from paimon_py.logs import EXPIRY, fields
from paimon_py.maintain.cleanup.deletion_plan import DeletionPlan, OtherReferences, other_references
from paimon_py.maintain.cleanup.expired import ExpiredChangelogs
from paimon_py.maintain.cleanup.retention import FetchedSnapshots, Retention, first_kept_changelog
from paimon_py.maintain.observers import report
from paimon_py.metadata.branches import other_branches
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.events import ExpiryEvent
from paimon_py.spec.snapshot import Snapshot


def expire_changelogs(
    table: OpenTable, retention: Retention, *, dry_run: bool, progress: Progress | None = None
) -> ExpiredChangelogs:
    """Delete kept changelogs and the files that only they reference; the newest one is always kept.

    Args:
        progress: called with the changelogs read, then with the files deleted.

    Cost: two lists, a get per expiring changelog, its list and manifests; a list for each 16 deleted changelogs, and a
      delete per file.
    Raises:
        TableNotFoundError: another table is at the path.
        CorruptionError, StorageError: a changelog, tag, branch or consumer cannot be read; nothing was deleted.
    """
    root = table.root
    ids, earliest, latest = root.changelogs.ids(), root.snapshots.earliest_id(), root.snapshots.latest_id()
    if latest is None:
        root.schemas.latest()
    if not ids or latest is None or earliest is None:
        return ExpiredChangelogs(reason="no changelog is kept longer than its snapshot", dry_run=dry_run)
    known = FetchedSnapshots(root.changelogs.find)
    consumers = {consumer.name: consumer.next_snapshot_id for consumer in root.consumers.all()}
    kept = first_kept_changelog(ids, latest, retention, consumers, known.time_of)
    going = [one for number in ids if number < kept.snapshot_id for one in known.get(number)]
    plan, others = _plan_deletion(table, going, progress), other_references(root, going)
    if going:
        oldest = root.snapshots.find(earliest)
        for following in known.get(kept.snapshot_id):
            plan.spare_metadata(following, missing_ok=True)
        plan.spare([] if oldest is None else [oldest])
        _spare_references(root, plan, others, going, kept.snapshot_id)
    left_files = 0
    if going and not dry_run:
        root.schemas.latest()
        root.changelogs.raise_earliest(kept.snapshot_id)
        root.changelogs.forget(root.each_of_same(range(going[0].id, kept.snapshot_id)))
        plan.spare(other_references(root, going).without(others))
        left_files = plan.delete(progress=progress)
    done = ExpiredChangelogs(
        snapshot_ids=tuple(one.id for one in going),
        earliest_id=kept.snapshot_id,
        latest_id=ids[-1],
        reason=kept.reason,
        data_files=plan.counts.data_files,
        metadata_files=plan.counts.metadata_files,
        left_files=left_files,
        dry_run=dry_run,
    )
    return _report(root, done) if going and not dry_run else done


def _report(root: TableRoot, done: ExpiredChangelogs) -> ExpiredChangelogs:
    """Log an expiry and notify observers; returns the result with their warnings."""
    first, last = done.snapshot_ids[0], done.snapshot_ids[-1]
    EXPIRY.info(
        "%s: changelogs %d to %d expired, with %d data files; %s", root.path, first, last, done.data_files, done.reason,
        extra=fields(root, changelogs=len(done.snapshot_ids), data_files=done.data_files),
    )  # fmt: skip
    return msgspec.structs.replace(done, warnings=report(root, lambda: _event(root, done)))


def _plan_deletion(table: OpenTable, going: Sequence[Snapshot], progress: Progress | None) -> DeletionPlan:
    """The files of expiring changelogs. Raises: TableNotFoundError"""
    plan, tally = DeletionPlan(table), ProgressCounter(progress, len(going), "changelogs")
    for changelog in going:
        if changelog.changelog_manifest_list is None:
            plan.add_deleted(changelog)
            plan.add_lists(changelog.delta_manifest_list, changelog.base_manifest_list)
        else:
            plan.add_changelog(changelog)
            plan.add_lists(changelog.changelog_manifest_list)
        tally.add(1)
    table.root.require_own(*going[-1:])
    return plan


def _spare_references(
    root: TableRoot, plan: DeletionPlan, others: OtherReferences, going: Sequence[Snapshot], first_kept: int
) -> None:
    """Keep the files that tags and branches reference."""
    if any(one.changelog_manifest_list is None for one in going):
        # files that the first one deleted were last referenced by the previous snapshot
        ancestor = next((tag for tag in others.tags if going[0].follows(tag)), None)
        plan.spare(others.near(ancestor, first_kept, lambda tag: _is_kept(root, tag)))
    else:
        plan.spare(others.branches)
    before = [other.snapshots.find(going[0].id - 1) for other in other_branches(root)]
    plan.spare([one for one in before if one is not None])
    plan.spare_changes(others)


def _is_kept(root: TableRoot, tag: Snapshot) -> bool:
    """Whether the snapshot of a tag exists, or its changelog."""
    found = root.find_kept(tag.id)
    return found is not None and found.mark == tag.mark


def _event(root: TableRoot, done: ExpiredChangelogs) -> ExpiryEvent:
    return ExpiryEvent(
        **root.event_place(), what="changelogs", count=len(done.snapshot_ids), first_id=done.snapshot_ids[0],
        last_id=done.snapshot_ids[-1], deleted_files=done.data_files + done.metadata_files,
    )  # fmt: skip

