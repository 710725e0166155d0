"""The command that shows the state of a table or a warehouse, live."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import timedelta

import click
from rich.console import Console, RenderableType
from rich.live import Live

from paimon_py import Catalog, PaimonError, Table
from paimon_py.cli.frames import TableView, table_frame, warehouse_frame
from paimon_py.cli.values import open_table, positive_age, takes_place
from paimon_py.compaction.picker import PickerSettings
from paimon_py.env import SystemClock
from paimon_py.errors import TableNotFoundError, UsageError
from paimon_py.metrics.measures import TableMeasures, measure_table
from paimon_py.service.urgency import urgency
from paimon_py.spec.layout import DATABASE_SUFFIX
from paimon_py.spec.options import Options

_COMMITS = 10
_RECENT_MILLIS = 600_000
_LOOKED_AT = 200
"""The maximum number of snapshots that are read to count the recent ones."""


@click.command()
@click.argument("place", metavar="TABLE|WAREHOUSE")
@click.option("--warehouse", "-w", help="Path or URL of a warehouse; the place is then a name such as db.t.")
@click.option(
    "--every", type=positive_age, default="2s", show_default=True, metavar="AGE", help="Time between screens."
)
@click.option("--once", is_flag=True, help="Show one screen and exit; default if stdout is not a terminal.")
@takes_place
def top(place: str, warehouse: str | None, every: timedelta, once: bool, options: Mapping[str, str]) -> None:
    """Show the state of a table or of all tables of a warehouse: commits, levels, files to merge, consumer lag.

    Stop with Ctrl-C.
    """
    screen = _screen(place, warehouse, options)
    console = Console(file=sys.stdout, highlight=False)
    if once or not console.is_terminal:
        print_frame(screen(console.width), console.width)
        return
    clock = SystemClock()
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(screen(console.width), refresh=True)
                clock.sleep(every.total_seconds())
    except KeyboardInterrupt:
        return


def print_frame(frame: RenderableType, width: int) -> None:
    """Print one screen on stdout, with colours if it is a terminal."""
    console = Console(file=sys.stdout, highlight=False, width=width)
    if console.is_terminal:
        console.print(frame)
        return
    with console.capture() as drawn:
        console.print(frame)
    click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def _screen(place: str, warehouse: str | None, options: Mapping[str, str]) -> Callable[[int], RenderableType]:
    """The function that renders the screen for a width; called repeatedly."""
    parent = place.rstrip("/").rpartition("/")[0]
    if warehouse is not None or parent.endswith(DATABASE_SUFFIX):
        table = open_table(place, warehouse, options)
        if not isinstance(table, Table):
            raise UsageError(f"{table.name} is a system table: top shows tables and warehouses")
        return lambda width: table_frame(view_of(table, _COMMITS), width)
    catalog = Catalog.open(place, options, create=False)
    return lambda width: warehouse_frame(catalog.warehouse, views_of(catalog), SystemClock().millis(), width)


def view_of(table: Table, commits: int) -> TableView:
    """The content of a screen for one table, with its latest commits.

    Raises: as `Table.levels` and `Table.history`
    """
    found = measure_table(table)
    settings = PickerSettings.of(Options(table.schema.options)) if table.schema.primary_keys else None
    return TableView(
        name=table.name, location=table.location, measures=found, history=tuple(table.history(commits)),
        recent=_recent(table, found), need=urgency(found, table.schema).need, settings=settings,
    )  # fmt: skip


def views_of(catalog: Catalog) -> list[TableView]:
    """All tables of a catalog, the most urgent ones first; unreadable ones include the reason."""
    views: list[TableView] = []
    for name in (f"{database}.{table}" for database in catalog.databases() for table in catalog.tables(database)):
        try:
            views.append(view_of(catalog.table(name), 1))
        except TableNotFoundError:
            continue
        except PaimonError as error:
            views.append(TableView(name=name, error=str(error)))
    return sorted(views, key=lambda view: (-view.need, -(view.measures.size_bytes if view.measures else 0), view.name))


def _recent(table: Table, found: TableMeasures) -> int:
    """The number of commits in the last ten minutes."""
    count = 0
    for number in range(found.snapshot_id, max(0, found.snapshot_id - _LOOKED_AT), -1):
        snapshot = table._root.snapshots.find(number)
        if snapshot is None or found.time_millis - snapshot.time_millis > _RECENT_MILLIS:
            break
        count += 1
    return count
