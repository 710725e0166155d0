"""The command that draws the levels of the LSM trees of a table."""

from __future__ import annotations

import itertools
from typing import Any

import click
import pyarrow as pa
from rich.markup import escape
from rich.tree import Tree

from paimon_py import Table
from paimon_py.cli.output import draw, on_one_line, show_table, takes_format
from paimon_py.cli.sizes import size_text
from paimon_py.cli.values import takes_table

_BAR = 24
_SUMS = ("file_count", "record_count", "file_size_in_bytes")


@click.command()
@takes_table
@click.option("--limit", "-n", type=click.IntRange(1), default=50, show_default=True, help="Maximum buckets.")
@takes_format
def tree(table: Table, limit: int, form: str) -> None:
    """Draw the levels of every bucket: files, rows and bytes. New rows are on level 0; compaction moves them up."""
    levels = table.levels()
    if form == "table":
        draw(_draw(table.name, levels, limit))
    else:
        show_table(levels, form)


def _draw(name: str, levels: pa.Table, limit: int) -> Tree:
    rows = levels.to_pylist()
    largest = max((row["file_size_in_bytes"] for row in rows), default=0)
    root = Tree(f"[bold]{_escape_line(name)}[/bold]  {_summary(rows)}", highlight=False)
    drawn = 0
    grouped = itertools.groupby(rows, lambda row: (row["partition"], row["bucket"]))
    buckets = [(key, list(found)) for key, found in grouped]
    for partition, inside in itertools.groupby(buckets[:limit], lambda one: one[0][0]):
        branch = root if not partition else root.add(_escape_line(partition))
        for (_, bucket), found in inside:
            drawn += 1
            leaf = branch.add(f"bucket {bucket}  [dim]{_summary(found)}[/dim]")
            for row in found:
                bar = "█" * max(1, round(_BAR * row["file_size_in_bytes"] / max(1, largest)))
                leaf.add(f"level {row['level']}  [cyan]{bar}[/cyan]  {_summary([row])}")
    if drawn < len(buckets):
        root.add(f"[dim]… and {len(buckets) - drawn:,} more buckets: --limit draws them[/dim]")
    return root


def _summary(rows: list[dict[str, Any]]) -> str:
    files, records, size = (sum(row[name] for row in rows) for name in _SUMS)
    return f"{files:,} file{'' if files == 1 else 's'}, {records:,} row{'' if records == 1 else 's'}, {size_text(size)}"


def _escape_line(text: str) -> str:
    return escape(on_one_line(text))
