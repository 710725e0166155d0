"""Screens of `top`: measurements laid out for a given width. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

import msgspec
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table as Grid
from rich.text import Text

from paimon_py.cli.sizes import count_text, size_text
from paimon_py.compaction.picker import PickerSettings
from paimon_py.metadata.commit_history import HistoryEntry
from paimon_py.metrics.measures import TableMeasures
from paimon_py.service.urgency import Need

_WIDE = 120
_BAR = 30
_COMMITS = 10
_USER = 12
NEEDS = {
    Need.NOTHING: "", Need.SMALL_FILES: "small files", Need.READ_AMPLIFICATION: "many runs",
    Need.LEVEL_0_PILE_UP: "L0 piles up",
}  # fmt: skip


class TableView(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a screen for one table.

    Attributes:
        recent: commits of the last ten minutes, as far as they were read.
        need, settings: the urgency of a compaction, and its thresholds; None without primary key.
        error: why the table could not be measured; the other fields are then empty.
    """

    name: str
    location: str = ""
    measures: TableMeasures | None = None
    history: tuple[HistoryEntry, ...] = ()
    recent: int = 0
    need: Need = Need.NOTHING
    settings: PickerSettings | None = None
    error: str | None = None


def age_text(seconds: float | None) -> str:
    """An age in its largest unit: 12 s, 3 min, 2 h, 5 d."""
    if seconds is None:
        return ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def clock_text(millis: int) -> str:
    """A time of day in UTC."""
    return datetime.fromtimestamp(millis / 1000, timezone.utc).strftime("%H:%M:%SZ")


def table_frame(view: TableView, width: int) -> RenderableType:
    """The screen for one table."""
    found = view.measures
    if found is None:
        return Text(f"{view.name}: {view.error}", style="red")
    title = _title(view.name, view.location, found.time_millis, width)
    parts: list[RenderableType] = [title, *_summary(view, found)]
    if found.levels:
        parts += ["", _levels(found)]
    if found.consumers:
        parts += ["", _consumers(found)]
    if view.history:
        parts += ["", _commits(view.history[:_COMMITS], found.time_millis, width)]
    return Group(*parts)


def warehouse_frame(warehouse: str, views: Sequence[TableView], now_millis: int, width: int) -> RenderableType:
    """The screen for all tables, in the given order."""
    sums = [view.measures for view in views if view.measures is not None]
    size, files = sum(one.size_bytes for one in sums), sum(one.file_count for one in sums)
    said = f"{count_text(len(views), 'table')}, {count_text(files, 'file')}, {size_text(size)}"
    title = _title(warehouse, said, now_millis, width)
    names = ("age", "size", "files", "L0", "runs", "merge", "lag")
    wide = ("10 min", "snapshot", "rows", "buckets", "snapshots", "tags", "last operation") if width >= _WIDE else ()
    grid = Grid(show_edge=False, header_style="bold", expand=False, box=None, pad_edge=False)
    grid.add_column("table", overflow="ellipsis", no_wrap=True, max_width=max(12, width - (130 if wide else 61)))
    for name in (*names, *wide):
        grid.add_column(name, justify="left" if name == "last operation" else "right", no_wrap=True)
    grid.add_column("needs", no_wrap=True, overflow="ellipsis")
    for view in views:
        grid.add_row(*_row(view, is_wide=bool(wide)))
    return Group(title, "", grid)


def _title(name: str, rest: str, millis: int, width: int) -> Text:
    """A line that ends with the time; truncated to the width."""
    clock = clock_text(millis)
    line = Text.assemble((name, "bold"), "  ", rest)
    line.truncate(max(1, width - len(clock) - 1), overflow="ellipsis", pad=True)
    return line.append(f" {clock}")


