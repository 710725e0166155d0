"""Commands that find problems of a table, and files that are not needed any more."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import click
import msgspec
import pyarrow as pa

from paimon_py import Finding, Table
from paimon_py.cli.output import on_one_line, show_record, show_table, takes_format
from paimon_py.cli.sizes import count_text, size_text
from paimon_py.cli.terminal import ask, progress, takes_yes
from paimon_py.cli.values import age_or_moment, takes_table
from paimon_py.cli.words import in_commands
from paimon_py.maintain.cleanup.expired import RemovedOrphans

_SHOWN = 20
_COLOURS = {"problem": "red", "warning": "yellow", "note": "cyan"}
_FINDINGS = pa.schema([
    ("severity", pa.string()), ("code", pa.string()), ("message", pa.string()), ("figure", pa.float64()),
    ("option", pa.string()), ("mend", pa.string()), ("places", pa.list_(pa.string())),
])  # fmt: skip


@click.command()
@takes_table
@click.option("--deep", is_flag=True, help="Also read a column of every data file.")
@takes_format
def doctor(table: Table, deep: bool, form: str) -> None:
    """Report the problems of a table, and the calls that fix them. Nothing is changed."""
    with progress("looking at") as report:
        found = table.doctor(deep=deep, progress=report)
    if form != "table":
        show_table(pa.Table.from_pylist([msgspec.structs.asdict(one) for one in found], _FINDINGS), form)
        return
    for one in found:
        _print_finding(one)
    if not found:
        click.echo("nothing found: the table is healthy")


def _print_finding(found: Finding) -> None:
    """Print a finding in a few lines."""
    severity = click.style(found.severity, fg=_COLOURS.get(found.severity), bold=True)
    click.echo(f"{severity} {found.code}: {on_one_line(found.message)}")
    for label, text in (("option", found.option), ("mend", found.mend)):
        if text:
            click.echo(f"  {label}: {on_one_line(in_commands(text))}")
    for place in found.places:
        click.echo(f"  - {on_one_line(place)}")


@click.command()
@takes_table
@click.option("--older-than", type=age_or_moment, metavar="AGE|TIME", help="Only older files; default: one day.")
@click.option("--delete", is_flag=True, help="Delete what was found.")
@takes_yes
@takes_format
def orphans(table: Table, older_than: timedelta | datetime | None, delete: bool, yes: bool, form: str) -> None:
    """Find the files of a table that nothing references, and delete them with --delete."""
    with progress("looking through") as report:
        found = table.remove_orphans(older_than=older_than, dry_run=True, progress=report)
    if not delete or not (found.files or found.users):
        _show_orphans(msgspec.structs.replace(found, dry_run=not delete), form)
        return
    if not yes:
        _show_orphans(found, "table")
        users = f", and remove {count_text(len(found.users), 'idle user')}" if found.users else ""
        ask(f"Delete {count_text(found.files, 'file')} of {size_text(found.size_bytes)}{users}?", yes=yes)
    with progress("cleaning") as report:
        done = table.remove_orphans(older_than=older_than, dry_run=False, progress=report)
    _show_orphans(done, form)


def _show_orphans(found: RemovedOrphans, form: str) -> None:
    """Print what was found; as text only the first paths."""
    record = msgspec.structs.asdict(found)
    if form != "table":
        show_record(record, form)
        return
    paths, limit = record.pop("paths"), record.pop("older_than_millis")
    record["size"] = size_text(record.pop("size_bytes"))
    record["older_than"] = datetime.fromtimestamp(limit / 1000, timezone.utc)
    show_record(record, form)
    for path in paths[:_SHOWN]:
        click.echo(on_one_line(path))
    if len(paths) > _SHOWN:
        click.echo(f"… and {found.files - _SHOWN:,} more: --format json lists the first thousand")
