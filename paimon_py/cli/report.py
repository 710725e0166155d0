"""The command that writes a report about a warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from paimon_py import Catalog
from paimon_py.cli.report_page import report_page
from paimon_py.cli.report_values import report_tables
from paimon_py.cli.sizes import count_text
from paimon_py.cli.terminal import progress
from paimon_py.cli.values import new_file, takes_place
from paimon_py.env import SystemClock


@click.command()
@click.argument("warehouse")
@click.option(
    "--html", "file", type=new_file, required=True, metavar="FILE",
    help="The file to write; an existing file is replaced.",
)  # fmt: skip
@click.option("--database", "-d", "databases", multiple=True, help="Only this database; may be repeated.")
@takes_place
def report(warehouse: str, file: Path, databases: tuple[str, ...], options: Mapping[str, str]) -> None:
    """Write one page about all tables of a warehouse: sizes, small files, growth, skew, and maintenance needs.

    Reads all metadata of each table and lists its directories, as doctor does. Nothing is changed.
    """
    catalog = Catalog.open(warehouse, options, create=False)
    chosen = databases or tuple(catalog.databases())
    names = [f"{database}.{table}" for database in chosen for table in catalog.tables(database)]
    with progress("looking at") as on_progress:
        found = report_tables(catalog, names, on_progress)
    file.write_text(report_page(catalog.warehouse, found, SystemClock().millis()), encoding="utf-8")
    sick = sum(bool(one.findings) or one.error is not None for one in found)
    click.echo(f"{file}: {count_text(len(found), 'table')}, {sick} with findings")