def _row(view: TableView, *, is_wide: bool) -> list[str]:
    found, name = view.measures, escape(view.name)
    if found is None:
        return [name, *[""] * (14 if is_wide else 7), f"[red]{escape(view.error or '')}[/red]"]
    lag = max((one.snapshots for one in found.consumers), default=None)
    runs = str(found.sorted_runs_max) if found.sorted_runs_max else ""
    cells = [
        name, age_text(found.snapshot_age_seconds), size_text(found.size_bytes), f"{found.file_count:,}",
        str(found.level0_files_max or ""), runs, f"{found.backlog_files or ''}", "" if lag is None else str(lag),
    ]  # fmt: skip
    if is_wide:
        last = view.history[0].operation if view.history else ""
        cells += [
            str(view.recent or ""), str(found.snapshot_id), f"{found.record_count:,}", str(found.buckets),
            str(found.snapshots), str(found.tags), last,
        ]  # fmt: skip
    style = {Need.LEVEL_0_PILE_UP: "red", Need.READ_AMPLIFICATION: "yellow"}.get(view.need, "dim")
    return [*cells, f"[{style}]{NEEDS[view.need]}[/{style}]"]


def _summary(view: TableView, found: TableMeasures) -> list[RenderableType]:
    if not found.snapshot_id:
        return ["the table is empty: no snapshot yet"]
    last = view.history[0] if view.history else None
    said = f" {last.operation} by {escape(last.user[:_USER])}" if last is not None else ""
    size, rows = size_text(found.size_bytes), count_text(found.record_count, "row")
    files = f"{count_text(found.file_count, 'file')}, {size}, {rows}"
    lines = [
        f"snapshot [bold]{found.snapshot_id}[/bold]{said}, {age_text(found.snapshot_age_seconds)} ago; "
        f"{count_text(view.recent, 'commit')} in 10 min",
        f"{files} in {count_text(found.buckets, 'bucket')}; "
        f"{count_text(found.snapshots, 'snapshot')}, {count_text(found.tags, 'tag')}",
    ]
    if found.backlog_files is None:
        lines.append("paimon_py cannot compact this table")
    elif found.backlog_files:
        lines.append(f"to merge: {count_text(found.backlog_files, 'file')} of {size_text(found.backlog_bytes or 0)}")
    if view.settings is not None:
        runs, trigger, stop = found.sorted_runs_max, view.settings.compaction_trigger, view.settings.stop_trigger
        style = {Need.LEVEL_0_PILE_UP: "red", Need.READ_AMPLIFICATION: "yellow"}.get(view.need, "default")
        lines.append(
            f"worst bucket: [{style}]{runs}[/{style}] sorted runs (compactions begin at {trigger}), "
            f"[{style}]{found.level0_files_max}[/{style}] of {stop} files on level 0"
        )
    return list(lines)


def _levels(found: TableMeasures) -> Grid:
    grid = _grid("level", "files", "rows", "size", left="")
    most = max(level.size_bytes for level in found.levels) or 1
    for level in found.levels:
        bar = "█" * max(1, round(_BAR * level.size_bytes / most))
        grid.add_row(
            str(level.level), f"{level.file_count:,}", f"{level.record_count:,}", size_text(level.size_bytes),
            f"[cyan]{bar}[/cyan]",
        )  # fmt: skip
    return grid


def _consumers(found: TableMeasures) -> Grid:
    grid = _grid("behind", left="consumer")
    for one in found.consumers:
        grid.add_row(str(one.snapshots), escape(one.name))
    return grid


def _commits(history: Sequence[HistoryEntry], now_millis: int, width: int) -> Grid:
    is_wide = width >= _WIDE
    more = ("+bytes", "-bytes", "rows in all", "number") if is_wide else ()
    grid = _grid("snapshot", "age", "operation", "+rows", "-rows", "+files", "-files", *more, left="user")
    for one in history:
        bytes_moved = [size_text(one.added_bytes), size_text(one.deleted_bytes)]
        extra = [*bytes_moved, _number(one.total_rows), _number(one.identifier)]
        grid.add_row(
            str(one.snapshot_id), age_text(max(0, now_millis - one.time_millis) / 1000), escape(one.operation),
            f"{one.added_rows:,}", f"{one.deleted_rows:,}", str(one.added_files), str(one.deleted_files),
            *(extra if is_wide else ()), escape(one.user if is_wide else one.user[:_USER]),
        )  # fmt: skip
    return grid


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _grid(*right: str, left: str) -> Grid:
    grid = Grid(show_edge=False, header_style="bold", box=None, pad_edge=False)
    for name in right:
        grid.add_column(name, justify="left" if name == "operation" else "right", no_wrap=True)
    grid.add_column(left, overflow="ellipsis", no_wrap=True)
    return grid
