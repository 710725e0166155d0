"""The options `incremental-*` and `scan.mode=latest-delta`: the changes of a range, with Java's semantics.

Source: Java `AbstractDataTableScan.createIncrementalStartingScanner`, `IncrementalDeltaStartingScanner`,
`IncrementalDiffStartingScanner`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paimon_py.errors import OptionError, SnapshotNotFoundError, TagNotFoundError, UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.ends import Ends, Mode, mode_of
from paimon_py.scan.moments import moment_of_text
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.tag_periods import TagPeriod

BETWEEN = "incremental-between"
TIMES = "incremental-between-timestamp"
AUTO_TAG = "incremental-to-auto-tag"
INCREMENTAL = (BETWEEN, TIMES, AUTO_TAG)
"""The options that select a range; a scan has at most one of them."""


class Incremental(msgspec.Struct, frozen=True, kw_only=True):
    """A range selected by exactly one of:

    `between`: two tags, or two snapshot ids as strings. `times`: two times in epoch milliseconds. `auto_tag`: the
    changes from the previous automatic tag up to this one. `latest`: the changes of the latest snapshot.
    """

    between: tuple[str, str] | None = None
    times: tuple[int, int] | None = None
    auto_tag: str | None = None
    latest: bool = False
    mode: str = "auto"
    tags_to_snapshots: bool = False

    def ends(self, table: OpenTable) -> Ends | None:
        """The ends as snapshots; None if there is nothing between them.

        Cost: a few gets; for automatic tags a get per tag.
        Raises:
            UsageError: the ends are in the wrong order, or neither two tags nor two ids.
            SnapshotNotFoundError, SnapshotExpiredError: a snapshot does not exist (any more).
        """
        mode = mode_of(self.mode, table.schema)
        if self.auto_tag is not None:
            return _to_auto_tag(table.root, self.auto_tag, table.options)
        latest = table.root.latest()
        if latest is None:
            return None
        if self.latest:
            return Ends(since=latest.id - 1, last=latest, mode="delta")
        if self.times is not None:
            return _between_times(table.root, self.times, mode, latest)
        assert self.between is not None
        return self._between(table.root, self.between, mode)

    def _between(self, root: TableRoot, named: tuple[str, str], mode: Mode) -> Ends | None:
        start, end = (_tag(root, name) for name in named)
        if start is not None and end is not None:
            if self.tags_to_snapshots:
                return _between_ids(root, start.id, end.id, mode)
            _check_order(named, start.id, end.id)
            return _diff(start, end)
        try:
            first, last = (int(name) for name in named)
        except ValueError:
            raise UsageError(
                f"{BETWEEN}={','.join(named)} names neither two tags of the table nor two snapshot ids"
            ) from None
        _check_order(named, first, last)
        if mode == "diff" and first != last:
            return _diff(root.snapshots.get(first), root.snapshots.get(last))
        return _between_ids(root, first, last, mode)


def incremental_of(option: str, text: str, options: Mapping[str, str]) -> Incremental:
    """The range that one of `INCREMENTAL` selects; `options`: those of the scan and of the table.

    Raises: OptionError
    """
    found = Options(options)
    mode = found.get_enum("incremental-between-scan-mode")
    if option == AUTO_TAG:
        return Incremental(auto_tag=text, mode=mode)
    parts = text.split(",")
    if len(parts) != 2:
        what = "two snapshot ids or two tags" if option == BETWEEN else "two times"
        raise OptionError(f"option {option} is {what}, as start,end: not {text!r}", option=option, value=text)
    if option == BETWEEN:
        to_snapshots = found.get_bool("incremental-between-tag-to-snapshot")
        return Incremental(between=(parts[0], parts[1]), mode=mode, tags_to_snapshots=to_snapshots)
    start, end = (_millis(option, part) for part in parts)
    if start > end:
        raise OptionError(f"option {option} ends before it begins: {text!r}", option=option, value=text)
    return Incremental(times=(start, end), mode=mode)


def _millis(option: str, text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else moment_of_text(option, text)


def _tag(root: TableRoot, name: str) -> Snapshot | None:
    try:
        return root.tags.get(name).snapshot
    except (TagNotFoundError, UsageError):
        return None


def _check_order(named: tuple[str, str], first: int, last: int) -> None:
    if first > last:
        raise UsageError(f"{BETWEEN}={','.join(named)} ends before it begins: the earlier state comes first")


def _between_ids(root: TableRoot, first: int, last: int, mode: Mode) -> Ends | None:
    if first == last:
        return None
    if mode == "diff":
        raise UsageError("incremental-between-tag-to-snapshot needs another incremental-between-scan-mode than diff")
    end = root.snapshots.get(last)
    root.snapshots.get(first + 1)
    return Ends(since=first, last=end, mode=mode)


def _diff(start: Snapshot, end: Snapshot) -> Ends | None:
    if start.mark == end.mark:
        return None
    return Ends(since=start.id, start=start, last=end, mode="diff", removals=False)


def _between_times(root: TableRoot, times: tuple[int, int], mode: Mode, latest: Snapshot) -> Ends | None:
    """The last snapshots at or before two times; an earlier time selects the state before the oldest one."""
    start, end = times
    oldest = root.snapshots.get(root.snapshots.earliest_id() or latest.id)
    if start == end or start > latest.time_millis or end < oldest.time_millis:
        return None
    last = root.snapshots.by_time(end)
    try:
        first = root.snapshots.by_time(start)
    except SnapshotNotFoundError:
        if mode != "diff":
            return Ends(since=oldest.id - 1, last=last, mode=mode)
        return Ends(since=0, last=last, mode="diff", removals=False) if oldest.id == 1 else _diff(oldest, last)
    return _diff(first, last) if mode == "diff" else _between_ids(root, first.id, last.id, mode)


def _to_auto_tag(root: TableRoot, name: str, options: Options) -> Ends | None:
    """The diff from the automatic tag before `name`; None if the tag does not exist, or has no predecessor."""
    period = TagPeriod.of(options)
    named = period.begins(name)
    if named is None:
        message = f"option {AUTO_TAG} names {name!r}, which is not an automatic tag by tag.creation-period"
        raise OptionError(message, option=AUTO_TAG, value=name)
    end = _tag(root, name)
    tags = [(when, tag) for tag in root.tags.list() if (when := period.begins(tag.name)) is not None]
    earlier = [(when, tag.snapshot) for when, tag in tags if when < named]
    if end is None or not earlier:
        return None
    return _diff(max(earlier, key=lambda each: each[0])[1], end)
