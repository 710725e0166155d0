"""Expiry of changelogs that outlive their snapshots: deletes old ones and the files that only they reference.

Source: format.md §16.2; Java `ExpireChangelogImpl`, `ChangelogDeletion`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.logs import EXPIRY, fields
from paimon_py.maintain.cleanup.deletion_plan import DeletionPlan, OtherReferences, other_references
from paimon_py.maintain.cleanup.expired import ExpiredChangelogs
from paimon_py.maintain.cleanup.retention import Retention, first_kept_changelog
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
    ids, earliest = table.root.changelogs.ids(), table.root.snapshots.earliest_id()
    latest = table.root.snapshots.latest_id()
    if latest is None:
        table.root.schemas.latest()
    if not ids or latest is None or earliest is None:
        return ExpiredChangelogs(reason="no changelog is kept longer than its snapshot", dry_run=dry_run)
    found: dict[int, Snapshot | None] = {}

    def get(number: int) -> Snapshot | None:
        if number not in found:
            found[number] = table.root.changelogs.find(number)
        return found[number]

    def time_of(number: int) -> int | None:
        changelog = get(number)
        return None if changelog is None else changelog.time_millis

    consumers = {consumer.name: consumer.next_snapshot_id for consumer in table.root.consumers.all()}
    kept = first_kept_changelog(ids, latest, retention, consumers, time_of)
    going = [one for number in ids if number < kept.snapshot_id and (one := get(number)) is not None]
    plan, others = _plan_deletion(table, going, progress), other_references(table.root, going)
    if going:
        following, oldest = get(kept.snapshot_id), table.root.snapshots.find(earliest)
        if following is not None:
            plan.spare_metadata(following, missing_ok=True)
        plan.spare([] if oldest is None else [oldest])
        _spare_references(table.root, plan, others, going, kept.snapshot_id)
    left_files, said = 0, tuple[str, ...]()
    if going and not dry_run:
        table.root.schemas.latest()
        table.root.changelogs.raise_earliest(kept.snapshot_id)
        table.root.changelogs.forget(table.root.each_of_same(range(going[0].id, kept.snapshot_id)))
        plan.spare(other_references(table.root, going).without(others))
        left_files = plan.delete(progress=progress)
        EXPIRY.info(
            "%s: changelogs %d to %d expired, with %d data files; %s", table.root.path, going[0].id, going[-1].id,
            plan.counts.data_files, kept.reason,
            extra=fields(table.root, changelogs=len(going), data_files=plan.counts.data_files),
        )  # fmt: skip
        said = report(table.root, lambda: _event(table.root, going, plan))
    counts = plan.counts
    return ExpiredChangelogs(
        snapshot_ids=tuple(one.id for one in going),
        earliest_id=kept.snapshot_id,
        latest_id=ids[-1],
        reason=kept.reason,
        data_files=counts.data_files,
        metadata_files=counts.metadata_files,
        left_files=left_files,
        dry_run=dry_run,
        warnings=said,
    )


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


def _event(root: TableRoot, going: Sequence[Snapshot], plan: DeletionPlan) -> ExpiryEvent:
    return ExpiryEvent(
        **root.event_place(), what="changelogs", count=len(going), first_id=going[0].id, last_id=going[-1].id,
        deleted_files=plan.counts.data_files + plan.counts.metadata_files,
    )  # fmt: skip

