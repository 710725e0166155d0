"""Deleting tags: the tag goes first, then the files that only the tag kept.

Source: format.md §16.3; Java `TagManager.deleteTag`, `TagDeletion`, `TagTimeExpire`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from paimon_py.maintain.doomed import Doomed, kept_beside
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.moments import millis_of
from paimon_py.spec.layout import tag_path
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Tag

_PARTS = 7


def delete_tag(root: TableRoot, schema: TableSchema, tag: Tag) -> None:
    """Delete a tag. Where its snapshot is gone and no other tag has that one, files go that nothing else names.

    A file is named by snapshots that follow each other: the tags next to this one and the oldest snapshot know all
    files of this one that others name, but for branches.

    Raises:
        StorageError, CorruptionError: something that may name a file cannot be read; nothing was deleted.
    """
    snapshot, doomed = tag.snapshot, Doomed(root, schema)
    others = [one.snapshot for one in root.tags.list() if one.name != tag.name]
    if root.snapshots.find(snapshot.id) != snapshot and snapshot not in others:
        before = max((one for one in others if one.id < snapshot.id), key=lambda one: one.id, default=None)
        after = [one for one in others if one.id >= snapshot.id]
        earliest = root.snapshots.earliest_id()
        oldest = None if earliest is None else root.snapshots.find(earliest)
        nearest = min(after if oldest is None else [*after, oldest], key=lambda one: one.id, default=None)
        doomed.add_live(snapshot)
        doomed.add_lists(snapshot.base_manifest_list, snapshot.delta_manifest_list)
        doomed.add_indexes(snapshot)
        doomed.spare([one for one in (before, nearest) if one is not None])
        doomed.spare(kept_beside(root).branches)
    root.tags.delete(tag.name)
    doomed.delete()


def expire_tags(root: TableRoot, schema: TableSchema, older_than: datetime | timedelta | int | None) -> list[str]:
    """Delete the tags that have reached their time, or were made before another one.

    Tags hold the wall clock of the zone of whoever made them; this machine's is taken for it, as Java does.

    Raises: as `delete_tag`; tags that come later by name are still there.
    """
    now, limit = root.env.clock.local_millis(), None
    to_wall = now - root.env.clock.millis()
    if isinstance(older_than, timedelta):
        limit = now - older_than // timedelta(milliseconds=1)
    elif older_than is not None:
        limit = millis_of("older_than", older_than) + to_wall
    gone = []
    for tag in root.tags.list():
        made = _made(tag)
        is_over = made is not None and made + (tag.time_retained_seconds or 0) * 1000 < now
        if not is_over and limit is not None:
            written = made if made is not None else _written(root, tag, to_wall)
            is_over = written is not None and written < limit
        if is_over:
            delete_tag(root, schema, tag)
            gone.append(tag.name)
    return gone


def _made(tag: Tag) -> int | None:
    """When a tag with a retention was made, by the clock on the wall, as if it were epoch milliseconds."""
    if tag.create_time is None or tag.time_retained_seconds is None:
        return None
    year, month, day, hour, minute, second, nanos = (*tag.create_time, *[0] * _PARTS)[:_PARTS]
    made = datetime(year, month, day, hour, minute, second, nanos // 1000, timezone.utc)
    return millis_of("the time of a tag", made)


def _written(root: TableRoot, tag: Tag, to_wall: int) -> int | None:
    """When the file of a tag was written, by the clock on the wall."""
    status = root.store.stat(tag_path(root.path, tag.name))
    return None if status is None or status.modified_millis is None else status.modified_millis + to_wall
