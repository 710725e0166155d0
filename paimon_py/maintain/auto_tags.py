"""Tags that commits create: by the time of snapshots, or one per batch job and day.

Source: format.md §16.3; Java `TagAutoCreation`, `TagBatchCreation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from paimon_py.errors import AlreadyExistsError, TagNotFoundError
from paimon_py.maintain.tags import delete_tag, make_tag
from paimon_py.maintain.zones import wall_in
from paimon_py.metadata.maintenance_state import NextTag
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.snapshot import MIN_LONG, Snapshot
from paimon_py.spec.tag_periods import TagPeriod, TagRule

_AT_ONCE = 64
_BATCH = "batch-write-"
_DAY = TagPeriod(24 * 3_600_000, _BATCH + "%Y-%m-%d")


def tag_by_time(table: OpenTable, rule: TagRule, latest: int) -> None:
    """Create the tags that are due up to a snapshot; only the newest `tag.num-retained-max` automatic tags are kept.

    A tag whose name exists counts as created.

    Cost: with tags by clock, none before the next tag is due; else a get per snapshot, and one for the last that was
      asked before. The first call needs a list and a get.
    Raises: OptionError, UsageError: unknown time zone. StorageError, CorruptionError: a later commit continues there.
    """
    state = table.root.maintenance.next_tag
    if state is None or state.rule != rule or state.snapshot_id > latest + 1:
        state = table.root.maintenance.next_tag = _first_period(table.root, rule)
    if not rule.by_watermark and rule.tag_at(wall_in(rule.zone, table.root.env.clock.millis()), state.after) is None:
        return
    if _was_rolled_back(table.root, state):
        state = table.root.maintenance.next_tag = _first_period(table.root, rule)
    for snapshot in _snapshots(table.root, state.snapshot_id, latest):
        moment = _moment(rule, snapshot)
        begins = None if moment is None else rule.tag_at(moment, state.after)
        if begins is not None:
            _make(table, rule.period.name(begins), snapshot)
            _keep_newest(table, lambda name: rule.period.begins(name) is not None)
        after = state.after if begins is None else begins + rule.period.millis
        state = table.root.maintenance.next_tag = msgspec.structs.replace(
            state, snapshot_id=snapshot.id + 1, after=after, mark=snapshot.mark
        )


def tag_batch(table: OpenTable) -> None:
    """Tag the latest snapshot with `tag.batch.customized-name`, or with the day; an existing tag of the name is
    replaced.

    Only the newest `tag.num-retained-max` daily tags are kept. Unlike Java's batch jobs, other tags are neither counted
    nor deleted.

    Raises: as `tag_by_time`; the older tag may already be deleted.
    """
    options, latest = table.options, table.root.snapshots.latest()
    if latest is None:
        return
    name = options.find_str("tag.batch.customized-name")
    if name is None:
        moment = wall_in(options.find_str("sink.process-time-zone"), latest.time_millis)
        name = _DAY.name(moment // _DAY.millis * _DAY.millis)
    try:
        older = table.root.tags.get(name)
    except TagNotFoundError:
        older = None
    if older is not None and older.snapshot.mark == latest.mark:
        return
    if older is not None:
        delete_tag(table, older)
    _make(table, name, latest)
    _keep_newest(table, lambda one: _DAY.begins(one) is not None)


def _was_rolled_back(root: TableRoot, state: NextTag) -> bool:
    """Whether another snapshot has the number of the last one that was asked. Cost: a get if there was one."""
    last = None if state.mark is None else root.snapshots.find(state.snapshot_id - 1)
    return last is not None and last.mark != state.mark


def _first_period(root: TableRoot, rule: TagRule) -> NextTag:
    """The start position: after the latest automatic tag, or at the oldest snapshot."""
    made = [(begins, name) for name in root.tags.names() if (begins := rule.period.begins(name)) is not None]
    if not made:
        return NextTag(rule, root.snapshots.earliest_id() or 1, None)
    begins, name = max(made)
    return NextTag(rule, root.tags.get(name).snapshot.id + 1, begins + rule.period.millis)


def _snapshots(root: TableRoot, since: int, latest: int) -> Iterator[Snapshot]:
    """The existing snapshots in a range, oldest first, several fetched in parallel."""
    if since < latest and root.snapshots.find(since) is None:
        since = max(since, root.snapshots.earliest_id() or since)
    for begin in range(since, latest + 1, _AT_ONCE):
        found = root.env.pool.map(root.snapshots.find, range(begin, min(begin + _AT_ONCE, latest + 1)))
        yield from (snapshot for snapshot in found if snapshot is not None)


def _moment(rule: TagRule, snapshot: Snapshot) -> int | None:
    """The local time of a snapshot; None if it has no watermark."""
    millis = snapshot.watermark if rule.by_watermark else snapshot.time_millis
    return None if millis is None or millis == MIN_LONG else wall_in(rule.zone, millis)


def _make(table: OpenTable, name: str, snapshot: Snapshot) -> None:
    try:
        make_tag(table, name, snapshot)
    except AlreadyExistsError:
        return


def _keep_newest(table: OpenTable, is_automatic: Callable[[str], bool]) -> None:
    """Delete the oldest automatic tags, so that `tag.num-retained-max` are left."""
    most = table.options.find_int("tag.num-retained-max")
    names = [] if most is None else [name for name in table.root.tags.names() if is_automatic(name)]
    if most is None or len(names) <= most:
        return
    tags = sorted(map(table.root.tags.get, names), key=lambda tag: (tag.snapshot.id, tag.name))
    for tag in tags[: len(tags) - most]:
        delete_tag(table, tag)
