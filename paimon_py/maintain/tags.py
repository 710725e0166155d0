"""Creating and deleting tags. A deletion removes the name first, then the files that only the tag kept.

Source: format.md §16.3; Java `TagManager`, `TagDeletion`, `TagTimeExpire`, `SuccessFileTagCallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta, timezone
from typing import Literal

from paimon_py.errors import CommitConflictError, SnapshotExpiredError, TableNotFoundError, TagNotFoundError
from paimon_py.logs import EXPIRY, fields
from paimon_py.maintain.cleanup.deletion_plan import DeletionPlan, other_references
from paimon_py.maintain.observers import notify_tags, report
from paimon_py.metadata.catalog_entry import partition_catalog
from paimon_py.metadata.id_runs import runs_of_ids
from paimon_py.metadata.maintenance_state import TagEnd
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.snapshots import PINNING
from paimon_py.metadata.success_file import mark_success
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.scan.moments import limit_before, millis_of
from paimon_py.spec.events import ExpiryEvent, TagEvent
from paimon_py.spec.layout import tag_path, tag_success_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Snapshot, TagValue
from paimon_py.spec.supported import check_taggable

Action = Literal["create", "replace", "rename", "delete"]
_PARTS = 7
_LOOK_MILLIS = 60_000
"""The interval between checks of tags after commits: other processes may have created short-lived ones."""


def make_tag(table: OpenTable, name: str, snapshot: Snapshot, retain: timedelta | None = None) -> TagValue:
    """Name a snapshot, for the given time or for `tag.default-time-retained`; otherwise permanently.

    The snapshot is checked again after the tag is created: expiry lists tags after deleting snapshots, so either expiry
    sees the tag, or the tag is withdrawn.

    Raises:
        SnapshotExpiredError: the snapshot expired in the meantime.
        TableNotFoundError: another table is at the path.
        CorruptionError: the success file of an older tag of this name is damaged.
        else as `Tags.create`
    """
    check_taggable(table.schema)
    table.root.require_own(snapshot)
    tag = table.root.tags.create(name, snapshot, now=_now(table.root), time_retained=_retention(table.schema, retain))
    if not is_kept(table.root, snapshot, but=name):
        table.root.tags.delete_same(tag)
        table.root.schemas.latest()
        raise SnapshotExpiredError(
            f"snapshot {snapshot.id} of {table.root.path} expired while the tag {name!r} was made of it{PINNING}",
            path=table.root.path, snapshot_id=snapshot.id,
        )  # fmt: skip
    _follow_creation(table, name, lambda: _event(table.root, tag, "create"))
    return tag


def rename_tag(table: OpenTable, name: str, new_name: str) -> TagValue:
    """Rename a tag. The tag has both names for a moment; an interrupted call can be repeated.

    Raises:
        TagNotFoundError: the tag `name` does not exist.
        AlreadyExistsError: another tag has the name `new_name`.
        CommitConflictError: the tag was moved or deleted in the meantime.
        TableNotFoundError: another table is at the path.
    """
    check_taggable(table.schema)
    old = table.root.tags.get(name)
    table.root.require_own(old.snapshot)
    try:
        tag = table.root.tags.rename(old, new_name)
    except CommitConflictError:
        table.root.schemas.latest()
        raise
    _follow_creation(table, new_name, lambda: _event(table.root, tag, "rename", name))
    _follow_deletion(table, name)
    return tag


def replace_tag(table: OpenTable, name: str, snapshot: Snapshot, retain: timedelta | None = None) -> TagValue:
    """Move a tag to another snapshot, atomically for readers; then delete files that only the old one kept.

    Raises:
        TagNotFoundError: the tag does not exist.
        SnapshotExpiredError: the snapshot expired in the meantime; the tag is unchanged.
        TableNotFoundError: another table is at the path.
        else as `delete_tags`
    """
    check_taggable(table.schema)
    old = table.root.tags.get(name)
    table.root.require_own(snapshot, old.snapshot)
    tag = table.root.tags.replace(name, snapshot, now=_now(table.root), time_retained=_retention(table.schema, retain))
    if snapshot.mark != old.snapshot.mark and not is_kept(table.root, snapshot, but=name):
        _put_back(table.root, old, tag)
        raise SnapshotExpiredError(
            f"snapshot {snapshot.id} of {table.root.path} expired while the tag {name!r} was made to name it{PINNING}",
            path=table.root.path, snapshot_id=snapshot.id,
        )  # fmt: skip
    _delete_with_files(table, [old], lambda: None)
    _follow_creation(table, name, lambda: _event(table.root, tag, "replace"))
    return tag


def _put_back(root: TableRoot, old: TagValue, new: TagValue) -> None:
    """Let a tag name its old snapshot again.

    Raises: TableNotFoundError if another table is at the path: then its tag of that name is gone.
    """
    try:
        root.schemas.latest()
    except TableNotFoundError:
        root.tags.delete_same(new)
        raise
    root.tags.put(old)


def _now(root: TableRoot) -> datetime:
    """The local wall-clock time."""
    return datetime.fromtimestamp(root.env.clock.local_millis() / 1000, timezone.utc)


def _retention(schema: TableSchema, retain: timedelta | None) -> timedelta | None:
    """The retention of a new tag."""
    millis = Options(schema.options).find_duration("tag.default-time-retained") if retain is None else None
    return retain if millis is None else timedelta(milliseconds=millis)


def _event(root: TableRoot, tag: TagValue, action: Action, old_name: str | None = None) -> TagEvent:
    return TagEvent(
        **root.event_place(), action=action, name=tag.name, snapshot_id=tag.snapshot.id, old_name=old_name
    )


def _follow_creation(table: OpenTable, name: str, event: Callable[[], TagEvent]) -> None:
    """Run the actions that follow the creation of a tag."""
    table.root.maintenance.tags_look = None
    if table.options.get_bool("tag.create-success-file"):
        mark_success(table.root, tag_success_path(table.root.branch_path, name))
    keeper = partition_catalog(table.root)
    if keeper is not None:
        keeper.tag_created(table.root, name)
    notify_tags(table, lambda: (event(),))


def _follow_deletion(table: OpenTable, name: str) -> None:
    """Run the actions that follow the deletion of a tag."""
    if table.options.get_bool("tag.create-success-file"):
        table.root.store.delete(tag_success_path(table.root.branch_path, name))
    keeper = partition_catalog(table.root)
    if keeper is not None:
        keeper.tag_deleted(table.root, name)


def is_kept(root: TableRoot, snapshot: Snapshot, *, but: str | None = None) -> bool:
    """Whether a snapshot, or a tag that keeps it, exists. `but`: the name of a tag to ignore."""
    there = root.snapshots.find(snapshot.id)
    if there is not None and there.mark == snapshot.mark:
        return True
    return any(tag.snapshot.mark == snapshot.mark for tag in root.tags.list() if tag.name != but)


def delete_tag(table: OpenTable, tag: TagValue) -> None:
    """Delete a tag, and the files that only the tag kept. Raises: as `delete_tags`"""
    delete_tags(table, [tag])


def delete_tags(table: OpenTable, going: Sequence[TagValue]) -> None:
    """Delete tags, and the files of expired snapshots that nothing else references.

    Tags may belong to histories that were rolled back or replaced, so none of them covers another: all remaining tags
    are read, and the snapshots between which files may have been added and deleted. Concurrent branches created from a
    tag, and rollbacks to it, are detected after the tags are deleted.

    Each tag is read again immediately before it is deleted: it may have been moved, or be that of another table.

    Cost: three calls per deleted tag, and one for its snapshot; if a snapshot has expired, also a get per tag, the
      manifests of all tags and of some snapshots, each once if cached, and a delete per file.
    Raises:
        StorageError, CorruptionError: a file that may reference others cannot be read; nothing was deleted.
        CommitConflictError: a tag was moved in the meantime, and stays; all others were deleted.
        TableNotFoundError: another table is at the path.
    """
    gone: list[TagValue] = []

    def delete() -> None:
        gone.extend(tag for tag in going if table.root.tags.delete_same(tag))
        if len(gone) < len(going):
            table.root.schemas.latest()

    check_taggable(table.schema)
    table.root.require_own(*(tag.snapshot for tag in going))
    names = {tag.name for tag in going}
    _delete_with_files(table, going, delete, names)
    for tag in gone:
        _follow_deletion(table, tag.name)
    notify_tags(table, lambda: [_event(table.root, tag, "delete") for tag in gone])
    _check_gone(table.root, names.difference(tag.name for tag in gone))


def _check_gone(root: TableRoot, left: Collection[str]) -> None:
    """Check that tags that this call did not delete were deleted by others. Cost: none without such tags.

    Raises: CommitConflictError
    """
    moved = sorted(set(left).intersection(root.tags.names())) if left else []
    if moved:
        raise CommitConflictError(
            f"the tag {moved[0]!r} of {root.path} was moved, and was not deleted; call again", table=root.path
        )


def _delete_with_files(
    table: OpenTable, going: Sequence[TagValue], delete: Callable[[], None], names: Collection[str] = ()
) -> None:
    """Delete the files that only some tags kept. Raises: as `delete_tags`

    Args:
        delete: deletes the tags, after the files that they keep are known.
        names: the tags that `delete` deletes.
    """
    expired, plan = _expired_of(table.root, [tag.snapshot for tag in going]), DeletionPlan(table)
    others = [one.snapshot for one in table.root.tags.list() if one.name not in names] if expired else []
    marks = {one.mark for one in others}
    freed = [one for one in expired if one.mark not in marks]
    if freed:
        for snapshot in freed:
            plan.add_live(snapshot)
            plan.add_lists(snapshot.base_manifest_list, snapshot.delta_manifest_list)
            plan.add_indexes(snapshot)
        beside = other_references(table.root, freed)
        plan.spare([*others, *_of_history(table.root, freed), *beside.branches])
        plan.spare_changes(beside)
        for number in table.root.changelogs.ids():
            changelog = table.root.changelogs.find(number) if number <= freed[-1].id else None
            if changelog is not None:
                plan.spare_written(changelog)
    delete()
    if freed:
        later = other_references(table.root, freed)
        find = table.root.snapshots.find
        plan.spare(one for old in freed if (one := find(old.id)) is not None and one.mark == old.mark)
        plan.spare([*later.branches, *(one for one in later.tags if one not in others)])
    plan.delete()


def _expired_of(root: TableRoot, going: Sequence[Snapshot]) -> list[Snapshot]:
    """The expired ones among the snapshots of some tags, ascending.

    Marks are compared: another Java release may omit fields of a tag that it does not know.
    """
    found = dict[str, Snapshot]()
    for snapshot in sorted(going, key=lambda one: one.id):
        if snapshot.mark not in found:
            there = root.snapshots.find(snapshot.id)
            if there is None or there.mark != snapshot.mark:
                found[snapshot.mark] = snapshot
    return list(found.values())


def _of_history(root: TableRoot, freed: Sequence[Snapshot]) -> list[Snapshot]:
    """The snapshots that reference all files of `freed` snapshots that any snapshot references.

    These are the first and last one of each run of ids, since deleted files are never added again; and, if another
    history has the id of a freed one, those up to it, which it may share.
    """
    ids = root.snapshots.ids()
    numbers = {number for run in runs_of_ids(ids) for number in (run[0], run[-1])}
    numbers |= {number for number in ids if number <= freed[-1].id}
    return [one for number in sorted(numbers) if (one := root.snapshots.find(number)) is not None]


def expire_tags(
    table: OpenTable,
    older_than: datetime | timedelta | str | int | None,
    progress: Progress | None = None,
) -> list[str]:
    """Delete the tags whose retention is over, or that were created before `older_than`.

    Tags store the local time of their creator; this machine's zone is assumed, as in Java.

    Raises: as `delete_tags`
    """
    now, limit = table.root.env.clock.local_millis(), None
    to_wall = now - table.root.env.clock.millis()
    if older_than is not None:
        limit = limit_before("older_than", older_than, now - to_wall) + to_wall
    gone, tags = list[TagValue](), table.root.tags.list()
    tally = ProgressCounter(progress, len(tags), "tags")
    for tag in tags:
        end, made = _end(tag), _creation_millis(tag)
        is_over = end is not None and end < now
        if not is_over and limit is not None:
            written = made if made is not None else _write_millis(table.root, tag, to_wall)
            is_over = written is not None and written < limit
        if is_over:
            gone.append(tag)
        tally.add(1)
    if gone:
        delete_tags(table, gone)
    for tag in gone:
        _log_expiry(table.root, tag)
    return [tag.name for tag in gone]


def expire_tags_by_commit(table: OpenTable, *, is_first: bool) -> None:
    """Delete the tags whose retention is over, if a check is due.

    `is_first`: the commit created the first snapshot, so that there can be no tags.

    Cost: a list, at most once a minute or if a tag is known to be over; a get per tag not read before.
    Raises: as `delete_tag`
    """
    now, memory = table.root.env.clock.millis(), table.root.maintenance
    if memory.tags_look is not None and now < memory.tags_look <= now + _LOOK_MILLIS:
        return
    if is_first and memory.tags_look is None:
        memory.tags_look = now + _LOOK_MILLIS
        return
    to_utc = now - table.root.env.clock.local_millis()
    known, memory.tag_ends = memory.tag_ends, {}
    for status in table.root.tags.files():
        name = table.root.tags.name_of(status)
        stamp = (status.size_bytes, status.modified_millis)
        found = known.get(name)
        try:
            if found is None or found.stamp != stamp or status.modified_millis is None:
                found = TagEnd(stamp, _end(table.root.tags.get(name)))
            if found.wall_millis is not None and found.wall_millis + to_utc < now:
                over = table.root.tags.get(name)
                delete_tag(table, over)
                _log_expiry(table.root, over)
                continue
        except TagNotFoundError:
            continue
        memory.tag_ends[name] = found
    ends = [end.wall_millis + to_utc + 1 for end in memory.tag_ends.values() if end.wall_millis is not None]
    memory.tags_look = min([now + _LOOK_MILLIS, *ends])


def _log_expiry(root: TableRoot, tag: TagValue) -> None:
    EXPIRY.info(
        "%s: tag %r expired; it referred to snapshot %d", root.path, tag.name, tag.snapshot.id,
        extra=fields(root, tag=tag.name, snapshot_id=tag.snapshot.id),
    )  # fmt: skip
    report(root, lambda: ExpiryEvent(**root.event_place(), what="tags", count=1))


def _end(tag: TagValue) -> int | None:
    """The end of a tag's retention in local time; None: never."""
    made = _creation_millis(tag)
    return None if made is None else made + int((tag.time_retained_seconds or 0) * 1000)


def _creation_millis(tag: TagValue) -> int | None:
    """The creation time of a tag with a retention, in local time as if it were epoch milliseconds."""
    if tag.create_time is None or tag.time_retained_seconds is None:
        return None
    year, month, day, hour, minute, second, nanos = (*tag.create_time, *[0] * _PARTS)[:_PARTS]
    made = datetime(year, month, day, hour, minute, second, nanos // 1000, timezone.utc)
    return millis_of("the time of a tag", made)


def _write_millis(root: TableRoot, tag: TagValue, to_wall: int) -> int | None:
    """The last write time of a tag's file, in local time."""
    status = root.store.stat(tag_path(root.branch_path, tag.name))
    return None if status is None or status.modified_millis is None else status.modified_millis + to_wall
